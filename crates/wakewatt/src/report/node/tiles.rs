//! The numbers that stand first, each with what it is and, where there is none, why.

use crate::report::words::{ns_rough, percent};
use serde::Serialize;
use wakewatt_agent::node::Node;
use wakewatt_core::samples::wakes::WakeClass;
use wakewatt_core::units::{LatencyLimit, exact_ns, show_khz, three_digits};
use wakewatt_core::watch::Reading;
use wakewatt_words::{say, word};

/// One of them.
#[derive(Debug, Serialize)]
pub(super) struct Tile {
    /// The number, or a dash.
    pub big: String,
    /// What it is.
    pub what: String,
    /// What it rests on, or why there is none.
    pub note: String,
    /// Style of the report.
    pub arm: usize,
}

/// All, most asked for first.
pub(super) fn of(node: &Node) -> Vec<Tile> {
    vec![waking(node), power(node), deepest(node), limit(node), busy(node)]
}

const NONE: &str = "–";

/// The slowest: whoever waits for a wake-up may meet it.
fn waking(node: &Node) -> Tile {
    let tile = |big: String, note: String| Tile { big, what: word!("wake-up, 99th percentile").into(), note, arm: 0 };
    if let Some(why) = &node.latency.none_because {
        return tile(NONE.into(), say!("not measured: {why}"));
    }
    let with_exit = node.latency.rows.iter().filter(|row| row.class.contains_exit());
    match with_exit.filter_map(|row| Some((row.p99_ns?, row))).max_by_key(|(p99_ns, _)| *p99_ns) {
        Some((p99_ns, row)) => tile(
            ns_rough(p99_ns as f64),
            say!(
                "from {}, by {}, of {} wake-ups in {}",
                row.state,
                by(row.class),
                row.n,
                ns_rough(node.latency.window_ns as f64)
            ),
        ),
        None => tile(NONE.into(), word!("too few wake-ups from idle states in the last minutes").into()),
    }
}

/// Who woke the CPU.
pub(super) fn by(class: WakeClass) -> &'static str {
    match class {
        WakeClass::InterruptBeforeExit => word!("an interrupt"),
        WakeClass::InterruptAfterExit => word!("an interrupt that came after leaving"),
        WakeClass::Remote => word!("another CPU"),
        WakeClass::Busy => word!("anyone, while busy"),
    }
}

fn power(node: &Node) -> Tile {
    let tile = |big: String, note: String| Tile { big, what: word!("power").into(), note, arm: 5 };
    match node.power_uw {
        Reading::Known(uw) => {
            tile(format!("{} W", three_digits(uw / 1e6)), node.power_source.clone().unwrap_or_default())
        }
        Reading::Missing(why) => tile(NONE.into(), say!("no watts: {}", why.explain())),
    }
}

fn deepest(node: &Node) -> Tile {
    let Some(state) = node.states.last() else {
        let note = word!("the kernel tells no idle states of this machine").into();
        return Tile { big: NONE.into(), what: word!("deepest idle state").into(), note, arm: 1 };
    };
    let what = say!("in {}, the deepest idle state", state.name);
    let disabled = match state.n_disabled {
        0 => String::new(),
        n => say!("; switched off on {n} of {} CPUs", node.n_online),
    };
    let claims =
        state.exit_latency_ns.map_or(String::new(), |ns| say!("leaving it takes {} (claimed)", ns_rough(ns as f64)));
    let (big, note) = match state.share_ratio {
        Reading::Known(share) => (percent(share), claims + &disabled),
        Reading::Missing(why) => (NONE.into(), format!("{}{disabled}", why.explain())),
    };
    Tile { big, what, note, arm: 1 }
}

fn limit(node: &Node) -> Tile {
    let held = match node.limit_holders.as_slice() {
        [] => word!("who holds it could not be seen").to_string(),
        holders => say!("held by {}", holders.join(", ")),
    };
    let (big, note) = match node.limit {
        Reading::Known(LatencyLimit::None) => {
            (word!("none").into(), word!("every idle state is allowed on all CPUs").into())
        }
        Reading::Known(LatencyLimit::Poll) => ("0 us".into(), say!("CPUs poll instead of sleeping; {held}")),
        Reading::Known(LatencyLimit::AtMostNs(ns)) => (spaced(&exact_ns(ns)), held),
        Reading::Missing(why) => (NONE.into(), say!("not known: {}", why.explain())),
    };
    Tile { big, what: word!("latency limit").into(), note, arm: 3 }
}

/// A number and its unit, as the rest of the page writes them.
fn spaced(text: &str) -> String {
    let (number, unit) = text.split_at(text.find(char::is_alphabetic).unwrap_or(text.len()));
    format!("{number} {unit}")
}

fn busy(node: &Node) -> Tile {
    let n = node.n_online;
    let clock = match node.freq_khz {
        // Clocks fit into 64 bits.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Reading::Known(khz) => say!(", at {}", spaced(&show_khz(khz as u64))),
        Reading::Missing(_) => String::new(),
    };
    let steal = match node.steal_ratio {
        Reading::Known(share) if share > 0.0005 => say!("; the hypervisor took {}", percent(share)),
        _ => String::new(),
    };
    let (big, note) = match node.busy_ratio {
        Reading::Known(share) => (percent(share), say!("of {n} CPU{}{clock}{steal}", if n == 1 { "" } else { "s" })),
        Reading::Missing(why) => (NONE.into(), why.explain().into()),
    };
    Tile { big, what: word!("busy").into(), note, arm: 2 }
}
