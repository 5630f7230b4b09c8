//! Which nodes are odd: logarithm of the cost by hardware class and load, robustly; medians over windows; one scale for all classes.
//!
//! The steps, each in its file: a Huber fit of class and load (`huber.rs`), the median of a node's windows against it and a
//! scale from the median deviation of nodes in all classes together (`score.rs`), p-values adjusted over everything that was
//! asked (`discovery.rs`), and a verdict that also wants an effect of 5 % (`judge.rs`). Why these and not a z-score: a fleet has
//! few nodes of a kind, two kinds of noise, and load that moves the cost by itself; docs/methods/fleet.md has the figures.
//!
//! Sources: Huber, "Robust Estimation of a Location Parameter" (1964), with his k = 1.345; Benjamini & Hochberg,
//! "Controlling the False Discovery Rate" (1995); the efficiency of the median deviation (37 %) from Rousseeuw & Croux (1993).

mod huber;
mod median;
mod score;
mod judge;
#[cfg(test)]
mod simulated;

pub use huber::{Fit, Observation};
pub use judge::{FALSE_DISCOVERY_RATE, Judged, LEAST_EFFECT_RATIO, Unsure, Verdict, judge};
pub use score::{LEAST_NODES, LEAST_WINDOWS, Score, Scores, settled};
