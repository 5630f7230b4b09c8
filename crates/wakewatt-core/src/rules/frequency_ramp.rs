//! Does a CPU run slowly for some time after it slept?
//!
//! Measured, by quanta of equal work after idle times of 1 ms to 1 s ([`crate::samples::speed`]). Below full speed after
//! a sleep is the clock's ramp: a governor that samples every few milliseconds, an energy preference that lets hardware
//! wait, or a voltage that must rise first. What a short request pays is the ramp times the speed that is missing, and it
//! pays that on top of the idle state's exit. A ramp whose end was not seen within the work is said to be longer.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where, percent};
use crate::evidence::Evidence;
use crate::units::show_ns;
use wakewatt_words::{say, word};

/// A request loses more than this before it matters.
const RISK_NS: f64 = 100_000.0;

pub(super) struct FrequencyRamp;

impl Rule for FrequencyRamp {
    fn id(&self) -> &'static str {
        "rule.frequency-ramp"
    }
    fn question(&self) -> &'static str {
        word!("does a CPU run slowly for some time after it slept?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::Sleep]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let Some(sample) = evidence.samples.speed.first() else {
            return Answer::cannot_tell(
                word!("the speed after idle was not measured"),
                word!("wakewatt doctor, or wakewatt measure frequency"),
            );
        };
        let all = evidence.samples.speed.iter().flat_map(|s| s.after.iter().map(move |a| (s.cpu, a)));
        let worst = all
            .filter(|(_, a)| a.is_ramp())
            .filter_map(|(cpu, a)| Some((cpu, a, a.lost_ns()?)))
            .max_by(|x, y| x.2.total_cmp(&y.2));
        let Some((cpu, after, lost_ns)) = worst else {
            let coarsest = sample.after.iter().map(|a| a.resolution_ns).fold(0.0, f64::max);
            let ratio = sample.after.iter().map(|a| a.resolution_ratio).fold(0.0, f64::max);
            return Answer::no(say!(
                "full speed came at once; not seen would be a ramp shorter than {} or smaller than {}",
                words(coarsest),
                percent(ratio)
            ));
        };
        let ramp = after.ramp.map_or(0.0, |r| r.median_ns);
        let is_bound = after.n_unsteady * 2 > after.n_repeats;
        let slowest = percent(after.slowest_ratio.unwrap_or(1.0));
        let title = say!(
            "After {} of idle, CPU {cpu} takes {}{} to full speed, from {slowest} of it",
            show_ns(after.idle_ns),
            if is_bound { word!("more than ") } else { "" },
            words(ramp)
        );
        let weight = if lost_ns >= RISK_NS { Weight::Risk } else { Weight::Note };
        let text = say!("work of that length ends up to {} later than on a CPU at full speed", words(lost_ns));
        Finding::new(self, weight, Confidence::Medium, title, Cost::measured_ns(lost_ns, text))
            .on(
                say!("speed after idle, CPU {cpu}"),
                say!("{} of {} repetitions; {} of {} quanta dropped", after.n_ramped, after.n_repeats, after.n_discarded, after.n_quanta),
            )
            .remedy(
                word!("Raise the lowest frequency (tune: freq.min), prefer performance (freq.governor, freq.epp), or keep the CPU \
                    out of the deep idle states that let its voltage fall."),
                word!("Idle and lightly loaded CPUs draw more watts."),
                word!("wakewatt measure frequency before and after"),
            )
            .yes()
    }
}

fn words(ns: f64) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // not negative, far below 2^64
    let ns = ns.max(0.0).round() as u64;
    show_ns(ns)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, line};
    use super::*;
    use crate::samples::Samples;
    use crate::samples::speed::testing::ramped;

    fn host(n_ramped: u32, ramp_ns: f64, slowest: f64) -> Evidence {
        Evidence::of(Samples { speed: vec![ramped(n_ramped, ramp_ns, slowest)], ..Samples::default() })
    }

    #[test]
    fn a_long_ramp_is_a_risk_and_none_is_said_with_its_resolution() {
        assert_eq!(
            line(&FrequencyRamp, &host(9, 8e6, 0.4)),
            "yes risk measured: after 100ms of idle, cpu 3 takes 8ms to full speed, from 40 % of it"
        );
        assert!(line(&FrequencyRamp, &host(9, 2e5, 0.9)).starts_with("yes note measured"));
        assert!(line(&FrequencyRamp, &host(2, 8e6, 0.4)).starts_with("no: full speed came at once; not seen would be"));
        assert!(ask(&FrequencyRamp, "").starts_with("cannot tell"));
    }
}
