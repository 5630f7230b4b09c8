//! What a node lies above its peers: the median of its windows, and how far nodes of this fleet usually lie apart.
//!
//! Windows of all nodes that moved together (a release that made every request dearer) are no node's fault: the median of
//! each window is taken out first. Then the nodes of a class are set around their own median, because a height by least
//! squares follows the odd ones a little. The scale is the median deviation over all classes of eight nodes and more,
//! together, because a class of ten cannot support its own; 1.4826 makes it a standard deviation, and what the fit took
//! away (a height per class, a slope) is given back.
//!
//! A node seen in fewer windows than others is known less well: what its own interval is wider than the usual one is
//! added to its scale.

use super::huber::{Fit, Observation, fit};
use super::median::median_of;
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::stats::middle::{Middle, middle};

/// With fewer nodes of a class there is a rank and no verdict.
pub const LEAST_NODES: usize = 8;
/// With fewer windows nothing is said of a node.
pub const LEAST_WINDOWS: usize = 3;
/// So many scales from its peers, and a node has no say in the slope.
const FAR: f64 = 4.0;
/// Load beyond what any peer had by this factor (its logarithm) is extrapolated.
const MOST_BEYOND: f64 = 0.405;

/// One node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Logarithm of its cost over that of its peers at its load: the median of its windows, with its interval.
    pub effect: Middle,
    /// The same in scales of this fleet.
    pub distance: f64,
    /// Windows that count.
    pub n_windows: usize,
    /// Place among its class, 1 the dearest.
    pub rank: usize,
    /// Nodes of its class that have a score.
    pub n_class: usize,
    /// Its load lies where no peer was: the model would have to be stretched.
    pub is_alone: bool,
}

/// All nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Scores {
    /// By node; none with too few windows.
    pub by_node: Vec<Option<Score>>,
    /// Standard deviation of a usual node, of the cost's logarithm; none where no class has eight nodes.
    pub scale: Option<f64>,
    /// Degrees of freedom of the scale.
    pub freedom: f64,
    /// What each observation lies above its peers at its load and in its window, in the order given.
    pub left: Vec<f64>,
}

/// Fit and scores: fitted once with everybody, and again without those who stood far out, who bend the slope of load.
pub fn settled(all: &[Observation], n_classes: usize, n_nodes: usize) -> (Fit, Scores) {
    let first = fit(all, n_classes);
    let found = scores(all, &first, n_nodes);
    let is_far = |n: usize| found.by_node.get(n).copied().flatten().is_some_and(|s| s.distance.abs() > FAR);
    if !(0..n_nodes).any(is_far) {
        return (first, found);
    }
    let near: Vec<Observation> = all.iter().filter(|o| !is_far(o.node)).copied().collect();
    let second = Fit { slope: fit(&near, n_classes).slope, ..first };
    let found = scores(all, &second, n_nodes);
    (second, found)
}

/// Scores of so many nodes.
fn scores(all: &[Observation], fit: &Fit, n_nodes: usize) -> Scores {
    let mut left: Vec<f64> = all.iter().map(|o| fit.residual(o)).collect();
    take_out_windows(all, &mut left);
    let mut by_node: Vec<Vec<f64>> = vec![Vec::new(); n_nodes];
    let mut class = vec![0; n_nodes];
    let mut loads: Vec<Vec<f64>> = vec![Vec::new(); n_nodes];
    for (o, left) in all.iter().zip(&left).filter(|(o, _)| o.node < n_nodes) {
        by_node[o.node].push(*left);
        loads[o.node].push(o.load);
        class[o.node] = o.class;
    }
    let mut found: Vec<Option<Middle>> =
        by_node.iter_mut().map(|windows| middle(windows).filter(|_| windows.len() >= LEAST_WINDOWS)).collect();
    let members = members(&found, &class, fit.heights.len());
    let mut centres = vec![0.0; members.len()];
    for (nodes, centre) in members.iter().zip(&mut centres) {
        let mut effects: Vec<f64> = nodes.iter().filter_map(|n| found[*n].map(|m| m.median)).collect();
        *centre = median_of(&mut effects).unwrap_or(0.0);
        for n in nodes {
            found[*n] = found[*n].map(|m| shifted(m, -*centre));
        }
    }
    for (o, left) in all.iter().zip(left.iter_mut()) {
        *left -= centres.get(o.class).copied().unwrap_or(0.0);
    }
    let (scale, freedom) = pooled(&found, &members);
    let half = |m: &Middle| (m.high - m.low) / 3.92;
    let mut halves: Vec<f64> = found.iter().flatten().map(half).collect();
    let usual = median_of(&mut halves).unwrap_or(0.0);
    let middle_loads: Vec<Option<f64>> = loads.iter_mut().map(|l| median_of(l)).collect();
    let mut out: Vec<Option<Score>> = vec![None; n_nodes];
    for nodes in &members {
        let mut order = nodes.clone();
        order.arrange_by(|a, b| effect(&found, *b).total_cmp(&effect(&found, *a)));
        for (at, n) in order.iter().enumerate() {
            let Some(effect) = found[*n] else { continue };
            let more = (half(&effect).powi(2) - usual.powi(2)).max(0.0);
            let own = scale.map(|s| (s.powi(2) + more).sqrt());
            out[*n] = Some(Score {
                effect,
                distance: own.map_or(0.0, |own| effect.median / own),
                n_windows: by_node[*n].len(),
                rank: at + 1,
                n_class: nodes.len(),
                is_alone: is_alone(*n, nodes, &middle_loads),
            });
        }
    }
    Scores { by_node: out, scale, freedom, left }
}

fn effect(found: &[Option<Middle>], n: usize) -> f64 {
    found[n].map_or(f64::NEG_INFINITY, |m| m.median)
}

fn shifted(m: Middle, by: f64) -> Middle {
    Middle { median: m.median + by, low: m.low + by, high: m.high + by, least: m.least + by, ..m }
}

/// What all nodes did together in a window.
fn take_out_windows(all: &[Observation], left: &mut [f64]) {
    let n_windows = all.iter().map(|o| o.window + 1).max().unwrap_or(0);
    let mut by_window: Vec<Vec<f64>> = vec![Vec::new(); n_windows];
    for (o, left) in all.iter().zip(left.iter()) {
        by_window[o.window].push(*left);
    }
    let level =
        |values: &mut Vec<f64>| if values.len() >= LEAST_NODES { median_of(values).unwrap_or(0.0) } else { 0.0 };
    let levels: Vec<f64> = by_window.iter_mut().map(level).collect();
    for (o, left) in all.iter().zip(left.iter_mut()) {
        *left -= levels[o.window];
    }
}

fn members(found: &[Option<Middle>], class: &[usize], n_classes: usize) -> Vec<Vec<usize>> {
    let mut members = vec![Vec::new(); n_classes];
    for n in (0..found.len()).filter(|n| found[*n].is_some() && class[*n] < n_classes) {
        members[class[n]].push(n);
    }
    members
}

fn pooled(found: &[Option<Middle>], members: &[Vec<usize>]) -> (Option<f64>, f64) {
    let judged: Vec<&Vec<usize>> = members.iter().filter(|nodes| nodes.len() >= LEAST_NODES).collect();
    let mut off: Vec<f64> =
        judged.iter().copied().flatten().filter_map(|n| found[*n].map(|m| m.median.abs())).collect();
    let (n, n_fitted) = (off.len() as f64, judged.len() as f64 + 1.0);
    let freedom = (0.37 * (n - n_fitted)).round().max(2.0);
    let scale = median_of(&mut off).map(|m| 1.4826 * m * (n / (n - n_fitted).max(1.0)).sqrt() * (n / (n - 0.8)));
    (scale.map(|s| s.max(1e-6)), freedom)
}

/// Does the node's load lie where none of its class was?
fn is_alone(n: usize, nodes: &[usize], loads: &[Option<f64>]) -> bool {
    let Some(own) = loads[n] else { return false };
    let others = || nodes.iter().filter(|o| **o != n).filter_map(|o| loads[*o]);
    let (low, high) = (others().fold(f64::INFINITY, f64::min), others().fold(f64::NEG_INFINITY, f64::max));
    low <= high && (own < low - MOST_BEYOND || own > high + MOST_BEYOND)
}
