//! Which idle states a CPU can still enter, and what keeps it from the others.
//!
//! The only answer to that question in wakewatt: rules, plans, `explain`, `inspect` and the preflight all ask here. The
//! kernel leaves a state out while its `disable` is 1, whoever wrote it; while its exit latency is above the tightest
//! latency limit (two global devices and the CPU's own, drivers/cpuidle/governor.c, cpuidle_governor_latency_req). ladder begins in the first state that sleeps, whatever its switch and
//! any limit but 0, and climbs one state at a time, so that a disabled one hides those behind it. If no state is left
//! the governors enter state 0 all the same: POLL on x86, and the CPU spins; WFI on Arm, and it sleeps (menu, where state 0 itself is disabled, enters the
//! first state that is not, over any limit but 0). haltpoll looks at neither: only a limit of 0 keeps it from halting. `idle=poll` (x86) and
//! `nohlt` (elsewhere) make idle CPUs spin whatever the table says. Without a driver the architecture's idle routine halts
//! the CPU, uncounted. What hardware makes of a request is a second question ([`Instead`]): C1 demotion, C1E promotion and the
//! package limit turn it into another state, and a core sleeps no deeper than what each of its threads asks for (SDM 3A,
//! "C-State Handling for Logical Processors"). Sources: Documentation/admin-guide/pm/cpuidle.rst; kernel/sched/idle.c;
//! drivers/cpuidle/governors/{ladder,menu,teo}.c.

use crate::budget::{self, Claim, DEEP_NS, Resolution};
use crate::cpuset::CpuSet;
use crate::facts::Snapshot;
use crate::facts::idle::{IdleState, TableRow};
use crate::facts::msr::package_limit::PackageLimit;
use crate::facts::pm_qos::PmQos;
use crate::sheet::{Cell, Sheet};
use crate::units::{Cpu, LatencyLimit};
use std::collections::{BTreeMap, HashMap};
use wakewatt_words::{say, word};

/// CPUs whose idle states are alike and are kept from them by the same things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enterable {
    /// These CPUs.
    pub cpus: CpuSet,
    /// Their idle states by index; empty without a driver.
    pub states: Vec<State>,
    /// The tightest latency limit in force, as far as it could be read.
    pub limit: LatencyLimit,
    /// What such a CPU does when it has nothing to do.
    pub when_idle: WhenIdle,
    /// The state that is entered where none can be, by its place in `states`.
    fallback: Option<usize>,
}

/// A state, and what keeps these CPUs from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Its row of the idle table.
    pub row: TableRow,
    /// Why it cannot be entered; empty where it can.
    pub barriers: Vec<Barrier>,
    /// What the hardware may enter instead.
    pub instead: Vec<Instead>,
}

/// Why the kernel does not enter a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Barrier {
    /// `disable` is 1, and the driver had registered the state as enabled.
    Disabled,
    /// `disable` is 1 since the driver registered it: the firmware leaves the state out, or intel_idle.states_off does.
    OffByDefault,
    /// The global latency limit is below its exit latency.
    GlobalLimit(LatencyLimit),
    /// The CPU's own latency limit is below its exit latency.
    OwnLimit(LatencyLimit),
    /// The ladder governor cannot pass a disabled shallower state.
    Ladder,
    /// A boot argument makes idle CPUs spin.
    BootArgument,
}

/// What hardware may enter where the kernel asks for a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instead {
    /// C1, by C1 demotion.
    C1,
    /// C1E, by the bit that promotes C1.
    C1e,
    /// The core state without the package: the package limit is this.
    NoPackageState(PackageLimit),
    /// A shallower one: the core's other thread may not ask for one as deep.
    OtherThread,
}

/// What an idle CPU does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhenIdle {
    /// It enters one of the states that are left.
    Sleeps,
    /// It spins.
    Spins(Cause),
    /// There is no idle driver: the architecture's own routine halts it.
    Halts,
    /// The idle states could not be read.
    Unknown,
}

/// Why an idle CPU spins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// This argument on the command line.
    BootArgument(&'static str),
    /// A latency limit below every state that is enabled.
    Limit(LatencyLimit),
    /// Every sleeping state is disabled.
    Disabled,
    /// Some sleeping states are disabled, and the latency limit excludes the others.
    DisabledAndLimit(LatencyLimit),
    /// The driver has registered no sleeping state.
    NoSleepState,
}

impl State {
    /// Can it be entered?
    pub fn is_enterable(&self) -> bool {
        self.barriers.is_empty()
    }
    /// Does the core's other thread keep the core from it?
    pub fn is_in_vain(&self) -> bool {
        self.instead.contains(&Instead::OtherThread)
    }
}

impl Barrier {
    /// In words, after the name of the state.
    pub fn words(self) -> String {
        match self {
            Barrier::Disabled => word!("disabled after boot").into(),
            Barrier::OffByDefault => word!("off by default (firmware or driver)").into(),
            Barrier::GlobalLimit(limit) => say!("excluded by the global latency limit of {limit}"),
            Barrier::OwnLimit(limit) => say!("excluded by the CPU's own latency limit of {limit}"),
            Barrier::Ladder => word!("out of reach of ladder: a shallower state is disabled").into(),
            Barrier::BootArgument => word!("not used: a boot argument makes idle CPUs spin").into(),
        }
    }
}

impl Cause {
    /// In words, behind "spin when idle: ".
    pub fn words(&self) -> String {
        match self {
            Cause::BootArgument(argument) => say!("booted with {argument}"),
            Cause::Limit(limit) => say!("the latency limit {limit} excludes every sleeping state"),
            Cause::Disabled => word!("every sleeping state is disabled").into(),
            Cause::DisabledAndLimit(limit) => {
                say!("some sleeping states are disabled, and the latency limit {limit} excludes the others")
            }
            Cause::NoSleepState => word!("the idle driver has registered no sleeping state").into(),
        }
    }
}

impl Enterable {
    /// The states that can be entered, by index.
    pub fn open(&self) -> impl Iterator<Item = &State> {
        self.states.iter().filter(|state| state.is_enterable())
    }
    /// The sleeping state that an idle CPU enters at most; none where it spins, halts without a driver, or is not known.
    pub fn deepest(&self) -> Option<&TableRow> {
        if self.when_idle != WhenIdle::Sleeps {
            return None;
        }
        let open = self.open().filter(|state| !state.row.is_polling()).map(|state| &state.row).last();
        // No state is within the limits: the governor's fallback is entered, and here it sleeps.
        open.or_else(|| Some(&self.states.get(self.fallback?)?.row))
    }
    /// The sleeping state that the core enters at most, as its other threads may; none where it stays awake.
    pub fn deepest_of_core(&self) -> Option<&TableRow> {
        let asked = self.deepest()?;
        let mut open = self.open().filter(|state| !state.row.is_polling()).peekable();
        match open.peek() {
            Some(_) => open.filter(|state| !state.is_in_vain()).last().map(|state| &state.row),
            None => Some(asked),
        }
    }
    /// Does an idle CPU spin?
    pub fn spins(&self) -> Option<&Cause> {
        match &self.when_idle {
            WhenIdle::Spins(cause) => Some(cause),
            _ => None,
        }
    }
    /// What the limit in force comes to, as a budget is shown.
    pub fn resolution(&self) -> Resolution {
        let table: Vec<TableRow> = self.states.iter().map(|state| state.row.clone()).collect();
        let resolution = budget::resolve_table(self.limit, &self.cpus, &table);
        let row = self.deepest().filter(|_| self.open().next().is_none());
        let Some((row, ns)) = row.and_then(|row| Some((row, row.exit_latency_ns?))) else { return resolution };
        let deepest = Some(Claim { name: row.name.clone(), exit_latency_ns: ns });
        let excluded = resolution.excluded.into_iter().filter(|claim| claim.name != row.name).collect();
        Resolution { deepest, is_polling: false, excluded, ..resolution }
    }
    /// The state of this name, if these CPUs have it.
    pub fn state(&self, name: &str) -> Option<&State> {
        self.states.iter().find(|state| state.row.name == name)
    }
}

/// The limit that user space put on a CPU, as far as known: the smallest of the global ones and its own.
pub fn in_force(qos: &PmQos, cpu: Cpu) -> LatencyLimit {
    global(qos).min(own(qos, cpu))
}

fn global(qos: &PmQos) -> LatencyLimit {
    let limit = |fact: &crate::fact::Fact<LatencyLimit>| fact.get().copied().unwrap_or(LatencyLimit::None);
    limit(&qos.global).min(limit(&qos.wakeup))
}

fn own(qos: &PmQos, cpu: Cpu) -> LatencyLimit {
    qos.per_cpu.of(cpu).and_then(|fact| fact.get()).copied().unwrap_or(LatencyLimit::None)
}

/// The boot argument that makes idle CPUs spin, if there is one. `nohlt` does nothing on x86, and `idle=` only there.
fn spinning_argument(facts: &Snapshot) -> Option<&'static str> {
    let is_x86 = facts.topology.processor().is_none_or(|p| p.implementer.is_none());
    match is_x86 {
        true => (facts.boot.argument("idle") == Some("poll")).then_some("idle=poll"),
        false => facts.boot.cmdline.get().is_some_and(|line| line.has("nohlt")).then_some("nohlt"),
    }
}

/// May any CPU enter this state?
pub fn is_open(all: &[Enterable], name: &str) -> bool {
    all.iter().any(|group| group.state(name).is_some_and(State::is_enterable))
}

/// The CPUs that may enter this state.
pub fn cpus_that_enter(all: &[Enterable], index: u32) -> CpuSet {
    let enters = |group: &&Enterable| group.open().any(|state| state.row.index == index);
    all.iter().filter(enters).fold(CpuSet::new(), |set, group| set.union(&group.cpus))
}

/// The state that takes longest to leave of those that any core may enter, with its claim.
pub fn deepest(all: &[Enterable]) -> Option<Claim> {
    let claim = |row: &TableRow| Some(Claim { name: row.name.clone(), exit_latency_ns: row.exit_latency_ns? });
    all.iter().filter_map(|group| claim(group.deepest_of_core()?)).max_by_key(|claim| claim.exit_latency_ns)
}

/// How long it claims to take.
pub fn deepest_ns(all: &[Enterable]) -> Option<u64> {
    deepest(all).map(|claim| claim.exit_latency_ns)
}

/// The CPUs that enter a sleeping state when idle.
pub fn sleeping(all: &[Enterable]) -> CpuSet {
    all.iter().filter(|group| group.deepest().is_some()).fold(CpuSet::new(), |set, group| set.union(&group.cpus))
}

/// May some CPU enter a state that takes long to leave?
pub fn has_deep_state(all: &[Enterable]) -> bool {
    deepest_ns(all).is_some_and(|ns| ns >= DEEP_NS)
}

/// The CPUs that spin when idle, for any cause.
pub fn spinning(all: &[Enterable]) -> CpuSet {
    all.iter().filter(|group| group.spins().is_some()).fold(CpuSet::new(), |set, group| set.union(&group.cpus))
}

/// What is asked of every CPU, by CPU.
struct Columns<'a> {
    argument: Option<&'static str>,
    is_ladder: bool,
    is_haltpoll: bool,
    is_menu: bool,
    global: LatencyLimit,
    own: HashMap<Cpu, &'a LatencyLimit>,
    default: Vec<(u32, HashMap<Cpu, &'a bool>)>,
    c1_demotion: CpuSet,
    c1e_promotion: CpuSet,
    package_limit: HashMap<Cpu, &'a PackageLimit>,
}

impl Columns<'_> {
    fn of(facts: &Snapshot) -> Columns<'_> {
        let is_set = |register: &str, field: &str| {
            facts.msr.field(register, field).map_or_else(CpuSet::new, |bits| bits.cpus_where(|bit| *bit != 0))
        };
        let is_governor = |name: &str| facts.idle.governor.get().is_some_and(|governor| governor == name);
        // The file tells of one CPU, the registers of each; of a live machine those of one CPU per package are read.
        let by_register = is_set("pkg_cst_config", "c1_demotion");
        let is_filed = facts.idle.is_c1_demotion_on.get() == Some(&true);
        let c1_demotion = match !by_register.is_empty() && !facts.msr.is_sample {
            true => by_register,
            false if is_filed || (facts.msr.is_sample && !by_register.is_empty()) => facts.cpus.running().collect(),
            false => CpuSet::new(),
        };
        Columns {
            argument: spinning_argument(facts),
            is_ladder: is_governor("ladder"),
            is_haltpoll: is_governor("haltpoll"),
            is_menu: is_governor("menu"),
            global: global(&facts.qos),
            own: facts.qos.per_cpu.by_cpu(),
            default: facts.idle.states.iter().map(|s| (s.index, s.is_enabled_by_default.by_cpu())).collect(),
            c1_demotion,
            c1e_promotion: is_set("power_ctl", "c1e"),
            package_limit: facts.msr.package_limit.by_cpu(),
        }
    }

    fn own(&self, cpu: Cpu) -> LatencyLimit {
        self.own.get(&cpu).map_or(LatencyLimit::None, |limit| **limit)
    }

    fn states(&self, cpu: Cpu, table: &[TableRow]) -> Vec<State> {
        let own = self.own(cpu);
        let mut is_cut = false;
        // Where ladder begins, and comes back to.
        let first = table.iter().find(|row| !row.is_polling()).filter(|_| self.is_ladder).map(|row| row.index);
        let state = |row: &TableRow| {
            let mut barriers = Vec::new();
            if self.argument.is_some() && !row.is_polling() {
                barriers.push(Barrier::BootArgument);
            }
            let is_first = first == Some(row.index);
            if row.is_enabled == Some(false) && !self.is_haltpoll && !is_first {
                let default = self.default.iter().find(|(index, _)| *index == row.index);
                let is_on = default.and_then(|(_, by_cpu)| by_cpu.get(&cpu)).map(|on| **on);
                barriers.push(if is_on == Some(false) { Barrier::OffByDefault } else { Barrier::Disabled });
            }
            for (limit, barrier) in [(self.global, Barrier::GlobalLimit(self.global)), (own, Barrier::OwnLimit(own))] {
                let is_asked = !(self.is_haltpoll || is_first) || limit == LatencyLimit::Poll;
                if is_asked && row.exit_latency_ns.is_some_and(|ns| !limit.allows(ns)) {
                    barriers.push(barrier);
                }
            }
            if is_cut {
                barriers.push(Barrier::Ladder);
            }
            is_cut |= first.is_some_and(|first| row.index > first) && row.is_enabled == Some(false);
            State { row: row.clone(), barriers, instead: self.instead(cpu, row) }
        };
        table.iter().map(state).collect()
    }

    fn instead(&self, cpu: Cpu, row: &TableRow) -> Vec<Instead> {
        let mut all = Vec::new();
        let is_deep = row.exit_latency_ns.is_some_and(|ns| ns >= DEEP_NS);
        if is_deep && self.c1_demotion.contains(cpu) {
            all.push(Instead::C1);
        }
        if budget::is_plain_c1(&row.name) && self.c1e_promotion.contains(cpu) {
            all.push(Instead::C1e);
        }
        match self.package_limit.get(&cpu) {
            Some(limit) if is_deep && limit.allows_pc6() == Some(false) => all.push(Instead::NoPackageState(**limit)),
            _ => {}
        }
        all
    }
}

/// Every running CPU that could be looked at, grouped.
pub fn of(facts: &Snapshot) -> Vec<Enterable> {
    let columns = Columns::of(facts);
    let mut by_cpu: BTreeMap<Cpu, Vec<State>> = BTreeMap::new();
    // The files of a CPU stay while it is offline.
    let running: CpuSet = facts.cpus.running().collect();
    for (cpus, table) in facts.idle.tables() {
        by_cpu.extend(cpus.and(&running).iter().map(|cpu| (cpu, columns.states(cpu, &table))));
    }
    note_other_threads(facts, &columns, &mut by_cpu);
    let mut all: Vec<Enterable> = Vec::new();
    for (cpu, states) in by_cpu {
        let limit = columns.global.min(columns.own(cpu));
        if let Some(group) = all.iter_mut().find(|group| group.limit == limit && group.states == states) {
            group.cpus.insert(cpu);
            continue;
        }
        let fallback = fallback(&states, limit, columns.is_menu);
        let when_idle = when_idle(&states, limit, columns.argument, fallback);
        all.push(Enterable { cpus: [cpu].into_iter().collect(), states, limit, when_idle, fallback });
    }
    let without = &facts.idle.cpus_without_states;
    if !without.is_empty() {
        let when_idle = match (columns.argument, facts.idle.no_limit_acts_because()) {
            (Some(argument), _) => WhenIdle::Spins(Cause::BootArgument(argument)),
            (None, Some(_)) => WhenIdle::Halts,
            (None, None) => WhenIdle::Unknown,
        };
        let (states, limit) = (Vec::new(), LatencyLimit::None);
        all.push(Enterable { cpus: without.clone(), states, limit, when_idle, fallback: None });
    }
    all
}

/// Marks the states that a core does not enter because one of its threads may not ask for one as deep.
fn note_other_threads(facts: &Snapshot, columns: &Columns<'_>, by_cpu: &mut BTreeMap<Cpu, Vec<State>>) {
    let depth = |cpu: Cpu, states: &Vec<State>| {
        let open = states.iter().filter(|s| s.is_enterable()).map(|s| s.row.index).max();
        // Where none is left, the governor enters one all the same.
        let limit = columns.global.min(columns.own(cpu));
        let fallback = || Some(states.get(fallback(states, limit, columns.is_menu)?)?.row.index);
        open.or_else(fallback).unwrap_or(0)
    };
    for core in facts.topology.cores().iter().filter(|core| core.len() > 1) {
        // A thread that is offline, or of which nothing is known, keeps the core from nothing.
        let Some(shallowest) = core.iter().filter_map(|cpu| Some(depth(cpu, by_cpu.get(&cpu)?))).min() else {
            continue;
        };
        for cpu in core.iter() {
            for state in by_cpu.get_mut(&cpu).into_iter().flatten() {
                if state.is_enterable() && state.row.index > shallowest {
                    state.instead.push(Instead::OtherThread);
                }
            }
        }
    }
}

/// The state that is entered where none can be; none of a table without its state 0, a cut recording.
fn fallback(states: &[State], limit: LatencyLimit, is_menu: bool) -> Option<usize> {
    let first = states.first().filter(|state| state.row.index == 0)?;
    let is_on = |state: &State| state.row.is_enabled != Some(false);
    // menu takes state 0 at once only where it is enabled, or for a limit of 0; else it starts from the first that is.
    match is_menu && !is_on(first) && limit != LatencyLimit::Poll {
        true => Some(states.iter().position(is_on).unwrap_or(0)),
        false => Some(0),
    }
}

fn when_idle(
    states: &[State],
    limit: LatencyLimit,
    argument: Option<&'static str>,
    fallback: Option<usize>,
) -> WhenIdle {
    if let Some(argument) = argument {
        return WhenIdle::Spins(Cause::BootArgument(argument));
    }
    let sleeping: Vec<&State> = states.iter().filter(|state| !state.row.is_polling()).collect();
    if sleeping.iter().any(|state| state.is_enterable()) {
        return WhenIdle::Sleeps;
    }
    match fallback.and_then(|at| states.get(at)) {
        Some(state) if !state.row.is_polling() => return WhenIdle::Sleeps,
        Some(_) => {}
        None => return WhenIdle::Unknown,
    }
    let is_on = |state: &&&State| state.row.is_enabled != Some(false);
    WhenIdle::Spins(match (sleeping.len(), sleeping.iter().filter(is_on).count()) {
        (0, _) => Cause::NoSleepState,
        // What ladder cannot pass is out of reach because a state is disabled.
        _ if limit == LatencyLimit::None => Cause::Disabled,
        (_, 0) => Cause::Disabled,
        (all, on) if on < all => Cause::DisabledAndLimit(limit),
        _ => Cause::Limit(limit),
    })
}

/// As rows, for `inspect idle`: what each group of CPUs can enter, and what keeps it from the rest.
pub fn sheet(facts: &Snapshot) -> Sheet {
    let mut sheet = Sheet::default();
    for group in of(facts) {
        let cpus = group.cpus.named();
        let says = match &group.when_idle {
            WhenIdle::Spins(cause) => say!("none: they spin when idle; {}", cause.words()),
            WhenIdle::Halts => word!("none: without an idle driver the CPU halts, uncounted").into(),
            WhenIdle::Unknown => word!("not known").into(),
            WhenIdle::Sleeps => {
                let names: Vec<&str> = group.open().map(|state| state.row.name.as_str()).collect();
                if names.is_empty() { word!("only state 0").into() } else { names.join(", ") }
            }
        };
        sheet.say("idle.enterable", say!("can be entered on {cpus}"), Cell::Text(says));
        for state in group.states.iter().filter(|state| !state.is_enterable()) {
            let why: Vec<String> = state.barriers.iter().map(|barrier| barrier.words()).collect();
            let label = say!("{} on {cpus}", state.row.name);
            sheet.say(format!("idle.enterable.{}", state.row.name), label, Cell::Text(why.join("; ")));
        }
    }
    sheet
}

/// The CPUs on which this state can be entered.
pub fn cpus_of(facts: &Snapshot, state: &IdleState) -> CpuSet {
    cpus_that_enter(&of(facts), state.index)
}
#[cfg(test)]
mod tests;
