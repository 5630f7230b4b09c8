//! One idle pair as the ring buffer carries it: 56 bytes, decoded without trust.

/// What the record knows beyond its times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordFlags {
    /// First pair of an idle period.
    pub is_first: bool,
    /// The tick was stopped.
    pub is_stopped: bool,
    /// The tick fired inside the pair.
    pub is_tick_fired: bool,
    /// Reference time and next event are known (and with them the two tick flags).
    pub has_timers: bool,
    /// `n_iowait` is known.
    pub has_iowait: bool,
    /// `sleep_until_ns` is known.
    pub has_sleep_length: bool,
}

/// One select/enter/exit of the idle loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleRecord {
    pub cpu: u32,
    /// CLOCK_MONOTONIC at entry.
    pub enter_at_ns: u64,
    /// At exit.
    pub exit_at_ns: u64,
    /// The idle loop's own reference: when it was entered, or its last interrupt ended.
    pub reference_at_ns: u64,
    /// When the clock event device was to fire (the tick, if it was running).
    pub next_event_at_ns: i64,
    /// When the first timer other than the tick is due.
    pub sleep_until_ns: i64,
    /// Tasks in iowait that last ran here.
    pub n_iowait: u16,
    /// Index requested.
    pub state: u8,
    /// Which of the above are known.
    pub flags: RecordFlags,
    /// Number of the C enumeration: 0 unknown, 1 tick, 2 timer, 3 interrupt, 4 remote, 5 polled.
    pub cause: u32,
}

/// Bytes of the C structure.
pub(crate) const RECORD_BYTES: usize = 56;

impl IdleRecord {
    /// From the ring buffer; none when it is too short to be ours.
    pub fn parse(bytes: &[u8]) -> Option<IdleRecord> {
        let u64_at = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let u32_at = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let bits = *bytes.get(47)?;
        let has = |bit: u8| bits & bit != 0;
        Some(IdleRecord {
            enter_at_ns: u64_at(0)?,
            exit_at_ns: u64_at(8)?,
            reference_at_ns: u64_at(16)?,
            next_event_at_ns: u64_at(24)?.cast_signed(),
            sleep_until_ns: u64_at(32)?.cast_signed(),
            cpu: u32_at(40)?,
            n_iowait: u16::from_ne_bytes(bytes.get(44..46)?.try_into().ok()?),
            state: *bytes.get(46)?,
            flags: RecordFlags {
                is_first: has(1),
                is_stopped: has(2),
                is_tick_fired: has(4),
                has_timers: has(8),
                has_iowait: has(16),
                has_sleep_length: has(32),
            },
            cause: u32_at(RECORD_BYTES - 8)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_decoded_and_a_short_one_refused() {
        let mut bytes = vec![0u8; RECORD_BYTES];
        bytes[0..8].copy_from_slice(&7u64.to_ne_bytes());
        bytes[8..16].copy_from_slice(&9u64.to_ne_bytes());
        bytes[40..44].copy_from_slice(&3u32.to_ne_bytes());
        bytes[46] = 1;
        bytes[47] = 1 | 8 | 32;
        bytes[48..52].copy_from_slice(&4u32.to_ne_bytes());
        let record = IdleRecord::parse(&bytes).unwrap();
        assert_eq!((record.enter_at_ns, record.exit_at_ns, record.cpu, record.state, record.cause), (7, 9, 3, 1, 4));
        assert!(record.flags.is_first && record.flags.has_sleep_length && !record.flags.is_stopped);
        assert!((0..RECORD_BYTES - 4).all(|n| IdleRecord::parse(&bytes[..n]).is_none()));
    }
}
