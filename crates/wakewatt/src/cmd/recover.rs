//! `wakewatt recover` undoes what a killed run left behind; the hidden `wakewatt guard` does so at once when it can.

use crate::cli::{GuardArgs, RecoverArgs};
use crate::exit::Code;
use crate::output;
use anyhow::Result;
use std::path::Path;
use wakewatt_host::sink::LiveSink;
use wakewatt_tune::guard;
use wakewatt_tune::journal::{Journal, STATE_DIR};
use wakewatt_tune::undo::undo;

/// Runs it.
pub fn run(args: &RecoverArgs) -> Result<Code> {
    let (journals, unreadable) = Journal::open_ones(Path::new(STATE_DIR));
    let mut is_all_done = unreadable.is_empty();
    for error in &unreadable {
        output::complain(&error.to_string());
    }
    if journals.is_empty() && unreadable.is_empty() {
        output::print("Nothing to recover: no run left settings changed.\n")?;
    }
    for journal in journals {
        let what = format!("{} (process {})", journal.purpose, journal.pid);
        if !journal.is_of_this_boot() {
            journal.finish()?;
            output::print(&format!(
                "{what}: the machine has booted since, which reset these settings; nothing to undo\n"
            ))?;
        } else if journal.is_owner_alive() {
            output::print(&format!("{what}: still running, left alone\n"))?;
        } else {
            let report = undo(&LiveSink::at(&journal.root), &journal, args.force);
            for (path, result) in &report.entries {
                output::print(&format!("{path}: {result}\n"))?;
            }
            if report.is_complete() {
                journal.finish()?;
            } else {
                is_all_done = false;
                report.left().iter().for_each(|line| output::complain(line));
            }
        }
    }
    Ok(if is_all_done { Code::Fine } else { Code::NotRestored })
}

/// The guard process: see [`wakewatt_tune::guard`].
pub fn guard(args: &GuardArgs) -> Result<Code> {
    Ok(match guard::watch(&args.journal)? {
        Some(report) if !report.is_complete() => Code::NotRestored,
        _ => Code::Fine,
    })
}
