//! The plan file as it is written; `parse.rs` gives it its meaning.

use super::{CannotTell, OnFailure};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(super) struct PlanFile {
    pub(super) format: u32,
    pub(super) name: String,
    pub(super) change: ChangeFile,
    pub(super) targets: TargetsFile,
    #[serde(default)]
    pub(super) stage: Vec<StageFile>,
    #[serde(default)]
    pub(super) gate: Vec<GateFile>,
    #[serde(default)]
    pub(super) on_failure: OnFailure,
    #[serde(default)]
    pub(super) max_left_out: usize,
    pub(super) parallel: Option<usize>,
    pub(super) order_within: Option<String>,
    pub(super) confirm_within: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ChangeFile {
    pub(super) profile: Option<String>,
    pub(super) max_latency: Option<String>,
    #[serde(default)]
    pub(super) set: Vec<String>,
    #[serde(default)]
    pub(super) bios: Vec<String>,
    pub(super) reboot: Option<String>,
    pub(super) boot_within: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct TargetsFile {
    #[serde(default)]
    pub(super) all: bool,
    #[serde(default)]
    pub(super) hosts: Vec<String>,
    #[serde(default)]
    pub(super) groups: Vec<String>,
    #[serde(default)]
    pub(super) labels: Vec<String>,
    #[serde(default)]
    pub(super) except: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StageFile {
    pub(super) name: Option<String>,
    pub(super) canary: Option<usize>,
    pub(super) count: Option<usize>,
    pub(super) percent: Option<f64>,
    pub(super) pause: Option<String>,
    pub(super) gates: Option<Vec<String>>,
    pub(super) on_failure: Option<OnFailure>,
}

#[derive(Debug, Deserialize)]
pub(super) struct GateFile {
    pub(super) name: String,
    pub(super) promql: Option<String>,
    pub(super) below: Option<f64>,
    pub(super) above: Option<f64>,
    pub(super) compare: Option<String>,
    pub(super) at_most_ratio: Option<f64>,
    pub(super) before: Option<String>,
    pub(super) window: Option<String>,
    pub(super) work: Option<String>,
    pub(super) latency: Option<String>,
    pub(super) cpu: Option<String>,
    pub(super) power: Option<String>,
    pub(super) select: Option<String>,
    pub(super) node_label: Option<String>,
    pub(super) command: Option<Vec<String>>,
    pub(super) experiment: Option<String>,
    pub(super) arm: Option<String>,
    pub(super) metric: Option<String>,
    pub(super) cannot_tell: Option<CannotTell>,
    pub(super) hold: Option<String>,
    pub(super) within: Option<String>,
}

/// Which keys belong to which kind of gate, beside those that all have.
pub(super) const OF_KIND: &[(&str, &[&str])] = &[
    ("promql", &["below", "above"]),
    ("compare", &["at_most_ratio", "before", "window", "work", "latency", "cpu", "power", "select", "node_label"]),
    ("command", &[]),
    ("experiment", &["arm", "metric", "at_most_ratio"]),
];
/// Those that all have.
pub(super) const OF_ALL: &[&str] = &["name", "cannot_tell", "hold", "within"];
