//! Hardware classes: nodes with equal hardware, the largest class first.

use crate::table::{Hardware, Table};
use std::collections::BTreeMap;
use wakewatt_core::arrange::Arrange as _;

/// The classes, and the class of each node.
pub(super) fn of(table: &Table) -> (Vec<Hardware>, Vec<usize>) {
    let mut n_of: BTreeMap<&Hardware, usize> = BTreeMap::new();
    for node in &table.nodes {
        *n_of.entry(&node.hardware).or_default() += 1;
    }
    let mut classes: Vec<(&Hardware, usize)> = n_of.into_iter().collect();
    classes.arrange_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let place: BTreeMap<&Hardware, usize> = classes.iter().enumerate().map(|(at, (h, _))| (*h, at)).collect();
    let class_of = table.nodes.iter().map(|n| place.get(&n.hardware).copied().unwrap_or(0)).collect();
    (classes.into_iter().map(|(h, _)| h.clone()).collect(), class_of)
}
