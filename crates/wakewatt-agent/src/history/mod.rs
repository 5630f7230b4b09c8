//! Memory of the past: what the agent told, moment by moment, in a ring of files with a limit.
//!
//! `format` is the bytes of a segment, `ring` the folder of segments, `flat` how a page becomes numbers, `query` what is asked of them. The same few hundred
//! sums are kept that a scrape gets, so a week costs as much on 512 CPUs as on 2. Each moment is a frame with a checksum, written at once: a killed agent loses
//! the moment it was writing and no other.

mod flat;
mod format;
pub mod query;
mod ring;

pub use format::{Change, Moment, Reader, Trouble as FormatTrouble};
pub(crate) use ring::began_ms;
pub use ring::{Limits, Ring, Trouble, segments, segments_since};
