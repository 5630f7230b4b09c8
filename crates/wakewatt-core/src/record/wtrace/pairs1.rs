//! Pairs of one CPU as version 1 of the format packed them: read, no longer written.
//!
//! Each pair is a tag and up to six numbers. The tag says state, cause, which values are known and how the two deadlines
//! are coded; a block keeps a table of the tags it has met, so a tag costs one byte. Times are differences: entry from the
//! previous exit, deadlines from whatever predicts them best: the previous pair's (unchanged timers), the grid of ticks,
//! or the exit (a pair that a timer ended lies just after its deadline).

use crate::cpuset::MAX_CPUS;
use crate::record::varint::{take, take_signed};
use crate::samples::idle_pair::{IdlePair, WakeCause};

// Tag bits.
const STATE: u32 = 0xff;
const CAUSE_SHIFT: u32 = 8;
const IS_FIRST: u32 = 1 << 12;
const HAS_STOPPED: u32 = 1 << 13;
const IS_STOPPED: u32 = 1 << 14;
const HAS_FIRED: u32 = 1 << 15;
const IS_FIRED: u32 = 1 << 16;
const HAS_LAG: u32 = 1 << 17;
const HAS_IOWAIT: u32 = 1 << 18;
const NEXT_SHIFT: u32 = 19;
const SLEEP_SHIFT: u32 = 22;

/// How a deadline is coded.
mod coded {
    pub(super) const ABSENT: u32 = 0;
    /// The same instant as the previous pair's.
    pub(super) const SAME: u32 = 1;
    /// So many ticks after the entry's tick.
    pub(super) const TICKS: u32 = 2;
    /// Difference from the exit.
    pub(super) const FROM_EXIT: u32 = 3;
    /// The next event's instant (sleep length only).
    pub(super) const AS_NEXT: u32 = 4;
}

/// Running state of one block, the same on both sides.
struct Context {
    exit_at_ns: u64,
    next_at_ns: i64,
    sleep_at_ns: i64,
    tick_ns: i64,
    tags: Vec<u32>,
}

impl Context {
    fn new(start_at_ns: u64, tick_ns: u64) -> Context {
        let tick_ns = i64::try_from(tick_ns).unwrap_or(0);
        Context { exit_at_ns: start_at_ns, next_at_ns: 0, sleep_at_ns: 0, tick_ns, tags: Vec::new() }
    }

    fn decode(&self, how: u32, number: i64, before_ns: i64, enter_at_ns: u64, exit_at_ns: u64) -> Option<i64> {
        match how {
            coded::SAME => Some(before_ns),
            coded::TICKS if self.tick_ns > 0 => {
                number.checked_add(enter_at_ns.cast_signed() / self.tick_ns)?.checked_mul(self.tick_ns)
            }
            coded::FROM_EXIT => Some(number.wrapping_add(exit_at_ns.cast_signed())),
            _ => None,
        }
    }
}

/// Unpacks; none when the bytes are not what `encode` writes.
pub(super) fn decode(mut bytes: &[u8], tick_ns: u64) -> Option<Vec<IdlePair>> {
    let rest = &mut bytes;
    let cpu = u32::try_from(take(rest)?).ok().filter(|cpu| *cpu < MAX_CPUS)?;
    let n = usize::try_from(take(rest)?).ok()?;
    if n > super::PAIRS_PER_BLOCK || n * 3 > rest.len() {
        return None; // the smallest pair has three bytes: never trust a count
    }
    let mut context = Context::new(take(rest)?, tick_ns);
    let mut pairs = Vec::with_capacity(n);
    for _ in 0..n {
        pairs.push(next_pair(rest, cpu, &mut context)?);
    }
    rest.is_empty().then_some(pairs)
}

fn next_pair(rest: &mut &[u8], cpu: u32, context: &mut Context) -> Option<IdlePair> {
    let index = usize::try_from(take(rest)?).ok()?;
    let tag = match index.checked_sub(1) {
        Some(known) => *context.tags.get(known)?,
        None => {
            let tag = u32::try_from(take(rest)?).ok()?;
            context.tags.push(tag);
            tag
        }
    };
    let enter_at_ns = context.exit_at_ns.wrapping_add(take_signed(rest)?.cast_unsigned());
    let duration_ns = take(rest)?;
    let exit_at_ns = enter_at_ns.wrapping_add(duration_ns);
    let entry_lag_ns = if tag & HAS_LAG != 0 { Some(take(rest)?) } else { None };
    let reference = enter_at_ns.wrapping_sub(entry_lag_ns.unwrap_or(0)).cast_signed();
    let mut deadline = |how: u32, before_ns: i64| -> Option<Option<i64>> {
        let number = if how == coded::TICKS || how == coded::FROM_EXIT { take_signed(rest)? } else { 0 };
        if how == coded::ABSENT || how == coded::AS_NEXT {
            return Some(None);
        }
        context.decode(how, number, before_ns, enter_at_ns, exit_at_ns).map(Some)
    };
    let next_at = deadline(tag >> NEXT_SHIFT & 7, context.next_at_ns)?;
    let sleep_how = tag >> SLEEP_SHIFT & 7;
    let sleep_at = deadline(sleep_how, context.sleep_at_ns)?;
    let sleep_at = if sleep_how == coded::AS_NEXT { next_at } else { sleep_at };
    let n_iowait = if tag & HAS_IOWAIT != 0 { Some(u16::try_from(take(rest)?).ok()?) } else { None };
    context.exit_at_ns = exit_at_ns;
    context.next_at_ns = next_at.unwrap_or(context.next_at_ns);
    context.sleep_at_ns = sleep_at.unwrap_or(context.sleep_at_ns);
    let flag = |has: u32, is: u32| (tag & has != 0).then_some(tag & is != 0);
    Some(IdlePair {
        cpu,
        enter_at_ns,
        duration_ns,
        state: (tag & STATE) as u8,
        sleep_length_ns: sleep_at.map(|at| at.wrapping_sub(reference)),
        next_event_ns: next_at.map(|at| at.wrapping_sub(reference)),
        entry_lag_ns,
        is_tick_stopped: flag(HAS_STOPPED, IS_STOPPED),
        is_first: tag & IS_FIRST != 0,
        ended_by: WakeCause::of(tag >> CAUSE_SHIFT & 0xf),
        is_tick_fired: flag(HAS_FIRED, IS_FIRED),
        n_iowait,
    })
}
