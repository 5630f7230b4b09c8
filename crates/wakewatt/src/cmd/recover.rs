//! `wakewatt recover` undoes what a killed run left behind; the hidden `wakewatt guard` does so at once when it can.

use crate::cli::{GuardArgs, RecoverArgs};
use crate::exit::{Code, Failure};
use crate::output;
use anyhow::Result;
use std::path::Path;
use wakewatt_host::clock;
use wakewatt_host::store::Disk;
use wakewatt_tune::guard;
use wakewatt_tune::journal::{Journal, Phase, STATE_DIR, boot_id};
use wakewatt_tune::live::ThisMachine;
use wakewatt_tune::lock::Lock;
use wakewatt_tune::recovery;

/// Runs it.
pub fn run(args: &RecoverArgs) -> Result<Code> {
    // Anybody may ask, and looking leaves no trace.
    let (journals, unreadable) = Journal::all(&Disk, Path::new(STATE_DIR));
    if unreadable.is_empty() && journals.iter().all(|j| j.phase == Phase::Applied) {
        output::print("Nothing to recover: no run left settings changed.\n")?;
        return Ok(Code::Fine);
    }
    // Waits: whoever changes settings now may be the one whose journal lies open.
    let _lock = Lock::wait(Path::new(STATE_DIR)).map_err(|e| Failure::error(Code::Refused, e.to_string()))?;
    let (is_all_done, lines) = sweep(args.force);
    if lines.is_empty() && is_all_done {
        output::print("Nothing to recover any more: it was undone meanwhile.\n")?;
    }
    lines.iter().try_for_each(|line| output::print(&format!("{line}\n")))?;
    Ok(if is_all_done { Code::Fine } else { Code::NotRestored })
}

/// Undoes what is due, under the caller's lock; says whether nothing is left, and what was done. What is left is
/// complained about.
pub fn sweep(is_forced: bool) -> (bool, Vec<String>) {
    let machine = |root: &Path| ThisMachine::at(root).map_err(|e| e.to_string());
    let (swept, unreadable) =
        recovery::sweep(machine, Path::new(STATE_DIR), &boot_id(), clock::boottime_ns(), is_forced);
    let mut is_all_done = unreadable.is_empty();
    unreadable.iter().for_each(|error| output::complain(&error.to_string()));
    let mut lines = Vec::new();
    for one in swept {
        let Some(report) = one.report else {
            lines.push(format!("{}: {}; left alone", one.what, one.why));
            continue;
        };
        lines.push(format!("{}: {}", one.what, one.why));
        lines.extend(report.entries.iter().map(|(path, result)| format!("{path}: {result}")));
        is_all_done &= report.is_complete();
        report.left().iter().for_each(|line| output::complain(line));
    }
    (is_all_done, lines)
}

/// The guard process: see [`wakewatt_tune::guard`].
pub fn guard(args: &GuardArgs) -> Result<Code> {
    let acted = if args.confirm { guard::await_confirmation(&args.journal)? } else { guard::watch(&args.journal)? };
    Ok(match acted {
        Some(report) if !report.is_complete() => Code::NotRestored,
        _ => Code::Fine,
    })
}
