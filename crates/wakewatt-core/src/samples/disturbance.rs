//! What may have spoiled a block, or a level, without throwing it away.
//!
//! A step of the wall clock is told of the whole run as well as of its block, so it is known by its type; nothing decides on
//! any other. Not here: why a block does not count (`rejection`).

use super::worded::{between, in_english, worded};
use crate::kept_words;
use std::fmt;
use wakewatt_words::say;

/// What may have spoiled a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// Somebody set the wall clock while the block ran.
    WallClockSet {
        /// By how many tenths of a second, forwards above 0.
        by_tenths_s: i64,
    },
    /// Anything else: what was taken, throttled, or said by the workload.
    Said(String),
}

const WALL_CLOCK: (&str, &str) = ("the wall clock was set by ", " s; nothing here is measured with it");

impl Disturbance {
    /// A step of the wall clock by so many nanoseconds.
    pub fn wall_clock_set(by_ns: i128) -> Disturbance {
        let most = if by_ns < 0 { i64::MIN } else { i64::MAX };
        Disturbance::WallClockSet { by_tenths_s: i64::try_from(by_ns / 100_000_000).unwrap_or(most) }
    }

    /// From a document.
    pub fn read(text: &str) -> Disturbance {
        let tenths = |seconds: &str| seconds.replace('.', "").parse().ok();
        match between(text, WALL_CLOCK.0, WALL_CLOCK.1).and_then(tenths) {
            // Only what writes itself so again was written so.
            Some(by_tenths_s) if in_english(&Disturbance::WallClockSet { by_tenths_s }) == text => {
                Disturbance::WallClockSet { by_tenths_s }
            }
            _ => Disturbance::Said(text.into()),
        }
    }
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Disturbance::WallClockSet { by_tenths_s } => {
                let (sign, by) = (if *by_tenths_s < 0 { '-' } else { '+' }, by_tenths_s.unsigned_abs());
                let by = format!("{sign}{}.{}", by / 10, by % 10);
                f.write_str(&say!("the wall clock was set by {by} s; nothing here is measured with it"))
            }
            Disturbance::Said(what) => f.write_str(&kept_words::shown(what)),
        }
    }
}

impl From<String> for Disturbance {
    fn from(text: String) -> Disturbance {
        Disturbance::Said(text)
    }
}

worded!(Disturbance);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for by_ns in [60_000_000_000, -1_500_000_000, -100_000_000, 0, i128::MAX, i128::MIN] {
            let step = Disturbance::wall_clock_set(by_ns);
            assert_eq!(Disturbance::read(&step.to_string()), step, "{by_ns}");
        }
        let text = Disturbance::wall_clock_set(-1_540_000_000).to_string();
        assert_eq!(text, "the wall clock was set by -1.5 s; nothing here is measured with it");
        for other in ["steal 0.6 %", "the wall clock was set by +6.00.1 s; nothing here is measured with it", ""] {
            assert_eq!(Disturbance::read(other), Disturbance::Said(other.into()));
        }
    }
}
