//! Giving a journal up: what is lost with it, and removing it without putting anything back.
//!
//! The last way out when an undo can never be complete: a program that is not installed any more, a register whose driver
//! refuses, a file of another version. Nothing is written but the journal's removal, so what is listed here stays as it is.
//! Of a file that cannot be read as a journal nothing can be listed; it is named by its file.

use crate::hands::Hands;
use crate::journal::{Journal, JournalError};
use wakewatt_host::store::{self, Store, StoreError};

/// What stays changed when this journal is forgotten, one line each; empty when everything is as before.
pub fn losses(hands: Hands<'_>, journal: &Journal, boot_id: &str) -> Vec<String> {
    let is_same_boot = journal.is_of_boot(boot_id);
    let mut lines = Vec::new();
    for entry in journal.entries.iter().filter(|e| is_same_boot || e.is_durable()) {
        let shown = |value: &Option<String>| match value.as_deref() {
            None => "not there".to_string(),
            // A file is shown by its size.
            Some(text) if entry.is_durable() => format!("a file of {} bytes", text.len()),
            Some(text) => format!("{text:?}"),
        };
        match hands.sink.read(&entry.path) {
            Ok(now) if entry.is_before(&Some(now.clone())) => {}
            Ok(now) => {
                lines.push(format!("{}: is {}, was {} before", entry.path, shown(&Some(now)), shown(&entry.before)));
            }
            Err(error) if error.is_absent && entry.is_before(&None) => {}
            Err(error) => lines.push(format!("{error}; was {} before", shown(&entry.before))),
        }
    }
    for command in journal.commands.iter().filter(|c| c.is_started && !c.undo.is_empty()) {
        lines.push(format!(
            "{}: may have been run, and {} was not run to its end since",
            command.run.join(" "),
            command.undo.join(" ")
        ));
    }
    lines
}

/// The file of this name among those that could not be read.
pub fn unreadable<'e>(errors: &'e [JournalError], id: &str) -> Option<&'e JournalError> {
    let name = format!("{id}.json");
    errors.iter().find(|error| error.file().file_name().is_some_and(|file| *file == *name))
}

/// Removes such a file.
pub fn remove(store: &dyn Store, unreadable: &JournalError) -> Result<(), StoreError> {
    store::remove(store, unreadable.file()).or_else(|error| if error.is_in_place { Ok(()) } else { Err(error) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use wakewatt_host::simulated::SimulatedMachine;

    #[test]
    fn a_file_of_another_version_is_forgotten_by_its_name() {
        let machine = SimulatedMachine::new("");
        machine.put_file("/state/open/tune-1.json", "{\"format\":99}");
        machine.put_file("/state/open/tune-2.json", "{\"format\":99}");
        let unread = || Journal::all(&machine, Path::new("/state/open")).1;
        let errors = unread();
        assert!(unreadable(&errors, "open").is_none() && unreadable(&errors, "../open/tune-1").is_none());
        remove(&machine, unreadable(&errors, "tune-1").unwrap()).unwrap();
        assert!(unread().len() == 1 && unreadable(&unread(), "tune-2").is_some());
    }
}
