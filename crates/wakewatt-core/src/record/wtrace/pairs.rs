//! Pairs of one CPU, packed by columns.
//!
//! Each pair has a tag (state, cause, which values are known, how the two deadlines are coded, tasks in iowait) and some
//! numbers; numbers of a kind stand together, because they resemble each other. Times are differences: entry from the
//! previous exit, deadlines from whatever predicts them best (the previous pair's, the grid of ticks, the exit), and the exit
//! of a pair that the tick ended from that tick.
//!
//! Times are kept in the header's unit: [`rounded`] is what comes back. The unit is a power of two, so that differences
//! stay whole in arithmetic modulo 2^64. Deadlines on the grid of ticks are exact.

use super::bits::{BitReader, BitWriter};
use super::column;
use super::header::Header;
use super::tags::{self, How};
use crate::cpuset::MAX_CPUS;
use crate::record::varint::{put, take};
use crate::samples::idle_pair::{IdlePair, WakeCause};

/// What a file's blocks share: its header says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    /// Length of a tick; 0 where it is not known.
    pub(super) tick_ns: i64,
    /// Times are multiples of 2 to this power, in ns.
    pub(super) unit_bits: u32,
}

impl Grid {
    pub(super) fn of(header: &Header) -> Grid {
        let tick_ns = header.tick_ns.and_then(|ns| i64::try_from(ns).ok()).unwrap_or(0);
        Grid { tick_ns, unit_bits: header.unit_ns.unwrap_or(1).trailing_zeros() & 0x3f }
    }

    fn floor(self, ns: u64) -> u64 {
        ns >> self.unit_bits << self.unit_bits
    }

    /// A difference of two floored times in units.
    fn units(self, to: u64, from: u64) -> i64 {
        to.wrapping_sub(from).cast_signed() >> self.unit_bits
    }

    fn later(self, from: u64, units: i64) -> u64 {
        from.wrapping_add((units << self.unit_bits).cast_unsigned())
    }

    /// How many ticks after the entry's tick, where the instant lies on a tick.
    fn ticks(self, at_ns: i64, enter_at_ns: u64) -> Option<i64> {
        let enter = enter_at_ns.cast_signed();
        let is_on_grid = self.tick_ns > 0 && at_ns % self.tick_ns == 0 && enter >= 0;
        if is_on_grid { (at_ns / self.tick_ns).checked_sub(enter / self.tick_ns) } else { None }
    }

    fn tick_at(self, ticks: i64, enter_at_ns: u64) -> Option<i64> {
        let tick_ns = Some(self.tick_ns).filter(|ns| *ns > 0)?;
        ticks.checked_add(enter_at_ns.cast_signed() / tick_ns)?.checked_mul(tick_ns)
    }
}

/// The instants of a pair, floored.
struct Instants {
    enter: u64,
    exit: u64,
    reference: u64,
    next: Option<i64>,
    sleep: Option<i64>,
}

impl Instants {
    fn of(pair: &IdlePair, grid: Grid) -> Instants {
        let enter = grid.floor(pair.enter_at_ns);
        let exact = pair.enter_at_ns.wrapping_sub(pair.entry_lag_ns.unwrap_or(0));
        let at = |after: Option<i64>| {
            let at = exact.cast_signed().wrapping_add(after?);
            let floored = grid.floor(at.cast_unsigned()).cast_signed();
            Some(if grid.ticks(at, enter).is_some() { at } else { floored })
        };
        Instants {
            enter,
            exit: grid.floor(pair.enter_at_ns.wrapping_add(pair.duration_ns)),
            reference: grid.floor(exact),
            next: at(pair.next_event_ns),
            sleep: at(pair.sleep_length_ns),
        }
    }

    /// The pair whose instants these are; all else is `of`'s.
    fn pair(&self, of: IdlePair) -> IdlePair {
        let after = |at: Option<i64>| at.map(|at| at.wrapping_sub(self.reference.cast_signed()));
        IdlePair {
            enter_at_ns: self.enter,
            duration_ns: self.exit.wrapping_sub(self.enter),
            entry_lag_ns: of.entry_lag_ns.map(|_| self.enter.wrapping_sub(self.reference)),
            next_event_ns: after(self.next),
            sleep_length_ns: after(self.sleep),
            ..of
        }
    }
}

/// The pair as it comes back from a file.
#[cfg(test)]
pub(super) fn rounded(pair: &IdlePair, grid: Grid) -> IdlePair {
    Instants::of(pair, grid).pair(*pair)
}

/// The columns of a block, each with the numbers of the pairs that have one.
#[derive(Debug, Default)]
struct Columns {
    tag: Vec<i64>,
    gap: Vec<i64>,
    duration: Vec<i64>,
    /// From the tick that ended the pair to its exit, in place of `duration`.
    after_tick: Vec<i64>,
    lag: Vec<i64>,
    next_ticks: Vec<i64>,
    next_from_exit: Vec<i64>,
    sleep_ticks: Vec<i64>,
    sleep_from_exit: Vec<i64>,
}

impl Columns {
    fn all(&mut self) -> [&mut Vec<i64>; 9] {
        let Columns { tag, gap, duration, after_tick, lag, next_ticks, next_from_exit, sleep_ticks, sleep_from_exit } =
            self;
        [tag, gap, duration, after_tick, lag, next_ticks, next_from_exit, sleep_ticks, sleep_from_exit]
    }
}

/// What predicts the next pair.
struct Before {
    exit: u64,
    next: i64,
    sleep: i64,
}

/// How an instant is coded.
fn how(at: Option<i64>, before: i64, enter: u64, grid: Grid) -> How {
    match at {
        None => How::Absent,
        Some(at) if at == before => How::Same,
        Some(at) if grid.ticks(at, enter).is_some() => How::Ticks,
        Some(_) => How::FromExit,
    }
}

/// Is the exit told from the next event's tick?
fn is_after_tick(next: How, cause: WakeCause) -> bool {
    next == How::Ticks && cause == WakeCause::Tick
}

/// Packs pairs of one CPU, in the order of their entry.
pub(super) fn encode(pairs: &[IdlePair], grid: Grid) -> Vec<u8> {
    let mut out = Vec::with_capacity(pairs.len() * 6 + 32);
    let Some(first) = pairs.first() else { return out };
    let start = grid.floor(first.enter_at_ns);
    let mut before = Before { exit: start, next: 0, sleep: 0 };
    let mut columns = Columns::default();
    let all: Vec<u64> = pairs.iter().map(|pair| one(pair, &mut columns, &mut before, grid)).collect();
    let table = tags::by_frequency(&all);
    columns.tag = all.iter().map(|tag| table.iter().position(|t| t == tag).map_or(0, |at| at as i64)).collect();
    put(&mut out, u64::from(first.cpu));
    put(&mut out, pairs.len() as u64);
    put(&mut out, start);
    put(&mut out, table.len() as u64);
    table.iter().for_each(|tag| put(&mut out, *tag));
    let mut bits = BitWriter::default();
    columns.all().into_iter().for_each(|c| column::put(&mut bits, c));
    out.extend(bits.end());
    // A reader grants no more pairs than bits.
    out.resize(out.len().max(pairs.len().div_ceil(8)), 0);
    out
}

/// Puts its numbers into the columns; returns its tag.
fn one(pair: &IdlePair, columns: &mut Columns, before: &mut Before, grid: Grid) -> u64 {
    let at = Instants::of(pair, grid);
    let next = how(at.next, before.next, at.enter, grid);
    let is_as_next = at.sleep.is_some() && at.sleep == at.next;
    let sleep = if is_as_next { How::AsNext } else { how(at.sleep, before.sleep, at.enter, grid) };
    columns.gap.push(grid.units(at.enter, before.exit));
    let floored = |instant: i64| grid.floor(instant.cast_unsigned());
    match at.next.filter(|_| is_after_tick(next, pair.ended_by)) {
        Some(tick) => columns.after_tick.push(grid.units(at.exit, floored(tick))),
        None => columns.duration.push(grid.units(at.exit, at.enter)),
    }
    if pair.entry_lag_ns.is_some() {
        columns.lag.push(grid.units(at.enter, at.reference));
    }
    let deadlines = [
        (next, at.next, &mut columns.next_ticks, &mut columns.next_from_exit),
        (sleep, at.sleep, &mut columns.sleep_ticks, &mut columns.sleep_from_exit),
    ];
    for (how, instant, ticks, from_exit) in deadlines {
        let Some(instant) = instant else { continue };
        match how {
            How::Ticks => ticks.extend(grid.ticks(instant, at.enter)),
            How::FromExit => from_exit.push(grid.units(instant.cast_unsigned(), at.exit)),
            How::Absent | How::Same | How::AsNext => {}
        }
    }
    *before = Before { exit: at.exit, next: at.next.unwrap_or(before.next), sleep: at.sleep.unwrap_or(before.sleep) };
    tags::of(pair, next, sleep)
}

/// Unpacks; none when the bytes are not what `encode` writes.
pub(super) fn decode(mut bytes: &[u8], grid: Grid) -> Option<Vec<IdlePair>> {
    let n_bytes = bytes.len();
    let rest = &mut bytes;
    let cpu = u32::try_from(take(rest)?).ok().filter(|cpu| *cpu < MAX_CPUS)?;
    let n = usize::try_from(take(rest)?).ok()?;
    if n > super::PAIRS_PER_BLOCK || n > n_bytes * 8 {
        return None; // never trust a count
    }
    let start = take(rest)?;
    let n_tags = usize::try_from(take(rest)?).ok().filter(|n_tags| *n_tags <= n)?;
    let table = (0..n_tags).map(|_| tags::read(take(rest)?)).collect::<Option<Vec<_>>>()?;
    let mut bits = BitReader::new(rest);
    let indices = column::take(&mut bits, n)?;
    let found: Vec<&tags::Tag> =
        indices.iter().map(|at| table.get(usize::try_from(*at).ok()?)).collect::<Option<Vec<_>>>()?;
    let count = |is: &dyn Fn(&tags::Tag) -> bool| found.iter().filter(|tag| is(tag)).count();
    let n_after_tick = count(&|t| is_after_tick(t.next, t.bare.ended_by));
    let lengths = [
        n,
        n - n_after_tick,
        n_after_tick,
        count(&|t| t.bare.entry_lag_ns.is_some()),
        count(&|t| t.next == How::Ticks),
        count(&|t| t.next == How::FromExit),
        count(&|t| t.sleep == How::Ticks),
        count(&|t| t.sleep == How::FromExit),
    ];
    let mut columns = Vec::with_capacity(lengths.len());
    for length in lengths {
        columns.push(column::take(&mut bits, length)?.into_iter());
    }
    if !bits.is_at_end() {
        return None;
    }
    let [gap, duration, after_tick, lag, next_ticks, next_from_exit, sleep_ticks, sleep_from_exit] =
        columns.try_into().ok()?;
    let mut source = Source {
        gap,
        duration,
        after_tick,
        lag,
        next: [next_ticks, next_from_exit],
        sleep: [sleep_ticks, sleep_from_exit],
    };
    let mut before = Before { exit: start, next: 0, sleep: 0 };
    found.into_iter().map(|tag| source.pair(tag, cpu, &mut before, grid)).collect()
}

type Numbers = std::vec::IntoIter<i64>;

/// The columns while they are read.
struct Source {
    gap: Numbers,
    duration: Numbers,
    after_tick: Numbers,
    lag: Numbers,
    next: [Numbers; 2],
    sleep: [Numbers; 2],
}

impl Source {
    fn pair(&mut self, tag: &tags::Tag, cpu: u32, before: &mut Before, grid: Grid) -> Option<IdlePair> {
        let enter = grid.later(before.exit, self.gap.next()?);
        let next_tick = if tag.next == How::Ticks { Some(grid.tick_at(self.next[0].next()?, enter)?) } else { None };
        let exit = match next_tick.filter(|_| is_after_tick(tag.next, tag.bare.ended_by)) {
            Some(tick) => grid.later(grid.floor(tick.cast_unsigned()), self.after_tick.next()?),
            None => grid.later(enter, self.duration.next()?),
        };
        let reference = match tag.bare.entry_lag_ns {
            Some(_) => grid.later(enter, self.lag.next()?.checked_neg()?),
            None => enter,
        };
        let next = match tag.next {
            How::Absent => None,
            How::Same => Some(before.next),
            How::Ticks => next_tick,
            How::FromExit => Some(grid.later(exit, self.next[1].next()?).cast_signed()),
            How::AsNext => return None,
        };
        let sleep = match tag.sleep {
            How::Absent => None,
            How::Same => Some(before.sleep),
            How::Ticks => Some(grid.tick_at(self.sleep[0].next()?, enter)?),
            How::FromExit => Some(grid.later(exit, self.sleep[1].next()?).cast_signed()),
            How::AsNext => next,
        };
        *before = Before { exit, next: next.unwrap_or(before.next), sleep: sleep.unwrap_or(before.sleep) };
        let at = Instants { enter, exit, reference, next, sleep };
        Some(at.pair(IdlePair { cpu, ..tag.bare }))
    }
}
