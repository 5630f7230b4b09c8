//! What a term comes to on this machine: the row of the idle table, limits, residency, the package it lies in.

use super::Here;
use crate::clock_window::{self, Bound};
use crate::enterable::{self, Cause, Enterable};
use crate::fact::{Fact, PerCpu};
use crate::facts::Snapshot;
use crate::facts::cpuinfo::Processor;
use crate::facts::idle::IdleState;
use crate::glossary::{Family, Only, Term};
use crate::package_states;
use crate::sheet::{Cell, Row};
use crate::units::{show_khz, show_ns, three_digits};
use wakewatt_words::{say, word};

/// What was found.
#[derive(Default)]
pub(super) struct Told {
    pub(super) here: Vec<Here>,
    pub(super) cannot_tell: Vec<String>,
}

impl Told {
    fn say(&mut self, what: impl Into<String>, says: impl Into<String>) {
        self.here.push(Here { what: what.into(), says: says.into() });
    }
    /// Rows of the sheets whose id starts so.
    fn rows(&mut self, facts: &Snapshot, starts: &[&str]) {
        // What another maker's driver would say is not unknown here, but nothing.
        let processor = facts.topology.processor();
        let is_foreign = |id: &str| {
            (id.starts_with("freq.intel_pstate") && processor.is_some_and(|p| !p.is_intel()))
                || (id.starts_with("freq.amd_pstate") && processor.is_some_and(|p| !p.is_amd()))
        };
        let is_wanted = |row: &Row| starts.iter().any(|s| row.id.starts_with(s)) && !is_foreign(&row.id);
        for (_, sheet) in facts.sheets() {
            for row in sheet.rows.into_iter().filter(is_wanted) {
                match &row.cell {
                    Ok(cell) => {
                        let on = row.cpus.as_ref().filter(|c| facts.cpus.online.get() != Some(*c));
                        let says = on.map_or_else(|| cell.to_string(), |cpus| say!("{cell} on {cpus}"));
                        self.say(row.label, says);
                    }
                    Err(gap) => self.cannot_tell.push(say!("{label}: {gap}", label = row.label)),
                }
            }
        }
    }
}

/// What a term comes to; `word` is the spelling that was asked for.
pub(super) fn of_term(term: &Term, word: &str, facts: &Snapshot) -> Told {
    let mut told = Told::default();
    if let Some(why) = foreign(term, facts) {
        told.say(word!("not here"), why);
        return told;
    }
    // Which package states there are, who limits them and what counts them is known of Intel's processors only.
    let is_intel = facts.topology.processor().is_none_or(Processor::is_intel);
    if term.family == Family::PackageState && !is_intel {
        let says = word!("Linux neither shows nor limits package states of this maker's processors");
        told.say(word!("not here"), says);
        return told;
    }
    if term.family == Family::PackageState && facts.virt.is_guest() == Some(true) {
        told.say(word!("not here"), word!("a guest: the package's states are its host's business"));
        return told;
    }
    match term.family {
        Family::CoreState => core_state(&mut told, term, word, facts),
        Family::PackageState => package(&mut told, facts),
        Family::SystemState => system(&mut told, facts),
        Family::Kernel => kernel(&mut told, term, facts),
        Family::Frequency if term.name == "frequency limits" => limits(&mut told, facts),
        Family::Frequency => {
            let has = |flag: &str| facts.topology.has_flag(flag);
            if term.name == "EPP" && has("hwp") == Some(true) && has("hwp_epp") == Some(false) {
                told.say(
                    word!("here"),
                    word!("the processor takes no preference (no hwp_epp): its words write the bias, EPB"),
                );
            }
            told.rows(facts, rows_of(term.name));
        }
        Family::Energy | Family::Hardware => {
            told.rows(facts, rows_of(term.name));
            // The kernel's names of the two limits, and of what the package is made for.
            let files: &[&str] = match term.name {
                "PL1" => &["long_term.limit", "long_term.window"],
                "PL2" => &["short_term.limit", "short_term.window"],
                "TDP" => &["long_term.max"],
                _ => &[],
            };
            let zones =
                facts.power.zones.iter().flat_map(|zone| files.iter().map(move |f| format!("power.{}.{f}", zone.id)));
            let zones: Vec<String> = zones.collect();
            told.rows(facts, &zones.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
    if told.here.is_empty() && told.cannot_tell.is_empty() {
        told.cannot_tell.push(word!("nothing on this machine tells more about it").into());
    }
    told
}

/// The bounds of the clock that are in force, and by which setting.
fn limits(told: &mut Told, facts: &Snapshot) {
    for window in clock_window::of(facts) {
        let word = |bound: Option<Bound>| bound.map_or_else(|| word!("not known").into(), |bound| bound.to_string());
        let on = say!("in force on {cpus}", cpus = window.cpus.named());
        let high = match window.max().filter(|_| window.has_turbo_beyond(facts)) {
            Some(bound) => say!("{} and turbo", show_khz(bound.khz)),
            None => word(window.max()),
        };
        told.say(on, say!("{low} to {high}", low = word(window.min())));
    }
    told.rows(facts, &["freq.intel_pstate.max_perf", "freq.intel_pstate.min_perf"]);
}

/// Rows of the sheets that belong to a term of frequency, energy or hardware.
fn rows_of(name: &str) -> &'static [&'static str] {
    match name {
        "HWP" => &["msr.pm_enable.hwp", "msr.hwp_request.", "freq.driver"],
        "CPPC" => &["freq.cppc", "msr.amd_cppc_cap1.", "freq.driver"],
        "EPP" => &["freq.epp", "freq.energy_performance_preference"],
        "EPB" => &["freq.epb", "msr.energy_perf_bias."],
        "turbo" => &["freq.boost", "freq.intel_pstate.no_turbo", "msr.turbo_ratio_limit."],
        "frequency governor" => &["freq.governor", "freq.driver"],
        "intel_pstate" | "amd-pstate" => &["freq.driver", "freq.intel_pstate", "freq.amd_pstate"],
        "uncore" | "ELC" => &["uncore."],
        "SST" => &["freq.base", "freq.guaranteed"],
        "RAPL" => &["power."],
        "TDP" => &["msr.tdp"],
        "PL1" => &["msr.pl1", "msr.pkg_power_limit.pl1"],
        "PL2" => &["msr.pl2", "msr.pkg_power_limit.pl2"],
        "PROCHOT" => &["msr.package_therm_status.prochot", "msr.power_ctl.bidirectional"],
        "SMT" => &["topology.cpus_per_core", "topology.smt_"],
        "SNC" => &["memory.nodes", "topology.package", "topology.n_dies"],
        "memory-only node" => &["memory.node"],
        "MSR 0x1FC" => &["msr.power_ctl"],
        _ => &[],
    }
}

/// The states of that name, and those whose name begins with it and goes on in letters (C6: C6P).
fn core_state(told: &mut Told, term: &Term, word: &str, facts: &Snapshot) {
    let is_it = |name: &str| {
        let is_alias = term.aliases.iter().any(|a| a.eq_ignore_ascii_case(name)) && !term.aliases.contains(&"LPI");
        name.eq_ignore_ascii_case(term.name) || name.eq_ignore_ascii_case(word.trim()) || is_alias
    };
    let found: Vec<&IdleState> = facts.idle.states.iter().filter(|s| is_it(&s.label())).collect();
    for state in &found {
        told.here.extend(of_state(state, facts));
    }
    if !found.is_empty() {
        return;
    }
    let has: Vec<String> = facts.idle.states.iter().map(IdleState::label).collect();
    if has.is_empty() {
        told.cannot_tell.push(word!("no idle table is readable here").into());
        return;
    }
    told.say(word!("here"), say!("no state of that name; this machine has {states}", states = has.join(", ")));
    // The driver may call it otherwise.
    for (name, what) in called_here(term, facts) {
        told.say(what, name.clone());
        told.here.extend(facts.idle.states.iter().filter(|s| s.label() == name).flat_map(|s| of_state(s, facts)));
    }
}

/// The states of this machine that are what a term names, and how that is known.
fn called_here(term: &Term, facts: &Snapshot) -> Vec<(String, &'static str)> {
    let pairings = package_states::read(facts).pairings.into_iter();
    let same = pairings.filter(|p| p.core_state.eq_ignore_ascii_case(term.name));
    let mut called: Vec<(String, &'static str)> = same.map(|p| (p.state, word!("the driver calls it"))).collect();
    let is_amd = facts.topology.processor().is_some_and(Processor::is_amd);
    let has_c2 = facts.idle.states.iter().any(|s| s.label() == AMD_CC6);
    if is_amd && has_c2 && matches!(term.name, "C6" | "CC6") {
        called.push((AMD_CC6.into(), word!("AMD calls it CC6; it is usually reached through")));
    }
    called
}

/// The ACPI state through which AMD's servers usually go to CC6; their firmware lists no deeper one.
const AMD_CC6: &str = "C2";

/// Why a maker's own word means nothing on this processor; none where it may.
fn foreign(term: &Term, facts: &Snapshot) -> Option<String> {
    let processor = facts.topology.processor()?;
    let (whose, is_its) = match term.only? {
        Only::Intel => ("Intel", processor.is_intel()),
        Only::Amd => ("AMD", processor.is_amd()),
        Only::Arm => ("Arm", processor.implementer.is_some()),
    };
    (!is_its).then(|| say!("a word of {whose}; this machine's processor is {processor}"))
}

/// One row of the idle table: claims, whether it may be chosen, how much of the sleep was in it.
pub(super) fn of_state(state: &IdleState, facts: &Snapshot) -> Vec<Here> {
    let mut told = Told::default();
    let name = state.label();
    let mut of = |what: String, values: &PerCpu<u64>| {
        let said: Vec<String> = values.known().map(|(cpus, ns)| with_cpus(show_ns(*ns), cpus, facts)).collect();
        if !said.is_empty() {
            told.say(what, said.join(", "));
        }
    };
    of(say!("{name} exit latency (claimed)"), &state.exit_latency_ns);
    of(say!("{name} target residency (claimed)"), &state.target_residency_ns);
    if let Some((_, text)) = state.description.known().next() {
        told.say(say!("{name} description"), text.clone());
    }
    let all = enterable::of(facts);
    let of_it = |group: &Enterable| group.states.iter().find(|s| s.row.index == state.index).cloned();
    let says: Vec<String> = all
        .iter()
        .filter_map(|group| {
            let barriers: Vec<String> = of_it(group)?.barriers.iter().map(|b| b.words()).collect();
            let says = match (group.spins(), barriers.is_empty()) {
                // The kernel's own loop, which neither asks the idle driver nor counts.
                (Some(Cause::BootArgument(argument)), _) => {
                    say!("no: booted with {argument}, idle CPUs spin in a loop outside this table")
                }
                (_, true) if of_it(group)?.is_in_vain() => {
                    word!("asked for in vain: the other thread of the core may not enter it").into()
                }
                (_, true) => word!("yes").into(),
                (_, false) => barriers.join("; "),
            };
            Some(with_cpus(says, &group.cpus, facts))
        })
        .collect();
    if !says.is_empty() {
        told.say(say!("{name} can be entered"), says.join(", "));
    }
    if let Some(says) = share(state, facts) {
        told.say(say!("{name} since boot"), says);
    }
    let pairings = package_states::read(facts).pairings;
    if let Some(pairing) = pairings.iter().find(|p| p.state == name) {
        told.say(say!("{name} lets the package go to"), pairing.package_state.clone());
    }
    told.here
}

/// "61.2 % of all idle time, entered 1234 times"; none where no time was counted.
fn share(state: &IdleState, facts: &Snapshot) -> Option<String> {
    let sum = |values: &PerCpu<u64>| {
        values.known().map(|(cpus, v)| v.saturating_mul(cpus.len() as u64)).fold(0, u64::saturating_add)
    };
    let all = facts.idle.states.iter().map(|s| sum(&s.time_ns)).fold(0, u64::saturating_add);
    let (own, n) = (sum(&state.time_ns), sum(&state.n_usage));
    #[allow(clippy::cast_precision_loss)] // a share for people
    let percent = own as f64 / all as f64 * 100.0;
    (all > 0).then(|| say!("{share} % of all idle time, entered {n} times", share = three_digits(percent)))
}

fn with_cpus(text: String, cpus: &crate::cpuset::CpuSet, facts: &Snapshot) -> String {
    if facts.cpus.online.get() == Some(cpus) { text } else { say!("{text} on {cpus}") }
}

fn package(told: &mut Told, facts: &Snapshot) {
    let spinning = enterable::spinning(&enterable::of(facts));
    if facts.cpus.running().next().is_some() && facts.cpus.running().all(|cpu| spinning.contains(cpu)) {
        told.say(word!("here"), word!("no package sleeps: every idle CPU spins"));
    }
    let all = package_states::read(facts);
    for row in all.sheet().rows.into_iter().filter(|row| row.id != "idle.together.cannot_tell") {
        if let Ok(cell) = row.cell {
            told.say(row.label, cell.to_string());
        }
    }
    // By name first, then the register it is decoded from.
    told.rows(facts, &["msr.package_limit"]);
    told.rows(facts, &["msr.pkg_cst_config"]);
    told.cannot_tell.extend(all.cannot_tell);
    told.cannot_tell.push(
        word!(
            "how long the package was really there: sudo wakewatt watch --sources package shows what the hardware \
             counted"
        )
        .into(),
    );
}

fn system(told: &mut Told, facts: &Snapshot) {
    let names: Vec<String> = facts.idle.states.iter().map(IdleState::label).collect();
    match names.is_empty() {
        true => told.cannot_tell.push(word!("no idle table is readable here, so its Cx are not known").into()),
        false => {
            told.say(word!("this machine runs, in"), say!("G0/S0; its Cx are {states}", states = names.join(", ")));
        }
    }
    told.rows(facts, &["idle.driver", "idle.governor"]);
}

fn kernel(told: &mut Told, term: &Term, facts: &Snapshot) {
    match term.name {
        "exit latency" => table(told, facts, |name| say!("{name} exit latency (claimed)"), |s| &s.exit_latency_ns),
        "target residency" => {
            table(told, facts, |name| say!("{name} target residency (claimed)"), |s| &s.target_residency_ns);
        }
        "PM QoS" => {
            told.rows(facts, &["qos.", "holders./dev/cpu"]);
            for group in enterable::of(facts).iter().filter(|group| !group.states.is_empty()) {
                told.say(say!("comes to, on {cpus}", cpus = group.cpus.named()), group.resolution().to_string());
            }
        }
        "cpu_wakeup_latency" => told.rows(facts, &["qos.wakeup", "holders./dev/cpu_wakeup"]),
        "sched_ext" => told.rows(facts, &["kernel.sched_ext"]),
        "tick" => told.rows(facts, &["boot.nohz_full", "boot.cmdline"]),
        "timer migration" => told.rows(facts, &["kernel.version", "kernel.release"]),
        "pm_qos_resume_latency boot parameter" => match &facts.boot.cmdline {
            Fact::Known(line) => {
                let value = line.value("pm_qos_resume_latency_us").map_or(word!("not given at this boot"), |v| v);
                told.say(word!("command line"), Cell::text(value).to_string());
            }
            Fact::Gap(gap) => told.cannot_tell.push(gap.to_string()),
        },
        "idle governor" => told.rows(facts, &["idle.driver", "idle.governor", "freq.governor"]),
        _ => told.rows(facts, &["idle.driver", "idle.governor"]),
    }
}

fn table(told: &mut Told, facts: &Snapshot, what: impl Fn(&str) -> String, of: impl Fn(&IdleState) -> &PerCpu<u64>) {
    for state in &facts.idle.states {
        let said: Vec<String> = of(state).known().map(|(cpus, ns)| with_cpus(show_ns(*ns), cpus, facts)).collect();
        if !said.is_empty() {
            told.say(what(&state.label()), said.join(", "));
        }
    }
}
