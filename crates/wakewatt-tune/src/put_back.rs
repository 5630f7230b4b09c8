//! Putting back all that a journal names: its files, what its commands did, its settings.
//!
//! [`crate::undo`] knows how a setting goes back; here is the order of the three kinds.

use crate::hands::Hands;
use crate::journal::{Entry, Journal, Phase};
use crate::undo::{UndoReport, Undone, undo_entries};

/// Undoes everything of a journal: files and commands first, then settings; those only if the machine has not booted
/// since, which reset them. The journal's file is the caller's to remove.
pub fn undo_all(hands: Hands<'_>, journal: &mut Journal, boot_id: &str, is_forced: bool) -> UndoReport {
    let is_same_boot = journal.is_of_boot(boot_id);
    let is_open = journal.phase == Phase::Open;
    let (durable, fleeting): (Vec<&Entry>, Vec<&Entry>) = journal.entries.iter().partition(|e| e.is_durable());
    let mut report = undo_entries(hands.sink, &durable, is_forced, is_open);
    for command in journal.commands.iter().rev().filter(|c| c.is_started && !c.undo.is_empty()) {
        let result = hands.runner.run(&command.undo).map_or_else(Undone::Failed, |()| Undone::Ran);
        report.entries.push((command.undo.join(" "), result));
    }
    if is_same_boot {
        report.entries.extend(undo_entries(hands.sink, &fleeting, is_forced, is_open).entries);
    }
    report
}
