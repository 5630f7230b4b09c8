//! What the metrics of an experiment are called wherever one of its tables names them.

use wakewatt_core::samples::experiment::{ExperimentRun, Metric};

/// A metric that the run does not declare counts as a latency, which it was before there were others.
pub(super) fn metric(run: &ExperimentRun, id: &str) -> Metric {
    run.metrics.iter().find(|m| m.id == id).cloned().unwrap_or_else(|| Metric::latency(id, id))
}

pub(super) fn metric_title(run: &ExperimentRun, id: &str) -> String {
    run.metrics.iter().find(|m| m.id == id).map_or_else(|| id.into(), |m| m.title.clone())
}
