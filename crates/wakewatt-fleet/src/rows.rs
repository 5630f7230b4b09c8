//! A fleet as rows for DuckDB, Spark or a spreadsheet: one for each host and fact, one for each host and thing measured.
//!
//! Both tables are long and narrow, because nobody knows today what will be asked: a fact that a later version reads is another
//! row, never another column. What a host could not say is a row, too, with the reason in the place of a value: a query that
//! counts must be able to tell "no" from "cannot tell". Numbers are raw, in the unit beside them; `value` is how wakewatt shows it.

use crate::folder::{Machine, table};
use std::collections::BTreeMap;
use wakewatt_core::compare::quantities;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::record::wtrace::PairSummary;

/// A fact of a host.
#[derive(Clone, Debug, PartialEq)]
pub struct FactRow {
    /// The part of the machine: idle, freq, kernel.
    pub topic: &'static str,
    /// Equal on every host: `idle.C6.exit_latency`.
    pub id: String,
    /// For people.
    pub label: String,
    /// For which CPUs it holds, where that matters.
    pub cpus: Option<String>,
    /// As wakewatt shows it.
    pub value: Option<String>,
    /// The raw number.
    pub number: Option<f64>,
    /// What the number is in.
    pub unit: Option<&'static str>,
    /// Why there is no value.
    pub missing: Option<String>,
    /// It changes by itself: a counter, a temperature.
    pub is_reading: bool,
}

/// Something measured on a host.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasureRow {
    /// Equal where the numbers are comparable: `wakeup.timer.fifo.p99`.
    pub id: String,
    /// wakeup, load, trace …
    pub kind: String,
    /// For people.
    pub title: String,
    /// What the number is in.
    pub unit: &'static str,
    /// From 0; the windows of one quantity are repetitions.
    pub window: i64,
    /// The raw number.
    pub value: f64,
    /// 95 % interval, where one is known.
    pub interval: Option<(f64, f64)>,
}

/// The hardware class of each machine, in the words of `fleet compare`.
pub fn classes(machines: &[Machine]) -> BTreeMap<String, String> {
    table(machines, &[]).nodes.into_iter().map(|node| (node.name, node.hardware.words())).collect()
}

/// All facts of a host, and what it could not say.
pub fn facts(facts: &Snapshot) -> Vec<FactRow> {
    let sheets = facts.sheets().into_iter();
    let rows = sheets.flat_map(|(topic, sheet)| sheet.rows.into_iter().map(move |row| (topic.id, row)));
    rows.map(|(topic, row)| {
        let known = row.cell.as_ref().ok();
        let number = known.and_then(|cell| cell.number());
        FactRow {
            topic,
            cpus: row.cpus.map(|cpus| cpus.to_string()),
            value: known.map(ToString::to_string),
            number: number.map(|n| n.0),
            unit: number.map(|n| n.1),
            missing: row.cell.err().map(|gap| gap.to_string()),
            id: row.id,
            label: row.label,
            is_reading: row.is_counter,
        }
    })
    .collect()
}

/// What a run measured, as `compare` joins it.
pub fn measures(evidence: &Evidence) -> Vec<MeasureRow> {
    let mut rows = Vec::new();
    for quantity in quantities::of(evidence) {
        let interval = quantity.interval.as_ref().map(|i| (i.low, i.high));
        let row = |(window, value): (i64, &f64)| MeasureRow {
            id: quantity.id.clone(),
            kind: quantity.kind.clone(),
            title: quantity.title.clone(),
            unit: quantity.measure.unit(),
            window,
            value: *value,
            interval,
        };
        rows.extend((0..).zip(&quantity.windows).map(row));
    }
    rows
}

/// What a recording of idle intervals comes to, by idle state.
#[allow(clippy::cast_precision_loss)] // As in `Cell::number`.
pub fn traced(summary: &PairSummary) -> Vec<MeasureRow> {
    let seen_ns = summary.first_at_ns.zip(summary.last_at_ns).map_or(0, |(first, last)| last.saturating_sub(first));
    let all_ns = seen_ns as f64 * summary.n_cpus as f64;
    let mut rows = Vec::new();
    for state in &summary.states {
        let mut row = |what: &str, title: &str, unit, value: f64| {
            if value.is_finite() {
                rows.push(MeasureRow {
                    id: format!("trace.{}.{what}", state.state),
                    kind: "trace".into(),
                    title: format!("{title} in {}", state.state),
                    unit,
                    window: 0,
                    value,
                    interval: None,
                });
            }
        };
        let n = state.n as f64;
        row("stays", "stays", "", n);
        row("share", "share of the time of all CPUs", "ratio", state.time_ns as f64 / all_ns);
        row("too_short", "share of stays that ended too early", "ratio", state.n_above as f64 / n);
        row("too_shallow", "share of stays long enough for a deeper state", "ratio", state.n_below as f64 / n);
        for (word, q) in [("p50", 0.5), ("p99", 0.99)] {
            if let Some(found) = state.length.quantile(q) {
                row(word, &format!("{word} of the length of stays"), "ns", found.value_ns as f64);
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn what_is_known_has_its_unit_and_what_is_not_its_reason() {
        let tree = Tree::from_text(
            "//- /sys/devices/system/cpu/online\n0\n//- /sys/devices/system/cpu/cpu0/cpuidle/state1/name\nC6\n\
             //- /sys/devices/system/cpu/cpu0/cpuidle/state1/latency\n133\n//- /proc/sys/kernel/osrelease\n6.1.0\n",
        );
        let rows = facts(&Snapshot::read(&tree, |_| true));
        let of = |id: &str| rows.iter().find(|row| row.id == id).unwrap_or_else(|| panic!("{id}"));
        let exit = of("idle.C6.exit_latency");
        assert_eq!((exit.number, exit.unit, exit.cpus.as_deref()), (Some(133_000.0), Some("ns"), Some("0")));
        assert_eq!((of("kernel.release").value.as_deref(), of("kernel.release").number), (Some("6.1.0"), None));
        let driver = of("idle.driver");
        assert!(driver.value.is_none() && driver.missing.is_some(), "{driver:?}");
        assert!(rows.iter().all(|row| row.value.is_some() != row.missing.is_some()));
    }
}
