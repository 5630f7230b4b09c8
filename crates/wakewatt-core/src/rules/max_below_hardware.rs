//! Is the upper limit of the clock below what the hardware can do?
//!
//! Several settings bound the clock and the tightest wins ([`crate::clock_window`]): `scaling_max_freq` of the policy,
//! `max_perf_pct` of intel_pstate, the request register of the hardware's own management. Exceptions: with turbo off the
//! limit is the base frequency and rule.turbo-off speaks, where the firmware clamps it is rule.bios-limit; under
//! acpi-cpufreq `cpuinfo_max_freq` may include boost that no step names, so the highest step of the table is what counts
//! there (an EPYC Genoa: 3.25 of 3.8 GHz, and it boosts all the same). The same limit on all CPUs may be meant; limits that
//! differ are hardly ever.

use super::exclusions::Assertion;
use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where, khz_word, on_cpus, percent};
use crate::clock_window::{self, Bound, By, Window};
use crate::cpuset::CpuSet;
use crate::evidence::Evidence;
use crate::units::show_khz;
use wakewatt_words::{say, word};

const PATH: &str = "/sys/devices/system/cpu/cpufreq/policy*/scaling_max_freq";
const PERF_PCT: &str = "/sys/devices/system/cpu/intel_pstate/max_perf_pct";

/// Shares of the clock, in thousandths, that differ by no more are the same: a percentage is rounded to steps of 100 MHz.
const SAME_SHARE: u64 = 40;

/// The window's limit, where it is too low and no other rule speaks of it.
fn lowered(window: &Window) -> Option<Bound> {
    window.lowered().filter(|bound| !matches!(bound.by, By::Firmware | By::TurboOff))
}

/// The CPUs whose policy's own limit is too low, by the frequency they should reach.
fn own_limits(windows: &[Window]) -> Vec<(u64, CpuSet)> {
    let mut all: Vec<(u64, CpuSet)> = Vec::new();
    for window in windows.iter().filter(|window| lowered(window).is_some()) {
        let Some(khz) = window.top_khz else { continue };
        let is_low = |bound: &&Bound| bound.by == By::Policy && bound.khz < khz - khz / 100;
        if !window.upper.iter().any(|bound| is_low(&bound)) {
            continue;
        }
        match all.iter_mut().find(|(known, _)| *known == khz) {
            Some((_, set)) => *set = set.union(&window.cpus),
            None => all.push((khz, window.cpus.clone())),
        }
    }
    all
}

fn path_of(by: By) -> &'static str {
    match by {
        By::PerfPct(_) => PERF_PCT,
        By::HwpRequest => "MSR 0x774 bits 15:8",
        By::Policy | By::TurboOff | By::Firmware | By::Userspace => PATH,
    }
}

pub(super) struct MaxBelowHardware;

impl Rule for MaxBelowHardware {
    fn id(&self) -> &'static str {
        "rule.max-below-hardware"
    }
    fn question(&self) -> &'static str {
        word!("is the upper frequency limit below what the hardware can do?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::Clock]
    }
    fn takes_for_granted(&self, evidence: &Evidence) -> Vec<Assertion> {
        let windows = clock_window::of(&evidence.facts);
        let limited = windows.iter().filter_map(|window| Some((window.cpus.clone(), lowered(window)?.khz)));
        limited.map(|(cpus, khz)| Assertion::ClockAtMost(cpus, khz)).collect()
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let (freq, cpus) = (&evidence.facts.freq, &evidence.facts.cpus);
        let windows = clock_window::of(&evidence.facts);
        if windows.iter().all(|window| window.top_khz.is_none()) {
            return match freq.policies.max_khz.gaps().chain(freq.policies.hardware_max_khz.gaps()).next() {
                Some((_, gap)) => Answer::gap(gap),
                None => Answer::cannot_tell(
                    word!("what the hardware can reach is not known"),
                    word!("wakewatt inspect freq"),
                ),
            };
        }
        let mut limited: Vec<(Bound, u64, CpuSet)> = Vec::new();
        for window in &windows {
            let Some((bound, top)) = lowered(window).zip(window.top_khz) else { continue };
            match limited.iter_mut().find(|(known, of, _)| (*known, *of) == (bound, top)) {
                Some((_, _, set)) => *set = set.union(&window.cpus),
                None => limited.push((bound, top, window.cpus.clone())),
            }
        }
        let Some((_, worst, top)) = limited.iter().map(|(b, top, _)| (b.khz * 1000 / top.max(&1), b.khz, *top)).min()
        else {
            return Answer::no(word!("no setting limits the clock below what the hardware reaches"));
        };
        let all = limited.iter().fold(CpuSet::new(), |all, (_, _, cpus)| all.union(cpus));
        // The same share of what each kind of core reaches is one limit.
        let shares = || limited.iter().map(|(bound, top, _)| bound.khz * 1000 / top.max(&1));
        let is_uneven = windows.iter().any(|window| !window.cpus.minus(&all).is_empty())
            || shares().max().zip(shares().min()).is_some_and(|(most, least)| most - least > SAME_SHARE);
        let words: Vec<String> = limited
            .iter()
            .map(|(bound, top, on)| say!("{bound} of {} on {}", show_khz(*top), cpus.extent(on)))
            .collect();
        let lost = 1.0 - worst as f64 / top as f64;
        // One setting may come to other clocks on other CPUs.
        let mut kinds: Vec<By> = limited.iter().map(|(bound, ..)| bound.by).collect();
        kinds.dedup();
        let title = match limited.len() {
            1 => say!("The clock is limited to {}", words.join(", ")),
            _ if kinds.len() == 1 && words.len() <= 3 => say!("The clock is limited to {}", words.join("; ")),
            n => say!(
                "{n} limits hold the clock down on {}, the lowest at {} of {}",
                cpus.extent(&all),
                show_khz(worst),
                show_khz(top)
            ),
        };
        let cost = Cost::predicted_ratio(
            lost,
            say!("up to {} of the clock when one core is busy, computed from the limits; not measured", percent(lost)),
        );
        let weight = if is_uneven { Weight::Problem } else { Weight::Risk };
        let mut finding = Finding::new(self, weight, Confidence::Medium, title, cost);
        for ((bound, ..), word) in limited.iter().zip(&words) {
            finding = finding.on(path_of(bound.by), word);
        }
        finding = finding.on(PATH.replace("scaling", "cpuinfo"), show_khz(top));
        let own = own_limits(&windows);
        let is_one_kind = freq.policies.hardware_max_khz.uniform();
        for (khz, cpus) in &own {
            let to = if is_one_kind == Some(khz) { "max".into() } else { khz_word(*khz) };
            let on = on_cpus(&evidence.facts, cpus);
            finding = finding.step("freq.max", on, to, PATH, word!("allow the highest frequency"));
        }
        if let Some(ratio) = freq.intel_pstate.max_perf_ratio.get().filter(|r| **r < 1.0) {
            let why = say!("{} bounds every policy", percent(*ratio));
            finding = finding.step("freq.perf.max", None, "100", PERF_PCT, why);
        }
        let is_by_register = limited.iter().any(|(bound, ..)| bound.by == By::HwpRequest);
        finding
            .remedy(
                match is_by_register {
                    true => word!(
                        "Find what wrote MSR 0x774 (x86_energy_perf_policy, a vendor's tool): the kernel asks for more. \
                         Switching the governor to and fro makes the kernel write its own values again."
                    ),
                    false => word!(
                        "Raise the limit to the hardware's maximum. If it falls again, something sets it: a daemon \
                        (rule.tuning-daemons), heat (rule.throttling) or the firmware (rule.bios-limit)."
                    ),
                },
                word!("More watts under load."),
                word!("wakewatt inspect freq: what is read back may legally differ from what was written"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, edited, line, plan, policy};
    use super::*;

    #[test]
    fn limits() {
        let check = |driver: &str, max: &str, steps: &str| {
            ask(
                &MaxBelowHardware,
                &policy(&[
                    ("scaling_driver", driver),
                    ("scaling_max_freq", max),
                    ("cpuinfo_max_freq", "4000000"),
                    ("scaling_available_frequencies", steps),
                ]),
            )
        };
        assert_eq!(
            check("intel_pstate", "2000000", ""),
            "yes risk predicted: the clock is limited to 2ghz (the policy's limit) of 4ghz on all 2 cpus"
        );
        assert!(check("intel_pstate", "4000000", "").starts_with("no"));
        assert!(check("acpi-cpufreq", "3250000", "3250000 2000000").starts_with("no"), "boost is beyond the table");
        assert!(ask(&MaxBelowHardware, "").starts_with("cannot tell"));
        assert!(ask(&MaxBelowHardware, &policy(&[("scaling_max_freq", "2000000")])).starts_with("cannot tell"));
    }

    #[test]
    fn the_percentage_of_intel_pstate_bounds_every_policy() {
        let limits =
            [("scaling_driver", "intel_pstate"), ("scaling_max_freq", "4000000"), ("cpuinfo_max_freq", "4000000")];
        let host = policy(&limits) + "//- /sys/devices/system/cpu/intel_pstate/max_perf_pct\n50\n";
        assert_eq!(
            ask(&MaxBelowHardware, &host),
            "yes risk predicted: the clock is limited to 2ghz (50 % in intel_pstate) of 4ghz on all 2 cpus"
        );
        assert_eq!(plan(&MaxBelowHardware, &host), "--set freq.perf.max=100", "the policies allow all already");
        let text = include_str!("../../../../fixtures/hosts/icx2s0.host");
        let half = edited(text, |path| path.ends_with("intel_pstate/max_perf_pct").then_some("50"));
        assert!(
            line(&MaxBelowHardware, &half).contains("(50 % in intel_pstate)"),
            "{}",
            line(&MaxBelowHardware, &half)
        );
    }

    #[test]
    fn some_cpus_held_down_are_a_problem() {
        let text = include_str!("../../../../fixtures/hosts/icx2s0.host");
        let some = edited(text, |path| path.ends_with("policy3/scaling_max_freq").then_some("1200000"));
        let said = line(&MaxBelowHardware, &some);
        assert!(said.starts_with("yes problem") && said.contains("on cpu 3 only"), "{said}");
    }
}
