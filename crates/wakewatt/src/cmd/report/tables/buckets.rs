//! The buckets of every distribution in one long table, so that they can be drawn elsewhere.

use super::Table;
use wakewatt_core::distribution::{Bucket, Distribution};
use wakewatt_core::samples::disk::DiskSample;
use wakewatt_core::samples::icmp::IcmpSample;
use wakewatt_core::samples::load::LoadRun;
use wakewatt_core::samples::network::NetworkSample;
use wakewatt_core::samples::wakeup::WakeupSample;

/// Of all kinds that have them.
pub(super) fn all(
    wakeups: &[WakeupSample],
    network: &[NetworkSample],
    pings: &[IcmpSample],
    disk: &[DiskSample],
    load: &[LoadRun],
) -> Table {
    let mut table = Table::new("distributions", &["table", "row", "upto_ns", "n"]);
    let mut add = |name: &str, row: usize, d: &Distribution| {
        let line = |b: &Bucket| vec![name.to_string(), row.to_string(), b.upto_ns.to_string(), b.n.to_string()];
        table.rows.extend(d.buckets.iter().map(line));
    };
    wakeups.iter().enumerate().for_each(|(at, s)| add("wakeups", at, &s.latency));
    network.iter().enumerate().for_each(|(at, s)| add("network round trip", at, &s.round_trip));
    pings.iter().enumerate().for_each(|(at, s)| add("icmp round trip", at, &s.round_trip));
    disk.iter().enumerate().for_each(|(at, s)| add("disk", at, &s.latency));
    let levels = load.iter().flat_map(|run| &run.levels);
    levels.enumerate().for_each(|(at, level)| level.latency.iter().for_each(|d| add("load", at, d)));
    table
}
