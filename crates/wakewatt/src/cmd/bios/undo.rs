//! `wakewatt bios undo`.

use super::apply::{lock, read_back};
use super::{journal, journals, live};
use crate::cli::bios::BiosUndoArgs;
use crate::exit::{Code, Failure};
use crate::output;
use crate::telling::Telling;
use crate::view::wrap::wrap;
use anyhow::Result;
use std::fmt::Write as _;
use std::time::Duration;
use wakewatt_bios::apply::unconfirmed;
use wakewatt_bios::service::Service as _;
use wakewatt_bios::undo::{UndoError, Undone, undo};

/// Between two looks at a job.
const PAUSE: Duration = Duration::from_secs(2);

/// Runs it.
pub(super) fn run(args: &BiosUndoArgs) -> Result<Code> {
    let _lock = lock(&journals(&args.journal))?;
    let mut service = live(&args.bmc)?;
    let Some(mut journal) = journal(&args.journal, args.id.as_deref(), &service.origin(), args.bmc.system.as_deref())?
    else {
        drop(service);
        output::print("Nothing to undo: no BIOS settings of wakewatt are staged or applied on this BMC.\n")?;
        return Ok(Code::Fine);
    };
    let undone = undo(&mut service, &mut journal, args.force, PAUSE).map_err(not_undone)?;
    drop(service);
    let mut telling = Telling::default();
    match args.json {
        true => telling.text(&output::json("bios-undo", &undone)?),
        false => telling.text(&text(&undone)),
    }
    let is_confirmed = undone.is_complete || unconfirmed(&undone.staged).is_empty();
    let is_left = !undone.left.is_empty() || !undone.without_old_value.is_empty();
    let code = if is_left || !is_confirmed { Code::NotRestored } else { Code::Fine };
    let end = if is_confirmed { "is staged" } else { "is accepted, not confirmed" };
    Ok(telling.end(code, &format!("the undo of {} {end}", undone.id)))
}

fn not_undone(error: UndoError) -> anyhow::Error {
    let code = match &error {
        UndoError::Journal(_) => Code::BadFile,
        UndoError::Machine(_) | UndoError::Bios(_) | UndoError::WaitingUnknown(_) => Code::CouldNotMeasure,
        UndoError::OtherBmc { .. } => Code::Usage,
        UndoError::Foreign { .. } | UndoError::NoSettings | UndoError::Stage(_) => Code::NotRestored,
    };
    Failure::error(code, error.to_string())
}

fn text(undone: &Undone) -> String {
    let (mut out, width) = (String::new(), output::width());
    if let Some(job) = &undone.cancelled_job {
        let _ = writeln!(out, "{}", wrap("  ", "      ", &format!("the job that waited was deleted: {job}"), width));
    }
    // Taken back before it came into force: then nothing waits.
    let back = |staged| if undone.is_complete { "as before".into() } else { read_back(staged) };
    for staged in &undone.staged {
        let now = staged.before.as_ref().map_or_else(|| "not told".into(), ToString::to_string);
        let _ = writeln!(
            out,
            "{}",
            wrap(
                "  ",
                "      ",
                &format!("{}: {now} -> {}; {}", staged.attribute, staged.requested, back(staged)),
                width
            )
        );
    }
    for left in &undone.left {
        let _ = writeln!(out, "{}", wrap("  NOT undone: ", "      ", &format!("{}: {}", left.asked, left.why), width));
    }
    for later in &undone.second_round {
        let _ = writeln!(out, "{}", wrap("  Second round: ", "      ", &later.why, width));
    }
    for name in &undone.without_old_value {
        let _ = writeln!(
            out,
            "{}",
            wrap("  NOT undone: ", "      ", &format!("{name}: its old value was never told"), width)
        );
    }
    for note in &undone.notes {
        let _ = writeln!(out, "{}", wrap("Note: ", "  ", note, width));
    }
    let _ = match undone.is_complete {
        true => writeln!(out, "{} is undone: everything is as before.", undone.id),
        false if !unconfirmed(&undone.staged).is_empty() => {
            writeln!(out, "NOT confirmed: the BMC does not show the old values as waiting. See: wakewatt bios show")
        }
        false => writeln!(
            out,
            "Old values wait for the next boot. Afterwards: wakewatt bios undo {0} stages the rest, if any, and ends its journal.",
            undone.id
        ),
    };
    out
}
