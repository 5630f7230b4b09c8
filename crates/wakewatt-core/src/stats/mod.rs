//! Statistics for latencies and for experiments. Pure: samples and seeds come in, numbers with their doubt go out.

pub use crate::distribution;
pub mod paired;
pub mod random;
pub mod sequential;
