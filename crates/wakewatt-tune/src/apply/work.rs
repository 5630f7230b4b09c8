//! An application under way: stage by stage written, read back, judged; then settled.

use super::entries::{add_entries, read_before};
use super::order::Order;
use super::outcome::{SettingOutcome, SettingResult, outcome};
use crate::hands::Hands;
use crate::journal::{Journal, Phase};
use crate::knob::{Host, Kept, Stage};
use crate::knobs;
use crate::request::{Place, Request};
use crate::resolve::{self, Change, Step};
use crate::sites::SitesByPath;
use crate::undo::Patience;

/// An application under way.
pub(crate) struct Work<'a> {
    pub(crate) hands: Hands<'a>,
    pub(crate) order: &'a Order<'a>,
    pub(crate) journal: &'a mut Journal,
    pub(crate) settings: Vec<SettingOutcome>,
    pub(crate) left_out: Vec<String>,
    pub(crate) patience: Patience,
}

impl Work<'_> {
    /// Everything, up to the journal's last word; an error is why it must all go back.
    pub(crate) fn carry_out(&mut self, steps: Vec<Step>) -> Result<(), String> {
        self.write_steps(steps)?;
        self.note_effective();
        for file in &self.order.files {
            let done = match &file.to {
                Some(text) => self.hands.sink.write(&file.path, text),
                None => self.hands.sink.remove(&file.path),
            };
            done.map_err(|e| e.to_string())?;
        }
        for at in 0..self.journal.commands.len() {
            start(self.hands, self.journal, at)?;
        }
        if let Some(watch) = self.order.watch {
            watch()?;
        }
        self.record_moved();
        self.journal.phase = match self.order.confirm {
            Some(confirm) => {
                let until_boottime_ns = (confirm.boottime_ns)().saturating_add(confirm.within_ns);
                Phase::Unconfirmed { until_boottime_ns }
            }
            None => Phase::Applied,
        };
        self.save()
    }

    /// The settings, stage by stage, and once more what a later one has moved.
    pub(crate) fn write_steps(&mut self, steps: Vec<Step>) -> Result<(), String> {
        let mut is_stale = false;
        let mut rest = steps.into_iter().peekable();
        while let Some(first) = rest.next() {
            let stage = first.stage;
            let mut group = vec![first];
            while let Some(step) = rest.next_if(|s| s.stage == stage) {
                group.push(step);
            }
            if is_stale || group.iter().any(|s| s.later.is_some()) {
                group = self.look_again(group)?;
            }
            is_stale |= self.write_stage(&group)? && stage <= Stage::Governor;
        }
        self.settle()
    }

    fn save(&self) -> Result<(), String> {
        self.journal.save(self.hands.store).map_err(|e| e.to_string())
    }

    /// Files may have come and gone: resolves the steps again and journals what is new.
    fn look_again(&mut self, group: Vec<Step>) -> Result<Vec<Step>, String> {
        let host = Host::read(self.hands.source);
        let online = host.online();
        let is_hotplugging = self
            .order
            .requests
            .iter()
            .any(|r| knobs::find(&r.name).is_some_and(|knob| knob.about().stage == Stage::Online));
        let mut fresh = Vec::new();
        let together: Vec<Request> = group.iter().map(|step| step.request.clone()).collect();
        for step in group {
            match resolve::step(&host, &step.request, &together) {
                Ok(now) => {
                    // A place that has gone meanwhile (its CPU, or a read that fails) must not go unsaid.
                    let is_there = |c: &&Change| now.changes.iter().any(|n| n.path == c.path);
                    for gone in step.changes.iter().filter(|c| !is_there(c)) {
                        let is_offline = !gone.cpus.is_empty() && gone.cpus.and(&online).is_empty();
                        if is_offline && is_hotplugging && step.request.place == Place::Everywhere {
                            self.left_out.push(format!("{}: {}: goes offline with this", step.request, gone.place));
                            // Still read and put back when its CPU is, but nothing that was asked for.
                            let entry = self.journal.entries.iter_mut().find(|e| e.path == gone.path);
                            entry.into_iter().for_each(|e| (e.is_collateral, e.ours) = (true, Vec::new()));
                            continue;
                        }
                        let why = format!(
                            "{}: {}: was there when the plan was made and is gone now",
                            step.request, gone.path
                        );
                        if !step.request.is_optional && !self.order.is_keeping_going {
                            return Err(why);
                        }
                        self.left_out.push(why);
                    }
                    fresh.push(now);
                }
                Err(why) if step.request.is_optional || self.order.is_keeping_going => self.left_out.push(why),
                Err(why) => return Err(why),
            }
        }
        let n_known = self.journal.entries.len();
        add_entries(&mut self.journal.entries, &host, self.hands.sink, &fresh).map_err(|e| e.to_string())?;
        self.journal.entries[n_known..].iter_mut().for_each(|entry| entry.has_come = true);
        self.save()?;
        Ok(fresh)
    }

    /// Writes all of one stage; says whether anything was written.
    fn write_stage(&mut self, group: &[Step]) -> Result<bool, String> {
        let first = self.settings.len();
        for step in group {
            for change in &step.changes {
                let mut outcome = outcome(step, change);
                if !change.is_so() {
                    self.write(&mut outcome);
                }
                self.settings.push(outcome);
            }
        }
        let is_refused = |s: &SettingOutcome| matches!(s.result, SettingResult::Refused(_));
        for at in first..self.settings.len() {
            if is_refused(&self.settings[at]) {
                let mut outcome = self.settings[at].clone();
                self.write(&mut outcome);
                self.settings[at] = outcome;
            }
        }
        for outcome in &self.settings[first..] {
            if let SettingResult::Refused(why) = &outcome.result {
                let line = format!("{} at {}: {}: {why}", outcome.name, outcome.place, outcome.path);
                if !self.is_dispensable(outcome) {
                    return Err(line);
                }
                self.left_out.push(line);
            }
        }
        Ok(self.settings[first..].iter().any(|s| s.result != SettingResult::WasSo))
    }

    fn write(&mut self, outcome: &mut SettingOutcome) {
        let sink = self.hands.sink;
        let written = sink.write(&outcome.path, &outcome.requested);
        outcome.read_back = sink.read(&outcome.path).ok();
        // A clamp reads back so for good, a limit that is still under way does not.
        let is_slow = knobs::find(&outcome.name).is_some_and(|knob| knob.about().stage.is_slow());
        while is_slow && written.is_ok() && outcome.read_back.as_ref().is_some_and(|now| *now != outcome.requested) {
            if !self.patience.wait() {
                break;
            }
            outcome.read_back = sink.read(&outcome.path).ok();
        }
        outcome.result = match (written, &outcome.read_back) {
            (Err(error), _) => SettingResult::Refused(error.what),
            (Ok(()), None) => SettingResult::Refused("written, but cannot be read back".into()),
            (Ok(()), Some(now)) => judge(&outcome.name, &outcome.requested, now),
        };
    }

    /// What a later setting has moved is written again; what will not stay is an error.
    fn settle(&mut self) -> Result<(), String> {
        for at in 0..self.settings.len() {
            let mut outcome = self.settings[at].clone();
            if matches!(outcome.result, SettingResult::Refused(_)) {
                continue;
            }
            let now = match self.hands.sink.read(&outcome.path) {
                Ok(now) => now,
                Err(error) => {
                    // Its CPU has gone meanwhile.
                    let line = format!("{} at {}: {error}", outcome.name, outcome.place);
                    if !self.is_dispensable(&outcome) {
                        return Err(line);
                    }
                    self.left_out.push(line);
                    continue;
                }
            };
            if judge(&outcome.name, &outcome.requested, &now) == SettingResult::Refused(not_kept(&now)) {
                self.write(&mut outcome);
                if let SettingResult::Refused(why) = &outcome.result {
                    let line = format!("{} at {}: {}: did not stay: {why}", outcome.name, outcome.place, outcome.path);
                    if !self.is_dispensable(&outcome) {
                        return Err(line);
                    }
                    self.left_out.push(line);
                }
                self.settings[at] = outcome;
            }
        }
        Ok(())
    }

    /// What is in force by now. Reads the whole host, which an experiment would pay for in every block.
    fn note_effective(&mut self) {
        let host = Host::read(self.hands.source);
        let mut sites = SitesByPath::default();
        for outcome in &mut self.settings {
            let found = sites.find(&host, &outcome.name, &outcome.path);
            outcome.effective = found.and_then(|(knob, site)| knob.effective(&host, site));
        }
    }

    /// May this one be left out? When asked to keep going, or where the request that covers it is optional.
    fn is_dispensable(&self, outcome: &SettingOutcome) -> bool {
        self.order.is_keeping_going || outcome.is_optional
    }

    /// Keeps, of the side effects, those that happened, with the value they ended at.
    fn record_moved(&mut self) {
        let sink = self.hands.sink;
        self.journal.entries.retain_mut(|entry| {
            let now = read_before(sink, &entry.path).ok().flatten();
            if entry.is_collateral {
                let has_moved = now != entry.before;
                entry.ours = vec![now];
                return has_moved;
            }
            if !entry.ours.contains(&now) {
                entry.ours.push(now);
            }
            true
        });
    }
}

/// Runs one of the journal's commands, which says so before it does. A program that has gone missing was not started, so
/// there is nothing to take back for it.
pub(crate) fn start(hands: Hands<'_>, journal: &mut Journal, at: usize) -> Result<(), String> {
    journal.commands[at].is_started = true;
    journal.save(hands.store).map_err(|e| e.to_string())?;
    let command = &mut journal.commands[at];
    let run = hands.runner.run(&command.run);
    if run.is_err() && command.run.first().is_some_and(|program| hands.runner.find(program).is_err()) {
        command.is_started = false;
        // Where this does not reach the disk the inverse is run once more, which does no harm.
        let _ = journal.save(hands.store);
    }
    run
}

fn not_kept(now: &str) -> String {
    format!("reads back {now:?}")
}

/// How a value that was read back compares with what was asked of this knob.
pub(crate) fn judge(name: &str, requested: &str, now: &str) -> SettingResult {
    let kept = knobs::find(name).map_or(Kept::Not, |k| k.kept(requested, now));
    match kept {
        Kept::Exactly => SettingResult::Set,
        Kept::Legally(how) => SettingResult::Clamped(how),
        Kept::Not => SettingResult::Refused(not_kept(now)),
    }
}
