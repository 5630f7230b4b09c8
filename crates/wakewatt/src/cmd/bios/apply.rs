//! `wakewatt bios apply`.

use super::{bios, journals, live, machine};
use crate::cli::bios::BiosApplyArgs;
use crate::exit::{Code, Failure};
use crate::output::{self, Colour};
use crate::telling::Telling;
use crate::view::Style;
use crate::view::wrap::wrap;
use anyhow::Result;
use std::fmt::Write as _;
use std::time::{Duration, SystemTime};
use wakewatt_bios::apply::{Applied, ApplyError, Order, ReadBack, StagedSetting, apply, unconfirmed};
use wakewatt_bios::plan::plan;
use wakewatt_tune::lock::{Lock, LockError};

/// Between two looks at a job.
const PAUSE: Duration = Duration::from_secs(2);

/// Runs it.
pub(super) fn run(args: &BiosApplyArgs, colour: Colour) -> Result<Code> {
    let folder = journals(&args.journal);
    let _lock = lock(&folder)?;
    let mut service = live(&args.bmc)?;
    let machine = machine(&mut service, args.bmc.system.as_deref())?;
    let bios = bios(&machine)?;
    let plan = plan(&machine, bios, &args.wishes);
    let wishes: Vec<String> = args.wishes.iter().map(ToString::to_string).collect();
    let made_at = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let kind = args.reboot.as_deref().map(|kind| Some(kind).filter(|kind| !kind.is_empty()));
    let order = Order {
        journals: &folder,
        wishes: &wishes,
        made_at: &made_at,
        is_keeping_going: args.keep_going,
        is_unvalidated_allowed: args.unvalidated,
        is_waiting_allowed: args.with_waiting,
        reboot: kind,
        pause: PAUSE,
    };
    let applied = apply(&mut service, &machine, bios, &plan, order).map_err(not_applied)?;
    // Logged out before anything can go wrong with telling.
    drop(service);
    let mut telling = Telling::default();
    match args.json {
        true => telling.text(&output::json("bios-apply", &applied)?),
        false => telling.text(&text(&applied, Style { is_on: colour.is_on() })),
    }
    let is_failed = applied.job.as_ref().is_some_and(wakewatt_bios::apply::job::Job::is_failed);
    let code = match () {
        () if !unconfirmed(&applied.staged).is_empty() => Code::Drift,
        () if is_failed || applied.not_restarted.is_some() => Code::Refused,
        () if !applied.left_out.is_empty() => Code::Partial,
        () => Code::Fine,
    };
    Ok(telling.end(code, &sentence(&applied)))
}

/// One at a time stages.
pub(super) fn lock(folder: &std::path::Path) -> Result<Lock> {
    Lock::take(folder).map_err(|why| {
        let code = if matches!(why, LockError::Busy(_)) { Code::Busy } else { Code::Refused };
        let text = match &why {
            LockError::Busy(path) => format!("{path}: another wakewatt is changing BIOS settings; wait for it to end"),
            LockError::Other { path, what } | LockError::Unusable { path, what } => {
                format!("{path}: {what}; old values must be kept somewhere, so nothing is staged: name a folder with --journals")
            }
        };
        Failure::error(code, text)
    })
}

fn not_applied(error: ApplyError) -> anyhow::Error {
    let code = match &error {
        ApplyError::Journal(_) => Code::BadFile,
        ApplyError::Stage(why) if !why.is_certain() => Code::NotRestored,
        _ => Code::Refused,
    };
    let more = if code == Code::NotRestored {
        "; the journal is kept: see `wakewatt bios show`, then `wakewatt bios undo`"
    } else {
        ""
    };
    Failure::error(code, format!("{error}{more}"))
}

fn sentence(applied: &Applied) -> String {
    match &applied.id {
        Some(id) if !unconfirmed(&applied.staged).is_empty() => {
            format!("{id} is accepted, not confirmed; {}", look(id))
        }
        Some(id) => format!("{id} is staged for the next boot; wakewatt bios undo {id} takes it back"),
        None => "nothing had to be staged".into(),
    }
}

/// What the BMC shows of a setting that was sent.
pub(super) fn read_back(staged: &StagedSetting) -> String {
    match (staged.read_back(), &staged.read_back) {
        (ReadBack::Same, _) => "waits for the next boot".into(),
        (ReadBack::Other, Some(back)) => format!("NOT confirmed: the BMC shows {back}"),
        _ => "NOT confirmed: the BMC does not show it".into(),
    }
}

/// Where nobody knows whether it waits.
fn look(id: &str) -> String {
    format!("See whether it waits: wakewatt bios show. Undo: wakewatt bios undo {id}")
}

fn text(applied: &Applied, style: Style) -> String {
    let (mut out, width) = (String::new(), output::width());
    for staged in &applied.staged {
        let before = staged.before.as_ref().map_or_else(|| "not told".into(), ToString::to_string);
        let line = format!("{}: {before} -> {}; {}", staged.attribute, staged.requested, read_back(staged));
        let _ = writeln!(out, "{}", wrap("  ", "      ", &line, width));
    }
    for left in &applied.left_out {
        let _ = writeln!(out, "{}", wrap("  left out: ", "      ", &format!("{}: {}", left.asked, left.why), width));
    }
    if let Some(job) = &applied.job {
        let state = job.state.as_deref().unwrap_or("not told");
        let _ = writeln!(out, "{}", wrap("Job: ", "  ", &format!("{} ({state}) {}", job.path, job.said), width));
    }
    if let Some(why) = &applied.not_restarted {
        let _ = writeln!(out, "{}", style.red(&wrap("NOT restarted: ", "  ", why, width)));
    }
    for note in &applied.notes {
        let _ = writeln!(out, "{}", wrap("Note: ", "  ", note, width));
    }
    match (&applied.id, &applied.restarted) {
        (Some(id), None) if !unconfirmed(&applied.staged).is_empty() => {
            let text = format!("accepted, NOT confirmed: the BMC does not show what was sent. {}", look(id));
            let _ = writeln!(out, "{} {}", style.bold(id), style.red(&wrap("", "  ", &text, width)));
        }
        (Some(id), None) => {
            let text = format!(
                "staged, in force after the next boot of the machine, which was not restarted. Afterwards: wakewatt bios verify {id}. Undo: wakewatt bios undo {id}"
            );
            let _ = writeln!(out, "{} {}", style.bold(id), wrap("", "  ", &text, width));
        }
        (Some(id), Some(kind)) => {
            let _ = writeln!(
                out,
                "{} staged, and the machine told to restart ({kind}). Afterwards: wakewatt bios verify {id}",
                style.bold(id)
            );
        }
        (None, _) => out.push_str("Nothing had to be staged.\n"),
    }
    out
}
