//! `.wtrace`: recorded idle intervals, a few bytes each, readable up to wherever the file was cut.
//!
//! A line of magic, then blocks that each carry their length and a CRC-32. The first block is the header (JSON), the
//! others hold the pairs of one CPU, remarks (windows, losses, settings that changed), and the end. A block depends on
//! the header only, so one that is damaged ends the reading there and nothing before it is lost. The exact layout is in
//! `docs/wtrace-format.md`.
//!
//! Pure: bytes in, bytes out. Files are `wakewatt-host/src/wtrace_file.rs`.

mod bits;
mod choices;
mod column;
mod header;
mod machine;
mod pairs;
mod pairs1;
mod reader;
mod stream;
mod summary;
mod tables;
mod tags;
#[cfg(test)]
mod tests;
mod writer;

pub use header::{Header, Mark, StateTable, TableState};
pub use reader::{Ending, Item, Reader, WtraceError, is_known};
pub use stream::Stream;
pub use summary::{PairSummary, RecordedState, Summing};
pub use tables::Tables;
pub use writer::Encoder;

/// First line of a file.
pub const MAGIC: &[u8] = b"wakewatt-wtrace 2\n";
/// That of the version before, which is still read.
const MAGIC_1: &[u8] = b"wakewatt-wtrace 1\n";
/// Unit of the times in a recording: a power of two. The two events of a stay cost ten times as much.
pub const UNIT_NS: u64 = 32;
/// What every file of this family begins with.
const FAMILY: &[u8] = b"wakewatt-wtrace ";
/// Pairs of one block at most.
pub const PAIRS_PER_BLOCK: usize = 4096;
/// A longer payload is damage: 4096 pairs of the largest possible size stay below.
const MAX_PAYLOAD: usize = 1 << 20;

/// Block kinds.
mod kind {
    pub(super) const HEADER: u8 = b'H';
    pub(super) const PAIRS_1: u8 = b'P';
    pub(super) const PAIRS: u8 = b'C';
    /// Since 0.1; a reader that does not know them skips them.
    pub(super) const CHOICES: u8 = b'G';
    pub(super) const MARK: u8 = b'M';
    pub(super) const END: u8 = b'Z';
}
