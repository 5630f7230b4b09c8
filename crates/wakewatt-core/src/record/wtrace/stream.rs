//! Reads a recording piece by piece, in memory that does not grow with it: a week of a large machine is more than fits.
//!
//! The same rules as `reader.rs` and the same functions, so both find the same items, and end at the same byte for the same reason. What differs is
//! that a block which seems cut may only be waiting for the next piece. The pieces come from the caller, who owns the file.

use super::header::Header;
use super::reader::{Bad, Ending, Item, Reader, Step, WtraceError, is_known, step};
use super::{FAMILY, MAGIC, MAX_PAYLOAD};

/// Read blocks are dropped once so many bytes of them wait.
const DROP_ABOVE: usize = 1 << 16;

/// A recording that is read piece by piece. `F` appends the next piece and says whether there was one; in words why it cannot.
#[derive(Debug)]
pub struct Stream<F> {
    /// Its header.
    pub header: Header,
    is_version_1: bool,
    more: F,
    bytes: Vec<u8>,
    /// The next block in `bytes`.
    at: usize,
    /// Length of what was dropped before `bytes`.
    before: u64,
    /// Is there no further piece?
    is_all: bool,
    ending: Option<Ending>,
}

impl<F: FnMut(&mut Vec<u8>) -> Result<bool, String>> Stream<F> {
    /// Checks the first line and reads the header.
    pub fn new(mut more: F) -> Result<Stream<F>, WtraceError> {
        let mut bytes = Vec::new();
        let mut is_all = false;
        // The header is one block; without its end nothing can be read, and what is not ours is not read on.
        let at = loop {
            match Reader::new(&bytes) {
                Ok(reader) => break reader.good_bytes(),
                Err(_) if !is_all && may_begin_one(&bytes) => {
                    is_all = !more(&mut bytes).map_err(WtraceError::NoHeader)?;
                }
                Err(why) => return Err(why),
            }
        };
        let reader = Reader::new(&bytes)?;
        let (header, is_version_1) = (reader.header.clone(), reader.is_version_1());
        let at = usize::try_from(at).unwrap_or(bytes.len());
        Ok(Stream { header, is_version_1, more, bytes, at, before: 0, is_all, ending: None })
    }

    /// How it ended; none while there is more.
    pub fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// Bytes held at the moment.
    pub fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    fn at_byte(&self) -> u64 {
        self.before + self.at as u64
    }

    /// Another piece, where there is one.
    fn read_on(&mut self) {
        if self.at >= DROP_ABOVE {
            self.bytes.drain(..self.at);
            self.before += self.at as u64;
            self.at = 0;
        }
        match (self.more)(&mut self.bytes) {
            Ok(is_more) => self.is_all = !is_more,
            Err(why) => self.ending = Some(Ending::Unreadable { at_byte: self.at_byte(), why }),
        }
    }
}

/// May more bytes make a recording of these?
fn may_begin_one(bytes: &[u8]) -> bool {
    let is_front = bytes.len() < MAGIC.len() && FAMILY.starts_with(&bytes[..bytes.len().min(FAMILY.len())]);
    is_front || (is_known(bytes) && bytes.len() < MAGIC.len() + MAX_PAYLOAD + 64)
}

impl<F: FnMut(&mut Vec<u8>) -> Result<bool, String>> Iterator for Stream<F> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        while self.ending.is_none() {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            if rest.is_empty() {
                if self.is_all {
                    self.ending = Some(Ending::Unfinished { at_byte: self.at_byte() });
                } else {
                    self.read_on();
                }
                continue;
            }
            match step(rest, &self.header, self.is_version_1) {
                Ok(Step::Item(item, length)) => {
                    self.at += length;
                    if item.is_some() {
                        return item;
                    }
                }
                // Both may only look so until the next piece comes.
                Ok(Step::End) | Err(Bad::Torn) if !self.is_all => self.read_on(),
                Ok(Step::End) => self.ending = Some(Ending::Complete),
                Err(Bad::Torn) => self.ending = Some(Ending::Torn { at_byte: self.at_byte() }),
                Err(Bad::Damaged(why)) => {
                    self.ending = Some(Ending::Damaged { at_byte: self.at_byte(), why });
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::wtrace::{Encoder, Mark};
    use crate::samples::idle_pair::IdlePair;
    use proptest::prelude::*;

    fn recording(n: u64) -> Vec<u8> {
        let (mut encoder, mut bytes) = Encoder::start(&Header::default());
        for at in 0..n {
            let pair = IdlePair {
                cpu: u32::from(at % 3 == 0),
                enter_at_ns: at * 4096,
                duration_ns: 960,
                ..IdlePair::default()
            };
            bytes.extend(encoder.push(pair).unwrap_or_default());
            if at % 50 == 0 {
                bytes.extend(encoder.mark(&Mark::WindowOpened { at_ns: at }));
            }
        }
        bytes.extend(encoder.end());
        bytes
    }

    fn pieces(bytes: &[u8], size: usize) -> impl FnMut(&mut Vec<u8>) -> Result<bool, String> {
        let mut left: std::collections::VecDeque<Vec<u8>> = bytes.chunks(size.max(1)).map(<[u8]>::to_vec).collect();
        move |into| Ok(left.pop_front().map(|piece| into.extend(piece)).is_some())
    }

    fn whole(bytes: &[u8]) -> Result<(Vec<Item>, Option<Ending>), WtraceError> {
        let mut reader = Reader::new(bytes)?;
        let items = reader.by_ref().collect();
        Ok((items, reader.ending().cloned()))
    }

    fn streamed(bytes: &[u8], size: usize) -> Result<(Vec<Item>, Option<Ending>), WtraceError> {
        let mut stream = Stream::new(pieces(bytes, size))?;
        let items = stream.by_ref().collect();
        Ok((items, stream.ending().cloned()))
    }

    #[test]
    fn pieces_of_any_size_give_what_the_whole_gives() {
        let bytes = recording(300);
        for size in [1, 7, 100, 4096, 1 << 20] {
            assert_eq!(streamed(&bytes, size), whole(&bytes), "{size}");
        }
        assert_eq!(streamed(b"", 1), whole(b""));
        assert_eq!(streamed(b"wakewatt-wtrace 9\nmore", 3), whole(b"wakewatt-wtrace 9\nmore"));
        assert_eq!(streamed(&[7; 1 << 22], 4096), Err(WtraceError::NotOurs));
        let mut failing = Some(bytes.clone());
        let mut stream = Stream::new(|into: &mut Vec<u8>| match failing.take() {
            Some(mut all) => {
                all.truncate(all.len() - 20);
                into.extend(all);
                Ok(true)
            }
            None => Err("the disk is gone".into()),
        })
        .unwrap();
        let n = stream.by_ref().count();
        assert!(n > 3 && matches!(stream.ending(), Some(Ending::Unreadable { .. })), "{:?}", stream.ending());
    }

    #[test]
    fn a_long_recording_needs_no_more_memory_than_a_short_one() {
        let held = |n: u64| {
            let bytes = recording(n);
            let mut stream = Stream::new(pieces(&bytes, 1 << 16)).unwrap();
            let mut most = 0;
            while stream.next().is_some() {
                most = most.max(stream.held_bytes());
            }
            (bytes.len(), most)
        };
        let (short, long) = (held(100_000), held(2_000_000));
        assert!(long.0 > 10 * short.0 && long.0 > 4 << 20, "{short:?} {long:?}");
        assert!(long.1 <= 1 << 20, "{short:?} {long:?}");
    }

    proptest! {
        #[test]
        fn cut_or_damaged_both_end_alike(cut in 0usize..4000, flip in 0usize..4000, size in 1usize..600) {
            let mut bytes = recording(200);
            let at = flip % bytes.len();
            bytes[at] ^= 1 << (flip % 8);
            bytes.truncate(bytes.len().saturating_sub(cut % bytes.len()));
            prop_assert_eq!(streamed(&bytes, size), whole(&bytes));
        }
    }
}
