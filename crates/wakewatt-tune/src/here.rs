//! What is done with journals on the machine this runs on, for whoever talks to people: the sinks are made here.

use crate::journal::{Journal, STATE_DIR, boot_id};
use crate::live::ThisMachine;
use crate::recovery::{self, Manner};
use crate::status::{TransactionState, status};
use crate::sweep::Sweep;
use crate::undo::UndoReport;
use crate::{forget, left};
use std::path::Path;
use wakewatt_host::clock;
use wakewatt_host::live::SysrootError;

/// Undoes what is due of all journals.
pub fn sweep(manner: Manner) -> Sweep {
    let (swept, unreadable) = recovery::sweep(Path::new(STATE_DIR), &boot_id(), clock::boottime_ns(), manner);
    Sweep::of(swept, &unreadable)
}

/// Undoes one and closes its journal, if nothing is left.
pub fn put_back(journal: &mut Journal, is_forced: bool) -> Result<UndoReport, SysrootError> {
    let machine = ThisMachine::at(&journal.root)?;
    Ok(recovery::close(machine.hands(), journal, &boot_id(), is_forced))
}

/// What stays changed when this journal is forgotten.
pub fn losses(journal: &Journal) -> Result<Vec<String>, SysrootError> {
    Ok(forget::losses(ThisMachine::at(&journal.root)?.hands(), journal, &boot_id()))
}

/// Is all as before but for what is out of reach?
pub fn is_waiting(journal: &Journal) -> bool {
    ThisMachine::at(&journal.root).is_ok_and(|machine| left::is_waiting(machine.hands().sink, journal))
}

/// The state of every journal; `kernel_log` is this boot's, where it could be read.
pub fn states(all: &[Journal], kernel_log: Option<&str>) -> Vec<TransactionState> {
    status(ThisMachine::new().hands(), all, &boot_id(), clock::boottime_ns(), kernel_log)
}
