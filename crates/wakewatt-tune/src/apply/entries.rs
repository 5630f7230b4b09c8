//! What a transaction may write, read before it does: the journal's entries.
//!
//! Beside what was asked for there is what the kernel may move along (`About::moves`), so that undo restores it too.

use super::order::{FileChange, Order};
use crate::gone::{self, Missing};
use crate::journal::Entry;
use crate::knob::{Host, Stage};
use crate::knobs;
use crate::resolve::{Change, Step};
use std::collections::BTreeSet;
use wakewatt_host::sink::{Sink, SinkError};

pub(crate) fn read_before(sink: &dyn Sink, path: &str) -> Result<Option<String>, SinkError> {
    match sink.read(path) {
        Ok(value) => Ok(Some(value)),
        Err(e) if e.is_absent => Ok(None),
        Err(e) => Err(e),
    }
}

/// What is put back later. Of a CPU that has gone since the plan was made, the value that was read then: it keeps it.
fn first_value(sink: &dyn Sink, change: &Change) -> Result<Option<String>, SinkError> {
    let mut now = read_before(sink, &change.path)?;
    for _ in 0..gone::TRIES {
        match now {
            None if matches!(gone::judge(sink, &change.path), Missing::Away(_)) => return Ok(change.before.clone()),
            // It may have come back between the two looks.
            None => now = read_before(sink, &change.path)?,
            Some(_) => break,
        }
    }
    Ok(now)
}

pub(super) fn file_entries(sink: &dyn Sink, order: &Order<'_>) -> Result<Vec<Entry>, SinkError> {
    let entry = |file: &FileChange| {
        let mut entry = Entry::new(&file.path, read_before(sink, &file.path)?, vec![file.to.clone()]);
        entry.stage = Stage::Boot;
        Ok(entry)
    };
    order.files.iter().map(entry).collect()
}

/// Adds what the steps write, and what those knobs may move; paths that are listed already stay as they are.
pub(crate) fn add_entries(
    entries: &mut Vec<Entry>,
    host: &Host<'_>,
    sink: &dyn Sink,
    steps: &[Step],
) -> Result<usize, SinkError> {
    let before = entries.len();
    let mut listed: BTreeSet<String> = entries.iter().map(|e| e.path.clone()).collect();
    for step in steps {
        for change in &step.changes {
            // A file that moved along with an earlier setting and is now written itself keeps its first "before".
            if let Some(entry) = entries.iter_mut().find(|e| e.path == change.path) {
                entry.is_movable |= entry.is_collateral;
                entry.is_collateral = false;
                (entry.name, entry.stage) = (step.request.name.clone(), step.stage);
                if !entry.ours.contains(&Some(change.to.clone())) {
                    entry.ours.push(Some(change.to.clone()));
                }
                continue;
            }
            listed.insert(change.path.clone());
            let ours = vec![Some(change.to.clone())];
            let mut entry = Entry::new(&change.path, first_value(sink, change)?, ours);
            (entry.name, entry.stage) = (step.request.name.clone(), step.stage);
            entries.push(entry);
        }
    }
    let touched = steps.iter().filter(|s| s.later.is_some() || s.changes.iter().any(|c| !c.is_so()));
    let moved: BTreeSet<&str> =
        touched.filter_map(|s| knobs::find(&s.knob)).flat_map(|k| k.about().moves.iter().copied()).collect();
    for knob in moved.iter().filter_map(|id| knobs::find(id)) {
        for site in knob.sites(host).unwrap_or_default() {
            if let Some(entry) = entries.iter_mut().find(|e| e.path == site.path && !e.is_collateral) {
                entry.is_movable = true;
            }
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
