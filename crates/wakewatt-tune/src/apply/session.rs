//! A session: sets of settings ("ways") taken in turn under one open journal, as an experiment over settings does.
//!
//! Everything that any way is known to write is in the journal before the first write, with the guard watching; what
//! appears while a way is entered (a governor's tunables, a CPU's files) is added before it is written, by the same code
//! that `apply` uses. From one way to the next leads the machine as it was found: leaving undoes to what was there
//! before, entering applies. That writes twice, but a way never inherits what another has moved, every way starts from
//! the same place however the order was drawn, and CPUs that go and tunables that come need no rule of their own. The
//! journal stays open to the end, so a killed process is undone from any point between.
//!
//! The caller holds the lock, as with `apply`.

use super::entries::{add_entries, read_before};
use super::work::{Work, start};
use super::{ApplyError, Hands, Order, SettingOutcome, find_programs};
use crate::guard::{Guard, GuardCommand};
use crate::journal::{Command, Draft, Journal, Owner};
use crate::knob::Host;
use crate::left;
use crate::request::Request;
use crate::resolve::resolve;
use crate::undo::{Patience, UndoReport, Undone, undo_entries};
use std::path::Path;

/// One set of settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArmSettings {
    /// The settings.
    pub requests: Vec<Request>,
    /// A command that enters it and one that leaves it; both must do no harm when run again.
    pub command: Option<(Vec<String>, Vec<String>)>,
}

/// Ways under our care until ended; dropping ends.
pub struct Session<'a> {
    hands: Hands<'a>,
    boot_id: String,
    journal: Journal,
    guard: Option<Guard>,
    ways: Vec<ArmSettings>,
    /// Which of the journal's commands is a way's.
    commands: Vec<Option<usize>>,
    is_entered: bool,
    is_ended: bool,
}

impl<'a> Session<'a> {
    /// Resolves every way, journals all that is known to be written, starts the guard. Nothing has been changed yet.
    pub fn begin(
        hands: Hands<'a>,
        owner: &Owner,
        state_dir: &Path,
        purpose: &str,
        ways: Vec<ArmSettings>,
        guard: Option<&GuardCommand>,
        root: &str,
    ) -> Result<Session<'a>, ApplyError> {
        if let Some(left) = left::in_the_way(hands.sink, hands.store, state_dir, &owner.boot_id, true) {
            return Err(ApplyError::Refused(vec![left::in_words(&left)]));
        }
        find_programs(
            hands.runner,
            ways.iter().filter_map(|w| w.command.as_ref()).flat_map(|(run, undo)| [run, undo]),
        )?;
        let host = Host::read(hands.source);
        let (mut entries, mut journaled, mut commands) = (Vec::new(), Vec::new(), Vec::new());
        for way in &ways {
            let resolved = resolve(&host, &way.requests);
            if !resolved.refused.is_empty() {
                return Err(ApplyError::Refused(resolved.refused));
            }
            add_entries(&mut entries, &host, hands.sink, &resolved.steps)
                .map_err(|e| ApplyError::Refused(vec![e.to_string()]))?;
            commands.push(way.command.as_ref().map(|(run, undo)| {
                journaled.push(Command { run: run.clone(), undo: undo.clone(), is_started: false });
                journaled.len() - 1
            }));
        }
        let requests = ways.iter().flat_map(|w| w.requests.clone()).collect();
        let draft = Draft { purpose, root, entries, commands: journaled, requests, arguments: Vec::new() };
        let journal = Journal::create(hands.store, state_dir, owner, &format!("run-{}", owner.pid), draft)?;
        let guard = match guard.map(|command| Guard::start(command, journal.file())).transpose() {
            Ok(guard) => guard,
            Err(error) => {
                let left = UndoReport::default().finish(&journal, hands.store).journal_left();
                let left = left.map_or(String::new(), |left| format!("; {left}"));
                return Err(ApplyError::Guard(format!("{error}{left}")));
            }
        };
        let boot_id = owner.boot_id.clone();
        Ok(Session { hands, boot_id, journal, guard, ways, commands, is_entered: false, is_ended: false })
    }

    /// The files that are known to be written, or moved, by any way.
    pub fn paths(&self) -> Vec<String> {
        self.journal.entries.iter().map(|e| e.path.clone()).collect()
    }

    /// Leaves the way that was entered and enters this one; an error is told after everything has been taken back.
    pub fn enter(&mut self, way: usize) -> Result<Vec<SettingOutcome>, String> {
        self.leave()?;
        match self.go(way) {
            Ok(settings) => Ok(settings),
            Err(why) => match self.leave() {
                Ok(()) => Err(why),
                Err(left) => Err(format!("{why}; and not everything could be taken back: {left}")),
            },
        }
    }

    fn go(&mut self, way: usize) -> Result<Vec<SettingOutcome>, String> {
        self.is_entered = true;
        let Some(ArmSettings { requests, .. }) = self.ways.get(way) else { return Err("no such way".into()) };
        let host = Host::read(self.hands.source);
        let resolved = resolve(&host, requests);
        if !resolved.refused.is_empty() {
            return Err(resolved.refused.join("; "));
        }
        // What has come into being since the beginning is journaled first.
        let n_new = add_entries(&mut self.journal.entries, &host, self.hands.sink, &resolved.steps)
            .map_err(|e| e.to_string())?;
        if n_new > 0 {
            self.save()?;
        }
        let order = Order { requests: requests.clone(), ..Order::default() };
        let mut work = Work {
            hands: self.hands,
            order: &order,
            journal: &mut self.journal,
            settings: Vec::new(),
            left_out: Vec::new(),
            patience: Patience::default(),
        };
        work.write_steps(resolved.steps)?;
        let settings = work.settings;
        self.note_clamps()?;
        if let Some(at) = self.commands.get(way).copied().flatten() {
            start(self.hands, &mut self.journal, at)?;
        }
        Ok(settings)
    }

    /// What the kernel made of a value is ours as well.
    fn note_clamps(&mut self) -> Result<(), String> {
        let mut is_new = false;
        for entry in self.journal.entries.iter_mut().filter(|e| !e.is_collateral) {
            let now = read_before(self.hands.sink, &entry.path).ok().flatten();
            if now != entry.before && !entry.ours.contains(&now) {
                entry.ours.push(now);
                is_new = true;
            }
        }
        if is_new { self.save() } else { Ok(()) }
    }

    fn save(&self) -> Result<(), String> {
        self.journal.save(self.hands.store).map_err(|e| e.to_string())
    }

    /// Back to what was found; the journal stays.
    pub fn leave(&mut self) -> Result<(), String> {
        if !self.is_entered {
            return Ok(());
        }
        let report = self.back();
        self.is_entered = !report.is_complete();
        if report.is_complete() { Ok(()) } else { Err(report.left().join("; ")) }
    }

    fn back(&mut self) -> UndoReport {
        let mut report = UndoReport::default();
        for at in (0..self.journal.commands.len()).rev() {
            let command = &mut self.journal.commands[at];
            if !command.is_started || command.undo.is_empty() {
                continue;
            }
            let undone = self.hands.runner.run(&command.undo).map_or_else(Undone::Failed, |()| Undone::Ran);
            command.is_started = undone != Undone::Ran;
            report.entries.push((command.undo.join(" "), undone));
        }
        if !report.entries.is_empty() {
            // Where this does not reach the disk, a recovery runs the inverse once more, which does no harm.
            let _ = self.save();
        }
        let entries: Vec<_> = self.journal.entries.iter().collect();
        if self.journal.is_of_boot(&self.boot_id) {
            report.entries.extend(undo_entries(self.hands.sink, &entries, false, true).entries);
        }
        report
    }

    /// Puts everything back and closes the journal, unless something is left.
    pub fn end(mut self) -> UndoReport {
        self.end_now()
    }

    fn end_now(&mut self) -> UndoReport {
        self.is_ended = true;
        let report = self.back();
        let mut report = report.finish(&self.journal, self.hands.store);
        if !self.guard.take().is_none_or(Guard::dismiss) {
            report.look_again(self.back());
        }
        report
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        if !self.is_ended {
            self.end_now();
        }
    }
}
