//! The conductor with machines that answer as `tune` does, an operator who is killed at each write, and orders that get lost.

#![allow(clippy::unwrap_used)]

mod memory;

use memory::{Memory, Says};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use wakewatt_carry::book::{Book as _, BookError};
use wakewatt_carry::rollout::*;
use wakewatt_carry::{Carrier, CarryError, Node, NodeName, Order, Reply};
use wakewatt_fleet::rollout::gate::Word;
use wakewatt_fleet::rollout::machine::{resume, undo_all};
use wakewatt_fleet::rollout::plan::{Plan, parse};
use wakewatt_fleet::rollout::state::{Beginning, End, Is, Rollout};

/// One machine: its transactions, and how often it was changed.
#[derive(Default)]
struct Machine {
    has: BTreeMap<String, (String, bool)>,
    n_applied: u32,
}

#[derive(Default)]
struct Fleet {
    machines: Mutex<BTreeMap<String, Machine>>,
    /// Nodes that do not answer from now on.
    gone: Mutex<BTreeSet<String>>,
    /// Orders (the verb) whose answer is lost once.
    answers_lost: Mutex<BTreeSet<(String, String)>>,
    /// Nodes with another kind of plan.
    odd: BTreeSet<String>,
    said: Mutex<Vec<(String, String)>>,
}

impl Fleet {
    fn n_changed(&self) -> usize {
        self.machines.lock().unwrap().values().filter(|m| !m.has.is_empty()).count()
    }

    fn answer(&self, node: &str, order: &Order) -> (i32, Value) {
        let mut all = self.machines.lock().unwrap();
        let machine = all.entry(node.into()).or_default();
        let note = || order.arguments.iter().find_map(|a| a.strip_prefix("--note=")).unwrap().to_string();
        match order.arguments[1].as_str() {
            "plan" => {
                let name = if self.odd.contains(node) { "freq.governor" } else { "idle.max-latency" };
                let step = json!({"request": {"name": name, "to": ["50us"]}, "changes": [{"to_shown": "50us"}], "reversible": "exactly"});
                (0, json!({"schema": "wakewatt/tune-plan/v1", "steps": [step], "refused": []}))
            }
            "status" => {
                let one = |(id, (purpose, is_kept)): (&String, &(String, bool))| {
                    let phase = if *is_kept { "applied" } else { "unconfirmed" };
                    json!({"id": id, "purpose": purpose, "phase": phase, "undone_in_s": 100, "is_of_this_boot": true,
                        "settings": [{"name": "x", "path": "/x", "verdict": "holds"}]})
                };
                let all: Vec<Value> = machine.has.iter().map(one).collect();
                (0, json!({"schema": "wakewatt/tune-status/v1", "transactions": all}))
            }
            "apply" => {
                assert!(order.arguments.iter().any(|a| a.starts_with("--confirm-within=")));
                assert!(!order.lives_on.is_zero(), "the guard must live");
                machine.n_applied += 1;
                let id = format!("tune-{}", machine.n_applied);
                machine.has.insert(id.clone(), (format!("budget [{}]", note()), false));
                (0, json!({"schema": "wakewatt/tune-apply/v1", "id": id, "not_restored": []}))
            }
            "confirm" => match machine.has.get_mut(&order.arguments[2]) {
                Some(has) => {
                    has.1 = true;
                    (0, Value::Null)
                }
                None => (2, Value::Null),
            },
            "undo" => (i32::from(machine.has.remove(&order.arguments[2]).is_none()) * 2, Value::Null),
            other => panic!("{other}"),
        }
    }
}

impl Carrier for Fleet {
    fn word(&self) -> &'static str {
        "test"
    }
    fn nodes(&self) -> Result<Vec<Node>, CarryError> {
        Ok(Vec::new())
    }
    fn run(&self, node: &NodeName, order: &Order) -> Result<Reply, CarryError> {
        let verb = order.arguments[1].clone();
        self.said.lock().unwrap().push((node.to_string(), verb.clone()));
        let lost = || CarryError::Unreachable { node: node.clone(), why: "no route".into() };
        if self.gone.lock().unwrap().contains(node.as_str()) {
            return Err(lost());
        }
        let (code, output) = self.answer(node.as_str(), order);
        if self.answers_lost.lock().unwrap().remove(&(node.to_string(), verb)) {
            return Err(lost());
        }
        Ok(Reply { code, output: output.to_string().into_bytes(), said: String::new() })
    }
}

/// Time goes by only where somebody sleeps.
#[derive(Default)]
struct Now {
    ms: Cell<u64>,
    is_stopped: Cell<bool>,
    told: RefCell<Vec<String>>,
}

impl World for Now {
    fn now_ms(&self) -> u64 {
        self.ms.get()
    }
    fn sleep_ms(&self, ms: u64) {
        self.ms.set(self.ms.get() + ms);
    }
    fn is_stopped(&self) -> bool {
        self.is_stopped.get()
    }
    fn tell(&self, _: &Rollout, line: &str) {
        self.told.borrow_mut().push(line.into());
    }
}

const PLAN: &str = r#"
format = 1
name = "x"
parallel = 2
[change]
max_latency = "50us"
[targets]
all = true
[[stage]]
canary = 1
pause = "10s"
[[stage]]
percent = 100
[[gate]]
name = "g"
promql = "x"
below = 1
hold = "30s"
"#;

fn begun(n_nodes: usize) -> (Plan, Rollout) {
    let plan = parse(PLAN).unwrap();
    let names = (0..n_nodes).map(|n| format!("n{n}")).collect();
    let r = Rollout::new(&plan, PLAN, names, Beginning { id: "x-1".into(), ..Beginning::default() });
    (plan, r)
}

fn conducted(fleet: &Fleet, book: &mut Memory, word: Word, r: &mut Rollout, world: &Now) -> Result<Halt, BookError> {
    let plan = parse(PLAN).unwrap();
    Conductor { plan: &plan, carrier: fleet, book, judge: &Says(word), world, by: "ann" }.conduct(r)
}

fn run(fleet: &Fleet, word: Word) -> (Rollout, Memory) {
    let (_, mut r) = begun(5);
    let mut book = Memory::default();
    assert_eq!(conducted(fleet, &mut book, word, &mut r, &Now::default()).unwrap(), Halt::Ended);
    (r, book)
}

#[test]
fn all_goes_well_and_the_log_says_who_what_and_when() {
    let fleet = Fleet::default();
    let (r, book) = run(&fleet, Word::Passed);
    assert_eq!((r.end, fleet.n_changed()), (Some(End::Done), 5));
    let confirmed = book.lines.iter().filter(|l| l.contains(r#""what":"confirm""#) && l.contains(r#""result":"done""#));
    assert_eq!(confirmed.count(), 5);
    assert!(book.lines.iter().all(|l| l.contains(r#""who":"ann""#) && l.contains(r#""rollout":"x-1""#)));
    // The canary is kept before anybody else is changed.
    let said = fleet.said.lock().unwrap();
    let at = |node: &str, verb: &str| said.iter().position(|s| (s.0.as_str(), s.1.as_str()) == (node, verb)).unwrap();
    assert!(at("n0", "confirm") < at("n1", "apply"));
}

#[test]
fn a_failed_gate_puts_everything_back() {
    let fleet = Fleet::default();
    let (r, _) = run(&fleet, Word::Failed);
    assert_eq!((r.end, fleet.n_changed()), (Some(End::AllUndone), 0));
    assert!(r.why.unwrap().contains("gate g: as told"));
}

#[test]
fn a_store_that_is_down_is_asked_again_and_then_the_gate_has_failed() {
    let fleet = Fleet::default();
    let (r, book) = run(&fleet, Word::NoAnswer);
    assert_eq!((r.end, fleet.n_changed()), (Some(End::AllUndone), 0));
    assert!(book.lines.iter().filter(|l| l.contains("no answer: as told")).count() > 3, "asked again while it holds");
}

#[test]
fn a_node_whose_plan_is_of_another_kind_is_not_touched() {
    let fleet = Fleet { odd: BTreeSet::from(["n3".to_string()]), ..Fleet::default() };
    let (r, _) = run(&fleet, Word::Passed);
    assert_eq!((r.end, r.nodes[3].is, fleet.n_changed()), (Some(End::AllUndone), Is::Refused, 0));
    assert!(r.nodes[3].why.as_ref().unwrap().contains("another kind than the canary's"), "{:?}", r.nodes[3].why);
    assert!(!fleet.said.lock().unwrap().contains(&("n3".into(), "apply".into())));
}

#[test]
fn a_connection_that_is_lost_while_the_change_waits_is_a_failed_gate() {
    struct Cuts<'a>(&'a Fleet, Now);
    impl World for Cuts<'_> {
        fn now_ms(&self) -> u64 {
            self.1.now_ms()
        }
        fn sleep_ms(&self, ms: u64) {
            self.0.gone.lock().unwrap().insert("n0".into());
            self.1.sleep_ms(ms);
        }
        fn is_stopped(&self) -> bool {
            false
        }
        fn tell(&self, _: &Rollout, _: &str) {}
    }
    let fleet = Fleet::default();
    let (plan, mut r) = begun(3);
    let world = Cuts(&fleet, Now::default());
    let mut book = Memory::default();
    let judge = Says(Word::Passed);
    let mut conductor =
        Conductor { plan: &plan, carrier: &fleet, book: &mut book, judge: &judge, world: &world, by: "a" };
    conductor.conduct(&mut r).unwrap();
    assert_eq!((r.end, r.nodes[0].is), (Some(End::NotUndone), Is::Lost));
    assert!(r.nodes[0].undone_by_ms.is_some() && !r.nodes[0].is_confirmed, "it undoes itself");
    assert!(!fleet.said.lock().unwrap().iter().any(|s| s.1 == "confirm"), "nothing was kept");
}

#[test]
fn an_answer_that_is_lost_changes_nobody_twice() {
    for verb in ["apply", "confirm", "status", "plan"] {
        let fleet = Fleet::default();
        fleet.answers_lost.lock().unwrap().insert(("n0".into(), verb.into()));
        let (r, _) = run(&fleet, Word::Passed);
        let n_applied: u32 = fleet.machines.lock().unwrap().values().map(|m| m.n_applied).sum();
        match verb {
            // Before the change it is left out, and the canary was all there was.
            "status" | "plan" => assert_eq!((r.end, n_applied), (Some(End::AllUndone), 0), "{verb}"),
            _ => assert_eq!((r.end, n_applied, fleet.n_changed()), (Some(End::Done), 5, 5), "{verb}"),
        }
    }
}

#[test]
fn killed_at_any_write_it_goes_on_and_nobody_is_changed_twice() {
    for (word, end) in [(Word::Passed, End::Done), (Word::Failed, End::AllUndone)] {
        let mut n_killed = 0;
        for n_writes in 0..200 {
            let fleet = Fleet::default();
            let (_, mut r) = begun(4);
            let mut book = Memory { state: Some(r.to_bytes().unwrap()), n_left: Some(n_writes), ..Memory::default() };
            let world = Now::default();
            if conducted(&fleet, &mut book, word, &mut r, &world).is_ok() {
                break;
            }
            n_killed += 1;
            book.n_left = None;
            let mut r = Rollout::from_bytes(&book.read().unwrap().unwrap()).unwrap();
            resume(&mut r, world.now_ms());
            assert_eq!(conducted(&fleet, &mut book, word, &mut r, &world).unwrap(), Halt::Ended);
            let n = if end == End::Done { 4 } else { 0 };
            assert_eq!((r.end, fleet.n_changed()), (Some(end), n), "killed at write {n_writes}: {r:?}");
            assert!(fleet.machines.lock().unwrap().values().all(|m| m.n_applied <= 1 && m.has.len() <= 1));
        }
        assert!(n_killed > 30, "{n_killed}");
    }
}

#[test]
fn a_signal_stops_it_between_two_steps_and_a_person_can_have_everything_back() {
    let fleet = Fleet::default();
    let (_, mut r) = begun(4);
    let world = Now::default();
    world.is_stopped.set(true);
    let mut book = Memory::default();
    assert_eq!(conducted(&fleet, &mut book, Word::Passed, &mut r, &world).unwrap(), Halt::Stopped);
    assert!(fleet.said.lock().unwrap().is_empty(), "nobody was ordered anything");
    world.is_stopped.set(false);
    conducted(&fleet, &mut book, Word::Passed, &mut r, &world).unwrap();
    assert_eq!((r.end, fleet.n_changed()), (Some(End::Done), 4));
    undo_all(&mut r, "ann put it back".into());
    conducted(&fleet, &mut book, Word::Passed, &mut r, &world).unwrap();
    assert_eq!((r.end, fleet.n_changed()), (Some(End::AllUndone), 0));
}

#[test]
fn somebody_elses_change_is_left_alone() {
    let fleet = Fleet::default();
    let other = Machine { has: BTreeMap::from([("tune-1".into(), ("bob's".into(), false))]), n_applied: 1 };
    fleet.machines.lock().unwrap().insert("n0".into(), other);
    let (r, _) = run(&fleet, Word::Passed);
    assert!(r.nodes[0].why.as_ref().unwrap().contains("somebody else's change is under way there: tune-1, bob's"));
    assert_eq!(fleet.n_changed(), 1);
}
