//! Before and after: what a node lay above its peers on both sides of a moment.

use super::measured::Measured;
use crate::document::Change;
use crate::stats::{LEAST_NODES, LEAST_WINDOWS};
use crate::table::Table;
use wakewatt_core::stats::middle::median;

/// None with fewer than three windows on a side; the window in which the moment lies is on neither.
pub(super) fn of(table: &Table, measured: &Measured, node: usize, at_ms: u64) -> Option<Change> {
    let of = table.nodes.get(node)?;
    // What all did together cannot be taken out of fewer.
    if measured.scores.by_node.iter().flatten().count() < LEAST_NODES {
        return None;
    }
    let is_before = |w: usize| table.windows.get(w).is_some_and(|w| w.to_ms <= at_ms);
    let is_after = |w: usize| table.windows.get(w).is_some_and(|w| w.from_ms >= at_ms);
    let above: Vec<(usize, f64)> = measured.above(node).collect();
    let side = |is_there: &dyn Fn(usize) -> bool| {
        let mut above: Vec<f64> = above.iter().filter(|(w, _)| is_there(*w)).map(|(_, a)| *a).collect();
        let windows = (0..table.windows.len()).filter(|w| is_there(*w));
        let mut values: Vec<f64> = windows.filter_map(|w| of.measured(measured.measure, w)).collect();
        let n = above.len();
        (n >= LEAST_WINDOWS).then(|| Some((median(&mut values)?, median(&mut above)?, n))).flatten()
    };
    let ((before, below, n_before), (after, above, n_after)) = (side(&is_before)?, side(&is_after)?);
    Some(Change { measure: measured.measure, before, after, ratio: (above - below).exp(), n_before, n_after })
}
