//! What a run measured, as a flat list of named quantities: what two runs are joined on.
//!
//! A name says everything that must be equal for two numbers to be comparable (kind of wake-up and pause, engine, block
//! size and depth of a read, transport and peer), and nothing that may differ (the CPU, the hour). Where a run measured the
//! same thing in several windows, each window's value is kept: only they tell how the run itself varies. Medians and 99th
//! percentiles come from the distributions with their intervals; memory and load give what they have.

use super::measure::{Aspect, Measure};
use crate::covers::Covers;
use crate::distribution::Distribution;
use crate::evidence::Evidence;
use crate::samples::Samples;
use crate::samples::disk::DiskSample;
use crate::samples::energy::{EnergySample, SIMULATOR};
use crate::samples::experiment::{Better, ExperimentRun};
use crate::samples::load::{Ask, LoadRun};
use crate::samples::memory::MemorySample;
use crate::samples::replayed::Replayed;
use crate::samples::state_cost::StateCosts;
use crate::units::{show_bytes, show_ns, three_digits};
use serde::Serialize;

/// 95 % interval of a number, and what it covers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WindowInterval {
    /// Lower end, in the quantity's unit.
    pub low: f64,
    /// Upper end, in the quantity's unit.
    pub high: f64,
    /// What it covers; of a percentile its window, and not the next one.
    pub covers: Covers,
}

/// One quantity of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Quantity {
    /// Equal in two runs where the numbers are comparable: `disk.psync.random.32768.d1.p50`.
    pub id: String,
    /// wakeup, network, disk, memory, load, power …
    pub kind: String,
    /// Name of the quantity for people.
    pub title: String,
    /// What the numbers are in.
    pub measure: Measure,
    /// What it is about: a gate looks at such things.
    pub aspect: Aspect,
    /// Which way is better.
    pub better: Better,
    /// The number: the median of the windows.
    pub value: f64,
    /// Of one window with a distribution, the interval of its percentile; none where there is none, or more windows.
    pub interval: Option<WindowInterval>,
    /// The value of each window.
    pub windows: Vec<f64>,
    /// 10th, 25th, 50th, 75th and 90th percentile of all samples, for latencies: to see whether a change is a steady one.
    pub shape_ns: Option<[f64; 5]>,
}

/// Everything that can be compared, in reading order.
pub fn of(evidence: &Evidence) -> Vec<Quantity> {
    let Samples {
        wakeups,
        network,
        memory,
        cores,
        disk,
        disk_experiment,
        icmp,
        // A pause and a slow-down say more than one number that is better or worse.
        speed: _,
        idle_states,
        // Of the machine's own work, which nobody holds equal in two runs.
        work: _,
        trace: _,
        experiment,
        conclusions,
        experiments,
        load,
        energy,
        // Values over time are drawn, and compared by the eye.
        timelines: _,
        replays,
    } = &evidence.samples;
    let mut all = Vec::new();
    let mut groups = Groups::default();
    wakeups.iter().for_each(|s| {
        let (id, title) = s.series();
        groups.add("wakeup", id, title, &s.latency);
    });
    network.iter().for_each(|s| {
        let (word, gap) = (s.transport.word(), show_ns(s.gap_ns));
        let title = format!("{word} round trip to {}, every {gap}", s.peer);
        groups.add("network", format!("{word}.{}.{gap}", s.peer), title, &s.round_trip);
    });
    icmp.iter().for_each(|s| {
        let gap = show_ns(s.gap_ns);
        let (id, title) = (format!("icmp.{}.{gap}", s.peer), format!("ping of {}, every {gap}", s.peer));
        groups.add("network", id, title, &s.round_trip);
    });
    for s in disk {
        let (id, title) = disk_name(s);
        groups.add("disk", id.clone(), title.clone(), &s.latency);
        if let Some(service) = &s.service {
            groups.add("disk", format!("{id}.service"), format!("{title}, service time"), service);
        }
    }
    groups.into_quantities(&mut all);
    idle_states.iter().for_each(|costs| of_states(&mut all, costs));
    memory.iter().for_each(|m| of_memory(&mut all, m));
    cores.iter().flat_map(|c| &c.by_nearness).for_each(|near| {
        let words = near.nearness.words();
        let (id, title) = (format!("cores.{words}"), format!("cache line hand-over, {words}, median"));
        push(&mut all, "cores", id, title, Measure::Nanoseconds, Better::Lower, vec![near.median_ns]);
    });
    // Of a planned experiment one round is kept for drawing; its blocks are what was measured.
    load.iter().filter(|_| conclusions.is_none()).for_each(|run| of_load(&mut all, run));
    energy.iter().for_each(|sample| of_meter(&mut all, sample));
    let planned = conclusions.as_ref().map_or("idle", |c| c.name.as_str());
    experiment.iter().for_each(|run| as_found(&mut all, planned, run));
    disk_experiment.iter().for_each(|run| as_found(&mut all, "disk", run));
    for run in experiments {
        let arms: Vec<&str> = run.arms.iter().map(|arm| arm.id.as_str()).collect();
        as_found(&mut all, &arms.join("-"), run);
    }
    replays.iter().for_each(|replayed| of_replay(&mut all, replayed, replays.len() == 1));
    all
}

/// What a replay predicts. One that stands alone in its run is joined whatever was asked of it; several are by what was asked.
fn of_replay(all: &mut Vec<Quantity>, replayed: &Replayed, is_alone: bool) {
    let side = &replayed.predicted;
    let (id, of) = match is_alone {
        true => ("replay".to_string(), String::new()),
        false => (format!("replay.{}", replayed.setting_words()), format!(", {}", replayed.setting_words())),
    };
    let per_s = |n: f64| replayed.window_ns.filter(|ns| *ns > 0).map(|ns| n / (ns as f64 / 1e9));
    let n_wakes: u64 = side.states.iter().map(|s| s.n_wakes).sum();
    // Microjoules in a second are microwatts.
    let figures = [
        ("mean cost of a wake-up", Measure::Nanoseconds, (side.wake_cost.n > 0).then_some(side.wake_cost.mean_ns)),
        ("99th percentile of the cost of a wake-up", Measure::Nanoseconds, side.wake_cost.p99_ns().map(|ns| ns as f64)),
        ("wake-ups from idle", Measure::PerSecond, per_s(n_wakes as f64)),
        ("power while idle", Measure::Microwatts, per_s(side.modelled_energy_uj)),
    ];
    for (what, measure, value) in figures {
        let title = format!("{what}{of} (replay, modelled)");
        push(all, "replay", format!("{id}.{what}"), title, measure, Better::Lower, value.into_iter().collect());
    }
}

fn of_states(all: &mut Vec<Quantity>, costs: &StateCosts) {
    for state in costs.states.iter().filter(|s| s.not_entered.is_none()) {
        for wake in &state.wakes {
            let windows: Vec<f64> = wake.round_p50_ns.iter().map(|ns| *ns as f64).collect();
            let id = format!("state.{}.{}.{}", state.name, wake.kind.word(), show_ns(costs.gap_ns));
            let title = format!("{} wake-up out of {} alone, median", wake.kind.word(), state.name);
            push(all, "idle", id, title, Measure::Nanoseconds, Better::Lower, windows);
        }
    }
}

fn of_meter(all: &mut Vec<Quantity>, sample: &EnergySample) {
    let Some(total) = sample.chosen().and_then(|m| m.total.as_ref()).filter(|t| t.mean_uw > 0) else { return };
    let meter = sample.chosen.as_deref().unwrap_or("?");
    let (id, title) = (format!("power.{meter}.{}", total.covers), format!("power by {meter} ({})", total.covers));
    push(all, "power", id, title, Measure::Microwatts, Better::Lower, vec![total.mean_uw as f64]);
}

fn disk_name(s: &DiskSample) -> (String, String) {
    let (engine, access) = (s.engine.word(), s.access.word());
    let rate = s.planned_per_s.map_or("closed".to_string(), |r| format!("{r}/s"));
    let pace = s.planned_per_s.map_or(String::new(), |r| format!(", {} reads/s planned", three_digits(r)));
    let cache = if s.target.is_direct { "" } else { ", through the page cache" };
    let direct = if s.target.is_direct { "" } else { ".cached" };
    (
        format!("{engine}.{access}.{}.d{}.{rate}{direct}", s.block_bytes, s.depth),
        format!("{access} reads of {}, {engine}, depth {}{pace}{cache}", show_bytes(s.block_bytes), s.depth),
    )
}

fn of_memory(all: &mut Vec<Quantity>, sample: &MemorySample) {
    for curve in &sample.latency {
        let pages = curve.pages.word();
        let windows: Vec<f64> = curve.memory_ns().into_iter().collect();
        let (id, title) = (format!("memory.latency.{pages}"), format!("memory latency, {pages} pages, best"));
        push(all, "memory", id, title, Measure::Nanoseconds, Better::Lower, windows);
    }
    for b in &sample.bandwidth {
        let (word, pages, n) = (b.traffic.word(), b.pages.word(), b.cpus.len());
        let id = format!("memory.bandwidth.{word}.{pages}.{n}");
        let title = format!("memory bandwidth, {word}, {pages} pages, {n} CPUs, best");
        push(all, "memory", id, title, Measure::BytesPerSecond, Better::Higher, vec![b.best_bytes_per_s]);
    }
    for cell in &sample.matrix {
        let id = format!("memory.matrix.{}.{}", cell.cpu_node, cell.memory_node);
        let title = format!("memory latency from node {} to node {}, best", cell.cpu_node, cell.memory_node);
        push(all, "memory", id, title, Measure::Nanoseconds, Better::Lower, cell.latency_ns.into_iter().collect());
    }
}

fn of_load(all: &mut Vec<Quantity>, run: &LoadRun) {
    // Without --work each run sizes a transaction by its own clock: the same title, and other work.
    let work = run.work_units.map_or(String::new(), |n| format!(".{n} units"));
    // Levels before a change and after it are not one quantity; the report draws them over time.
    let is_simulated =
        run.levels.iter().any(|l| l.energy.as_ref().is_some_and(|e| e.chosen.as_deref() == Some(SIMULATOR)));
    let kind = if is_simulated { "simulated" } else { "load" };
    let n_levels = if run.changes.is_empty() { run.levels.len() } else { 0 };
    for level in run.levels.iter().take(n_levels).filter(|l| l.broken_rules.is_empty()) {
        let at = level_id(level.ask);
        let latency = |q: f64| level.latency.as_ref().and_then(|d| d.quantile(q)).map(|q| q.value_ns as f64);
        let is_loaded = level.ask != Ask::Idle;
        let figures = [
            (
                "figure",
                Measure::Number,
                level.figure.map_or(Better::Higher, |f| f.better),
                level.figure.map(|f| f.value),
            ),
            ("rate", Measure::PerSecond, Better::Higher, is_loaded.then_some(level.per_s)),
            ("latency p50", Measure::Nanoseconds, Better::Lower, latency(0.5)),
            ("latency p99", Measure::Nanoseconds, Better::Lower, latency(0.99)),
            ("CPU time per operation", Measure::Nanoseconds, Better::Lower, level.cpu_ns_per_op()),
            ("power", Measure::Microwatts, Better::Lower, level.mean_uw().map(|uw| uw as f64)),
            ("work per joule", Measure::PerJoule, Better::Higher, level.per_joule().filter(|_| is_loaded)),
        ];
        for (what, measure, better, value) in figures {
            // Two commands may be called alike once their names are masked, and one command may be called otherwise in each run.
            let name = run.command_hash.as_ref().unwrap_or(&run.title);
            let id = format!("load.{:?}.{name}{work}.{at}.{what}", run.kind);
            push(all, kind, id, format!("{}, {at}: {what}", run.title), measure, better, value.into_iter().collect());
        }
    }
}

/// The level in an id and its title. Two runs are joined by it, so it is rounded and never reworded.
fn level_id(ask: Ask) -> String {
    match ask {
        Ask::Share(share) => format!("{:.0} % load", share * 100.0),
        Ask::Idle => "active idle".into(),
        Ask::Clients(n) => format!("{n} clients"),
        Ask::Rate(per_s) => format!("{}/s", three_digits(per_s)),
        Ask::Run => "the whole run".into(),
    }
}

/// The blocks of an experiment's baseline: the machine as it was found, in many windows.
fn as_found(all: &mut Vec<Quantity>, name: &str, run: &ExperimentRun) {
    let Some(baseline) = run.arms.first() else { return };
    for (at, metric) in run.metrics.iter().enumerate() {
        let windows: Vec<f64> = run.values(&baseline.id, at).map(|(_, value)| value).collect();
        let id = format!("blocks.{name}.{}", metric.id);
        let title = format!("{}, as found, in the experiment's blocks", metric.title);
        push(all, "experiment", id, title, metric.unit.into(), metric.better, windows);
    }
}

/// One quantity of windows without a distribution; the same name again adds windows.
fn push(
    all: &mut Vec<Quantity>,
    kind: &str,
    id: String,
    title: String,
    measure: Measure,
    better: Better,
    windows: Vec<f64>,
) {
    let windows: Vec<f64> = windows.into_iter().filter(|v| v.is_finite() && *v > 0.0).collect();
    if windows.is_empty() {
        return;
    }
    if let Some(known) = all.iter_mut().find(|q| q.id == id) {
        known.windows.extend(windows);
        known.value = crate::stats::paired::median(&known.windows);
        return;
    }
    let value = crate::stats::paired::median(&windows);
    all.push(Quantity {
        aspect: Aspect::of(kind, &id, measure, better),
        id,
        kind: kind.into(),
        title,
        measure,
        better,
        value,
        interval: None,
        windows,
        shape_ns: None,
    });
}

/// Distributions of one name, in the order in which names first appear.
#[derive(Default)]
struct Groups<'a>(Vec<(&'static str, String, String, Vec<&'a Distribution>)>);

impl<'a> Groups<'a> {
    fn add(&mut self, kind: &'static str, id: String, title: String, latency: &'a Distribution) {
        let id = format!("{kind}.{id}");
        match self.0.iter_mut().find(|(_, known, ..)| *known == id) {
            Some((.., all)) => all.push(latency),
            None => self.0.push((kind, id, title, vec![latency])),
        }
    }

    fn into_quantities(self, all: &mut Vec<Quantity>) {
        for (kind, id, title, latencies) in self.0 {
            for (word, q) in [("median", 0.5), ("p99", 0.99)] {
                let found: Vec<_> = latencies.iter().filter_map(|d| d.quantile(q)).collect();
                let windows: Vec<f64> = found.iter().map(|q| q.value_ns as f64).collect();
                let (id, title) = (format!("{id}.{word}"), format!("{title}, {word}"));
                push(all, kind, id.clone(), title, Measure::Nanoseconds, Better::Lower, windows);
                let Some(quantity) = all.last_mut().filter(|last| last.id == id) else { continue };
                quantity.interval = match &found[..] {
                    [q] => Some(WindowInterval { low: q.low_ns as f64, high: q.high_ns as f64, covers: q.covers }),
                    _ => None,
                };
                quantity.shape_ns = (q == 0.5).then(|| shape(&latencies)).flatten();
            }
        }
    }
}

/// Percentiles of all samples together, straight lines within a bucket.
fn shape(latencies: &[&Distribution]) -> Option<[f64; 5]> {
    let mut buckets: Vec<(u64, u64)> =
        latencies.iter().flat_map(|d| &d.buckets).filter(|b| b.n > 0).map(|b| (b.upto_ns, b.n)).collect();
    buckets.sort_unstable();
    let total: u64 = buckets.iter().fold(0, |all, (_, n)| all.saturating_add(*n));
    if total < 100 {
        return None;
    }
    let at = |share: f64| {
        let rank = share * total as f64;
        let mut below = 0.0;
        for (upto, n) in &buckets {
            let n = *n as f64;
            if below + n >= rank {
                // Buckets are a sixteenth to a thirty-second of a doubling wide.
                let width = (*upto as f64 / 32.0).max(1.0);
                return *upto as f64 - width * (1.0 - (rank - below) / n);
            }
            below += n;
        }
        buckets.last().map_or(0.0, |(upto, _)| *upto as f64)
    };
    Some([0.1, 0.25, 0.5, 0.75, 0.9].map(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_two_runs_are_joined_by_rounded_numbers() {
        let third = 1000.0 / 3.0;
        let asks = [Ask::Rate(third), Ask::Rate(12_500.0), Ask::Share(1.0 / 3.0), Ask::Clients(1), Ask::Idle, Ask::Run];
        let ids = ["333/s", "12500/s", "33 % load", "1 clients", "active idle", "the whole run"];
        assert_eq!(asks.map(level_id), ids);
    }
}
