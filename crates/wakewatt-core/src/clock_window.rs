//! Between which frequencies a CPU may run, and which setting bounds it: of several limits the tighter wins.
//!
//! `scaling_max_freq` and `scaling_min_freq` are one pair of several. intel_pstate bounds every policy by `max_perf_pct` and
//! `min_perf_pct`, percentages of the highest turbo frequency, in active and passive mode (intel_pstate_update_perf_limits);
//! with turbo off the base frequency is the limit; the firmware clamps by `bios_limit`; and where the hardware manages the
//! clock, the request register (MSR 0x774) holds levels that a tool may have written past the kernel. Rules, plans and
//! `compare` ask here and read none of these files themselves. The register counts in levels of the processor's own, so it is
//! taken only where its capabilities (0x771) say what the highest one is; under governor performance the driver itself raises
//! the lower level to the upper one, which is the governor's doing and no limit. Sources: Documentation/admin-guide/pm/
//! {cpufreq,intel_pstate}.rst; Intel SDM volume 3, "HWP performance range and dynamic capabilities".

use crate::cpuset::CpuSet;
use crate::fact::{Fact, PerCpu};
use crate::facts::Snapshot;
use crate::facts::freq::Freq;
use crate::units::{Cpu, show_khz};
use std::fmt;
use wakewatt_words::{say, word};

/// A level of Intel's performance registers, where nothing tells better; on hybrids it is less.
const LEVEL_KHZ: u64 = 100_000;

/// CPUs that have the same bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// These CPUs.
    pub cpus: CpuSet,
    /// What the hardware reaches under this driver; none where it is not known.
    pub top_khz: Option<u64>,
    /// The hardware's lowest frequency; none where it is not known.
    pub bottom_khz: Option<u64>,
    /// The upper limits, the tightest first.
    pub upper: Vec<Bound>,
    /// The lower limits, the tightest first.
    pub lower: Vec<Bound>,
}

/// One limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Which setting it is.
    pub by: By,
    /// The frequency it stands for.
    pub khz: u64,
}

/// The setting behind a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum By {
    /// scaling_max_freq or scaling_min_freq of the policy.
    Policy,
    /// max_perf_pct or min_perf_pct of intel_pstate, as a ratio.
    PerfPct(f64),
    /// Turbo is off, so that the base frequency is the limit.
    TurboOff,
    /// bios_limit.
    Firmware,
    /// The request register of the hardware's own management of the clock.
    HwpRequest,
    /// Governor userspace: the clock that a program has set (scaling_setspeed), up and down.
    Userspace,
}

impl Window {
    /// The upper limit in force.
    pub fn max(&self) -> Option<Bound> {
        self.upper.first().copied()
    }
    /// The lower limit in force.
    pub fn min(&self) -> Option<Bound> {
        self.lower.first().copied()
    }
    /// The tightest upper limit that is below what the hardware reaches; one step of 1 % is rounding.
    pub fn lowered(&self) -> Option<Bound> {
        let top = self.top_khz?;
        self.upper.iter().find(|bound| bound.by != By::Userspace).copied().filter(|bound| bound.khz < top - top / 100)
    }
    /// Is the clock set in steps of a table, beyond which turbo lies (acpi-cpufreq)?
    pub fn is_step_table(&self, facts: &Snapshot) -> bool {
        let policies = &facts.freq.policies;
        let drivers = policies.by_cpu(&policies.driver);
        self.cpus.first().and_then(|cpu| drivers.of(cpu)).and_then(Fact::get).is_some_and(|d| d == "acpi-cpufreq")
    }
    /// Do these CPUs go on into turbo beyond the upper limit? They do where it is the highest step of a table.
    pub fn has_turbo_beyond(&self, facts: &Snapshot) -> bool {
        let is_top = self.max().zip(self.top_khz).is_some_and(|(bound, top)| bound.khz >= top);
        is_top && self.is_step_table(facts) && facts.freq.is_turbo_allowed() == Some(true)
    }
    /// The tightest lower limit that is above the hardware's lowest frequency.
    pub fn raised(&self) -> Option<Bound> {
        let bottom = self.bottom_khz?;
        // A percentage of the highest frequency, and the lowest one itself, are rounded up to a level of the hardware.
        let rounding = (bottom / 20).max(self.top_khz.unwrap_or(0) / 50);
        let bound = self.lower.iter().find(|bound| bound.by != By::Userspace)?;
        let is_in_levels = matches!(bound.by, By::HwpRequest | By::PerfPct(_));
        let rounding = if is_in_levels { rounding.max(LEVEL_KHZ) } else { rounding };
        Some(*bound).filter(|bound| bound.khz > bottom + rounding)
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            By::Policy => f.write_str(word!("the policy's limit")),
            By::PerfPct(ratio) => write!(f, "{}", say!("{:.0} % in intel_pstate", ratio * 100.0)),
            By::TurboOff => f.write_str(word!("turbo off")),
            By::Firmware => f.write_str("bios_limit"),
            By::HwpRequest => f.write_str("MSR 0x774"),
            By::Userspace => f.write_str(word!("governor userspace")),
        }
    }
}

impl fmt::Display for Bound {
    /// `1.8GHz (50 % in intel_pstate)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", show_khz(self.khz), self.by)
    }
}

fn of_policy<T: Copy>(column: &PerCpu<T>, policy: u32) -> Option<T> {
    column.of(policy).and_then(Fact::get).copied()
}

/// What a policy's limit is to be held against: under acpi-cpufreq the highest step of the table, since boost lies beyond
/// both; with turbo off the base frequency; else the hardware's own.
fn top_khz(freq: &Freq, policy: u32) -> Option<u64> {
    let policies = &freq.policies;
    if policies.driver.of(policy)?.get()? == "acpi-cpufreq" {
        return policies.available_khz.of(policy)?.get()?.iter().max().copied();
    }
    match freq.is_turbo_allowed() {
        Some(false) => of_policy(&policies.base_khz, policy),
        _ => of_policy(&policies.hardware_max_khz, policy),
    }
}

/// The steps that acpi-cpufreq can choose of; a limit between two of them acts as the one inside. Empty for other drivers.
fn steps(freq: &Freq, policy: u32) -> Vec<u64> {
    let policies = &freq.policies;
    let is_acpi = policies.driver.of(policy).and_then(Fact::get).is_some_and(|driver| driver == "acpi-cpufreq");
    let table = policies.available_khz.of(policy).and_then(Fact::get).filter(|_| is_acpi);
    table.map(|steps| steps.to_vec()).unwrap_or_default()
}

/// A field of a register of this CPU. Of a live machine one CPU of each package is read, and stands for it.
fn register_level(facts: &Snapshot, cpu: Cpu, register: &str, field: &str) -> Option<u64> {
    let package = facts.topology.package_id.of(cpu).and_then(Fact::get);
    let is_alike = |other: Cpu| package.is_some() && facts.topology.package_id.of(other).and_then(Fact::get) == package;
    let column = facts.msr.field(register, field)?;
    let own = column.of(cpu).and_then(Fact::get).copied();
    let sampled = || column.known().find(|(cpus, _)| cpus.iter().any(is_alike)).map(|(_, level)| *level);
    own.or_else(|| facts.msr.is_sample.then(sampled).flatten())
}

/// The frequencies that the request register stands for, lowest and highest; none where it is not in force or not known.
fn requested(facts: &Snapshot, cpu: Cpu, hardware_khz: u64) -> Option<(u64, u64)> {
    let level = |register: &str, field: &str| register_level(facts, cpu, register, field);
    if level("pm_enable", "hwp") == Some(0) {
        return None;
    }
    let highest = level("hwp_capabilities", "highest").filter(|highest| *highest > 0)?;
    let khz = |level: u64| level.min(highest).checked_mul(hardware_khz).map(|all| all / highest);
    Some((khz(level("hwp_request", "min")?)?, khz(level("hwp_request", "max").filter(|max| *max > 0)?)?))
}

/// Every CPU with a frequency policy, grouped.
pub fn of(facts: &Snapshot) -> Vec<Window> {
    let (freq, policies) = (&facts.freq, &facts.freq.policies);
    let pstate = &freq.intel_pstate;
    let is_pstate = |policy| policies.driver.of(policy).and_then(Fact::get).is_some_and(|d| d.starts_with("intel_"));
    let is_performance =
        |policy| policies.governor.of(policy).and_then(Fact::get).is_some_and(|governor| governor == "performance");
    let has_request = facts.msr.value("hwp_request").is_some_and(|value| !value.is_unknown());
    let mut all: Vec<Window> = Vec::new();
    for policy in policies.max_khz.0.iter().flat_map(|group| group.cpus.iter()) {
        let hardware = of_policy(&policies.hardware_max_khz, policy);
        let (mut upper, mut lower) = (Vec::new(), Vec::new());
        let add = |to: &mut Vec<Bound>, by, khz: Option<u64>| to.extend(khz.map(|khz| Bound { by, khz }));
        let (most, least) = (of_policy(&policies.max_khz, policy), of_policy(&policies.min_khz, policy));
        let steps = steps(freq, policy);
        add(
            &mut upper,
            By::Policy,
            most.map(|khz| steps.iter().copied().filter(|step| *step <= khz).max().unwrap_or(khz)),
        );
        add(
            &mut lower,
            By::Policy,
            least.map(|khz| steps.iter().copied().filter(|step| *step >= khz).min().unwrap_or(khz)),
        );
        if is_pstate(policy) {
            // The driver goes no lower than the hardware, whatever the percentage.
            let bottom = of_policy(&policies.hardware_min_khz, policy).unwrap_or(0);
            let n_levels = levels(facts, policy, hardware);
            let of_top = |ratio: f64| share(hardware?, ratio, n_levels).map(|khz| khz.max(bottom));
            for (to, ratio) in [(&mut upper, &pstate.max_perf_ratio), (&mut lower, &pstate.min_perf_ratio)] {
                if let Some(ratio) = ratio.get().copied() {
                    add(to, By::PerfPct(ratio), of_top(ratio));
                }
            }
            if freq.is_turbo_allowed() == Some(false) {
                add(&mut upper, By::TurboOff, of_policy(&policies.base_khz, policy));
            }
        }
        add(&mut upper, By::Firmware, of_policy(&policies.bios_limit_khz, policy));
        let cpus = policies.cpus_of(policy).cloned().unwrap_or_else(|| [policy].into_iter().collect());
        let request = cpus.first().filter(|_| has_request && is_pstate(policy));
        if let Some((least, most)) = request.zip(hardware).and_then(|(cpu, khz)| requested(facts, cpu, khz)) {
            if !is_performance(policy) {
                add(&mut lower, By::HwpRequest, Some(least));
            }
            add(&mut upper, By::HwpRequest, Some(most));
        }
        if let Some(khz) = userspace(facts, policy) {
            let within = |khz: u64| khz.min(most.unwrap_or(khz)).max(least.unwrap_or(0));
            add(&mut upper, By::Userspace, Some(within(khz)));
            add(&mut lower, By::Userspace, Some(within(khz)));
        }
        // Where two are the same, the one that cannot be raised from Linux counts.
        upper.sort_by_key(|bound| (bound.khz, !matches!(bound.by, By::Firmware | By::TurboOff)));
        lower.sort_by_key(|bound| std::cmp::Reverse(bound.khz));
        // A lower limit never beats the upper one.
        if let Some(most) = upper.first().map(|bound| bound.khz) {
            lower.iter_mut().for_each(|bound| bound.khz = bound.khz.min(most));
        }
        let bottom_khz = of_policy(&policies.hardware_min_khz, policy);
        let window = Window { cpus, top_khz: top_khz(freq, policy), bottom_khz, upper, lower };
        match all.iter_mut().find(|known| known.is_like(&window)) {
            Some(known) => known.cpus = known.cpus.union(&window.cpus),
            None => all.push(window),
        }
    }
    all
}

/// The clock that a program has set under governor userspace.
fn userspace(facts: &Snapshot, policy: u32) -> Option<u64> {
    let policies = &facts.freq.policies;
    let is_it = policies.governor.of(policy).and_then(Fact::get).is_some_and(|governor| governor == "userspace");
    of_policy(&policies.setspeed, policy).filter(|_| is_it)?.khz()
}

/// How many levels intel_pstate counts up to the highest clock: the hardware's own, where its capabilities tell, else steps of
/// 100 MHz. What a level of a hybrid is nothing else tells, so a share of it stays exact.
fn levels(facts: &Snapshot, cpu: Cpu, hardware_khz: Option<u64>) -> u64 {
    let own = register_level(facts, cpu, "hwp_capabilities", "highest").filter(|levels| *levels > 0);
    let khz = hardware_khz.unwrap_or(0);
    let is_hybrid = !facts.topology.kinds.is_empty();
    own.unwrap_or(if is_hybrid { khz } else { khz / LEVEL_KHZ }).max(1)
}

/// A share, rounded up to a whole level, as the driver does (intel_pstate_update_perf_limits).
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // percent of some GHz
fn share(khz: u64, ratio: f64, levels: u64) -> Option<u64> {
    let n = (levels as f64 * ratio - 1e-6).ceil() as u64;
    (ratio.is_finite() && ratio >= 0.0).then(|| khz.saturating_mul(n) / levels.max(1)).map(|share| share.min(khz))
}

impl Window {
    fn is_like(&self, other: &Window) -> bool {
        let same = |a: &Window, b: &Window| (a.top_khz, a.bottom_khz) == (b.top_khz, b.bottom_khz);
        same(self, other) && self.upper == other.upper && self.lower == other.lower
    }
}

/// Says so where the limits leave each CPU a single frequency; none where a governor or a preference can still choose.
pub fn only_clock(all: &[Window]) -> Option<String> {
    let one = |window: &Window| Some((window.min()?.khz, window.max()?.khz)).filter(|(low, high)| low == high);
    // What a program sets is no limit: rule.governor speaks of it.
    if all.iter().any(|window| window.upper.iter().any(|bound| bound.by == By::Userspace)) {
        return None;
    }
    let clocks: Vec<u64> = all.iter().map(|window| one(window).map(|(khz, _)| khz)).collect::<Option<_>>()?;
    let khz = *clocks.first()?;
    Some(match clocks.iter().all(|other| *other == khz) {
        true => say!("the limits leave one clock, {}, and nothing to choose", show_khz(khz)),
        false => word!("the limits leave each CPU one clock, and nothing to choose").into(),
    })
}

/// The window of a CPU.
pub fn of_cpu(all: &[Window], cpu: Cpu) -> Option<&Window> {
    all.iter().find(|window| window.cpus.contains(cpu))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Tree;

    /// Two policies under intel_pstate, 800 MHz to 3.6 GHz, with these files besides.
    fn host(more: &str) -> Snapshot {
        let root = "/sys/devices/system/cpu";
        let mut text = format!("//- {root}/present\n0-1\n//- {root}/online\n0-1\n");
        for policy in 0..2 {
            let at = format!("//- {root}/cpufreq/policy{policy}");
            for (file, says) in [
                ("affected_cpus", policy.to_string().as_str()),
                ("related_cpus", policy.to_string().as_str()),
                ("scaling_driver", "intel_pstate"),
                ("scaling_min_freq", "800000"),
                ("scaling_max_freq", "3600000"),
                ("cpuinfo_min_freq", "800000"),
                ("cpuinfo_max_freq", "3600000"),
                ("base_frequency", "2800000"),
            ] {
                text += &format!("{at}/{file}\n{says}\n");
            }
        }
        let modalias = "//- /sys/devices/system/cpu/modalias\ncpu:type:x86,ven0000fam0006mod0055:feature:\n";
        Snapshot::read(&Tree::from_text(&(text + modalias + more)), |_| true)
    }

    fn pstate(file: &str, says: &str) -> String {
        format!("//- /sys/devices/system/cpu/intel_pstate/{file}\n{says}\n")
    }

    fn said(facts: &Snapshot) -> Vec<String> {
        let word = |bound: Option<Bound>| bound.map_or("-".to_string(), |bound| bound.to_string());
        of(facts).iter().map(|w| format!("{}: {} to {}", w.cpus, word(w.raised()), word(w.lowered()))).collect()
    }

    #[test]
    fn userspace_keeps_the_clock_and_is_no_limit() {
        let userspace: String = ["0", "1"]
            .iter()
            .map(|n| {
                let at = format!("//- /sys/devices/system/cpu/cpufreq/policy{n}");
                format!("{at}/scaling_governor\nuserspace\n{at}/scaling_setspeed\n1500000\n")
            })
            .collect();
        let facts = host(&userspace);
        assert_eq!(said(&facts), ["0-1: - to -"]);
        let window = &of(&facts)[0];
        assert_eq!(window.max().unwrap().to_string(), "1.5GHz (governor userspace)");
        assert_eq!((window.min().unwrap().khz, only_clock(&of(&facts))), (1_500_000, None));
    }

    #[test]
    fn a_share_is_rounded_up_to_a_level() {
        assert_eq!(share(3_500_000, 0.5, 35), Some(1_800_000));
        assert_eq!(share(3_600_000, 0.5, 36), Some(1_800_000));
        assert_eq!(share(4_600_000, 0.75, 59), Some(4_600_000 * 45 / 59));
        assert_eq!(share(4_600_000, 0.5, 60), Some(2_300_000), "a whole number of levels stays one");
        assert_eq!(share(3_600_000, 1.0, 36), Some(3_600_000));
    }

    #[test]
    fn the_tighter_of_two_limits_wins() {
        assert_eq!(said(&host("")), ["0-1: - to -"]);
        assert_eq!(said(&host(&pstate("max_perf_pct", "50"))), ["0-1: - to 1.8GHz (50 % in intel_pstate)"]);
        assert_eq!(said(&host(&pstate("min_perf_pct", "100"))), ["0-1: 3.6GHz (100 % in intel_pstate) to -"]);
        let own = "//- /sys/devices/system/cpu/cpufreq/policy1/scaling_max_freq\n1200000\n";
        let both = host(&(pstate("max_perf_pct", "50") + own));
        assert_eq!(said(&both), ["0: - to 1.8GHz (50 % in intel_pstate)", "1: - to 1.2GHz (the policy's limit)"]);
        let firmware = "//- /sys/devices/system/cpu/cpufreq/policy0/bios_limit\n1600000\n";
        assert_eq!(said(&host(firmware)), ["0: - to 1.6GHz (bios_limit)", "1: - to -"]);
    }

    #[test]
    fn the_request_register_counts_where_its_levels_are_known() {
        let registers = |request: &str| {
            let of = |address: &str, value: &str| {
                format!("//- msr {address} cpu0 {value}\n//- msr {address} cpu1 {value}\n")
            };
            of("0x770", "1") + &of("0x771", "8101c24") + &of("0x774", request)
        };
        // Level 0x24 is 36, the highest; 0x12 is half of it.
        assert_eq!(said(&host(&registers("80001208"))), ["0-1: - to 1.8GHz (MSR 0x774)"]);
        assert_eq!(said(&host(&registers("80002408"))), ["0-1: - to -"]);
        assert_eq!(said(&host(&registers("80002424"))), ["0-1: 3.6GHz (MSR 0x774) to -"]);
        let performance: String = (0..2)
            .map(|n| format!("//- /sys/devices/system/cpu/cpufreq/policy{n}/scaling_governor\nperformance\n"))
            .collect();
        let by_governor = host(&(registers("80002424") + &performance));
        assert_eq!(said(&by_governor), ["0-1: - to -"], "governor performance raises the level itself");
    }

    #[test]
    fn with_turbo_off_the_base_frequency_is_all_there_is() {
        let off = host(&pstate("no_turbo", "1"));
        assert_eq!(said(&off), ["0-1: - to -"], "rule.turbo-off speaks of it");
        assert_eq!(of(&off)[0].max().map(|bound| bound.khz), Some(2_800_000));
        let both = host(&(pstate("no_turbo", "1") + &pstate("max_perf_pct", "50")));
        assert_eq!(said(&both), ["0-1: - to 1.8GHz (50 % in intel_pstate)"]);
    }
}
