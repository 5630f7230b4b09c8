//! `wakewatt tune undo` and `tune confirm`.

use super::{journals, lock, pick};
use crate::cli::tune::{UndoArgs, WhichArgs};
use crate::exit::{Code, Failure};
use crate::output;
use anyhow::Result;
use wakewatt_host::clock;
use wakewatt_host::store::Disk;
use wakewatt_tune::journal::{Journal, Phase, boot_id};
use wakewatt_tune::live::ThisMachine;
use wakewatt_tune::recovery::{self, Due};

/// Puts one or all back.
pub(super) fn run(args: &UndoArgs) -> Result<Code> {
    let _lock = lock(false)?;
    let (mut all, is_readable) = journals();
    let chosen: Vec<Journal> = if args.all {
        all.reverse();
        all
    } else {
        pick(all, &args.which)?.into_iter().collect()
    };
    if chosen.is_empty() && is_readable {
        output::print("Nothing to undo: no settings of wakewatt are applied.\n")?;
    }
    let boot_id = boot_id();
    let mut is_complete = is_readable;
    if let (false, [journal], false) = (args.force, &chosen[..], args.all) {
        refuse_out_of_order(journal)?;
    }
    for mut journal in chosen {
        output::print(&format!("{}: {}\n", journal.id(), journal.purpose))?;
        if !journal.is_of_boot(&boot_id) {
            output::print("  the machine has booted since, which reset its settings; files are looked at\n")?;
        }
        let machine = ThisMachine::at(&journal.root)?;
        let report =
            recovery::close(machine.hands(), &mut journal, &boot_id, args.force).map_err(anyhow::Error::msg)?;
        for (path, result) in &report.entries {
            output::print(&format!("  {path}: {result}\n"))?;
        }
        if !report.is_complete() {
            is_complete = false;
            report.left().iter().for_each(|line| output::complain(line));
        }
    }
    if let Some(left) = journals().0.iter().find(|j| j.entries.iter().any(|e| e.path == BOOT_ENTRY)) {
        let id = left.id();
        output::print(&format!("{id} sets its settings again at the next boot; wakewatt tune undo {id} ends that\n"))?;
    }
    Ok(if is_complete { Code::Fine } else { Code::NotRestored })
}

/// The journal's entry for the profile that is applied at boot.
const BOOT_ENTRY: &str = "file:/etc/wakewatt/boot.toml";

/// A later transaction on the same files found our values: undone before it, ours would come back with its undo.
fn refuse_out_of_order(journal: &Journal) -> Result<()> {
    let (all, _) = journals();
    let later = all.iter().skip_while(|j| j.file() != journal.file()).skip(1);
    for other in later {
        let shared = journal.entries.iter().find(|e| other.entries.iter().any(|o| o.path == e.path));
        if let Some(entry) = shared {
            let (id, later) = (journal.id(), other.id());
            return Err(Failure::error(
                Code::NotRestored,
                format!("{id}: {later} has set {} since; undo {later} first, or use --force", entry.path),
            ));
        }
    }
    Ok(())
}

/// Keeps what waits for confirmation.
pub(super) fn confirm(args: &WhichArgs) -> Result<Code> {
    let _lock = lock(false)?;
    let (mut all, _) = journals();
    all.retain(|j| args.id.is_some() || matches!(j.phase, Phase::Unconfirmed { .. }));
    let Some(mut journal) = pick(all, args)? else {
        output::print("Nothing waits for confirmation.\n")?;
        return Ok(Code::Fine);
    };
    let id = journal.id();
    match journal.phase {
        Phase::Applied => {
            output::print(&format!("{id}: is confirmed already\n"))?;
            return Ok(Code::Fine);
        }
        Phase::Open => {
            return Err(Failure::error(Code::Refused, format!("{id}: is not complete; wakewatt recover undoes it")));
        }
        Phase::Unconfirmed { .. } => {}
    }
    if let Due::Now(why) = recovery::due(&journal, &boot_id(), clock::boottime_ns(), false) {
        return Err(Failure::error(Code::Refused, format!("{id}: too late: {why}; wakewatt recover undoes it")));
    }
    journal.phase = Phase::Applied;
    journal.save(&Disk)?;
    output::print(&format!("{id}: kept. wakewatt tune undo {id} takes it back.\n"))?;
    Ok(Code::Fine)
}
