//! The readers of what other machines answer: lists of nodes, replies to a rollout's orders, and what a BMC says.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use wakewatt_bios::service::{Document, NoDocument, Service};
use wakewatt_carry::book::{Book, BookError};
use wakewatt_carry::kubernetes::answer::Answer;
use wakewatt_carry::rollout::{Conductor, Judge, World, look};
use wakewatt_carry::{Carrier, CarryError, Node, NodeName, Order, Reply};
use wakewatt_fleet::rollout::gate::{Verdict, Word};
use wakewatt_fleet::rollout::plan::{Gate, parse};
use wakewatt_fleet::rollout::state::{Beginning, Rollout};

/// Lists of machines and of BMCs.
pub(crate) fn hosts(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = (wakewatt_carry::hosts::parse(&text), wakewatt_carry::bmc::list::parse(&text));
}

const PLAN: &str = r#"
format = 1
name = "x"
[change]
max_latency = "50us"
[targets]
all = true
[[stage]]
canary = 1
"#;

/// Every order is answered by the next part of the bytes: an exit code, then output.
struct Answers<'a> {
    parts: Vec<&'a [u8]>,
    n_asked: AtomicU64,
}

impl Carrier for Answers<'_> {
    fn word(&self) -> &'static str {
        "fuzz"
    }
    fn nodes(&self) -> Result<Vec<Node>, CarryError> {
        Ok(Vec::new())
    }
    fn run(&self, node: &NodeName, order: &Order) -> Result<Reply, CarryError> {
        let at = usize::try_from(self.n_asked.fetch_add(1, Ordering::Relaxed)).unwrap_or(0);
        match self.parts.get(at % self.parts.len().max(1)).and_then(|part| part.split_first()) {
            Some((code, output)) => Ok(Reply {
                code: i32::from(*code % 10),
                output: output.to_vec(),
                said: String::from_utf8_lossy(output).into(),
            }),
            None => Err(CarryError::TimedOut { node: node.clone(), within: order.within }),
        }
    }
}

struct Memory;

impl Book for Memory {
    fn place(&self) -> String {
        "memory".into()
    }
    fn read(&mut self) -> Result<Option<Vec<u8>>, BookError> {
        Ok(None)
    }
    fn write(&mut self, state: &[u8]) -> Result<(), BookError> {
        assert!(Rollout::from_bytes(state).is_ok(), "what is written is read again");
        Ok(())
    }
    fn audit(&mut self, line: &str) -> Result<(), BookError> {
        assert!(!line.contains('\n'));
        Ok(())
    }
    fn annotate(&mut self, _: &NodeName, _: &BTreeMap<String, String>) -> Result<(), BookError> {
        Ok(())
    }
}

struct Gates;

impl Judge for Gates {
    fn judge(&self, _: &Gate, _: &Rollout) -> Verdict {
        Verdict::new(Word::Passed, "")
    }
}

/// Time goes by where somebody sleeps; after a year nobody waits any more.
#[derive(Default)]
struct Clock(AtomicU64);

impl World for Clock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    fn sleep_ms(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
    fn is_stopped(&self) -> bool {
        self.now_ms() > 366 * 86_400_000
    }
    fn tell(&self, _: &Rollout, _: &str) {}
}

/// What nodes answer to a rollout's orders, whole rollouts long; and logs of pods.
pub(crate) fn replies(bytes: &[u8]) {
    let _ = Answer::from_lines(&String::from_utf8_lossy(bytes), 1 << 16);
    let (Ok(plan), Ok(node)) = (parse(PLAN), NodeName::new("n0")) else { return };
    let carrier =
        Answers { parts: bytes.split(|byte| *byte == b'\x1e').take(16).collect(), n_asked: AtomicU64::new(0) };
    let _ = look(&carrier, &plan, std::slice::from_ref(&node));
    let beginning = Beginning { id: "x-1".into(), carrier: "fuzz".into(), ..Beginning::default() };
    let mut rollout = Rollout::new(&plan, PLAN, vec![node.into()], beginning);
    let world = Clock::default();
    let mut conductor =
        Conductor { plan: &plan, carrier: &carrier, book: &mut Memory, judge: &Gates, world: &world, by: "fuzz" };
    let _ = conductor.conduct(&mut rollout);
    let _ = rollout.sentence();
}

/// A BMC that answers every question with parts of the bytes, by their paths.
struct Tree(serde_json::Value);

impl Service for Tree {
    fn get(&mut self, path: &str) -> Result<Document, NoDocument> {
        let json = self.0.get(path.trim_end_matches('/')).cloned();
        json.map(|json| Document { json, etag: None }).ok_or_else(|| NoDocument::Absent(path.into()))
    }
    fn origin(&self) -> String {
        "fuzz".into()
    }
}

/// Documents of a BMC by path: walked, shown, planned and verified.
pub(crate) fn bmc(bytes: &[u8]) {
    use wakewatt_bios::{plan::plan, show::show, verify::verify, walk, wish::Wish};
    let Ok(tree) = serde_json::from_slice(bytes) else { return };
    let Ok(machine) = walk::machine(&mut Tree(tree), None) else { return };
    let _ = show(&machine, true);
    let Ok(bios) = &machine.bios else { return };
    let wishes: Vec<Wish> =
        ["bios.c-states=off", "bios.profile=performance", "attr:A=B"].into_iter().flat_map(Wish::parse).collect();
    let _ = plan(&machine, bios, &wishes);
    let _ = verify(&machine, bios, None, None);
}
