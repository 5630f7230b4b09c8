//! Predictions: what a host's settings together allow, as one number per host.
//!
//! Each is computed from claims and limits only, so it is a model. A prediction is made only where every host gives
//! the facts for it.

use super::reach::{self, Reach};
use super::{Difference, Predicted};
use crate::facts::Snapshot;
use crate::facts::idle::source::TableSource;
use crate::units::{LatencyLimit, show_ns, three_digits};

/// One prediction.
pub struct Prediction {
    /// Id behind `predicted.`.
    pub id: &'static str,
    /// Topic it belongs to.
    pub topic: &'static str,
    /// For people.
    pub label: &'static str,
    /// Computes it: all hosts, or none.
    pub predict: fn(&[Snapshot]) -> Option<Answer>,
}

/// The value on each host, and the effect.
type Answer = (Vec<String>, Predicted);

/// The list.
pub const PREDICTIONS: &[Prediction] = &[
    Prediction {
        id: "deepest_idle",
        topic: "idle",
        label: "deepest idle state the settings allow",
        predict: deepest_idle,
    },
    Prediction { id: "frequency_limit", topic: "freq", label: "upper frequency limit", predict: frequency_limit },
    Prediction {
        id: "memory_nodes",
        topic: "memory",
        label: "share of remote memory with random placement",
        predict: remote_share,
    },
    Prediction {
        id: "random_placement",
        topic: "memory",
        label: "random memory placement against local",
        predict: random_placement,
    },
    Prediction { id: "memory_speed", topic: "dimms", label: "configured memory speed", predict: memory_speed },
    Prediction { id: "coalescing", topic: "network", label: "longest receive interrupt delay", predict: coalescing },
];

/// All predictions in which the hosts differ.
pub(super) fn all(hosts: &[Snapshot]) -> Vec<Difference> {
    let one = |p: &Prediction| {
        let (values, predicted) = (p.predict)(hosts)?;
        let is_same = values.windows(2).all(|w| w[0] == w[1]);
        (!is_same).then(|| Difference {
            id: format!("predicted.{}", p.id),
            topic: p.topic.into(),
            label: p.label.into(),
            values,
            predicted: Some(predicted),
        })
    };
    PREDICTIONS.iter().filter_map(one).collect()
}

/// The deepest state some CPU may enter, given disabled states and latency limits.
pub fn deepest_state(host: &Snapshot) -> Option<Option<(String, u64)>> {
    let tables = host.idle.tables();
    if tables.is_empty() {
        return None;
    }
    let global = host.qos.global.get().copied().unwrap_or(LatencyLimit::None);
    let mut deepest: Option<(String, u64)> = None;
    for (cpus, rows) in &tables {
        // The loosest per-CPU limit of these CPUs decides what the deepest sleeper may do.
        let own =
            cpus.iter().filter_map(|c| host.qos.per_cpu.of(c)?.get().copied()).max().unwrap_or(LatencyLimit::None);
        for row in rows.iter().filter(|r| r.is_enabled == Some(true) && !r.is_polling()) {
            let Some(ns) = row.exit_latency_ns else { continue };
            if global.allows(ns) && own.allows(ns) && deepest.as_ref().is_none_or(|(_, d)| ns > *d) {
                deepest = Some((row.name.clone(), ns));
            }
        }
    }
    Some(deepest)
}

fn deepest_idle(hosts: &[Snapshot]) -> Option<Answer> {
    let states: Vec<Option<(String, u64)>> = hosts.iter().map(deepest_state).collect::<Option<_>>()?;
    let ns: Vec<u64> = states.iter().map(|s| s.as_ref().map_or(0, |s| s.1)).collect();
    let spread = ns.iter().max()? - ns.iter().min()?;
    let values = states
        .iter()
        .map(|s| s.as_ref().map_or("none".into(), |(name, ns)| format!("{name}, {}", show_ns(*ns))))
        .collect();
    // A number that somebody measured and a number that a kernel made up differ, and nothing follows from that. One and
    // the same table, limited on one host, is compared: whatever a state costs, one host may pay it.
    let claims = |h: &Snapshot| -> Vec<(String, Option<u64>)> {
        let tables = h.idle.tables();
        tables.iter().flat_map(|(_, rows)| rows).map(|row| (row.name.clone(), row.exit_latency_ns)).collect()
    };
    let is_one_table = hosts.windows(2).all(|pair| claims(&pair[0]) == claims(&pair[1]));
    let sources: Vec<_> = hosts.iter().map(|h| h.idle.source()).collect();
    let is_placeholder = |s: &Option<TableSource>| s.as_ref().is_some_and(|s| !s.is_believable());
    if !is_one_table && sources.iter().any(is_placeholder) {
        let words = |s: &Option<TableSource>| s.as_ref().map_or("not known where from".into(), TableSource::words);
        let mut all: Vec<String> = sources.iter().map(words).collect();
        all.dedup();
        let text = format!(
            "no size: claims of different worth or placeholders ({}); wakewatt measure idle on each tells",
            all.join("; ")
        );
        return Some((values, Predicted { latency_ns: None, speed_ratio: None, text }));
    }
    let text = format!("a wake-up may take up to {} longer (claimed exit latency)", show_ns(spread));
    Some((values, Predicted { latency_ns: Some(spread), speed_ratio: None, text }))
}

fn frequency_limit(hosts: &[Snapshot]) -> Option<Answer> {
    let limits: Vec<Reach> = hosts.iter().map(reach::of).collect::<Option<_>>()?;
    let values = limits.iter().map(ToString::to_string).collect();
    let Some(khz) = limits.iter().map(Reach::khz).collect::<Option<Vec<u64>>>() else {
        let text = "no size: the limit of acpi-cpufreq leaves boost out, and nothing here says how far boost goes";
        return Some((values, Predicted { latency_ns: None, speed_ratio: None, text: text.into() }));
    };
    let as_float: Vec<f64> = khz.iter().map(|khz| *khz as f64).collect();
    let what = "clock of few busy cores, where work waits for the core and not for memory";
    let (_, predicted) = speed(&as_float, |_| String::new(), true, what)?;
    Some((values, predicted))
}

/// With distances unknown, the number of nodes alone says how much lands elsewhere.
fn remote_share(hosts: &[Snapshot]) -> Option<Answer> {
    let shares: Vec<f64> = hosts.iter().map(|h| h.memory.random_remote_ratio()).collect::<Option<_>>()?;
    let (low, high) = (shares.iter().copied().fold(1.0, f64::min), shares.iter().copied().fold(0.0, f64::max));
    let values = shares.iter().map(|s| format!("{} %", three_digits(s * 100.0))).collect();
    let text = format!("{} % more of randomly placed memory is on another node", three_digits((high - low) * 100.0));
    // Its cost in time needs the distances or a measured matrix: no size is claimed.
    Some((values, Predicted { latency_ns: None, speed_ratio: None, text }))
}

fn random_placement(hosts: &[Snapshot]) -> Option<Answer> {
    let costs: Vec<f64> = hosts.iter().map(|h| h.memory.random_placement_cost()).collect::<Option<_>>()?;
    speed(
        &costs,
        |c| format!("{}x", three_digits(c)),
        false,
        "memory access with random placement, from the node distances",
    )
}

fn memory_speed(hosts: &[Snapshot]) -> Option<Answer> {
    let slowest = |h: &Snapshot| h.dimms.populated().filter_map(|d| d.configured_mts).min();
    let speeds: Vec<f64> = hosts.iter().map(|h| slowest(h).map(|s| s as f64)).collect::<Option<_>>()?;
    speed(&speeds, |s| format!("{s} MT/s"), true, "peak memory bandwidth per channel")
}

fn coalescing(hosts: &[Snapshot]) -> Option<Answer> {
    let longest = |h: &Snapshot| h.network.interfaces.iter().filter_map(|i| i.coalesce.get()?.rx_ns).max();
    let ns: Vec<u64> = hosts.iter().map(longest).collect::<Option<_>>()?;
    let spread = ns.iter().max()? - ns.iter().min()?;
    let text = format!("a packet may wait up to {} longer for its interrupt", show_ns(spread));
    Some((ns.iter().map(|n| show_ns(*n)).collect(), Predicted { latency_ns: Some(spread), speed_ratio: None, text }))
}

/// A quantity that speeds up or slows down in proportion.
fn speed(values: &[f64], show: impl Fn(f64) -> String, is_more_better: bool, what: &str) -> Option<Answer> {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(0.0, f64::max);
    if !(low > 0.0 && high.is_finite()) {
        return None;
    }
    let word = if is_more_better { "more" } else { "less" };
    let ratio = high / low - 1.0;
    let text = format!("{what}: the better host has {} % {word}", three_digits(ratio * 100.0));
    Some((values.iter().map(|v| show(*v)).collect(), Predicted { latency_ns: None, speed_ratio: Some(ratio), text }))
}
