//! An energy counter from one reading to the next: wrapped, reset, or moved.
//!
//! powercap counters start again at zero past `max_energy_range_uj` (Documentation/power/powercap/powercap.rst): after 218 s
//! to 15 min on a loaded server. A counter that is smaller than before has wrapped if it was inside its range, else it
//! was reset. More than one wrap between two readings cannot be seen, so readings must be closer than half a range at
//! the highest power that is plausible: [`longest_interval_ns`].

use super::MOST_UW;

/// How far a counter went; none if it ran backwards without wrapping.
pub fn step(range_uj: Option<u64>, then_uj: u64, now_uj: u64) -> Option<u64> {
    match (now_uj.checked_sub(then_uj), range_uj) {
        (Some(moved), _) => Some(moved),
        (None, Some(range)) if then_uj <= range => Some(range - then_uj + now_uj),
        _ => None,
    }
}

/// Readings farther apart could miss a whole turn: half the range at 1 kW per zone, which no package takes for that long.
pub fn longest_interval_ns(range_uj: u64) -> u64 {
    const PLAUSIBLE_UW: u64 = MOST_UW / 20;
    (u128::from(range_uj) * 500_000_000 / u128::from(PLAUSIBLE_UW)).try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_inside_its_range_and_only_there() {
        assert_eq!(step(Some(1000), 990, 40), Some(50));
        assert_eq!(step(Some(1000), 5, 7), Some(2));
        assert_eq!(step(Some(1000), 2000, 5), None, "beyond its own range: a reset");
        assert_eq!(step(None, 7, 5), None);
        assert_eq!(step(Some(u64::MAX), u64::MAX, 0), Some(0));
    }

    #[test]
    fn a_range_limits_the_interval() {
        assert_eq!(longest_interval_ns(65_532_610_987), 32_766_305_493, "65 kJ: half of it at 1 kW");
        assert_eq!(longest_interval_ns(u64::MAX), 9_223_372_036_854_775_807);
    }
}
