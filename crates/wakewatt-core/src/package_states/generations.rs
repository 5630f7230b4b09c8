//! The generations of processors, and what wakewatt knows of each: which core states let the package follow, and where
//! tables, limits and clocks come from. docs/ref/silicon.md is made from this list.
//!
//! A core's state is told by its MWAIT hint where the driver's description has one, because names are the driver's: C6 on
//! Granite Rapids (0x20) holds the package awake, C6P (0x21) does not. Sources: Intel SDM volumes 3 and 4, datasheets, the
//! descriptions of the states in sysfs, AMD's PPRs, Arm DEN 0022. AMD and Arm leave package states to firmware and publish
//! no pairing, so their lists are empty and nothing is said about them.

use crate::facts::cpuinfo::Processor;
use crate::facts::msr::package_limit;

/// Who made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// Intel, family 6.
    Intel,
    /// AMD, by family.
    Amd(u64),
    /// Arm's own and licensed cores, by implementer; none: any.
    Arm(Option<u64>),
}

/// A core state and how deep it lets the package go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allows {
    /// The hardware's name of the core state.
    pub core: &'static str,
    /// The MWAIT hint that asks for it.
    pub hint: u32,
    /// The deepest package state while every core is at least here.
    pub package: &'static str,
}

/// A generation of processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation {
    /// As it is called.
    pub name: &'static str,
    /// Whose it is.
    pub maker: Maker,
    /// Models, from and to; empty: all of the maker.
    pub models: &'static [(u64, u64)],
    /// Core states with the package state each allows, shallowest first; empty where that is not public.
    pub allows: &'static [Allows],
    /// Where its idle table comes from.
    pub idle_table: &'static str,
    /// What is known of the firmware's limit of package states.
    pub limit: &'static str,
    /// How the clock of the shared part is seen and set.
    pub uncore: &'static str,
    /// The frequency driver.
    pub frequency: &'static str,
    /// Where this is written.
    pub source: &'static str,
}

const fn at(core: &'static str, hint: u32, package: &'static str) -> Allows {
    Allows { core, hint, package }
}

const C1: Allows = at("C1", 0x00, "PC0");
const C1E: Allows = at("C1E", 0x01, "PC0");
const SERVER: &[Allows] = &[C1, C1E, at("C6", 0x20, "PC6")];
const CLIENT: &[Allows] = &[
    C1,
    C1E,
    at("C3", 0x10, "PC3"),
    at("C6", 0x20, "PC6"),
    at("C6", 0x21, "PC6"),
    at("C7", 0x30, "PC7"),
    at("C7", 0x31, "PC7"),
    at("C7s", 0x32, "PC7"),
    at("C7s", 0x33, "PC7"),
    at("C8", 0x40, "PC8"),
    at("C9", 0x50, "PC9"),
    at("C10", 0x60, "PC10"),
];

const NATIVE: &str = "intel_idle";
const SDM: &str = "Intel SDM volume 4, datasheet";
const LIMIT: &str = "MSR 0xE2";
const CST: &str = "intel_idle with _CST";
const RATIO: &str = "MSR 0x620, intel_uncore_frequency";
const TPMI: &str = "intel_uncore_frequency (TPMI, with ELC)";
const NO_UNCORE: &str = "not known";
const PSTATE: &str = "intel_pstate (HWP)";
const AMD_LIMIT: &str = "not public";
const AMD_UNCORE: &str = "data fabric: firmware only";
const AMD_ACPI: &str = "acpi-cpufreq; amd-pstate if asked for";
const PPR: &str = "AMD PPR; sysfs of recorded hosts";

#[allow(clippy::too_many_arguments)] // A row of the table below.
const fn intel(
    name: &'static str,
    models: &'static [(u64, u64)],
    allows: &'static [Allows],
    idle_table: &'static str,
    limit: &'static str,
    uncore: &'static str,
    frequency: &'static str,
) -> Generation {
    Generation { name, maker: Maker::Intel, models, allows, idle_table, limit, uncore, frequency, source: SDM }
}

const fn amd(name: &'static str, family: u64, models: &'static [(u64, u64)], frequency: &'static str) -> Generation {
    Generation {
        name,
        maker: Maker::Amd(family),
        models,
        allows: &[],
        idle_table: "acpi_idle (_CST)",
        limit: AMD_LIMIT,
        uncore: AMD_UNCORE,
        frequency,
        source: PPR,
    }
}

/// The list, newest first within a maker.
#[rustfmt::skip]
pub const GENERATIONS: &[Generation] = &[
    intel("Clearwater Forest", &[(0xdd, 0xdd)], &[C1, C1E, at("C6S", 0x22, "less than PC6"), at("C6SP", 0x23, "PC6")], NATIVE, LIMIT, TPMI, PSTATE),
    intel("Sierra Forest", &[(0xaf, 0xaf)], &[C1, C1E, at("C6S", 0x22, "less than PC6"), at("C6SP", 0x23, "PC6")], NATIVE, LIMIT, TPMI, PSTATE),
    intel("Granite Rapids", &[(0xad, 0xae)], &[C1, C1E, at("C6", 0x20, "less than PC6"), at("C6P", 0x21, "PC6")], NATIVE, LIMIT, TPMI, PSTATE),
    intel("Sapphire Rapids, Emerald Rapids", &[(0x8f, 0x8f), (0xcf, 0xcf)], SERVER, NATIVE, LIMIT, RATIO, PSTATE),
    intel("Ice Lake server", &[(0x6a, 0x6a), (0x6c, 0x6c)], SERVER, NATIVE, LIMIT, RATIO, PSTATE),
    intel("Skylake, Cascade Lake, Cooper Lake server", &[(0x55, 0x55)], SERVER, NATIVE, LIMIT, RATIO, PSTATE),
    intel("Haswell, Broadwell server", &[(0x3f, 0x3f), (0x4f, 0x4f), (0x56, 0x56)], &[C1, C1E, at("C3", 0x10, "PC3"), at("C6", 0x20, "PC6")], NATIVE, LIMIT, RATIO, "intel_pstate (no HWP on Haswell)"),
    intel("Sandy Bridge, Ivy Bridge server", &[(0x3e, 0x3e), (0x2d, 0x2d)], &[C1, C1E, at("C3", 0x10, "PC3"), at("C6", 0x20, "PC6")], NATIVE, LIMIT, "MSR 0x620", "intel_pstate (no HWP)"),
    intel("Lunar Lake", &[(0xbd, 0xbd)], &[], CST, LIMIT, NO_UNCORE, PSTATE),
    intel("Meteor Lake, Arrow Lake", &[(0xaa, 0xaa), (0xac, 0xac), (0xb5, 0xb5), (0xc5, 0xc6)], &[], "intel_idle (mobile Meteor Lake) or _CST", LIMIT, "intel_uncore_frequency (TPMI)", PSTATE),
    intel("Alder Lake, Raptor Lake", &[(0x97, 0x97), (0x9a, 0x9a), (0xb7, 0xb7), (0xba, 0xba), (0xbf, 0xbf)], CLIENT, "intel_idle or _CST", LIMIT, RATIO, PSTATE),
    intel("Ice Lake, Tiger Lake, Rocket Lake client", &[(0x7d, 0x7e), (0x8c, 0x8d), (0xa7, 0xa7)], CLIENT, CST, LIMIT, RATIO, PSTATE),
    intel("Skylake to Comet Lake client", &[(0x4e, 0x4e), (0x5e, 0x5e), (0x8e, 0x8e), (0x9e, 0x9e), (0xa5, 0xa6)], CLIENT, NATIVE, LIMIT, RATIO, PSTATE),
    intel("Haswell, Broadwell client", &[(0x3c, 0x3d), (0x45, 0x47)], &[], NATIVE, LIMIT, RATIO, "intel_pstate (no HWP on Haswell)"),
    intel("Avoton", &[(0x4d, 0x4d)], &[], NATIVE, LIMIT, NO_UNCORE, "intel_pstate or acpi-cpufreq"),
    intel("Denverton", &[(0x5f, 0x5f)], &[], NATIVE, LIMIT, NO_UNCORE, "acpi-cpufreq (as recorded)"),
    intel("Snow Ridge, Grand Ridge (no package C-states)", &[(0x86, 0x86), (0xb6, 0xb6)], &[], NATIVE, LIMIT, NO_UNCORE, "not known here"),
    intel("Knights Landing, Knights Mill", &[(0x57, 0x57), (0x85, 0x85)], &[], NATIVE, LIMIT, NO_UNCORE, "intel_pstate"),
    amd("EPYC and Ryzen, Zen 5 (family 1Ah)", 0x1a, &[], "amd-pstate from Linux 6.13 on, acpi-cpufreq before"),
    amd("EPYC Milan, Genoa, Bergamo, Ryzen; Zen 3 and 4 (family 19h)", 0x19, &[], AMD_ACPI),
    amd("EPYC Naples, Rome, Ryzen; Zen to Zen 2 (family 17h)", 0x17, &[], AMD_ACPI),
    amd("Hygon Dhyana (family 18h)", 0x18, &[], "acpi-cpufreq"),
    Generation { name: "HiSilicon Kunpeng", maker: Maker::Arm(Some(0x48)), models: &[], allows: &[], idle_table: "ACPI LPI or WFI only", limit: "firmware", uncore: "hisi uncore devfreq, not read", frequency: "cppc_cpufreq", source: "Arm DEN 0022, sysfs" },
    Generation { name: "Ampere Altra, AmpereOne", maker: Maker::Arm(Some(0xc0)), models: &[], allows: &[], idle_table: "ACPI LPI or WFI only", limit: "firmware", uncore: "not known", frequency: "cppc_cpufreq", source: "Arm DEN 0022, sysfs" },
    Generation { name: "Arm (Neoverse, Cortex and others)", maker: Maker::Arm(None), models: &[], allows: &[], idle_table: "psci_idle or ACPI LPI", limit: "firmware (PSCI)", uncore: "not known", frequency: "cppc_cpufreq, scmi or dt", source: "Arm DEN 0022, sysfs" },
];

impl Generation {
    fn is(&self, processor: &Processor) -> bool {
        let has_model = self.models.is_empty()
            || processor.model.is_some_and(|m| self.models.iter().any(|(a, b)| (*a..=*b).contains(&m)));
        match self.maker {
            Maker::Intel => processor.is_intel() && processor.family == Some(6) && has_model,
            Maker::Amd(family) => processor.is_amd() && processor.family == Some(family) && has_model,
            Maker::Arm(Some(implementer)) => processor.implementer == Some(implementer),
            Maker::Arm(None) => processor.implementer.is_some(),
        }
    }

    /// What a state with this description allows, where the description has a hint of the list.
    pub fn pairing(&self, description: &str) -> Option<&'static Allows> {
        let hint = hint(description)?;
        self.allows.iter().find(|a| a.hint == hint)
    }

    /// What is known of the limit, with the states that its register can name on these models.
    pub fn limit_words(&self) -> String {
        let codes =
            self.models.first().filter(|_| self.maker == Maker::Intel).map(|(model, _)| package_limit::codes(*model));
        match codes {
            None => self.limit.into(),
            Some(None) => format!("{}, raw number only", self.limit),
            Some(Some(codes)) => {
                let names: Vec<String> = codes.limits().map(|limit| limit.to_string()).collect();
                format!("{}: {}", self.limit, names.join(" "))
            }
        }
    }

    /// The deepest package state of the list.
    pub fn deepest(&self) -> Option<&'static str> {
        self.allows.last().map(|a| a.package)
    }
}

/// The generation of a processor, where it is in the list.
pub fn of(processor: &Processor) -> Option<&'static Generation> {
    GENERATIONS.iter().find(|g| g.is(processor))
}

/// The number in "MWAIT 0x20" and "ACPI FFH MWAIT 0x60".
fn hint(description: &str) -> Option<u32> {
    let (_, number) = description.rsplit_once("MWAIT 0x")?;
    u32::from_str_radix(number.trim(), 16).ok()
}
