//! A session: sets of settings taken in turn under one open journal, as an experiment does that goes to and fro.
//!
//! Everything that any set is known to write is in the journal before the first write, with the guard watching; what
//! appears while a set is entered (a governor's tunables, a CPU's files) is added before it is written, by the same code
//! that `apply` uses. From one set to the next leads the machine as it was found: leaving undoes to what was there
//! before, entering applies. That writes twice, but a set never inherits what another has moved, every one starts from
//! the same place however the order was drawn, and CPUs that go and tunables that come need no rule of their own. Sets
//! that cannot move anything but their own files take the short way of `steady`. The journal stays open to the end, so
//! a killed process is undone from any point between.
//!
//! The caller holds the lock, as with `apply`; [`crate::begin`] takes it.

mod steady;

use crate::apply::{ApplyError, Order, Work, add_entries, find_programs, read_before, start};
use crate::guard::{Guard, GuardCommand};
use crate::hands::Hands;
use crate::journal::{Command, Draft, Journal, Owner};
use crate::knob::Host;
use crate::left;
use crate::request::Request;
use crate::resolve::{Resolved, resolve};
use crate::undo::{Patience, UndoReport, Undone, undo_entries};
use std::path::Path;
use steady::{Held, Steady};

/// One set of settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingSet {
    /// The settings.
    pub requests: Vec<Request>,
    /// A command that enters it and one that leaves it; both must do no harm when run again.
    pub command: Option<(Vec<String>, Vec<String>)>,
}

/// Are these settings a matter of a few writes that move nothing else? Then sets of them may follow each other often.
pub fn is_instant(resolved: &Resolved) -> bool {
    Steady::of(resolved).is_some()
}

/// Sets under our care until ended; dropping ends.
pub struct Session<'a> {
    hands: Hands<'a>,
    boot_id: String,
    journal: Journal,
    guard: Option<Guard>,
    sets: Vec<Planned>,
    /// What the short way has changed.
    held: Held,
    /// Was a set entered by the long way, and not left completely?
    is_entered: bool,
    is_ended: bool,
}

/// A set, and what was found out about it at the beginning.
struct Planned {
    requests: Vec<Request>,
    /// Which of the journal's commands is its own.
    command: Option<usize>,
    /// None where it must go the long way.
    steady: Option<Steady>,
}

impl<'a> Session<'a> {
    /// Resolves every set, journals all that is known to be written, starts the guard. Nothing has been changed yet.
    pub fn begin(
        hands: Hands<'a>,
        owner: &Owner,
        state_dir: &Path,
        purpose: &str,
        sets: Vec<SettingSet>,
        guard: Option<&GuardCommand>,
        root: &str,
    ) -> Result<Session<'a>, ApplyError> {
        if let Some(left) = left::in_the_way(hands.sink, hands.store, state_dir, &owner.boot_id, true) {
            return Err(ApplyError::Refused(vec![left::in_words(&left)]));
        }
        find_programs(
            hands.runner,
            sets.iter().filter_map(|s| s.command.as_ref()).flat_map(|(run, undo)| [run, undo]),
        )?;
        let host = Host::read(hands.source);
        let (mut entries, mut commands, mut planned) = (Vec::new(), Vec::new(), Vec::new());
        for set in &sets {
            let resolved = resolve(&host, &set.requests);
            if !resolved.refused.is_empty() {
                return Err(ApplyError::Refused(resolved.refused));
            }
            add_entries(&mut entries, &host, hands.sink, &resolved.steps)
                .map_err(|e| ApplyError::Refused(vec![e.to_string()]))?;
            let steady = if set.command.is_none() { Steady::of(&resolved) } else { None };
            let command = set.command.as_ref().map(|(run, undo)| {
                commands.push(Command { run: run.clone(), undo: undo.clone(), is_started: false });
                commands.len() - 1
            });
            planned.push(Planned { requests: set.requests.clone(), command, steady });
        }
        let requests = sets.into_iter().flat_map(|s| s.requests).collect();
        let draft = Draft { purpose, root, entries, commands, requests, arguments: Vec::new() };
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
        let (held, is_entered, is_ended) = (Held::new(), false, false);
        Ok(Session { hands, boot_id, journal, guard, sets: planned, held, is_entered, is_ended })
    }

    /// What it works with.
    pub fn hands(&self) -> Hands<'a> {
        self.hands
    }

    /// The files that are known to be written, or moved, by any set.
    pub fn paths(&self) -> Vec<String> {
        self.journal.entries.iter().map(|e| e.path.clone()).collect()
    }

    /// Leaves the set that was entered and enters this one; an error is told after everything has been taken back.
    pub fn enter(&mut self, set: usize) -> Result<(), String> {
        let entered = match self.sets.get(set) {
            None => Err("no such set of settings".into()),
            Some(Planned { steady: Some(_), .. }) => self.short_way(set),
            Some(_) => self.leave().and_then(|()| self.long_way(set)),
        };
        let Err(why) = entered else { return Ok(()) };
        match self.leave() {
            Ok(()) => Err(why),
            Err(left) => Err(format!("{why}; and not everything could be taken back: {left}")),
        }
    }

    fn short_way(&mut self, set: usize) -> Result<(), String> {
        if self.is_entered {
            self.leave()?;
        }
        let Some(Planned { steady: Some(steady), .. }) = self.sets.get(set) else { return Ok(()) };
        let turned = steady::turn(self.hands, &mut self.journal, &mut self.held, steady);
        // How far it came is not known, so everything is looked at.
        self.is_entered = turned.is_err();
        turned
    }

    fn long_way(&mut self, set: usize) -> Result<(), String> {
        self.is_entered = true;
        let Some(Planned { requests, command, .. }) = self.sets.get(set) else { return Ok(()) };
        let host = Host::read(self.hands.source);
        let resolved = resolve(&host, requests);
        if !resolved.refused.is_empty() {
            return Err(resolved.refused.join("; "));
        }
        let (order, command) = (Order { requests: requests.clone(), ..Order::default() }, *command);
        // What has come into being since the beginning is journaled first.
        let n_new = add_entries(&mut self.journal.entries, &host, self.hands.sink, &resolved.steps)
            .map_err(|e| e.to_string())?;
        if n_new > 0 {
            self.save()?;
        }
        let mut work = Work {
            hands: self.hands,
            order: &order,
            journal: &mut self.journal,
            settings: Vec::new(),
            left_out: Vec::new(),
            patience: Patience::default(),
        };
        work.write_steps(resolved.steps)?;
        self.note_clamps()?;
        match command {
            Some(at) => start(self.hands, &mut self.journal, at),
            None => Ok(()),
        }
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
        if !self.is_entered && self.held.is_empty() {
            return Ok(());
        }
        let report = self.back();
        self.held.clear();
        self.is_entered = !report.is_complete();
        // What an offline CPU holds is put back at the end, or when it has come back.
        if report.is_settled() { Ok(()) } else { Err(report.left().join("; ")) }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Place;
    use std::time::Duration;
    use wakewatt_host::simulated::{SimulatedMachine, cpus};

    #[test]
    fn a_guard_that_is_stopped_or_deaf_keeps_nothing_changed_and_nobody_waiting() {
        for script in ["echo on; kill -STOP $$; exec sleep 600", "exec <&-; echo on; exec sleep 600"] {
            let machine = SimulatedMachine::new(&(cpus::policies("acpi-cpufreq", &[]) + &cpus::idle_states()));
            let before = machine.snapshot("/var");
            let hands = Hands { source: &machine, sink: &machine, store: &machine, runner: &machine };
            let args = vec!["-c".into(), script.into(), "guard".into()];
            let guard = GuardCommand { program: "sh".into(), args, patience: Duration::from_secs(60) };
            let requests = vec![Request::new("idle.state.C6", Place::Everywhere, "off")];
            let sets = vec![SettingSet { requests, command: None }];
            let owner = Owner { boot_id: machine.boot_id(), pid: 1, ..Owner::default() };
            let folder = Path::new("/var/lib/wakewatt/open");
            let mut session = Session::begin(hands, &owner, folder, "test", sets, Some(&guard), "").unwrap();
            session.guard.as_mut().unwrap().patience = Duration::from_millis(300);
            session.enter(0).unwrap();
            assert_ne!(machine.snapshot("/var"), before);
            let report = session.end();
            assert!(report.is_complete() && report.kept_journal.is_none(), "{report:?}");
            assert_eq!((machine.snapshot("/var"), Journal::all(&machine, folder).0.len()), (before, 0), "{script}");
        }
    }

    fn request() -> Vec<Request> {
        vec![Request::new("idle.state.C6", Place::Everywhere, "off")]
    }

    /// What it holds comes back with it, and is put back then.
    #[test]
    fn a_cpu_that_goes_and_comes_between_the_turns_ends_no_session() {
        let machine = SimulatedMachine::new(&(cpus::policies("acpi-cpufreq", &[]) + &cpus::idle_states()));
        let before = machine.snapshot("/var");
        let hands = Hands { source: &machine, sink: &machine, store: &machine, runner: &machine };
        let sets =
            vec![SettingSet::default(), SettingSet { requests: request(), command: None }, SettingSet::default()];
        let owner = Owner { boot_id: machine.boot_id(), pid: 1, ..Owner::default() };
        let folder = Path::new("/var/lib/wakewatt/open");
        for goes_at in 0..sets.len() {
            let mut session = Session::begin(hands, &owner, folder, "test", sets.clone(), None, "").unwrap();
            for at in 0..sets.len() {
                if at == goes_at {
                    machine.take_offline(1);
                }
                session.enter(at).unwrap();
            }
            session.leave().unwrap();
            machine.bring_online(1);
            for at in 0..sets.len() {
                session.enter(at).unwrap();
            }
            let report = session.end();
            assert!(report.is_complete() && report.kept_journal.is_none(), "{goes_at}: {report:?}");
            assert_eq!(machine.snapshot("/var"), before, "{goes_at}");
        }
    }

    #[test]
    fn a_cpu_that_goes_before_its_values_are_journaled_is_put_back_to_what_was_read() {
        let machine = SimulatedMachine::new(&(cpus::policies("acpi-cpufreq", &[]) + &cpus::idle_states()));
        let host = Host::read(&machine);
        let resolved = resolve(&host, &request());
        machine.take_offline(1);
        let mut entries = Vec::new();
        add_entries(&mut entries, &host, &machine, &resolved.steps).unwrap();
        let of_cpu_1: Vec<_> = entries.iter().filter(|e| e.path.contains("/cpu1/")).collect();
        assert!(!of_cpu_1.is_empty() && of_cpu_1.iter().all(|e| e.before.as_deref() == Some("0")), "{entries:?}");
    }
}
