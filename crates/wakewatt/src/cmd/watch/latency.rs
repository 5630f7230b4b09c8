//! The CSV's columns of wake-up latency: by idle state and by what woke the CPU, with `--trace`.

use super::cells::{clean, number};
use wakewatt_core::samples::wakes::WakeClass;
use wakewatt_core::watch::Rates;

/// Classes of wake-ups out of an idle state, in words of columns.
const CLASSES: [(WakeClass, &str); 3] = [
    (WakeClass::Remote, "another_cpu"),
    (WakeClass::InterruptBeforeExit, "interrupt"),
    (WakeClass::InterruptAfterExit, "interrupt_after_exit"),
];

/// Their names.
pub(super) fn header(rates: &Rates) -> Vec<String> {
    let of = |name: &str, by: &str| {
        ["n", "p50_us", "p99_us", "lost_us"].map(|what| format!("{name}_woken_by_{by}_{what}")).to_vec()
    };
    rates.states.iter().flat_map(|s| CLASSES.map(|(_, by)| of(&clean(&s.name), by))).flatten().collect()
}

/// Their cells; empty in the rows of CPUs, and of a state that nobody was woken out of zero times.
pub(super) fn cells(rates: &Rates, is_total: bool, missing: &mut Vec<String>) -> Vec<String> {
    if is_total && rates.wake_latency.is_none() {
        missing.push("latency:not traced".into());
    }
    let mut out = Vec::new();
    for (state, class) in rates.states.iter().flat_map(|s| CLASSES.map(|(class, _)| (&s.name, class))) {
        let rows = rates.wake_latency.as_ref().filter(|_| is_total);
        let row = rows.and_then(|rows| rows.iter().find(|r| r.state == *state && r.class == class.words()));
        let us = |ns: Option<u64>| ns.map_or(String::new(), |ns| number(ns as f64 / 1e3));
        out.extend(match (row, rows) {
            (Some(row), _) => [row.n.to_string(), us(row.p50_ns), us(row.p99_ns), us(Some(row.lost_ns))],
            (None, Some(_)) => ["0", "", "", "0"].map(String::from),
            (None, None) => [const { String::new() }; 4],
        });
    }
    out
}
