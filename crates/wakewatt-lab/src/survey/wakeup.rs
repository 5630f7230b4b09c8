//! Wake-ups of several kinds on several CPUs.

use super::{Found, MAX_CPUS, allowed_cpus, each};
use crate::bench::{self, BenchError, DEFAULT_FIFO_PRIORITY, RemoteKind, RemoteSpec, TimerSpec};
use crate::context::Lab;
use crate::pick;
use crate::refusal::Refusal;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::{Cpus, Domain, topology::Topology};
use wakewatt_core::samples::not_done::{NotDone, Step};
use wakewatt_core::samples::waker::Pauses;
use wakewatt_core::samples::wakeup::{WakeKind, WakeupSample};
use wakewatt_core::units::Cpu;

/// The kinds, in the order they are measured; the last has no pause to sleep in and is measured only when named.
const KINDS: [WakeKind; 5] = [WakeKind::Timer, WakeKind::Futex, WakeKind::Eventfd, WakeKind::Ipi, WakeKind::Pipe];

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct WakeupPlan {
    /// The CPUs that are woken; a few of those allowed when none.
    pub cpus: Option<CpuSet>,
    /// Kinds; all that have a pause when empty.
    pub kinds: Vec<WakeKind>,
    /// The CPU that wakes them; a near one when none.
    pub from_cpu: Option<Cpu>,
    /// Mean pause before each.
    pub gap_ns: u64,
    /// How the pauses are drawn.
    pub pauses: Pauses,
    /// How the threads are scheduled, one after the other; real-time where none is named.
    pub policies: Vec<Policy>,
    /// Time per CPU, kind and policy.
    pub duration_ns: u64,
}

/// How the measuring threads are to be scheduled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// SCHED_FIFO where it is allowed: the machine's part of a wake-up alone.
    #[default]
    Fifo,
    /// SCHED_OTHER: what the thread of an ordinary service meets, the run queue included.
    Ordinary,
}

impl Policy {
    fn priority(self) -> Option<u8> {
        (self == Policy::Fifo).then_some(DEFAULT_FIFO_PRIORITY)
    }
}

/// One kind of wake-up on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneWakeup {
    /// Its kind.
    pub kind: WakeKind,
    /// The CPU that is woken.
    pub cpu: Cpu,
    /// The CPU that wakes it; the timer needs none.
    pub from_cpu: Option<Cpu>,
    /// Mean pause before each.
    pub gap_ns: u64,
    /// How the pauses are drawn.
    pub pauses: Pauses,
    /// How the threads are scheduled.
    pub policy: Policy,
    /// For so long.
    pub duration_ns: u64,
}

/// Measures them, CPU by CPU.
pub fn wakeups(lab: Lab<'_>, plan: &WakeupPlan) -> Result<Found<WakeupSample>, Refusal> {
    let allowed = allowed_cpus()?;
    let topology = Topology::read(lab.src, &Cpus::read(lab.src));
    let mut found = Found::default();
    let cpus = plan.cpus.clone().unwrap_or_else(|| pick::spread(&allowed, MAX_CPUS));
    if plan.cpus.is_none() && cpus.len() < allowed.len() {
        let why = format!("only CPUs {cpus} of {allowed} were measured; name others with --cpu");
        found.not_done.push(NotDone::new(Step::Unnamed, why));
    }
    let is_wanted = |kind: &WakeKind| match plan.kinds.is_empty() {
        true => *kind != WakeKind::Pipe,
        false => plan.kinds.contains(kind),
    };
    let WakeupPlan { gap_ns, pauses, duration_ns, .. } = *plan;
    let policies = if plan.policies.is_empty() { vec![Policy::default()] } else { plan.policies.clone() };
    let of = |cpu: Cpu| {
        let from_cpu = plan.from_cpu.or_else(|| pick::partner(&topology, &allowed, cpu));
        let one = move |kind, policy| OneWakeup { kind, cpu, from_cpu, gap_ns, pauses, policy, duration_ns };
        // Both threads of a pipe are ordinary ones in any case: once is enough.
        let n_policies = |kind| if kind == WakeKind::Pipe { 1 } else { policies.len() };
        let all = |kind| policies[..n_policies(kind)].iter().map(move |policy| one(kind, *policy)).collect::<Vec<_>>();
        KINDS.into_iter().filter(is_wanted).flat_map(all).collect::<Vec<_>>()
    };
    let jobs: Vec<OneWakeup> = cpus.iter().flat_map(of).collect();
    let words = |one: &OneWakeup| format!("{} on CPU {}", one.kind.word(), one.cpu);
    each(lab, &jobs, words, |one| {
        found.add(|| format!("{} wake-up of CPU {}", one.kind.word(), one.cpu), one_wakeup(lab, one));
    });
    Ok(found)
}

/// Measures it.
pub fn one_wakeup(lab: Lab<'_>, one: &OneWakeup) -> Result<WakeupSample, BenchError> {
    let Lab { src, stop, .. } = lab;
    let OneWakeup { kind, cpu, from_cpu, gap_ns, pauses, policy, duration_ns } = *one;
    let fifo_priority = policy.priority();
    if kind == WakeKind::Timer {
        let spec = TimerSpec { gap_ns, pauses, fifo_priority, ..TimerSpec::on(cpu, duration_ns) };
        return bench::timer(&spec, stop, src).map(|s| s.sample);
    }
    let only = "it needs a second CPU to be woken from, and this process may use only one";
    let from_cpu = from_cpu.ok_or_else(|| BenchError::Unavailable(only.into()))?;
    let spec =
        |kind| RemoteSpec { gap_ns, pauses, fifo_priority, ..RemoteSpec::between(kind, from_cpu, cpu, duration_ns) };
    match kind {
        WakeKind::Ipi => bench::ipi(&spec(RemoteKind::Futex), stop, src),
        WakeKind::Eventfd => bench::remote(&spec(RemoteKind::Eventfd), stop, src),
        WakeKind::Pipe => bench::pipe(&spec(RemoteKind::Futex), stop, src),
        _ => bench::remote(&spec(RemoteKind::Futex), stop, src),
    }
    .map(|s| s.sample)
}
