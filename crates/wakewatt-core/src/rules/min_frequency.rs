//! Was the lower frequency limit raised?
//!
//! `scaling_min_freq`, `min_perf_pct` or the request register above `cpuinfo_min_freq`, the highest of them in force
//! ([`crate::clock_window`]): somebody keeps the clock up. It buys faster starts after a pause and
//! costs watts at partial load; equal limits pin the clock. A note, to be read beside the governor; raised on some CPUs of a
//! kind and not on the others it is a problem, since the same work then starts at different speeds.

use super::exclusions::Assertion;
use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where, on_cpus};
use crate::clock_window::{self, By, Window};
use crate::cpuset::CpuSet;
use crate::evidence::Evidence;
use crate::units::show_khz;
use wakewatt_words::{say, word};

fn path_of(by: By) -> &'static str {
    match by {
        By::PerfPct(_) => "/sys/devices/system/cpu/intel_pstate/min_perf_pct",
        By::HwpRequest => "MSR 0x774 bits 7:0",
        By::Policy | By::TurboOff | By::Firmware | By::Userspace => {
            "/sys/devices/system/cpu/cpufreq/policy*/scaling_min_freq"
        }
    }
}

pub(super) struct MinFrequency;

impl Rule for MinFrequency {
    fn id(&self) -> &'static str {
        "rule.min-frequency"
    }
    fn question(&self) -> &'static str {
        word!("was the lower frequency limit raised?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::Clock]
    }
    fn takes_for_granted(&self, evidence: &Evidence) -> Vec<Assertion> {
        let windows = clock_window::of(&evidence.facts);
        let raised = windows.iter().filter_map(|window| Some((window.cpus.clone(), window.raised()?.khz)));
        raised.map(|(cpus, khz)| Assertion::ClockAtLeast(cpus, khz)).collect()
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let policies = &evidence.facts.freq.policies;
        let windows = clock_window::of(&evidence.facts);
        if windows.iter().all(|window| window.bottom_khz.is_none() || window.lower.is_empty()) {
            return match policies.min_khz.gaps().chain(policies.hardware_min_khz.gaps()).next() {
                Some((_, gap)) => Answer::gap(gap),
                None => Answer::cannot_tell(word!("no frequency policy is listed"), word!("wakewatt inspect freq")),
            };
        }
        // Where a governor keeps the clock at its lower limit, that is the clock and no floor.
        let held: CpuSet = policies
            .min_khz
            .0
            .iter()
            .flat_map(|group| group.cpus.iter())
            .filter(|policy| policies.is_held_low(*policy))
            .filter_map(|policy| policies.cpus_of(policy))
            .fold(CpuSet::new(), |all, cpus| all.union(cpus));
        let (kept, raised): (Vec<&Window>, Vec<&Window>) = windows
            .iter()
            .filter(|window| window.raised().is_some())
            .partition(|window| window.cpus.minus(&held).is_empty());
        if raised.is_empty() && !kept.is_empty() {
            return Answer::no(word!("governor powersave keeps the clock at the lower limit; see rule.governor"));
        }
        let highest = raised.iter().filter_map(|window| Some((window.raised()?, window.bottom_khz?, window.max())));
        let Some((bound, hardware, max)) = highest.max_by_key(|(bound, ..)| bound.khz) else {
            return Answer::no(word!("every policy may go down to the lowest frequency of its hardware"));
        };
        let cpus = raised.iter().fold(CpuSet::new(), |all, window| all.union(&window.cpus));
        let lowest = |window: &Window| window.raised().map(|bound| bound.khz);
        let is_kind = |a: &Window, b: &Window| (a.top_khz, a.bottom_khz) == (b.top_khz, b.bottom_khz);
        let is_uneven = raised.iter().any(|a| windows.iter().any(|b| is_kind(a, b) && lowest(a) != lowest(b)));
        let weight = if is_uneven { Weight::Problem } else { Weight::Note };
        let on = evidence.facts.cpus.extent(&cpus);
        let is_pinned = max.is_some_and(|max| max.khz <= bound.khz);
        let pinned = if is_pinned { word!(", which pins the clock") } else { "" };
        let mut clocks: Vec<u64> = raised.iter().filter_map(|window| Some(window.raised()?.khz)).collect();
        clocks.sort_unstable();
        clocks.dedup();
        let raised_to = match clocks[..] {
            [lowest, .., highest] => say!("{} to {}", show_khz(lowest), show_khz(highest)),
            _ => bound.to_string(),
        };
        let title =
            say!("The lower limit of the clock is raised to {raised_to}, from {}, on {on}{pinned}", show_khz(hardware));
        let mut finding = Finding::new(
            self,
            weight,
            Confidence::High,
            title,
            Cost::unknown(word!("watts at partial load; faster starts after a pause; not measured")),
        )
        .on(path_of(bound.by), say!("{bound} on {on}"))
        .on("/sys/devices/system/cpu/cpufreq/policy*/cpuinfo_min_freq", show_khz(hardware));
        // Under performance the lower limit decides nothing, and some drivers raise it themselves.
        let pushed = policies.by_cpu(&policies.governor).cpus_where(|governor| governor == "performance");
        let is_own = |window: &&&Window| {
            let bottom = window.bottom_khz.unwrap_or(0);
            window.lower.iter().any(|bound| bound.by == By::Policy && bound.khz > bottom + bottom / 20)
        };
        let own = raised.iter().filter(is_own).fold(CpuSet::new(), |all, window| all.union(&window.cpus));
        let own = own.minus(&pushed);
        if !own.is_empty() {
            let path = "/sys/devices/system/cpu/cpufreq/policy*/scaling_min_freq";
            finding = finding.step(
                "freq.min",
                on_cpus(&evidence.facts, &own),
                "min",
                path,
                word!("let the clock fall again"),
            );
        }
        if matches!(bound.by, By::PerfPct(_)) && !cpus.minus(&pushed).is_empty() {
            // A percentage of the highest turbo clock, also while turbo is off.
            let top = policies.hardware_max_khz.known().map(|(_, khz)| *khz).max().unwrap_or(hardware).max(1);
            let lowest = (hardware * 100).div_ceil(top);
            let why = word!("let the clock fall again");
            finding = finding.step("freq.perf.min", None, lowest.to_string(), path_of(bound.by), why);
        }
        finding
            .remedy(
                word!("Leave it where latency matters; else lower it again."),
                word!("Lowered: short requests after a pause may start slower."),
                word!("wakewatt inspect freq"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, plan, policy};
    use super::*;

    #[test]
    fn raised() {
        let check = |min: &str| {
            ask(
                &MinFrequency,
                &policy(&[("scaling_min_freq", min), ("cpuinfo_min_freq", "800000"), ("scaling_max_freq", "2000000")]),
            )
        };
        assert!(
            check("2000000")
                .ends_with("to 2ghz (the policy's limit), from 800mhz, on all 2 cpus, which pins the clock")
        );
        let pct = [("scaling_driver", "intel_pstate"), ("scaling_min_freq", "800000"), ("scaling_max_freq", "4000000")];
        let hardware = [("cpuinfo_min_freq", "800000"), ("cpuinfo_max_freq", "4000000")];
        let full =
            policy(&[&pct[..], &hardware].concat()) + "//- /sys/devices/system/cpu/intel_pstate/min_perf_pct\n100\n";
        let said = ask(&MinFrequency, &full);
        assert!(
            said.ends_with("raised to 4ghz (100 % in intel_pstate), from 800mhz, on all 2 cpus, which pins the clock"),
            "{said}"
        );
        assert_eq!(plan(&MinFrequency, &full), "--set freq.perf.min=20");
        assert!(check("800000").starts_with("no"));
        assert!(ask(&MinFrequency, "").starts_with("cannot tell"));
    }
}
