//! Idle states: how long and how often, how deep they claim to be, what limits them, and what waking from them took.

use super::{Known, Place};
use crate::histogram::Histogram;
use crate::metric::{Labels, Metric, Page, Value, Word, names};
use compact_str::ToCompactString as _;
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
    let label = |name: &str, index: u32| [("state", Word::from(name)), ("index", index.to_compact_string())];
    let named = |state: &StateInfo| label(&state.name, state.index);
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
            let labels = states.get(at).map(named).into_iter().flatten();
            page.number(metric, place.after(labels), n as f64 * scale);
        }
    }
    // What is claimed is claimed of states that are there.
    for state in &known.layout.states {
        let seconds = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e9);
        let from = |source: &str| named(state).into_iter().chain([("source", source.into())]).collect::<Labels>();
        let measured = known.measured.and_then(|measured| measured.exit_ns(state.index, &state.name));
        page.known(&names::EXIT_LATENCY, from("claimed"), seconds(state.exit_latency_ns));
        page.known(&names::EXIT_LATENCY, from("measured"), measured.map(|ns| ns / 1e9));
        page.known(&names::TARGET_RESIDENCY, named(state).into(), seconds(state.target_residency_ns));
    }
    for (state, index, n_cpus) in &known.described.disabled {
        page.number(&names::IDLE_DISABLED, label(state, *index).into(), f64::from(*n_cpus));
    }
    let limit_s = known.now.global_limit.get().map(|limit| match limit {
        LatencyLimit::None => f64::INFINITY,
        LatencyLimit::Poll => 0.0,
        LatencyLimit::AtMostNs(ns) => ns as f64 / 1e9,
    });
    page.known(&names::LATENCY_LIMIT, Vec::new(), limit_s);
    for holder in &known.described.holders {
        page.number(&names::LIMIT_HOLDER, vec![("holder", holder.as_str().into())], 1.0);
    }
    for ((state, index, class), counted) in known.latencies {
        let labels = label(state, *index).into_iter().chain([("class", word(*class).into())]).collect();
        page.add(&names::WAKEUP_LATENCY, labels, Value::Histogram(Histogram::of(counted)));
    }
}
