//! Takes an application back: cancels what still waits, stages the old values, and ends the journal when they are in force.
//!
//! Nothing of somebody else's is overwritten unless forced: an attribute must hold what it held before, or what the
//! application gave it, now and for the next boot. A job that still waits is deleted first (a Dell takes no second PATCH
//! while it has one). What a profile forces is left to the profile, which comes back as well; a profile of which the registry only
//! says what it locks comes back in a second round, after the boot that brought the values back. Running it again does no harm.

use crate::apply::StagedSetting;
use crate::apply::job;
use crate::apply::stage::{StageError, Staging, stage};
use crate::journal::{Entry, Journal, JournalError, Phase};
use crate::plan::{self, Exact, Purpose, Refusal, Refused};
use crate::service::Change;
use crate::setting::Setting;
use crate::walk::{self, Bios, Machine, NoBios, NoMachine};
use crate::{link, walk::machine};
use serde::Serialize;
use std::time::Duration;

/// An attribute that somebody else has changed since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Foreign {
    /// As the BMC spells it.
    pub attribute: String,
    /// What it holds, or is to hold at the next boot.
    pub now: Option<Setting>,
    /// What it held before the application.
    pub before: Option<Setting>,
    /// What the application gave it.
    pub ours: Setting,
}

/// What an undo came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Undone {
    /// The journal that is undone.
    pub id: String,
    /// A job that waited and was deleted.
    pub cancelled_job: Option<String>,
    /// Old values that are staged for the next boot.
    pub staged: Vec<StagedSetting>,
    /// What could not be taken back, with the reason of each.
    pub left: Vec<Refused>,
    /// Profiles that go back in a second round, after a boot, with the reason of each.
    pub second_round: Vec<Refused>,
    /// Attributes whose old value was never known.
    pub without_old_value: Vec<String>,
    /// Everything is as before, and the journal is gone.
    pub is_complete: bool,
    /// What to know besides.
    pub notes: Vec<String>,
}

/// Why nothing was undone.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// It is another machine.
    #[error("nothing is undone: {journal} belongs to {bmc}; this is {here}")]
    OtherBmc {
        /// The journal.
        journal: String,
        /// Where it was made.
        bmc: String,
        /// Where we are.
        here: String,
    },
    /// The machine cannot be found.
    #[error(transparent)]
    Machine(#[from] NoMachine),
    /// It has no settings.
    #[error(transparent)]
    Bios(#[from] NoBios),
    /// Somebody else's values.
    #[error("nothing is undone: {} changed since by somebody else; --force overwrites them", foreign.iter().map(|f| f.attribute.clone()).collect::<Vec<_>>().join(", "))]
    Foreign {
        /// Which.
        foreign: Vec<Foreign>,
    },
    /// Nowhere to stage.
    #[error("nothing is undone: this BIOS names no settings object")]
    NoSettings,
    /// Nobody knows what to take back, or whose it is.
    #[error("no old values are staged: what waits for the next boot could not be read: {0}")]
    WaitingUnknown(String),
    /// The BMC refused, or did not answer.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The old values are staged, but the journal could not be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// Undoes one application.
pub fn undo(
    service: &mut dyn Change,
    journal: &mut Journal,
    is_forced: bool,
    pause: Duration,
) -> Result<Undone, UndoError> {
    if service.origin() != journal.bmc {
        let (bmc, here) = (journal.bmc.clone(), service.origin());
        return Err(UndoError::OtherBmc { journal: journal.id(), bmc, here });
    }
    let found = machine(service, Some(&journal.system))?;
    let bios = found.bios.as_ref().map_err(Clone::clone)?;
    let foreign: Vec<Foreign> = journal.entries.iter().filter_map(|entry| foreign(bios, entry)).collect();
    if !foreign.is_empty() && !is_forced {
        return Err(UndoError::Foreign { foreign });
    }
    let mut out = Undone {
        id: journal.id(),
        cancelled_job: None,
        staged: Vec::new(),
        left: Vec::new(),
        second_round: Vec::new(),
        without_old_value: Vec::new(),
        is_complete: false,
        notes: Vec::new(),
    };
    if is_as_before(bios, journal) {
        // A job that was made for a change that the BMC did not keep would stand in the way of the next one.
        if journal.job.is_some() {
            cancel(service, journal, bios, &mut out);
        }
        journal.finish()?;
        out.is_complete = true;
        return Ok(out);
    }
    let cancelled = cancel(service, journal, bios, &mut out);
    let again = if cancelled { Some(machine(service, Some(&journal.system))?) } else { None };
    let found = again.as_ref().unwrap_or(&found);
    let bios = found.bios.as_ref().map_err(Clone::clone)?;
    if is_as_before(bios, journal) {
        journal.finish()?;
        out.is_complete = true;
        return Ok(out);
    }
    restage(service, found, bios, journal, pause, &mut out)?;
    Ok(out)
}

fn restage(
    service: &mut dyn Change,
    machine: &Machine,
    bios: &Bios,
    journal: &mut Journal,
    pause: Duration,
    out: &mut Undone,
) -> Result<(), UndoError> {
    let settings = bios.settings_path.as_deref().ok_or(UndoError::NoSettings)?;
    if let Some(why) = &bios.pending_unknown {
        return Err(UndoError::WaitingUnknown(why.clone()));
    }
    let changes = changes(machine, bios, journal, out);
    if !changes.is_empty() {
        let staging = Staging { settings, bios, pause, expected: Some(&bios.pending) };
        let staged = stage(service, &staging, &changes)?;
        journal.job = staged.job.map(|job| job.path);
        out.notes.extend(staged.notes);
        for (attribute, requested) in changes {
            let before = bios.current.get(&attribute).cloned();
            let read_back = staged.read_back.get(&attribute).cloned();
            out.staged.push(StagedSetting { attribute, before, requested, read_back });
        }
    }
    journal.phase = Phase::UndoStaged;
    journal.save()?;
    // Taken back before it ever came into force: nothing waits any more.
    let now = machine_of(service, journal)?;
    if let Ok(bios) = &now.bios
        && is_as_before(bios, journal)
    {
        journal.finish()?;
        out.is_complete = true;
    }
    Ok(())
}

/// What goes back now.
fn changes(machine: &Machine, bios: &Bios, journal: &Journal, out: &mut Undone) -> Vec<(String, Setting)> {
    let mut exact = Vec::new();
    let mut is_never_booted = true;
    for entry in &journal.entries {
        let Some(value) = &entry.before else {
            out.without_old_value.push(entry.attribute.clone());
            continue;
        };
        let now = bios.current.get(&entry.attribute);
        is_never_booted &= now.is_some_and(|now| is_same(bios, &entry.attribute, now, value));
        exact.push(Exact {
            name: entry.attribute.clone(),
            value: value.clone(),
            asked: format!("{}={value}, as before {}", entry.attribute, journal.id()),
        });
    }
    // It never came into force: what waits is only taken back, whatever is locked.
    if is_never_booted {
        let waits = exact.into_iter().filter(|exact| bios.pending.contains_key(&exact.name));
        return waits.map(|exact| (exact.name, exact.value)).collect();
    }
    let plan = plan::settled(machine, bios, exact, Purpose::Undo);
    let (later, left) = plan.refused.iter().cloned().partition(|r| matches!(r.refusal, Refusal::Later { .. }));
    (out.second_round, out.left) = (later, left);
    plan.changes().map(|step| (step.attribute.clone(), step.wished.clone())).collect()
}

fn machine_of(service: &mut dyn Change, journal: &Journal) -> Result<Machine, NoMachine> {
    walk::machine(service, Some(&journal.system))
}

fn is_same(bios: &Bios, name: &str, a: &Setting, b: &Setting) -> bool {
    let attribute = bios.registry.as_ref().ok().and_then(|registry| registry.get(name));
    attribute.map_or_else(|| a.is_same(b), |attribute| attribute.is_same(a, b))
}

/// Everything holds its old value, and nothing of it waits, as far as is known for certain.
pub fn is_as_before(bios: &Bios, journal: &Journal) -> bool {
    bios.pending_unknown.is_none()
        && journal.entries.iter().all(|entry| {
            let now = bios.current.get(&entry.attribute);
            let is_old = match (&entry.before, now) {
                (Some(before), Some(now)) => is_same(bios, &entry.attribute, before, now),
                // What was never known cannot be said to be back.
                _ => false,
            };
            is_old && !bios.pending.contains_key(&entry.attribute)
        })
}

/// All that was to be staged waits, and nothing else does: so whoever holds it holds ours. What a profile forces may wait or not.
pub fn waits_alone(bios: &Bios, journal: &Journal) -> bool {
    let is_ours = |entry: &Entry| {
        let waiting = bios.pending.get(&entry.attribute);
        waiting.map_or(entry.is_moved, |waiting| is_same(bios, &entry.attribute, waiting, &entry.ours))
    };
    !bios.pending.is_empty()
        && journal.entries.iter().all(is_ours)
        && bios.pending.keys().all(|name| journal.entries.iter().any(|entry| entry.attribute == *name))
}

fn foreign(bios: &Bios, entry: &Entry) -> Option<Foreign> {
    let name = &entry.attribute;
    let is_known = |value: &Setting| {
        is_same(bios, name, value, &entry.ours) || entry.before.as_ref().is_some_and(|b| is_same(bios, name, value, b))
    };
    let strange = [bios.pending.get(name), bios.current.get(name)].into_iter().flatten().find(|value| !is_known(value));
    strange.map(|now| Foreign {
        attribute: name.clone(),
        now: Some(now.clone()),
        before: entry.before.clone(),
        ours: entry.ours.clone(),
    })
}

/// Deletes the job of this application if it still waits with something of ours, and clears what waits where the BMC has an
/// action for that and all that waits is ours. Was anything done?
fn cancel(service: &mut dyn Change, journal: &Journal, bios: &Bios, out: &mut Undone) -> bool {
    let mut is_done = false;
    let is_ours = |name: &String| journal.entries.iter().any(|entry| entry.attribute == *name);
    let is_all_ours = !bios.pending.is_empty() && bios.pending.keys().all(is_ours);
    let job = match &journal.job {
        Some(path) => job::look(service, path).filter(job::Job::is_waiting),
        // Whoever staged it may have died before its job was noted.
        None if waits_alone(bios, journal) => {
            match bios.settings_path.as_deref().map(|path| job::holder(service, path)) {
                Some(Ok(job::Holder::Job(job))) => Some(job).filter(job::Job::is_waiting),
                _ => None,
            }
        }
        _ => None,
    };
    if let Some(job::Job { path, .. }) = job {
        match service.delete(&path) {
            Ok(answer) if answer.is_yes() => {
                out.cancelled_job = Some(path);
                is_done = true;
            }
            Ok(answer) => {
                out.notes.push(format!("{path} could not be deleted: HTTP status {} {}", answer.status, answer.said))
            }
            Err(why) => out.notes.push(format!("{path} could not be deleted: {why}")),
        }
    }
    if is_all_ours {
        let settings = bios.settings_path.as_deref().and_then(|path| service.get(path).ok());
        let actions = settings.map(|document| document.json["Actions"]["Oem"].clone()).unwrap_or_default();
        let clear = actions.as_object().into_iter().flatten().find(|(name, _)| name.ends_with(".ClearPending"));
        if let Some(target) = clear.and_then(|(_, action)| link::path_of(action["target"].as_str()?)) {
            is_done |= service.post(&target, "{}").is_ok_and(|answer| answer.is_yes());
        }
    }
    is_done
}
