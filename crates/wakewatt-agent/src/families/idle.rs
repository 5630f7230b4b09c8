//! Idle states: how long and how often, how deep they claim to be, what limits them, and what waking from them took.

use super::{Known, Place};
use crate::histogram::Histogram;
use crate::metric::{Labels, Metric, Page, Value, names};
use std::collections::BTreeMap;
use wakewatt_core::samples::wakes::WakeClass;
use wakewatt_core::units::LatencyLimit;
use wakewatt_core::watch::layout::StateInfo;

/// A counter as it is listed, and what its unit is of a second.
static COUNTED: [(&Metric, f64); 5] = [
    (&names::IDLE_ENTRIES, 1.0),
    (&names::IDLE_TIME, 1e-9),
    (&names::IDLE_ABOVE, 1.0),
    (&names::IDLE_BELOW, 1.0),
    (&names::IDLE_REJECTED, 1.0),
];

/// Who woke the CPU, as a label.
pub(crate) fn word(class: WakeClass) -> &'static str {
    match class {
        WakeClass::Remote => "remote",
        WakeClass::InterruptBeforeExit => "interrupt_before_exit",
        WakeClass::InterruptAfterExit => "interrupt_after_exit",
        WakeClass::Busy => "busy",
    }
}

pub(super) fn add(page: &mut Page, known: &Known<'_>) {
    let named =
        |state: &StateInfo| -> Labels { vec![("state", state.name.clone()), ("index", state.index.to_string())] };
    let states = &known.totals.states;
    for (which, (metric, scale)) in COUNTED.iter().enumerate() {
        let mut sums: BTreeMap<(usize, Place), u64> = BTreeMap::new();
        for (seat, total) in known.totals.cpus.iter() {
            for (at, counters) in total.states.iter() {
                if let Some(n) = counters[which].so_far() {
                    *sums.entry((*at, Place::of(*seat, known.is_per_cpu))).or_default() += n;
                }
            }
        }
        for ((at, place), n) in sums {
            let labels = states.get(at).map(named).unwrap_or_default();
            page.number(metric, place.after(labels), n as f64 * scale);
        }
    }
    // What is claimed is claimed of states that are there.
    for state in &known.layout.states {
        let seconds = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e9);
        let from = |source: &str| {
            let mut labels = named(state);
            labels.push(("source", source.into()));
            labels
        };
        let measured = known.measured.and_then(|measured| measured.exit_ns(state.index, &state.name));
        page.known(&names::EXIT_LATENCY, from("claimed"), seconds(state.exit_latency_ns));
        page.known(&names::EXIT_LATENCY, from("measured"), measured.map(|ns| ns / 1e9));
        page.known(&names::TARGET_RESIDENCY, named(state), seconds(state.target_residency_ns));
    }
    for (state, index, n_cpus) in &known.described.disabled {
        let labels = vec![("state", state.clone()), ("index", index.to_string())];
        page.number(&names::IDLE_DISABLED, labels, f64::from(*n_cpus));
    }
    let limit_s = known.now.global_limit.get().map(|limit| match limit {
        LatencyLimit::None => f64::INFINITY,
        LatencyLimit::Poll => 0.0,
        LatencyLimit::AtMostNs(ns) => ns as f64 / 1e9,
    });
    page.known(&names::LATENCY_LIMIT, Vec::new(), limit_s);
    for holder in &known.described.holders {
        page.number(&names::LIMIT_HOLDER, vec![("holder", holder.clone())], 1.0);
    }
    for ((state, index, class), counted) in known.latencies {
        let labels = vec![("state", state.clone()), ("index", index.to_string()), ("class", word(*class).into())];
        page.add(&names::WAKEUP_LATENCY, labels, Value::Histogram(Histogram::of(counted)));
    }
}
