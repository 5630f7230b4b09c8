//! What is set otherwise on an odd node than on most of its peers.
//!
//! Peers are the nodes of its class that are not odd. A setting is told where two thirds of the peers agree on another
//! value; how many innocent peers have the odd node's value all the same stands beside it, because that is what speaks
//! against it. What explains more odd nodes stands first.

use super::facts::predicted;
use crate::document::{Differs, Node};
use crate::firmware::is_of_firmware;
use crate::table::Table;
use std::collections::{BTreeMap, BTreeSet};
use wakewatt_core::arrange::Arrange as _;

/// So many peers must be known to speak of most.
const LEAST_PEERS: usize = 3;

/// Values of one setting in a class.
#[derive(Default)]
struct Values {
    /// Peers by value.
    peers: BTreeMap<String, usize>,
    /// Odd nodes by value.
    odd: BTreeMap<String, usize>,
}

/// Fills in what differs; `nodes` stand in the order of the table. Where nothing was measured of anybody, every node is told
/// what it has otherwise: that is then all there is to tell.
pub(super) fn fill(table: &Table, nodes: &mut [Node]) {
    let is_all = nodes.iter().all(|n| n.measures.is_empty());
    let mut known: BTreeMap<(usize, &str), Values> = BTreeMap::new();
    for (node, of) in nodes.iter().zip(&table.nodes) {
        // What firmware has otherwise is told of all nodes together (`firmware.rs`), and beside those that are odd.
        for (what, value) in of.settings.iter().filter(|(what, _)| !is_all || !is_of_firmware(what)) {
            let values = known.entry((node.class, what)).or_default();
            let side = if node.is_odd() { &mut values.odd } else { &mut values.peers };
            *side.entry(value.clone()).or_default() += 1;
        }
    }
    for (node, of) in nodes.iter_mut().zip(&table.nodes).filter(|(n, _)| is_all || n.is_odd()) {
        let mut found: Vec<(usize, Differs)> = Vec::new();
        for (what, here) in &of.settings {
            let Some(values) = known.get(&(node.class, what.as_str())) else { continue };
            let n_peers: usize = values.peers.values().sum();
            let most = values.peers.iter().max_by_key(|(_, n)| **n);
            let Some((peers, n_most)) = most.filter(|(value, _)| *value != here) else { continue };
            if n_peers < LEAST_PEERS || n_most * 3 < n_peers * 2 {
                continue;
            }
            let differs = Differs {
                what: what.clone(),
                here: here.clone(),
                peers: peers.clone(),
                n_like_here: values.peers.get(here).copied().unwrap_or(0),
                n_peers,
                predicted: predicted(what, here, peers),
            };
            found.push((values.odd.get(here).copied().unwrap_or(0), differs));
        }
        found.arrange_by(|(n_a, a), (n_b, b)| {
            let size = |d: &Differs| (d.predicted.is_none(), d.n_like_here);
            size(a).cmp(&size(b)).then(n_b.cmp(n_a)).then(a.what.cmp(&b.what))
        });
        let changed: BTreeSet<&String> = of.changed.iter().collect();
        node.differs = found.into_iter().map(|(_, d)| d).collect();
        for differs in node.differs.iter_mut().filter(|d| changed.contains(&d.what)) {
            differs.here += " (changed within the time)";
        }
    }
}
