//! Is anything of a killed run still to be undone? Asked before something new is begun, because what was left would be
//! taken for what was there before.
//!
//! A journal whose undo has come as far as it can, and waits for what is out of reach (a CPU that is offline, an interface
//! that has gone), stays open and is in nobody's way: nothing that it names can be taken for anything. So each entry is
//! read, and what is missing is judged by [`crate::gone`], as undo does. A journal with nothing out of reach is recovery's
//! to close, whatever its entries hold. Nothing is written here.

use crate::gone::{Missing, judge};
use crate::journal::{Entry, Journal, OwnerNow, Phase};
use crate::undo::{is_untouched, now};
use std::path::Path;
use wakewatt_host::sink::Sink;
use wakewatt_host::store::Store;

/// An open journal of this boot whose process is not at work any more, and which recovery could do something about. A
/// process that cannot be seen counts as gone for who holds the lock.
pub fn in_the_way(
    sink: &dyn Sink,
    store: &dyn Store,
    state_dir: &Path,
    boot_id: &str,
    has_lock: bool,
) -> Option<Journal> {
    let is_left = |j: &Journal| {
        j.phase == Phase::Open
            && j.is_of_boot(boot_id)
            && j.owner_now().seen_with(has_lock) == OwnerNow::Gone
            && !is_waiting(sink, j)
    };
    Journal::all(store, state_dir).0.into_iter().find(is_left)
}

/// What is to be said of it, and what helps.
pub fn in_words(left: &Journal) -> String {
    format!(
        "{}: a killed run left settings changed; undo them first: sudo wakewatt recover (what can never be undone: sudo \
         wakewatt recover --forget {})",
        left.file().display(),
        left.id()
    )
}

/// Is all as before but for what is out of reach?
pub fn is_waiting(sink: &dyn Sink, journal: &Journal) -> bool {
    if journal.commands.iter().any(|c| c.is_started && !c.undo.is_empty()) {
        return false;
    }
    let stands: Vec<Stands> = journal.entries.iter().map(|entry| stands(sink, entry)).collect();
    stands.contains(&Stands::Away) && !stands.contains(&Stands::Changed)
}

#[derive(PartialEq, Eq)]
enum Stands {
    Back,
    Away,
    /// Or not known.
    Changed,
}

fn stands(sink: &dyn Sink, entry: &Entry) -> Stands {
    if is_untouched(entry) || now(sink, entry).is_ok_and(|now| entry.is_before(&now)) {
        return Stands::Back;
    }
    if entry.is_durable() || !sink.read(&entry.path).is_err_and(|error| error.is_absent) {
        return Stands::Changed;
    }
    match judge(sink, &entry.path) {
        Missing::Gone(_) => Stands::Back,
        Missing::Away(_) => Stands::Away,
        Missing::Unknown => Stands::Changed,
    }
}
