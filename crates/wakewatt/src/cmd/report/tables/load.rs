//! Load, level by level, and what the meters said.

use super::{LATENCY, Table, WINDOW, latency, or, window};
use wakewatt_core::samples::energy::EnergySample;
use wakewatt_core::samples::load::LoadRun;

pub(super) fn load(runs: &[LoadRun]) -> Table {
    let head = [
        "run",
        "title",
        "ask",
        "target_per_s",
        "per_s",
        "figure",
        "n_planned",
        "n_done",
        "n_failed",
        "cpu_ns",
        "system_ns",
        "mean_uw",
        "half_width_uw",
    ];
    let tail = ["cpu_by", "n_censored", "censored_from_ns", "invalid_because"];
    let mut table = Table::new("load", &[&head, LATENCY, WINDOW, &tail].concat());
    for (at, run) in runs.iter().enumerate() {
        for level in &run.levels {
            let ask = format!("{:?}", level.ask);
            let rates = [or(level.target_per_s), level.per_s.to_string(), or(level.figure.map(|f| f.value))];
            let head = [vec![at.to_string(), run.title.clone(), ask], rates.to_vec()].concat();
            let n =
                [level.n_planned, level.n_done, level.n_failed, level.cpu_ns, level.system_ns].map(|v| v.to_string());
            let latency = level.latency.as_ref().map_or(vec![String::new(); LATENCY.len()], latency);
            let by = level.cpu_by.map_or(String::new(), |by| format!("{by:?}"));
            let censored = level.latency.as_ref().and_then(|d| d.censored);
            let censored = [or(censored.map(|c| c.n)), or(censored.map(|c| c.from_ns))];
            let broken = vec![level.broken_rules.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")];
            let tail = [vec![by], censored.to_vec(), broken].concat();
            let watts = vec![or(level.mean_uw()), or(level.half_width_uw().and_then(Result::ok))];
            table.rows.push([head, n.to_vec(), watts, latency, window(&level.window), tail].concat());
        }
    }
    table
}

pub(super) fn power(samples: &[EnergySample]) -> Table {
    let head = ["meter", "is_chosen", "covers", "mean_uw", "energy_uj", "why_not"];
    let mut table = Table::new("power", &[&head, WINDOW].concat());
    for sample in samples {
        table.rows.extend(sample.meters.iter().map(|m| {
            let is_chosen = sample.chosen.as_ref() == Some(&m.meter);
            let total = m.total.as_ref();
            let covers = total.map_or(String::new(), |t| t.covers.clone());
            let numbers = vec![or(total.map(|t| t.mean_uw)), or(total.and_then(|t| t.energy_uj)), or(m.why.as_ref())];
            [vec![m.meter.clone(), is_chosen.to_string(), covers], numbers, window(&sample.window)].concat()
        }));
    }
    table
}
