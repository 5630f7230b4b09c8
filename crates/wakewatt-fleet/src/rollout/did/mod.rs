//! Difference in differences: what the changed nodes did beside the unchanged ones of their hardware, with a 95 % interval.
//!
//! Each node is one number: the median of its windows after the change less that of its windows before (logarithms, load
//! taken out by the fit of `stats/`). So what a node always was is out, and so is the likeness of neighbouring windows, which
//! makes naive intervals far too narrow (Bertrand, Duflo & Mullainathan, "How Much Should We Trust Differences-in-Differences
//! Estimates?", QJE 2004: collapse to before and after). What all nodes did at that hour is out by the unchanged ones. A canary
//! is few: how much nodes differ is learnt from the unchanged ones alone (Conley & Taber, "Inference with 'Difference in Differences'
//! with a Small Number of Policy Changes", 2011), as Student's t with their degrees of freedom. docs/methods/rollout.md has the figures.

use crate::compare::of_table;
use crate::measure::{Measure, Quantity};
use crate::stats::LEAST_WINDOWS;
use crate::table::Table;
use serde::{Deserialize, Serialize};
use wakewatt_core::stats::middle::median;
use wakewatt_core::stats::normal::student_point;

/// Unchanged nodes of the classes of changed ones that are needed.
pub const LEAST_UNCHANGED: usize = 6;
const TAIL: f64 = 0.025;

/// What a node is in this comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Changed between the two moments.
    Changed,
    /// Not changed.
    Unchanged,
    /// Neither: changed earlier, or refused.
    Aside,
}

/// What came of the comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// Changed over unchanged, after over before.
    pub ratio: f64,
    /// Lower end of its 95 % interval.
    pub low_ratio: f64,
    /// Upper end of its 95 % interval.
    pub high_ratio: f64,
    /// Changed nodes that count.
    pub n_changed: usize,
    /// Unchanged nodes that count.
    pub n_unchanged: usize,
}

/// Before `from_ms` and after `to_ms`, of a measure; an error is why nothing can be told.
pub fn of(table: &Table, measure: Measure, groups: &[Group], from_ms: u64, to_ms: u64) -> Result<Difference, String> {
    let has_work = table.has(Quantity::Work);
    let (class_of, n_classes, measured) = of_table(table, measure, has_work);
    let measured = measured.ok_or_else(|| format!("{measure} is not known of any node"))?;
    let is_before = |w: usize| table.windows.get(w).is_some_and(|w| w.to_ms <= from_ms);
    let is_after = |w: usize| table.windows.get(w).is_some_and(|w| w.from_ms >= to_ms);
    let mut changed: Vec<Vec<f64>> = vec![Vec::new(); n_classes];
    let mut unchanged = changed.clone();
    let mut n_short = 0;
    for (node, group) in groups.iter().enumerate().take(table.nodes.len()) {
        let into = match group {
            Group::Changed => &mut changed,
            Group::Unchanged => &mut unchanged,
            Group::Aside => continue,
        };
        let side = |is_there: &dyn Fn(usize) -> bool| {
            let mut all: Vec<f64> = measured.above(node).filter(|(w, _)| is_there(*w)).map(|(_, a)| a).collect();
            (all.len() >= LEAST_WINDOWS).then(|| median(&mut all)).flatten()
        };
        match (side(&is_before), side(&is_after)) {
            (Some(before), Some(after)) => into[class_of[node]].push(after - before),
            _ => n_short += usize::from(*group == Group::Changed),
        }
    }
    if n_short > 0 && changed.iter().all(Vec::is_empty) {
        return Err(format!("no changed node has {LEAST_WINDOWS} windows both before and after; it may be too early"));
    }
    between(&changed, &unchanged)
}

/// Of each node's own change, by class.
fn between(changed: &[Vec<f64>], unchanged: &[Vec<f64>]) -> Result<Difference, String> {
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    let classes: Vec<(&Vec<f64>, &Vec<f64>)> =
        changed.iter().zip(unchanged).filter(|(c, u)| !c.is_empty() && !u.is_empty()).collect();
    let n_changed: usize = classes.iter().map(|(c, _)| c.len()).sum();
    let n_unchanged: usize = classes.iter().map(|(_, u)| u.len()).sum();
    if n_changed == 0 {
        return Err("no changed node has unchanged ones of its hardware beside it".into());
    }
    if n_unchanged < LEAST_UNCHANGED || n_unchanged <= classes.len() {
        return Err(format!(
            "only {n_unchanged} unchanged nodes of the same hardware can be compared with; {LEAST_UNCHANGED} are needed"
        ));
    }
    let freedom = (n_unchanged - classes.len()) as f64;
    let squares: f64 = classes
        .iter()
        .flat_map(|(_, u)| {
            let m = mean(u);
            u.iter().map(move |d| (d - m).powi(2))
        })
        .sum();
    let variance = squares / freedom;
    let (mut shift, mut error) = (0.0, 0.0);
    for (c, u) in classes {
        let weight = c.len() as f64 / n_changed as f64;
        shift += weight * (mean(c) - mean(u));
        error += weight * weight * variance * (1.0 / c.len() as f64 + 1.0 / u.len() as f64);
    }
    let half = student_point(TAIL, freedom) * error.sqrt();
    Ok(Difference {
        ratio: shift.exp(),
        low_ratio: (shift - half).exp(),
        high_ratio: (shift + half).exp(),
        n_changed,
        n_unchanged,
    })
}

#[cfg(test)]
mod tests;
