//! Applying: all requested settings, or none.
//!
//! Order of events: resolve; read every file that will or may change; journal (durable); guard process; then stage by
//! stage write, read back, judge. Stages that bring files (a driver, a governor, a CPU) are followed by a fresh look at
//! the host, and what has newly appeared is journaled before it is written. A refused write is tried once more after the
//! others of its stage, because some pairs must be written in one order; if it is refused again everything goes back,
//! unless asked to keep going. At the end everything is read once more: what a later setting has moved is written
//! again, and what moved without having been asked for is kept in the journal, so that undo restores it too.

use crate::boot::Argument;
use crate::guard::{Guard, GuardCommand};
use crate::journal::{Command, Draft, Entry, Journal, JournalError, Owner, Phase};
use crate::knob::{Host, Kept, Stage};
use crate::knobs;
use crate::request::{Place, Request};
use crate::resolve::{self, Change, Resolved, Step, resolve};
use crate::undo::{Patience, UndoReport, Undone, undo_entries};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;
use wakewatt_core::source::Source;
use wakewatt_host::exec::Runner;
use wakewatt_host::sink::{Sink, SinkError};
use wakewatt_host::store::Store;

/// What a transaction works with.
#[derive(Clone, Copy)]
pub struct Hands<'a> {
    /// Reads facts.
    pub source: &'a dyn Source,
    /// Writes settings.
    pub sink: &'a dyn Sink,
    /// Keeps the journal.
    pub store: &'a dyn Store,
    /// Runs commands.
    pub runner: &'a dyn Runner,
}

/// A file that acts at the next boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The file.
    pub path: String,
    /// What it is to hold; none: it goes.
    pub to: Option<String>,
}

/// What to do.
#[derive(Clone, Debug, Default)]
pub struct Order<'a> {
    /// What for, in words.
    pub purpose: String,
    /// The settings.
    pub requests: Vec<Request>,
    /// Files, after the settings.
    pub files: Vec<FileChange>,
    /// Commands (run, inverse), after the files.
    pub commands: Vec<(Vec<String>, Vec<String>)>,
    /// What those are for: kernel parameters, to be checked after the next boot.
    pub arguments: Vec<Argument>,
    /// Leave out what is refused instead of taking everything back.
    pub is_keeping_going: bool,
    /// Undone by itself unless confirmed by this time of the boot clock.
    pub confirm_until_boottime_ns: Option<u64>,
    /// Undoes if this process dies in the middle.
    pub guard: Option<&'a GuardCommand>,
    /// The root of paths; empty for `/`.
    pub root: &'a str,
}

/// What became of one setting at one place.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SettingOutcome {
    /// The setting.
    pub name: String,
    /// Which one.
    pub place: String,
    /// The file.
    pub path: String,
    /// What it held.
    pub before: Option<String>,
    /// What was written.
    pub requested: String,
    /// Both as people say it.
    pub before_shown: String,
    /// The same for the new one.
    pub requested_shown: String,
    /// What the kernel says now.
    pub read_back: Option<String>,
    /// What is in force, where that is known to differ.
    pub effective: Option<String>,
    /// How it went.
    pub result: SettingResult,
}

/// How one write went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SettingResult {
    /// Written and kept.
    Set,
    /// It was so already; nothing was written.
    WasSo,
    /// The kernel made something else of it that is legal.
    Clamped(String),
    /// Refused, or not kept.
    Refused(String),
}

/// The end of an application.
#[derive(Debug)]
pub struct Outcome {
    /// The journal's name; none when there was nothing to change or everything was taken back.
    pub id: Option<String>,
    /// Every setting.
    pub settings: Vec<SettingOutcome>,
    /// What could not be done and was left out (only when keeping going).
    pub left_out: Vec<String>,
    /// Everything was taken back, because of this.
    pub failed: Option<(String, UndoReport)>,
}

/// An application that did not begin.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Not possible on this host; nothing was changed.
    #[error("nothing is changed: {}", .0.join("; "))]
    Refused(Vec<String>),
    /// No journal, no change.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// No guard, no change.
    #[error("nothing is changed: {0}")]
    Guard(std::io::Error),
}

/// Applies an order.
pub fn apply(hands: Hands<'_>, owner: &Owner, state_dir: &Path, order: &Order<'_>) -> Result<Outcome, ApplyError> {
    let host = Host::read(hands.source);
    let resolved = resolve(&host, &order.requests);
    let mut left_out = resolved.refused.clone();
    left_out.extend(resolved.steps.iter().flat_map(|s| s.left_out.iter().map(|why| format!("{}: {why}", s.request))));
    if !resolved.refused.is_empty() && !order.is_keeping_going {
        return Err(ApplyError::Refused(resolved.refused));
    }
    if is_nothing_to_do(&resolved, order, hands.sink) {
        let settings = resolved.steps.iter().flat_map(|s| s.changes.iter().map(|c| outcome(s, c))).collect();
        return Ok(Outcome { id: None, settings, left_out, failed: None });
    }
    let mut entries = file_entries(hands.sink, order).map_err(|e| ApplyError::Refused(vec![e.to_string()]))?;
    add_entries(&mut entries, &host, hands.sink, &resolved.steps)
        .map_err(|e| ApplyError::Refused(vec![e.to_string()]))?;
    let draft = Draft {
        purpose: &order.purpose,
        root: order.root,
        entries,
        commands: order
            .commands
            .iter()
            .map(|(run, undo)| Command { run: run.clone(), undo: undo.clone(), is_started: false })
            .collect(),
        requests: order.requests.clone(),
        arguments: order.arguments.clone(),
    };
    let journal = Journal::create(hands.store, state_dir, owner, "tune", draft)?;
    let guard = match order.guard.map(|command| Guard::start(command, journal.file())) {
        Some(Err(error)) => {
            journal.finish(hands.store)?;
            return Err(ApplyError::Guard(error));
        }
        Some(Ok(guard)) => Some(guard),
        None => None,
    };
    let mut work = Work { hands, order, journal, settings: Vec::new(), left_out, patience: Patience::default() };
    let done = work.carry_out(resolved.steps);
    let Work { mut journal, settings, left_out, .. } = work;
    let failed = match done {
        Ok(()) => None,
        Err(why) => {
            let report = undo_all(hands, &mut journal, &owner.boot_id, false);
            if report.is_complete() {
                let _ = journal.finish(hands.store);
            }
            Some((why, report))
        }
    };
    if let Some(guard) = guard {
        guard.dismiss();
    }
    let id = failed.is_none().then(|| journal.id());
    Ok(Outcome { id, settings, left_out, failed })
}

/// Undoes everything of a journal: files and commands first, then settings; those only if the machine has not booted
/// since, which reset them. The journal's file is the caller's to remove.
pub fn undo_all(hands: Hands<'_>, journal: &mut Journal, boot_id: &str, is_forced: bool) -> UndoReport {
    let is_same_boot = journal.is_of_boot(boot_id);
    let (durable, fleeting): (Vec<&Entry>, Vec<&Entry>) = journal.entries.iter().partition(|e| e.is_durable());
    let mut report = undo_entries(hands.sink, &durable, is_forced);
    for command in journal.commands.iter().rev().filter(|c| c.is_started && !c.undo.is_empty()) {
        let result = hands.runner.run(&command.undo).map_or_else(Undone::Failed, |()| Undone::Ran);
        report.entries.push((command.undo.join(" "), result));
    }
    if is_same_boot {
        report.entries.extend(undo_entries(hands.sink, &fleeting, is_forced).entries);
    }
    report
}

fn is_nothing_to_do(resolved: &Resolved, order: &Order<'_>, sink: &dyn Sink) -> bool {
    let is_file_so = |file: &FileChange| match sink.read(&file.path) {
        Ok(now) => file.to.as_ref() == Some(&now),
        Err(e) => e.is_absent && file.to.is_none(),
    };
    order.files.iter().all(is_file_so)
        && (order.commands.is_empty() || !order.files.is_empty())
        && resolved.steps.iter().all(|s| s.later.is_none() && s.changes.iter().all(Change::is_so))
}

fn outcome(step: &Step, change: &Change) -> SettingOutcome {
    SettingOutcome {
        name: step.request.name.clone(),
        place: change.place.clone(),
        path: change.path.clone(),
        before: change.before.clone(),
        requested: change.to.clone(),
        before_shown: change.before_shown.clone(),
        requested_shown: change.to_shown.clone(),
        read_back: change.before.clone(),
        effective: None,
        result: SettingResult::WasSo,
    }
}

fn read_before(sink: &dyn Sink, path: &str) -> Result<Option<String>, SinkError> {
    match sink.read(path) {
        Ok(value) => Ok(Some(value)),
        Err(e) if e.is_absent => Ok(None),
        Err(e) => Err(e),
    }
}

fn file_entries(sink: &dyn Sink, order: &Order<'_>) -> Result<Vec<Entry>, SinkError> {
    let entry = |file: &FileChange| {
        let mut entry = Entry::new(&file.path, read_before(sink, &file.path)?, vec![file.to.clone()]);
        entry.stage = Stage::Boot;
        Ok(entry)
    };
    order.files.iter().map(entry).collect()
}

/// Adds what the steps write, and what those knobs may move; paths that are listed already stay as they are.
fn add_entries(entries: &mut Vec<Entry>, host: &Host<'_>, sink: &dyn Sink, steps: &[Step]) -> Result<usize, SinkError> {
    let before = entries.len();
    let mut listed: BTreeSet<String> = entries.iter().map(|e| e.path.clone()).collect();
    for step in steps {
        for change in &step.changes {
            // A file that moved along with an earlier setting and is now written itself keeps its first "before".
            if let Some(entry) = entries.iter_mut().find(|e| e.path == change.path) {
                entry.is_collateral = false;
                (entry.name, entry.stage) = (step.request.name.clone(), step.stage);
                if !entry.ours.contains(&Some(change.to.clone())) {
                    entry.ours.push(Some(change.to.clone()));
                }
                continue;
            }
            listed.insert(change.path.clone());
            let ours = vec![Some(change.to.clone())];
            let mut entry = Entry::new(&change.path, read_before(sink, &change.path)?, ours);
            (entry.name, entry.stage) = (step.request.name.clone(), step.stage);
            entries.push(entry);
        }
    }
    let touched = steps.iter().filter(|s| s.later.is_some() || s.changes.iter().any(|c| !c.is_so()));
    let moved: BTreeSet<&str> =
        touched.filter_map(|s| knobs::find(&s.knob)).flat_map(|k| k.about().moves.iter().copied()).collect();
    for knob in moved.iter().filter_map(|id| knobs::find(id)) {
        for site in knob.sites(host).unwrap_or_default() {
            if listed.insert(site.path.clone()) {
                if let Ok(Some(now)) = read_before(sink, &site.path) {
                    let mut entry = Entry::new(&site.path, Some(now), Vec::new());
                    (entry.name, entry.stage, entry.is_collateral) = (site.name, knob.about().stage, true);
                    entries.push(entry);
                }
            }
        }
    }
    Ok(entries.len() - before)
}

/// An application under way.
struct Work<'a> {
    hands: Hands<'a>,
    order: &'a Order<'a>,
    journal: Journal,
    settings: Vec<SettingOutcome>,
    left_out: Vec<String>,
    patience: Patience,
}

impl Work<'_> {
    fn carry_out(&mut self, steps: Vec<Step>) -> Result<(), String> {
        let mut is_stale = false;
        let mut rest = steps.into_iter().peekable();
        while let Some(first) = rest.next() {
            let stage = first.stage;
            let mut group = vec![first];
            while let Some(step) = rest.next_if(|s| s.stage == stage) {
                group.push(step);
            }
            if is_stale {
                group = self.look_again(group)?;
            }
            is_stale |= self.write_stage(&group)? && stage <= Stage::Governor;
        }
        self.settle()?;
        for file in &self.order.files {
            let done = match &file.to {
                Some(text) => self.hands.sink.write(&file.path, text),
                None => self.hands.sink.remove(&file.path),
            };
            done.map_err(|e| e.to_string())?;
        }
        for at in 0..self.journal.commands.len() {
            self.journal.commands[at].is_started = true;
            self.save()?;
            self.hands.runner.run(&self.journal.commands[at].run)?;
        }
        self.record_moved();
        self.journal.phase = match self.order.confirm_until_boottime_ns {
            Some(until_boottime_ns) => Phase::Unconfirmed { until_boottime_ns },
            None => Phase::Applied,
        };
        self.save()
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
        for step in group {
            match resolve::step(&host, &step.request, &[]) {
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
        let optional: BTreeSet<&str> =
            group.iter().filter(|s| s.request.is_optional).map(|s| s.request.name.as_str()).collect();
        for outcome in &self.settings[first..] {
            if let SettingResult::Refused(why) = &outcome.result {
                let line = format!("{} at {}: {}: {why}", outcome.name, outcome.place, outcome.path);
                if !self.order.is_keeping_going && !optional.contains(outcome.name.as_str()) {
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
            let now = self.hands.sink.read(&outcome.path).map_err(|e| e.to_string())?;
            if judge(&outcome.name, &outcome.requested, &now) == SettingResult::Refused(not_kept(&now)) {
                self.write(&mut outcome);
                if let SettingResult::Refused(why) = &outcome.result {
                    let line = format!("{} at {}: {}: did not stay: {why}", outcome.name, outcome.place, outcome.path);
                    if !self.order.is_keeping_going {
                        return Err(line);
                    }
                    self.left_out.push(line);
                }
                self.settings[at] = outcome;
            }
        }
        let host = Host::read(self.hands.source);
        for outcome in &mut self.settings {
            let knob = knobs::find(&outcome.name);
            let site = knob.and_then(|k| k.sites(&host).ok()?.into_iter().find(|s| s.path == outcome.path));
            outcome.effective = knob.zip(site).and_then(|(k, s)| k.effective(&host, &s));
        }
        Ok(())
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

fn not_kept(now: &str) -> String {
    format!("reads back {now:?}")
}

fn judge(name: &str, requested: &str, now: &str) -> SettingResult {
    let kept = knobs::find(name).map_or(Kept::Not, |k| k.kept(requested, now));
    match kept {
        Kept::Exactly => SettingResult::Set,
        Kept::Legally(how) => SettingResult::Clamped(how),
        Kept::Not => SettingResult::Refused(not_kept(now)),
    }
}
