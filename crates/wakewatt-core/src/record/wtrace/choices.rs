//! Questions to the governor of one CPU, packed by columns as pairs are, exact to the nanosecond.
//!
//! A block of its own kind, which readers that do not know it skip: the pairs beside it stay what they were. It stands before the
//! block of the stays that came of its questions. The bits of a tag are in docs/wtrace-format.md.

use super::bits::{BitReader, BitWriter};
use super::column;
use super::tags::{by_frequency, flag, is_flagged};
use crate::cpuset::MAX_CPUS;
use crate::record::varint::{put, take};
use crate::samples::idle_choice::{Asked, IdleChoice, Outcome, TimersTold};

const HAS_STOPS: u64 = 1;
const STOPS: u64 = 1 << 1;
const HAS_STOPPED: u64 = 1 << 2;
const IS_STOPPED: u64 = 1 << 3;
const HAS_IOWAIT: u64 = 1 << 4;
const HAS_LIMIT: u64 = 1 << 5;
const HAS_DISABLED: u64 = 1 << 6;
const HAS_TIMERS: u64 = 1 << 7;
const IS_ENTERED: u64 = 1 << 8;
const HAS_FIRED: u64 = 1 << 9;
const IS_FIRED: u64 = 1 << 10;
const HAS_POLL_LIMIT: u64 = 1 << 11;
const IS_POLL_LIMIT: u64 = 1 << 12;
const ANSWER_SHIFT: u32 = 13;
const ENTERED_SHIFT: u32 = 21;
const DISABLED_SHIFT: u32 = 29;
const IOWAIT_SHIFT: u32 = 45;
const GOVERNOR_SHIFT: u32 = 61;

fn tag(choice: &IdleChoice) -> u64 {
    let outcome = choice.outcome.map_or(0, |o| {
        IS_ENTERED
            | flag(o.is_tick_fired, HAS_FIRED, IS_FIRED)
            | flag(o.is_poll_limit_hit, HAS_POLL_LIMIT, IS_POLL_LIMIT)
            | u64::from(o.state) << ENTERED_SHIFT
    });
    flag(choice.stops_tick, HAS_STOPS, STOPS)
        | flag(choice.is_tick_stopped, HAS_STOPPED, IS_STOPPED)
        | choice.n_iowait.map_or(0, |n| HAS_IOWAIT | u64::from(n) << IOWAIT_SHIFT)
        | choice.latency_limit_ns.map_or(0, |_| HAS_LIMIT)
        | choice.disabled.map_or(0, |mask| HAS_DISABLED | u64::from(mask) << DISABLED_SHIFT)
        | choice.timers.map_or(0, |_| HAS_TIMERS)
        | u64::from(choice.answer) << ANSWER_SHIFT
        | choice.governor.map_or(0, |asked| (asked as u64 + 1) << GOVERNOR_SHIFT)
        | outcome
}

/// A choice with zeros where there will be times.
fn bare(tag: u64) -> IdleChoice {
    let has = |bit: u64| tag & bit != 0;
    let flag = |known: u64, is: u64| is_flagged(tag, known, is);
    let outcome = Outcome {
        state: (tag >> ENTERED_SHIFT & 0xff) as u8,
        residency_ns: 0,
        is_tick_fired: flag(HAS_FIRED, IS_FIRED),
        is_poll_limit_hit: flag(HAS_POLL_LIMIT, IS_POLL_LIMIT),
    };
    IdleChoice {
        cpu: 0,
        at_ns: 0,
        governor: Asked::of(tag >> GOVERNOR_SHIFT),
        answer: (tag >> ANSWER_SHIFT & 0xff) as u8,
        stops_tick: flag(HAS_STOPS, STOPS),
        timers: has(HAS_TIMERS).then_some(TimersTold::default()),
        is_tick_stopped: flag(HAS_STOPPED, IS_STOPPED),
        n_iowait: has(HAS_IOWAIT).then_some((tag >> IOWAIT_SHIFT & 0xffff) as u16),
        latency_limit_ns: has(HAS_LIMIT).then_some(0),
        disabled: has(HAS_DISABLED).then_some((tag >> DISABLED_SHIFT & 0xffff) as u16),
        outcome: has(IS_ENTERED).then_some(outcome),
    }
}

/// Packs choices of one CPU, in their order.
pub(super) fn encode(choices: &[IdleChoice]) -> Vec<u8> {
    let mut out = Vec::with_capacity(choices.len() * 12 + 32);
    let Some(first) = choices.first() else { return out };
    let all: Vec<u64> = choices.iter().map(tag).collect();
    let table = by_frequency(&all);
    let tags = all.iter().map(|tag| table.iter().position(|t| t == tag).map_or(0, |at| at as i64)).collect();
    let [mut gap, mut sleep, mut next, mut limit, mut residency] = [const { Vec::new() }; 5];
    let (mut at_ns, mut limit_ns) = (first.at_ns, 0i64);
    for choice in choices {
        gap.push(choice.at_ns.wrapping_sub(at_ns).cast_signed());
        at_ns = choice.at_ns;
        if let Some(told) = choice.timers {
            sleep.push(told.sleep_length_ns);
            // Both are often the same.
            next.push(told.next_event_ns.wrapping_sub(told.sleep_length_ns));
        }
        if let Some(ns) = choice.latency_limit_ns {
            limit.push(ns.wrapping_sub(limit_ns));
            limit_ns = ns;
        }
        residency.extend(choice.outcome.map(|o| o.residency_ns));
    }
    put(&mut out, u64::from(first.cpu));
    put(&mut out, choices.len() as u64);
    put(&mut out, first.at_ns);
    put(&mut out, table.len() as u64);
    table.iter().for_each(|tag| put(&mut out, *tag));
    let mut bits = BitWriter::default();
    let columns: [Vec<i64>; 6] = [tags, gap, sleep, next, limit, residency];
    columns.iter().for_each(|c| column::put(&mut bits, c));
    out.extend(bits.end());
    // A reader grants no more than bits.
    out.resize(out.len().max(choices.len().div_ceil(8)), 0);
    out
}

/// Unpacks; none when the bytes are not what `encode` writes.
pub(super) fn decode(mut bytes: &[u8]) -> Option<Vec<IdleChoice>> {
    let n_bytes = bytes.len();
    let rest = &mut bytes;
    let cpu = u32::try_from(take(rest)?).ok().filter(|cpu| *cpu < MAX_CPUS)?;
    let n = usize::try_from(take(rest)?).ok()?;
    if n > super::PAIRS_PER_BLOCK || n > n_bytes * 8 {
        return None; // never trust a count
    }
    let mut at_ns = take(rest)?;
    let n_tags = usize::try_from(take(rest)?).ok().filter(|n_tags| *n_tags <= n)?;
    let table = (0..n_tags).map(|_| Some(bare(take(rest)?))).collect::<Option<Vec<_>>>()?;
    let mut bits = BitReader::new(rest);
    let indices = column::take(&mut bits, n)?;
    let mut choices: Vec<IdleChoice> =
        indices.iter().map(|at| table.get(usize::try_from(*at).ok()?).copied()).collect::<Option<_>>()?;
    let count = |has: fn(&IdleChoice) -> bool| choices.iter().filter(|c| has(c)).count();
    let n_told = count(|c| c.timers.is_some());
    let lengths = [n, n_told, n_told, count(|c| c.latency_limit_ns.is_some()), count(|c| c.outcome.is_some())];
    let mut columns = Vec::with_capacity(lengths.len());
    for length in lengths {
        columns.push(column::take(&mut bits, length)?.into_iter());
    }
    if !bits.is_at_end() {
        return None;
    }
    let [mut gap, mut sleep, mut next, mut limit, mut residency]: [_; 5] = columns.try_into().ok()?;
    let mut limit_ns = 0i64;
    for choice in &mut choices {
        at_ns = at_ns.wrapping_add(gap.next()?.cast_unsigned());
        (choice.cpu, choice.at_ns) = (cpu, at_ns);
        if let Some(told) = &mut choice.timers {
            told.sleep_length_ns = sleep.next()?;
            told.next_event_ns = told.sleep_length_ns.wrapping_add(next.next()?);
        }
        if let Some(ns) = &mut choice.latency_limit_ns {
            limit_ns = limit_ns.wrapping_add(limit.next()?);
            *ns = limit_ns;
        }
        if let Some(outcome) = &mut choice.outcome {
            outcome.residency_ns = residency.next()?;
        }
    }
    Some(choices)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::option::of;
    use proptest::prelude::*;

    fn choice() -> impl Strategy<Value = IdleChoice> {
        let outcome =
            (any::<u8>(), any::<i64>(), of(any::<bool>()), of(any::<bool>())).prop_map(|(state, ns, fired, hit)| {
                Outcome { state, residency_ns: ns, is_tick_fired: fired, is_poll_limit_hit: hit }
            });
        let timers = (any::<i64>(), any::<i64>())
            .prop_map(|(sleep_length_ns, next_event_ns)| TimersTold { sleep_length_ns, next_event_ns });
        let inputs =
            (of(any::<bool>()), of(timers), of(any::<bool>()), of(any::<u16>()), of(any::<i64>()), of(any::<u16>()));
        (any::<u64>(), any::<u8>(), 0u64..6, inputs, of(outcome)).prop_map(
            |(
                at_ns,
                answer,
                governor,
                (stops_tick, timers, is_tick_stopped, n_iowait, latency_limit_ns, disabled),
                outcome,
            )| IdleChoice {
                cpu: 1,
                at_ns,
                governor: Asked::of(governor),
                answer,
                stops_tick,
                timers,
                is_tick_stopped,
                n_iowait,
                latency_limit_ns,
                disabled,
                outcome,
            },
        )
    }

    proptest! {
        #[test]
        fn any_choices_come_back(choices in prop::collection::vec(choice(), 1..80)) {
            prop_assert_eq!(decode(&encode(&choices)), Some(choices));
        }

        #[test]
        fn noise_never_panics(noise in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode(&noise);
        }
    }
}
