//! A fleet out of files: what hosts say of themselves (`.host`), what their BMCs say of their firmware (`bios show --json`), and what runs
//! measured on them (`load … --save`).
//!
//! A level of a load is a window here: the same level on all nodes is compared like the same hour. So only machines that ran the same levels, in the same
//! order, are compared; whoever ran others has no numbers. Where a transaction was made to fit the machine (`load steps`), work is counted in its
//! units. What a command of the user's printed is no work per second and is left to `compare`.

use crate::firmware::{Firmware, IDLE_TABLE};
use crate::measure::Quantity;
use crate::series::rounded_gib;
use crate::table::{DEEPEST_IDLE, Node, Table, Window};
use std::collections::BTreeMap;
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::compare::predict::deepest_state;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::fact::{Fact, PerCpu};
use wakewatt_core::facts::Snapshot;
use wakewatt_core::samples::load::{Kind, Level, LoadRun};
use wakewatt_core::units::show_ns;

/// A machine and what was measured on it, under the name of its file.
#[derive(Clone, Debug)]
pub struct Machine {
    /// As the file is called, without its ending.
    pub name: String,
    /// Facts, and samples where it is a run.
    pub evidence: Evidence,
    /// What its BMC says of its firmware, where there is a document of that.
    pub firmware: Option<Firmware>,
}

/// The table of some machines. `peers_by` are settings that peers must have in common.
pub fn table(machines: &[Machine], peers_by: &[String]) -> Table {
    let n_windows = machines.iter().map(|m| levels(m).count()).max().unwrap_or(0);
    let none = Window { from_ms: 0, to_ms: 0 };
    let usual = usual_levels(machines);
    let mut nodes: Vec<Node> = machines.iter().map(|m| node(m, n_windows, peers_by, level_names(m) == usual)).collect();
    nodes.arrange_by(|a, b| a.name.cmp(&b.name));
    Table { windows: vec![none; n_windows], nodes, has_counted_cycles: false }
}

/// Every level of loads that are work.
fn levels(machine: &Machine) -> impl Iterator<Item = (&LoadRun, &Level)> {
    let runs = machine.evidence.samples.load.iter().filter(|run| run.kind != Kind::Command);
    runs.flat_map(|run| run.levels.iter().map(move |level| (run, level)))
}

/// What a machine was asked, level by level.
fn level_names(machine: &Machine) -> Vec<String> {
    levels(machine).map(|(run, level)| format!("{} {:?} {}", run.kind.word(), run.service_ns, level.ask)).collect()
}

/// What most machines were asked; of several equally many the first by name.
fn usual_levels(machines: &[Machine]) -> Vec<String> {
    let mut n_of: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    machines.iter().map(level_names).filter(|names| !names.is_empty()).for_each(|names| {
        *n_of.entry(names).or_default() += 1;
    });
    let most = n_of.values().copied().max().unwrap_or(0);
    n_of.into_iter().find(|(_, n)| *n == most).map(|(names, _)| names).unwrap_or_default()
}

fn node(machine: &Machine, n_windows: usize, peers_by: &[String], is_usual: bool) -> Node {
    let mut node = Node::named(&machine.name);
    let facts = &machine.evidence.facts;
    node.settings.extend(settings(facts).into_iter().map(|(what, value)| (what.to_string(), value)));
    node.hardware.processor = facts.topology.processor.known().find_map(|(_, p)| p.name.clone());
    node.hardware.n_cpus = facts.cpus.online.get().and_then(|c| u32::try_from(c.iter().count()).ok());
    let cores = u32::try_from(facts.topology.cores().len()).ok().filter(|n| *n > 0);
    node.hardware.n_threads = node.hardware.n_cpus.zip(cores).map(|(cpus, cores)| cpus / cores).filter(|n| *n > 0);
    let bytes: u64 = facts.memory.nodes.iter().filter_map(|n| n.total_bytes.get()).sum();
    node.hardware.memory_gib = rounded_gib(bytes as f64).filter(|_| bytes > 0);
    if let Some(firmware) = &machine.firmware {
        told_by_bmc(&mut node, firmware);
    }
    let also = peers_by.iter().filter_map(|what| Some(format!("{what} {}", node.settings.get(what)?)));
    node.hardware.also = also.collect();
    for (window, (run, level)) in levels(machine).enumerate() {
        // A level that broke a rule, or did nothing, costs nothing per piece; another load than the others' is no window of theirs.
        if !is_usual || !level.broken_rules.is_empty() || level.n_done == 0 {
            continue;
        }
        let units = run.work_units.map_or(1.0, |n| n as f64);
        let quantile = |q: f64| Some(level.latency.as_ref()?.quantile(q)?.value_ns as f64 / 1e9);
        let numbers = [
            (Quantity::Work, Some(level.per_s * units)),
            (Quantity::Busy, level.cpu_ns_per_op().map(|ns| ns / 1e9 * level.per_s)),
            (Quantity::System, level.system_ns_per_op().map(|ns| ns / 1e9 * level.per_s)),
            (Quantity::Watts, level.mean_uw().map(|uw| uw as f64 / 1e6)),
            (Quantity::P90, quantile(0.9)),
            (Quantity::P99, quantile(0.99)),
        ];
        for (quantity, value) in numbers {
            if let Some(value) = value {
                node.set(quantity, window, n_windows, value);
            }
        }
    }
    node
}

/// What a BMC says of a node; what the node says itself goes before it.
pub fn told_by_bmc(node: &mut Node, firmware: &Firmware) {
    node.hardware.processor = node.hardware.processor.take().or_else(|| firmware.machine.clone());
    let version = firmware.version.iter().map(|version| ("BIOS version".to_string(), version.clone()));
    for (what, value) in version.chain(firmware.settings.clone()) {
        node.settings.entry(what).or_insert(value);
    }
    node.attributes.extend(firmware.attributes.clone());
}

/// What is set, by the names that series have it under.
fn settings(facts: &Snapshot) -> Vec<(&'static str, String)> {
    let word = |fact: &Fact<String>| fact.get().cloned();
    let all = |per_cpu: &PerCpu<String>| {
        let mut known: Vec<&str> = per_cpu.known().map(|(_, word)| word.as_str()).collect();
        known.sort_unstable();
        known.dedup();
        (!known.is_empty()).then(|| known.join("+"))
    };
    let (freq, on_off) = (&facts.freq, |is: bool| if is { "on" } else { "off" }.to_string());
    let deepest =
        deepest_state(facts).map(|d| d.map_or("none".into(), |(name, ns)| format!("{name}, {}", show_ns(ns))));
    let processor = facts.topology.processor.known().next().map(|(_, p)| p.clone());
    let values = [
        ("idle driver", word(&facts.idle.driver)),
        ("idle governor", word(&facts.idle.governor)),
        (DEEPEST_IDLE, deepest),
        ("frequency driver", all(&freq.policies.by_cpu(&freq.policies.driver))),
        ("frequency governor", all(&freq.governors())),
        ("turbo", freq.is_turbo_allowed().map(on_off)),
        ("SMT", facts.topology.is_smt_active.get().copied().map(on_off)),
        ("kernel", word(&facts.kernel.release)),
        ("microcode", processor.and_then(|p| p.microcode).map(|m| format!("{m:#x}"))),
        ("BIOS version", word(&facts.dimms.bios_version)),
        (IDLE_TABLE, facts.idle.table_checksum()),
    ];
    values.into_iter().filter_map(|(what, value)| Some((what, value?))).collect()
}
