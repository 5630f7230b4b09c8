//! One question to the idle governor as the ring buffer carries it: 64 bytes, decoded without trust.

use wakewatt_core::samples::idle_choice::{Asked, IdleChoice, Outcome, TimersTold};

/// Bytes of the C structure; a pair's record is shorter, and by that they are told apart.
pub(crate) const CHOICE_BYTES: usize = 64;

// Bits of its flags (exact.h).
const HAS_ANSWER: u32 = 1;
const STOPS_TICK: u32 = 2;
const HAS_STOPPED: u32 = 4;
const IS_STOPPED: u32 = 8;
const HAS_IOWAIT: u32 = 16;
const HAS_LIMIT: u32 = 32;
const HAS_DISABLED: u32 = 64;
const HAS_TIMERS: u32 = 128;
const IS_ENTERED: u32 = 256;
const HAS_FIRED: u32 = 512;
const IS_FIRED: u32 = 1024;
const HAS_POLL_LIMIT: u32 = 2048;
const IS_POLL_LIMIT: u32 = 4096;

/// From the ring buffer; none when it is too short to be ours.
pub(crate) fn parse(bytes: &[u8]) -> Option<IdleChoice> {
    let u64_at = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let i64_at = |at: usize| u64_at(at).map(u64::cast_signed);
    let u32_at = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let u16_at = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let bits = u32_at(44)?;
    let has = |bit: u32| bits & bit != 0;
    let known = |is_known: u32, is: u32| has(is_known).then(|| has(is));
    let (disabled, n_iowait) = (u16_at(48)?, u16_at(50)?);
    let outcome = Outcome {
        state: *bytes.get(53)?,
        residency_ns: i64_at(32)?,
        is_tick_fired: known(HAS_FIRED, IS_FIRED),
        is_poll_limit_hit: known(HAS_POLL_LIMIT, IS_POLL_LIMIT),
    };
    Some(IdleChoice {
        cpu: u32_at(40)?,
        at_ns: u64_at(0)?,
        governor: Asked::of(u64::from(*bytes.get(54)?)),
        answer: *bytes.get(52)?,
        stops_tick: known(HAS_ANSWER, STOPS_TICK),
        timers: has(HAS_TIMERS).then_some(TimersTold { sleep_length_ns: i64_at(8)?, next_event_ns: i64_at(16)? }),
        is_tick_stopped: known(HAS_STOPPED, IS_STOPPED),
        n_iowait: has(HAS_IOWAIT).then_some(n_iowait),
        latency_limit_ns: has(HAS_LIMIT).then_some(i64_at(24)?),
        disabled: has(HAS_DISABLED).then_some(disabled),
        outcome: has(IS_ENTERED).then_some(outcome),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_decoded_and_a_short_one_refused() {
        let mut bytes = vec![0u8; CHOICE_BYTES];
        bytes[0..8].copy_from_slice(&7u64.to_ne_bytes());
        bytes[8..16].copy_from_slice(&(-9i64).to_ne_bytes());
        bytes[32..40].copy_from_slice(&800i64.to_ne_bytes());
        bytes[40..44].copy_from_slice(&3u32.to_ne_bytes());
        bytes[44..48].copy_from_slice(&(HAS_TIMERS | IS_ENTERED | HAS_FIRED | HAS_STOPPED | IS_STOPPED).to_ne_bytes());
        (bytes[52], bytes[53], bytes[54]) = (4, 2, 3);
        let choice = parse(&bytes).unwrap();
        assert_eq!((choice.at_ns, choice.cpu, choice.answer, choice.is_tick_stopped), (7, 3, 4, Some(true)));
        assert_eq!(choice.governor, Some(Asked::Ladder));
        assert_eq!(choice.timers.map(|t| t.sleep_length_ns), Some(-9));
        let outcome = choice.outcome.unwrap();
        assert_eq!((outcome.state, outcome.residency_ns, outcome.is_tick_fired), (2, 800, Some(false)));
        assert_eq!(
            (choice.latency_limit_ns, choice.n_iowait, choice.disabled, choice.stops_tick),
            (None, None, None, None)
        );
        assert!((0..55).all(|n| parse(&bytes[..n]).is_none()));
    }
}
