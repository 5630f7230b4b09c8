//! What was measured after pauses of several lengths, and whose wake-ups it is taken from.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wakewatt_core::samples::wakeup::WakeKind;
use wakewatt_core::stats::middle::median;

/// Whose wake-ups say what a planned one costs, and whose what one from another CPU costs; the first that was measured.
pub(super) const BY_TIMER: [WakeKind; 4] = [WakeKind::Timer, WakeKind::Ipi, WakeKind::Eventfd, WakeKind::Futex];
pub(super) const BY_ANOTHER_CPU: [WakeKind; 2] = [WakeKind::Futex, WakeKind::Eventfd];
/// What leaving an idle state costs after a sleep of about this length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExitAfter {
    /// Mean pause before a wake-up, in nanoseconds.
    pub asleep_ns: u64,
    /// What leaving then cost, in nanoseconds.
    pub ns: u64,
}

/// Where at least so many lengths of sleep were measured: the middle of what was measured of each. A longer sleep is never easier to leave, so noise
/// that says so is levelled.
pub(super) fn by_length(measured: Vec<(u64, u64)>, least: usize) -> Vec<ExitAfter> {
    let mut rows: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (asleep_ns, ns) in measured {
        rows.entry(asleep_ns).or_default().push(ns as f64);
    }
    let mut most = 0;
    let mut level = |(asleep_ns, mut all): (u64, Vec<f64>)| {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Between whole numbers.
        let ns = median(&mut all).unwrap_or(0.0) as u64;
        most = ns.max(most);
        ExitAfter { asleep_ns, ns: most }
    };
    if rows.len() < least { Vec::new() } else { rows.into_iter().map(&mut level).collect() }
}
