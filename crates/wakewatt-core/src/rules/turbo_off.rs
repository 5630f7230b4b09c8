//! Is turbo switched off?
//!
//! `intel_pstate/no_turbo`, `cpufreq/boost` or `policyN/boost`. Cost predicted from the processor's ratios by busy cores
//! ([`crate::turbo`]), else from CPPC (nominal against highest level) or from base against maximum frequency, which few
//! cores reach; with all cores busy turbo then gives less. Off in the BIOS, the switch stays off
//! whatever is written (docs/knobs/frequency.md).

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where, joined, on_cpus, percent};
use crate::clock_window::{self, Bound, By, Window};
use crate::cpuset::CpuSet;
use crate::evidence::Evidence;
use crate::fact::Fact;
use crate::facts::Snapshot;
use crate::facts::freq::Freq;
use crate::turbo::{self, Turbo};
use wakewatt_words::{say, word};

pub(super) struct TurboOff;

impl Rule for TurboOff {
    fn id(&self) -> &'static str {
        "rule.turbo-off"
    }
    fn question(&self) -> &'static str {
        word!("is turbo switched off?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::BareMetal]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let freq = &evidence.facts.freq;
        let off_in = freq.policies.is_boost_on.cpus_where(|on| !on);
        let cpus = off_in.iter().filter_map(|p| freq.policies.cpus_of(p)).fold(CpuSet::new(), |all, c| all.union(c));
        let (path, says) = match freq.is_turbo_allowed() {
            Some(false) if freq.intel_pstate.is_no_turbo.get() == Some(&true) => {
                ("/sys/devices/system/cpu/intel_pstate/no_turbo", "1".to_string())
            }
            Some(false) => ("/sys/devices/system/cpu/cpufreq/boost", "0".to_string()),
            _ if !off_in.is_empty() => {
                ("/sys/devices/system/cpu/cpufreq/policy*/boost", say!("0 on {}", evidence.facts.cpus.extent(&cpus)))
            }
            Some(true) => return Answer::no(word!("turbo is allowed")),
            None if !freq.policies.is_boost_on.is_unknown() => return Answer::no(word!("boost is on in every policy")),
            None => {
                let intels = freq.intel_pstate.is_no_turbo.gap();
                let intels = intels.filter(|_| Where::Intel.holds(&evidence.facts) != Some(false));
                let gap = intels.or(freq.is_boost_on.gap());
                return gap.map_or_else(|| Answer::no(word!("no switch")), Answer::gap);
            }
        };
        let cppc = freq.cppc.nominal_perf.uniform().zip(freq.cppc.highest_perf.known().map(|(_, v)| v).max());
        let lost = lost_by_policy(freq);
        let range = lost.iter().copied().reduce(f64::min).zip(lost.iter().copied().reduce(f64::max));
        let cost = match (
            turbo::of_facts(&evidence.facts).filter(|_| range.is_none_or(|(low, high)| high - low < 0.01)),
            range,
        ) {
            (None, Some((low, high))) => Cost::predicted_ratio(
                high,
                match percent(low) == percent(high) {
                    true => say!(
                        "up to {} of the clock when few cores are busy, computed from the claimed levels; not measured",
                        percent(high)
                    ),
                    false => say!(
                        "up to {} to {} of the clock, by the CPU, when few cores are busy, computed from the claimed levels; not measured",
                        percent(low),
                        percent(high)
                    ),
                },
            ),
            (turbo, _) => by_ratios(turbo, cppc),
        };
        let is_by_policy = path.contains("policy");
        let on = if is_by_policy { on_cpus(&evidence.facts, &cpus) } else { None };
        let is_uneven = is_by_policy && freq.policies.is_boost_on.uniform().is_none();
        let title = match is_by_policy {
            true => say!("Turbo is switched off on {}", evidence.facts.cpus.extent(&cpus)),
            false => word!("Turbo is switched off: no CPU runs above its base frequency").into(),
        };
        let weight = if is_uneven { Weight::Problem } else { Weight::Risk };
        let mut finding = Finding::new(self, weight, Confidence::High, title, cost).on(path, says).step(
            "freq.boost",
            on,
            "on",
            path,
            word!("allow turbo"),
        );
        let what = word!("Switch it on unless a steady clock is wanted. If it reads back as off, the BIOS has it off.");
        let what = match other_limit(&evidence.facts) {
            None => what.to_string(),
            Some(bound) => {
                if let By::PerfPct(ratio) = bound.by {
                    let why = say!("{} bounds every policy", percent(ratio));
                    finding = finding.step("freq.perf.max", None, "100", PERF_PCT, why);
                }
                joined(what, &say!("Alone it changes nothing: {bound} keeps the clock below turbo as well."))
            }
        };
        finding
            .remedy(
                what,
                word!("More watts and heat under load; a clock that depends on the neighbours."),
                word!("wakewatt inspect freq"),
            )
            .yes()
    }
}

const PERF_PCT: &str = "/sys/devices/system/cpu/intel_pstate/max_perf_pct";

/// Another limit that keeps every CPU below turbo.
fn other_limit(facts: &Snapshot) -> Option<Bound> {
    let other = |window: &Window| {
        let base = window.upper.iter().find(|bound| bound.by == By::TurboOff)?.khz;
        // While turbo is off the kernel caps policies and the request register at the base frequency, and of some the
        // highest frequency, of which the percentage is, too.
        let is_below = |bound: &&Bound| match bound.by {
            By::TurboOff => false,
            By::PerfPct(ratio) => ratio < 1.0 && bound.khz <= base,
            By::Policy | By::HwpRequest => bound.khz < base,
            By::Firmware | By::Userspace => bound.khz <= base,
        };
        window.upper.iter().find(is_below).copied()
    };
    let all: Option<Vec<Bound>> = clock_window::of(facts).iter().map(other).collect();
    all?.first().copied()
}

/// The share of the clock that each policy loses without turbo, by the base frequency that the kernel shows for it.
fn lost_by_policy(freq: &Freq) -> Vec<f64> {
    let policies = &freq.policies;
    let of = |policy: u32| {
        let base = policies.base_khz.of(policy).and_then(Fact::get)?;
        let top = policies.hardware_max_khz.of(policy).and_then(Fact::get).filter(|top| *top > base)?;
        Some(1.0 - *base as f64 / *top as f64)
    };
    policies.max_khz.0.iter().flat_map(|group| group.cpus.iter()).filter_map(of).collect()
}

/// The cost by the processor's turbo ratios, or by CPPC's levels where those are not known.
fn by_ratios(turbo: Option<Turbo>, cppc: Option<(&u64, &u64)>) -> Cost {
    match (turbo, cppc) {
        (Some(turbo), _) => {
            let lost = turbo.lost_ratio();
            Cost::predicted_ratio(lost, say!("{} of the clock: {}; not measured", percent(lost), turbo.lost()))
        }
        (None, Some((low, high))) if low < high => {
            let lost = 1.0 - *low as f64 / *high as f64;
            Cost::predicted_ratio(
                lost,
                say!(
                    "up to {} of the clock when few cores are busy, computed from the claimed levels; not measured",
                    percent(lost)
                ),
            )
        }
        _ => Cost::unknown(word!("the clock above the base frequency; not measured")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, plan, policy};
    use super::*;

    #[test]
    fn the_loss_is_sized_by_the_processors_own_ratios() {
        let cpu = "//- /sys/devices/system/cpu";
        let text = format!(
            "{cpu}/present\n0\n{cpu}/online\n0\n{cpu}/intel_pstate/no_turbo\n1\n{cpu}/cpu0/topology/physical_package_id\n0\n
             {cpu}/cpu0/topology/core_id\n0\n//- /proc/cpuinfo\nprocessor : 0\nvendor_id : GenuineIntel\ncpu family : 6\nmodel : 85\n\n
             //- msr 0x1ad cpu0 1d1d1d1d1d1d1d27\n//- msr 0x1ae cpu0 1c1c1c1c1c1c1c00\n//- msr 0xce cpu0 1300\n"
        );
        let Answer::Yes(finding) = TurboOff.check(&super::super::testing::evidence(&text)) else { panic!() };
        let said = "34 % of the clock: 2.9GHz -> 1.9GHz on all cores, 3.9GHz -> 1.9GHz on few";
        assert!(finding.cost.text.starts_with(said), "{}", finding.cost.text);
    }

    #[test]
    fn switches() {
        let intel = |v: u8| ask(&TurboOff, &format!("//- /sys/devices/system/cpu/intel_pstate/no_turbo\n{v}\n"));
        assert!(intel(1).starts_with("yes risk unknown: turbo is switched off"));
        assert!(intel(0).starts_with("no"));
        let both = policy(&[
            ("scaling_driver", "intel_pstate"),
            ("cpuinfo_max_freq", "3500000"),
            ("cpuinfo_min_freq", "800000"),
            ("scaling_max_freq", "2100000"),
            ("scaling_min_freq", "800000"),
            ("base_frequency", "2100000"),
        ]) + "//- /sys/devices/system/cpu/intel_pstate/no_turbo\n1\n";
        let half = both.clone() + "//- /sys/devices/system/cpu/intel_pstate/max_perf_pct\n50\n";
        assert_eq!(plan(&TurboOff, &both), "--set freq.boost=on");
        assert_eq!(plan(&TurboOff, &half), "--set freq.boost=on --set freq.perf.max=100");
        assert!(ask(&TurboOff, "//- /sys/devices/system/cpu/cpufreq/boost\n0\n").starts_with("yes"));
        assert!(ask(&TurboOff, "").starts_with("cannot tell"));
    }
}
