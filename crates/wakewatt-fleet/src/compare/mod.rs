//! A table judged: classes, measures, verdicts, and what is set otherwise where a node is odd.
//!
//! Hardware makes classes; settings do not, because a setting that made a class of its own would excuse the very node that
//! is looked for. Who wants peers with one kernel says so. Every measure goes through the method of `stats/` by itself, and
//! all of them are adjusted for chance together.

mod classes;
mod measured;
mod differs;
mod firmware;
mod change;
mod sentences;
mod facts;

pub use facts::{Facts, explain};

use crate::document::{Class, Fleet, Label, MeasureSummary, Node, Word};
use crate::measure::{Measure, Quantity};
use crate::stats::{LEAST_NODES, judge};
use crate::table::Table;
pub(crate) use measured::Measured;
use wakewatt_core::arrange::Arrange as _;

/// What is asked of a table.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Where the numbers come from.
    pub source: String,
    /// What a piece of work is.
    pub work: Option<String>,
    /// The moment of a change, in milliseconds since 1970.
    pub changed_at_ms: Option<u64>,
    /// What must be known with the numbers, from whoever gathered them.
    pub remarks: Vec<String>,
    /// What the agent would add.
    pub agent_would_add: Vec<String>,
}

/// One measure of a table by itself: the class of each node, how many classes there are, and what each node lies above its peers.
pub(crate) fn of_table(table: &Table, measure: Measure, has_work: bool) -> (Vec<usize>, usize, Option<Measured>) {
    let (hardware, class_of) = classes::of(table);
    let measured = Measured::of(table, measure, (&class_of, hardware.len()), has_work);
    (class_of, hardware.len(), measured)
}

/// Compares the nodes of a table.
pub fn compare(table: &Table, asked: Asked) -> Fleet {
    let (hardware, class_of) = classes::of(table);
    let has_work = table.has(Quantity::Work);
    let all: Vec<Measured> =
        Measure::ALL.iter().filter_map(|m| Measured::of(table, *m, (&class_of, hardware.len()), has_work)).collect();
    let judged = judge(&all.iter().map(|m| &m.scores).collect::<Vec<_>>());
    let mut nodes: Vec<Node> = (0..table.nodes.len())
        .map(|at| {
            let measures = all.iter().zip(&judged).filter_map(|(m, j)| m.told(table, at, &j[at])).collect();
            let mut node = Node {
                name: table.nodes[at].name.clone(),
                also_named: table.nodes[at].also.clone(),
                class: class_of[at],
                word: Word::CannotTell,
                sentence: String::new(),
                measures,
                differs: Vec::new(),
                change: asked.changed_at_ms.and_then(|at_ms| change::of(table, all.first()?, at, at_ms)),
                course: Vec::new(),
            };
            (node.word, node.sentence) = sentences::of_node(&node);
            if node.is_odd() || asked.changed_at_ms.is_some() {
                node.course = sentences::leading(&node)
                    .and_then(|leading| all.iter().find(|m| m.measure == leading.measure))
                    .map_or_else(Vec::new, |m| m.course(at, table.windows.len()));
            }
            node
        })
        .collect();
    differs::fill(table, &mut nodes);
    order(&mut nodes);
    let classes: Vec<Class> = hardware
        .iter()
        .enumerate()
        .map(|(at, hardware)| {
            let n_nodes = class_of.iter().filter(|c| **c == at).count();
            Class { name: hardware.words(), n_nodes, is_ranked_only: n_nodes < LEAST_NODES }
        })
        .collect();
    let length = table.windows.first().map(|w| (w.to_ms.saturating_sub(w.from_ms)) as f64 / 1e3);
    let mut fleet = Fleet {
        source: asked.source,
        from_ms: table.windows.first().map_or(0, |w| w.from_ms),
        to_ms: table.windows.last().map_or(0, |w| w.to_ms),
        changed_at_ms: asked.changed_at_ms,
        window_s: length.filter(|s| *s > 0.0),
        n_windows: table.windows.len(),
        work: asked.work,
        sentence: String::new(),
        classes,
        measures: Measure::ALL.iter().map(|m| summary(table, *m, &all)).collect(),
        nodes,
        firmware: firmware::of(table, &class_of),
        remarks: asked.remarks,
        agent_would_add: asked.agent_would_add,
    };
    fleet.remarks.extend(sentences::remarks(&fleet));
    fleet.sentence = sentences::of_fleet(&fleet);
    fleet
}

impl Node {
    /// Dearer or cheaper than its peers?
    pub fn is_odd(&self) -> bool {
        matches!(self.word, Word::Dearer | Word::Cheaper)
    }

    /// A measure of it.
    pub fn measure(&self, measure: Measure) -> Option<&crate::document::NodeMeasure> {
        self.measures.iter().find(|m| m.measure == measure)
    }

    /// The measure that its sentence speaks of.
    pub fn leading(&self) -> Option<&crate::document::NodeMeasure> {
        sentences::leading(self)
    }
}

/// Dearer first, the largest first; then by class and rank.
fn order(nodes: &mut [Node]) {
    let place = |n: &Node| match n.word {
        Word::Dearer => 0,
        Word::Cheaper => 1,
        Word::Like | Word::Ranked => 2,
        Word::CannotTell => 3,
    };
    let size = |n: &Node| n.leading().map_or(1.0, |m| m.ratio);
    nodes.arrange_by(|a, b| {
        let key = place(a).cmp(&place(b));
        let within = if place(a) < 2 { size(b).total_cmp(&size(a)) } else { a.class.cmp(&b.class) };
        key.then(within).then(size(b).total_cmp(&size(a))).then(a.name.cmp(&b.name))
    });
}

fn summary(table: &Table, measure: Measure, all: &[Measured]) -> MeasureSummary {
    let Some(found) = all.iter().find(|m| m.measure == measure) else {
        return MeasureSummary {
            measure,
            label: Label::Unavailable,
            why: Some(sentences::lacking(table, measure)),
            n_nodes: 0,
            load_slope: None,
            usual_spread_ratio: None,
        };
    };
    let is_modelled = measure == Measure::CyclesPerWork && !table.has_counted_cycles;
    let why = "busy time times the clock that the kernel last saw; a node's sleeping CPUs keep an old clock";
    MeasureSummary {
        measure,
        label: if is_modelled { Label::Modelled } else { Label::Measured },
        why: is_modelled.then(|| why.to_string()),
        n_nodes: found.scores.by_node.iter().flatten().count(),
        load_slope: Some(found.slope),
        usual_spread_ratio: found.scores.scale.map(|s| s.exp_m1()),
    }
}

#[cfg(test)]
mod tests;
