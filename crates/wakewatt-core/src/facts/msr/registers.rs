//! The registers that explain what sysfs does not, as a table: address, scope, and the fields worth showing.
//!
//! Names and addresses follow arch/x86/include/asm/msr-index.h; field positions follow the Intel SDM volume 4 and AMD's
//! PPRs. Where models differ, only the raw field is given: the meaning of the package C-state limit, for one, depends
//! on the model ([`super::Msr::package_limit`]).

/// Who has the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// Intel.
    Intel,
    /// AMD and Hygon.
    Amd,
}

/// How many of it there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One per CPU.
    Cpu,
    /// One per core, seen by both siblings.
    Core,
    /// One per package.
    Package,
}

/// How a field's number is to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One bit: yes or no.
    Flag,
    /// A number.
    Count,
    /// A multiple of the 100 MHz bus clock.
    Ratio100Mhz,
    /// Changes by itself: a temperature below the limit, a counter, a state of now.
    Live,
}

/// Some bits of a register.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Stable word.
    pub id: &'static str,
    /// For people.
    pub label: &'static str,
    /// Lowest bit.
    pub low: u32,
    /// Highest bit.
    pub high: u32,
    /// How to show it.
    pub form: Form,
}

impl Field {
    /// Cuts it out of the register.
    pub fn of(&self, value: u64) -> u64 {
        let width = (self.high + 1).saturating_sub(self.low);
        let mask = if width >= 64 { u64::MAX } else { (1 << width) - 1 };
        value.checked_shr(self.low).unwrap_or(0) & mask
    }
}

/// One register.
#[derive(Clone, Copy, Debug)]
pub struct Register {
    /// The number given to RDMSR.
    pub address: u32,
    /// Stable word.
    pub id: &'static str,
    /// What it says, in one line.
    pub help: &'static str,
    /// Who has it.
    pub vendor: Vendor,
    /// How many there are.
    pub scope: Scope,
    /// The whole register counts or changes by itself.
    pub is_counter: bool,
    /// The fields worth showing.
    pub fields: &'static [Field],
}

const fn flag(id: &'static str, label: &'static str, bit: u32) -> Field {
    Field { id, label, low: bit, high: bit, form: Form::Flag }
}
const fn live(id: &'static str, label: &'static str, bit: u32) -> Field {
    Field { id, label, low: bit, high: bit, form: Form::Live }
}
const fn bits(id: &'static str, label: &'static str, low: u32, high: u32, form: Form) -> Field {
    Field { id, label, low, high, form }
}
const fn intel(address: u32, id: &'static str, scope: Scope, help: &'static str, fields: &'static [Field]) -> Register {
    Register { address, id, help, vendor: Vendor::Intel, scope, is_counter: false, fields }
}
const fn amd(address: u32, id: &'static str, scope: Scope, help: &'static str, fields: &'static [Field]) -> Register {
    Register { address, id, help, vendor: Vendor::Amd, scope, is_counter: false, fields }
}
const fn counting(register: Register) -> Register {
    Register { is_counter: true, ..register }
}

/// Thermal status: state bits and their sticky logs.
const THERMAL: &[Field] = &[
    live("thermal", "too hot now", 0),
    flag("thermal_log", "was too hot", 1),
    live("prochot", "PROCHOT or forced now", 2),
    flag("prochot_log", "PROCHOT or forced before", 3),
    live("critical", "critical temperature now", 4),
    flag("critical_log", "was at critical temperature", 5),
    live("power_limit", "power limited now", 10),
    flag("power_limit_log", "was power limited", 11),
    bits("below_limit_celsius", "degrees below the limit", 16, 22, Form::Live),
];

/// The same for a core, which also knows currents and other domains.
const CORE_THERMAL: &[Field] = &[
    live("thermal", "too hot now", 0),
    flag("thermal_log", "was too hot", 1),
    live("prochot", "PROCHOT or forced now", 2),
    flag("prochot_log", "PROCHOT or forced before", 3),
    live("critical", "critical temperature now", 4),
    flag("critical_log", "was at critical temperature", 5),
    live("power_limit", "power limited now", 10),
    flag("power_limit_log", "was power limited", 11),
    live("current_limit", "current limited now", 12),
    flag("current_limit_log", "was current limited", 13),
    live("cross_domain", "limited by another domain now", 14),
    flag("cross_domain_log", "was limited by another domain", 15),
    bits("below_limit_celsius", "degrees below the limit", 16, 22, Form::Live),
];

/// Why the frequency is limited: bits that most models share; the log of each is 16 bits higher.
const LIMIT_REASONS: &[Field] = &[
    live("prochot", "PROCHOT now", 0),
    live("thermal", "heat now", 1),
    flag("prochot_log", "was PROCHOT", 16),
    flag("thermal_log", "was heat", 17),
];

/// Unit registers of RAPL, the same for both vendors.
const UNITS: &[Field] = &[
    bits("power", "power unit, 1/2^n W", 0, 3, Form::Count),
    bits("energy", "energy unit, 1/2^n J", 8, 12, Form::Count),
    bits("time", "time unit, 1/2^n s", 16, 19, Form::Count),
];

/// Performance levels in one byte each, HWP and CPPC requests alike.
const REQUEST: &[Field] = &[
    bits("min", "lowest level asked for", 0, 7, Form::Count),
    bits("max", "highest level asked for", 8, 15, Form::Count),
    bits("desired", "desired level, 0 is autonomous", 16, 23, Form::Count),
    bits("epp", "energy preference", 24, 31, Form::Count),
];

/// Every register that is read, in reading order.
pub const REGISTERS: &[Register] = &[
    intel(
        0xe2,
        "pkg_cst_config",
        Scope::Core,
        "package C-state limit and demotion",
        &[
            bits("limit", "package C-state limit (raw)", 0, 3, Form::Count),
            flag("lock", "locked by firmware", 15),
            flag("c3_demotion", "C3 demotion", 25),
            flag("c1_demotion", "C1 demotion", 26),
            flag("c3_undemotion", "C3 undemotion", 27),
            flag("c1_undemotion", "C1 undemotion", 28),
        ],
    ),
    intel(
        0x1fc,
        "power_ctl",
        Scope::Package,
        "C1E promotion, prewake, energy efficiency",
        &[
            flag("bidirectional_prochot", "PROCHOT may come from outside", 0),
            flag("c1e", "C1 becomes C1E", 1),
            flag("energy_efficiency_disable", "energy-efficiency optimisation off", 19),
            flag("race_to_halt_disable", "race to halt off", 20),
            flag("prewake_disable", "C-state prewake off", 30),
        ],
    ),
    intel(
        0x1b0,
        "energy_perf_bias",
        Scope::Cpu,
        "energy performance bias",
        &[bits("bias", "0 performance, 15 power", 0, 3, Form::Count)],
    ),
    intel(0x770, "pm_enable", Scope::Package, "hardware-managed P-states", &[flag("hwp", "HWP on", 0)]),
    intel(
        0x771,
        "hwp_capabilities",
        Scope::Cpu,
        "performance levels of the core",
        &[
            bits("highest", "highest level", 0, 7, Form::Count),
            bits("guaranteed", "guaranteed level", 8, 15, Form::Live),
            bits("efficient", "most efficient level", 16, 23, Form::Live),
            bits("lowest", "lowest level", 24, 31, Form::Count),
        ],
    ),
    intel(0x774, "hwp_request", Scope::Cpu, "what the kernel asks of HWP", REQUEST),
    intel(
        0x772,
        "hwp_request_pkg",
        Scope::Package,
        "the same for the package, where the core's request defers to it",
        REQUEST,
    ),
    intel(
        0xce,
        "platform_info",
        Scope::Package,
        "base and lowest frequency",
        &[
            bits("base", "base frequency", 8, 15, Form::Ratio100Mhz),
            bits("lowest", "most efficient frequency", 40, 47, Form::Ratio100Mhz),
        ],
    ),
    intel(
        0x1ad,
        "turbo_ratio_limit",
        Scope::Package,
        "turbo by number of busy cores",
        &[
            bits("first", "fewest busy cores", 0, 7, Form::Ratio100Mhz),
            bits("last", "most busy cores", 56, 63, Form::Ratio100Mhz),
        ],
    ),
    intel(
        0x1a4,
        "misc_feature_control",
        Scope::Core,
        "prefetchers that are switched off; which bit is which depends on the model",
        &[],
    ),
    intel(0x1ae, "turbo_ratio_cores", Scope::Package, "core counts of those steps (servers)", &[]),
    intel(
        0x620,
        "uncore_ratio_limit",
        Scope::Package,
        "uncore frequency limits",
        &[bits("max", "highest", 0, 6, Form::Ratio100Mhz), bits("min", "lowest", 8, 14, Form::Ratio100Mhz)],
    ),
    counting(intel(0x19c, "therm_status", Scope::Core, "heat of the core, and what limited it", CORE_THERMAL)),
    counting(intel(0x1b1, "package_therm_status", Scope::Package, "heat of the package", THERMAL)),
    counting(intel(0x64f, "core_limit_reasons", Scope::Package, "why frequency is limited (servers)", LIMIT_REASONS)),
    counting(intel(0x690, "core_limit_reasons_old", Scope::Package, "the same on older models", LIMIT_REASONS)),
    intel(0x606, "rapl_unit", Scope::Package, "units of the power registers", UNITS),
    intel(
        0x610,
        "pkg_power_limit",
        Scope::Package,
        "package power limits PL1 and PL2",
        &[
            flag("pl1_on", "PL1 in force", 15),
            flag("pl1_clamp", "PL1 may go below the asked frequency", 16),
            flag("pl2_on", "PL2 in force", 47),
            flag("lock", "locked by firmware", 63),
        ],
    ),
    intel(0x614, "pkg_power_info", Scope::Package, "TDP of the package", &[]),
    counting(intel(
        0x34,
        "smi_count",
        Scope::Core,
        "system management interrupts, each a latency spike",
        &[bits("count", "SMIs since reset", 0, 31, Form::Live)],
    )),
    amd(0xc001_0299, "amd_rapl_unit", Scope::Package, "units of AMD's energy registers", UNITS),
    amd(
        0xc001_02b0,
        "amd_cppc_cap1",
        Scope::Cpu,
        "performance levels of the core",
        &[
            bits("lowest", "lowest level", 0, 7, Form::Count),
            bits("lowest_nonlinear", "lowest nonlinear level", 8, 15, Form::Count),
            bits("nominal", "nominal level", 16, 23, Form::Count),
            bits("highest", "highest level", 24, 31, Form::Count),
        ],
    ),
    amd(
        0xc001_02b3,
        "amd_cppc_req",
        Scope::Cpu,
        "what the kernel asks of CPPC",
        &[
            bits("max", "highest level asked for", 0, 7, Form::Count),
            bits("min", "lowest level asked for", 8, 15, Form::Count),
            bits("desired", "desired level, 0 is autonomous", 16, 23, Form::Count),
            bits("epp", "energy preference", 24, 31, Form::Count),
        ],
    ),
];

/// The register of this id.
pub fn register(id: &str) -> Option<&'static Register> {
    REGISTERS.iter().find(|register| register.id == id)
}
