//! The machine against a world that lies in wait: orders that get lost on the way there or on the way back, or arrive late, nodes
//! that stop answering, gates that fail, and an operator who is killed before and after every write.

use super::super::gate::Word;
use super::super::plan::{CannotTell, parse};
use super::super::state::Beginning;
use super::*;
use proptest::prelude::*;

/// A node as it is in truth.
#[derive(Clone, Debug, Default)]
struct Machine {
    /// Transaction, whether it is kept, until when.
    has: Option<(String, bool, u64)>,
    /// An order that arrives later.
    late_ms: Option<u64>,
    n_transactions: u32,
    is_gone: bool,
}

struct World {
    nodes: Vec<Machine>,
    now_ms: u64,
    luck: Vec<u8>,
    at: usize,
    passed: Vec<usize>,
    plan: Plan,
}

impl World {
    /// The next bit of fate; when it is used up, all goes well.
    fn luck(&mut self) -> u8 {
        self.at += 1;
        self.luck.get(self.at - 1).copied().unwrap_or(255)
    }

    fn goes_by(&mut self, ms: u64) {
        self.now_ms += ms;
        for node in &mut self.nodes {
            if node.late_ms.is_some_and(|at| at <= self.now_ms) {
                node.late_ms = None;
                node.n_transactions += 1;
                let id = format!("tune-{}", node.n_transactions);
                assert!(node.has.is_none(), "changed twice");
                node.has = Some((id, false, self.now_ms + 10_000_000));
            }
            if node.has.as_ref().is_some_and(|(_, is_kept, until)| !is_kept && *until <= self.now_ms) {
                node.has = None;
            }
        }
    }

    fn found(&self, at: usize) -> Outcome {
        match &self.nodes[at].has {
            None => Outcome::HasNone,
            Some((id, is_kept, until)) => Outcome::Has(Found {
                waits: Waits::Nothing,
                id: id.clone(),
                how: if *is_kept { How::Kept } else { How::Unconfirmed },
                undone_in_ms: (!is_kept).then(|| until - self.now_ms),
                broken: None,
            }),
        }
    }

    fn does(&mut self, task: Task, r: &Rollout) -> Outcome {
        let lost = || Outcome::Unsure("no answer".into());
        let luck = self.luck();
        self.goes_by(u64::from(luck) * 10);
        if let Task::Judge(_) = task {
            return Outcome::Judged(match luck {
                0..=40 => Verdict::new(Word::Failed, "worse"),
                41..=80 => Verdict::new(Word::CannotTell, "too little"),
                _ => {
                    self.passed.push(r.stage);
                    Verdict::new(Word::Passed, "fine")
                }
            });
        }
        let (Task::Check(at) | Task::Apply(at) | Task::Ask(at) | Task::Confirm(at) | Task::Undo(at)) = task else {
            unreachable!("judged above")
        };
        if luck == 7 {
            self.nodes[at].is_gone = true;
        }
        if self.nodes[at].is_gone {
            return lost();
        }
        let is_lost_there = luck < 20;
        let is_lost_back = (20..50).contains(&luck);
        if is_lost_there {
            if matches!(task, Task::Apply(_)) && luck.is_multiple_of(2) {
                self.nodes[at].late_ms = Some(self.now_ms + 1_000);
            }
            return lost();
        }
        let now_ms = self.now_ms;
        let node = &mut self.nodes[at];
        let done = match task {
            Task::Check(_) => match self.found(at) {
                Outcome::HasNone if luck == 60 => Outcome::Fits(vec!["another".into()]),
                Outcome::HasNone => Outcome::Fits(vec!["same".into()]),
                has => has,
            },
            Task::Apply(_) if luck == 61 => Outcome::Refused("not here".into()),
            Task::Apply(_) if luck == 62 => Outcome::WasSo,
            Task::Apply(_) => {
                assert!(node.has.is_none() && node.late_ms.is_none(), "changed twice");
                node.n_transactions += 1;
                let id = format!("tune-{}", node.n_transactions);
                node.has = Some((id.clone(), false, now_ms + 10_000_000));
                Outcome::Changed(id)
            }
            Task::Ask(_) => self.found(at),
            Task::Confirm(_) => {
                let stage = r.nodes[at].stage.unwrap();
                assert!(self.passed.contains(&stage), "confirmed before its gate");
                let id = r.nodes[at].id.clone();
                match &mut node.has {
                    Some(has) if Some(&has.0) == id.as_ref() => {
                        has.1 = true;
                        Outcome::Done
                    }
                    _ => Outcome::Refused("no such transaction".into()),
                }
            }
            Task::Undo(_) => {
                node.has = None;
                Outcome::Done
            }
            Task::Judge(_) => unreachable!("judged above"),
        };
        if is_lost_back { lost() } else { done }
    }
}

const PLAN: &str = r#"
format = 1
name = "x"
on_failure = "ON_FAILURE"
parallel = 3
max_left_out = 1
[change]
profile = "latency"
[targets]
all = true
[[stage]]
canary = 1
pause = "10s"
[[stage]]
count = 3
[[stage]]
percent = 100
pause = "5s"
[[gate]]
name = "g"
promql = "x"
below = 1
hold = "60s"
"#;

fn life(luck: Vec<u8>, kills: &[u8], on_failure: &str) -> (World, Rollout) {
    let text = PLAN.replace("ON_FAILURE", on_failure);
    let plan = parse(&text).unwrap();
    let names: Vec<String> = (0..8).map(|n| format!("n{n}")).collect();
    let begun = Beginning { id: "x-1".into(), now_ms: 1_000, ..Beginning::default() };
    let mut r = Rollout::new(&plan, &text, names, begun);
    let nodes = vec![Machine::default(); 8];
    let mut world = World { nodes, now_ms: 1_000, luck, at: 0, passed: Vec::new(), plan };
    let plan = world.plan.clone();
    let mut book = r.to_bytes().unwrap();
    let mut kills = kills.iter().copied();
    let mut is_killed = || kills.next().is_some_and(|k| k < 30);
    for _ in 0..5_000 {
        let next = step(&plan, &mut r, world.now_ms);
        let tasks = match next {
            Next::Ended => return (world, r),
            Next::Wait(until_ms) => {
                assert!(until_ms > world.now_ms, "a wait for what is past");
                world.goes_by(until_ms - world.now_ms);
                continue;
            }
            Next::Do(tasks) => tasks,
        };
        assert!(tasks.len() <= plan.parallel && !tasks.is_empty());
        let back = |book: &[u8], now_ms: u64| {
            let mut r = Rollout::from_bytes(book).unwrap();
            resume(&mut r, now_ms);
            r
        };
        if is_killed() {
            r = back(&book, world.now_ms);
            continue;
        }
        book = r.to_bytes().unwrap();
        if is_killed() {
            r = back(&book, world.now_ms);
            continue;
        }
        let mut is_dead = false;
        for task in tasks {
            let outcome = world.does(task, &r);
            if is_killed() {
                is_dead = true;
                break;
            }
            let now_ms = world.now_ms;
            settle(&plan, &mut r, task, outcome, now_ms);
            book = r.to_bytes().unwrap();
        }
        if is_dead {
            world.goes_by(5_000);
            r = back(&book, world.now_ms);
        }
    }
    panic!("it does not end: {r:?}");
}

/// What an end promises.
fn holds(world: &World, r: &Rollout) {
    let has = |at: usize| world.nodes[at].has.is_some();
    for (at, node) in r.nodes.iter().enumerate() {
        let truth = &world.nodes[at];
        match node.is {
            Is::Waiting | Is::Undone | Is::Refused | Is::Unchanged => {
                assert!(!has(at), "{}: is called {:?} and has {:?}", node.name, node.is, truth.has);
            }
            // Settings of a running system wait for no boot.
            Is::UndoWaits => panic!("{}: waits for a boot", node.name),
            Is::Confirmed => assert!(truth.has.as_ref().is_some_and(|h| h.1), "{} keeps nothing", node.name),
            Is::Applying | Is::Applied | Is::Confirming | Is::Undoing | Is::Lost => {
                assert!(!matches!(r.end, Some(End::Done | End::AllUndone)), "{:?} at the end: {r:?}", node.is);
            }
        }
    }
    match r.end {
        Some(End::Done) => assert!(r.stages.iter().all(|s| s.passed_ms.is_some()) && r.why.is_none()),
        Some(End::AllUndone) => assert!((0..8).all(|at| !has(at))),
        Some(End::StageUndone) => assert!(r.of_stage(r.stage).all(|(at, _)| !has(at))),
        Some(End::Stopped) => assert!(r.why.is_some()),
        Some(End::NotUndone) => {
            let left = r.nodes.iter().filter(|n| n.may_be_changed()).count();
            assert!(left > 0 && r.why.is_some());
        }
        None => panic!("ended without an end"),
    }
}

#[test]
fn without_bad_luck_every_stage_passes_in_order() {
    let (world, r) = life(vec![], &[], "undo-all");
    assert_eq!(r.end, Some(End::Done));
    assert!(r.nodes.iter().all(|n| n.is == Is::Confirmed && n.is_confirmed));
    assert!(r.stages.windows(2).all(|s| s[0].passed_ms <= s[1].began_ms) && world.passed == [0, 1, 2]);
    holds(&world, &r);
}

#[test]
fn a_gate_that_never_can_tell_has_failed_when_its_time_is_up() {
    let mut r = {
        let plan = parse(&PLAN.replace("ON_FAILURE", "undo-all")).unwrap();
        let names = (0..8).map(|n| format!("n{n}")).collect();
        Rollout::new(&plan, "", names, Beginning::default())
    };
    let plan = parse(&PLAN.replace("ON_FAILURE", "undo-all")).unwrap();
    assert_eq!(plan.gates[0].cannot_tell, CannotTell::Hold);
    r.phase = Phase::Gating { gate: 0, at_ms: 0, until_ms: 60_000 };
    let unsure = || Outcome::Judged(Verdict::new(Word::CannotTell, "the store does not answer"));
    let mut now_ms = 0;
    while matches!(r.phase, Phase::Gating { .. }) {
        match step(&plan, &mut r, now_ms) {
            Next::Do(tasks) => settle(&plan, &mut r, tasks[0], unsure(), now_ms),
            Next::Wait(until_ms) => now_ms = until_ms,
            Next::Ended => break,
        }
    }
    assert_eq!((now_ms, r.phase), (60_000, Phase::Undoing { is_all: true }));
    assert!(r.why.unwrap().contains("gate g: the store does not answer"));
}

#[test]
fn a_person_can_have_everything_back_after_the_end() {
    let (mut world, mut r) = life(vec![], &[], "undo-all");
    undo_all(&mut r, "asked for".into());
    let plan = world.plan.clone();
    while let Next::Do(tasks) = step(&plan, &mut r, world.now_ms) {
        for task in tasks {
            let outcome = world.does(task, &r);
            settle(&plan, &mut r, task, outcome, world.now_ms);
        }
    }
    assert_eq!(r.end, Some(End::AllUndone));
    holds(&world, &r);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn whatever_happens_the_end_is_what_it_says(
        luck in prop::collection::vec(any::<u8>(), 0..200),
        kills in prop::collection::vec(any::<u8>(), 0..80),
        on_failure in prop::sample::select(vec!["undo-all", "undo-stage", "stop"]),
    ) {
        let (world, r) = life(luck, &kills, on_failure);
        holds(&world, &r);
    }

    #[test]
    fn a_book_of_anything_is_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Rollout::from_bytes(&bytes).is_err());
    }
}
