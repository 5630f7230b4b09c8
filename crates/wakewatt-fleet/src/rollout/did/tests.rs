//! How often the interval holds the truth, on fleets that never were; and what it refuses to tell.

use super::*;
use crate::table::{Hardware, Node, Window};
use wakewatt_core::stats::random::Random;

/// Nodes of two kinds of hardware; the first `n_changed` are changed by `factor` at half time. Node noise `drift` is how nodes
/// wander apart between the two halves, which no other node shares.
fn fleet(n_nodes: usize, n_changed: usize, factor: f64, drift: f64, seed: u64) -> (Table, Vec<Group>) {
    const N: usize = 16;
    let mut random = Random::new(seed);
    let windows = (0..N as u64).map(|w| Window { from_ms: w * 60_000, to_ms: (w + 1) * 60_000 }).collect();
    let mut table = Table { windows, ..Table::default() };
    let hour: Vec<f64> = (0..N).map(|_| 0.1 * random.normal()).collect();
    for at in 0..n_nodes {
        let mut node = Node::named(format!("n{at:03}"));
        node.hardware = Hardware { n_cpus: Some(if at % 2 == 0 { 64 } else { 128 }), ..Hardware::default() };
        let (own, wander) = (0.1 * random.normal(), drift * random.normal());
        // Neighbouring windows are alike: what makes naive intervals too narrow.
        let mut slow = 0.0;
        for (window, hour) in hour.iter().enumerate() {
            slow = 0.7 * slow + 0.03 * random.normal();
            let is_after = window >= N / 2;
            let load = 1000.0 * (0.2 * random.normal()).exp();
            let change = if is_after && at < n_changed { factor.ln() } else { 0.0 };
            let late = if is_after { wander } else { 0.0 };
            let cost = (own + hour + slow + late + change + 0.03 * random.normal()).exp() * 0.01;
            node.set(Quantity::Work, window, N, load);
            node.set(Quantity::Busy, window, N, load * cost);
        }
        table.nodes.push(node);
    }
    let groups = (0..n_nodes).map(|at| if at < n_changed { Group::Changed } else { Group::Unchanged }).collect();
    (table, groups)
}

const HALF_MS: u64 = 8 * 60_000;

fn told(n_nodes: usize, n_changed: usize, factor: f64, seed: u64) -> Difference {
    let (table, groups) = fleet(n_nodes, n_changed, factor, 0.02, seed);
    of(&table, Measure::CpuPerWork, &groups, HALF_MS, HALF_MS).unwrap()
}

#[test]
fn the_interval_holds_the_truth_in_95_of_100_fleets() {
    // docs/methods/rollout.md has the table. 600 fleets: one standard deviation of the share is 0.9 %.
    for (n_nodes, n_changed) in [(14, 1), (30, 1), (30, 8), (60, 30)] {
        for factor in [1.0, 1.1] {
            let holds = |seed: &u64| {
                let d = told(n_nodes, n_changed, factor, *seed);
                (d.low_ratio..=d.high_ratio).contains(&factor)
            };
            let n = (0..600u64).filter(holds).count();
            println!("{n_nodes} nodes, {n_changed} changed by {factor}: {:.1} %", n as f64 / 6.0);
            assert!((553..=594).contains(&n), "{n} of 600 with {n_changed} of {n_nodes} changed by {factor}");
        }
    }
}

#[test]
fn a_change_is_found_and_none_is_made_up() {
    let worse = told(40, 10, 1.15, 1);
    assert!(worse.low_ratio > 1.05 && worse.high_ratio < 1.25 && worse.n_changed == 10, "{worse:?}");
    let same = told(40, 10, 1.0, 2);
    assert!(same.low_ratio < 1.0 && same.high_ratio < 1.05, "{same:?}");
}

#[test]
fn too_little_is_told_as_that() {
    let why = |n_nodes, n_changed, moment_ms| {
        let (table, groups) = fleet(n_nodes, n_changed, 1.0, 0.02, 3);
        of(&table, Measure::CpuPerWork, &groups, moment_ms, moment_ms).unwrap_err()
    };
    assert!(why(7, 2, HALF_MS).contains("only 5 unchanged"), "{}", why(7, 2, HALF_MS));
    assert!(why(20, 20, HALF_MS).contains("no changed node has unchanged ones"));
    assert!(why(20, 2, 15 * 60_000).contains("too early"));
    let (table, groups) = fleet(20, 2, 1.0, 0.02, 3);
    assert!(of(&table, Measure::P99, &groups, HALF_MS, HALF_MS).unwrap_err().contains("not known"));
    assert!(of(&Table::default(), Measure::P99, &[], 0, 0).is_err());
}
