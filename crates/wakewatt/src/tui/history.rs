//! What the last intervals were, for sparklines: the machine's numbers, and how busy each CPU was.

use std::collections::VecDeque;
use wakewatt_core::watch::Rates;

/// Intervals kept of the machine.
const KEPT: usize = 600;
/// Intervals kept of each CPU: as wide as a screen shows.
const KEPT_PER_CPU: usize = 120;

/// One number over time; none where it was not known, or nobody looked.
pub type Series = VecDeque<Option<f64>>;

/// All of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// Mean share.
    pub busy: Series,
    /// Per second.
    pub wakeups: Series,
    /// Microwatts.
    pub power: Series,
    cpus: Vec<VecDeque<u8>>,
}

impl History {
    /// Adds an interval.
    pub fn push(&mut self, rates: &Rates) {
        let summary = &rates.machine.summary;
        for (series, value) in [
            (&mut self.busy, summary.busy_ratio.get()),
            (&mut self.wakeups, summary.wakeups_per_s.get()),
            (&mut self.power, rates.machine.power_uw.get()),
        ] {
            series.push_back(value);
            if series.len() > KEPT {
                series.pop_front();
            }
        }
        let most = rates.cpus.iter().map(|c| c.cpu as usize + 1).max().unwrap_or(0);
        if self.cpus.len() < most {
            self.cpus.resize_with(most, VecDeque::new);
        }
        for cpu in &rates.cpus {
            let series = &mut self.cpus[cpu.cpu as usize];
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to 100
            series.push_back(cpu.busy_ratio.get().map_or(u8::MAX, |r| (r.clamp(0.0, 1.0) * 100.0) as u8));
            if series.len() > KEPT_PER_CPU {
                series.pop_front();
            }
        }
    }

    /// How busy these CPUs were on average, the last `n` intervals.
    pub fn busy_of(&self, cpus: &[u32], n: usize) -> Series {
        let n = n.min(KEPT_PER_CPU);
        let known: Vec<&VecDeque<u8>> = cpus.iter().filter_map(|c| self.cpus.get(*c as usize)).collect();
        let longest = known.iter().map(|s| s.len()).max().unwrap_or(0).min(n);
        let at = |back: usize| {
            let values: Vec<f64> = known
                .iter()
                .filter_map(|s| s.len().checked_sub(back + 1).and_then(|i| s.get(i)))
                .filter(|v| **v != u8::MAX)
                .map(|v| f64::from(*v) / 100.0)
                .collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        (0..longest).rev().map(at).collect()
    }
}
