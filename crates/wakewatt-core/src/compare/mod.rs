//! Comparing hosts: what differs, ranked by what it is predicted to do.
//!
//! The rows of two snapshots are joined on their ids; running counters and facts that one side never recorded are left
//! out, because "differs" must not mean "was not looked at". Uncore domains are joined by what they clock, not by
//! number. A few predictions ([`predict`]) turn whole settings into
//! one number each (how deep may a CPU sleep, how fast may it clock); they stand first, by size, and the plain
//! differences follow in order of how often their topic was the cause in the field.

pub mod effects;
pub mod gate;
pub mod measure;
pub mod predict;
pub mod quantities;
mod ratio;
pub mod replication;
mod reach;
pub mod residency;
pub mod runs;
pub mod suspects;

use crate::arrange::Arrange as _;
use crate::fact::GapKind;
use crate::facts::Snapshot;
use crate::sheet::{Row, Sheet};
use serde::Serialize;
use std::collections::BTreeMap;
use wakewatt_words::word;

/// A row that differs between the hosts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// The rows' id, or `predicted.…`.
    pub id: String,
    /// The topic of `inspect` the row belongs to.
    pub topic: String,
    /// Name of the row for people.
    pub label: String,
    /// The value on each host, in the order given.
    pub values: Vec<String>,
    /// What it is predicted to do.
    pub predicted: Option<Predicted>,
}

/// A predicted effect. Always modelled from facts, never measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Predicted {
    /// Nanoseconds between the best and the worst host, where it is a latency.
    pub latency_ns: Option<u64>,
    /// Best over worst minus one, where it is speed.
    pub speed_ratio: Option<f64>,
    /// The prediction in words.
    pub text: String,
}

/// All differences between hosts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// The hosts, as they name themselves.
    pub hosts: Vec<String>,
    /// What differs, the largest predicted effect first.
    pub differences: Vec<Difference>,
    /// How many rows are the same in both.
    pub n_equal: usize,
    /// Rows that could not be compared, because a host does not record them or would not tell.
    pub n_unknown: usize,
    /// What was measured, where two runs were compared; see [`runs`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<Box<runs::RunComparison>>,
    /// What the rules of a gate came to, where any were given; see [`gate`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<Box<gate::Gate>>,
}

/// Topics, most frequent cause first.
const BY_FREQUENCY: &[&str] = &[
    "idle", "qos", "freq", "boot", "kernel", "memory", "dimms", "uncore", "holders", "virt", "thermal", "power",
    "network", "storage", "irq", "cgroup", "topology", "cache", "msr",
];

/// Rows that are the cause of others, whatever their topic: firmware's limit moves the claims of the idle table.
const CAUSES: &[&str] =
    &["msr.package_limit", "msr.pkg_cst_config.lock", "msr.pkg_cst_config.c1_demotion", "msr.power_ctl.c1e"];

/// Compares two or more.
pub fn compare(hosts: &[Snapshot]) -> Comparison {
    let tables: Vec<BTreeMap<String, (String, String, Value)>> = hosts.iter().map(table).collect();
    let mut ids: Vec<&String> = tables.iter().flat_map(|t| t.keys()).collect();
    ids.sort();
    ids.dedup();
    let mut differences = predict::all(hosts);
    let (mut n_equal, mut n_unknown) = (0, 0);
    for id in ids {
        let Some((topic, label, _)) = tables.iter().find_map(|t| t.get(id)) else { continue };
        let values: Vec<Value> =
            tables.iter().map(|t| t.get(id).map_or(Value::Missing, |(_, _, v)| v.clone())).collect();
        if values.contains(&Value::Unknown) {
            n_unknown += 1;
        } else if values.windows(2).all(|w| w[0] == w[1]) {
            n_equal += 1;
        } else {
            let values = values
                .into_iter()
                .map(|v| if let Value::Known(text) = v { text } else { word!("absent").into() })
                .collect();
            differences.push(Difference {
                id: id.clone(),
                topic: topic.clone(),
                label: label.clone(),
                values,
                predicted: None,
            });
        }
    }
    let size = |d: &Difference| {
        let p = d.predicted.as_ref();
        p.map_or(0.0, |p| p.latency_ns.unwrap_or(0) as f64 + p.speed_ratio.unwrap_or(0.0) * 1e6)
    };
    let place = |d: &Difference| {
        let is_cause = CAUSES.contains(&d.id.as_str());
        let topic = BY_FREQUENCY.iter().position(|t| *t == d.topic).unwrap_or(BY_FREQUENCY.len());
        (!is_cause, topic)
    };
    differences.arrange_by(|a, b| size(b).total_cmp(&size(a)).then(place(a).cmp(&place(b))));
    let hosts = hosts.iter().map(|h| h.origin.clone()).collect();
    Comparison { hosts, differences, n_equal, n_unknown, runs: None, gate: None }
}

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Known(String),
    /// The kernel has no such file, or the row is not there.
    Missing,
    /// Not recorded, denied, malformed.
    Unknown,
}

fn table(snapshot: &Snapshot) -> BTreeMap<String, (String, String, Value)> {
    let mut table = BTreeMap::new();
    for (topic, mut sheet) in snapshot.sheets() {
        if topic.id == "uncore" && !snapshot.uncore.domains.is_empty() {
            sheet = Sheet::default();
            snapshot.uncore.show_by_kind(&mut sheet);
        }
        let mut by_id: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
        for row in sheet.rows.iter().filter(|r| !r.is_counter) {
            by_id.entry(&row.id).or_default().push(row);
        }
        for (id, rows) in by_id {
            table.insert(id.to_string(), (topic.id.to_string(), rows[0].label.clone(), value(&rows)));
        }
    }
    table
}

fn value(rows: &[&Row]) -> Value {
    let mut texts: Vec<String> = Vec::new();
    for row in rows {
        match &row.cell {
            Ok(cell) => match (&row.cpus, rows.len()) {
                (Some(cpus), 2..) => texts.push(format!("{cell} on {cpus}")),
                _ => texts.push(cell.to_string()),
            },
            Err(gap) if gap.kind == GapKind::Absent => {}
            Err(_) => return Value::Unknown,
        }
    }
    if texts.is_empty() { Value::Missing } else { Value::Known(texts.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Tree;

    fn host(latency: &str, disable: &str, usage: &str) -> Snapshot {
        let state = "/sys/devices/system/cpu/cpu0/cpuidle/state1";
        let tree = Tree::from_text(&format!(
            "//- /sys/devices/system/cpu/online\n0\n//- {state}/name\nC6\n//- {state}/latency\n{latency}\n//- {state}/disable\n{disable}\n//- {state}/usage\n{usage}\n"
        ));
        Snapshot::read(&tree, |t| t == "idle" || t == "qos")
    }

    #[test]
    fn a_predicted_effect_stands_first_and_counters_do_not_count() {
        let result = compare(&[host("290", "0", "5"), host("290", "1", "70")]);
        assert_eq!(result.differences[0].id, "predicted.deepest_idle");
        assert_eq!(result.differences[0].values, ["C6, 290us", "none"]);
        assert_eq!(result.differences[0].predicted.as_ref().unwrap().latency_ns, Some(290_000));
        assert!(result.differences.iter().any(|d| d.id == "idle.C6.disabled"));
        assert!(!result.differences.iter().any(|d| d.id.contains("usage")), "counters always differ and mean nothing");
    }

    #[test]
    fn equal_hosts_have_no_difference() {
        assert!(compare(&[host("290", "0", "5"), host("290", "0", "9")]).differences.is_empty());
    }
}
