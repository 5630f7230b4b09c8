//! What an odd node's own idle time would have been under the limit that its peers have: `replay` on its recording.

use super::files::Files;
use crate::output;
use crate::recording;
use anyhow::Result;
use std::path::Path;
use wakewatt_core::record::wtrace::Item;
use wakewatt_core::samples::replayed::Replayed;
use wakewatt_core::units::parse_ns;
use wakewatt_fleet::document::Fleet;
use wakewatt_fleet::table::DEEPEST_IDLE;
use wakewatt_models::replay::{Replay, sweep, words};

/// Adds it where a node has a recording and its peers another deepest state.
pub(super) fn explain(fleet: &mut Fleet, files: &Files) {
    for node in fleet.nodes.iter_mut().filter(|n| n.is_odd()) {
        let Some(path) = files.trace(&node.name) else { continue };
        for differs in node.differs.iter_mut().filter(|d| d.what == DEEPEST_IDLE) {
            let Some(limit_ns) = exit_ns(&differs.peers) else { continue };
            match replayed(path, limit_ns) {
                Ok(replayed) => {
                    let told = sentence(&replayed);
                    differs.predicted = Some(match differs.predicted.take() {
                        Some(predicted) => format!("{predicted}; {told}"),
                        None => told,
                    });
                }
                Err(why) => output::remark(&format!("{why:#}")),
            }
        }
    }
}

/// `C1, 2us`, or none at all.
fn exit_ns(state: &str) -> Option<u64> {
    if state == "none" { Some(0) } else { parse_ns(state.rsplit(", ").next()?).ok() }
}

/// With how far the model may be trusted on this recording; of one that could not be followed nothing else.
fn sentence(r: &Replayed) -> String {
    if !r.followed.is_enough() {
        return r.trust.clone();
    }
    let change = words::change(&r.recorded, &r.predicted);
    format!("under their limit its recorded idle time would have been: {change} ({})", r.trust)
}

fn replayed(path: &Path, limit_ns: u64) -> Result<Replayed> {
    let mut stream = recording::stream(path)?;
    let header = stream.header.clone();
    let mut replay = Replay::new(&header, &[sweep::asking(limit_ns)], &[])?;
    stream.by_ref().for_each(|item| match &item {
        Item::Pairs(pairs) => replay.pairs(pairs),
        Item::Choices(choices) => replay.choices(choices),
        Item::Mark(mark) => replay.mark(mark),
    });
    Ok(replay.finish())
}
