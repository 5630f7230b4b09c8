//! Idle states, claimed beside measured.
//!
//! Claimed: exit latency and target residency, from the driver. Measured: share of time and entries per arm from the
//! kernel's own counters. A wake-up latency is attributed to a state only where an arm isolates it (at least 95 % of the
//! arm's entries, over the CPUs that were measured): then, and only then, waking is waking from that state.

use super::super::table::{Table, heads};
use super::super::words;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::enterable::{self, Enterable};
use wakewatt_core::evidence::Evidence;
use wakewatt_core::facts::idle::TableRow;
use wakewatt_core::samples::experiment::ExperimentRun;
use wakewatt_words::{say, word};

const ISOLATED: f64 = 0.95;

/// What an arm's counters say about one state.
struct Use {
    time_ratio: f64,
    entries_ratio: f64,
    per_second: f64,
}

/// May these CPUs enter a state: yes, or what keeps them from it; "on some" where they differ.
fn allowed(groups: &[Enterable], cpus: &CpuSet, row: &TableRow) -> String {
    let here = groups.iter().filter(|group| !group.cpus.and(cpus).is_empty());
    let says = |group: &Enterable| {
        let state = group.states.iter().find(|state| state.row.index == row.index)?;
        let barriers: Vec<String> = state.barriers.iter().map(|barrier| barrier.words()).collect();
        Some(if barriers.is_empty() { word!("yes").into() } else { say!("no: {}", barriers.join("; ")) })
    };
    let mut all: Vec<String> = here.filter_map(says).collect();
    all.dedup();
    match &all[..] {
        [] => word!("unavailable").into(),
        [one] => one.clone(),
        _ => word!("on some CPUs only").into(),
    }
}

/// One table per distinct set of idle states: one on most machines, two on hybrid ones.
pub(super) fn tables(evidence: &Evidence) -> Vec<Table> {
    let found = evidence.facts.idle.tables();
    let groups = enterable::of(&evidence.facts);
    let mut names = heads(&[word!("state"), word!("allowed"), word!("claimed exit"), word!("claimed residency")]);
    let run = evidence.samples.experiment.as_ref();
    for arm in run.iter().flat_map(|r| &r.arms) {
        names.push(say!("in arm {}", arm.id));
    }
    if run.is_some() {
        names.push(word!("measured wake-up, p50").into());
    }
    let table = |(cpus, states): (CpuSet, Vec<TableRow>)| {
        let rows = states.iter().map(|state| {
            let claim = |v: Option<u64>| v.map_or(word!("unavailable").into(), |ns| words::ns(ns as f64));
            let allowed = allowed(&groups, &cpus, state);
            let mut row =
                vec![state.name.clone(), allowed, claim(state.exit_latency_ns), claim(state.target_residency_ns)];
            if let Some(run) = run {
                row.extend(measured(run, &state.name));
            }
            row
        });
        Table {
            caption: match run {
                Some(_) => say!(
                    "{cpus}: claimed by the driver; per arm, measured by the kernel’s counters over the counted blocks: share of time, entries per second",
                    cpus = cpus.named()
                ),
                None => say!("{cpus}: claimed by the driver", cpus = cpus.named()),
            },
            heads: names.clone(),
            rows: rows.collect(),
            n_text_columns: 2,
        }
    };
    found.into_iter().map(table).collect()
}

fn measured(run: &ExperimentRun, state: &str) -> Vec<String> {
    let uses: Vec<Option<Use>> = run.arms.iter().map(|arm| usage(run, &arm.id, state)).collect();
    let mut cells: Vec<String> = uses
        .iter()
        .map(|u| match u {
            Some(u) => {
                format!("{}, {}/s", words::percent(u.time_ratio), wakewatt_core::units::three_digits(u.per_second))
            }
            None => word!("unavailable").to_string(),
        })
        .collect();
    let isolating = run.arms.iter().zip(&uses).find(|(_, u)| u.as_ref().is_some_and(|u| u.entries_ratio >= ISOLATED));
    let p50 = isolating.and_then(|(arm, _)| {
        let source = run.metrics.first()?.id.rsplit_once('.')?.0.to_string();
        let pooled = run.pooled.iter().find(|p| p.arm == arm.id && p.what == source)?;
        Some(say!("{} in {}", words::ns(pooled.latency.p50_ns()? as f64), arm.id))
    });
    cells.push(p50.unwrap_or_else(|| word!("not isolated").into()));
    cells
}

fn usage(run: &ExperimentRun, arm: &str, state: &str) -> Option<Use> {
    let (mut time_ns, mut n_usage, mut n_all, mut window_ns) = (0u64, 0u64, 0u64, 0u64);
    for block in run.blocks.iter().filter(|b| b.arm == arm && b.rejected.is_none()) {
        for cpu in &block.idle {
            window_ns = window_ns.saturating_add(block.window.length_ns());
            for delta in &cpu.states {
                n_all = n_all.saturating_add(delta.n_usage);
                if delta.name == state {
                    n_usage = n_usage.saturating_add(delta.n_usage);
                    time_ns = time_ns.saturating_add(delta.time_ns);
                }
            }
        }
    }
    (window_ns > 0).then(|| Use {
        time_ratio: time_ns as f64 / window_ns as f64,
        entries_ratio: if n_all == 0 { 0.0 } else { n_usage as f64 / n_all as f64 },
        per_second: n_usage as f64 / (window_ns as f64 / 1e9),
    })
}
