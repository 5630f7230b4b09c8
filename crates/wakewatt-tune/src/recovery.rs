//! What to do with journals found later: by `recover`, by the guard process, by the confirm timer, at boot.
//!
//! A journal still *open* whose process is gone is undone. One that waits for confirmation is undone when its time on
//! the boot clock has passed, or when the machine has booted since: its settings are gone then, and its files must go
//! too, because nobody confirmed them. One that is *applied* is nobody's business here.
//!
//! Putting back comes first and needs nothing to be written but the settings; whether the journal can then be removed is
//! said apart ([`UndoReport::kept_journal`]). Done twice it does no harm.

use crate::hands::Hands;
use crate::journal::{Journal, JournalError, OwnerNow, Phase};
use crate::live::ThisMachine;
use crate::put_back::undo_all;
use crate::undo::{UndoReport, Undone};
use std::path::Path;
use wakewatt_host::store::{self, Disk};

/// What recovery makes of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// Undo it.
    Now(&'static str),
    /// Leave it, and why.
    NotYet(&'static str),
}

/// Is it time to undo this one?
pub fn due(journal: &Journal, boot_id: &str, boottime_ns: u64, owner: OwnerNow) -> Due {
    match journal.phase {
        Phase::Applied => Due::NotYet("applied; wakewatt tune undo takes it back"),
        Phase::Open if !journal.is_of_boot(boot_id) => {
            Due::Now("the machine has booted since, which reset its settings")
        }
        Phase::Open if owner == OwnerNow::Alive => Due::NotYet("its process still runs"),
        Phase::Open if owner == OwnerNow::Unseen => {
            Due::NotYet("its process is of another PID namespace, so without the lock nobody can tell whether it runs")
        }
        Phase::Open => Due::Now("its process is gone"),
        Phase::Unconfirmed { .. } if !journal.is_of_boot(boot_id) => {
            Due::Now("not confirmed before the machine booted again")
        }
        Phase::Unconfirmed { until_boottime_ns } if boottime_ns >= until_boottime_ns => {
            Due::Now("not confirmed in time")
        }
        Phase::Unconfirmed { .. } => Due::NotYet("still waits for confirmation"),
    }
}

/// Undoes one and closes its journal, if nothing is left.
pub fn close(hands: Hands<'_>, journal: &mut Journal, boot_id: &str, is_forced: bool) -> UndoReport {
    let report = undo_all(hands, journal, boot_id, is_forced);
    report.finish(journal, hands.store)
}

/// What became of one journal.
#[derive(Clone, Debug)]
pub struct Swept {
    /// Its name and purpose.
    pub what: String,
    /// Why it was undone, or left.
    pub why: String,
    /// What the undo did; none where it was left.
    pub report: Option<UndoReport>,
    /// It was left because nobody can tell whether its run goes on.
    pub is_doubtful: bool,
}

/// How to look.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Does the caller hold the lock, so that nobody confirms, applies or undoes meanwhile? Without it only what nobody can
    /// be at work on is undone.
    pub has_lock: bool,
    /// Also overwrite what somebody else has set, and without the lock take an owner that cannot be seen for gone.
    pub is_forced: bool,
}

/// Looks at every journal of a state folder, the newest first, and undoes what is due.
pub(crate) fn sweep(
    state_dir: &Path,
    boot_id: &str,
    boottime_ns: u64,
    Manner { has_lock, is_forced }: Manner,
) -> (Vec<Swept>, Vec<JournalError>) {
    let (journals, unreadable) = Journal::all(&Disk, state_dir);
    let mut swept = Vec::new();
    if has_lock {
        // Nobody writes there now, so these are of killed runs; that they cannot be removed is no reason to stop.
        let what = |name| format!("{}/{name}", state_dir.display());
        let removed = |name| Swept {
            what: what(name),
            why: "half-written by a killed run; removed".into(),
            report: None,
            is_doubtful: false,
        };
        swept.extend(store::sweep(&Disk, state_dir).unwrap_or_default().into_iter().map(removed));
    }
    for mut journal in journals.into_iter().rev().filter(|j| j.phase != Phase::Applied) {
        let what = format!("{} ({}, process {})", journal.purpose, journal.id(), journal.pid);
        let owner = journal.owner_now().seen_with(has_lock || is_forced);
        let (why, report) = match due(&journal, boot_id, boottime_ns, owner) {
            Due::NotYet(why) => (format!("{why}; left alone"), None),
            Due::Now(why) => match ThisMachine::at(&journal.root.clone()) {
                Ok(machine) => (why.to_string(), Some(close(machine.hands(), &mut journal, boot_id, is_forced))),
                Err(error) => {
                    let entries = vec![(journal.id(), Undone::Failed(error.to_string()))];
                    let failed = UndoReport { entries, kept_journal: None };
                    (why.to_string(), Some(failed))
                }
            },
        };
        let is_doubtful = report.is_none() && owner == OwnerNow::Unseen && journal.phase == Phase::Open;
        swept.push(Swept { what, why, report, is_doubtful });
    }
    (swept, unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Draft, Owner};
    use std::path::Path;
    use wakewatt_host::simulated::SimulatedMachine;

    #[test]
    fn only_the_boot_clock_of_the_same_boot_counts() {
        let machine = SimulatedMachine::new("");
        let owner = Owner { boot_id: "boot-1".into(), ..Owner::default() };
        let mut journal = Journal::create(&machine, Path::new("/state"), &owner, "tune", Draft::default()).unwrap();
        let mut at = |phase: Phase, boot: &str, now: u64, alive: bool| {
            journal.phase = phase;
            matches!(due(&journal, boot, now, if alive { OwnerNow::Alive } else { OwnerNow::Gone }), Due::Now(_))
        };
        let wait = Phase::Unconfirmed { until_boottime_ns: 60 };
        assert!(!at(wait.clone(), "boot-1", 59, false));
        assert!(at(wait.clone(), "boot-1", 60, true));
        // After a reboot the boot clock starts at nothing again, which must not make it wait once more.
        assert!(at(wait, "boot-2", 1, false));
        assert!(!at(Phase::Open, "boot-1", 1, true));
        assert!(at(Phase::Open, "boot-1", 1, false));
        assert!(at(Phase::Open, "boot-2", 1, true));
        assert!(!at(Phase::Applied, "boot-2", 1, false));
    }
}
