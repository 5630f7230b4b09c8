//! PELT: the scheduler's running average of how much a CPU is used.
//!
//! Time is cut into periods of 1024 units of 1024 ns; a period's use counts half after 32 periods. What is accumulated loses a factor
//! y, with y^32 = 1/2, at the end of each period, in integers, and the average is its share of what a CPU that never slept
//! would have accumulated. Read, not held against compiled code.

/// Units of a period.
const PERIOD: u64 = 1024;
/// What full use accumulates at most.
const FULL: u64 = 47_742;
/// y in 32 bits: floor((2^32 - 1) * 0.5^(1/32)).
const Y: u64 = 4_202_935_003;
/// After so many periods nothing of before is left, and full use is full.
const FORGOTTEN: u64 = 2048;

/// The running average of a CPU's use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pelt {
    sum: u32,
    /// Units of the present period that have passed.
    phase: u16,
    /// Nanoseconds that are not a unit yet.
    rest_ns: u16,
}

impl Pelt {
    /// So much time passed, all of it running or none.
    #[allow(clippy::cast_possible_truncation)] // A sum is below FULL + PERIOD; a phase and a rest are below 1024.
    pub fn pass(&mut self, ns: u64, is_running: bool) {
        let ns = ns.saturating_add(u64::from(self.rest_ns));
        self.rest_ns = (ns % 1024) as u16;
        let mut units = ns / 1024;
        // Longer than the memory: only the phase matters.
        if units > FORGOTTEN * PERIOD {
            units = FORGOTTEN * PERIOD + units % PERIOD;
        }
        let (mut sum, mut phase) = (u64::from(self.sum), u64::from(self.phase));
        while units > 0 {
            let now = units.min(PERIOD - phase);
            if is_running {
                sum += now;
            }
            phase += now;
            units -= now;
            if phase == PERIOD {
                phase = 0;
                sum = (sum * Y) >> 32;
            }
        }
        (self.sum, self.phase) = (sum as u32, phase as u16);
    }

    /// The average, 0 to 1024.
    pub fn utilisation(&self) -> u32 {
        let share = u64::from(self.sum) * 1024 / (FULL - PERIOD + u64::from(self.phase));
        u32::try_from(share.min(1024)).unwrap_or(1024)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(ms: u64) -> Pelt {
        let mut pelt = Pelt::default();
        pelt.pass(ms * 1_000_000, true);
        pelt
    }

    #[test]
    fn use_builds_up_and_fades() {
        let after = [1, 4, 10, 20, 32, 64, 100].map(|ms| ran(ms).utilisation());
        assert_eq!(after, [20, 81, 191, 346, 495, 751, 894]);
        assert!((1023..=1024).contains(&ran(5000).utilisation()));
        let mut fading = ran(5000);
        fading.pass(32 * 1024 * 1024, false);
        assert!((510..=513).contains(&fading.utilisation()), "{}", fading.utilisation());
        fading.pass(u64::MAX, false);
        assert_eq!(fading.utilisation(), 0);
    }

    #[test]
    fn it_does_not_matter_how_time_is_cut() {
        let mut cut = Pelt::default();
        (0..20_000).for_each(|_| cut.pass(1000, true));
        assert_eq!(cut, ran(20));
    }
}
