//! What CPUs do as far as settings decide it: the idle states they enter, and the clocks between which they run.
//!
//! Answered by core's `enterable` and `clock_window`, and by nothing else. Only the governor is added: `performance` keeps
//! the clock at its upper limit, and `powersave` of a driver that chooses no clock itself keeps it at the lower one, so that
//! the other limit decides nothing (admin-guide/pm/cpufreq.rst).

use crate::then::AUTONOMOUS;
use std::collections::BTreeMap;
use wakewatt_core::clock_window::{self, Bound, By, Window};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::enterable::{self, Enterable, WhenIdle};
use wakewatt_core::fact::Fact;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::facts::idle::TableRow;
use wakewatt_core::facts::kernel::KernelVersion;
use wakewatt_core::units::Cpu;

/// One moment of a plan.
pub(crate) struct Outlook {
    pub(crate) facts: Snapshot,
    pub(crate) idle: Vec<Enterable>,
    pub(crate) clocks: Vec<Window>,
    /// CPUs whose governor keeps the clock at its upper limit, and those kept at the lower one.
    pub(crate) kept_high: CpuSet,
    pub(crate) kept_low: CpuSet,
    /// CPUs whose governor keeps the clock at the nominal frequency or above: amd-pstate in active mode, since kernel 6.13.
    pub(crate) kept_nominal: CpuSet,
}

/// CPUs that run between the same clocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) low_khz: u64,
    pub(crate) high_khz: u64,
    pub(crate) cpus: CpuSet,
}

impl Outlook {
    pub(crate) fn of(facts: Snapshot) -> Outlook {
        let policies = &facts.freq.policies;
        let governors = policies.by_cpu(&policies.governor);
        let drivers = policies.by_cpu(&policies.driver);
        let autonomous = drivers.cpus_where(|driver| AUTONOMOUS.contains(&driver.as_str()));
        let performance = governors.cpus_where(|governor| governor == "performance");
        let is_nominal = facts.kernel.version.get().is_some_and(|version| *version >= KernelVersion::new(6, 13, 0));
        let kept_nominal = match is_nominal {
            true => drivers.cpus_where(|driver| driver == "amd-pstate-epp").and(&performance),
            false => CpuSet::new(),
        };
        Outlook {
            idle: enterable::of(&facts),
            clocks: clock_window::of(&facts),
            kept_high: performance.minus(&kept_nominal),
            kept_nominal,
            kept_low: governors.cpus_where(|governor| governor == "powersave").minus(&autonomous),
            facts,
        }
    }

    /// What each CPU enters when idle.
    pub(crate) fn entered(&self) -> BTreeMap<Cpu, Entered<'_>> {
        let mut all = BTreeMap::new();
        for group in &self.idle {
            let mut states: Vec<EnteredState<'_>> =
                group.open().map(|state| EnteredState { row: &state.row, is_in_vain: state.is_in_vain() }).collect();
            // Nothing is left: another state is entered all the same, and sleeps where it is no POLL.
            if states.is_empty() {
                states.extend(group.deepest().map(|row| EnteredState { row, is_in_vain: false }));
            }
            for cpu in group.cpus.iter() {
                all.insert(cpu, Entered { states: states.clone(), when_idle: &group.when_idle });
            }
        }
        all
    }

    /// The clocks between which CPUs run; none where a limit is not known.
    pub(crate) fn spans(&self) -> Option<Vec<Span>> {
        let mut all: Vec<Span> = Vec::new();
        for window in &self.clocks {
            let (low, high) = (window.min()?.khz, window.max()?.khz);
            let (up, down) = (window.cpus.and(&self.kept_high), window.cpus.and(&self.kept_low));
            let nominal = window.cpus.and(&self.kept_nominal);
            let free = window.cpus.minus(&up).minus(&down).minus(&nominal);
            let from = self.base_khz(window).unwrap_or(low).clamp(low.min(high), high);
            let parts = [(up, high, high), (down, low, low), (nominal, from, high), (free, low, high)];
            for (cpus, low_khz, high_khz) in parts {
                match all.iter_mut().find(|span| (span.low_khz, span.high_khz) == (low_khz, high_khz)) {
                    _ if cpus.is_empty() => {}
                    Some(span) => span.cpus = span.cpus.union(&cpus),
                    None => all.push(Span { low_khz, high_khz, cpus }),
                }
            }
        }
        all.sort_by_key(|span| span.cpus.first());
        Some(all).filter(|all| !all.is_empty())
    }

    /// The upper limits of these CPUs that hold whatever turbo is; `was_off`: it was off when they were read.
    pub(crate) fn below_turbo(&self, window: &Window, was_off: bool) -> Option<Bound> {
        // While turbo is off the kernel shows policies capped at the base frequency, and lifts them with it.
        let is_base = |bound: &Bound| Some(bound.khz) == self.base_khz(window);
        let is_shown = |bound: &Bound| match bound.by {
            By::Policy | By::HwpRequest => was_off && is_base(bound),
            By::PerfPct(ratio) => was_off && ratio >= 1.0,
            _ => false,
        };
        window.upper.iter().find(|bound| bound.by != By::TurboOff && !is_shown(bound)).copied()
    }

    /// The clock without turbo, of the CPUs of a window.
    pub(crate) fn base_khz(&self, window: &Window) -> Option<u64> {
        self.base_khz_of(window.cpus.first()?)
    }

    /// The clock without turbo, of a CPU.
    pub(crate) fn base_khz_of(&self, cpu: Cpu) -> Option<u64> {
        let policies = &self.facts.freq.policies;
        let base = policies.by_cpu(&policies.base_khz).of(cpu).and_then(Fact::get).copied();
        let nominal = || self.facts.freq.cppc.nominal_khz.of(cpu).and_then(Fact::get).copied().filter(|khz| *khz > 0);
        base.or_else(nominal)
    }
}

/// A state that a CPU asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EnteredState<'a> {
    pub(crate) row: &'a TableRow,
    /// Does the core's other thread keep the core from it?
    pub(crate) is_in_vain: bool,
}

/// The same state, whatever its switch says: haltpoll looks at none.
impl PartialEq for EnteredState<'_> {
    fn eq(&self, other: &Self) -> bool {
        let is = |state: &Self| (state.row.index, state.row.exit_latency_ns, state.is_in_vain);
        self.row.name == other.row.name && is(self) == is(other)
    }
}

/// What a CPU enters when idle.
#[derive(Clone, Debug)]
pub(crate) struct Entered<'a> {
    pub(crate) states: Vec<EnteredState<'a>>,
    pub(crate) when_idle: &'a WhenIdle,
}

/// The same states of the core, whatever keeps the CPU from the others.
impl PartialEq for Entered<'_> {
    fn eq(&self, other: &Self) -> bool {
        let does = |entered: &Self| std::mem::discriminant(entered.when_idle);
        self.reached().eq(other.reached()) && does(self) == does(other)
    }
}

impl Entered<'_> {
    /// Does it spin?
    pub(crate) fn spins(&self) -> bool {
        matches!(self.when_idle, WhenIdle::Spins(_))
    }
    /// The states that the core's other thread does not keep the core from.
    fn reached(&self) -> impl Iterator<Item = &EnteredState<'_>> {
        self.states.iter().filter(|state| !state.is_in_vain)
    }
    /// Its state of this name.
    pub(crate) fn state(&self, name: &str) -> Option<&EnteredState<'_>> {
        self.states.iter().find(|state| state.row.name == name)
    }
}
