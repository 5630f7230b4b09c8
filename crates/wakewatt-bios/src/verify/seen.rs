//! What Linux has of a thing that the BIOS decides, and whether the two agree.
//!
//! Sources: the kernel's documentation of cpuidle, cpufreq and intel_uncore_frequency; that a state of intel_idle's own table
//! which ACPI does not list is registered but off by default (so "C-states off" may show as `default_status` only); that the
//! kernel turns an energy bias of 0 into 6 at boot ("Set to 'normal', was 'performance'"). A word that leaves the choice to the
//! firmware (`auto`) agrees with anything, so nothing is said about it.

use super::Verdict;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::units::show_khz;

/// Both sides, and what follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Comparison {
    pub(super) tables: Option<String>,
    pub(super) linux: Option<String>,
    pub(super) verdict: Verdict,
    pub(super) says: String,
}

fn told(is_same: bool, linux: impl Into<String>, says: impl Into<String>) -> Option<Comparison> {
    let verdict = if is_same { Verdict::Agrees } else { Verdict::Differs };
    Some(Comparison { tables: None, linux: Some(linux.into()), verdict, says: says.into() })
}

fn unknown(says: &str) -> Option<Comparison> {
    Some(Comparison { tables: None, linux: None, verdict: Verdict::CannotTell, says: says.into() })
}

/// Compares one concept; none where Linux has nothing to say about it, or the word says nothing.
pub(super) fn compare(id: &str, word: Option<&str>, facts: &Snapshot) -> Option<Comparison> {
    match (id, word?) {
        ("c-states", word @ ("on" | "off")) => idle(word == "on", facts),
        ("c1e", "off") => c1e(facts),
        ("monitor-mwait", word @ ("on" | "off")) => mwait(word == "on", facts),
        ("turbo", word @ ("on" | "off")) => turbo(word == "on", facts),
        // The other words have no number that every maker means.
        ("epb", "performance") => bias(facts),
        ("uncore", word @ ("max" | "dynamic")) => uncore(word == "max", facts),
        ("smt", word @ ("on" | "off")) => smt(word == "on", facts),
        ("numa", word) => nodes(word, facts),
        ("memory-frequency", "max") => memory(facts),
        _ => None,
    }
}

/// Deeper than C1 and its enhanced form.
fn is_deep(name: &str) -> bool {
    !matches!(name, "POLL" | "C1" | "C1E" | "C1_ACPI" | "WFI")
}

fn idle(is_on: bool, facts: &Snapshot) -> Option<Comparison> {
    let Some(driver) = facts.idle.driver.get() else { return unknown("which idle driver is in charge is not known") };
    let deep: Vec<_> = facts.idle.states.iter().filter(|state| is_deep(&state.label())).collect();
    let names = |states: &[&wakewatt_core::facts::idle::IdleState]| {
        states.iter().map(|state| state.label()).collect::<Vec<_>>().join(", ")
    };
    let enabled: Vec<_> = deep.iter().copied().filter(|s| s.is_disabled.known().any(|(_, off)| !off)).collect();
    let by_default: Vec<_> =
        deep.iter().copied().filter(|s| s.is_enabled_by_default.known().any(|(_, on)| *on)).collect();
    let is_default_known = deep.iter().any(|state| state.is_enabled_by_default.known().next().is_some());
    let has_own_table = driver == "intel_idle";
    let linux = match (deep.is_empty(), enabled.is_empty()) {
        (true, _) => format!("{driver}: nothing deeper than C1"),
        (_, true) => format!("{driver}: {} are there, all disabled", names(&deep)),
        _ => format!("{driver}: {} can be chosen", names(&enabled)),
    };
    // What ACPI lists shows as the default of a state that intel_idle knows anyway, and is all that acpi_idle has.
    let tables = match (has_own_table, is_default_known) {
        (true, true) if !deep.is_empty() => match by_default.is_empty() {
            true => {
                Some("states deeper than C1 are off by default, as intel_idle has those that ACPI does not list".into())
            }
            false => Some(format!("{} are on by default", names(&by_default))),
        },
        (false, _) if driver == "acpi_idle" => match deep.is_empty() {
            true => Some("ACPI lists nothing deeper than C1".into()),
            false => Some(format!("ACPI lists {}", names(&deep))),
        },
        _ => None,
    };
    let says = match (is_on, enabled.is_empty()) {
        (false, true) => "C-states are off in the BIOS, and Linux chooses none deeper than C1".to_string(),
        (false, false) if has_own_table => {
            "BIOS says C-states off, intel_idle ignores it: it has a table of its own; limit them with tune or intel_idle.max_cstate".into()
        }
        (false, false) => "BIOS says C-states off, and Linux still offers deep ones; was the machine booted since?".into(),
        (true, false) => "C-states are on in the BIOS, and Linux may choose deep ones".into(),
        (true, true) if deep.is_empty() => {
            "C-states are on in the BIOS, but Linux has none deeper than C1; see the kernel's parameters (inspect boot)".into()
        }
        (true, true) => "C-states are on in the BIOS, but all deep ones are disabled in Linux".into(),
    };
    let compared = told(is_on != enabled.is_empty(), linux, says)?;
    Some(Comparison { tables, ..compared })
}

fn c1e(facts: &Snapshot) -> Option<Comparison> {
    let state = facts.idle.states.iter().find(|state| state.label() == "C1E");
    let is_offered = state.is_some_and(|state| state.is_disabled.known().any(|(_, off)| !off));
    match (is_offered, facts.idle.driver.get()?) {
        (true, driver) => {
            told(false, format!("{driver} offers C1E"), "BIOS says C1E off, and the driver still chooses it")
        }
        (false, driver) => {
            told(true, format!("{driver} offers no C1E"), "C1E is off in the BIOS, and Linux does not choose it")
        }
    }
}

fn mwait(is_on: bool, facts: &Snapshot) -> Option<Comparison> {
    let Some(has) = facts.topology.has_flag("monitor") else { return unknown("the processor's flags are not known") };
    let linux = if has { "the processor shows monitor" } else { "the processor shows no monitor" };
    let says = match (is_on, has) {
        (true, true) | (false, false) => "both say the same",
        (true, false) => "BIOS says MONITOR/MWAIT on, and the kernel does not see it; was the machine booted since?",
        (false, true) => "BIOS says MONITOR/MWAIT off, and the kernel still sees it; was the machine booted since?",
    };
    told(is_on == has, linux, says)
}

fn turbo(is_on: bool, facts: &Snapshot) -> Option<Comparison> {
    let Some(allowed) = facts.freq.is_turbo_allowed() else { return unknown("no switch of the kernel tells of turbo") };
    let says = match (is_on, allowed) {
        (true, true) | (false, false) => "both say the same",
        (true, false) => "BIOS allows turbo, Linux has switched it off (no_turbo or boost)",
        (false, true) => {
            "BIOS says turbo off, and the kernel's switch says it is allowed; was the machine booted since?"
        }
    };
    told(is_on == allowed, if allowed { "turbo is allowed" } else { "turbo is off" }, says)
}

fn bias(facts: &Snapshot) -> Option<Comparison> {
    let Some(now) = facts.freq.energy_perf_bias.uniform() else { return unknown("no single energy bias is known") };
    let says = match *now {
        0 => "both say the same".to_string(),
        6 => "BIOS says performance (0), Linux has 6: the kernel turns a firmware's 0 into 6 at boot".into(),
        now => {
            format!("BIOS says performance (0), Linux has {now}: set since the boot, or not the BIOS's to set")
        }
    };
    told(*now == 0, format!("energy_perf_bias {now}"), says)
}

fn uncore(is_max: bool, facts: &Snapshot) -> Option<Comparison> {
    let limits = |d: &wakewatt_core::facts::uncore::UncoreDomain| Some((*d.min_khz.get()?, *d.max_khz.get()?));
    let all: Vec<(u64, u64)> = facts.uncore.domains.iter().filter_map(limits).collect();
    let (Some(low), Some(high)) = (all.iter().map(|l| l.0).min(), all.iter().map(|l| l.1).max()) else {
        return unknown("the kernel shows no uncore limits (intel_uncore_frequency)");
    };
    let is_fixed = all.iter().all(|(low, high)| low == high);
    let linux = format!("{} to {}", show_khz(low), show_khz(high));
    let says = match (is_max, is_fixed) {
        (true, true) | (false, false) => "both say the same",
        (true, false) => "BIOS says uncore at its maximum, and the limits in force let it fall",
        (false, true) => "BIOS says uncore dynamic, and the limits in force hold it at one clock",
    };
    told(is_max == is_fixed, linux, says)
}

fn smt(is_on: bool, facts: &Snapshot) -> Option<Comparison> {
    let Some(active) = facts.topology.is_smt_active.get() else { return unknown("whether SMT is active is not known") };
    let control = facts.topology.smt_control.get().map_or(String::new(), |control| format!(" (control: {control})"));
    let says = match (is_on, *active) {
        (true, true) | (false, false) => "both say the same",
        (true, false) => "BIOS allows two threads per core, Linux has switched them off",
        (false, true) => "BIOS says one thread per core, Linux runs two; was the machine booted since?",
    };
    told(is_on == *active, format!("SMT is {}{control}", if *active { "active" } else { "not active" }), says)
}

fn nodes(word: &str, facts: &Snapshot) -> Option<Comparison> {
    let expected = match word {
        "off" | "nps1" => 1,
        "snc2" | "nps2" => 2,
        "snc4" | "nps4" => 4,
        _ => return None,
    };
    let n_packages = facts.topology.packages().len();
    // Nodes without CPUs are memory of another kind.
    let n_nodes = facts.memory.nodes.iter().filter(|n| n.cpus.get().is_some_and(|cpus| !cpus.is_empty())).count();
    if n_packages == 0 || n_nodes == 0 {
        return unknown("packages or memory nodes are not known");
    }
    let linux = format!("{n_nodes} nodes with CPUs on {n_packages} packages");
    let is_same = n_nodes == expected * n_packages;
    let says = match is_same {
        true => "both say the same".to_string(),
        false => format!("BIOS says {expected} per package, Linux has {linux}; interleaving, or not booted since?"),
    };
    told(is_same, linux, says)
}

fn memory(facts: &Snapshot) -> Option<Comparison> {
    let n_dimms =
        facts.dimms.populated().filter(|dimm| dimm.rated_mts.is_some() && dimm.configured_mts.is_some()).count();
    if n_dimms == 0 {
        return unknown("SMBIOS tells no memory speeds (root reads them)");
    }
    let n_below = facts.dimms.below_rated().count();
    let tables = Some(format!("SMBIOS: {n_below} of {n_dimms} modules below their rated speed"));
    let says = match n_below {
        0 => "memory runs at its rated speed",
        _ => {
            "BIOS says maximum, and memory runs below its rating: what the processor and two modules per channel allow"
        }
    };
    // Maximum means what processor and channel allow, and nobody tells how much that is.
    let verdict = if n_below == 0 { Verdict::Agrees } else { Verdict::CannotTell };
    Some(Comparison { tables, linux: None, verdict, says: says.into() })
}
