//! The interval around a meter's mean watts: what may be said about it, and why sometimes nothing.
//!
//! Each channel has its own (`series.rs`: batches of neighbouring readings, so that their correlation does not make it too
//! small). Channels that are added vary together, because the same load moves them: their half widths are added, which is
//! never too narrow (for independent ones the root of the squares would do). A meter that said the same number each time has
//! no width to give: its steps are coarser than what it measured, and an interval of zero would be a lie. With fewer than
//! two readings to a batch, batches are single readings, and those are correlated: too few.

use super::ChannelSample;
use serde::{Deserialize, Serialize};
use wakewatt_words::{say, word};

/// Readings below which there is no interval: two to each of four batches.
const MIN_READINGS: u64 = 8;

/// Why watts have no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NoInterval {
    /// Of a channel there were too few readings.
    FewReadings {
        /// How many readings there were.
        n: u64,
    },
    /// A channel said one number all the time: its steps are coarser than what it measured.
    Coarse,
}

impl NoInterval {
    /// In words.
    pub fn words(self) -> String {
        match self {
            NoInterval::FewReadings { n } => say!("too few readings ({n}; {MIN_READINGS} are needed)"),
            NoInterval::Coarse => {
                word!("the meter said one number all the time: its steps are coarser than the variation").into()
            }
        }
    }
}

/// Half width of the sum of channels, in microwatts.
pub(super) fn of(channels: &[&ChannelSample]) -> Result<u64, NoInterval> {
    let mut sum_uw: u64 = 0;
    for channel in channels {
        match channel.uncertainty_uw {
            Some(uw) if channel.n >= MIN_READINGS => {
                if channel.n > 1 && (uw == 0 || channel.min_uw == channel.max_uw) {
                    return Err(NoInterval::Coarse);
                }
                sum_uw = sum_uw.saturating_add(uw);
            }
            _ => return Err(NoInterval::FewReadings { n: channel.n }),
        }
    }
    if channels.is_empty() { Err(NoInterval::FewReadings { n: 0 }) } else { Ok(sum_uw) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::energy::series::Series;
    use crate::samples::energy::{Channel, Covers, Kind};

    fn read(watts: impl Iterator<Item = i64>) -> ChannelSample {
        let channel =
            Channel { id: "x".into(), name: "x".into(), covers: Covers::Wall, is_part: false, kind: Kind::Power };
        let mut series = Series::new(channel, 1_000_000_000);
        let mut end_at_ns = 0;
        for (second, watts) in watts.enumerate() {
            end_at_ns = second as u64 * 1_000_000_000;
            series.push(end_at_ns, Ok(watts * 1_000_000));
        }
        series.summary(end_at_ns)
    }

    #[test]
    fn few_readings_and_coarse_steps_have_none_and_channels_add_up() {
        assert_eq!(of(&[&read([100, 101, 99, 100, 102].into_iter())]), Err(NoInterval::FewReadings { n: 5 }));
        assert_eq!(of(&[&read((0..60).map(|_| 100))]), Err(NoInterval::Coarse));
        assert_eq!(of(&[]), Err(NoInterval::FewReadings { n: 0 }));
        let one = read((0..60).map(|s| 100 + s % 7));
        let alone = of(&[&one]).unwrap();
        assert!(alone > 0 && alone < 3_000_000, "{alone}");
        assert_eq!(of(&[&one, &one]), Ok(2 * alone));
        assert!(NoInterval::FewReadings { n: 5 }.words().contains("(5; 8 are needed)"));
    }

    /// Readings that wander slowly are no independent readings: the interval holds the true mean 19 times in 20, which
    /// one from single readings would do in fewer than half.
    #[test]
    fn correlated_readings_do_not_make_it_narrow() {
        let (mut held, mut seed) = (0, 7u64);
        let mut dice = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as f64 / f64::from(1u32 << 31) - 0.5
        };
        for _ in 0..200 {
            let mut wander = 0.0;
            let mut walk = || {
                wander = 0.8 * wander + dice();
                wander
            };
            (0..50).for_each(|_| _ = walk());
            #[allow(clippy::cast_possible_truncation)] // Some hundred watts.
            let run = read((0..300).map(|_| 10_000 + (walk() * 100.0) as i64));
            let half = of(&[&run]).unwrap();
            held += usize::from(run.mean_uw.unwrap().abs_diff(10_000 * 1_000_000) <= half);
        }
        assert!(held >= 170, "held {held} of 200");
    }
}
