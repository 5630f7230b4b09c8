//! Experiments: a row per block, a column per metric.

use super::{Table, WINDOW, or, window};
use wakewatt_core::samples::experiment::{ExperimentRun, Unit};

/// One table for each, the further ones numbered from 1.
pub(super) fn all<'a>(
    idle: Option<&'a ExperimentRun>,
    disk: Option<&'a ExperimentRun>,
    further: &'a [ExperimentRun],
) -> impl Iterator<Item = Table> + 'a {
    let further = further.iter().zip(1..).map(|(run, n)| blocks(&format!("experiment-{n}"), run));
    idle.map(|run| blocks("experiment", run))
        .into_iter()
        .chain(disk.map(|run| blocks("disk_experiment", run)))
        .chain(further)
}

fn blocks(name: &str, run: &ExperimentRun) -> Table {
    let unit = |unit| match unit {
        Unit::Nanoseconds => "_ns",
        Unit::PerSecond => "_per_s",
        Unit::Microwatts => "_uw",
        Unit::PerJoule => "_per_j",
        Unit::Number => "",
    };
    let head = ["round", "arm", "rejected_because"];
    let mut table = Table::new(name, &[&head, WINDOW].concat());
    table.columns.extend(run.metrics.iter().map(|m| format!("{}{}", m.id, unit(m.unit))));
    for block in &run.blocks {
        let head = vec![block.round.to_string(), block.arm.clone(), or(block.rejected.as_ref())];
        let values = (0..run.metrics.len()).map(|at| or(block.values.get(at).copied().flatten()));
        table.rows.push([head, window(&block.window), values.collect()].concat());
    }
    table
}
