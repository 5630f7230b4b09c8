//! What came of a task, written down.

use super::super::kind::difference;
use super::super::plan::Plan;
use super::super::state::{GateState, Is, NodeState, Phase, Rollout};
use super::ending::fail;
use super::{ASK_AFTER_MS, BOOT_LOOK_MS, Found, How, MOST_TRIES, Outcome, Task, Waits, gating};
use crate::rollout::gate::Verdict;

/// Between two questions to a gate that cannot tell, at most, in milliseconds.
const GATE_AGAIN_MS: u64 = 30_000;

/// Writes down what came of a task that [`super::step`] gave away.
pub fn settle(plan: &Plan, r: &mut Rollout, task: Task, outcome: Outcome, now_ms: u64) {
    match task {
        Task::Check(at) => checked(r, at, outcome, now_ms),
        Task::Apply(at) => applied(r, at, outcome, now_ms),
        Task::Ask(at) => asked(plan, r, at, outcome, now_ms),
        Task::Confirm(at) => ended(plan, r, at, (Is::Confirmed, outcome), now_ms),
        Task::Undo(at) => ended(plan, r, at, (Is::Undone, outcome), now_ms),
        Task::Judge(gate) => {
            if let Outcome::Judged(verdict) = outcome {
                judged(plan, r, gate, verdict, now_ms);
            }
        }
    }
}

fn checked(r: &mut Rollout, at: usize, outcome: Outcome, now_ms: u64) {
    let Some(node) = r.nodes.get_mut(at) else { return };
    let refused = match outcome {
        Outcome::Fits(kind) => {
            let canary = r.kind.get_or_insert_with(|| kind.clone());
            difference(canary, &kind).map(|how| format!("its plan is of another kind than the canary's: it {how}"))
        }
        // Ours from a step that was cut short; it counts as that step.
        Outcome::Has(found) => return has(node, found, now_ms),
        Outcome::Refused(why) | Outcome::Unsure(why) => Some(why),
        _ => Some("it gave no plan".into()),
    };
    match refused {
        None => node.is_checked = true,
        Some(why) => {
            node.becomes(Is::Refused, now_ms);
            node.why = Some(why);
        }
    }
}

/// It has our change.
fn has(node: &mut NodeState, found: Found, now_ms: u64) {
    let (is, n_tries) = (if found.how == How::Kept { Is::Confirmed } else { Is::Applied }, node.n_tries);
    node.becomes(is, now_ms);
    (node.id, node.n_tries) = (Some(found.id), n_tries);
    node.waits_for_boot = found.waits != Waits::Nothing;
    if let Some(ms) = found.undone_in_ms {
        node.undone_by_ms = Some(now_ms.saturating_add(ms));
    }
}

fn applied(r: &mut Rollout, at: usize, outcome: Outcome, now_ms: u64) {
    let Some(node) = r.nodes.get_mut(at) else { return };
    match outcome {
        Outcome::Changed(id) => {
            node.becomes(Is::Applied, now_ms);
            node.id = Some(id);
        }
        Outcome::WasSo => {
            node.becomes(Is::Unchanged, now_ms);
            node.undone_by_ms = None;
        }
        Outcome::Refused(why) => {
            node.becomes(Is::Refused, now_ms);
            (node.why, node.undone_by_ms) = (Some(why), None);
        }
        Outcome::Unsure(why) => {
            node.at_ms = now_ms;
            ask_later(node, why, now_ms);
        }
        _ => {
            node.at_ms = now_ms;
            ask_later(node, "no answer that could be understood".into(), now_ms);
        }
    }
}

fn ask_later(node: &mut NodeState, why: String, now_ms: u64) {
    node.ask_at_ms = Some(now_ms + ASK_AFTER_MS);
    node.why = Some(why);
}

/// Of a confirmation or an undoing.
fn ended(plan: &Plan, r: &mut Rollout, at: usize, (is, outcome): (Is, Outcome), now_ms: u64) {
    let Some(node) = r.nodes.get_mut(at) else { return };
    match outcome {
        Outcome::Done => {
            node.becomes(is, now_ms);
            (node.undone_by_ms, node.why) = (None, None);
        }
        // Whoever restarts machines waits for them; whoever does not has done what can be done.
        Outcome::Staged(why) if plan.change.reboot.is_some() => {
            (node.ask_at_ms, node.waits_for_boot, node.why) = (Some(now_ms + BOOT_LOOK_MS), true, Some(why));
        }
        Outcome::Staged(why) => undo_waits(node, why, now_ms),
        Outcome::Unsure(why) | Outcome::Refused(why) => ask_later(node, why, now_ms),
        _ => ask_later(node, "no answer that could be understood".into(), now_ms),
    }
}

fn asked(plan: &Plan, r: &mut Rollout, at: usize, outcome: Outcome, now_ms: u64) {
    let is_undoing = matches!(r.phase, Phase::Undoing { .. });
    let Some(node) = r.nodes.get_mut(at) else { return };
    node.ask_at_ms = None;
    let trouble = match outcome {
        Outcome::Has(found) if found.how == How::Open && node.is == Is::Applying => {
            node.id = Some(found.id);
            still_open(plan, node, now_ms)
        }
        Outcome::Has(found) if is_booting(plan, node, &found, is_undoing, now_ms) => {
            node.id = Some(found.id);
            (node.ask_at_ms, node.waits_for_boot) = (Some(now_ms + BOOT_LOOK_MS), true);
            None
        }
        Outcome::Has(found) if is_undoing && found.waits == Waits::Undo => {
            node.id = Some(found.id);
            undo_waits(node, "its old values wait for its next boot".into(), now_ms);
            None
        }
        Outcome::Has(found) => {
            let late = plan.change.reboot.is_some() && node.is == Is::Applied && found.waits == Waits::Change;
            let late = (late && !is_undoing).then(|| "it has not booted within boot_within".to_string());
            let broken = found.broken.clone().filter(|_| !is_undoing);
            let is_stuck = node.is == Is::Confirming && found.how != How::Kept && node.n_tries >= MOST_TRIES;
            has(node, found, now_ms);
            let stuck = is_stuck.then(|| node.why.clone().unwrap_or_else(|| "it could not be confirmed".into()));
            broken.map(|what| format!("the change no longer holds: {what}")).or(late).or(stuck)
        }
        Outcome::HasNone => has_none(plan, node, is_undoing, now_ms),
        Outcome::Unsure(why) | Outcome::Refused(why) => no_answer(node, why, is_undoing, now_ms),
        _ => no_answer(node, "no answer that could be understood".into(), is_undoing, now_ms),
    };
    if let Some(why) = trouble {
        let why = format!("{}: {why}", node.name);
        fail(plan, r, why, now_ms);
    }
}

/// Is it on its way through a boot that the plan asks for, and not yet late?
fn is_booting(plan: &Plan, node: &NodeState, found: &Found, is_undoing: bool, now_ms: u64) -> bool {
    let is_waited_for = match (node.is, is_undoing) {
        (Is::Applied, false) => found.waits == Waits::Change,
        (Is::Undoing, true) => found.waits == Waits::Undo,
        _ => false,
    };
    let is_early = now_ms < node.at_ms.saturating_add(plan.change.boot_ms);
    plan.change.reboot.is_some() && is_waited_for && is_early && found.broken.is_none()
}

fn undo_waits(node: &mut NodeState, why: String, now_ms: u64) {
    node.becomes(Is::UndoWaits, now_ms);
    (node.undone_by_ms, node.waits_for_boot, node.why) = (None, true, Some(why));
}

/// Its transaction is not complete: the order goes on there, or it was cut short.
fn still_open(plan: &Plan, node: &mut NodeState, now_ms: u64) -> Option<String> {
    if now_ms < node.at_ms + 2 * plan.order_ms {
        node.ask_at_ms = Some(now_ms + ASK_AFTER_MS);
        return None;
    }
    let why = "its transaction was cut short and is still open";
    node.becomes(Is::Lost, now_ms);
    node.why = Some(why.into());
    Some(why.into())
}

/// It has nothing of ours.
fn has_none(plan: &Plan, node: &mut NodeState, is_undoing: bool, now_ms: u64) -> Option<String> {
    // An order that was on its way may still begin within its limit, and then run for as long.
    let arrived_ms = node.at_ms + 2 * plan.order_ms;
    if node.is == Is::Applying && now_ms < arrived_ms {
        node.ask_at_ms = Some(arrived_ms);
        return None;
    }
    let (was, n_tries) = (node.is, node.n_tries);
    if was == Is::Applying && !is_undoing {
        node.id = None;
        let is_given_up = n_tries >= MOST_TRIES;
        node.becomes(if is_given_up { Is::Refused } else { Is::Waiting }, now_ms);
        (node.is_checked, node.undone_by_ms, node.n_tries) = (false, None, n_tries);
        return None;
    }
    node.becomes(Is::Undone, now_ms);
    node.undone_by_ms = None;
    if is_undoing {
        return None;
    }
    let why = "it has undone itself, or somebody has";
    node.why = Some(why.into());
    Some(why.into())
}

fn no_answer(node: &mut NodeState, why: String, is_undoing: bool, now_ms: u64) -> Option<String> {
    // While the change is watched, a lost connection is a failed gate at once.
    node.n_tries += 1;
    let is_watched = node.is == Is::Applied && !is_undoing;
    if node.n_tries < MOST_TRIES && !is_watched {
        node.ask_at_ms = Some(now_ms + ASK_AFTER_MS * u64::from(node.n_tries));
        node.why = Some(why);
        return None;
    }
    let n_tries = node.n_tries;
    node.becomes(Is::Lost, now_ms);
    (node.n_tries, node.why) = (n_tries, Some(why.clone()));
    Some(why)
}

fn judged(plan: &Plan, r: &mut Rollout, gate: usize, verdict: Verdict, now_ms: u64) {
    let Phase::Gating { gate: place, until_ms, .. } = r.phase else { return };
    let Some(of) = plan.gates.get(gate) else { return };
    let settled = verdict.settled(of.cannot_tell, now_ms < until_ms);
    if let Some(stage) = r.stages.get_mut(r.stage) {
        stage.gates.retain(|g| g.name != of.name);
        stage.gates.push(GateState { name: of.name.clone(), at_ms: now_ms, verdict: verdict.clone() });
    }
    match settled {
        Some(true) => r.phase = gating(plan, r.stage, place + 1, now_ms),
        Some(false) => fail(plan, r, format!("gate {}: {}", of.name, verdict.why), now_ms),
        None => {
            let again_ms = (of.hold_ms / 20).clamp(1_000, GATE_AGAIN_MS);
            r.phase = Phase::Gating { gate: place, at_ms: (now_ms + again_ms).min(until_ms), until_ms };
        }
    }
}
