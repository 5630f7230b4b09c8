//! CPU frequency: policies, governors and their tunables, driver modes, energy preferences.
//!
//! `/sys/devices/system/cpu/cpufreq` (Documentation/admin-guide/pm/cpufreq.rst), `intel_pstate/` and `amd_pstate/`
//! beside it, `cpuN/power/energy_perf_bias` and `cpuN/acpi_cppc`. What the words mean depends on the driver: under
//! intel_pstate in active mode `powersave` is not the lowest frequency but the driver's own schedutil, and with HWP
//! `performance` forces the preference to 0. A limit that was written may read back differently, clamped by turbo
//! switches, firmware or heat. [`policies`] has the per-policy files, [`drivers`] the rest.

pub mod drivers;
pub mod policies;

use super::{Cpus, Domain, cpus::ROOT};
use crate::cpuset::CpuSet;
use crate::fact::{Fact, Gap, GapKind, PerCpu, parse};
use crate::folder::{Folder, Folders};
use crate::sheet::{Cell, Sheet};
use crate::source::Source;
use drivers::{AmdPstate, Cppc, IntelPstate, Tunable};
use policies::Policies;
use serde::Serialize;
use wakewatt_words::word;

/// Everything about CPU frequency.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Freq {
    /// The policies, column by column.
    pub policies: Policies,
    /// Running CPUs that belong to no policy.
    pub cpus_without_policy: CpuSet,
    /// Why the policies could not be listed.
    pub unlisted_because: Option<Gap>,
    /// Turbo switch of acpi-cpufreq and amd-pstate, for all policies at once.
    pub is_boost_on: Fact<bool>,
    /// Governor tunables, global and per policy.
    pub tunables: Vec<Tunable>,
    /// Machine-wide settings of intel_pstate.
    pub intel_pstate: IntelPstate,
    /// Machine-wide settings of amd-pstate.
    pub amd_pstate: AmdPstate,
    /// Energy performance bias, 0 (performance) to 15 (power); the kernel turns a firmware 0 into 6 at boot.
    pub energy_perf_bias: PerCpu<u64>,
    /// What ACPI CPPC says each CPU can do.
    pub cppc: Cppc,
}

impl Freq {
    /// The governor of each running CPU.
    pub fn governors(&self) -> PerCpu<String> {
        self.policies.by_cpu(&self.policies.governor)
    }

    /// Turbo allowed? The switch that forbids it decides; none where no switch says so.
    pub fn is_turbo_allowed(&self) -> Option<bool> {
        let switches = [self.intel_pstate.is_no_turbo.get().map(|off| !off), self.is_boost_on.get().copied()];
        switches.into_iter().flatten().min()
    }
}

impl Domain for Freq {
    const TITLE: &'static str = "CPU frequency";
    const HELP: &'static str = "cpufreq policies, governors and tunables, limits, turbo, energy preference, CPPC";

    fn read(src: &dyn Source, cpus: &Cpus) -> Freq {
        let root = Folder::list(src, format!("{ROOT}/cpufreq"));
        let numbers = root.numbered("policy");
        let folders = Folders::list(src, numbers.iter().copied(), |n| format!("{ROOT}/cpufreq/policy{n}"));
        let policies = Policies::read(src, &folders);
        let covered: CpuSet = policies.cpus.known().flat_map(|(_, cpus)| cpus.iter()).collect();
        // A policy that does not say whose it is, or a folder that stays closed, leaves nobody proven to be without.
        let unlisted_because = root.gap().filter(|gap| matches!(gap.kind, GapKind::Denied | GapKind::Failed));
        let is_told = !src.is_imported()
            && unlisted_because.is_none()
            && policies.cpus.0.iter().all(|group| group.fact.is_known());
        let power = Folders::alike(src, cpus.running(), |cpu| format!("{ROOT}/cpu{cpu}/power"));
        Freq {
            cpus_without_policy: cpus.running().filter(|cpu| is_told && !covered.contains(*cpu)).collect(),
            unlisted_because,
            policies,
            is_boost_on: root.fact(src, "boost", parse::flag),
            tunables: drivers::tunables(src, &root, &folders),
            intel_pstate: IntelPstate::read(src),
            amd_pstate: AmdPstate::read(src),
            energy_perf_bias: power.read(src, "energy_perf_bias", parse::number),
            cppc: Cppc::read(src, cpus),
        }
    }

    fn show(&self, sheet: &mut Sheet) {
        match &self.unlisted_because {
            Some(gap) => {
                sheet.fact("freq.n_policies", word!("policies"), &Fact::<u64>::Gap(gap.clone()), |n| Cell::Count(*n));
            }
            None => self.policies.show(sheet),
        }
        if !self.cpus_without_policy.is_empty() {
            sheet.say(
                "freq.cpus_without_policy",
                word!("CPUs without a policy"),
                Cell::text(&self.cpus_without_policy),
            );
        }
        sheet.fact("freq.boost", word!("boost, all policies"), &self.is_boost_on, |v| Cell::Flag(*v));
        self.tunables.iter().for_each(|tunable| tunable.show(sheet, &self.policies));
        self.intel_pstate.show(sheet);
        self.amd_pstate.show(sheet);
        sheet.per_cpu("freq.energy_perf_bias", word!("energy performance bias"), &self.energy_perf_bias, |v| {
            Cell::Count(*v)
        });
        self.cppc.show(sheet);
    }
}

#[cfg(test)]
mod tests {
    use super::policies::{EnergyPreference, Speed};
    use super::*;
    use crate::fact::GapKind;
    use crate::source::Tree;

    #[test]
    fn awkward_files_are_never_zero() {
        let mut tree = Tree::from_text(
            "//- /sys/devices/system/cpu/online\n0-3\n//- /sys/devices/system/cpu/cpufreq/policy0/affected_cpus\n0 1\n
             //- /sys/devices/system/cpu/cpufreq/policy0/scaling_governor\npowersave\n
             //- /sys/devices/system/cpu/cpufreq/policy0/scaling_setspeed\n<unsupported>\n
             //- /sys/devices/system/cpu/cpufreq/policy0/cpuinfo_avg_freq\n<unknown>\n
             //- /sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq\n
             //- /sys/devices/system/cpu/cpufreq/policy0/energy_performance_preference\n128\n
             //- /sys/devices/system/cpu/cpufreq/policy2/affected_cpus\n2\n
             //- /sys/devices/system/cpu/cpufreq/policy2/scaling_governor\npowersave\n
             //- /sys/devices/system/cpu/cpufreq/policy2/energy_performance_preference\nbalance_power\n
             //- /sys/devices/system/cpu/cpufreq/policy2/cpuinfo_avg_freq!failed\n
             //- /sys/devices/system/cpu/cpufreq/policy2/stats/time_in_state\n800000 12\n900000 3\n
             //- /sys/devices/system/cpu/cpufreq/policy2/ondemand/up_threshold\n95\n
             //- /sys/devices/system/cpu/cpufreq/schedutil/rate_limit_us\n500\n
             //- /sys/devices/system/cpu/intel_pstate/no_turbo\n1\n//- /sys/devices/system/cpu/intel_pstate/max_perf_pct\n\n",
        );
        tree.files.insert(format!("{ROOT}/cpufreq/policy2/cpuinfo_max_freq"), Ok(vec![0xff, 0xfe, 0]));
        let freq = Freq::read(&tree, &Cpus::read(&tree));
        assert_eq!(freq.cpus_without_policy.to_string(), "3");
        let governors = freq.governors();
        assert_eq!(governors.0.len(), 1);
        assert_eq!(governors.0[0].cpus.to_string(), "0-2");
        let p = &freq.policies;
        assert_eq!(p.setspeed.of(0).unwrap().get(), Some(&Speed::Unsupported));
        assert_eq!(p.average.of(0).unwrap().get(), Some(&Speed::Unknown));
        assert_eq!(p.average.of(2).unwrap().gap().unwrap().kind, GapKind::Failed);
        assert_eq!(p.hardware_max_khz.of(0).unwrap().gap().unwrap().kind, GapKind::Malformed);
        assert_eq!(p.hardware_max_khz.of(2).unwrap().gap().unwrap().reason, "not text");
        assert_eq!(p.energy_preference.of(0).unwrap().get(), Some(&EnergyPreference::Raw(128)));
        assert_eq!(p.energy_preference.of(2).unwrap().get(), Some(&EnergyPreference::Name("balance_power".into())));
        assert_eq!(p.time_in_state.of(2).unwrap().get().unwrap()[0].time_ns, 120_000_000);
        assert_eq!(freq.is_turbo_allowed(), Some(false));
        assert_eq!(freq.intel_pstate.max_perf_ratio.gap().unwrap().kind, GapKind::Malformed);
        let names: Vec<String> = freq.tunables.iter().map(|t| format!("{}.{}", t.governor, t.name)).collect();
        assert_eq!(names, ["ondemand.up_threshold", "schedutil.rate_limit_us"]);
    }
}
