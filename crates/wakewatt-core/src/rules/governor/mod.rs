//! Does the frequency governor let the clock fall, or hold it down?
//!
//! Cases K0 (the clock dropped from 2.1 GHz to 1.0) and K4. The same word means different things
//! (docs/knobs/frequency.md): under intel_pstate and amd-pstate-epp, `powersave` is the driver's own algorithm and the
//! energy preference decides, see rule.epp; under every other driver it is the lowest frequency for ever. ondemand,
//! conservative and schedutil raise the clock after the load has come: a short request after a pause is served at a low
//! clock. That is the usual default of kernels, so a matter of choice; CPUs that differ and a clock held down are not. Where
//! doctor turned the governor, only what that showed counts ([`experiment`]).

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where, on_cpus, percent};
use crate::choice::frequency_run;
use crate::clock_window::{self, By};
use crate::evidence::Evidence;
use crate::facts::freq::policies::is_autonomous;
use crate::units::show_khz;
use wakewatt_words::{say, word};

mod experiment;

const PATH: &str = "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor";

fn remedy() -> &'static str {
    word!(
        "Set governor performance on all policies. It does not keep the CPUs from sleeping. Ask first whether a daemon sets \
         the governor (rule.tuning-daemons)."
    )
}
fn price_in_watts() -> &'static str {
    word!("Watts at partial load; how many, measure before and after.")
}
fn verify() -> &'static str {
    word!("wakewatt inspect freq, then wakewatt measure wakeup and the work's own latency")
}

pub(super) struct Governor;

impl Rule for Governor {
    fn id(&self) -> &'static str {
        "rule.governor"
    }
    fn question(&self) -> &'static str {
        word!("does the frequency governor let the clock fall, or hold it down?")
    }
    fn is_choice(&self) -> bool {
        true
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::Clock]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let run = frequency_run(evidence);
        if let Some(answer) = run.and_then(|run| experiment::answer(self, evidence, run)) {
            return answer;
        }
        if let Some(one) = clock_window::only_clock(&clock_window::of(&evidence.facts)) {
            return Answer::no(one);
        }
        let policies = &evidence.facts.freq.policies;
        let governors = policies.by_cpu(&policies.governor);
        let drivers = policies.by_cpu(&policies.driver);
        if governors.is_unknown() {
            return match governors.gaps().next() {
                Some((_, gap)) => Answer::gap(gap),
                None => Answer::cannot_tell(
                    word!("no frequency policy is listed"),
                    word!("in a guest the host decides; else see wakewatt inspect freq"),
                ),
            };
        }
        let driver = match (drivers.uniform(), drivers.gaps().next()) {
            (Some(driver), _) => driver.as_str(),
            (None, Some((_, gap))) => return Answer::gap(gap),
            (None, None) => {
                return Answer::cannot_tell(
                    word!("the CPUs have different frequency drivers"),
                    "wakewatt inspect freq",
                );
            }
        };
        let is_calm = |g: &str| g == "performance" || (is_autonomous(driver) && g == "powersave");
        let others: Vec<_> = governors.known().filter(|(_, g)| !is_calm(g)).collect();
        let is_uneven = governors.uniform().is_none();
        if others.is_empty() && !is_uneven {
            let name = governors.uniform().map_or("performance", String::as_str);
            return Answer::no(if name == "powersave" {
                say!("powersave under {driver} is the driver's own algorithm, not the lowest frequency")
            } else {
                word!("the governor is performance").to_string()
            });
        }
        let words: Vec<String> =
            governors.known().map(|(cpus, g)| say!("{g} on {cpus}", cpus = evidence.facts.cpus.extent(cpus))).collect();
        let range = policies.min_khz.uniform().zip(policies.max_khz.uniform());
        let is_pinned_low = others.iter().any(|(_, g)| g.as_str() == "powersave");
        let set: Vec<u64> = clock_window::of(&evidence.facts)
            .iter()
            .filter_map(|window| window.upper.iter().find(|bound| bound.by == By::Userspace).map(|bound| bound.khz))
            .collect();
        let top = policies
            .hardware_max_khz
            .known()
            .map(|(_, khz)| *khz)
            .chain(policies.max_khz.known().map(|(_, khz)| *khz))
            .max();
        let is_userspace = others.iter().any(|(_, g)| g.as_str() == "userspace");
        let (weight, what, cost) = if is_userspace {
            let at = set.iter().min().zip(set.iter().max());
            let what = match at {
                Some((low, high)) if low == high => say!(", which keeps the clock at {}", show_khz(*low)),
                Some((low, high)) => say!(", which keeps the clock at {} to {}", show_khz(*low), show_khz(*high)),
                None => word!(", which keeps the clock where a program has set it").into(),
            };
            let lost = at.zip(top).map(|((low, _), top)| 1.0 - *low as f64 / top.max(1) as f64);
            let cost = match lost {
                Some(lost) if lost > 0.01 => Cost::predicted_ratio(
                    lost,
                    say!("{} of the clock, computed from the limits of the policy; not measured", percent(lost)),
                ),
                _ => Cost::unknown(word!("watts at low load: the clock never falls; not measured")),
            };
            (if lost.is_some_and(|lost| lost > 0.01) { Weight::Problem } else { Weight::Note }, what, cost)
        } else if is_pinned_low {
            let cost = match range.filter(|(min, max)| min < max) {
                Some((min, max)) => {
                    let lost = 1.0 - *min as f64 / *max as f64;
                    let text =
                        say!("{} of the clock, computed from the limits of the policy; not measured", percent(lost));
                    Cost::predicted_ratio(lost, text)
                }
                None => Cost::unknown(word!("the clock above the lower limit of each policy; not measured")),
            };
            (Weight::Problem, word!(", which holds the lowest frequency").into(), cost)
        } else if is_uneven {
            let cost = Cost::unknown(word!("the same work runs at different speeds on different CPUs"));
            (Weight::Problem, word!(", so the CPUs differ").into(), cost)
        } else {
            let cost =
                Cost::unknown(word!("short requests after a pause run at a low clock; how much is not measured"));
            (Weight::Risk, word!(", which raises the clock after the load has come").into(), cost)
        };
        let title = say!("Governor {}{what} (driver {driver})", words.join(", "));
        let mut finding = Finding::new(self, weight, Confidence::Medium, title, cost)
            .on(PATH, words.join(", "))
            .on(PATH.replace("governor", "driver"), driver);
        if let Some(run) = run {
            let nothing = || say!("it ran and gave no effect: {}", run.ended);
            finding = finding.on(word!("experiment"), experiment::undecided(evidence, run).unwrap_or_else(nothing));
        }
        to_performance(finding, evidence).remedy(remedy(), price_in_watts(), verify()).yes()
    }
}

/// The plan: performance wherever it is offered and not in force.
fn to_performance(finding: Finding, evidence: &Evidence) -> Finding {
    let policies = &evidence.facts.freq.policies;
    let offered = policies.by_cpu(&policies.governors_available);
    let takes_it = offered.cpus_where(|all| all.iter().any(|g| g == "performance"));
    let others = policies.by_cpu(&policies.governor).cpus_where(|g| g != "performance").and(&takes_it);
    if others.is_empty() {
        return finding;
    }
    let (on, why) = (on_cpus(&evidence.facts, &others), word!("keep the clock up between requests"));
    finding.step("freq.governor", on, "performance", PATH, why)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, policy};
    use super::*;

    #[test]
    fn words_depend_on_the_driver() {
        let check = |driver: &str, governor: &str| {
            let limits = [("scaling_min_freq", "1000000"), ("scaling_max_freq", "2000000")];
            ask(
                &Governor,
                &policy(&[&[("scaling_driver", driver), ("scaling_governor", governor)][..], &limits[..]].concat()),
            )
        };
        assert!(check("intel_pstate", "powersave").starts_with("no: powersave under intel_pstate"));
        let low = check("acpi-cpufreq", "powersave");
        assert_eq!(
            low,
            "yes problem predicted: governor powersave on all 2 cpus, which holds the lowest frequency (driver \
                acpi-cpufreq)"
        );
        assert!(check("intel_cpufreq", "schedutil").starts_with("yes risk unknown"));
        let userspace = |khz: &str| {
            ask(
                &Governor,
                &policy(&[
                    ("scaling_driver", "acpi-cpufreq"),
                    ("scaling_governor", "userspace"),
                    ("scaling_setspeed", khz),
                    ("scaling_min_freq", "1000000"),
                    ("scaling_max_freq", "2000000"),
                ]),
            )
        };
        assert_eq!(
            userspace("1500000"),
            "yes problem predicted: governor userspace on all 2 cpus, which keeps the clock at 1.5ghz (driver acpi-cpufreq)"
        );
        assert!(userspace("2000000").starts_with("yes note unknown: governor userspace on all 2 cpus"));
        let bare = policy(&[("scaling_driver", "acpi-cpufreq"), ("scaling_governor", "powersave")]);
        assert!(ask(&Governor, &bare).starts_with("yes problem unknown"), "it is static, whatever the limits");
        assert!(check("acpi-cpufreq", "performance").starts_with("no"));
        assert!(ask(&Governor, "").starts_with("cannot tell"));
        assert!(
            ask(&Governor, &policy(&[("scaling_governor", "powersave")])).starts_with("cannot tell"),
            "driver unknown"
        );
    }
}
