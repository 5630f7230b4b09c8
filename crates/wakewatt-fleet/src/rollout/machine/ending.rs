//! How a rollout is turned round or brought to its end: a stage that fails, a person who wants everything back, a new operator.

use super::super::plan::{OnFailure, Plan};
use super::super::state::{End, Is, NodeState, Phase, Rollout};

/// Has the stage lost a node, or left out too many? Then what follows is on its way.
pub(super) fn has_failed(plan: &Plan, r: &mut Rollout, now_ms: u64) -> bool {
    let why_of = |n: &NodeState| format!("{}: {}", n.name, n.why.as_deref().unwrap_or("left out"));
    let left_out: Vec<String> = r.nodes.iter().filter(|n| n.is == Is::Refused).map(why_of).collect();
    let why = match r.of_stage(r.stage).find(|(_, n)| n.is == Is::Lost) {
        Some((_, lost)) => why_of(lost),
        None if left_out.len() > plan.max_left_out => {
            let shown = left_out[..left_out.len().min(3)].join("; ");
            format!("{} nodes are left out and {} may be (max_left_out): {shown}", left_out.len(), plan.max_left_out)
        }
        None => return false,
    };
    fail(plan, r, why, now_ms);
    true
}

/// The stage has failed; what the plan says follows.
pub(super) fn fail(plan: &Plan, r: &mut Rollout, why: String, now_ms: u64) {
    if matches!(r.phase, Phase::Undoing { .. } | Phase::Ended) {
        return;
    }
    let stage = plan.stages.get(r.stage);
    let name = stage.map_or("", |s| s.name.as_str());
    r.why = Some(format!("stage {name}: {why}"));
    match stage.map_or(plan.on_failure, |s| s.on_failure) {
        OnFailure::Stop => end(r, End::Stopped, now_ms),
        OnFailure::UndoStage => undo(r, false),
        OnFailure::UndoAll => undo(r, true),
    }
}

fn undo(r: &mut Rollout, is_all: bool) {
    r.phase = Phase::Undoing { is_all };
    r.nodes.iter_mut().for_each(|n| n.n_tries = 0);
}

pub(super) fn end(r: &mut Rollout, how: End, now_ms: u64) {
    (r.phase, r.end, r.ended_ms) = (Phase::Ended, Some(how), Some(now_ms));
}

/// A person wants everything back, whatever the gates say.
pub fn undo_all(r: &mut Rollout, why: String) {
    (r.end, r.ended_ms) = (None, None);
    // Old values that waited for a boot may be in force by now, or wait for a second round.
    r.nodes.iter_mut().filter(|n| n.is == Is::UndoWaits).for_each(|n| n.is = Is::Applied);
    r.why.get_or_insert(why);
    undo(r, true);
}

/// Whoever goes on where another was cut short: every step that was under way is to be asked about, and every node that has the
/// change is looked at once more, for it may have undone itself meanwhile.
pub fn resume(r: &mut Rollout, now_ms: u64) {
    let is_kept_watch = matches!(r.phase, Phase::Looking | Phase::Gating { .. } | Phase::Confirming);
    for node in &mut r.nodes {
        let is_cut = matches!(node.is, Is::Applying | Is::Confirming | Is::Undoing);
        if r.phase != Phase::Ended && (is_cut || (is_kept_watch && node.is == Is::Applied)) {
            (node.ask_at_ms, node.n_tries) = (Some(now_ms), 0);
            if node.is == Is::Applying {
                // Whoever ordered it may have done so a moment ago, long after it was written down.
                node.at_ms = now_ms;
            }
        }
    }
}
