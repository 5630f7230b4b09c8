//! The conductor: step by step, each written in the book before it is done and after.
//!
//! Whatever the machine gives away at once is done at once, by a thread for each, while this one renews the hold on the book. A
//! book that cannot be written ends it there: what is under way is finished, nothing more is ordered, and the nodes undo
//! themselves. A signal ends it between two steps.

use super::orders::Orders;
use crate::book::{Book, BookError};
use crate::carrier::Carrier;
use crate::node::NodeName;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use wakewatt_fleet::rollout::gate::{Verdict, Word};
use wakewatt_fleet::rollout::machine::{Next, Outcome, Task, settle, step};
use wakewatt_fleet::rollout::plan::{Gate, Plan};
use wakewatt_fleet::rollout::state::{Is, NodeState, Rollout};

/// Longest sleep between two looks at the flag.
const LOOK_MS: u64 = 500;

/// Who asks a gate.
pub trait Judge: Sync {
    /// Within the gate's own limit.
    fn judge(&self, gate: &Gate, rollout: &Rollout) -> Verdict;
}

/// Time, the flag of a signal, and who is told.
pub trait World {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> u64;
    /// Sleeps, and not past a signal.
    fn sleep_ms(&self, ms: u64);
    /// Is it to stop?
    fn is_stopped(&self) -> bool;
    /// A line for people: what happened.
    fn tell(&self, rollout: &Rollout, line: &str);
}

/// Why the conductor came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// The rollout has ended.
    Ended,
    /// A signal came; it can be gone on with.
    Stopped,
}

/// Everything that is needed.
pub struct Conductor<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// How nodes are reached.
    pub carrier: &'a dyn Carrier,
    /// Where it is written down.
    pub book: &'a mut dyn Book,
    /// Who asks gates.
    pub judge: &'a dyn Judge,
    /// Time and signals.
    pub world: &'a dyn World,
    /// User and machine, for the log.
    pub by: &'a str,
}

impl Conductor<'_> {
    /// Goes on until it ends, a signal comes, or the book is lost.
    pub fn conduct(&mut self, r: &mut Rollout) -> Result<Halt, BookError> {
        let mut renewed_ms = self.world.now_ms();
        loop {
            if self.world.is_stopped() {
                self.write(r)?;
                return Ok(Halt::Stopped);
            }
            let next = step(self.plan, r, self.world.now_ms());
            self.write(r)?;
            renewed_ms = renewed_ms.max(self.world.now_ms());
            match next {
                Next::Ended => {
                    let end = r.end.map(|e| json!(e)).unwrap_or_default();
                    self.log(r, "end", None, &json!({ "result": end, "why": r.why }))?;
                    self.leave(r);
                    return Ok(Halt::Ended);
                }
                Next::Wait(until_ms) => {
                    while self.world.now_ms() < until_ms && !self.world.is_stopped() {
                        let left_ms = until_ms.saturating_sub(self.world.now_ms());
                        self.world.sleep_ms(left_ms.clamp(1, LOOK_MS));
                        if self.is_renewal_due(renewed_ms) {
                            self.book.renew()?;
                            renewed_ms = self.world.now_ms();
                        }
                    }
                }
                Next::Do(tasks) => self.all(r, &tasks)?,
            }
        }
    }

    fn is_renewal_due(&self, renewed_ms: u64) -> bool {
        let every_ms = self.book.renew_every_s().map(|s| s.saturating_mul(1000));
        every_ms.is_some_and(|every_ms| self.world.now_ms().saturating_sub(renewed_ms) >= every_ms)
    }

    /// All of these at once; each result is written down as it comes, the state when all have come.
    fn all(&mut self, r: &mut Rollout, tasks: &[Task]) -> Result<(), BookError> {
        for task in tasks {
            if let Some((what, node)) = ordered(*task, r) {
                self.log(r, what, Some(&node), &json!({ "result": "ordered" }))?;
            }
        }
        let (carrier, plan, judge) = (self.carrier, self.plan, self.judge);
        let before = r.clone();
        let (tell, told) = channel();
        let mut lost = None;
        std::thread::scope(|scope| {
            for task in tasks {
                let (tell, before, task) = (tell.clone(), &before, *task);
                scope.spawn(move || tell.send((task, outcome(carrier, plan, judge, before, task))));
            }
            drop(tell);
            let pause = self.book.renew_every_s().map_or(Duration::from_secs(3600), Duration::from_secs);
            loop {
                match told.recv_timeout(pause) {
                    Ok((task, outcome)) => {
                        let now_ms = self.world.now_ms();
                        settle(self.plan, r, task, outcome.clone(), now_ms);
                        // The others are waited for whatever happens; no more is ordered.
                        let noted = self.note(r, task, &outcome);
                        lost = lost.take().or(noted.err());
                    }
                    Err(RecvTimeoutError::Timeout) => lost = lost.take().or(self.book.renew().err()),
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        });
        self.write(r)?;
        lost.map_or(Ok(()), Err)
    }

    /// Log, people, and the node's own marks.
    fn note(&mut self, r: &Rollout, task: Task, outcome: &Outcome) -> Result<(), BookError> {
        let result = in_words(outcome);
        let (what, place) = match task {
            Task::Check(at) => ("check", at),
            Task::Apply(at) => ("apply", at),
            Task::Ask(at) => ("ask", at),
            Task::Confirm(at) => ("confirm", at),
            Task::Undo(at) => ("undo", at),
            Task::Judge(at) => {
                let gate = self.plan.gates.get(at).map_or("", |g| g.name.as_str());
                let is_in_force = !r.of_stage(r.stage).any(|(_, node)| node.waits_for_boot);
                let remark =
                    if is_in_force { "" } else { "; the change still waits for a boot, so this says nothing of it" };
                let result = format!("{result}{remark}");
                self.world.tell(r, &format!("gate {gate}: {result}"));
                return self.log(r, "gate", None, &json!({ "gate": gate, "result": result }));
            }
        };
        let Some(node) = r.nodes.get(place) else { return Ok(()) };
        // What it came to, where that says more than the answer: a plan of another kind is an answer, too.
        let result = match (node.is, &node.why) {
            (Is::Refused | Is::Lost, Some(why)) => {
                format!("{}: {why}", if node.is == Is::Lost { "LOST" } else { "left out" })
            }
            _ => result,
        };
        self.world.tell(r, &format!("{}: {what}: {result}", node.name));
        let at = json!({ "result": result, "node_is": node.is, "transaction": node.id });
        self.log(r, what, Some(&node.name.clone()), &at)?;
        match NodeName::new(node.name.clone()) {
            Ok(name) => self.book.annotate(&name, &annotations(r, node)),
            Err(_) => Ok(()),
        }
    }

    fn write(&mut self, r: &Rollout) -> Result<(), BookError> {
        let broken = |why| BookError::Broken { place: self.book.place(), why };
        let bytes = r.to_bytes().map_err(broken)?;
        self.book.write(&bytes)
    }

    /// A line of the audit log.
    pub fn log(
        &mut self,
        r: &Rollout,
        what: &str,
        node: Option<&str>,
        more: &serde_json::Value,
    ) -> Result<(), BookError> {
        let now_ms = self.world.now_ms();
        let mut line =
            json!({ "at_ms": now_ms, "who": self.by, "rollout": r.id, "stage": r.stage, "what": what, "node": node });
        if let (Some(line), Some(more)) = (line.as_object_mut(), more.as_object()) {
            line.extend(more.clone());
        }
        self.book.audit(&line.to_string())
    }

    /// Nothing of ours is needed any more where nothing waits for its confirmation.
    fn leave(&self, r: &Rollout) {
        let names: Vec<NodeName> = r
            .nodes
            .iter()
            .filter(|n| !n.may_be_changed() || n.is == Is::Confirmed)
            .filter_map(|n| NodeName::new(n.name.clone()).ok())
            .collect();
        let carrier = self.carrier;
        for part in names.chunks(self.plan.parallel.max(1)) {
            std::thread::scope(|scope| {
                let leave = |node| scope.spawn(move || carrier.leave(node).err());
                let all: Vec<_> = part.iter().map(leave).collect();
                for why in all.into_iter().filter_map(|h| h.join().ok().flatten()) {
                    self.world.tell(r, &format!("left behind: {why}"));
                }
            });
        }
    }
}

/// What is to be seen at a node.
pub fn annotations(r: &Rollout, node: &NodeState) -> BTreeMap<String, String> {
    let word = json!(node.is).as_str().unwrap_or_default().to_string();
    BTreeMap::from([
        ("rollout".to_string(), r.id.clone()),
        ("rollout-state".to_string(), word),
        ("transaction".to_string(), node.id.clone().unwrap_or_default()),
    ])
}

/// What changes something, by its word.
fn ordered(task: Task, r: &Rollout) -> Option<(&'static str, String)> {
    let (what, at) = match task {
        Task::Apply(at) => ("apply", at),
        Task::Confirm(at) => ("confirm", at),
        Task::Undo(at) => ("undo", at),
        Task::Check(_) | Task::Ask(_) | Task::Judge(_) => return None,
    };
    Some((what, r.nodes.get(at)?.name.clone()))
}

fn in_words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Fits(kind) => format!("answers, and would do: {}", kind.join("; ")),
        Outcome::Has(found) => format!("has {} ({:?})", found.id, found.how).to_lowercase(),
        Outcome::HasNone => "has nothing of this rollout".into(),
        Outcome::Refused(why) => format!("refused: {why}"),
        Outcome::Changed(id) => format!("changed: {id}"),
        Outcome::WasSo => "was so already".into(),
        Outcome::Done => "done".into(),
        Outcome::Staged(why) => format!("staged: {why}"),
        Outcome::Unsure(why) => format!("not known: {why}"),
        Outcome::Judged(verdict) => {
            let word = match verdict.word {
                Word::Passed => "passed",
                Word::Failed => "FAILED",
                Word::CannotTell => "cannot tell",
                Word::NoAnswer => "no answer",
            };
            format!("{word}: {}", verdict.why)
        }
    }
}

fn outcome(carrier: &dyn Carrier, plan: &Plan, judge: &dyn Judge, r: &Rollout, task: Task) -> Outcome {
    let (Task::Check(at) | Task::Apply(at) | Task::Ask(at) | Task::Confirm(at) | Task::Undo(at)) = task else {
        let Task::Judge(at) = task else { return Outcome::Unsure("no such task".into()) };
        return match plan.gates.get(at) {
            Some(gate) => Outcome::Judged(judge.judge(gate, r)),
            None => Outcome::Judged(Verdict::new(Word::Failed, "the plan has no such gate")),
        };
    };
    let Some(state) = r.nodes.get(at) else { return Outcome::Unsure("no such node".into()) };
    let node = match NodeName::new(state.name.clone()) {
        Ok(node) => node,
        Err(why) => return Outcome::Refused(why.to_string()),
    };
    let orders = Orders { carrier, plan, id: &r.id };
    let came = match task {
        Task::Check(_) => orders.check(&node),
        Task::Apply(_) => {
            let stage = state.stage.unwrap_or(r.stage);
            orders.apply(&node, plan.window_ms(stage, r.of_stage(stage).count()))
        }
        Task::Ask(_) => orders.ask(&node),
        Task::Confirm(_) => orders.end(&node, "confirm", state.id.as_deref()),
        Task::Undo(_) | Task::Judge(_) => orders.end(&node, "undo", state.id.as_deref()),
    };
    // Back in service whatever came of it; also where another operator was cut short after taking it out.
    if matches!(task, Task::Apply(_) | Task::Ask(_) | Task::Undo(_)) {
        if let Err(why) = carrier.put_back(&node) {
            return match came {
                Outcome::Refused(own) => Outcome::Refused(format!("{own}; and it stays out of service: {why}")),
                _ => Outcome::Unsure(format!("it stays out of service: {why}")),
            };
        }
    }
    came
}
