//! Fleets that never were, for the tests of the method: three kinds of hardware, load that moves the cost, silent differences of
//! 3 % between equal nodes, 6 % of noise in every window, some nodes bad and some merely busy.

use super::{Observation, Verdict, judge, settled};
use wakewatt_core::stats::random::Random;

/// What a fleet is like.
#[derive(Clone, Debug)]
pub(super) struct Fleet {
    pub(super) n_nodes: usize,
    pub(super) n_windows: usize,
    pub(super) bad_share: f64,
    pub(super) bad_factor: f64,
    pub(super) busy_share: f64,
    pub(super) busy_factor: f64,
}

impl Default for Fleet {
    fn default() -> Fleet {
        Fleet { n_nodes: 26, n_windows: 12, bad_share: 0.0, bad_factor: 1.0, busy_share: 0.0, busy_factor: 1.0 }
    }
}

impl Fleet {
    /// 55, 30 and 15 %.
    pub(super) fn class(&self, node: usize) -> usize {
        match (node as f64 + 0.5) / self.n_nodes as f64 {
            share if share < 0.55 => 0,
            share if share < 0.85 => 1,
            _ => 2,
        }
    }

    pub(super) fn is_judged(&self, node: usize) -> bool {
        (0..self.n_nodes).filter(|n| self.class(*n) == self.class(node)).count() >= super::LEAST_NODES
    }

    fn drawn(&self, share: f64, random: &mut Random) -> Vec<usize> {
        let mut all: Vec<usize> = (0..self.n_nodes).collect();
        random.shuffle(&mut all);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of the nodes
        all.truncate((share * self.n_nodes as f64).round() as usize);
        all
    }

    pub(super) fn bad(&self, seed: u64) -> Vec<usize> {
        self.drawn(self.bad_share, &mut Random::new(seed ^ 0xbad))
    }

    fn observations(&self, seed: u64) -> Vec<Observation> {
        let mut random = Random::new(seed);
        let bad = self.bad(seed);
        let busy = self.drawn(self.busy_share, &mut Random::new(seed ^ 0xb5));
        let mut all = Vec::new();
        for node in 0..self.n_nodes {
            let own_load = 0.3 * random.normal() + if busy.contains(&node) { self.busy_factor.ln() } else { 0.0 };
            let silent = 0.03 * random.normal() + if bad.contains(&node) { self.bad_factor.ln() } else { 0.0 };
            for window in 0..self.n_windows {
                let load = own_load + 0.15 * random.normal() + 0.3 * (window as f64).sin();
                let class = self.class(node);
                let cost = 0.4 * class as f64 - 0.25 * load + silent + 0.06 * random.normal();
                all.push(Observation { node, class, window, load, cost });
            }
        }
        all
    }
}

/// Who is called odd in this fleet.
pub(super) fn accused(fleet: &Fleet, seed: u64) -> Vec<usize> {
    let all = fleet.observations(seed);
    let (_, scores) = settled(&all, 3, fleet.n_nodes);
    let judged = judge(&[&scores]);
    let is_odd = |n: &usize| matches!(judged[0][*n].verdict, Verdict::Higher | Verdict::Lower);
    (0..fleet.n_nodes).filter(is_odd).collect()
}
