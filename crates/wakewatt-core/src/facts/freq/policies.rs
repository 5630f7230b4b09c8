//! The cpufreq policies: CPUs that change frequency together, and every attribute of theirs.
//!
//! The attributes are columns grouped over policies: here the "CPUs" of a [`PerCpu`] are *policy numbers*, so that 256
//! equal policies are one group. [`Policies::by_cpu`] turns a column into CPUs, which is how the sheet shows it.
//! `scaling_cur_freq` of an idle CPU is stale; `cpuinfo_cur_freq` is root's. The kernel answers some reads with words
//! (`<unsupported>`, `<unknown>`): those are known answers, not gaps.

use crate::cpuset::CpuSet;
use crate::fact::{Fact, PerCpu, parse};
use crate::folder::Folders;
use crate::sheet::{Cell, Sheet};
use crate::source::Source;
use crate::units::Cpu;
use serde::Serialize;
use std::collections::BTreeMap;
use wakewatt_words::word;

/// One column per attribute; keys are policy numbers.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Policies {
    /// Running CPUs of each policy; empty when all of them are offline.
    pub cpus: PerCpu<CpuSet>,
    /// The same with the offline ones.
    pub related_cpus: PerCpu<CpuSet>,
    /// acpi-cpufreq: CPUs that the hardware ties together.
    pub freqdomain_cpus: PerCpu<CpuSet>,
    /// intel_pstate, intel_cpufreq, amd-pstate, amd-pstate-epp, acpi-cpufreq …
    pub driver: PerCpu<String>,
    /// The governor in charge.
    pub governor: PerCpu<String>,
    /// What it could be switched to.
    pub governors_available: PerCpu<Vec<String>>,
    /// The lower limit in force.
    pub min_khz: PerCpu<u64>,
    /// The upper limit in force.
    pub max_khz: PerCpu<u64>,
    /// What the kernel last asked for or saw.
    pub current: PerCpu<Speed>,
    /// The speed set under the userspace governor.
    pub setspeed: PerCpu<Speed>,
    /// The hardware's own lower limit.
    pub hardware_min_khz: PerCpu<u64>,
    /// The hardware's own upper limit.
    pub hardware_max_khz: PerCpu<u64>,
    /// Measured by the driver; root only.
    pub hardware_current: PerCpu<Speed>,
    /// Average since the last tick (newer kernels).
    pub average: PerCpu<Speed>,
    /// Claimed time of one frequency change.
    pub transition_latency_ns: PerCpu<u64>,
    /// Upper limit set by firmware.
    pub bios_limit_khz: PerCpu<u64>,
    /// Highest frequency without turbo.
    pub base_khz: PerCpu<u64>,
    /// Turbo allowed for this policy.
    pub is_boost_on: PerCpu<bool>,
    /// AMD's older word for the same.
    pub is_cpb_on: PerCpu<bool>,
    /// Frequencies the driver offers, without turbo.
    pub available_khz: PerCpu<Vec<u64>>,
    /// Frequencies the driver offers beyond them, with turbo.
    pub boost_khz: PerCpu<Vec<u64>>,
    /// How the processor should weigh speed against power.
    pub energy_preference: PerCpu<EnergyPreference>,
    /// The preferences it accepts.
    pub energy_preferences_available: PerCpu<Vec<String>>,
    /// Highest frequency, by amd-pstate.
    pub amd_max_khz: PerCpu<u64>,
    /// amd-pstate: below this, slower saves little.
    pub amd_lowest_nonlinear_khz: PerCpu<u64>,
    /// amd-pstate: highest performance level.
    pub amd_highest_perf: PerCpu<u64>,
    /// amd-pstate: rank among the cores, higher is preferred.
    pub amd_prefcore_ranking: PerCpu<u64>,
    /// amd-pstate: does the hardware rank cores?
    pub is_amd_hw_prefcore: PerCpu<bool>,
    /// Time at each frequency since the driver loaded.
    pub time_in_state: PerCpu<Vec<TimeAt>>,
    /// How often the frequency was changed since the driver loaded.
    pub n_transitions: PerCpu<u64>,
}

/// A frequency, or the word the kernel has instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Speed {
    /// `<unsupported>`: the governor or driver has no such thing.
    #[default]
    Unsupported,
    /// `<unknown>`: it could not tell just now.
    Unknown,
    /// A frequency in kHz.
    Khz(u64),
}

impl Speed {
    /// The frequency, if it is one.
    pub fn khz(self) -> Option<u64> {
        if let Speed::Khz(khz) = self { Some(khz) } else { None }
    }
}

/// Energy performance preference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EnergyPreference {
    /// default, performance, balance_performance, balance_power, power.
    Name(String),
    /// 0 (performance) to 255 (power), when somebody wrote a number.
    Raw(u8),
}

impl Default for EnergyPreference {
    fn default() -> Self {
        EnergyPreference::Name("default".into())
    }
}

impl std::fmt::Display for EnergyPreference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EnergyPreference::Name(name) => f.write_str(name),
            EnergyPreference::Raw(raw) => write!(f, "{raw}"),
        }
    }
}

/// Time spent at a frequency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimeAt {
    /// The frequency, in kHz.
    pub khz: u64,
    /// Time (whole 10 ms in the kernel).
    pub time_ns: u64,
}

fn speed(text: &str) -> Result<Speed, String> {
    match text.trim() {
        "<unsupported>" => Ok(Speed::Unsupported),
        "<unknown>" => Ok(Speed::Unknown),
        other => parse::number(other).map(Speed::Khz),
    }
}

fn energy_preference(text: &str) -> Result<EnergyPreference, String> {
    let word = parse::word(text)?;
    if word.starts_with(|c: char| c.is_ascii_digit()) {
        return word.parse().map(EnergyPreference::Raw).map_err(|_| "expected 0 to 255, or a word".to_string());
    }
    Ok(EnergyPreference::Name(word))
}

fn time_in_state(text: &str) -> Result<Vec<TimeAt>, String> {
    let line = |line: &str| {
        let (khz, ticks) = line.trim().split_once(' ').ok_or("expected frequency and time")?;
        let time_ns = parse::number(ticks)?.checked_mul(10_000_000).ok_or("too much time")?;
        Ok(TimeAt { khz: parse::number(khz)?, time_ns })
    };
    text.lines().filter(|l| !l.trim().is_empty()).map(line).collect()
}

/// Drivers that have only their own two algorithms, called performance and powersave.
pub fn is_autonomous(driver: &str) -> bool {
    matches!(driver, "intel_pstate" | "amd-pstate-epp")
}

impl Policies {
    /// Does its governor hold this policy at the lower limit? `powersave` does, but under drivers whose own algorithm it names.
    pub fn is_held_low(&self, policy: u32) -> bool {
        let is = |column: &PerCpu<String>, test: &dyn Fn(&str) -> bool| {
            column.of(policy).and_then(Fact::get).is_some_and(|text| test(text))
        };
        is(&self.driver, &|driver| !is_autonomous(driver)) && is(&self.governor, &|governor| governor == "powersave")
    }

    /// Reads every column.
    pub fn read<P: Fn(u32) -> String>(src: &dyn Source, folders: &Folders<P>) -> Policies {
        let number = |file: &str| folders.read(src, file, parse::number);
        let cpus = |file: &str| folders.read(src, file, parse::cpus);
        let words = |file: &str| folders.read(src, file, parse::words);
        let speed = |file: &str| folders.read(src, file, speed);
        let flag = |file: &str| folders.read(src, file, parse::flag);
        Policies {
            cpus: cpus("affected_cpus"),
            related_cpus: cpus("related_cpus"),
            freqdomain_cpus: cpus("freqdomain_cpus"),
            driver: folders.read(src, "scaling_driver", parse::word),
            governor: folders.read(src, "scaling_governor", parse::word),
            governors_available: words("scaling_available_governors"),
            min_khz: number("scaling_min_freq"),
            max_khz: number("scaling_max_freq"),
            current: speed("scaling_cur_freq"),
            setspeed: speed("scaling_setspeed"),
            hardware_min_khz: number("cpuinfo_min_freq"),
            hardware_max_khz: number("cpuinfo_max_freq"),
            hardware_current: speed("cpuinfo_cur_freq"),
            average: speed("cpuinfo_avg_freq"),
            transition_latency_ns: number("cpuinfo_transition_latency"),
            bios_limit_khz: number("bios_limit"),
            base_khz: number("base_frequency"),
            is_boost_on: flag("boost"),
            is_cpb_on: flag("cpb"),
            available_khz: folders.read(src, "scaling_available_frequencies", parse::numbers),
            boost_khz: folders.read(src, "scaling_boost_frequencies", parse::numbers),
            energy_preference: folders.read(src, "energy_performance_preference", energy_preference),
            energy_preferences_available: words("energy_performance_available_preferences"),
            amd_max_khz: number("amd_pstate_max_freq"),
            amd_lowest_nonlinear_khz: number("amd_pstate_lowest_nonlinear_freq"),
            amd_highest_perf: number("amd_pstate_highest_perf"),
            amd_prefcore_ranking: number("amd_pstate_prefcore_ranking"),
            is_amd_hw_prefcore: flag("amd_pstate_hw_prefcore"),
            time_in_state: folders.read(src, "stats/time_in_state", time_in_state),
            n_transitions: folders.read(src, "stats/total_trans", parse::number),
        }
    }

    /// The running CPUs of a policy.
    pub fn cpus_of(&self, policy: u32) -> Option<&CpuSet> {
        self.cpus.of(policy).and_then(Fact::get)
    }

    /// A column over policies as a column over CPUs. A policy whose CPUs are unreadable stands for the CPU it is
    /// named after.
    pub fn by_cpu<T: Clone>(&self, column: &PerCpu<T>) -> PerCpu<T> {
        let map: BTreeMap<u32, Vec<Cpu>> =
            self.cpus
                .0
                .iter()
                .flat_map(|group| {
                    let fact = &group.fact;
                    group.cpus.iter().map(move |policy| {
                        (policy, fact.get().map_or_else(|| vec![policy], |cpus| cpus.iter().collect()))
                    })
                })
                .collect();
        let groups = column.0.iter().map(|group| crate::fact::Group {
            cpus: group.cpus.iter().flat_map(|policy| map.get(&policy).cloned().unwrap_or_default()).collect(),
            fact: group.fact.clone(),
        });
        PerCpu(groups.filter(|group| !group.cpus.is_empty()).collect())
    }

    /// The rows, over CPUs.
    pub fn show(&self, sheet: &mut Sheet) {
        let count: usize = self.cpus.0.iter().map(|group| group.cpus.len()).sum();
        sheet.say("freq.n_policies", word!("policies"), Cell::Count(count as u64));
        let mut text = |id: &str, label: &str, column: &PerCpu<String>| {
            sheet.per_cpu(&format!("freq.{id}"), label, &self.by_cpu(column), |v| Cell::text(v));
        };
        text("driver", word!("driver"), &self.driver);
        text("governor", word!("governor"), &self.governor);
        let mut words = |id: &str, label: &str, column: &PerCpu<Vec<String>>| {
            sheet.per_cpu(&format!("freq.{id}"), label, &self.by_cpu(column), |v| Cell::text(v.join(" ")));
        };
        words("governors_available", word!("governors available"), &self.governors_available);
        words("epp_available", word!("energy preferences available"), &self.energy_preferences_available);
        sheet.per_cpu("freq.epp", word!("energy preference"), &self.by_cpu(&self.energy_preference), |v| Cell::text(v));
        for (id, label, column) in [
            ("min", word!("lower limit"), &self.min_khz),
            ("max", word!("upper limit"), &self.max_khz),
            ("hardware_min", word!("hardware minimum"), &self.hardware_min_khz),
            ("base", word!("base frequency"), &self.base_khz),
            ("hardware_max", word!("hardware maximum"), &self.hardware_max_khz),
            ("bios_limit", word!("firmware's limit"), &self.bios_limit_khz),
            ("amd_max", word!("amd-pstate maximum"), &self.amd_max_khz),
            ("amd_lowest_nonlinear", word!("amd-pstate lowest nonlinear"), &self.amd_lowest_nonlinear_khz),
        ] {
            sheet.per_cpu(&format!("freq.{id}"), label, &self.by_cpu(column), |v| Cell::Khz(*v));
        }
        for (id, label, column) in [
            ("current", word!("current"), &self.current),
            ("average", word!("average"), &self.average),
            ("hardware_current", word!("current, measured"), &self.hardware_current),
        ] {
            let column = self.by_cpu(column);
            let khz = PerCpu(
                column
                    .0
                    .iter()
                    .filter(|g| g.fact.get().is_none_or(|s| s.khz().is_some()))
                    .map(|g| crate::fact::Group {
                        cpus: g.cpus.clone(),
                        fact: g.fact.map(|s| s.khz().unwrap_or_default()),
                    })
                    .collect(),
            );
            sheet.span(&format!("freq.{id}"), label, &khz, |v| Cell::Khz(*v));
        }
        sheet.per_cpu("freq.setspeed", word!("userspace speed"), &self.by_cpu(&self.setspeed), |v| match v {
            Speed::Khz(khz) => Cell::Khz(*khz),
            Speed::Unknown => Cell::text("unknown"),
            Speed::Unsupported => Cell::text("unsupported"),
        });
        sheet.per_cpu(
            "freq.transition_latency",
            word!("transition latency (claimed)"),
            &self.by_cpu(&self.transition_latency_ns),
            // CPUFREQ_ETERNAL: the driver does not know.
            |v| if *v >= u64::from(u32::MAX) { Cell::text("unknown") } else { Cell::Ns(*v) },
        );
        for (id, label, column) in [
            ("policy_boost", word!("boost"), &self.is_boost_on),
            ("cpb", word!("core performance boost"), &self.is_cpb_on),
            ("amd_hw_prefcore", word!("hardware ranks cores"), &self.is_amd_hw_prefcore),
        ] {
            sheet.per_cpu(&format!("freq.{id}"), label, &self.by_cpu(column), |v| Cell::Flag(*v));
        }
        let steps =
            |v: &Vec<u64>| Cell::text(v.iter().map(|k| crate::units::show_khz(*k)).collect::<Vec<_>>().join(" "));
        sheet.per_cpu("freq.available", word!("steps"), &self.by_cpu(&self.available_khz), steps);
        sheet.per_cpu("freq.boost_steps", word!("turbo steps"), &self.by_cpu(&self.boost_khz), steps);
        for (id, label, column) in [
            ("amd_highest_perf", word!("amd-pstate highest level"), &self.amd_highest_perf),
            ("amd_prefcore_ranking", word!("preferred-core rank"), &self.amd_prefcore_ranking),
        ] {
            sheet.per_cpu(&format!("freq.{id}"), label, &self.by_cpu(column), |v| Cell::Count(*v));
        }
        sheet.total("freq.transitions", word!("frequency changes"), &self.n_transitions, |v| Cell::Count(*v));
    }
}
