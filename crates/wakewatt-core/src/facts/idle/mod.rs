//! CPU idle states: what the kernel may choose from, what it chose so far, and who decides.
//!
//! `cpuN/cpuidle/stateK/*` (Documentation/admin-guide/pm/cpuidle.rst). Latency and residency are the driver's or
//! BIOS's claims in microseconds, not measurements. `usage` and `time` count the state *entered* as Linux sees it;
//! hardware may have gone shallower. `above`: woke before the target residency; `below`: slept long enough for a
//! deeper one. The table may differ between CPUs (hybrid parts), so every attribute is grouped over CPUs.
//! `default_status` tells what driver and BIOS chose from what somebody changed later. A machine may have no driver:
//! then the folder is missing and the architecture's own idle routine (HLT on x86) runs uncounted.

pub mod absence;
mod checksum;
pub mod source;

use super::{Cpus, Domain, cpus::ROOT};
use crate::cpuset::CpuSet;
use crate::fact::{Fact, Gap, PerCpu, fact, parse};
use crate::sheet::{Cell, Sheet};
use crate::source::{ErrorKind, Source};
use crate::units::Cpu;
use serde::Serialize;
use source::TableSource;
use std::collections::{BTreeMap, HashMap};
use wakewatt_words::{say, word};

/// The kernel has ten states at most (CPUIDLE_STATE_MAX); a folder that lists an index far beyond is no idle folder.
const MAX_STATES: u32 = 64;

/// Idle driver, governor and states.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Idle {
    /// intel_idle, acpi_idle, haltpoll, psci_idle …; `none` when there is no driver.
    pub driver: Fact<String>,
    /// The governor in charge: menu, teo, ladder, haltpoll.
    pub governor: Fact<String>,
    /// What it could be switched to.
    pub governors_available: Fact<Vec<String>>,
    /// Firmware may turn a C6 request into C1 (kernels after 6.12, SPR and later).
    pub is_c1_demotion_on: Fact<bool>,
    /// haltpoll: how long a guest polls before HLT.
    pub guest_halt_poll_ns: Fact<u64>,
    /// Who wrote the table of states, and what its numbers are worth before anyone has measured; none where there is no table,
    /// or its driver is not known.
    pub source: Option<TableSource>,
    /// The states by index, as the CPUs have them.
    pub states: Vec<IdleState>,
    /// Running CPUs that have no idle state at all.
    pub cpus_without_states: CpuSet,
    /// Why the states of some CPU could not be listed, which are then missing here.
    pub unlisted_because: Option<Gap>,
}

/// One state index, over all CPUs that have it.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdleState {
    /// Linux's index; not portable between hosts.
    pub index: u32,
    /// C1, C1E, C6, POLL …
    pub name: PerCpu<String>,
    /// The driver's description, e.g. `MWAIT 0x20`.
    pub description: PerCpu<String>,
    /// Claimed worst-case time to leave it.
    pub exit_latency_ns: PerCpu<u64>,
    /// Claimed stay from which it pays.
    pub target_residency_ns: PerCpu<u64>,
    /// Disabled by somebody now.
    pub is_disabled: PerCpu<bool>,
    /// Enabled when the driver registered it?
    pub is_enabled_by_default: PerCpu<bool>,
    /// How many times the state was entered since boot.
    pub n_usage: PerCpu<u64>,
    /// Time spent (whole microseconds in the kernel).
    pub time_ns: PerCpu<u64>,
    /// Woke too early for it.
    pub n_above: PerCpu<u64>,
    /// Could have gone deeper.
    pub n_below: PerCpu<u64>,
    /// The driver refused the entry.
    pub n_rejected: PerCpu<u64>,
}

impl IdleState {
    /// The name on a CPU, or `state3` where it cannot be read.
    pub fn name_on(&self, cpu: Cpu) -> String {
        self.name.of(cpu).and_then(Fact::get).cloned().unwrap_or_else(|| format!("state{}", self.index))
    }
    /// The name, if all CPUs agree, else the names joined with a slash.
    pub fn label(&self) -> String {
        let mut names: Vec<&str> = self.name.known().map(|(_, n)| n.as_str()).collect();
        names.dedup();
        if names.is_empty() { format!("state{}", self.index) } else { names.join("/") }
    }
}

/// One row of a CPU's idle table, as rules want it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TableRow {
    /// Index of the state.
    pub index: u32,
    /// Name of the state, as the driver calls it.
    pub name: String,
    /// Claimed exit latency; none where unreadable.
    pub exit_latency_ns: Option<u64>,
    /// Claimed target residency; none where unreadable.
    pub target_residency_ns: Option<u64>,
    /// May the governor choose it now? None where unreadable.
    pub is_enabled: Option<bool>,
}

impl TableRow {
    /// A polling state: no exit latency, the CPU spins. Arm's WFI may claim none either, and sleeps.
    pub fn is_polling(&self) -> bool {
        let is_wfi = self.name.starts_with("LPI") || self.name == "WFI";
        self.name == "POLL" || (self.index == 0 && self.exit_latency_ns == Some(0) && !is_wfi)
    }
}

impl Idle {
    /// The distinct idle tables and the CPUs that have each: one on most machines, two on hybrid ones.
    pub fn tables(&self) -> Vec<(CpuSet, Vec<TableRow>)> {
        let mut by_cpu: BTreeMap<Cpu, Vec<TableRow>> = BTreeMap::new();
        for state in &self.states {
            let (latency, residency) = (state.exit_latency_ns.by_cpu(), state.target_residency_ns.by_cpu());
            let disabled = state.is_disabled.by_cpu();
            for group in &state.name.0 {
                for cpu in group.cpus.iter() {
                    by_cpu.entry(cpu).or_default().push(TableRow {
                        index: state.index,
                        name: group.fact.get().cloned().unwrap_or_else(|| format!("state{}", state.index)),
                        exit_latency_ns: latency.get(&cpu).map(|ns| **ns),
                        target_residency_ns: residency.get(&cpu).map(|ns| **ns),
                        is_enabled: disabled.get(&cpu).map(|d| !**d),
                    });
                }
            }
        }
        let mut tables: Vec<(CpuSet, Vec<TableRow>)> = Vec::new();
        let mut known: HashMap<Vec<TableRow>, usize> = HashMap::new();
        for (cpu, table) in by_cpu {
            let at = *known.entry(table).or_insert_with_key(|table| {
                tables.push((CpuSet::new(), table.clone()));
                tables.len() - 1
            });
            tables[at].0.insert(cpu);
        }
        tables
    }
}

impl Domain for Idle {
    const TITLE: &'static str = "Idle states";
    const HELP: &'static str =
        "idle driver, governor, every idle state: claimed latency, residency, use, disabled or not";

    fn read(src: &dyn Source, cpus: &Cpus) -> Idle {
        // Listing each CPU's folder is the only way to see a table that differs between CPUs.
        let mut have: BTreeMap<u32, Vec<Cpu>> = BTreeMap::new();
        let mut without = CpuSet::new();
        let mut unlisted_because = None;
        // Without sysfs (a container that hides it) nothing was looked at, and nobody is without.
        let has_sysfs = src.read(&format!("{ROOT}/online")).is_ok();
        for cpu in cpus.all() {
            let folder = format!("{ROOT}/cpu{cpu}/cpuidle");
            let listing = src.list(&folder);
            if let Some(gap) = Gap::of_closed_folder(&folder, &listing) {
                unlisted_because.get_or_insert(gap);
                continue;
            }
            // Text of another tool on some CPUs says nothing of the others.
            if let (true, Err(error)) = (src.is_imported(), &listing) {
                unlisted_because.get_or_insert(Gap::from_read(&folder, error));
                continue;
            }
            let is_left_out = listing.as_ref().err().is_some_and(|e| e.kind == ErrorKind::NotRecorded);
            let names = listing.unwrap_or_default();
            let states: Vec<u32> = names.iter().filter_map(|n| n.strip_prefix("state")?.parse().ok()).collect();
            if states.is_empty() && (has_sysfs || is_left_out) && cpus.online.get().is_some_and(|s| s.contains(cpu)) {
                without.insert(cpu);
            }
            for state in states {
                if state < MAX_STATES {
                    have.entry(state).or_default().push(cpu);
                } else {
                    let why = format!("state{state} is listed, and the kernel has ten states at most");
                    unlisted_because.get_or_insert_with(|| Gap::malformed(&folder, why));
                }
            }
        }
        let mut idle = Idle {
            driver: fact(src, &format!("{ROOT}/cpuidle/current_driver"), parse::word),
            governor: match fact(src, &format!("{ROOT}/cpuidle/current_governor"), parse::word) {
                Fact::Gap(_) => fact(src, &format!("{ROOT}/cpuidle/current_governor_ro"), parse::word),
                known => known,
            },
            governors_available: fact(src, &format!("{ROOT}/cpuidle/available_governors"), parse::words),
            is_c1_demotion_on: fact(src, &format!("{ROOT}/cpuidle/intel_c1_demotion"), parse::flag),
            guest_halt_poll_ns: fact(src, "/sys/module/haltpoll/parameters/guest_halt_poll_ns", parse::number),
            source: None,
            states: have.into_iter().map(|(index, cpus)| read_state(src, index, &cpus)).collect(),
            cpus_without_states: without,
            unlisted_because,
        };
        idle.source = TableSource::of(&idle, source::is_given_at_boot(src));
        idle
    }

    fn show(&self, sheet: &mut Sheet) {
        sheet.fact("idle.driver", word!("driver"), &self.driver, |v| Cell::text(v));
        sheet.fact("idle.governor", "governor", &self.governor, |v| Cell::text(v));
        sheet.fact("idle.governors_available", word!("governors available"), &self.governors_available, |v| {
            Cell::text(v.join(" "))
        });
        sheet.fact("idle.c1_demotion", word!("C1 demotion"), &self.is_c1_demotion_on, |v| Cell::Flag(*v));
        sheet.fact("idle.guest_halt_poll", word!("guest halt poll"), &self.guest_halt_poll_ns, |v| Cell::Ns(*v));
        if let Some(gap) = &self.unlisted_because {
            sheet.fact("idle.unlisted", word!("states of every CPU"), &Fact::<u64>::Gap(gap.clone()), |n| {
                Cell::Count(*n)
            });
        }
        if !self.cpus_without_states.is_empty() {
            sheet.say(
                "idle.cpus_without_states",
                word!("CPUs without idle states"),
                Cell::text(&self.cpus_without_states),
            );
        }
        if let Some(source) = &self.source {
            sheet.say("idle.source", word!("idle table from"), Cell::text(source.words()));
        }
        for state in &self.states {
            let name = state.label();
            if let Some(hardware) = state.hardware_name().filter(|hardware| *hardware != name) {
                sheet.say(format!("idle.{name}.hardware"), say!("{name} by its MWAIT hint"), Cell::text(hardware));
            }
            let id = |what: &str| format!("idle.{name}.{what}");
            sheet.per_cpu(&id("exit_latency"), &say!("{name} exit latency (claimed)"), &state.exit_latency_ns, |v| {
                Cell::Ns(*v)
            });
            sheet.per_cpu(
                &id("target_residency"),
                &say!("{name} target residency (claimed)"),
                &state.target_residency_ns,
                |v| Cell::Ns(*v),
            );
            sheet.per_cpu(&id("disabled"), &say!("{name} disabled"), &state.is_disabled, |v| Cell::Flag(*v));
            sheet.per_cpu(&id("default"), &say!("{name} enabled by default"), &state.is_enabled_by_default, |v| {
                Cell::Flag(*v)
            });
            sheet.total(&id("usage"), &say!("{name} times entered"), &state.n_usage, |v| Cell::Count(*v));
            sheet.total(&id("time"), &say!("{name} time"), &state.time_ns, |v| Cell::Ns(*v));
            sheet.total(&id("above"), &say!("{name} woke too early"), &state.n_above, |v| Cell::Count(*v));
            sheet.total(&id("below"), &say!("{name} could have gone deeper"), &state.n_below, |v| Cell::Count(*v));
            sheet.total(&id("rejected"), &say!("{name} refused by the driver"), &state.n_rejected, |v| Cell::Count(*v));
        }
    }
}

fn read_state(src: &dyn Source, index: u32, cpus: &[Cpu]) -> IdleState {
    let path = |file: &'static str| move |cpu: Cpu| format!("{ROOT}/cpu{cpu}/cpuidle/state{index}/{file}");
    let all = || cpus.iter().copied();
    IdleState {
        index,
        name: PerCpu::read(src, all(), path("name"), parse::word),
        description: PerCpu::read(src, all(), path("desc"), parse::word),
        exit_latency_ns: PerCpu::read(src, all(), path("latency"), parse::us_to_ns),
        target_residency_ns: PerCpu::read(src, all(), path("residency"), parse::us_to_ns),
        is_disabled: PerCpu::read(src, all(), path("disable"), |t| parse::number(t).map(|n| n != 0)),
        is_enabled_by_default: PerCpu::read(src, all(), path("default_status"), parse::flag),
        n_usage: PerCpu::read(src, all(), path("usage"), parse::number),
        time_ns: PerCpu::read(src, all(), path("time"), parse::us_to_ns),
        n_above: PerCpu::read(src, all(), path("above"), parse::number),
        n_below: PerCpu::read(src, all(), path("below"), parse::number),
        n_rejected: PerCpu::read(src, all(), path("rejected"), parse::number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Tree;

    /// A hybrid machine: CPU 0 has C6 at 170us, CPU 1 at 290us; CPU 2 has no idle folder.
    const HYBRID: &str = "//- /sys/devices/system/cpu/online\n0-2\n//- /sys/devices/system/cpu/present\n0-2\n
        //- /sys/devices/system/cpu/cpuidle/current_driver\nintel_idle\n
        //- /sys/devices/system/cpu/cpu0/cpuidle/state1/name\nC6\n//- /sys/devices/system/cpu/cpu0/cpuidle/state1/latency\n170\n
        //- /sys/devices/system/cpu/cpu0/cpuidle/state1/disable\n0\n//- /sys/devices/system/cpu/cpu0/cpuidle/state1/usage\n5\n
        //- /sys/devices/system/cpu/cpu1/cpuidle/state1/name\nC6\n//- /sys/devices/system/cpu/cpu1/cpuidle/state1/latency\n290\n
        //- /sys/devices/system/cpu/cpu1/cpuidle/state1/disable\n1\n//- /sys/devices/system/cpu/cpu1/cpuidle/state1/usage!denied\n";

    #[test]
    fn tables_differ_between_cpus_and_gaps_are_not_zero() {
        let tree = Tree::from_text(HYBRID);
        let idle = Idle::read(&tree, &Cpus::read(&tree));
        assert_eq!(idle.driver.get().unwrap(), "intel_idle");
        assert_eq!(idle.cpus_without_states.to_string(), "2");
        let tables = idle.tables();
        assert_eq!(tables.len(), 2);
        assert_eq!((tables[0].1[0].exit_latency_ns, tables[0].1[0].is_enabled), (Some(170_000), Some(true)));
        assert_eq!((tables[1].1[0].exit_latency_ns, tables[1].1[0].is_enabled), (Some(290_000), Some(false)));
        assert_eq!(tables[0].1[0].target_residency_ns, None, "an unread residency is not 0");
        assert!(idle.states[0].n_usage.of(1).unwrap().gap().is_some());
    }
}
