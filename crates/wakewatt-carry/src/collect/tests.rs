//! Collecting over a carrier that answers from memory: who is silent, who lies, who is asked twice.

use super::*;
use crate::carrier::{Order, Reply};
use std::sync::Mutex;
use wakewatt_core::record::wtrace::{Encoder, Header};
use wakewatt_core::source::Tree;

/// Answers by the node's name: `dark…` cannot be reached, `cut…` sends half, `bad…` ends with 3, `slow…` takes too long.
#[derive(Default)]
struct Fake {
    orders: Mutex<Vec<(String, Vec<String>)>>,
    left: Mutex<Vec<String>>,
}

fn host_text() -> Vec<u8> {
    wakewatt_core::record::host_file::write(&Tree::from_text("//- /proc/version\nLinux version 6.1.0\n"), &[]).into()
}

fn recording() -> Vec<u8> {
    let (mut encoder, mut bytes) = Encoder::start(&Header::default());
    bytes.extend(encoder.end());
    bytes
}

impl Carrier for Fake {
    fn word(&self) -> &'static str {
        "fake"
    }

    fn nodes(&self) -> Result<Vec<Node>, CarryError> {
        Ok(Vec::new())
    }

    fn run(&self, node: &NodeName, order: &Order) -> Result<Reply, CarryError> {
        self.orders.lock().unwrap().push((node.to_string(), order.arguments.clone()));
        let name = node.as_str();
        if name.starts_with("dark") {
            return Err(CarryError::Unreachable { node: node.clone(), why: "No route to host\n\u{1b}[2J".into() });
        }
        if name.starts_with("slow") {
            return Err(CarryError::TimedOut { node: node.clone(), within: order.within });
        }
        let mut output = if order.arguments[0] == "trace" { recording() } else { host_text() };
        if name.starts_with("cut") {
            output.truncate(output.len() / 2);
        }
        let code = if name.starts_with("bad") { 3 } else { 0 };
        Ok(Reply { code, output, said: "secret-host said so".into() })
    }

    fn leave(&self, node: &NodeName) -> Result<(), CarryError> {
        self.left.lock().unwrap().push(node.to_string());
        Ok(())
    }
}

fn nodes(names: &[&str]) -> Vec<Node> {
    let node = |name: &&str| Node {
        name: NodeName::new(*name).unwrap(),
        labels: [("rack".to_string(), "7".to_string())].into(),
        is_ready: None,
    };
    names.iter().map(node).collect()
}

const TRACE: What = What::Trace { for_ns: 1_000_000_000, most_mib: 4 };

struct Bench {
    dir: tempfile::TempDir,
    fake: Fake,
    index: Index,
    stop: AtomicBool,
}

impl Bench {
    fn new() -> Bench {
        let dir = tempfile::tempdir().unwrap();
        Bench { dir, fake: Fake::default(), index: Index::default(), stop: AtomicBool::new(false) }
    }

    fn collect(&mut self, names: &[&str], asked: &[What], is_masked: bool) -> usize {
        let folder = Folder::open(self.dir.path()).unwrap();
        let collection = Collection {
            carrier: &self.fake,
            folder: &folder,
            asked,
            n_parallel: 3,
            slack: Duration::from_secs(5),
            stop: &self.stop,
            now: &|| "2026-11-23T00:00:00Z".into(),
        };
        let called = called(nodes(names), is_masked, &mut BTreeMap::new());
        let mut n_told = 0;
        let told = &mut |_: &Index, _: &str| {
            n_told += 1;
            Ok::<(), ()>(())
        };
        collect(collection, &called, &mut self.index, told).unwrap();
        n_told
    }

    fn reason(&self, node: &str, what: What) -> Option<Reason> {
        match &self.index.answer(node, what)?.outcome {
            Outcome::Missing { reason, .. } => Some(*reason),
            Outcome::Whole { .. } => None,
        }
    }

    fn n_orders(&self) -> usize {
        self.fake.orders.lock().unwrap().len()
    }

    fn files(&self) -> Vec<String> {
        let read = std::fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<String> = read.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

#[test]
fn who_answers_is_a_file_and_who_does_not_has_a_reason() {
    let mut bench = Bench::new();
    let names = ["a", "b", "bad1", "cut1", "dark1", "slow1"];
    assert_eq!(bench.collect(&names, &[What::Capture, TRACE], false), 6);
    assert_eq!(bench.files(), ["a.host", "a.wtrace", "b.host", "b.wtrace"]);
    for (node, reason) in [
        ("bad1", Reason::Failed),
        ("cut1", Reason::NotWhole),
        ("dark1", Reason::Unreachable),
        ("slow1", Reason::TimedOut),
    ] {
        assert_eq!(bench.reason(node, What::Capture), Some(reason), "{node}");
    }
    // The silent are not asked a second time, those that answer badly are.
    assert_eq!(bench.reason("dark1", TRACE), Some(Reason::NotAsked));
    assert_eq!(bench.reason("bad1", TRACE), Some(Reason::Failed));
    assert_eq!(bench.n_orders(), 10);
    assert_eq!(bench.index.n_whole_of(), (4, 12));
    assert!(!bench.index.is_complete && bench.index.nodes["a"].labels["rack"] == "7");
    let mut left = bench.fake.left.lock().unwrap().clone();
    left.sort();
    assert_eq!(left, ["a", "b", "bad1", "cut1"], "where nothing can be reached nothing is cleared away");
    let text = serde_json::to_string(&bench.index).unwrap();
    assert!(!text.contains("\\u001b"), "{text}");
    assert_eq!(serde_json::from_str::<Index>(&text).unwrap(), bench.index);
}

#[test]
fn what_is_whole_is_not_asked_again() {
    let mut bench = Bench::new();
    bench.collect(&["a", "b", "dark1"], &[What::Capture], false);
    assert_eq!(bench.n_orders(), 3);
    // One file is changed, one is lost from the index, one was never there.
    bench.collect(&["a", "b", "dark1"], &[What::Capture], false);
    assert_eq!(bench.n_orders(), 4, "only the silent one");
    std::fs::write(bench.dir.path().join("a.host"), "wakewatt-host 1\n").unwrap();
    bench.collect(&["a", "b"], &[What::Capture], false);
    assert_eq!(bench.n_orders(), 5, "only the damaged one");
    // Another thing is another question; the same thing with other words, too.
    let asked = together(&bench.index.asked, &[TRACE]);
    assert_eq!(asked, [What::Capture, TRACE]);
    bench.collect(&["a", "b"], &asked, false);
    assert_eq!(bench.n_orders(), 7);
    let longer = What::Trace { for_ns: 2_000_000_000, most_mib: 4 };
    assert_eq!(together(&asked, &[longer]), [What::Capture, longer]);
    bench.collect(&["a", "b"], &together(&asked, &[longer]), false);
    assert_eq!(bench.n_orders(), 9);
    // An index that names other files than the node's own is not believed.
    let answer = &mut bench.index.nodes.get_mut("a").unwrap().answers[0];
    let Outcome::Whole { file, .. } = &mut answer.outcome else { panic!("{answer:?}") };
    *file = "b.host".into();
    bench.collect(&["a", "b"], &together(&asked, &[longer]), false);
    assert_eq!(bench.n_orders(), 10);
    // dark1 is still in the index.
    assert!(bench.index.nodes.contains_key("dark1") && !bench.index.is_complete);
}

#[test]
fn a_masked_collection_tells_no_name() {
    let mut bench = Bench::new();
    bench.collect(&["secret-host", "bad-secret", "dark-secret"], &[What::Capture], true);
    assert_eq!(bench.files(), ["node-0001.host"]);
    let text = serde_json::to_string(&bench.index).unwrap();
    assert!(!text.contains("secret") && !text.contains("rack"), "{text}");
    let mut known = BTreeMap::new();
    let first = called(nodes(&["x", "y"]), true, &mut known);
    let again = called(nodes(&["new", "y", "x"]), true, &mut known);
    assert_eq!((&first[1].name, &again[1].name, again[0].name.as_str()), (&first[1].name, &first[1].name, "node-0003"));
}

#[test]
fn an_interrupted_collection_asks_nothing_new_and_an_error_of_the_index_ends_it() {
    let mut bench = Bench::new();
    bench.stop.store(true, Ordering::Relaxed);
    bench.collect(&["a", "b"], &[What::Capture], false);
    assert_eq!((bench.n_orders(), bench.reason("a", What::Capture)), (0, Some(Reason::Interrupted)));
    let folder = Folder::open(bench.dir.path()).unwrap();
    let (stop, names) = (AtomicBool::new(false), vec!["n"; 50]);
    let collection = Collection {
        carrier: &bench.fake,
        folder: &folder,
        asked: &[What::Capture],
        n_parallel: 1,
        slack: Duration::ZERO,
        stop: &stop,
        now: &String::new,
    };
    let called = called(nodes(&names), false, &mut BTreeMap::new());
    assert_eq!(collect(collection, &called, &mut Index::default(), &mut |_, _| Err("disk full")), Err("disk full"));
    assert!(bench.n_orders() < 10, "{}", bench.n_orders());
}

#[test]
fn foreign_bytes_are_no_answer() {
    for bytes in [&b""[..], b"<html>502 Bad Gateway</html>", &[0xff; 100], b"{\"schema\":\"wakewatt/run/v9\"}"] {
        for what in [What::Capture, What::Wakeup, What::Doctor, TRACE] {
            assert!(what.check(bytes).is_err(), "{what:?} {bytes:?}");
        }
    }
    assert!(What::Capture.check(&host_text()).is_ok() && TRACE.check(&recording()).is_ok());
}
