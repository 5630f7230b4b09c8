//! What a pair is, apart from its times: one number, of which a block has few.

use crate::arrange::Arrange as _;
use crate::samples::idle_pair::{IdlePair, WakeCause};
use std::collections::BTreeMap;

// Bits of a tag (docs/wtrace-format.md): what differs most stands lowest, so that a tag is short.
const IS_FIRST: u64 = 1;
const HAS_STOPPED: u64 = 1 << 1;
const IS_STOPPED: u64 = 1 << 2;
const HAS_FIRED: u64 = 1 << 3;
const IS_FIRED: u64 = 1 << 4;
const HAS_LAG: u64 = 1 << 5;
const HAS_IOWAIT: u64 = 1 << 6;
const NEXT_SHIFT: u32 = 7;
const SLEEP_SHIFT: u32 = 10;
const CAUSE_SHIFT: u32 = 13;
const STATE_SHIFT: u32 = 17;
const IOWAIT_SHIFT: u32 = 25;

/// How a deadline is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// Not known.
    Absent,
    /// The same instant as the previous pair's.
    Same,
    /// So many ticks after the entry's tick.
    Ticks,
    /// A difference from the exit.
    FromExit,
    /// The next event's instant (sleep length only).
    AsNext,
}

impl How {
    const ALL: [How; 5] = [How::Absent, How::Same, How::Ticks, How::FromExit, How::AsNext];
}

/// A tag, read: what it says of a pair, with zeros where there will be times.
#[derive(Clone, Debug)]
pub(super) struct Tag {
    pub(super) bare: IdlePair,
    pub(super) next: How,
    pub(super) sleep: How,
}

pub(super) fn of(pair: &IdlePair, next: How, sleep: How) -> u64 {
    u64::from(pair.state) << STATE_SHIFT
        | (pair.ended_by as u64) << CAUSE_SHIFT
        | if pair.is_first { IS_FIRST } else { 0 }
        | flag(pair.is_tick_stopped, HAS_STOPPED, IS_STOPPED)
        | flag(pair.is_tick_fired, HAS_FIRED, IS_FIRED)
        | pair.entry_lag_ns.map_or(0, |_| HAS_LAG)
        | pair.n_iowait.map_or(0, |n| HAS_IOWAIT | u64::from(n) << IOWAIT_SHIFT)
        | (next as u64) << NEXT_SHIFT
        | (sleep as u64) << SLEEP_SHIFT
}

/// None where the bits mean nothing.
pub(super) fn read(tag: u64) -> Option<Tag> {
    let flag = |has: u64, is: u64| is_flagged(tag, has, is);
    let how = |shift: u32| How::ALL.get(usize::try_from(tag >> shift & 7).ok()?).copied();
    let n_iowait = u16::try_from(tag >> IOWAIT_SHIFT).ok()?;
    let bare = IdlePair {
        state: (tag >> STATE_SHIFT & 0xff) as u8,
        ended_by: WakeCause::of(u32::try_from(tag >> CAUSE_SHIFT & 0xf).ok()?),
        is_first: tag & IS_FIRST != 0,
        is_tick_stopped: flag(HAS_STOPPED, IS_STOPPED),
        is_tick_fired: flag(HAS_FIRED, IS_FIRED),
        entry_lag_ns: (tag & HAS_LAG != 0).then_some(0),
        n_iowait: (tag & HAS_IOWAIT != 0).then_some(n_iowait),
        ..IdlePair::default()
    };
    Some(Tag { bare, next: how(NEXT_SHIFT)?, sleep: how(SLEEP_SHIFT)? })
}

/// Two bits of what may be unknown: known at all, and so.
pub(super) fn flag(known: Option<bool>, has: u64, is: u64) -> u64 {
    known.map_or(0, |v| has | if v { is } else { 0 })
}

/// The same, back.
pub(super) fn is_flagged(tag: u64, has: u64, is: u64) -> Option<bool> {
    (tag & has != 0).then_some(tag & is != 0)
}

/// Each once, the most frequent first: small numbers are short.
pub(super) fn by_frequency(all: &[u64]) -> Vec<u64> {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    all.iter().for_each(|tag| *counts.entry(*tag).or_default() += 1);
    let mut table: Vec<(u64, usize)> = counts.into_iter().collect();
    table.arrange_by_key(|(tag, n)| (std::cmp::Reverse(*n), *tag));
    table.into_iter().map(|(tag, _)| tag).collect()
}
