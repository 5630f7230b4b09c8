//! `wakewatt recover` undoes what a killed run left behind; the hidden `wakewatt guard` does so at once when it can.

use crate::cli::{GuardArgs, RecoverArgs};
use crate::exit::Code;
use crate::output;
use anyhow::Result;
use std::path::Path;
use wakewatt_host::clock;
use wakewatt_host::store::Disk;
use wakewatt_tune::guard;
use wakewatt_tune::journal::{Journal, Phase, STATE_DIR, boot_id};
use wakewatt_tune::live::ThisMachine;
use wakewatt_tune::lock::Lock;
use wakewatt_tune::recovery::{self, Due};

/// Runs it.
pub fn run(args: &RecoverArgs) -> Result<Code> {
    let (mut journals, unreadable) = Journal::all(&Disk, Path::new(STATE_DIR));
    journals.retain(|j| j.phase != Phase::Applied);
    let mut is_all_done = unreadable.is_empty();
    for error in &unreadable {
        output::complain(&error.to_string());
    }
    if journals.is_empty() && unreadable.is_empty() {
        output::print("Nothing to recover: no run left settings changed.\n")?;
    }
    let boot_id = boot_id();
    // The newest first: each goes back to what it found.
    for mut journal in journals.into_iter().rev() {
        let what = format!("{} ({}, process {})", journal.purpose, journal.id(), journal.pid);
        let alive = journal.is_owner_alive();
        let why = match recovery::due(&journal, &boot_id, clock::boottime_ns(), alive) {
            Due::NotYet(why) => {
                output::print(&format!("{what}: {why}; left alone\n"))?;
                continue;
            }
            Due::Now(why) => why,
        };
        output::print(&format!("{what}: {why}\n"))?;
        let machine = ThisMachine::at(&journal.root)?;
        let report =
            recovery::close(machine.hands(), &mut journal, &boot_id, args.force).map_err(anyhow::Error::msg)?;
        for (path, result) in &report.entries {
            output::print(&format!("{path}: {result}\n"))?;
        }
        if !report.is_complete() {
            is_all_done = false;
            report.left().iter().for_each(|line| output::complain(line));
        }
    }
    Ok(if is_all_done { Code::Fine } else { Code::NotRestored })
}

/// The guard process: see [`wakewatt_tune::guard`].
pub fn guard(args: &GuardArgs) -> Result<Code> {
    let acted = if args.confirm {
        guard::await_confirmation(&args.journal, || Lock::take(Path::new(STATE_DIR)).ok())?
    } else {
        guard::watch(&args.journal)?
    };
    Ok(match acted {
        Some(report) if !report.is_complete() => Code::NotRestored,
        _ => Code::Fine,
    })
}
