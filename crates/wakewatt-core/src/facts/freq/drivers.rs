//! What is said once for all policies: governor tunables, the two vendors' drivers, and CPPC's view of each CPU.
//!
//! A governor's tunables are global (`cpufreq/ondemand/…`) or per policy (`policyN/schedutil/…`), as the driver chose.
//! Their values stay in the kernel's unit, which the attribute's own name tells (`rate_limit_us`). CPPC frequencies
//! are megahertz in the file and kilohertz here.

use super::policies::Policies;
use crate::fact::{Fact, PerCpu, parse};
use crate::facts::{Cpus, cpus::ROOT};
use crate::folder::{Folder, Folders};
use crate::sheet::{Cell, Sheet};
use crate::source::Source;
use serde::Serialize;
use std::collections::BTreeSet;
use wakewatt_words::word;

/// The governors that have tunables.
const GOVERNORS: [&str; 3] = ["ondemand", "conservative", "schedutil"];

/// One tunable of one governor.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tunable {
    /// The governor it belongs to.
    pub governor: String,
    /// Name of the attribute: up_threshold.
    pub name: String,
    /// The value for all policies, in the kernel's unit.
    pub global: Fact<u64>,
    /// The value of each policy that has its own; keys are policy numbers.
    pub per_policy: PerCpu<u64>,
}

impl Tunable {
    /// Its row: global if there is one, else per CPU.
    pub fn show(&self, sheet: &mut Sheet, policies: &Policies) {
        let id = format!("freq.{}.{}", self.governor, self.name);
        let label = format!("{} {}", self.governor, self.name);
        if self.global.is_known() || self.per_policy.0.is_empty() {
            sheet.fact(id, label, &self.global, |v| Cell::Count(*v));
        } else {
            sheet.per_cpu(&id, &label, &policies.by_cpu(&self.per_policy), |v| Cell::Count(*v));
        }
    }
}

/// Finds and reads them.
pub fn tunables<P: Fn(u32) -> String>(src: &dyn Source, root: &Folder, policies: &Folders<P>) -> Vec<Tunable> {
    let mut all = Vec::new();
    for governor in GOVERNORS {
        let keys: Vec<u32> = policies.with(governor).collect();
        if keys.is_empty() && !root.has(governor) {
            continue;
        }
        let global = Folder::list(src, format!("{}/{governor}", root.path));
        let own = Folders::alike(src, keys, |n| format!("{}/policy{n}/{governor}", root.path));
        let names: BTreeSet<&String> = global.names().iter().chain(own.names()).collect();
        all.extend(names.into_iter().map(|name| Tunable {
            governor: governor.into(),
            name: name.clone(),
            global: global.fact(src, name, parse::number),
            per_policy: own.read(src, name, parse::number),
        }));
    }
    all
}

/// What intel_pstate keeps for the whole machine.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IntelPstate {
    /// Mode of the driver: active, passive or off.
    pub status: Fact<String>,
    /// Is turbo forbidden?
    pub is_no_turbo: Fact<bool>,
    /// Lower limit, relative to the highest turbo.
    pub min_perf_ratio: Fact<f64>,
    /// Upper limit, relative to the highest turbo.
    pub max_perf_ratio: Fact<f64>,
    /// Share of the range that is turbo.
    pub turbo_ratio: Fact<f64>,
    /// How many performance steps the hardware has.
    pub n_pstates: Fact<u64>,
    /// Raise the HWP minimum for tasks that waited for IO.
    pub is_hwp_dynamic_boost_on: Fact<bool>,
    /// Energy-efficiency optimisation (client parts).
    pub is_energy_efficiency_on: Fact<bool>,
}

impl IntelPstate {
    /// Reads it.
    pub fn read(src: &dyn Source) -> IntelPstate {
        let folder = Folder::list(src, format!("{ROOT}/intel_pstate"));
        IntelPstate {
            status: folder.fact(src, "status", parse::word),
            is_no_turbo: folder.fact(src, "no_turbo", parse::flag),
            min_perf_ratio: folder.fact(src, "min_perf_pct", parse::percent),
            max_perf_ratio: folder.fact(src, "max_perf_pct", parse::percent),
            turbo_ratio: folder.fact(src, "turbo_pct", parse::percent),
            n_pstates: folder.fact(src, "num_pstates", parse::number),
            is_hwp_dynamic_boost_on: folder.fact(src, "hwp_dynamic_boost", parse::flag),
            is_energy_efficiency_on: folder.fact(src, "energy_efficiency", parse::flag),
        }
    }

    /// Its rows.
    pub fn show(&self, sheet: &mut Sheet) {
        sheet.fact("freq.intel_pstate.status", word!("intel_pstate"), &self.status, |v| Cell::text(v));
        sheet.fact("freq.intel_pstate.no_turbo", word!("turbo forbidden"), &self.is_no_turbo, |v| Cell::Flag(*v));
        for (id, label, fact) in [
            ("min_perf", word!("lower limit of performance"), &self.min_perf_ratio),
            ("max_perf", word!("upper limit of performance"), &self.max_perf_ratio),
            ("turbo_share", word!("share of the range that is turbo"), &self.turbo_ratio),
        ] {
            sheet.fact(format!("freq.intel_pstate.{id}"), label, fact, |v| Cell::Ratio(*v));
        }
        sheet.fact("freq.intel_pstate.num_pstates", word!("P-states"), &self.n_pstates, |v| Cell::Count(*v));
        for (id, label, fact) in [
            ("hwp_dynamic_boost", word!("HWP dynamic boost"), &self.is_hwp_dynamic_boost_on),
            ("energy_efficiency", word!("energy efficiency"), &self.is_energy_efficiency_on),
        ] {
            sheet.fact(format!("freq.intel_pstate.{id}"), label, fact, |v| Cell::Flag(*v));
        }
    }
}

/// What amd-pstate keeps for the whole machine.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AmdPstate {
    /// active, passive, guided, disable.
    pub status: Fact<String>,
    /// Does the scheduler prefer the better cores?
    pub is_prefcore_on: Fact<bool>,
}

impl AmdPstate {
    /// Reads it.
    pub fn read(src: &dyn Source) -> AmdPstate {
        let folder = Folder::list(src, format!("{ROOT}/amd_pstate"));
        AmdPstate {
            status: folder.fact(src, "status", parse::word),
            is_prefcore_on: folder.fact(src, "prefcore", parse::flag),
        }
    }

    /// Its rows.
    pub fn show(&self, sheet: &mut Sheet) {
        sheet.fact("freq.amd_pstate.status", word!("amd_pstate"), &self.status, |v| Cell::text(v));
        sheet.fact("freq.amd_pstate.prefcore", word!("preferred cores"), &self.is_prefcore_on, |v| Cell::Flag(*v));
    }
}

/// `cpuN/acpi_cppc`: abstract performance levels, and the frequencies of two of them.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cppc {
    /// Highest level any core reaches alone; differs between favoured and other cores.
    pub highest_perf: PerCpu<u64>,
    /// Level that can be sustained.
    pub nominal_perf: PerCpu<u64>,
    /// Guaranteed level, which firmware may move.
    pub guaranteed_perf: PerCpu<u64>,
    /// Below this, slower saves little.
    pub lowest_nonlinear_perf: PerCpu<u64>,
    /// Lowest level there is.
    pub lowest_perf: PerCpu<u64>,
    /// The level the reference counter runs at.
    pub reference_perf: PerCpu<u64>,
    /// Frequency of the nominal level.
    pub nominal_khz: PerCpu<u64>,
    /// Frequency of the lowest level.
    pub lowest_khz: PerCpu<u64>,
}

impl Cppc {
    /// Reads it.
    pub fn read(src: &dyn Source, cpus: &Cpus) -> Cppc {
        let files = Folders::alike(src, cpus.running(), |cpu| format!("{ROOT}/cpu{cpu}/acpi_cppc"));
        let number = |file: &str| files.read(src, file, parse::number);
        Cppc {
            highest_perf: number("highest_perf"),
            nominal_perf: number("nominal_perf"),
            guaranteed_perf: number("guaranteed_perf"),
            lowest_nonlinear_perf: number("lowest_nonlinear_perf"),
            lowest_perf: number("lowest_perf"),
            reference_perf: number("reference_perf"),
            nominal_khz: files.read(src, "nominal_freq", parse::mhz_to_khz),
            lowest_khz: files.read(src, "lowest_freq", parse::mhz_to_khz),
        }
    }

    /// Its rows.
    pub fn show(&self, sheet: &mut Sheet) {
        // No core has level 0: firmware without the optional register leaves it.
        let level = |v: &u64| if *v == 0 { Cell::text("not told") } else { Cell::Count(*v) };
        for (id, label, column) in [
            ("highest", word!("CPPC highest level"), &self.highest_perf),
            ("nominal", word!("CPPC nominal level"), &self.nominal_perf),
            ("guaranteed", word!("CPPC guaranteed level"), &self.guaranteed_perf),
            ("lowest_nonlinear", word!("CPPC lowest nonlinear level"), &self.lowest_nonlinear_perf),
            ("lowest", word!("CPPC lowest level"), &self.lowest_perf),
            ("reference", word!("CPPC reference level"), &self.reference_perf),
        ] {
            sheet.per_cpu(&format!("freq.cppc.{id}"), label, column, level);
        }
        // Firmware that does not fill in the optional frequency leaves 0.
        let khz = |v: &u64| if *v == 0 { Cell::text("not told") } else { Cell::Khz(*v) };
        sheet.per_cpu("freq.cppc.nominal_freq", word!("CPPC nominal frequency"), &self.nominal_khz, khz);
        sheet.per_cpu("freq.cppc.lowest_freq", word!("CPPC lowest frequency"), &self.lowest_khz, khz);
    }
}
