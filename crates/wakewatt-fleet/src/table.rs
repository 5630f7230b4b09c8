//! What is known of each node in each window of time: numbers, hardware, settings; and what a measure comes to in a window.
//!
//! A window counts for a node where the store has at least half of the samples that the node has in its best window: the
//! rates of a store are stretched over what is missing. Numbers are kept as `f32`, because a fleet of 5,000 nodes over a
//! month has millions of them and no cost is known to seven digits; what is absent is kept apart by a value that no number
//! has, and leaves this file as `None`.

use crate::measure::{Measure, Quantity};
use std::collections::BTreeMap;

/// Below this share of the samples of its best window, a window of a node does not count.
const LEAST_SEEN: f64 = 0.5;

/// Setting: the deepest idle state that is allowed, with the exit latency that is claimed for it: `C6, 170us`.
pub const DEEPEST_IDLE: &str = "deepest idle state allowed";
/// Setting: the upper limit of the clock: `2800 MHz`.
pub const CLOCK_LIMIT: &str = "upper frequency limit";

/// A window of time, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its begin.
    pub from_ms: u64,
    /// Its end.
    pub to_ms: u64,
}

/// The hardware by which nodes are peers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hardware {
    /// Name of the processor, or of the machine type where no processor is named.
    pub processor: Option<String>,
    /// CPUs that are online.
    pub n_cpus: Option<u32>,
    /// Threads per core.
    pub n_threads: Option<u32>,
    /// Memory, in whole gibibytes to about a twentieth, so that what a kernel keeps for itself makes no class.
    pub memory_gib: Option<u32>,
    /// What else the user wants peers to have in common, such as the kernel.
    pub also: Vec<String>,
}

/// A node.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// As the store, or the file, calls it.
    pub name: String,
    /// Other names of the same node: an address before a change, the name that Kubernetes has.
    pub also: Vec<String>,
    /// Its hardware.
    pub hardware: Hardware,
    /// What is set on it.
    pub settings: BTreeMap<String, String>,
    /// The attribute of firmware behind a setting, as the BMC spells it.
    pub attributes: BTreeMap<String, String>,
    /// Settings that changed within the time.
    pub changed: Vec<String>,
    numbers: BTreeMap<u8, Vec<f32>>,
}

/// The fleet.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Windows in order of time.
    pub windows: Vec<Window>,
    /// Nodes in order of name.
    pub nodes: Vec<Node>,
    /// Are cycles counted by the processor? If not, they are busy time times the clock.
    pub has_counted_cycles: bool,
}

impl Node {
    /// With this name.
    pub fn named(name: impl Into<String>) -> Node {
        Node { name: name.into(), ..Node::default() }
    }

    /// Keeps a number; one that is not finite is none.
    pub fn set(&mut self, quantity: Quantity, window: usize, n_windows: usize, value: f64) {
        if !value.is_finite() || window >= n_windows {
            return;
        }
        let all = self.numbers.entry(quantity as u8).or_insert_with(|| vec![f32::NAN; n_windows]);
        #[allow(clippy::cast_possible_truncation)] // seven digits are kept on purpose
        let value = value as f32;
        if let Some(place) = all.get_mut(window) {
            *place = value;
        }
    }

    /// A number of a window.
    pub fn get(&self, quantity: Quantity, window: usize) -> Option<f64> {
        let value = *self.numbers.get(&(quantity as u8))?.get(window)?;
        value.is_finite().then_some(f64::from(value))
    }

    /// Is any of it known?
    pub fn has(&self, quantity: Quantity) -> bool {
        self.numbers.contains_key(&(quantity as u8))
    }

    /// Gives a number up, in all windows: somebody has a better one.
    pub fn forget(&mut self, quantity: Quantity) {
        self.numbers.remove(&(quantity as u8));
    }

    /// Takes over what another name of this node was seen under; what both have stays.
    pub fn join(&mut self, other: Node) {
        for (quantity, values) in other.numbers {
            let own = self.numbers.entry(quantity).or_insert_with(|| vec![f32::NAN; values.len()]);
            for (own, value) in own.iter_mut().zip(values) {
                if !own.is_finite() {
                    *own = value;
                }
            }
        }
        self.also.push(other.name);
        self.also.extend(other.also);
        for (key, value) in other.settings {
            self.settings.entry(key).or_insert(value);
        }
    }

    /// Windows in which the store has samples of it.
    pub fn seen(&self, n_windows: usize) -> Vec<bool> {
        (0..n_windows).map(|w| self.get(Quantity::Busy, w).is_some()).collect()
    }

    /// Windows that count.
    pub fn counts(&self, n_windows: usize) -> Vec<bool> {
        let seen = |w: usize| self.get(Quantity::Seen, w);
        let most = (0..n_windows).filter_map(seen).fold(0.0, f64::max);
        // A run file has no samples: all its windows were measured whole.
        let is_whole = |w: usize| seen(w).map_or(most == 0.0, |n| n >= LEAST_SEEN * most);
        (0..n_windows).map(is_whole).collect()
    }

    /// A measure in a window.
    pub fn measured(&self, measure: Measure, window: usize) -> Option<f64> {
        let of = |q: Quantity| self.get(q, window);
        let ratio = |above: f64, below: f64| (above > 0.0 && below > 0.0).then(|| above / below);
        match measure {
            Measure::CpuPerWork => ratio(of(Quantity::Busy)?, of(Quantity::Work)?),
            Measure::CyclesPerWork => {
                let modelled = || Some(of(Quantity::Busy)? * of(Quantity::Clock)?);
                ratio(of(Quantity::Cycles).or_else(modelled)?, of(Quantity::Work)?)
            }
            Measure::JoulesPerWork => ratio(of(Quantity::Watts)?, of(Quantity::Work)?),
            Measure::P90 => of(Quantity::P90).filter(|s| *s > 0.0),
            Measure::P99 => of(Quantity::P99).filter(|s| *s > 0.0),
            Measure::LoadPerBusyCpu => ratio(of(Quantity::Load)?, of(Quantity::Busy)?),
            Measure::SystemShare => ratio(of(Quantity::System)?, of(Quantity::Busy)?),
        }
    }

    /// Work per second and CPU where work is known (`has_work`), else busy time per CPU. Where nobody knows how many CPUs there
    /// are, per node: peers have equally many.
    pub fn load(&self, window: usize, has_work: bool) -> Option<f64> {
        let load = self.get(if has_work { Quantity::Work } else { Quantity::Busy }, window)?;
        let n_cpus = self.hardware.n_cpus.map(f64::from).or(self.get(Quantity::Cpus, window)).unwrap_or(1.0);
        (load > 0.0 && n_cpus > 0.0).then(|| load / n_cpus)
    }
}

impl Table {
    /// Is the quantity known of any node?
    pub fn has(&self, quantity: Quantity) -> bool {
        self.nodes.iter().any(|n| n.has(quantity))
    }
}

impl Hardware {
    /// For people: `EPYC 9654, 192 CPUs, 768 GiB`.
    pub fn words(&self) -> String {
        let parts = [
            self.processor.clone(),
            self.n_cpus.map(|n| if n == 1 { "1 CPU".into() } else { format!("{n} CPUs") }),
            self.n_threads.filter(|n| *n > 1).map(|n| format!("{n} threads a core")),
            self.memory_gib.map(|gib| format!("{gib} GiB")),
        ];
        let all: Vec<String> = parts.into_iter().flatten().chain(self.also.iter().cloned()).collect();
        if all.is_empty() { "hardware not known".into() } else { all.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_with_a_gap_does_not_count_and_nothing_is_divided_by_nothing() {
        let mut node = Node::named("a");
        for (window, seen) in [60.0, 58.0, 20.0].into_iter().enumerate() {
            node.set(Quantity::Seen, window, 3, seen);
            node.set(Quantity::Busy, window, 3, 4.0);
        }
        assert_eq!(node.counts(3), [true, true, false]);
        node.set(Quantity::Work, 0, 3, 0.0);
        node.set(Quantity::Work, 1, 3, f64::NAN);
        assert_eq!((node.measured(Measure::CpuPerWork, 0), node.get(Quantity::Work, 1)), (None, None));
        node.set(Quantity::Work, 1, 3, 2.0);
        assert_eq!(node.measured(Measure::CpuPerWork, 1), Some(2.0));
        node.set(Quantity::Clock, 1, 3, 1e9);
        assert_eq!(node.measured(Measure::CyclesPerWork, 1), Some(2e9));
        assert_eq!((node.load(1, true), node.load(0, true)), (Some(2.0), None), "how many CPUs is not known");
        node.set(Quantity::Busy, 9, 3, 1.0);
        assert_eq!(node.get(Quantity::Busy, 9), None);
    }
}
