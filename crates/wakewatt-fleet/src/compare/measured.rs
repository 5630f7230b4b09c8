//! One measure of the fleet, through the method: observations, fit, scores; and what is told of a node.

use crate::document::{NodeMeasure, Word};
use crate::measure::Measure;
use crate::stats::{Judged, Observation, Scores, Unsure, Verdict, settled};
use crate::table::Table;
use wakewatt_core::stats::middle::median;

/// A measure with its scores.
pub(crate) struct Measured {
    pub(super) measure: Measure,
    pub(super) slope: f64,
    pub(super) scores: Scores,
    /// Node, window and what it lies above its peers.
    left: Vec<(u32, u32, f32)>,
}

impl Measured {
    /// None where no node has it in any window.
    pub(super) fn of(
        table: &Table,
        measure: Measure,
        (class_of, n_classes): (&[usize], usize),
        has_work: bool,
    ) -> Option<Measured> {
        let n_windows = table.windows.len();
        let mut all = Vec::new();
        for (at, node) in table.nodes.iter().enumerate() {
            let counts = node.counts(n_windows);
            for window in (0..n_windows).filter(|w| counts[*w]) {
                let load = node.load(window, has_work);
                let (Some(value), Some(load)) = (node.measured(measure, window), load) else { continue };
                let class = class_of.get(at).copied().unwrap_or(0);
                all.push(Observation { node: at, class, window, load: load.ln(), cost: value.ln() });
            }
        }
        if all.is_empty() {
            return None;
        }
        let (fit, mut scores) = settled(&all, n_classes, table.nodes.len());
        #[allow(clippy::cast_possible_truncation)] // nodes and windows are few, and a ratio is told with three digits
        let left = all.iter().zip(&scores.left).map(|(o, l)| (o.node as u32, o.window as u32, *l as f32)).collect();
        // The same in half the room, and kept for all measures.
        scores.left = Vec::new();
        Some(Measured { measure, slope: fit.slope, scores, left })
    }

    /// What a node lies above its peers: windows and logarithms.
    pub(crate) fn above(&self, node: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        // They stand in the order of the nodes.
        let from = self.left.partition_point(|(n, _, _)| (*n as usize) < node);
        let own = self.left[from..].iter().take_while(move |(n, _, _)| *n as usize == node);
        own.map(|(_, w, l)| (*w as usize, f64::from(*l)))
    }

    /// The same as ratios, window by window.
    pub(super) fn course(&self, node: usize, n_windows: usize) -> Vec<Option<f64>> {
        let mut course = vec![None; n_windows];
        for (window, above) in self.above(node) {
            course[window] = Some(above.exp());
        }
        course
    }

    /// What is told; none where the node has the measure in no window.
    pub(super) fn told(&self, table: &Table, node: usize, judged: &Judged) -> Option<NodeMeasure> {
        let score = self.scores.by_node.get(node)?.as_ref()?;
        let (n_windows, of) = (table.windows.len(), table.nodes.get(node)?);
        let counts = of.counts(n_windows);
        let windows = (0..n_windows).filter(|w| counts[*w]);
        let mut values: Vec<f64> = windows.filter_map(|w| of.measured(self.measure, w)).collect();
        let (word, why) = match judged.verdict {
            Verdict::Higher => (Word::Dearer, None),
            Verdict::Lower => (Word::Cheaper, None),
            Verdict::Like => (Word::Like, None),
            Verdict::CannotTell(Unsure::FewPeers) => (Word::Ranked, Some("fewer than eight nodes of its class")),
            Verdict::CannotTell(Unsure::LoadOfItsOwn) => (
                Word::CannotTell,
                Some("its load lies beyond what any peer had, and the model would have to be stretched"),
            ),
            Verdict::CannotTell(Unsure::FewWindows) => (Word::CannotTell, Some("fewer than three windows count")),
        };
        Some(NodeMeasure {
            measure: self.measure,
            value: median(&mut values)?,
            ratio: score.effect.median.exp(),
            low_ratio: score.effect.low.exp(),
            high_ratio: score.effect.high.exp(),
            is_range: score.effect.is_range,
            n_windows: score.n_windows,
            rank: score.rank,
            n_ranked: score.n_class,
            word,
            q_value: judged.q_value,
            why: why.map(String::from),
        })
    }
}
