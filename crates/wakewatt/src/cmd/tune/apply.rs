//! `wakewatt tune apply`: the changes, all or none, with a watch over them.

use super::Requested;
use super::guard::{self, Watchman};
use super::units::binary;
use crate::cli::tune::ApplyArgs;
use crate::cmd::recover;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use crate::output::{self, Colour};
use crate::telling::Telling;
use crate::trusted::Use;
use crate::view::Style;
use crate::view::wrap::wrap;
use anyhow::Result;
use serde::Serialize;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::path::Path;
use wakewatt_host::clock;
use wakewatt_host::input::{self, InputError};
use wakewatt_host::store::Disk;
use wakewatt_tune::apply::{ApplyError, Confirm, FileChange, Order, Outcome, SettingOutcome, SettingResult};
use wakewatt_tune::begin::{BeginError, begin_over_leftovers};
use wakewatt_tune::boot::{BootPlan, TryOnce};
use wakewatt_tune::journal::{Journal, Phase, STATE_DIR, boot_id};
use wakewatt_tune::profile::{self, to_toml};
use wakewatt_tune::recovery::Manner;
use wakewatt_tune::request::Request;
use wakewatt_tune::systemd;

/// The document of `tune apply`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Applied {
    /// The transaction; none when nothing stays changed.
    pub id: Option<String>,
    /// Every setting: requested, read back, effective.
    pub settings: Vec<SettingOutcome>,
    /// What was left out, and why.
    pub left_out: Vec<String>,
    /// Why everything was taken back.
    pub failed: Option<String>,
    /// What could not be taken back.
    pub not_restored: Vec<String>,
    /// Seconds within which it must be confirmed.
    pub confirm_within_s: Option<u64>,
    /// What a guard saw.
    pub guard: Option<String>,
    /// What to know: kernel parameters wait for a reboot.
    pub notes: Vec<String>,
}

/// Runs it.
pub(super) fn run(args: &ApplyArgs, colour: Colour) -> Result<Code> {
    let requested = Requested::gather(&args.wanted, Use::Acting)?;
    let interrupt = Interrupt::listen()?;
    // At boot and after a hotplug somebody else may be at work: wait for one's turn.
    let tuner = begin_over_leftovers(&requested.purpose, args.at_boot).map_err(|e| {
        let code = if matches!(e, BeginError::Busy(_)) { Code::Busy } else { Code::Refused };
        Failure::error(code, e.to_string())
    })?;
    if args.at_boot {
        forget_earlier_boots();
    }
    // What a killed run has left would be taken for what was there before.
    let swept = recover::sweep(Manner { has_lock: true, is_forced: false });
    swept.lines.iter().for_each(|line| output::remark(line));
    if let Some((code, why)) = swept.in_the_way() {
        return Err(Failure::error(code, format!("nothing is changed: {why}")));
    }
    let mut notes = Vec::new();
    let (mut files, mut commands) = (Vec::new(), Vec::new());
    match requested.boot(tuner.hands().source, &super::held_arguments()) {
        None => {}
        Some(Err(why)) => return Err(Failure::error(Code::Refused, format!("nothing is changed: {why}"))),
        Some(Ok((plan, loader))) => {
            notes.push(format!("{loader}: takes effect with the next boot; afterwards: wakewatt tune verify"));
            notes.extend(plan.notes.iter().cloned());
            boot_steps(&plan, args.try_once, &mut files, &mut commands, &mut notes)?;
        }
    }
    if args.persist {
        persist_steps(&requested, &mut files, &mut commands, &mut notes)?;
    }
    let is_for_boot = files.iter().any(|f| f.path.starts_with("file:")) && !requested.arguments.is_empty();
    if args.confirm_within.is_some() && is_for_boot {
        let why = "--confirm-within cannot undo kernel parameters, which act after a reboot; apply them by themselves, \
                   with --try-once where the boot loader can";
        return Err(Failure::error(Code::Usage, why));
    }
    let watchman = Watchman::before(args, &interrupt)?;
    let seen = RefCell::new(None);
    let watch = || watchman.after(args, &interrupt).map(|said| *seen.borrow_mut() = said);
    let confirm = args.confirm_within.map(|within_ns| Confirm {
        within_ns,
        boottime_ns: &clock::boottime_ns,
        start: &guard::wait_for_confirmation,
    });
    let order = Order {
        requests: requested.requests.clone(),
        files,
        commands,
        arguments: requested.arguments.clone(),
        is_keeping_going: args.keep_going,
        confirm,
        watch: watchman.is_needed(args).then_some(&watch as &dyn Fn() -> Result<(), String>),
        ..Order::default()
    };
    let outcome = tuner.apply(order).map_err(|e| {
        let code = if matches!(e, ApplyError::Refused(_)) { Code::Refused } else { Code::BadFile };
        Failure::error(code, e.to_string())
    })?;
    if let (Some(_), Some(within)) = (&outcome.id, args.confirm_within) {
        notes.push(format!("undone by itself in {} s unless confirmed: wakewatt tune confirm", within / 1_000_000_000));
    }
    let applied = Applied {
        id: outcome.id.clone(),
        failed: outcome.failed.as_ref().map(|(why, _)| why.clone()),
        not_restored: outcome.failed.as_ref().map_or_else(Vec::new, |(_, report)| report.left()),
        settings: outcome.settings.clone(),
        left_out: outcome.left_out.clone(),
        confirm_within_s: args.confirm_within.map(|ns| ns / 1_000_000_000),
        guard: seen.into_inner(),
        notes,
    };
    let mut telling = Telling::default();
    if args.json {
        telling.text(&output::json("tune-apply", &applied)?);
    } else {
        telling.text(&text(&applied, &outcome, Style { is_on: colour.is_on() }));
    }
    applied.not_restored.iter().for_each(|line| output::complain(line));
    let journal_left = outcome.failed.as_ref().and_then(|(_, report)| report.journal_left());
    journal_left.iter().for_each(|line| output::complain(line));
    let is_partial = outcome.n_refused > 0;
    let code = match (&applied.failed, applied.not_restored.is_empty()) {
        (_, false) => Code::NotRestored,
        (Some(_), _) if journal_left.is_some() => Code::BadFile,
        (Some(_), _) => Code::Refused,
        (None, _) if is_partial => Code::Partial,
        (None, _) => Code::Fine,
    };
    Ok(telling.end(code, &in_a_sentence(&applied)))
}

/// For somebody whom the report did not reach.
fn in_a_sentence(applied: &Applied) -> String {
    match (&applied.id, &applied.failed) {
        (Some(id), _) => match applied.confirm_within_s {
            Some(s) => format!("{id} is applied; it is undone in {s} s unless confirmed: wakewatt tune confirm"),
            None => format!("{id} is applied and stays; wakewatt tune undo {id} takes it back"),
        },
        (None, Some(why)) if applied.not_restored.is_empty() => format!("nothing stays changed: {why}"),
        (None, Some(why)) => format!("NOT everything could be put back: {why}"),
        (None, None) => "nothing had to be changed".into(),
    }
}

/// The steps of a boot plan as files and commands of a transaction.
fn boot_steps(
    plan: &BootPlan,
    is_trying: bool,
    files: &mut Vec<FileChange>,
    commands: &mut Vec<(Vec<String>, Vec<String>)>,
    notes: &mut Vec<String>,
) -> Result<()> {
    let refuse = |why: String| Err(Failure::error(Code::Refused, format!("nothing is changed: {why}")));
    let (edits, steps) = match (&plan.try_once, is_trying) {
        (Some(TryOnce::Offered { edits, commands, to_keep }), true) => {
            notes.push(format!("tried once: {to_keep}"));
            (edits, commands)
        }
        (Some(TryOnce::Refused { why }), true) => return refuse(format!("--try-once: {why}")),
        _ => (&plan.edits, &plan.commands),
    };
    for edit in edits {
        let to = match edit.after.clone().map(String::from_utf8).transpose() {
            Ok(text) => text,
            Err(_) => return refuse(format!("{}: holds bytes that are no text", edit.path)),
        };
        files.push(FileChange { path: format!("file:{}", edit.path), to });
    }
    commands.extend(steps.iter().map(|c| (c.argv.clone(), c.undo.clone())));
    Ok(())
}

/// A profile of what was asked for, and the units that apply it at every boot.
fn persist_steps(
    requested: &Requested,
    files: &mut Vec<FileChange>,
    commands: &mut Vec<(Vec<String>, Vec<String>)>,
    notes: &mut Vec<String>,
) -> Result<()> {
    let mut write = |path: &str, text: String| files.push(FileChange { path: format!("file:{path}"), to: Some(text) });
    // What an earlier transaction keeps stays kept, unless this one says otherwise of the same place.
    let text = input::read_text(Path::new(systemd::BOOT_PROFILE), input::PROFILE).map_err(|error| match error {
        InputError::Refused { error, .. } => error,
        other => std::io::Error::other(other),
    });
    let kept = profile::kept(text).map_err(|why| {
        Failure::error(Code::Refused, format!("nothing is changed: {}: {why}", systemd::BOOT_PROFILE))
    })?;
    let is_overruled =
        |old: &&Request| requested.requests.iter().any(|new| new.name == old.name && new.place == old.place);
    let mut all: Vec<Request> = kept.all_requests().iter().filter(|old| !is_overruled(old)).cloned().collect();
    let about =
        if all.is_empty() { requested.purpose.clone() } else { format!("{}; {}", kept.about, requested.purpose) };
    all.extend(requested.requests.iter().cloned());
    write(systemd::BOOT_PROFILE, to_toml(&about, &all));
    if !Path::new("/etc/systemd/system").is_dir() {
        notes.push(format!(
            "no systemd here: let your init run `wakewatt tune apply {} --keep-going --at-boot`",
            systemd::BOOT_PROFILE
        ));
        return Ok(());
    }
    let program = binary()?;
    if let Some(why) = systemd::unsafe_path(Path::new(&program)) {
        return Err(Failure::error(Code::Refused, format!("nothing is changed: --persist: {why}")));
    }
    for unit in systemd::units(&program) {
        if Path::new(unit.path).parent().is_some_and(Path::is_dir) {
            write(unit.path, unit.text);
        }
    }
    let words = |text: &str| text.split(' ').map(str::to_string).collect::<Vec<_>>();
    if Path::new("/run/systemd/system").is_dir() {
        commands.push((words("systemctl daemon-reload"), words("systemctl daemon-reload")));
    }
    // Removing the link by hand does what disabling does and cannot fail because the unit is gone already.
    for (unit, target) in [(systemd::APPLY_UNIT, "multi-user"), ("wakewatt-confirm.timer", "timers")] {
        let link = format!("/etc/systemd/system/{target}.target.wants/{unit}");
        // Enabled before is none of our doing, and stays.
        if Path::new(&link).symlink_metadata().is_ok() {
            continue;
        }
        commands.push((words(&format!("systemctl enable --quiet {unit}")), words(&format!("rm -f {link}"))));
    }
    notes.push("set again at every boot by wakewatt-apply.service".into());
    Ok(())
}

/// Settings of earlier boots are gone with them; only their files are left to remember.
fn forget_earlier_boots() {
    let now = boot_id();
    let (journals, _) = Journal::all(&Disk, Path::new(STATE_DIR));
    for mut journal in journals.into_iter().filter(|j| j.phase == Phase::Applied && !j.is_of_boot(&now)) {
        journal.entries.retain(wakewatt_tune::journal::Entry::is_durable);
        journal.requests.clear();
        let done = if journal.entries.is_empty() && journal.commands.is_empty() {
            journal.finish(&Disk)
        } else {
            journal.save(&Disk)
        };
        if let Err(error) = done {
            output::complain(&error.to_string());
        }
    }
}

fn text(applied: &Applied, outcome: &Outcome, style: Style) -> String {
    let mut out = String::new();
    let width = output::width();
    let n_of = |test: fn(&SettingResult) -> bool| applied.settings.iter().filter(|s| test(&s.result)).count();
    let n_set = n_of(|r| matches!(r, SettingResult::Set | SettingResult::Clamped(_)));
    let n_so = n_of(|r| *r == SettingResult::WasSo);
    let n_out = applied.left_out.len();
    let mut lines: Vec<(String, String, usize, String)> = Vec::new();
    for setting in &applied.settings {
        let what = match &setting.result {
            SettingResult::WasSo => continue,
            SettingResult::Set => String::new(),
            SettingResult::Clamped(how) => format!(" ({how})"),
            SettingResult::Refused(why) => format!(" REFUSED: {why}"),
        };
        let force = setting.effective.as_ref().map_or(String::new(), |e| format!("; in force: {e}"));
        let (from, to) = (&setting.before_shown, &setting.requested_shown);
        let said = format!("{from} -> {to}{what}{force}");
        // A 512-CPU machine has one line per kind of change, not per CPU.
        match lines.last_mut().filter(|l| l.0 == setting.name && l.1 == said) {
            Some(line) => line.2 += 1,
            None => lines.push((setting.name.clone(), said, 1, setting.place.clone())),
        }
    }
    for (name, said, n, place) in lines {
        let at = if n > 1 { format!("{n} places from {place} on") } else { place };
        let _ = writeln!(out, "{}", wrap("  ", "      ", &format!("{name} at {at}: {said}"), width));
    }
    for why in &applied.left_out {
        let _ = writeln!(out, "{}", wrap("  left out: ", "      ", why, width));
    }
    if let Some(why) = &applied.failed {
        let all = if applied.not_restored.is_empty() {
            "everything is as before"
        } else {
            "NOT everything could be put back"
        };
        let _ = writeln!(out, "{}", style.red(&wrap("Taken back: ", "  ", &format!("{why}; {all}"), width)));
        return out;
    }
    if let Some(said) = &applied.guard {
        let _ = writeln!(out, "{}", wrap("Guard: ", "  ", said, width));
    }
    for note in &applied.notes {
        let _ = writeln!(out, "{}", wrap("Note: ", "  ", note, width));
    }
    let _ = match &outcome.id {
        Some(id) => writeln!(
            out,
            "{} applied: {n_set} settings written and read back, {n_so} were so already, {n_out} left out. Undo: wakewatt tune undo {id}",
            style.bold(id)
        ),
        None => writeln!(out, "Nothing to do: {n_so} settings are so already."),
    };
    out
}
