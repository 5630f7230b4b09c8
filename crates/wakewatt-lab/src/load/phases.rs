//! The phases of a level and their lengths.
//!
//! Settle, ramp up, recorded, ramp down, as the intervals of SPECpower_ssj2008 (10 s between, 30 s of ramp, 240 s recorded,
//! 30 s of ramp). Load runs in all but the first; only the recorded part counts.

use wakewatt_core::samples::load::Length;

const S: u64 = 1_000_000_000;

/// Lengths of the four phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phases {
    /// Nothing is asked.
    pub settle_ns: u64,
    /// Load that does not count.
    pub ramp_up_ns: u64,
    /// Load that counts.
    pub record_ns: u64,
    /// Load that does not count, so that the end of what counts is like its beginning.
    pub ramp_down_ns: u64,
}

impl Phases {
    /// Of a named length; `Custom` is the standard one.
    pub fn of(length: Length) -> Phases {
        let (settle, ramp, record) = match length {
            Length::Quick => (1, 2, 10),
            Length::Standard | Length::Custom => (5, 10, 60),
            Length::SpecLike => (10, 30, 240),
        };
        Phases { settle_ns: settle * S, ramp_up_ns: ramp * S, record_ns: record * S, ramp_down_ns: ramp * S }
    }

    /// This long recorded; the rest in SPECpower's proportions (an eighth, a twenty-fourth).
    pub fn custom(record_ns: u64) -> Phases {
        let ramp = record_ns / 8;
        Phases { settle_ns: record_ns / 24, ramp_up_ns: ramp, record_ns, ramp_down_ns: ramp }
    }

    /// All four.
    pub fn total_ns(&self) -> u64 {
        self.settle_ns + self.ramp_up_ns + self.record_ns + self.ramp_down_ns
    }

    /// In the order of a level's document.
    pub fn as_array(&self) -> [u64; 4] {
        [self.settle_ns, self.ramp_up_ns, self.record_ns, self.ramp_down_ns]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_of_the_longest_kind_is_specpowers() {
        let spec = Phases::of(Length::SpecLike);
        assert_eq!(spec.total_ns(), 310 * S);
        assert_eq!(Phases::custom(240 * S), spec);
        assert_eq!(Phases::custom(0).total_ns(), 0);
    }
}
