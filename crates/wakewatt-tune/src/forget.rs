//! Giving a journal up: what is lost with it, and removing it without putting anything back.
//!
//! The last way out when an undo can never be complete: a program that is not installed any more, a register whose driver
//! refuses, a file of another version. Nothing is written but the journal's removal, so what is listed here stays as it is.
//! Of a file that cannot be read as a journal nothing can be listed; it is named by its file.

use crate::hands::Hands;
use crate::journal::{Entry, Journal, JournalError, Phase};
use std::path::Path;
use wakewatt_host::store::{self, Store, StoreError};

/// Settings of earlier boots are gone with them: of what was applied then only files and commands are left to remember.
/// Returns why those that could not be changed were not.
pub fn earlier_boots(store: &dyn Store, state_dir: &Path, boot_id: &str) -> Vec<JournalError> {
    let (journals, _) = Journal::all(store, state_dir);
    let mut failed = Vec::new();
    for mut journal in journals.into_iter().filter(|j| j.phase == Phase::Applied && !j.is_of_boot(boot_id)) {
        journal.entries.retain(Entry::is_durable);
        journal.requests.clear();
        let done = match journal.entries.is_empty() && journal.commands.is_empty() {
            true => journal.finish(store),
            false => journal.save(store),
        };
        failed.extend(done.err());
    }
    failed
}

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
    use crate::journal::{Draft, Owner};
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

    #[test]
    fn of_an_earlier_boot_only_what_outlives_it_is_remembered() {
        let (machine, state) = (SimulatedMachine::new(""), Path::new("/state"));
        let entry = |path: &str| -> Entry {
            serde_json::from_value(serde_json::json!({ "path": path, "before": null, "ours": ["1"] })).unwrap()
        };
        let applied = |boot: &str, entries: Vec<Entry>| {
            let owner = Owner { boot_id: boot.into(), ..Owner::default() };
            let mut journal =
                Journal::create(&machine, state, &owner, "tune", Draft { entries, ..Draft::default() }).unwrap();
            journal.phase = Phase::Applied;
            journal.save(&machine).unwrap();
        };
        applied("boot-1", vec![entry("/sys/x")]);
        applied("boot-1", vec![entry("/sys/x"), entry("file:/etc/x")]);
        applied("boot-2", vec![entry("/sys/x")]);
        assert_eq!(earlier_boots(&machine, state, "boot-2").len(), 0);
        let left: Vec<Vec<String>> = Journal::all(&machine, state)
            .0
            .into_iter()
            .map(|journal| journal.entries.into_iter().map(|entry| entry.path).collect())
            .collect();
        assert_eq!(left, [["file:/etc/x"], ["/sys/x"]]);
    }
}
