//! Hardware-chosen clocks (HWP), as a guess: the kernel gives limits and a preference (EPP), and the processor does the rest by rules nobody published.
//!
//! Public is that it decides about every millisecond, that a preference of 0 asks for the highest clock, and that larger ones save at part load. So
//! the guess is the simplest line through that: the highest clock, less a part that grows with the preference and with how much of the time
//! the core was idle. How large that part is at the far end is a parameter of whoever asks (1: an idle core at preference 255 would go to zero, and is
//! held by the lowest clock). Nothing here is held against a processor, and what rests on it should say so.

/// Between two decisions, in nanoseconds.
pub const PERIOD_NS: u64 = 1_000_000;
/// The preference that saves most.
pub const MOST_SAVING: u32 = 255;

/// The clock it would like, in kilohertz, before the limits: `use_ratio` is the share of the time in which the core ran, 0 to 1.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Between 0 and the highest clock.
pub fn wish_khz(highest_khz: u32, preference: u32, strength: f64, use_ratio: f64) -> u32 {
    let preference = f64::from(preference.min(MOST_SAVING)) / f64::from(MOST_SAVING);
    let idle = 1.0 - use_ratio.clamp(0.0, 1.0);
    let part = (strength.clamp(0.0, 1.0) * preference * idle).clamp(0.0, 1.0);
    (f64::from(highest_khz) * (1.0 - part)).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preference_and_idleness_lower_it_together() {
        let said = |epp, used| wish_khz(3_000_000, epp, 1.0, used);
        assert_eq!([said(0, 0.0), said(255, 1.0), said(255, 0.0)], [3_000_000, 3_000_000, 0]);
        assert_eq!([said(128, 0.5), said(192, 0.5)], [2_247_059, 1_870_588]);
        // More use never lowers it, a larger preference never raises it.
        for epp in [0, 64, 128, 255, 9999] {
            let all: Vec<u32> = (0..=10).map(|i| said(epp, f64::from(i) / 10.0)).collect();
            assert!(all.windows(2).all(|w| w[0] <= w[1]), "{all:?}");
            assert!(said(epp.saturating_add(10), 0.3) <= said(epp, 0.3));
        }
        assert_eq!(
            (wish_khz(3_000_000, 128, 0.0, 0.1), wish_khz(3_000_000, 255, 9.0, f64::INFINITY)),
            (3_000_000, 3_000_000)
        );
    }
}
