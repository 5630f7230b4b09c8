//! What may be done next, from what is written down; and what is written down when it is known what came of it.
//!
//! [`step`] marks what it gives away: whoever conducts writes the state, does it, tells [`settle`] what came, and writes again. A
//! step whose end nobody knows (no answer, killed in between) leaves the node to be asked what it has, and nothing is ordered
//! of it before that. So a node is never changed twice without the first being known, nothing is kept before every gate of its
//! stage has passed, and whoever undoes ends with every node asked.

mod ending;
mod settle;
#[cfg(test)]
mod tests;

pub use ending::{resume, undo_all};
pub use settle::settle;

use super::gate::Verdict;
use super::kind::Kind;
use super::plan::Plan;
use super::state::{End, Is, Phase, Rollout};
use ending::{end, fail, has_failed};

/// How often an order without a good answer is tried.
const MOST_TRIES: u32 = 3;
/// How long after one the node is asked, in milliseconds; twice as long the second time.
const ASK_AFTER_MS: u64 = 2_000;
/// Between two looks at a machine that boots, in milliseconds.
const BOOT_LOOK_MS: u64 = 10_000;

/// One thing to do. Nodes and gates by their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Does it answer, has it our change, what is its plan?
    Check(usize),
    /// Change it.
    Apply(usize),
    /// What has it?
    Ask(usize),
    /// Keep it.
    Confirm(usize),
    /// Put it back.
    Undo(usize),
    /// Ask a gate of the plan.
    Judge(usize),
}

/// What comes next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// All of these, at once.
    Do(Vec<Task>),
    /// Nothing before this moment, in milliseconds since 1970.
    Wait(u64),
    /// Nothing any more.
    Ended,
}

/// A transaction of this rollout on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its name there.
    pub id: String,
    /// How far it is.
    pub how: How,
    /// In how many milliseconds it undoes itself.
    pub undone_in_ms: Option<u64>,
    /// What of it no longer holds.
    pub broken: Option<String>,
    /// What of it waits for the node's next boot.
    pub waits: Waits,
}

/// What waits for a boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waits {
    /// Nothing.
    #[default]
    Nothing,
    /// The change.
    Change,
    /// The old values.
    Undo,
}

/// How far a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Under way, or cut short.
    Open,
    /// Undone by itself unless confirmed.
    Unconfirmed,
    /// It stays.
    Kept,
}

/// What came of a task.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It answers, and its plan is of this kind.
    Fits(Kind),
    /// It has a transaction of this rollout.
    Has(Found),
    /// It has none.
    HasNone,
    /// It cannot be changed, or says that nothing stays changed.
    Refused(String),
    /// It was changed; the name of the transaction.
    Changed(String),
    /// Everything was so already.
    WasSo,
    /// Confirmed, or undone.
    Done,
    /// The old values are staged, and come back at the node's next boot; in words.
    Staged(String),
    /// Nobody knows.
    Unsure(String),
    /// A gate's word.
    Judged(Verdict),
}

/// The next step; what it gives away is marked.
pub fn step(plan: &Plan, r: &mut Rollout, now_ms: u64) -> Next {
    // Every turn but the last changes the phase, and phases go round once a stage.
    loop {
        if r.phase == Phase::Ended {
            return Next::Ended;
        }
        let unsure = || r.nodes.iter().enumerate().filter_map(|(at, n)| Some((at, n.ask_at_ms?)));
        let due: Vec<Task> =
            unsure().filter(|(_, at_ms)| *at_ms <= now_ms).map(|(at, _)| Task::Ask(at)).take(plan.parallel).collect();
        if !due.is_empty() {
            return Next::Do(due);
        }
        if let Some(at_ms) = unsure().map(|(_, at_ms)| at_ms).min() {
            return Next::Wait(at_ms);
        }
        let found = match r.phase {
            Phase::Checking => checking(plan, r, now_ms),
            Phase::Changing => changing(plan, r, now_ms),
            Phase::Pausing { until_ms } if now_ms < until_ms => Some(Next::Wait(until_ms)),
            Phase::Pausing { .. } => {
                let stage = r.stage;
                r.phase = Phase::Looking;
                let has_it = r.nodes.iter_mut().filter(|n| n.stage == Some(stage) && n.is == Is::Applied);
                has_it.for_each(|n| n.ask_at_ms = Some(now_ms));
                None
            }
            Phase::Looking => {
                r.phase = gating(plan, r.stage, 0, now_ms);
                None
            }
            Phase::Gating { gate, at_ms, .. } => match plan.gates_of(r.stage).nth(gate) {
                None => {
                    r.phase = Phase::Confirming;
                    None
                }
                Some(_) if now_ms < at_ms => Some(Next::Wait(at_ms)),
                Some((at, _)) => Some(Next::Do(vec![Task::Judge(at)])),
            },
            Phase::Confirming => confirming(plan, r, now_ms),
            Phase::Undoing { is_all } => undoing(plan, r, is_all, now_ms),
            Phase::Ended => Some(Next::Ended),
        };
        if let Some(next) = found {
            return next;
        }
    }
}

/// The places of a stage's nodes for which something is true, as many as are spoken to at once.
fn pick(plan: &Plan, r: &Rollout, is_wanted: impl Fn(&super::state::NodeState) -> bool) -> Vec<usize> {
    r.of_stage(r.stage).filter(|(_, n)| is_wanted(n)).map(|(at, _)| at).take(plan.parallel).collect()
}

fn tasks(places: Vec<usize>, task: fn(usize) -> Task) -> Option<Next> {
    (!places.is_empty()).then(|| Next::Do(places.into_iter().map(task).collect()))
}

fn checking(plan: &Plan, r: &mut Rollout, now_ms: u64) -> Option<Next> {
    let mut todo = pick(plan, r, |n| n.is == Is::Waiting && !n.is_checked);
    if r.kind.is_none() {
        // The first one says what kind of plan it is.
        todo.truncate(1);
    }
    if !todo.is_empty() {
        return tasks(todo, Task::Check);
    }
    if has_failed(plan, r, now_ms) {
        return None;
    }
    if pick(plan, r, |n| n.is != Is::Refused).is_empty() {
        fail(plan, r, "none of the stage's nodes can be changed".into(), now_ms);
        return None;
    }
    let stage = r.stage;
    r.stages[stage].began_ms.get_or_insert(now_ms);
    r.phase = Phase::Changing;
    None
}

fn changing(plan: &Plan, r: &mut Rollout, now_ms: u64) -> Option<Next> {
    if has_failed(plan, r, now_ms) {
        return None;
    }
    let again = pick(plan, r, |n| n.is == Is::Waiting && !n.is_checked);
    if !again.is_empty() {
        return tasks(again, Task::Check);
    }
    let todo = pick(plan, r, |n| n.is == Is::Waiting);
    let (stage, n_nodes) = (r.stage, r.of_stage(r.stage).count());
    if todo.is_empty() {
        // Refused when it came to it: a stage in which nothing changed is no canary for the next.
        if pick(plan, r, |n| matches!(n.is, Is::Applied | Is::Confirmed | Is::Unchanged)).is_empty() {
            fail(plan, r, "none of the stage's nodes could be changed".into(), now_ms);
            return None;
        }
        r.stages[stage].changed_ms = Some(now_ms);
        let pause_ms = plan.stages.get(stage).map_or(0, |s| s.pause_ms);
        r.phase = Phase::Pausing { until_ms: now_ms + pause_ms };
        return None;
    }
    let until_ms = now_ms + 2 * plan.order_ms + plan.window_ms(stage, n_nodes);
    for at in &todo {
        let node = &mut r.nodes[*at];
        let n_tries = node.n_tries;
        node.becomes(Is::Applying, now_ms);
        // A BMC undoes nothing by itself.
        let until_ms = Some(until_ms).filter(|_| !plan.change.is_firmware());
        (node.undone_by_ms, node.why, node.n_tries) = (until_ms, None, n_tries + 1);
    }
    tasks(todo, Task::Apply)
}

fn gating(plan: &Plan, stage: usize, gate: usize, now_ms: u64) -> Phase {
    let limit_ms = plan.gates_of(stage).nth(gate).map_or(0, |(_, g)| g.hold_ms);
    Phase::Gating { gate, at_ms: now_ms, until_ms: now_ms + limit_ms }
}

fn confirming(plan: &Plan, r: &mut Rollout, now_ms: u64) -> Option<Next> {
    let todo = pick(plan, r, |n| n.is == Is::Applied);
    for at in &todo {
        let node = &mut r.nodes[*at];
        (node.is, node.at_ms, node.is_confirmed, node.n_tries) = (Is::Confirming, now_ms, true, node.n_tries + 1);
    }
    if !todo.is_empty() {
        return tasks(todo, Task::Confirm);
    }
    let stage = r.stage;
    r.stages[stage].passed_ms = Some(now_ms);
    let is_last = r.of_stage(stage + 1).next().is_none();
    if is_last {
        end(r, End::Done, now_ms);
    } else {
        (r.stage, r.phase) = (stage + 1, Phase::Checking);
    }
    None
}

fn undoing(plan: &Plan, r: &mut Rollout, is_all: bool, now_ms: u64) -> Option<Next> {
    let stage = r.stage;
    let is_meant = |n: &super::state::NodeState| (is_all || n.stage == Some(stage)) && n.may_be_changed();
    let todo: Vec<usize> = r
        .nodes
        .iter()
        .enumerate()
        .filter(|(_, n)| is_meant(n) && n.n_tries < MOST_TRIES)
        .map(|(at, _)| at)
        .take(plan.parallel)
        .collect();
    if todo.is_empty() {
        let is_left = r.nodes.iter().any(is_meant);
        let how = if is_left {
            End::NotUndone
        } else if is_all {
            End::AllUndone
        } else {
            End::StageUndone
        };
        end(r, how, now_ms);
        return None;
    }
    for at in &todo {
        let node = &mut r.nodes[*at];
        node.n_tries += 1;
        if node.id.is_some() {
            (node.is, node.at_ms) = (Is::Undoing, now_ms);
        } else {
            // Whether it has anything is to be learnt first.
            node.ask_at_ms = Some(now_ms);
        }
    }
    let named = todo.into_iter().filter(|at| r.nodes[*at].id.is_some()).collect();
    tasks(named, Task::Undo)
}
