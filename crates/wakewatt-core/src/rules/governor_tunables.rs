//! Do a software governor's tunables hold the clock back?
//!
//! Case K4: conservative with its defaults (up 80, down 20, steps of 5 %) lost requests that the tuned one (98/95)
//! kept. `powersave_bias` above 0 makes ondemand ask for less than is needed, `freq_step` 0 freezes conservative
//! (docs/governors.md). Only tunables of a governor that is in charge count.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight};
use crate::evidence::Evidence;
use wakewatt_words::{say, word};

const ROOT: &str = "/sys/devices/system/cpu/cpufreq";

pub(super) struct GovernorTunables;

impl Rule for GovernorTunables {
    fn id(&self) -> &'static str {
        "rule.governor-tunables"
    }
    fn question(&self) -> &'static str {
        word!("do a software governor's tunables hold the clock back?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let freq = &evidence.facts.freq;
        let governor = &freq.policies.governor;
        if governor.is_unknown() {
            return match governor.gaps().next() {
                Some((_, gap)) => Answer::gap(gap),
                None => Answer::cannot_tell(word!("no frequency policy is listed"), "wakewatt inspect freq"),
            };
        }
        let in_charge = |name: &str| !governor.cpus_where(|g| g == name).is_empty();
        if !in_charge("ondemand") && !in_charge("conservative") {
            return Answer::no(word!("neither ondemand nor conservative is in charge"));
        }
        let values: Vec<(String, u64)> = freq
            .tunables
            .iter()
            .filter(|t| in_charge(&t.governor))
            .filter_map(|t| {
                let value = t.global.get().copied().or_else(|| t.per_policy.known().map(|(_, v)| *v).max())?;
                Some((format!("{}/{}", t.governor, t.name), value))
            })
            .collect();
        if values.is_empty() {
            return Answer::cannot_tell(
                word!("the tunables of the governor in charge are not readable"),
                "wakewatt inspect freq",
            );
        }
        let is_bad = |(name, value): &&(String, u64)| match name.as_str() {
            "ondemand/powersave_bias" => *value > 0,
            "conservative/freq_step" => *value < 10,
            "ondemand/sampling_rate" | "conservative/sampling_rate" => *value >= 50_000,
            _ => false,
        };
        let bad: Vec<String> = values.iter().filter(is_bad).map(|(name, value)| format!("{name} {value}")).collect();
        if bad.is_empty() {
            return Answer::no(word!("no tunable of the governor in charge slows it beyond its nature"));
        }
        let cost = Cost::unknown(word!("the clock rises late or not to where it is needed; not measured"));
        let mut finding = Finding::new(
            self,
            Weight::Risk,
            Confidence::Medium,
            say!("Tunables hold the clock back: {}", bad.join(", ")),
            cost,
        );
        for (name, value) in &values {
            finding = finding.on(format!("{ROOT}/{name}"), value);
        }
        for (name, _) in values.iter().filter(is_bad) {
            let Some((governor, tunable)) = name.split_once('/') else { continue };
            let to = match tunable {
                "powersave_bias" => "0",
                "freq_step" => "20",
                _ => "20000",
            };
            let (knob, path) = (format!("freq.tunable.{governor}.{tunable}"), format!("{ROOT}/{name}"));
            finding = finding.step(&knob, None, to, path, word!("let the clock rise sooner"));
        }
        finding
            .remedy(
                word!(
                    "powersave_bias 0; a larger freq_step; a sampling_rate of 10000 to 20000. Or governor performance, \
                    which has no tunables. Tunables are lost when the governor changes."
                ),
                word!("Watts at partial load."),
                word!("wakewatt inspect freq, then the work's own latency before and after"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, policy};
    use super::*;

    #[test]
    fn only_of_the_governor_in_charge() {
        let check = |governor: &str, bias: u64| {
            ask(
                &GovernorTunables,
                &(policy(&[("scaling_governor", governor)])
                    + &format!("//- /sys/devices/system/cpu/cpufreq/ondemand/powersave_bias\n{bias}\n")),
            )
        };
        assert_eq!(
            check("ondemand", 100),
            "yes risk unknown: tunables hold the clock back: ondemand/powersave_bias 100"
        );
        assert!(check("ondemand", 0).starts_with("no"));
        assert!(check("performance", 100).starts_with("no"));
        assert!(check("conservative", 100).starts_with("cannot tell"));
        assert!(ask(&GovernorTunables, "").starts_with("cannot tell"));
    }
}
