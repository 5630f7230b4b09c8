//! Samples as tables: one per kind, a row per sample, units in the column names, an empty field where there is no number.
//!
//! Every latency gets the same columns (count, mean, quantiles with the interval of the median).

mod buckets;
mod data;
mod experiment;
mod load;
mod waits;

use crate::view::csv;
use wakewatt_core::distribution::Distribution;
use wakewatt_core::samples::{Samples, Window};

/// A table as text; a missing value is an empty field.
pub(super) struct Table {
    /// The file's name without its ending.
    pub(super) name: String,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(name: &str, columns: &[&str]) -> Table {
        Table { name: name.into(), columns: columns.iter().map(ToString::to_string).collect(), rows: Vec::new() }
    }

    /// As the text of a file.
    pub(super) fn to_csv(&self) -> String {
        csv::text(csv::Ends::Unix, std::iter::once(&self.columns).chain(&self.rows))
    }
}

/// A value or nothing.
fn or<T: ToString>(value: Option<T>) -> String {
    value.map_or(String::new(), |v| v.to_string())
}

const LATENCY: &[&str] =
    &["n", "mean_ns", "min_ns", "p50_ns", "p50_low_ns", "p50_high_ns", "p90_ns", "p99_ns", "p99.9_ns", "max_ns"];
const WINDOW: &[&str] = &["start_at_ns", "end_at_ns"];

fn latency(d: &Distribution) -> Vec<String> {
    let at = |q| or(d.quantile(q).map(|v| v.value_ns));
    let has = |value: u64| if d.n > 0 { value.to_string() } else { String::new() };
    let mean = if d.n > 0 { format!("{:.1}", d.mean_ns) } else { String::new() };
    let (low, high) = (or(d.quantile(0.5).map(|v| v.low_ns)), or(d.quantile(0.5).map(|v| v.high_ns)));
    vec![d.n.to_string(), mean, has(d.min_ns), at(0.5), low, high, at(0.9), at(0.99), at(0.999), has(d.max_ns)]
}

fn window(w: &Window) -> Vec<String> {
    vec![w.start_at_ns.to_string(), w.end_at_ns.to_string()]
}

/// Every table that has a row.
pub(super) fn of(samples: &Samples) -> Vec<Table> {
    let Samples {
        wakeups,
        network,
        memory,
        cores,
        disk,
        disk_experiment,
        icmp,
        speed,
        idle_states,
        // What was counted over a window has no rows; --json shows it, and the page the trace.
        work: _,
        trace: _,
        experiment,
        // Of the blocks, which are there.
        conclusions: _,
        experiments,
        load: runs,
        energy,
        // As the page draws them, with the charts' own tables.
        timelines: _,
        // `replay --csv` writes them, a row for each CPU and state.
        replays: _,
    } = samples;
    let mut all = vec![waits::wakeups(wakeups), waits::network(network, icmp), data::disk(disk)];
    all.extend(data::memory(memory.as_ref()));
    all.extend([data::cores(cores), waits::speed(speed), waits::idle_states(idle_states)]);
    all.push(waits::idle_energy(idle_states));
    all.extend([load::load(runs), load::power(energy)]);
    all.extend(experiment::all(experiment.as_ref(), disk_experiment.as_ref(), experiments));
    all.push(buckets::all(wakeups, network, icmp, disk, runs));
    all.retain(|table| !table.rows.is_empty());
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn every_row_has_every_column() {
        for (name, report) in sample::all() {
            for table in of(&report.evidence.samples) {
                assert!(table.rows.iter().all(|r| r.len() == table.columns.len()), "{name}: {}", table.name);
                assert_eq!(table.to_csv().lines().count(), table.rows.len() + 1, "{name}: {}", table.name);
            }
        }
        let tables = of(&sample::two_arms().evidence.samples);
        let names: Vec<&str> = tables.iter().map(|t| t.name.as_str()).collect();
        assert!(names.starts_with(&["wakeups"]) && names.contains(&"experiment"), "{names:?}");
    }

    #[test]
    fn every_experiment_has_a_table() {
        let mut evidence = sample::governor().evidence;
        evidence.samples.experiment = sample::two_arms().evidence.samples.experiment;
        let tables = of(&evidence.samples);
        let names: Vec<&str> =
            tables.iter().map(|t| t.name.as_str()).filter(|name| name.contains("experiment")).collect();
        assert_eq!(names, ["experiment", "experiment-1"]);
        let governor = tables.iter().find(|t| t.name == "experiment-1").unwrap();
        assert_eq!(governor.rows.len(), evidence.samples.experiments[0].blocks.len());
        assert!(governor.columns.contains(&"steps.10.p50_ns".to_string()), "{:?}", governor.columns);
    }
}
