//! A study as samples, so that reports, tables and comparisons show it beside what was measured: load runs with levels, and values over time.
//!
//! Everything says that it is modelled: titles, remarks, and watts, which come from a meter called `model`. A request's start is its arrival, as in
//! measured loads. CPU time is what the model's machines worked. Comparisons join runs by title and level; a title can be given, so that
//! a simulated run stands beside a measured one of that title.

use crate::outcome::{BinOutcome, Outcome};
use crate::server::{ArrivalKind, Server};
use crate::study::{Point, Study};
use wakewatt_core::samples::energy::{Averaging, EnergySample, MeterSample, SIMULATOR, Total};
use wakewatt_core::samples::experiment::Unit;
use wakewatt_core::samples::load::{Ask, CpuUse, Kind, Length, Level, LoadRun};
use wakewatt_core::samples::timeline::{Change, Moment, Timeline};
use wakewatt_core::samples::{Label, Samples, Window};

/// All of it. `title` takes the place of the file's name.
pub fn samples(server: &Server, study: &Study, title: Option<&str>) -> Samples {
    let title = title.unwrap_or(&study.name);
    let mut runs: Vec<(String, LoadRun)> = Vec::new();
    for point in &study.points {
        let name = [std::slice::from_ref(&point.setting), &point.swept[..]].concat().join(", ");
        if runs.last().is_none_or(|(last, _)| *last != name) {
            runs.push((name.clone(), run(server, study, point)));
        }
        if let Some((_, run)) = runs.last_mut() {
            run.levels.push(level(server, point));
        }
    }
    let is_one = runs.len() == 1;
    let titled = |(name, run): (String, LoadRun)| LoadRun {
        title: if is_one { title.into() } else { format!("{title}, {name}") },
        ..run
    };
    let timelines = match &server.change {
        Some(_) => study.points.iter().flat_map(|p| timelines(server, &p.outcome)).collect(),
        None => Vec::new(),
    };
    Samples { load: runs.into_iter().map(titled).collect(), timelines, ..Samples::default() }
}

fn run(server: &Server, study: &Study, point: &Point) -> LoadRun {
    let o = &point.outcome;
    LoadRun {
        kind: if server.workload.arrivals.kind == ArrivalKind::Closed { Kind::Shop } else { Kind::Steps },
        title: String::new(),
        length: Length::Custom,
        seed: o.seed,
        settings: vec![("simulated setting".into(), point.setting.clone())],
        capacity_per_s: study.full_per_s,
        remarks: vec![
            format!("Simulated, not measured: {} replications of {} s.", o.n_replications, o.duration_ns as f64 / 1e9),
            format!("Assumed: {}", study.about.split_whitespace().collect::<Vec<_>>().join(" ")),
        ],
        ..LoadRun::default()
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Not negative, and `as` saturates.
fn whole(value: f64) -> u64 {
    value.max(0.0).round() as u64
}

fn level(server: &Server, point: &Point) -> Level {
    let o = &point.outcome;
    let ns = o.duration_ns.saturating_mul(u64::from(o.n_replications));
    let cpu_ns = |f: &dyn Fn(&crate::outcome::MachineOutcome) -> f64| {
        let of = |m: &crate::outcome::MachineOutcome| f(m) * m.cpu_use.len() as f64 * ns as f64;
        whole(o.machines.iter().map(of).sum())
    };
    let ask = match (point.level_percent, server.workload.arrivals.kind) {
        (Some(0.0), _) => Ask::Idle,
        (Some(percent), _) => Ask::Share(percent / 100.0),
        (None, ArrivalKind::Closed) => {
            Ask::Clients(u32::try_from(server.workload.arrivals.clients.unwrap_or(0)).unwrap_or(u32::MAX))
        }
        (None, _) => Ask::Rate(o.offered_per_s.value),
    };
    let n_done = whole(o.done_per_s.value * ns as f64 / 1e9);
    let cpus = o.machines.iter().flat_map(|m| m.cpu_use.iter().map(|used| (*used, m.system_ratio.value))).zip(0..);
    Level {
        ask,
        phases_ns: [0, o.warmup_ns, o.duration_ns, 0],
        window: Window { start_at_ns: 0, end_at_ns: ns },
        target_per_s: (ask != Ask::Idle).then_some(o.offered_per_s.value),
        n_planned: whole(o.offered_per_s.value * ns as f64 / 1e9),
        n_done,
        per_s: o.done_per_s.value,
        latency: (n_done > 0 && !o.is_saturated).then(|| o.times.clone()),
        cpu_ns: cpu_ns(&|m| m.use_ratio.value),
        system_ns: cpu_ns(&|m| m.use_ratio.value * m.system_ratio.value),
        cpus: cpus
            .map(|((used, system), cpu)| CpuUse {
                cpu,
                user_ratio: used * (1.0 - system),
                system_ratio: used * system,
                steal_ratio: 0.0,
            })
            .collect(),
        load_average: o.machines.first().map(|m| m.load.value),
        energy: Some(energy(o, ns)),
        disturbances: o.is_saturated.then(|| "more came than it can do".into()).into_iter().collect(),
        ..Level::default()
    }
}

fn energy(o: &Outcome, ns: u64) -> EnergySample {
    let total = Total {
        covers: "wall".into(),
        of: vec!["power model".into()],
        mean_uw: whole(o.wall_w.value * 1e6),
        uncertainty_uw: o.wall_w.half.map(|half| whole(half * 1e6)),
        energy_uj: Some(whole(o.wall_w.value * ns as f64 / 1e3)),
        ..Total::default()
    };
    let meter = MeterSample {
        meter: SIMULATOR.into(),
        label: Label::Modelled,
        why: None,
        reach: None,
        read_cost_ns: None,
        averaging: Averaging::Counter,
        channels: Vec::new(),
        total: Some(total),
    };
    let window = Window { start_at_ns: 0, end_at_ns: ns };
    EnergySample { window, chosen: Some(SIMULATOR.into()), meters: vec![meter], ..EnergySample::default() }
}

type Value = fn(&BinOutcome) -> Option<f64>;

/// The picture of a change: what clients see, what the machine does, what it takes.
fn timelines(server: &Server, o: &Outcome) -> Vec<Timeline> {
    let values: [(&str, Unit, Value); 4] = [
        ("mean time of a request", Unit::Nanoseconds, |b| b.mean_ns),
        ("CPU use in percent", Unit::Number, |b| Some(b.use_ratio * 100.0)),
        ("load: tasks that run or wait", Unit::Number, |b| Some(b.load)),
        ("power at the wall", Unit::Microwatts, |b| Some(b.wall_w * 1e6)),
    ];
    let changes = server.change.iter().map(|change| Change {
        at_ns: change.at.ns(),
        within_ns: 0,
        what: format!("setting {}", change.setting),
    });
    let changes: Vec<Change> = changes.collect();
    let of = |(title, unit, value): (&str, Unit, Value)| {
        let mut start_at_ns = 0;
        let moments = o.series.iter().filter_map(|b| {
            let window = Window { start_at_ns, end_at_ns: b.until_ns };
            start_at_ns = b.until_ns;
            let value = value(b)?;
            Some(Moment { window, series: "simulated".into(), value, interval: None, invalid_because: None })
        });
        Timeline {
            title: format!("{title} (simulated)"),
            unit,
            label: Label::Modelled,
            moments: moments.collect(),
            changes: changes.clone(),
        }
    };
    values.into_iter().map(of).collect()
}
