//! Sets of settings that stand side by side: one follows another without a return to what was found in between.
//!
//! An experiment changes settings before every block, so what a change costs is paid hundreds of times. Switches of idle
//! states and limits of one CPU are a file each that moves no other file and takes its value in any order: of those only
//! what differs between two sets is written. What does not differ is read, because a set that somebody has changed
//! meanwhile is not the one whose name a block bears. Everything else (a governor resets limits, a CPU takes its files
//! along) goes the long way, which inherits nothing.

use crate::apply::{SettingResult, judge};
use crate::gone;
use crate::hands::Hands;
use crate::journal::Journal;
use crate::knob::{Reversible, Stage};
use crate::knobs;
use crate::resolve::Resolved;
use std::collections::{BTreeMap, BTreeSet};

/// What one file is to hold, and which setting says so.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Target {
    name: String,
    to: String,
}

/// What a set wants of each file; files that it does not name are to be as found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Steady {
    targets: BTreeMap<String, Target>,
}

impl Steady {
    /// Of a set that can stand beside others; none where it must go the long way.
    pub(super) fn of(resolved: &Resolved) -> Option<Steady> {
        let mut targets = BTreeMap::new();
        for step in &resolved.steps {
            if step.later.is_some() || (!step.changes.is_empty() && !is_steady(&step.knob)) {
                return None;
            }
            let target = |to: &String| Target { name: step.request.name.clone(), to: to.clone() };
            targets.extend(step.changes.iter().map(|change| (change.path.clone(), target(&change.to))));
        }
        Some(Steady { targets })
    }
}

/// Does turning it move its own files and no others, in whatever order they are written?
fn is_steady(knob: &str) -> bool {
    let Some(about) = knobs::find(knob).map(crate::knob::Knob::about) else { return false };
    let is_free_of_order = matches!(about.stage, Stage::Idle | Stage::Latency);
    is_free_of_order && about.moves.is_empty() && about.reversible == Reversible::Exactly
}

/// The files that do not hold what was found, with what they were last seen to hold, by our doing.
pub(super) type Held = BTreeMap<String, String>;

/// Leads from what is held to a set. A CPU that is offline is skipped: it keeps its values, and runs nothing.
/// After an error it is not known how far it came: the caller undoes.
pub(super) fn turn(hands: Hands<'_>, journal: &mut Journal, held: &mut Held, to: &Steady) -> Result<(), String> {
    let found: BTreeMap<String, String> =
        journal.entries.iter().filter_map(|e| Some((e.path.clone(), e.before.clone()?))).collect();
    let paths: BTreeSet<String> = held.keys().chain(to.targets.keys()).cloned().collect();
    let (mut back, mut on) = (Vec::new(), Vec::new());
    for path in paths {
        let before = found.get(&path).ok_or_else(|| format!("{path}: is not in the journal"))?;
        let expected = held.get(&path).unwrap_or(before);
        let Some(now) = gone::value(hands.sink, &path).map_err(|e| e.to_string())? else { continue };
        if now != *expected {
            return Err(format!("{path}: somebody else has set it to {now:?}"));
        }
        match to.targets.get(&path) {
            None if now != *before => back.push((path, Target { name: String::new(), to: before.clone() })),
            Some(target) if target.to == now => {}
            // What was found comes first: it allows what the last set forbade, so that nothing is ever forbidden by both.
            Some(target) if target.to == *before => back.push((path, target.clone())),
            Some(target) => on.push((path, target.clone())),
            None => {}
        }
    }
    for (path, target) in back.into_iter().chain(on) {
        let written = hands.sink.write(&path, &target.to);
        // One that goes now keeps what was written, if that came in time.
        let Some(now) = gone::value(hands.sink, &path).map_err(|e| e.to_string())? else {
            if written.is_ok() {
                match found.get(&path) == Some(&target.to) {
                    true => held.remove(&path),
                    false => held.insert(path, target.to),
                };
            }
            continue;
        };
        written.map_err(|e| e.to_string())?;
        let is_kept = now == target.to || matches!(judge(&target.name, &target.to, &now), SettingResult::Clamped(_));
        if !is_kept {
            return Err(format!("{path}: wrote {:?}, reads back {now:?}", target.to));
        }
        note(hands, journal, &path, &now)?;
        match found.get(&path) == Some(&now) {
            true => held.remove(&path),
            false => held.insert(path, now),
        };
    }
    Ok(())
}

/// What the kernel made of a value is ours as well.
fn note(hands: Hands<'_>, journal: &mut Journal, path: &str, now: &str) -> Result<(), String> {
    let Some(entry) = journal.entries.iter_mut().find(|e| e.path == path) else { return Ok(()) };
    let is_known = |value: &Option<String>| value.as_deref() == Some(now);
    if is_known(&entry.before) || entry.ours.iter().any(is_known) {
        return Ok(());
    }
    entry.ours.push(Some(now.to_string()));
    journal.save(hands.store).map_err(|e| e.to_string())
}
