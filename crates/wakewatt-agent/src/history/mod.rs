//! Memory of the past: what the agent told, moment by moment, in a ring of files with a limit.
//!
//! `format` is the bytes of a segment, `ring` the folder of segments, `keeping` whether it goes on, `flat` how a page becomes numbers, `change` what is found to be set otherwise. Asked are
//! they by `query` (a series over time), `play` (interval by interval, as `watch` shows a machine) and `beside` (two moments compared), the latter two by way of
//! `interval`, which makes of two moments what `watch` says of a machine. The same few hundred
//! sums are kept that a scrape gets, so a week costs as much on 512 CPUs as on 2. Each moment is a frame with a checksum, written at once: a killed agent loses
//! the moment it was writing and no other.

pub mod beside;
mod change;
mod flat;
mod format;
mod interval;
mod keeping;
mod play;
pub mod query;
mod ring;
mod series;
pub mod week;

pub use change::Change;
pub use format::{Moment, Reader, Trouble as FormatTrouble};
pub(crate) use keeping::Keeping;
pub use play::HistoryPlayer;
pub use ring::{Limits, Ring, Trouble, others_write, segments, segments_since};
pub(crate) use ring::{began_ms, read_own};
pub(crate) use series::Series;

/// Longer than this between two moments, and the agent did not run: it keeps one at least every 60 seconds.
pub const MOST_GAP_MS: u64 = 150_000;
