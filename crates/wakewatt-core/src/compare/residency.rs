//! Where idle time went in two runs: which idle state got more of it, and which less.
//!
//! Case K3 was seen here first: after a kernel upgrade C6 had the time that C1 had before. Shares are of the time that CPUs
//! spent in any idle state, by the kernel's own counters (the state it asked for; hardware may have gone shallower).
//! A replay (modelled) stands beside another, or beside a trace of the machine's own work, and says so.
//! During the disk reads only the reading CPUs count. "Since boot" is everything before the facts were read, whatever
//! the machine did then, and is the weaker witness.

use crate::arrange::Arrange as _;
use crate::evidence::Evidence;
use crate::samples::IdleDelta;
use serde::Serialize;
use std::collections::BTreeMap;
use wakewatt_words::{say, word};

/// Less than this share moved is not mentioned.
const MOVED_RATIO: f64 = 0.05;

/// One state's share of the idle time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateShare {
    /// Name of the idle state.
    pub name: String,
    /// In the first run.
    pub a_ratio: f64,
    /// Its share of idle time in the second run, 0 to 1.
    pub b_ratio: f64,
}

/// Two runs' idle time under one condition.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Residency {
    /// While reading, while being woken, since boot.
    pub when: String,
    /// States, largest change first.
    pub states: Vec<StateShare>,
    /// "residency moved from C1 (70 to 10 %) to C6 (20 to 85 %)"; none where little moved.
    pub moved: Option<String>,
}

/// When a share was counted: data, looked up where it is shown.
const WHEN: [&str; 7] = [
    "while reading from disk",
    "while being woken",
    "during round trips",
    "replayed (both modelled)",
    "own work (A modelled)",
    "own work (B modelled)",
    "own work, traced",
];
/// The worst of them.
pub(super) const SINCE_BOOT: &str = "since boot";

/// All of them.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    WHEN.into_iter().chain([SINCE_BOOT])
}

type Times = BTreeMap<String, f64>;

/// Every condition that both runs saw.
pub fn of(a: &Evidence, b: &Evidence) -> Vec<Residency> {
    type Look = (&'static str, fn(&Evidence) -> Times);
    let looks: [Look; 5] = [
        (own_work_words(a, b), own_work),
        (WHEN[0], while_reading),
        (WHEN[1], |e| sum(e.samples.wakeups.iter().filter_map(|s| s.idle.as_ref()))),
        (WHEN[2], |e| sum(e.samples.network.iter().flat_map(|s| &s.idle))),
        (SINCE_BOOT, since_boot),
    ];
    looks.iter().filter_map(|(when, look)| join(when, &look(a), &look(b))).collect()
}

/// The machine's own work: as a replay predicts it, else as it was traced.
fn own_work(evidence: &Evidence) -> Times {
    let mut times = Times::new();
    let replayed = evidence.samples.replays.first().map(|r| &r.predicted.states);
    for state in replayed.into_iter().flatten() {
        *times.entry(state.state.clone()).or_default() += state.time_ns as f64;
    }
    if replayed.is_none() {
        for state in evidence.samples.trace.iter().flat_map(|trace| &trace.states) {
            *times.entry(state.state.clone()).or_default() += state.time_ns as f64;
        }
    }
    times
}

/// A model stands beside a measurement only under its name.
fn own_work_words(a: &Evidence, b: &Evidence) -> &'static str {
    let is_modelled = |e: &Evidence| !e.samples.replays.is_empty();
    match (is_modelled(a), is_modelled(b)) {
        (true, true) => WHEN[3],
        (true, false) => WHEN[4],
        (false, true) => WHEN[5],
        (false, false) => WHEN[6],
    }
}

fn while_reading(evidence: &Evidence) -> Times {
    sum(evidence.samples.disk.iter().flat_map(|s| s.idle.iter().filter(|d| s.cpus.contains(&d.cpu))))
}

fn sum<'a>(deltas: impl Iterator<Item = &'a IdleDelta>) -> Times {
    let mut times = Times::new();
    for state in deltas.flat_map(|d| &d.states) {
        *times.entry(state.name.clone()).or_default() += state.time_ns as f64;
    }
    times
}

fn since_boot(evidence: &Evidence) -> Times {
    let mut times = Times::new();
    for state in &evidence.facts.idle.states {
        for (cpus, ns) in state.time_ns.known() {
            for cpu in cpus.iter() {
                *times.entry(state.name_on(cpu)).or_default() += *ns as f64;
            }
        }
    }
    times
}

fn join(when: &str, a: &Times, b: &Times) -> Option<Residency> {
    let (total_a, total_b): (f64, f64) = (a.values().sum(), b.values().sum());
    if total_a <= 0.0 || total_b <= 0.0 {
        return None;
    }
    let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
    names.sort();
    names.dedup();
    let share = |times: &Times, name: &str, total: f64| times.get(name).copied().unwrap_or(0.0) / total;
    let mut states: Vec<StateShare> = names
        .into_iter()
        .map(|name| StateShare {
            name: name.clone(),
            a_ratio: share(a, name, total_a),
            b_ratio: share(b, name, total_b),
        })
        .filter(|s| s.a_ratio > 0.0 || s.b_ratio > 0.0)
        .collect();
    let change = |s: &StateShare| s.b_ratio - s.a_ratio;
    states.arrange_by(|x, y| change(y).abs().total_cmp(&change(x).abs()));
    let list = |is_wanted: &dyn Fn(f64) -> bool| {
        let words = states.iter().filter(|s| is_wanted(change(s)));
        words
            .map(|s| say!("{} ({:.0} to {:.0} %)", s.name, s.a_ratio * 100.0, s.b_ratio * 100.0))
            .collect::<Vec<_>>()
            .join(word!(" and "))
    };
    let (from, to) = (list(&|c| c <= -MOVED_RATIO), list(&|c| c >= MOVED_RATIO));
    let moved = match (from.is_empty(), to.is_empty()) {
        (false, false) => Some(say!("residency moved from {from} to {to}")),
        (false, true) => Some(say!("residency left {from} for several others")),
        (true, false) => Some(say!("residency came to {to} from several others")),
        (true, true) => None,
    };
    Some(Residency { when: when.into(), states, moved })
}
