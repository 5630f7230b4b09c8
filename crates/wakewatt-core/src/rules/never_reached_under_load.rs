//! Does the clock ever reach its limit?
//!
//! A CPU may be allowed a frequency it never gets: power, current, wide vector code or too many busy cores. Facts can
//! acquit only: `stats/time_in_state` with time at the highest step proves that it was asked for at least. To accuse
//! takes a measurement under load, which the evidence does not hold; until then the rule cannot tell.

use super::{Answer, Rule};
use crate::clock_window;
use crate::evidence::Evidence;
use crate::units::show_khz;
use wakewatt_words::{say, word};

pub(super) struct NeverReachedUnderLoad;

impl Rule for NeverReachedUnderLoad {
    fn id(&self) -> &'static str {
        "rule.never-reached-under-load"
    }
    fn question(&self) -> &'static str {
        word!("does the clock stay below its limit under load?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let freq = &evidence.facts.freq;
        let top = clock_window::of(&evidence.facts).iter().filter_map(|window| window.top_khz).max();
        let times = freq.policies.time_in_state.known().flat_map(|(_, times)| times.iter());
        let highest = times.filter(|t| t.time_ns > 0).map(|t| t.khz).max();
        match (highest, top) {
            (Some(seen), Some(top)) if seen >= top => {
                Answer::no(say!("time was spent at {} since the driver loaded", show_khz(seen)))
            }
            _ => Answer::cannot_tell(
                word!("it takes a measurement under load, which is not part of this evidence"),
                word!(
                    "keep one CPU busy (for example: taskset -c 1 timeout 10 sha1sum /dev/zero) and read \
                    cpufreq/policy1/cpuinfo_avg_freq or scaling_cur_freq meanwhile"
                ),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, policy};
    use super::*;

    #[test]
    fn facts_can_only_acquit() {
        let check = |times: &str| {
            ask(
                &NeverReachedUnderLoad,
                &policy(&[
                    ("scaling_driver", "acpi-cpufreq"),
                    ("scaling_max_freq", "2000000"),
                    ("scaling_available_frequencies", "2000000 1000000"),
                    ("stats/time_in_state", times),
                ]),
            )
        };
        assert!(check("2000000 5\n1000000 9").starts_with("no: time was spent at 2GHz"), "{}", check("2000000 5"));
        assert!(check("2000000 0\n1000000 9").starts_with("cannot tell"));
        assert!(ask(&NeverReachedUnderLoad, "").starts_with("cannot tell"));
    }
}
