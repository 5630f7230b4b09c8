//! SQLite's way with I/O errors, on reading a machine: operation N fails, for N over the whole run, in every way there is.
//!
//! Whatever fails: no panic in reading, showing, judging or reporting; and what the fault did not touch is still there.
//! On the small laptop every N is tried when `WAKEWATT_SLOW=1`, else a stride over all of them; on big hosts a stride.

use crate::tool::host;
use std::collections::BTreeSet;
use wakewatt::cmd::inspect;
use wakewatt::report::{Report, text};
use wakewatt::view::{self, Style};
use wakewatt_core::evidence::Evidence;
use wakewatt_core::facts::{Snapshot, TOPICS};
use wakewatt_core::rules::judge;
use wakewatt_core::source::{Source, Tree};
use wakewatt_host::faulty::{Fault, Faulty};
use wakewatt_host::recorded;

const FAULTS: [Fault; 5] = [Fault::Once, Fault::Forever, Fault::Vanish, Fault::Truncate, Fault::Binary];

/// The ids of the rows that are known.
fn known(snapshot: &Snapshot) -> BTreeSet<String> {
    let rows = snapshot.sheets().into_iter().flat_map(|(_, sheet)| sheet.rows);
    rows.filter(|row| row.cell.is_ok()).map(|row| row.id).collect()
}

/// What the known rows say of the machine as a whole; a row that names its CPUs claims nothing about the others.
fn said(snapshot: &Snapshot) -> BTreeSet<String> {
    let rows = snapshot.sheets().into_iter().flat_map(|(_, sheet)| sheet.rows).filter(|row| row.cpus.is_none());
    rows.filter_map(|row| row.cell.ok().map(|cell| format!("{} = {cell}", row.id))).collect()
}

/// Rows that may say something else after one failed read, and why.
const SECOND_BEST: &[(&str, &str)] = &[
    ("cache.", "a cache whose level or type cannot be read goes by its index: it is counted there"),
    ("irq.", "where an interrupt goes is then what it may go to"),
    ("virt.", "the next best sign of a hypervisor or container speaks"),
    ("idle.", "where the states of one CPU cannot be listed, sums go without it and a row says so"),
];

/// Everything that is done with facts, to see that nothing of it minds.
fn use_all(snapshot: &Snapshot, at: usize, fault: Fault) {
    let shown = view::facts(snapshot, &[], Style { is_on: false }, true);
    assert!(shown.contains("CPUs online"), "{fault:?} at {at}");
    assert_eq!(snapshot.sheets().len(), TOPICS.len(), "{fault:?} at {at}");
    let json: serde_json::Value = serde_json::from_str(&inspect::json(snapshot).unwrap()).unwrap();
    assert_eq!(json["schema"], "wakewatt/inspect/v1");
    let evidence = Evidence { facts: snapshot.clone(), ..Evidence::default() };
    let rulings = judge(&evidence);
    let report = Report::new("a host", "now", evidence, rulings);
    assert!(!report.to_text(text::Style::default()).is_empty() && !report.to_markdown().is_empty());
    // Once: filling the page is most of what this loop costs.
    assert!(report.to_html().unwrap().contains("</html>"));
}

struct Loss {
    at: usize,
    fault: Fault,
    what: String,
    n_lost: usize,
    n_known: usize,
    invented: Vec<String>,
}

/// The operations of a run, as words, to say which one a fault hit.
struct Log<'a>(&'a Tree, std::cell::RefCell<Vec<String>>);

impl Source for Log<'_> {
    fn read(&self, path: &str) -> wakewatt_core::source::Read<Vec<u8>> {
        self.1.borrow_mut().push(format!("read {path}"));
        self.0.read(path)
    }
    fn list(&self, path: &str) -> wakewatt_core::source::Read<Vec<String>> {
        self.1.borrow_mut().push(format!("list {path}"));
        self.0.list(path)
    }
    fn link(&self, path: &str) -> wakewatt_core::source::Read<String> {
        self.1.borrow_mut().push(format!("link {path}"));
        self.0.link(path)
    }
    fn msr(&self, cpu: u32, address: u32) -> wakewatt_core::source::Read<u64> {
        self.1.borrow_mut().push(format!("msr {address:x} of CPU {cpu}"));
        self.0.msr(cpu, address)
    }
    fn origin(&self) -> String {
        self.0.origin()
    }
}

/// Runs the loop; returns what each single fault cost.
fn check(name: &str, n_samples: usize) -> Vec<Loss> {
    let tree = recorded::open(&host(name)).unwrap();
    let log = Log(&tree, std::cell::RefCell::default());
    let healthy = Snapshot::read(&log, |_| true);
    let (whole, all_said) = (known(&healthy), said(&healthy));
    let operations = log.1.into_inner();
    let stride = operations.len().div_ceil(n_samples.min(operations.len())).max(1);
    let mut losses = Vec::new();
    // Shifted by the fault, so that five strides together meet more operations than one.
    for (shift, fault) in FAULTS.into_iter().enumerate() {
        for at in (shift * stride / FAULTS.len()..operations.len()).step_by(stride) {
            let source = Faulty::new(&tree, at, fault);
            let snapshot = Snapshot::read(&source, |_| true);
            assert!(source.n_operations() > at || fault == Fault::Forever, "{name}: the run depends on something else");
            use_all(&snapshot, at, fault);
            if fault != Fault::Forever {
                let n_lost = whole.difference(&known(&snapshot)).count();
                let invented = said(&snapshot).difference(&all_said).cloned().collect();
                losses.push(Loss { at, fault, what: operations[at].clone(), n_lost, n_known: whole.len(), invented });
            }
        }
    }
    losses
}

/// A single fault may cost its own facts and those that can only be found through it, not the rest.
fn assert_small(name: &str, mut losses: Vec<Loss>) {
    losses.sort_by_key(|l| std::cmp::Reverse(l.n_lost));
    let n_known = losses[0].n_known;
    let worst: Vec<String> = losses
        .iter()
        .take(12)
        .map(|l| format!("{} of {} lost by {:?} at {}: {}", l.n_lost, l.n_known, l.fault, l.at, l.what))
        .collect();
    let worst = worst.join("\n  ");
    println!("{name}: {} single faults; worst:\n  {worst}", losses.len());
    let invented: Vec<String> = losses
        .iter()
        .filter(|l| l.fault == Fault::Once)
        .flat_map(|l| l.invented.iter().map(move |row| format!("{row} when this fails: {}", l.what)))
        .filter(|row| !SECOND_BEST.iter().any(|(id, _)| row.starts_with(id)))
        .collect();
    assert!(invented.is_empty(), "{name}: a failed read must not make up facts:\n  {}", invented.join("\n  "));
    assert!(losses[0].n_lost * 2 < n_known, "{name}: one fault takes half of all facts:\n  {worst}");
    let n_many = losses.iter().filter(|l| l.n_lost * 20 > n_known).count();
    assert!(n_many * 20 <= losses.len(), "{name}: {n_many} of {} faults take over 5 %:\n  {worst}", losses.len());
}

fn is_slow_wanted() -> bool {
    std::env::var("WAKEWATT_SLOW").is_ok_and(|v| v == "1")
}

#[test]
fn any_failing_operation_on_the_laptop() {
    let n = if is_slow_wanted() { usize::MAX } else { 60 };
    assert_small("laptop", check("dell-latitude-5420-tgl", n));
}

#[test]
fn any_failing_operation_on_a_virtual_machine() {
    let n = if is_slow_wanted() { usize::MAX } else { 60 };
    assert_small("virtual machine", check("vm-haltpoll-2cpu", n));
}

#[test]
fn some_failing_operations_on_a_server() {
    assert_small("server", check("sklep0", if is_slow_wanted() { 60 } else { 6 }));
}

#[test]
fn a_source_that_answers_nothing_is_a_machine_of_which_nothing_is_known() {
    let empty = Tree::default();
    let source = Faulty::new(&empty, 0, Fault::Forever);
    let snapshot = Snapshot::read(&source, |_| true);
    use_all(&snapshot, 0, Fault::Forever);
}
