//! Whose watts an experiment has, and how much of what was set before is in them.
//!
//! A meter that averages over A, read from s after an arm was entered for as long as l, has a share of the arm before in its
//! mean: that of t < A, weighted with 1 - t / A (for a plain running mean). The difference of two arms is too small by that share
//! at most, so the far end of its interval is moved out by 1 / (1 - share); the direction stands. Where A is longer than what was
//! counted, or nobody knows it, that two arms draw the same is never claimed: an average of both would look just so.
//! Not here: the error of the meter itself, which is the same in all arms.

use super::energy::Averaging;
use serde::{Deserialize, Serialize};
use wakewatt_words::{say, word};

/// The meter, and for how long it was listened to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WattsBy {
    /// The kind of meter: powercap, ipmi, hwmon.
    pub meter: String,
    /// How its readings come about.
    pub averaging: Averaging,
    /// Discarded after an arm is entered.
    pub settled_ns: u64,
    /// Counted after that: the shortest of the workloads.
    pub counted_ns: u64,
}

impl WattsBy {
    /// Which share of the counted watts is of what was set before, at most; none where nobody knows.
    pub fn blur_ratio(&self) -> Option<f64> {
        let Averaging::Over { ns } = self.averaging else {
            return (self.averaging == Averaging::Counter).then_some(0.0);
        };
        let (over, from, length) = (ns as f64, self.settled_ns as f64, self.counted_ns.max(1) as f64);
        let upto = over.min(from + length);
        let part = |t: f64| t - t * t / (2.0 * over);
        Some(if upto <= from { 0.0 } else { (part(upto) - part(from)) / length })
    }

    /// May it be claimed that two arms draw the same?
    pub fn can_show_equal(&self) -> bool {
        match self.averaging {
            Averaging::Counter => true,
            Averaging::Over { ns } => ns <= self.counted_ns,
            Averaging::Unknown => false,
        }
    }

    /// What a reader must know; none where the meter has no memory.
    pub fn remark(&self) -> Option<String> {
        if self.averaging == Averaging::Counter {
            return None;
        }
        let seconds = |ns: u64| format!("{:.1} s", ns as f64 / 1e9);
        let share = self.blur_ratio().map_or(String::new(), |share| {
            say!(
                "; up to {:.0} % of a block's watts are of the arm before, which the intervals allow for",
                share * 100.0
            )
        });
        let equal = match (self.can_show_equal(), self.averaging) {
            (true, _) => String::new(),
            (false, Averaging::Over { ns }) => {
                say!(
                    "; that arms draw the same is not claimed, which takes blocks of {} (measure) or more",
                    seconds(ns)
                )
            }
            (false, _) => word!("; that arms draw the same is not claimed").into(),
        };
        Some(say!(
            "watts: {} {}, a block counts {} after {}{share}{equal}",
            self.meter,
            self.averaging.words(),
            seconds(self.counted_ns),
            seconds(self.settled_ns)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(averaging: Averaging, settled_s: u64, counted_s: u64) -> WattsBy {
        let ns = |s: u64| s * 1_000_000_000;
        WattsBy { meter: "ipmi".into(), averaging, settled_ns: ns(settled_s), counted_ns: ns(counted_s) }
    }

    fn over(s: u64) -> Averaging {
        Averaging::Over { ns: s * 1_000_000_000 }
    }

    #[test]
    fn the_share_of_what_was_set_before_is_that_of_a_running_mean() {
        let blur = |averaging, settled_s, counted_s| by(averaging, settled_s, counted_s).blur_ratio();
        assert_eq!(blur(Averaging::Counter, 0, 3), Some(0.0));
        assert_eq!(blur(Averaging::Unknown, 0, 3), None);
        assert_eq!(blur(over(10), 10, 3), Some(0.0), "it settled for as long");
        // As long as the block: half of it on average. Ten times as long: nearly all.
        assert!(blur(over(10), 0, 10).is_some_and(|share| (share - 0.5).abs() < 1e-9));
        assert!(blur(over(30), 0, 3).is_some_and(|share| (share - 0.95).abs() < 1e-9));
        assert!(blur(over(2), 0, 10).is_some_and(|share| (share - 0.1).abs() < 1e-9));
        let remark = by(over(60), 0, 3).remark().unwrap();
        assert!(remark.contains("averages over 60.0 s") && remark.contains("blocks of 60.0 s"), "{remark}");
        assert_eq!(by(Averaging::Counter, 0, 3).remark(), None);
    }
}
