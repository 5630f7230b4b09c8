//! Do a software governor's tunables hold the clock back?
//!
//! Case K4: conservative with its defaults (up 80, down 20, steps of 5 %) lost requests that the tuned one (98/95)
//! kept. `powersave_bias` above 0 makes ondemand ask for less than is needed, `freq_step` 0 freezes conservative
//! (docs/governors.md). Only tunables of a governor that is in charge count.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where, on_cpus};
use crate::cpuset::CpuSet;
use crate::evidence::Evidence;
use wakewatt_words::{say, word};

const ROOT: &str = "/sys/devices/system/cpu/cpufreq";

pub(super) struct GovernorTunables;

/// A value of a tunable.
struct Value {
    /// `ondemand/powersave_bias`.
    name: String,
    value: u64,
    /// The CPUs that it governs.
    cpus: CpuSet,
    is_global: bool,
}

impl Value {
    /// Does it slow its governor beyond the governor's nature?
    fn is_bad(&self) -> bool {
        match self.name.as_str() {
            "ondemand/powersave_bias" => self.value > 0,
            "conservative/freq_step" => self.value < 10,
            "ondemand/sampling_rate" | "conservative/sampling_rate" => self.value >= 50_000,
            _ => false,
        }
    }
}

impl Rule for GovernorTunables {
    fn id(&self) -> &'static str {
        "rule.governor-tunables"
    }
    fn question(&self) -> &'static str {
        word!("do a software governor's tunables hold the clock back?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::Clock]
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
        let governors = freq.governors();
        // A tunable is global, or each policy has its own.
        let values: Vec<Value> = freq
            .tunables
            .iter()
            .filter(|t| in_charge(&t.governor))
            .flat_map(|t| {
                let under = governors.cpus_where(|g| *g == t.governor);
                let name = format!("{}/{}", t.governor, t.name);
                let value = |value, cpus, is_global| Value { name: name.clone(), value, cpus, is_global };
                match t.global.get() {
                    Some(global) => vec![value(*global, under, true)],
                    None => {
                        let own = freq.policies.by_cpu(&t.per_policy);
                        own.known().map(|(cpus, own)| value(*own, cpus.and(&under), false)).collect()
                    }
                }
            })
            .filter(|value| !value.cpus.is_empty())
            .collect();
        if values.is_empty() {
            return Answer::cannot_tell(
                word!("the tunables of the governor in charge are not readable"),
                "wakewatt inspect freq",
            );
        }
        let bad: Vec<&Value> = values.iter().filter(|value| value.is_bad()).collect();
        if bad.is_empty() {
            return Answer::no(word!("no tunable of the governor in charge slows it beyond its nature"));
        }
        let words: Vec<String> = bad
            .iter()
            .map(|v| say!("{} {} on {cpus}", v.name, v.value, cpus = evidence.facts.cpus.extent(&v.cpus)))
            .collect();
        let is_uneven = bad.iter().any(|v| values.iter().any(|other| other.name == v.name && other.value != v.value));
        let cost = Cost::unknown(word!("the clock rises late or not to where it is needed; not measured"));
        let mut finding = Finding::new(
            self,
            if is_uneven { Weight::Problem } else { Weight::Risk },
            Confidence::Medium,
            say!("Tunables hold the clock back: {}", words.join(", ")),
            cost,
        );
        for value in &values {
            finding = finding.on(format!("{ROOT}/{}", value.name), value.value);
        }
        for value in bad {
            let Some((governor, tunable)) = value.name.split_once('/') else { continue };
            let to = match tunable {
                "powersave_bias" => "0",
                "freq_step" => "20",
                _ => "20000",
            };
            let (knob, path) = (format!("freq.tunable.{governor}.{tunable}"), format!("{ROOT}/{}", value.name));
            let on = if value.is_global { None } else { on_cpus(&evidence.facts, &value.cpus) };
            finding = finding.step(&knob, on, to, path, word!("let the clock rise sooner"));
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
    use super::super::testing::{ask, plan, policy};
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
            "yes risk unknown: tunables hold the clock back: ondemand/powersave_bias 100 on all 2 cpus"
        );
        assert!(check("ondemand", 0).starts_with("no"));
        assert!(check("performance", 100).starts_with("no"));
        assert!(check("conservative", 100).starts_with("cannot tell"));
        assert!(ask(&GovernorTunables, "").starts_with("cannot tell"));
    }

    #[test]
    fn a_value_on_some_policies_is_a_problem() {
        let root = "//- /sys/devices/system/cpu";
        let one = |n: u32, bias: u32| {
            let at = format!("{root}/cpufreq/policy{n}");
            format!("{at}/affected_cpus\n{n}\n{at}/scaling_governor\nondemand\n{at}/ondemand/powersave_bias\n{bias}\n")
        };
        let host = format!("{root}/present\n0-1\n{root}/online\n0-1\n") + &one(0, 0) + &one(1, 100);
        assert_eq!(
            ask(&GovernorTunables, &host),
            "yes problem unknown: tunables hold the clock back: ondemand/powersave_bias 100 on cpu 1 only"
        );
        assert_eq!(plan(&GovernorTunables, &host), "--set freq.tunable.ondemand.powersave_bias@cpus:1=0");
    }
}
