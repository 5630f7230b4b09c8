//! Watching: what a machine's counters did between two moments.
//!
//! Data goes one way: a [`Layout`] (what there is to read, found once), [`Counters`] (raw, one moment, read through a
//! [`counters::Reader`]), [`Rates`] (two moments, with the window between them), and whatever shows those. Every number
//! is a [`Reading`]: measured, or the reason why not. Absence is never 0.
//!
//! The observer must not wake the sleepers, so each file carries its [`layout::Reach`]: what reading it disturbs. The
//! default reads what lies in memory and asks no CPU anything.

pub mod reading;
pub mod layout;
pub mod discover;
pub mod files;
pub mod counters;
pub mod document;
pub mod rates;
pub mod residency;
pub mod package_residency;
pub mod summary;
pub mod recording;

pub use counters::Counters;
pub use document::Rates;
pub use files::Files;
pub use layout::{Layout, Sources};
pub use reading::{Reading, Why};

use serde::Serialize;

/// Wake-up latency from one idle state, as a tracing probe saw it. `watch` shows such rows; it cannot make them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyRow {
    /// The state the CPU was leaving.
    pub state: String,
    /// By what: another CPU, interrupt, interrupt after exit.
    pub class: String,
    /// How many wake-ups were seen.
    pub n: u64,
    /// Median; none with too few.
    pub p50_ns: Option<u64>,
    /// 99th percentile; none with too few.
    pub p99_ns: Option<u64>,
    /// Time lost to waking, summed.
    pub lost_ns: u64,
}
