//! Idle tables of machines that there are, to be put into a device tree. Times are what their firmware or driver claims; waking costs
//! the emulator the same from each.

use crate::testbed::machine::Idle;

/// Name, exit latency and target residency in microseconds.
pub(super) type Row = (&'static str, u32, u32);

/// Case K3's laptop (i7-6820HQ): eight states beside WFI, two pairs of equal residency.
pub(super) const LAPTOP: &[Row] = &[
    ("C1", 2, 2),
    ("C1E", 10, 20),
    ("C3", 70, 100),
    ("C6", 85, 200),
    ("C7s", 124, 800),
    ("C8", 200, 800),
    ("C9", 480, 5000),
    ("C10", 890, 5000),
];

/// RK3399: two deep states, far apart.
pub(super) const TELEPHONE: &[Row] = &[("cpu-sleep", 370, 900), ("cluster-sleep", 900, 2000)];

/// Ice Lake server: C1E nearly free, C6 dear.
pub(super) const SERVER: &[Row] = &[("C1E", 4, 4), ("C6", 170, 600)];

/// As a machine file has them.
pub(super) fn states(rows: &[Row]) -> Vec<Idle> {
    let state = |(name, exit_latency_us, target_residency_us): &Row| Idle {
        name: (*name).into(),
        exit_latency_us: *exit_latency_us,
        target_residency_us: Some(*target_residency_us),
        power_mw: 0,
    };
    rows.iter().map(state).collect()
}
