//! How high a host's settings let the clock go, boost included.
//!
//! `scaling_max_freq` is not one quantity. Under intel_pstate and amd-pstate it includes turbo. acpi-cpufreq knows P-states
//! only: its highest step is the nominal clock, from where the hardware boosts by itself while `cpufreq/boost` is 1 (an EPYC
//! Genoa: a limit of 3.25 GHz, and 3.8 GHz are reached; Intel firmware adds a step 1 MHz above nominal, which stands for turbo). A
//! comparison of the two is false by the whole of boost. How far it goes is said, in this order, by `cpuinfo_max_freq` where it
//! is above the table, by MSR_TURBO_RATIO_LIMIT (0x1AD, fewest busy cores, 100 MHz), by CPPC (highest over nominal level); where
//! none is there, it is not known. Below the highest step nothing boosts. Sources: admin-guide/pm/cpufreq.rst ("The boost File"),
//! acpi_cppc in ABI/testing/sysfs-devices-system-cpu, ACPI 6.5 section 8.4.6, Intel SDM volume 4.

use crate::clock_window::{self, Window};
use crate::cpuset::CpuSet;
use crate::fact::{Fact, GapKind};
use crate::facts::Snapshot;
use crate::units::show_khz;
use std::fmt;
use wakewatt_words::say;

/// How high the clock may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// To here.
    To(u64),
    /// From this step on the hardware boosts, nobody says how far.
    Beyond(u64),
}

impl Reach {
    /// The frequency, where it is known.
    pub(super) fn khz(&self) -> Option<u64> {
        match self {
            Reach::To(khz) => Some(*khz),
            Reach::Beyond(_) => None,
        }
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reach::To(khz) => f.write_str(&show_khz(*khz)),
            Reach::Beyond(khz) => f.write_str(&say!("{} and boost, unknown how far", show_khz(*khz))),
        }
    }
}

/// The lowest and the highest of the clocks that policies may reach; none where no policy says.
pub(super) fn of(host: &Snapshot) -> Option<(Reach, Reach)> {
    let policies = host.freq.policies.max_khz.0.iter().flat_map(|group| group.cpus.iter());
    let windows = clock_window::of(host);
    let all: Vec<Reach> = policies.filter_map(|policy| of_policy(host, &windows, policy)).collect();
    let khz = |reach: &&Reach| match reach {
        Reach::To(khz) | Reach::Beyond(khz) => *khz,
    };
    let highest = all.iter().find(|reach| reach.khz().is_none()).or(all.iter().max_by_key(khz))?;
    Some((all.iter().min_by_key(khz)?.clone(), highest.clone()))
}

fn of_policy(host: &Snapshot, windows: &[Window], policy: u32) -> Option<Reach> {
    let (freq, policies) = (&host.freq, &host.freq.policies);
    let cpu = policies.cpus_of(policy).and_then(CpuSet::first).unwrap_or(policy);
    let window = clock_window::of_cpu(windows, cpu)?;
    if policies.is_held_low(policy) {
        return Some(Reach::To(window.min()?.khz));
    }
    let limit = window.max()?.khz;
    if policies.driver.of(policy).and_then(Fact::get).map(String::as_str) != Some("acpi-cpufreq") {
        return Some(Reach::To(limit));
    }
    let steps = policies.available_khz.of(policy).and_then(Fact::get);
    let top = steps.and_then(|all| all.iter().max().copied()).unwrap_or(limit);
    let own = policies.is_boost_on.of(policy).and_then(Fact::get).copied();
    let is_boost_on = match (&freq.is_boost_on, own) {
        (Fact::Known(false), _) | (_, Some(false)) => false,
        (Fact::Known(true), _) | (_, Some(true)) => true,
        // Without hardware boost the driver makes no such file.
        (Fact::Gap(gap), None) if gap.kind == GapKind::Absent => false,
        (Fact::Gap(_), None) => return Some(Reach::Beyond(limit)),
    };
    if !is_boost_on || limit < top {
        return Some(Reach::To(limit));
    }
    Some(boost_khz(host, policy, top).map_or(Reach::Beyond(top), Reach::To))
}

/// Where boost ends, if it is said anywhere and is above the steps.
fn boost_khz(host: &Snapshot, policy: u32, top: u64) -> Option<u64> {
    // One step of 1 MHz above nominal is Intel's name for turbo, not its frequency.
    let is_above = |khz: &u64| *khz > top + top / 100;
    let hardware = host.freq.policies.hardware_max_khz.of(policy).and_then(Fact::get).copied();
    let ratio = || host.msr.field("turbo_ratio_limit", "first")?.known().map(|(_, ratio)| *ratio).max();
    let by_ratio = || ratio().and_then(|ratio| ratio.checked_mul(100_000));
    let cppc = || {
        let of = |levels: &crate::fact::PerCpu<u64>| levels.of(policy).and_then(Fact::get).copied();
        let (highest, nominal) = (of(&host.freq.cppc.highest_perf)?, of(&host.freq.cppc.nominal_perf)?);
        let khz = of(&host.freq.cppc.nominal_khz).filter(|khz| *khz > 0).unwrap_or(top);
        khz.checked_mul(highest)?.checked_div(nominal)
    };
    hardware.filter(is_above).or_else(|| by_ratio().filter(is_above)).or_else(|| cppc().filter(is_above))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Comparison, compare};
    use crate::record::host_file;
    use crate::source::Tree;

    fn host(text: &str) -> Snapshot {
        Snapshot::read(&host_file::read(text, "x").expect("a fixture"), |topic| {
            ["freq", "msr", "idle", "qos"].contains(&topic)
        })
    }

    const GENOA: &str = include_str!("../../../../fixtures/hosts/genoa0.host");
    const TURIN: &str = include_str!("../../../../fixtures/hosts/turin0.host");

    fn ratio(found: &Comparison) -> Option<f64> {
        found.differences.iter().find(|d| d.id == "predicted.frequency_limit")?.predicted.as_ref()?.speed_ratio
    }

    fn highest(host: &Snapshot) -> Option<Reach> {
        of(host).map(|(_, highest)| highest)
    }

    #[test]
    fn boost_counts_under_acpi_cpufreq() {
        let found = ratio(&compare(&[host(GENOA), host(TURIN)])).expect("both say it");
        assert!((found - 0.16).abs() < 0.005, "4.41 over 3.80 GHz, not over 3.25: {found}");
        let dnv = host(include_str!("../../../../fixtures/hosts/dnv0.host"));
        assert_eq!(highest(&dnv), Some(Reach::To(2_400_000)), "the turbo ratio, where the table says 2101 MHz");
        let rome = host(include_str!("../../../../fixtures/hosts/rome0.host"));
        assert_eq!(highest(&rome), Some(Reach::To(3_414_550)));
    }

    fn made_up(files: &[(&str, &str)]) -> Snapshot {
        let cpu = "/sys/devices/system/cpu";
        let mut text = format!("//- {cpu}/online\n0\n//- {cpu}/present\n0\n");
        let policy = [("affected_cpus", "0"), ("related_cpus", "0"), ("scaling_driver", "acpi-cpufreq")];
        for (name, says) in policy.iter().chain(files) {
            let at = if name.contains('/') { format!("{cpu}/{name}") } else { format!("{cpu}/cpufreq/policy0/{name}") };
            text += &format!("//- {at}\n{says}\n");
        }
        Snapshot::read(&Tree::from_text(&text), |topic| ["freq", "msr"].contains(&topic))
    }

    #[test]
    fn off_below_the_top_and_not_said() {
        let steps = [("scaling_available_frequencies", "2000000 1000000"), ("cpuinfo_max_freq", "3000000")];
        let with = |more: &[(&str, &str)]| highest(&made_up(&[&steps[..], more].concat()));
        let max = ("scaling_max_freq", "2000000");
        assert_eq!(with(&[max, ("cpufreq/boost", "1")]), Some(Reach::To(3_000_000)));
        assert_eq!(with(&[max, ("cpufreq/boost", "0")]), Some(Reach::To(2_000_000)));
        assert_eq!(with(&[max]), Some(Reach::To(2_000_000)), "no switch, no boost");
        assert_eq!(with(&[("scaling_max_freq", "1000000"), ("cpufreq/boost", "1")]), Some(Reach::To(1_000_000)));
        let low = [("scaling_governor", "powersave"), ("scaling_min_freq", "1000000"), ("cpufreq/boost", "1"), max];
        assert_eq!(with(&low), Some(Reach::To(1_000_000)), "powersave is static under acpi-cpufreq");
        let silent = [steps[0], ("cpuinfo_max_freq", "2000000"), max, ("cpufreq/boost", "1")];
        assert_eq!(highest(&made_up(&silent)), Some(Reach::Beyond(2_000_000)));
        let cppc = [("cpu0/acpi_cppc/highest_perf", "150"), ("cpu0/acpi_cppc/nominal_perf", "100")];
        assert_eq!(highest(&made_up(&[&silent[..], &cppc].concat())), Some(Reach::To(3_000_000)));
        let other = made_up(&[&steps[..], &[max, ("cpufreq/boost", "1")]].concat());
        let found = compare(&[made_up(&silent), other]);
        let difference = found.differences.iter().find(|d| d.id == "predicted.frequency_limit").expect("they differ");
        assert_eq!((difference.values[0].as_str(), ratio(&found)), ("2GHz and boost, unknown how far", None));
    }

    #[test]
    fn a_placeholder_is_no_effect() {
        let skylake = host(include_str!("../../../../fixtures/hosts/sklep0.host"));
        for (other, text) in [("genoa0", GENOA), ("rpl0", include_str!("../../../../fixtures/hosts/rpl0.host"))] {
            let found = compare(&[skylake.clone(), host(text)]);
            let idle = found.differences.iter().find(|d| d.id == "predicted.deepest_idle").expect(other);
            let predicted = idle.predicted.as_ref().expect(other);
            assert!(
                predicted.latency_ns.is_none() && predicted.text.contains("no size"),
                "{other}: {}",
                predicted.text
            );
        }
        let native = compare(&[skylake, host(include_str!("../../../../fixtures/hosts/icx2s0.host"))]);
        let idle = native.differences.iter().find(|d| d.id == "predicted.deepest_idle").expect("133 and 170us");
        assert_eq!(idle.predicted.as_ref().and_then(|p| p.latency_ns), Some(37_000));
    }
}
