//! Statistics for latencies and for experiments. Pure: samples and seeds come in, numbers with their doubt go out.

pub use crate::distribution;
pub mod middle;
pub mod change;
pub mod ramp;
pub mod rank_sum;
pub mod paired;
pub mod discoveries;
pub mod random;
pub mod sequence;
pub mod sequential;
pub mod sessions;
pub mod side_effects;
pub mod unstable;
pub mod equivalence;
pub mod detectable;
pub mod family;
pub mod any_time;
pub mod looks;
pub mod normal;
pub mod signed_rank;
