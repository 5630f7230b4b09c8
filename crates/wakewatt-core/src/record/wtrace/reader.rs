//! Reads a recording block by block, trusting nothing: the first block that is torn or damaged ends it, and says where.

use super::header::{Header, Mark};
use super::pairs::{self, Grid};
use super::tables::Tables;
use super::{FAMILY, MAGIC, MAGIC_1, MAX_PAYLOAD, choices, kind, pairs1};
use crate::samples::idle_choice::IdleChoice;
use crate::samples::idle_pair::IdlePair;

/// A coarser unit is no unit for idle states.
const MOST_UNIT_NS: u64 = 1 << 19;

/// Why a file cannot be read at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WtraceError {
    /// Not ours.
    #[error("not a wakewatt recording (its first line is not `wakewatt-wtrace 2`)")]
    NotOurs,
    /// Another version.
    #[error("written by another version ({0}); this wakewatt reads `wakewatt-wtrace` 1 and 2")]
    OtherVersion(String),
    /// No header.
    #[error("nothing can be read: in its header, {0}")]
    NoHeader(String),
}

/// How a file ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With its end block.
    Complete,
    /// Without one: the recorder was killed, or still runs; everything up to here is good.
    Unfinished {
        /// Length of the good part.
        at_byte: u64,
    },
    /// Cut inside a block: the last write was not finished.
    Torn {
        /// Length of the good part.
        at_byte: u64,
    },
    /// Damaged: what follows may be good, and cannot be told from noise.
    Damaged {
        /// Length of the good part.
        at_byte: u64,
        /// What is wrong there.
        why: String,
    },
    /// The file could not be read on: of what follows nothing is known.
    Unreadable {
        /// Length of the good part.
        at_byte: u64,
        /// What reading said.
        why: String,
    },
}

/// What a file holds, in its order.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// Pairs of one CPU.
    Pairs(Vec<IdlePair>),
    /// Questions to the governor of one CPU, before the pairs that came of them. Only in exact recordings.
    Choices(Vec<IdleChoice>),
    /// A remark.
    Mark(Mark),
}

/// A recording being read.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    /// Its header.
    pub header: Header,
    is_version_1: bool,
    bytes: &'a [u8],
    at: usize,
    ending: Option<Ending>,
}

/// Do these first bytes begin a recording that can be read?
pub fn is_known(first: &[u8]) -> bool {
    [MAGIC, MAGIC_1].iter().any(|magic| first.starts_with(magic))
}

/// CRC-32 (IEEE) over the kind and the payload.
pub(super) fn checksum(kind: u8, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[kind]);
    hasher.update(payload);
    hasher.finalize()
}

/// What is wrong with a block.
pub(super) enum Bad {
    Torn,
    Damaged(String),
}

impl Bad {
    pub(super) fn words(self) -> String {
        match self {
            Bad::Torn => "the file was cut off".into(),
            Bad::Damaged(why) => why,
        }
    }
}

/// One block from the front: kind, payload, whole length.
pub(super) fn split(bytes: &[u8]) -> Result<(u8, &[u8], usize), Bad> {
    let Some((head, rest)) = bytes.split_at_checked(9) else { return Err(Bad::Torn) };
    let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let length = number(1) as usize;
    if length > MAX_PAYLOAD {
        return Err(Bad::Damaged(format!("a block claims {length} bytes")));
    }
    let Some(payload) = rest.get(..length) else { return Err(Bad::Torn) };
    if checksum(head[0], payload) != number(5) {
        return Err(Bad::Damaged("a block's checksum is wrong".into()));
    }
    Ok((head[0], payload, 9 + length))
}

/// The header and the length of its block, from behind the first line.
fn header(bytes: &[u8]) -> Result<(Header, usize), WtraceError> {
    let bad = |why: String| WtraceError::NoHeader(why);
    let (kind, payload, length) = split(bytes).map_err(|b| bad(b.words()))?;
    if kind != kind::HEADER {
        return Err(bad("the first block is not one".into()));
    }
    let header: Header = serde_json::from_slice(payload).map_err(|e| bad(e.to_string()))?;
    Tables::of(&header).map_err(bad)?;
    if header.unit_ns.is_some_and(|ns| !ns.is_power_of_two() || ns > MOST_UNIT_NS) {
        return Err(bad("the unit of its times is no power of two below a millisecond".into()));
    }
    Ok((header, length))
}

/// What the block in front says: an item (none of a kind that a later version may have added) and the block's length, or the end.
pub(super) enum Step {
    Item(Option<Item>, usize),
    End,
}

/// Reads the block in front.
pub(super) fn step(rest: &[u8], header: &Header, is_version_1: bool) -> Result<Step, Bad> {
    let (kind, payload, length) = split(rest)?;
    if kind != kind::END {
        let item = item_of(kind, payload, header, is_version_1).map_err(Bad::Damaged)?;
        return Ok(Step::Item(item, length));
    }
    // A continued recording has written over its old end; one in the middle is damage.
    if rest.len() > length { Err(Bad::Damaged("something follows the end".into())) } else { Ok(Step::End) }
}

/// What a block other than the end holds; none of a kind that a later version may have added. In words what makes no sense.
fn item_of(kind: u8, payload: &[u8], header: &Header, is_version_1: bool) -> Result<Option<Item>, String> {
    let pairs = match (kind, is_version_1) {
        (kind::PAIRS_1, true) => pairs1::decode(payload, header.tick_ns.unwrap_or(0)),
        (kind::PAIRS, false) => pairs::decode(payload, Grid::of(header)),
        (kind::MARK, _) => {
            let mark = serde_json::from_slice(payload);
            return mark.map(|mark| Some(Item::Mark(mark))).map_err(|why| format!("a remark makes no sense: {why}"));
        }
        (kind::CHOICES, false) => {
            let choices = choices::decode(payload).map(|choices| Some(Item::Choices(choices)));
            return choices.ok_or_else(|| "a block of choices makes no sense".into());
        }
        // Written by a later version that kept the rules above.
        _ => return Ok(None),
    };
    pairs.map(|pairs| Some(Item::Pairs(pairs))).ok_or_else(|| "a block of pairs makes no sense".into())
}

impl<'a> Reader<'a> {
    /// Checks the first line and reads the header.
    pub fn new(bytes: &'a [u8]) -> Result<Reader<'a>, WtraceError> {
        if !is_known(bytes) {
            let Some(version) = bytes.strip_prefix(FAMILY) else { return Err(WtraceError::NotOurs) };
            let line: Vec<u8> = version.iter().copied().take_while(|b| *b != b'\n').take(20).collect();
            return Err(WtraceError::OtherVersion(String::from_utf8_lossy(&line).into_owned()));
        }
        let (header, length) = header(&bytes[MAGIC.len()..])?;
        Ok(Reader { header, is_version_1: bytes.starts_with(MAGIC_1), bytes, at: MAGIC.len() + length, ending: None })
    }

    /// How it ended; none while there is more.
    pub fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// Was it written in version 1, which is read and not continued?
    pub fn is_version_1(&self) -> bool {
        self.is_version_1
    }

    /// Length of the good part: where a recording may be continued. An end block is overwritten.
    pub fn good_bytes(&self) -> u64 {
        self.at as u64
    }
}

impl Iterator for Reader<'_> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        while self.ending.is_none() {
            let rest = &self.bytes[self.at..];
            if rest.is_empty() {
                self.ending = Some(Ending::Unfinished { at_byte: self.at as u64 });
                return None;
            }
            match step(rest, &self.header, self.is_version_1) {
                Ok(Step::Item(item, length)) => {
                    self.at += length;
                    if item.is_some() {
                        return item;
                    }
                }
                Ok(Step::End) => self.ending = Some(Ending::Complete),
                Err(Bad::Torn) => self.ending = Some(Ending::Torn { at_byte: self.at as u64 }),
                Err(Bad::Damaged(why)) => {
                    self.ending = Some(Ending::Damaged { at_byte: self.at as u64, why });
                }
            }
        }
        None
    }
}
