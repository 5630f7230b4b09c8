//! The CSV's columns of wake-up latency: by idle state and by what woke the CPU, with `--trace`.

use super::cells::{clean, number};
use std::fmt::Write as _;
use wakewatt_core::samples::wakes::WakeClass;
use wakewatt_core::watch::Rates;

/// Classes of wake-ups out of an idle state, in words of columns.
const CLASSES: [(WakeClass, &str); 3] = [
    (WakeClass::Remote, "another_cpu"),
    (WakeClass::InterruptBeforeExit, "interrupt"),
    (WakeClass::InterruptAfterExit, "interrupt_after_exit"),
];

/// Their names.
pub(super) fn header(out: &mut String, rates: &Rates) {
    for (name, by) in rates.states.iter().flat_map(|s| CLASSES.map(|(_, by)| (clean(&s.name), by))) {
        let at = format!("{name}_woken_by_{by}");
        let _ = write!(out, ",{at}_n,{at}_p50_us,{at}_p99_us,{at}_lost_us");
    }
}

/// Their cells; empty in the rows of CPUs, and of a state that nobody was woken out of zero times.
pub(super) fn cells(out: &mut String, rates: &Rates, is_total: bool, missing: &mut Vec<String>) {
    if is_total && rates.wake_latency.is_none() {
        missing.push("latency:not traced".into());
    }
    for (state, class) in rates.states.iter().flat_map(|s| CLASSES.map(|(class, _)| (&s.name, class))) {
        let rows = rates.wake_latency.as_ref().filter(|_| is_total);
        let row = rows.and_then(|rows| rows.iter().find(|r| r.state == *state && r.class == class.words()));
        let us = |ns: Option<u64>| ns.map_or(String::new(), |ns| number(ns as f64 / 1e3));
        let _ = match (row, rows) {
            (Some(row), _) => {
                write!(out, ",{},{},{},{}", row.n, us(row.p50_ns), us(row.p99_ns), us(Some(row.lost_ns)))
            }
            (None, Some(_)) => write!(out, ",0,,,0"),
            (None, None) => write!(out, ",,,,"),
        };
    }
}
