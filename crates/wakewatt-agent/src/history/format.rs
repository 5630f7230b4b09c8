//! The bytes of a segment: numbers by name, as differences, each moment a frame with a checksum.
//!
//! A segment begins with [`MAGIC`]. Then frames: kind (1 byte), length of the payload (varint), payload, CRC-32 of kind and payload (little-endian). Kinds:
//!
//! - 1, a series: how many tens its numbers are scaled by (signed varint, -6 for millionths), its name with labels. Numbered as they come, from 0.
//! - 2, a moment: milliseconds since the moment before (the first: since 1970), then pairs of "so many series as before" and a token: 0 turns a known
//!   series unknown, or an unknown one known, and then its whole number follows; n > 0 is a difference, zigzag of it plus 1. Behind the last pair
//!   nothing changed. The first moment of a segment begins with every series unknown, so a segment can be read alone.
//! - 3, a change of a setting: milliseconds since 1970, what, from, to (texts with their length); then, from newer agents, milliseconds since it was last seen as it
//!   had been, who held it and which daemons may have changed it (texts, names apart by a line break).
//!
//! A frame that is cut, or whose checksum is wrong, ends the segment: what was before it is whole.

use super::change::Change;
use std::collections::HashMap;
use thiserror::Error;
use wakewatt_core::record::varint::{put, take, unzigzag, zigzag};

/// The first line of a segment.
pub(super) const MAGIC: &[u8] = b"wakewatt-history 1\n";
const SERIES: u8 = 1;
const MOMENT: u8 = 2;
const CHANGE: u8 = 3;
/// A frame never needs more, however it is written down.
const MOST_FRAME_BYTES: u64 = 1 << 20;
/// Series of a segment; a page has hundreds.
const MOST_SERIES: usize = 20_000;

/// The numbers of one time, parallel to the series of the reader so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// When, in milliseconds since 1970.
    pub wall_ms: u64,
    /// Each series' number in its own unit; none while it is not known.
    pub values: Vec<Option<i64>>,
}

/// Why a segment ends before its bytes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Trouble {
    /// Not ours, or of another version.
    #[error("it does not begin as a history of this version")]
    NoHistory,
    /// Cut in the middle of a frame: the agent was killed, or the disk was full.
    #[error("it is cut in the middle of a frame; what was before is whole")]
    Cut,
    /// A checksum or a number that cannot be.
    #[error("it is damaged; what was before the damage is whole")]
    Damaged,
}

/// Writes the frames of one segment.
#[derive(Debug, Default)]
pub(super) struct Writer {
    ids: HashMap<String, usize>,
    last: Moment,
}

impl Writer {
    /// The frames of one time: new series, then the moment. `numbers` are names with their scale and number.
    pub(super) fn moment(&mut self, wall_ms: u64, numbers: &[(&str, i8, i64)]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut now: Vec<Option<i64>> = vec![None; self.last.values.len()];
        for (name, tens, number) in numbers {
            let id = match self.ids.get(*name) {
                Some(id) => *id,
                None if self.ids.len() >= MOST_SERIES => continue,
                None => {
                    let id = self.ids.len();
                    self.ids.insert((*name).into(), id);
                    let mut payload = Vec::new();
                    put(&mut payload, zigzag(i64::from(*tens)));
                    payload.extend_from_slice(name.as_bytes());
                    frame(&mut out, SERIES, &payload);
                    now.push(None);
                    id
                }
            };
            now[id] = Some(*number);
        }
        let mut payload = Vec::new();
        put(&mut payload, wall_ms.saturating_sub(self.last.wall_ms));
        let mut n_same = 0;
        for (id, value) in now.iter().enumerate() {
            let before = self.last.values.get(id).copied().flatten();
            if before == *value {
                n_same += 1;
                continue;
            }
            put(&mut payload, n_same);
            n_same = 0;
            match (before, value) {
                (Some(then), Some(value)) => put(&mut payload, token(*value, then)),
                (Some(_), None) => put(&mut payload, 0),
                (None, value) => {
                    put(&mut payload, 0);
                    put(&mut payload, zigzag(value.unwrap_or_default()));
                }
            }
        }
        frame(&mut out, MOMENT, &payload);
        self.last = Moment { wall_ms: wall_ms.max(self.last.wall_ms), values: now };
        out
    }

    /// No room for further names?
    pub(super) fn is_full(&self) -> bool {
        self.ids.len() >= MOST_SERIES
    }

    /// The frame of a change.
    pub(super) fn change(change: &Change) -> Vec<u8> {
        let mut payload = Vec::new();
        put(&mut payload, change.wall_ms);
        let text = |text: &str, payload: &mut Vec<u8>| {
            put(payload, text.len() as u64);
            payload.extend_from_slice(text.as_bytes());
        };
        [&change.what, &change.from, &change.to].into_iter().for_each(|t| text(t, &mut payload));
        if let Some(was_ms) = change.was_ms {
            put(&mut payload, change.wall_ms.saturating_sub(was_ms));
            [&change.held_by, &change.may_be_by].into_iter().for_each(|names| text(&names.join("\n"), &mut payload));
        }
        let mut out = Vec::new();
        frame(&mut out, CHANGE, &payload);
        out
    }
}

/// Reads a segment frame by frame.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Names with labels, by number.
    pub names: Vec<String>,
    /// So many tens each number is to be multiplied by.
    pub tens: Vec<i8>,
    last: Moment,
    /// Changes so far.
    pub changes: Vec<Change>,
    /// Why it ended early.
    pub trouble: Option<Trouble>,
}

impl<'a> Reader<'a> {
    /// From the bytes of a whole segment, or of what is left of one.
    pub fn new(bytes: &'a [u8]) -> Result<Reader<'a>, Trouble> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(Trouble::NoHistory)?;
        let (names, tens, changes) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Reader { rest, names, tens, last: Moment::default(), changes, trouble: None })
    }

    /// The next moment; none at the end, or at [`trouble`](Reader::trouble).
    pub fn next_moment(&mut self) -> Option<&Moment> {
        while !self.rest.is_empty() {
            match self.take_frame() {
                Ok(true) => return Some(&self.last),
                Ok(false) => {}
                Err(trouble) => {
                    (self.trouble, self.rest) = (Some(trouble), &[]);
                }
            }
        }
        None
    }

    /// The moment that was read last.
    pub fn latest(&self) -> &Moment {
        &self.last
    }

    /// Takes a frame; was it a moment?
    fn take_frame(&mut self) -> Result<bool, Trouble> {
        let mut rest = self.rest;
        let (&kind, after) = rest.split_first().ok_or(Trouble::Cut)?;
        rest = after;
        let length = take(&mut rest).ok_or(Trouble::Cut)?;
        if length > MOST_FRAME_BYTES {
            return Err(Trouble::Damaged);
        }
        let length = usize::try_from(length).map_err(|_| Trouble::Damaged)?;
        let payload = rest.get(..length).ok_or(Trouble::Cut)?;
        let sum = rest.get(length..length + 4).ok_or(Trouble::Cut)?;
        if checksum(kind, payload).to_le_bytes() != *sum {
            return Err(Trouble::Damaged);
        }
        self.rest = &rest[length + 4..];
        match kind {
            SERIES => self.series(payload).map(|()| false),
            MOMENT => self.moment(payload).map(|()| true),
            CHANGE => self.change(payload).map(|()| false),
            // Of a later version: passed over.
            _ => Ok(false),
        }
    }

    fn series(&mut self, mut payload: &[u8]) -> Result<(), Trouble> {
        let tens = take(&mut payload).map(unzigzag).and_then(|t| i8::try_from(t).ok()).ok_or(Trouble::Damaged)?;
        let name = std::str::from_utf8(payload).map_err(|_| Trouble::Damaged)?;
        if self.names.len() >= MOST_SERIES {
            return Err(Trouble::Damaged);
        }
        self.names.push(name.into());
        self.tens.push(tens);
        self.last.values.push(None);
        Ok(())
    }

    fn moment(&mut self, mut payload: &[u8]) -> Result<(), Trouble> {
        let step_ms = take(&mut payload).ok_or(Trouble::Damaged)?;
        self.last.wall_ms = self.last.wall_ms.checked_add(step_ms).ok_or(Trouble::Damaged)?;
        let mut at = 0usize;
        while !payload.is_empty() {
            let n_same = take(&mut payload).ok_or(Trouble::Damaged)?;
            let token = take(&mut payload).ok_or(Trouble::Damaged)?;
            at = usize::try_from(n_same).ok().and_then(|n| at.checked_add(n)).ok_or(Trouble::Damaged)?;
            let value = self.last.values.get_mut(at).ok_or(Trouble::Damaged)?;
            *value = match (token, *value) {
                (0, Some(_)) => None,
                (0, None) => Some(unzigzag(take(&mut payload).ok_or(Trouble::Damaged)?)),
                (token, Some(then)) => Some(then.wrapping_add(unzigzag(token - 1))),
                (_, None) => return Err(Trouble::Damaged),
            };
            at += 1;
        }
        Ok(())
    }

    fn change(&mut self, mut payload: &[u8]) -> Result<(), Trouble> {
        let wall_ms = take(&mut payload).ok_or(Trouble::Damaged)?;
        let mut change = Change { wall_ms, ..Change::default() };
        for part in [&mut change.what, &mut change.from, &mut change.to] {
            *part = text(&mut payload).ok_or(Trouble::Damaged)?;
        }
        // Earlier versions told no more.
        if !payload.is_empty() {
            let ago_ms = take(&mut payload).ok_or(Trouble::Damaged)?;
            change.was_ms = Some(wall_ms.saturating_sub(ago_ms));
            for part in [&mut change.held_by, &mut change.may_be_by] {
                let names = text(&mut payload).ok_or(Trouble::Damaged)?;
                *part = names.split('\n').filter(|name| !name.is_empty()).map(str::to_string).collect();
            }
        }
        self.changes.push(change);
        Ok(())
    }
}

/// A text with its length.
fn text(bytes: &mut &[u8]) -> Option<String> {
    let length = usize::try_from(take(bytes)?).ok()?;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(std::str::from_utf8(text).ok()?.to_string())
}

/// The token of a difference. Zigzag of the extreme difference plus 1 would be 2^64; it stays below, off by one, which nobody can see in a number of
/// nineteen digits.
fn token(value: i64, then: i64) -> u64 {
    zigzag(value.wrapping_sub(then)).saturating_add(1)
}

fn checksum(kind: u8, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[kind]);
    hasher.update(payload);
    hasher.finalize()
}

fn frame(out: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    out.push(kind);
    put(out, payload.len() as u64);
    out.extend_from_slice(payload);
    out.extend_from_slice(&checksum(kind, payload).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Read = Vec<(u64, Vec<(String, i64)>)>;

    fn written(moments: &[(u64, Vec<(u8, i64)>)]) -> (Vec<u8>, Read) {
        let (mut writer, mut bytes, mut expected) = (Writer::default(), MAGIC.to_vec(), Vec::new());
        let mut wall_ms = 0;
        for (step, numbers) in moments {
            wall_ms += step;
            let mut by_name: Vec<(String, i64)> = numbers.iter().map(|(n, v)| (format!("s{n}"), *v)).collect();
            by_name.sort();
            by_name.dedup_by(|a, b| a.0 == b.0);
            let borrowed: Vec<(&str, i8, i64)> = by_name.iter().map(|(n, v)| (n.as_str(), -3, *v)).collect();
            bytes.extend(writer.moment(wall_ms, &borrowed));
            expected.push((wall_ms, by_name));
        }
        (bytes, expected)
    }

    fn read(bytes: &[u8]) -> (Read, Option<Trouble>) {
        let mut reader = match Reader::new(bytes) {
            Ok(reader) => reader,
            Err(trouble) => return (Vec::new(), Some(trouble)),
        };
        let mut found = Vec::new();
        while let Some(moment) = reader.next_moment() {
            let moment = moment.clone();
            let known = moment.values.iter().zip(&reader.names).filter_map(|(v, n)| Some((n.clone(), (*v)?)));
            let mut known: Vec<(String, i64)> = known.collect();
            known.sort();
            found.push((moment.wall_ms, known));
        }
        (found, reader.trouble)
    }

    fn moments() -> impl Strategy<Value = Vec<(u64, Vec<(u8, i64)>)>> {
        let numbers = prop::collection::vec((0..12u8, -1_000_000_000_000i64..1_000_000_000_000), 0..12);
        prop::collection::vec((0..100_000u64, numbers), 0..20)
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(moments in moments()) {
            let (bytes, expected) = written(&moments);
            prop_assert_eq!(read(&bytes), (expected, None));
        }

        #[test]
        fn cut_anywhere_the_rest_is_whole(moments in moments(), at in any::<prop::sample::Index>()) {
            let (bytes, expected) = written(&moments);
            let (found, trouble) = read(&bytes[..at.index(bytes.len() + 1)]);
            prop_assert!(expected.starts_with(&found));
            prop_assert!(trouble.is_some() || found.len() <= expected.len());
        }

        #[test]
        fn nothing_panics_and_damage_is_seen(moments in moments(), at in any::<prop::sample::Index>(), bit in 0..8u8) {
            let (mut bytes, expected) = written(&moments);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            let (found, trouble) = read(&bytes);
            prop_assert!(expected.starts_with(&found), "{found:?}");
            prop_assert!(trouble.is_some());
        }

        #[test]
        fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&[MAGIC, &bytes].concat());
        }
    }

    #[test]
    fn changes_stand_beside() {
        let plain = Change {
            wall_ms: 70,
            what: "idle_governor".into(),
            from: "menu".into(),
            to: "teo".into(),
            ..Change::default()
        };
        let told = Change { was_ms: Some(60), held_by: vec!["db".into(), "x y".into()], ..plain.clone() };
        let bytes = [MAGIC, &Writer::change(&plain), &Writer::change(&told)].concat();
        let mut reader = Reader::new(&bytes).unwrap();
        assert!(reader.next_moment().is_none());
        assert_eq!((reader.changes.as_slice(), reader.trouble), ([plain, told].as_slice(), None));
    }
}
