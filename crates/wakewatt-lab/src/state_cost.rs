//! What leaving each idle state costs: every state alone, in rounds of random order, by each kind of wake-up.
//!
//! A slice is one state and one kind for a fraction of the time; slices of all rounds are pooled, and the median of each
//! round is kept so that the extra over the floor is paired (see [`wakewatt_core::samples::state_cost`]). Idle counters
//! around each slice tell whether the state was really entered. The timer class flatters deep states, whose hardware may
//! start to wake before the timer; the interrupt and the futex come unannounced (docs/methods/idle-states.md).

use crate::bench::{
    self, BenchError, FirstWorkSlice, FirstWorkSpec, IdleBaseline, RemoteKind, RemoteSpec, TimerSpec, WakeupSlice,
};
use crate::context::Lab;
use crate::meters::Meters;
use crate::state_arms::StateArms;
use crate::state_energy::energy_of;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::facts::cpus::ROOT;
use wakewatt_core::samples::Window;
use wakewatt_core::samples::not_done::NotDone;
use wakewatt_core::samples::state_cost::{FirstWork, MIN_ENTERED_RATIO, Piece, StateCost, StateCosts, StateWake};
use wakewatt_core::samples::wakeup::WakeKind;
use wakewatt_core::source::Source;
use wakewatt_core::stats::distribution::{Distribution, Recorder};
use wakewatt_core::stats::random::Random;
use wakewatt_core::units::Cpu;
use wakewatt_host::affinity::Pinned;
use wakewatt_host::clock::monotonic_ns;

/// The fewest rounds: the range of six differences covers their median with 97 %. What is measured beside the wake-ups is
/// measured in these.
const LEAST_ROUNDS: u32 = 6;
/// How long one state is measured before the next.
const SLICE_NS: u64 = 150_000_000;
/// Fewer wake-ups have no steady median.
const LEAST_WAKES: u64 = 40;
/// Discarded at the start of each slice: the governor's and the caches' memory of the state before.
const WARMUP_NS: u64 = 20_000_000;

/// What to measure.
#[derive(Clone)]
pub struct StateCostSpec {
    /// The CPU that sleeps.
    pub cpu: Cpu,
    /// The one that wakes it.
    pub from_cpu: Option<Cpu>,
    /// The CPUs of its core, for the record.
    pub set_cpus: CpuSet,
    /// Kinds of wake-up.
    pub kinds: Vec<WakeKind>,
    /// Are the first work after a pause, and what the CPU does for itself, measured too?
    pub has_first_work: bool,
    /// Pause before each wake-up.
    pub gap_ns: u64,
    /// Time per state and kind, over all rounds.
    pub duration_ns: u64,
    /// Order of the states.
    pub seed: u64,
    /// Meters to read each state's energy by, after the wake-ups; none: it is not asked for.
    pub meters: Option<Meters>,
}

/// One state and kind while rounds go on.
#[derive(Default)]
struct Pool {
    slice: Option<WakeupSlice>,
    round_p50_ns: Vec<u64>,
    round_busy_ns: Vec<u64>,
    round_waker_busy_ns: Vec<u64>,
}

/// Pieces of work, measured for half the time of a wake-up each: they need no 99th percentile.
const PIECES: [Piece; 2] = [Piece::Trip, Piece::Table];

/// So long nobody wakes the CPU, for what it does for itself.
const REST: Duration = Duration::from_millis(250);

/// The first work after a pause in one state while rounds go on.
struct WorkPool {
    piece: Piece,
    all: FirstWorkSlice,
    round_first_p50_ns: Vec<u64>,
    round_again_p50_ns: Vec<u64>,
}

impl StateCostSpec {
    /// As many rounds as the time has room for, because what drifts between two rounds widens no interval.
    fn n_rounds(&self) -> u32 {
        let slice_ns = SLICE_NS.max(self.gap_ns.saturating_mul(LEAST_WAKES));
        u32::try_from(self.duration_ns / slice_ns).unwrap_or(u32::MAX).max(LEAST_ROUNDS)
    }
}

/// Measures every state of the arms, then puts all back. Reasons for what is missing are added to `not_done`.
pub fn state_costs(
    spec: &StateCostSpec,
    mut arms: StateArms<'_>,
    facts: &Snapshot,
    lab: Lab<'_>,
    not_done: &mut Vec<NotDone>,
) -> StateCosts {
    let (src, stop) = (lab.src, lab.stop);
    let n_states = arms.states().len();
    let start_at_ns = monotonic_ns();
    let mut pools: Vec<Vec<Pool>> =
        (0..n_states).map(|_| spec.kinds.iter().map(|_| Pool::default()).collect()).collect();
    // Once, awake: the same work in every state.
    let (mut pieces, mut n_units) = (Vec::new(), 0);
    if spec.has_first_work {
        pieces.push(Piece::Trip);
        match bench::units_on(spec.cpu) {
            Ok(n) => (n_units, pieces) = (n, PIECES.to_vec()),
            Err(why) => say_once(not_done, "first work after a pause, over a table", &why),
        }
    }
    let mut works: Vec<Vec<WorkPool>> =
        (0..n_states).map(|_| pieces.iter().copied().map(WorkPool::new).collect()).collect();
    let mut own: Vec<Vec<f64>> = vec![Vec::new(); n_states];
    let mut failed: Vec<Option<String>> = vec![None; n_states];
    let rejected_before: Vec<Option<u64>> = arms.states().iter().map(|s| n_rejected(src, spec.cpu, s.index)).collect();
    let (mut random, mut n_rounds) = (Random::new(spec.seed), 0);
    let mut order: Vec<usize> = (0..n_states).collect();
    let all_rounds = spec.n_rounds();
    'rounds: for round in 0..all_rounds {
        random.shuffle(&mut order);
        n_rounds = round + 1;
        for (at, &state) in order.iter().enumerate() {
            if stop.load(Ordering::Relaxed) {
                break 'rounds;
            }
            let name = &arms.states()[state].name;
            lab.tell.progress(
                (f64::from(round) + at as f64 / n_states as f64) / f64::from(all_rounds),
                &format!("round {} of {all_rounds}: only {name} on CPU {}", round + 1, spec.cpu),
            );
            if failed[state].is_some() {
                continue;
            }
            if let Err(why) = arms.enter(state) {
                failed[state] = Some(why);
                continue;
            }
            for (kind, pool) in spec.kinds.iter().zip(&mut pools[state]) {
                match slice(spec, *kind, src, stop) {
                    Ok((slice, busy)) => pool.add(slice, &busy),
                    Err(_) if stop.load(Ordering::Relaxed) => break 'rounds,
                    Err(why) => {
                        pool.nothing();
                        say_once(not_done, &format!("{} wake-up", kind.word()), &why);
                    }
                }
            }
            if round >= LEAST_ROUNDS {
                continue;
            }
            if spec.has_first_work {
                own[state].extend(own_ratio(spec.cpu, src));
            }
            for pool in &mut works[state] {
                match bench::first_work(first_work(spec, pool.piece, n_units), stop) {
                    Ok(slice) => pool.add(&slice),
                    Err(_) if stop.load(Ordering::Relaxed) => break 'rounds,
                    Err(why) => {
                        pool.add(&FirstWorkSlice::default());
                        say_once(not_done, "first work after a pause", &why);
                    }
                }
            }
        }
    }
    let rejected_after: Vec<Option<u64>> = arms.states().iter().map(|s| n_rejected(src, spec.cpu, s.index)).collect();
    let meters = spec.meters.clone().filter(|_| !lab.is_stopped());
    let energy = meters.map(|meters| energy_of(&mut arms, spec.cpu, meters, spec.seed, lab));
    let scheduling = pools.iter().flatten().find_map(|p| p.slice.as_ref()).map(|s| s.sample.scheduling.clone());
    let mut states = Vec::with_capacity(n_states);
    for (at, (pools, work)) in pools.into_iter().zip(works).enumerate() {
        let mut cost = cost(spec, &arms, at, pools);
        cost.first_work = work.into_iter().filter_map(WorkPool::told).collect();
        cost.round_own_ratio = std::mem::take(&mut own[at]);
        cost.n_rejected = rejected_after[at].zip(rejected_before[at]).map(|(b, a)| b.saturating_sub(a));
        cost.not_entered = failed[at].take().or_else(|| verdict(&cost, &arms, at, facts));
        states.push(cost);
    }
    let mut costs = StateCosts {
        cpu: spec.cpu,
        from_cpu: spec.from_cpu,
        set_cpus: spec.set_cpus.clone(),
        governor: facts.idle.governor.get().cloned(),
        driver: facts.idle.driver.get().cloned(),
        gap_ns: spec.gap_ns,
        n_rounds,
        seed: spec.seed,
        scheduling,
        window: Window { start_at_ns, end_at_ns: monotonic_ns() },
        states,
        floor: None,
        energy,
        not_restored: arms.leave(),
    };
    costs.compare_with_floor();
    costs
}

/// What does not work here is said once.
fn say_once(not_done: &mut Vec<NotDone>, what: &str, why: &BenchError) {
    let line = NotDone::named(what, why.to_string());
    if !not_done.contains(&line) {
        not_done.push(line);
    }
}

fn first_work(spec: &StateCostSpec, piece: Piece, n_units: u64) -> FirstWorkSpec {
    let duration_ns = spec.duration_ns / u64::from(LEAST_ROUNDS) / PIECES.len() as u64;
    FirstWorkSpec { cpu: spec.cpu, piece, n_units, gap_ns: spec.gap_ns, warmup_ns: WARMUP_NS, duration_ns }
}

impl WorkPool {
    fn new(piece: Piece) -> WorkPool {
        let all = FirstWorkSlice::default();
        WorkPool { piece, all, round_first_p50_ns: Vec::new(), round_again_p50_ns: Vec::new() }
    }

    /// A slice without work is a round without: 0.
    fn add(&mut self, slice: &FirstWorkSlice) {
        let p50_ns = |of: &Recorder| Distribution::recorded(of).p50_ns().unwrap_or(0);
        self.round_first_p50_ns.push(p50_ns(&slice.first));
        self.round_again_p50_ns.push(p50_ns(&slice.again));
        self.all.first.append(&slice.first);
        self.all.again.append(&slice.again);
    }

    fn told(self) -> Option<FirstWork> {
        (!self.all.first.is_empty()).then(|| FirstWork {
            piece: self.piece,
            first: Distribution::recorded(&self.all.first),
            again: Distribution::recorded(&self.all.again),
            round_first_p50_ns: self.round_first_p50_ns,
            round_again_p50_ns: self.round_again_p50_ns,
        })
    }
}

impl Pool {
    /// A round without: 0 is none.
    fn nothing(&mut self) {
        self.round_p50_ns.push(0);
        self.round_busy_ns.push(0);
        self.round_waker_busy_ns.push(0);
    }

    /// `busy` is CPU time per wake-up, of the woken CPU and of the one that woke it.
    fn add(&mut self, slice: WakeupSlice, busy: &[Option<u64>]) {
        let ns = |at: usize| busy.get(at).copied().flatten().unwrap_or(0);
        self.round_busy_ns.push(ns(0));
        self.round_waker_busy_ns.push(ns(1));
        self.round_p50_ns.push(slice.sample.latency.p50_ns().unwrap_or(0));
        match &mut self.slice {
            Some(pool) => pool.absorb(slice),
            empty => *empty = Some(slice),
        }
    }
}

/// One slice, and what CPU time its wake-ups cost: of the woken CPU and of its waker, each none without counters.
fn slice(
    spec: &StateCostSpec,
    kind: WakeKind,
    src: &dyn Source,
    stop: &AtomicBool,
) -> Result<(WakeupSlice, Vec<Option<u64>>), BenchError> {
    // A timer has no waker, and whoever asks another CPU by interrupt waits for the answer.
    let waker = spec.from_cpu.filter(|_| !matches!(kind, WakeKind::Timer | WakeKind::Ipi));
    let cpus: Vec<Cpu> = std::iter::once(spec.cpu).chain(waker).collect();
    // A sleep is counted when it ends: none may reach into the slice from before.
    for cpu in &cpus {
        let _ = moment_on(*cpu);
    }
    let (idle, began_ns) = (IdleBaseline::read(src, &cpus), monotonic_ns());
    let slice = wake_ups(spec, kind, src, stop)?;
    let took_ns = monotonic_ns().saturating_sub(began_ns);
    let idle = idle.since(src);
    // The first wake-ups are not counted, but they cost as much.
    let n = slice.sample.latency.n as f64 * took_ns as f64 / slice.sample.window.length_ns().max(1) as f64;
    let busy = |cpu: &Cpu| {
        let states = &idle.iter().find(|delta| delta.cpu == *cpu)?.states;
        let idle_ns: u64 = states.iter().map(|s| s.time_ns).sum();
        let busy_ns = took_ns.checked_sub(idle_ns).filter(|_| idle_ns > 0 && n >= 1.0)?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Not negative, and far below 2^64.
        Some((busy_ns as f64 / n) as u64)
    };
    let busy = cpus.iter().map(busy).collect();
    Ok((slice, busy))
}

/// What a CPU does for itself while nobody wakes it, as a part of the time; none without idle counters.
fn own_ratio(cpu: Cpu, src: &dyn Source) -> Option<f64> {
    // A sleep is counted when it ends, so both ends are a moment in which the CPU runs; what runs then lies outside.
    let (_, from_ns) = moment_on(cpu)?;
    let idle = IdleBaseline::read(src, &[cpu]);
    std::thread::sleep(REST);
    let (until_ns, _) = moment_on(cpu)?;
    let took_ns = until_ns.checked_sub(from_ns).filter(|ns| *ns > 0)?;
    let idle_ns: u64 = idle.since(src).iter().flat_map(|delta| &delta.states).map(|state| state.time_ns).sum();
    (idle_ns > 0).then(|| took_ns.saturating_sub(idle_ns) as f64 / took_ns as f64)
}

/// Makes a CPU run something for a moment: when that began, and when it was about to end. None for a CPU that cannot be used, which the measurement says.
fn moment_on(cpu: Cpu) -> Option<(u64, u64)> {
    let moment = move || {
        let _pin = Pinned::to(cpu).ok()?;
        let began_ns = monotonic_ns();
        Some((began_ns, monotonic_ns()))
    };
    std::thread::spawn(moment).join().ok()?
}

fn wake_ups(
    spec: &StateCostSpec,
    kind: WakeKind,
    src: &dyn Source,
    stop: &AtomicBool,
) -> Result<WakeupSlice, BenchError> {
    let duration_ns = spec.duration_ns / u64::from(spec.n_rounds());
    if kind == WakeKind::Timer {
        let timer = TimerSpec { gap_ns: spec.gap_ns, warmup_ns: WARMUP_NS, ..TimerSpec::on(spec.cpu, duration_ns) };
        return bench::timer(&timer, stop, src);
    }
    let only = "it needs a second core to be woken from, and this process may use only one";
    let from_cpu = spec.from_cpu.ok_or_else(|| BenchError::Unavailable(only.into()))?;
    let of = |kind| RemoteSpec {
        gap_ns: spec.gap_ns,
        warmup_ns: WARMUP_NS,
        ..RemoteSpec::between(kind, from_cpu, spec.cpu, duration_ns)
    };
    match kind {
        WakeKind::Ipi => bench::ipi(&of(RemoteKind::Futex), stop, src),
        WakeKind::Eventfd => bench::remote(&of(RemoteKind::Eventfd), stop, src),
        _ => bench::remote(&of(RemoteKind::Futex), stop, src),
    }
}

fn cost(spec: &StateCostSpec, arms: &StateArms<'_>, at: usize, pools: Vec<Pool>) -> StateCost {
    let row = &arms.states()[at];
    let mut cost = StateCost {
        index: row.index,
        name: row.name.clone(),
        is_polling: row.is_polling(),
        claimed_exit_ns: row.exit_latency_ns,
        claimed_residency_ns: row.target_residency_ns,
        allowed_by: arms.words(at),
        n_entered: 0,
        n_entered_any: 0,
        time_ns: 0,
        n_rejected: None,
        not_entered: None,
        wakes: Vec::new(),
        first_work: Vec::new(),
        round_own_ratio: Vec::new(),
    };
    for (kind, pool) in spec.kinds.iter().zip(pools) {
        let Some(slice) = pool.slice else { continue };
        let (mut n_entered, mut n_entered_any) = (0, 0);
        for state in slice.sample.idle.iter().flat_map(|d| &d.states) {
            n_entered_any += state.n_usage;
            if state.index == row.index {
                n_entered += state.n_usage;
                cost.time_ns += state.time_ns;
            }
        }
        cost.n_entered += n_entered;
        cost.n_entered_any += n_entered_any;
        let has = |rounds: &[u64]| rounds.iter().any(|ns| *ns > 0);
        cost.wakes.push(StateWake {
            n_entered,
            n_entered_any,
            round_busy_ns: Some(pool.round_busy_ns).filter(|rounds| has(rounds)).unwrap_or_default(),
            round_waker_busy_ns: Some(pool.round_waker_busy_ns).filter(|rounds| has(rounds)).unwrap_or_default(),
            ..StateWake::of(*kind, slice.sample.latency, pool.round_p50_ns)
        });
    }
    cost
}

/// Why the numbers are not this state's, if so.
fn verdict(cost: &StateCost, arms: &StateArms<'_>, at: usize, facts: &Snapshot) -> Option<String> {
    let (n, n_any, n_wakes) = (cost.n_entered, cost.n_entered_any, cost.n_wakes());
    let is_few = |n: u64, of: u64| (n as f64) < of as f64 * MIN_ENTERED_RATIO;
    if n_wakes == 0 {
        Some("nothing was measured".into())
    } else if let (0, Some(refused @ 1..)) = (n, cost.n_rejected) {
        Some(format!("the driver refused all {refused} entries"))
    } else if is_few(n_any, n_wakes) {
        Some(format!(
            "the CPU went idle only {n_any} times for {n_wakes} wake-ups: other work kept it busy; try a quieter time or --cpu"
        ))
    } else if is_few(n, n_any) {
        Some(format!("only {n} of {n_any} idle entries were it: {}", arms.why_not(at, facts)))
    } else {
        None
    }
}

fn n_rejected(src: &dyn Source, cpu: Cpu, index: u32) -> Option<u64> {
    let bytes = src.read(&format!("{ROOT}/cpu{cpu}/cpuidle/state{index}/rejected")).ok()?;
    String::from_utf8_lossy(&bytes).trim().parse().ok()
}
