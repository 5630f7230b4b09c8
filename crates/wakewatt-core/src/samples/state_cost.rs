//! What each idle state costs to leave: what the driver claims beside what was measured with only that state allowed.
//!
//! The claim (`cpuidle/stateK/latency`) is a worst case from a table or from firmware; the measurement is a distribution
//! of one CPU in one hour. They are shown beside each other and never mixed. A wake-up contains more than the exit
//! (timer programming, interrupt, scheduler), so the comparable number is the *extra* over polling, where no exit is. Arm has
//! no polling state; there the shallowest state is the floor, and its claim is taken off.
//! That extra is paired by round: every round measures every state once, in random order, so what drifts in the machine
//! drifts for all states alike. Its 95 % interval for the median difference is that of the sign test; with six rounds it is
//! the range of their differences.

use super::state_energy::EnergyOfStates;
use super::wakeup::WakeKind;
use super::{Scheduling, Window};
use crate::cpuset::CpuSet;
use crate::distribution::Distribution;
use crate::units::show_ns;
use serde::{Deserialize, Serialize};

/// A state counts as entered where it has at least this share of the CPU's idle entries and of the wake-ups.
pub const MIN_ENTERED_RATIO: f64 = 0.5;

/// An extra needs more, of its own kind of wake-up: with a tenth from elsewhere the median still is this state's.
pub const MIN_EXTRA_RATIO: f64 = 0.9;

/// All states of one CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateCosts {
    /// The CPU that slept.
    pub cpu: u32,
    /// The CPU that woke it; none where there is no other.
    pub from_cpu: Option<u32>,
    /// The CPUs whose settings were changed: the sleeper and its SMT siblings, which share the core's state.
    pub set_cpus: CpuSet,
    /// The idle governor in charge; none where the kernel does not say.
    pub governor: Option<String>,
    /// The idle driver; none where the kernel does not say, or in documents of before it was noted.
    #[serde(default)]
    pub driver: Option<String>,
    /// Pause before each wake-up, the same for all states.
    pub gap_ns: u64,
    /// Rounds begun; each measures every state once, in random order.
    pub n_rounds: u32,
    /// Seed of the order of the states.
    pub seed: u64,
    /// How the threads were scheduled.
    pub scheduling: Option<Scheduling>,
    /// From when to when it was measured.
    pub window: Window,
    /// The states measured, shallowest first.
    pub states: Vec<StateCost>,
    /// The state that the extra is counted from: polling, or the shallowest where there is no polling (Arm).
    pub floor: Option<String>,
    /// What each state takes in energy, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyOfStates>,
    /// Settings that could not be put back; empty when all is as found.
    pub not_restored: Vec<String>,
}

/// What leaving one idle state costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateCost {
    /// Index of the state on this CPU.
    pub index: u32,
    /// Name of the state, as the driver calls it.
    pub name: String,
    /// The CPU spins in it.
    pub is_polling: bool,
    /// Exit latency that driver or firmware claims; none where there is no claim.
    pub claimed_exit_ns: Option<u64>,
    /// Target residency that driver or firmware claims; none where there is no claim.
    pub claimed_residency_ns: Option<u64>,
    /// The settings under which it was measured, in words.
    pub allowed_by: String,
    /// Times this state was entered meanwhile.
    pub n_entered: u64,
    /// How many times any state was entered in those slices.
    pub n_entered_any: u64,
    /// Time spent in the state over all slices that allowed it.
    pub time_ns: u64,
    /// Entries the driver refused; none where the kernel does not count them.
    pub n_rejected: Option<u64>,
    /// Why the numbers are not this state's; none when it was entered.
    pub not_entered: Option<String>,
    /// The wake-ups, by kind.
    pub wakes: Vec<StateWake>,
    /// What the first work after a pause takes; empty where it was not asked for or could not be measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_work: Vec<FirstWork>,
    /// What the CPU did for itself while nobody woke it, as a part of the time, round by round, by its idle counters; rounds without are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub round_own_ratio: Vec<f64>,
}

/// A piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Piece {
    /// A request and its answer over a TCP connection, both ends by one thread: mostly the kernel's code.
    Trip,
    /// 100 us of arithmetic over a table of 256 KiB: what a transaction of `load steps` does.
    Table,
}

/// The same piece of work as the first thing after a pause, and at once again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FirstWork {
    /// The piece of work that was done twice.
    pub piece: Piece,
    /// As the first thing, all rounds together.
    pub first: Distribution,
    /// At once again.
    pub again: Distribution,
    /// The median of each round, in order, as the first thing; 0 is a round without.
    pub round_first_p50_ns: Vec<u64>,
    /// The same at once again.
    pub round_again_p50_ns: Vec<u64>,
}

impl FirstWork {
    /// What the first takes longer than the one at once after it, paired by round.
    pub fn extra(&self) -> Option<Extra> {
        extra(&self.round_first_p50_ns, &self.round_again_p50_ns, 0)
    }
}

/// One kind of wake-up out of one state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateWake {
    /// What woke the CPU.
    pub kind: WakeKind,
    /// Times the state was entered before this kind of wake-up.
    #[serde(default)]
    pub n_entered: u64,
    /// How many times any state was entered while this kind was measured.
    #[serde(default)]
    pub n_entered_any: u64,
    /// Latency of these wake-ups, all rounds together.
    pub latency: Distribution,
    /// The median of each round, in order.
    pub round_p50_ns: Vec<u64>,
    /// The median's extra over the floor; none for the floor itself, or where either was not entered nearly always.
    pub extra: Option<Extra>,
    /// CPU time of the woken CPU per wake-up, of each round: what its idle counters leave of the window. Empty where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub round_busy_ns: Vec<u64>,
    /// Its extra over the floor: CPU time that each sleep in this state adds (its way in and out, timers stopped and set again).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_busy: Option<Extra>,
    /// The same of the CPU that woke it, for kinds whose waker does not wait for the answer (futex, eventfd).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub round_waker_busy_ns: Vec<u64>,
    /// Its extra over the floor: CPU time that waking a CPU out of this state costs another one (an interrupt to send).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_waker_busy: Option<Extra>,
}

/// A paired difference of medians.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Extra {
    /// Median over the rounds.
    pub median_ns: f64,
    /// Lower end of its 95 % interval (sign test); with fewer than six rounds the smallest difference.
    pub low_ns: f64,
    /// Upper end of that interval; with fewer than six rounds the largest difference.
    pub high_ns: f64,
    /// How many rounds had both this state and the floor.
    pub n_rounds: u32,
    /// Claimed exit latency of the floor, which is not in the difference.
    pub over_claimed_ns: u64,
}

/// A claim this many times off, either way, is far off.
pub const FAR_OFF: f64 = 3.0;

/// A claim that is far off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClaimOff {
    /// The claim.
    pub claimed_ns: u64,
    /// The part of it above the floor's own claim, which is what the extra can be compared with.
    pub above_floor_ns: u64,
    /// What was measured.
    pub extra: Extra,
    /// By which kind of wake-up.
    pub kind: WakeKind,
    /// Measured over claimed, both above the floor.
    pub ratio: f64,
}

impl StateWake {
    /// Latencies of a kind: the median of each round, and all rounds together.
    pub fn of(kind: WakeKind, latency: Distribution, round_p50_ns: Vec<u64>) -> StateWake {
        StateWake {
            kind,
            n_entered: 0,
            n_entered_any: 0,
            latency,
            round_p50_ns,
            extra: None,
            round_busy_ns: Vec::new(),
            extra_busy: None,
            round_waker_busy_ns: Vec::new(),
            extra_waker_busy: None,
        }
    }

    /// Entries into the state per idle entry or per wake-up of this kind, whichever is more.
    pub fn entered_ratio(&self) -> Option<f64> {
        let n = self.n_entered_any.max(self.latency.n);
        (n > 0).then(|| self.n_entered as f64 / n as f64)
    }

    /// Did the CPU sleep in the state nearly always, so that the median is the state's?
    pub fn is_pure(&self) -> bool {
        self.entered_ratio().is_some_and(|ratio| ratio >= MIN_EXTRA_RATIO)
    }
}

impl StateCost {
    /// Is the claim far off, beyond the doubt of the rounds? A claim is a worst case, so it is too high only where even the
    /// 99th percentile's excess over the median would not reach it.
    pub fn claim_off(&self) -> Option<ClaimOff> {
        self.judged().and_then(|(beside, is_off)| is_off.then_some(beside))
    }

    /// Is there a claim, and a wake-up that can tell whether it holds?
    pub fn is_claim_judged(&self) -> bool {
        self.judged().is_some()
    }

    /// The claim beside its measurement, and whether it is far off. Judged by the interrupt, else the futex: a timer may be
    /// foreseen by the hardware.
    fn judged(&self) -> Option<(ClaimOff, bool)> {
        let claimed_ns = self.claimed_exit_ns.filter(|ns| *ns > 0 && self.is_entered() && !self.is_polling)?;
        let wake =
            [WakeKind::Ipi, WakeKind::Futex].into_iter().find_map(|k| self.wake(k).filter(|w| w.extra.is_some()))?;
        let extra = wake.extra?;
        // The floor's own exit is missing in the extra, so it is taken off the claim as well.
        let above_floor_ns = claimed_ns.saturating_sub(extra.over_claimed_ns);
        if above_floor_ns == 0 {
            return None;
        }
        let claimed = above_floor_ns as f64;
        let tail_ns =
            wake.latency.p99_ns().zip(wake.latency.p50_ns()).map_or(0.0, |(p99, p50)| p99.saturating_sub(p50) as f64);
        let is_low = extra.low_ns > claimed * FAR_OFF;
        let is_high = extra.n_rounds >= 2 && (extra.high_ns.max(0.0) + tail_ns) * FAR_OFF < claimed;
        let ratio = extra.median_ns / claimed;
        Some((ClaimOff { claimed_ns, above_floor_ns, extra, kind: wake.kind, ratio }, is_low || is_high))
    }

    /// Wake-ups measured, of all kinds.
    pub fn n_wakes(&self) -> u64 {
        self.wakes.iter().map(|w| w.latency.n).sum()
    }

    /// Entries into this state per idle entry or per wake-up, whichever is more: one where the CPU slept before every
    /// wake-up and always in this state. None where nothing was measured.
    pub fn entered_ratio(&self) -> Option<f64> {
        let n = self.n_entered_any.max(self.n_wakes());
        (n > 0).then(|| self.n_entered as f64 / n as f64)
    }

    /// Are the numbers this state's?
    pub fn is_entered(&self) -> bool {
        self.not_entered.is_none()
    }

    /// The first work after a pause, of one piece.
    pub fn first_work(&self, piece: Piece) -> Option<&FirstWork> {
        self.first_work.iter().find(|work| work.piece == piece)
    }

    /// The wake-ups of one kind.
    pub fn wake(&self, kind: WakeKind) -> Option<&StateWake> {
        self.wakes.iter().find(|w| w.kind == kind)
    }
}

/// What leaving a state was measured to cost, beyond the floor.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredExit {
    /// The CPU that slept.
    pub cpu: u32,
    /// What woke it: the interrupt, else the futex.
    pub kind: WakeKind,
    /// The paired difference of medians.
    pub extra: Extra,
    /// What it is counted from: polling, or the shallowest state.
    pub floor: String,
}

impl std::fmt::Display for MeasuredExit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // rounded, not negative, far below 2^64
        let ns = |ns: f64| show_ns(ns.max(0.0).round() as u64);
        let Extra { median_ns, low_ns, high_ns, n_rounds, .. } = self.extra;
        write!(
            f,
            "{} [{}, {}] over {}, by {} on CPU {}, {n_rounds} rounds",
            ns(median_ns),
            ns(low_ns),
            ns(high_ns),
            self.floor,
            self.kind.word(),
            self.cpu
        )
    }
}

impl StateCosts {
    /// Of these states on this CPU, with nothing else said.
    pub fn of(cpu: u32, states: Vec<StateCost>) -> StateCosts {
        StateCosts {
            cpu,
            from_cpu: None,
            set_cpus: CpuSet::new(),
            governor: None,
            driver: None,
            gap_ns: 0,
            n_rounds: 0,
            seed: 0,
            scheduling: None,
            window: Window::default(),
            states,
            floor: None,
            energy: None,
            not_restored: Vec::new(),
        }
    }

    /// What this state was measured to cost, where it was entered and woken unannounced.
    pub fn measured_exit(&self, state: &str) -> Option<MeasuredExit> {
        let state = self.states.iter().find(|s| s.name == state && s.is_entered())?;
        let (kind, extra) =
            [WakeKind::Ipi, WakeKind::Futex].into_iter().find_map(|kind| Some((kind, state.wake(kind)?.extra?)))?;
        Some(MeasuredExit { cpu: self.cpu, kind, extra, floor: self.floor.clone()? })
    }

    /// Round by round, in order of the rounds that had both: how much more wake-ups of a kind have in a state than in the floor, of whatever is asked for. Empty where either was not
    /// measured, or was not entered nearly always.
    pub fn over_floor(&self, state: &str, kind: WakeKind, of: fn(&StateWake) -> &[u64]) -> Vec<f64> {
        let pure = |name: &str| {
            let cost = self.states.iter().find(|s| s.name == name && s.is_entered())?;
            cost.wake(kind).filter(|wake| wake.is_pure())
        };
        let floor = self.floor.as_deref().filter(|floor| *floor != state);
        let both = floor.and_then(|floor| Some((pure(state)?, pure(floor)?)));
        both.map_or_else(Vec::new, |(wake, below)| differences(of(wake), of(below)))
    }

    /// Fills in every state's extra over the floor: polling where it was entered, else the shallowest state that was.
    pub fn compare_with_floor(&mut self) {
        let entered = || self.states.iter().filter(|s| s.is_entered());
        let Some(floor) = entered().find(|s| s.is_polling).or_else(|| entered().next()).cloned() else { return };
        let over_claimed_ns = floor.claimed_exit_ns.unwrap_or(0);
        for state in self.states.iter_mut().filter(|s| s.index != floor.index && s.is_entered()) {
            for wake in state.wakes.iter_mut().filter(|wake| wake.is_pure()) {
                let below = floor.wake(wake.kind).filter(|below| below.is_pure());
                let Some(below) = below else { continue };
                wake.extra = extra(&wake.round_p50_ns, &below.round_p50_ns, over_claimed_ns);
                wake.extra_busy = extra(&wake.round_busy_ns, &below.round_busy_ns, 0);
                wake.extra_waker_busy = extra(&wake.round_waker_busy_ns, &below.round_waker_busy_ns, 0);
            }
        }
        self.floor = Some(floor.name);
    }
}

/// Round by round; 0 in a list means that the round had no median.
fn differences(state: &[u64], floor: &[u64]) -> Vec<f64> {
    let both = state.iter().zip(floor).filter(|(a, b)| **a > 0 && **b > 0);
    both.map(|(a, b)| *a as f64 - *b as f64).collect()
}

/// How many of so many values may be cut off at each end so that the rest still covers their median with 95 %: the sign
/// test, which assumes nothing. None of five, which cover it with 94 %.
fn sign_test_cut(n: usize) -> usize {
    let (mut term, mut below, mut cut) = (0.5f64.powi(i32::try_from(n).unwrap_or(i32::MAX)), 0.0, 0);
    for k in 0..n / 2 {
        below += term;
        if 2.0 * below > 0.05 {
            break;
        }
        cut = k;
        term *= (n - k) as f64 / (k + 1) as f64;
    }
    cut
}

/// The paired difference.
fn extra(state: &[u64], floor: &[u64], over_claimed_ns: u64) -> Option<Extra> {
    let mut differences = differences(state, floor);
    differences.sort_by(f64::total_cmp);
    let last = differences.len().checked_sub(1)?;
    let cut = sign_test_cut(differences.len());
    let (low_ns, high_ns) = (differences[cut], differences[last - cut]);
    let median_ns = f64::midpoint(differences[last / 2], differences[last.div_ceil(2)]);
    let n_rounds = u32::try_from(differences.len()).unwrap_or(u32::MAX);
    Some(Extra { median_ns, low_ns, high_ns, n_rounds, over_claimed_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(name: &str, is_polling: bool, rounds: &[u64]) -> StateCost {
        let wake = StateWake {
            n_entered: 9,
            n_entered_any: 10,
            ..StateWake::of(WakeKind::Ipi, Distribution::default(), rounds.to_vec())
        };
        StateCost {
            index: u32::from(!is_polling),
            name: name.into(),
            is_polling,
            claimed_exit_ns: None,
            claimed_residency_ns: None,
            allowed_by: String::new(),
            n_entered: 9,
            n_entered_any: 10,
            time_ns: 0,
            n_rejected: None,
            not_entered: None,
            wakes: vec![wake],
            first_work: Vec::new(),
            round_own_ratio: Vec::new(),
        }
    }

    #[test]
    fn cpu_time_is_paired_by_round_and_none_where_nobody_counted() {
        let mut poll = state("POLL", true, &[100, 100, 100]);
        let mut c6 = state("C6", false, &[900, 900, 900]);
        (poll.wakes[0].round_busy_ns, c6.wakes[0].round_busy_ns) = (vec![10, 30, 0], vec![22, 50, 99]);
        let mut costs = StateCosts::of(1, vec![poll, c6]);
        costs.compare_with_floor();
        let wake = &costs.states[1].wakes[0];
        let busy = wake.extra_busy.unwrap();
        // 0 is a round without.
        assert_eq!((busy.median_ns, busy.low_ns, busy.high_ns, busy.n_rounds), (16.0, 12.0, 20.0, 2));
        assert_eq!((wake.extra_waker_busy, costs.states[0].wakes[0].extra_busy), (None, None));
    }

    #[test]
    fn first_work_is_paired_with_the_same_at_once_again() {
        let work = FirstWork {
            piece: Piece::Trip,
            first: Distribution::default(),
            again: Distribution::default(),
            round_first_p50_ns: vec![30, 50, 0, 90],
            round_again_p50_ns: vec![10, 12, 11, 0],
        };
        // A round without one of them is none.
        let extra = work.extra().unwrap();
        assert_eq!((extra.median_ns, extra.low_ns, extra.high_ns, extra.n_rounds), (29.0, 20.0, 38.0, 2));
        let cost = StateCost { first_work: vec![work], ..state("C6", false, &[1]) };
        assert!(cost.first_work(Piece::Trip).is_some() && cost.first_work(Piece::Table).is_none());
    }

    #[test]
    fn the_extra_is_paired_by_round_and_needs_both() {
        let mut costs =
            StateCosts::of(1, vec![state("POLL", true, &[100, 500, 0]), state("C6", false, &[1100, 1600, 70_000])]);
        costs.compare_with_floor();
        let extra = costs.states[1].wakes[0].extra.unwrap();
        assert_eq!((extra.median_ns, extra.low_ns, extra.high_ns, extra.n_rounds), (1050.0, 1000.0, 1100.0, 2));
        assert_eq!(costs.states[0].wakes[0].extra, None);
        assert_eq!(costs.states[0].entered_ratio(), Some(0.9));
        let mut c6 = costs.states[1].clone();
        for (claimed_ns, is_off) in [(100, true), (300, true), (500, false), (3000, false), (4000, true)] {
            c6.claimed_exit_ns = Some(claimed_ns);
            assert_eq!(c6.claim_off().is_some(), is_off, "claim {claimed_ns}, extra 1000 to 1100");
        }
        c6.wakes[0].kind = WakeKind::Timer;
        assert!(!c6.is_claim_judged(), "a timer cannot tell");
        for at in [0, 1] {
            costs.states[1].wakes[0].extra = None;
            costs.states[at].wakes[0].n_entered = 8;
            costs.compare_with_floor();
            assert_eq!(costs.states[1].wakes[0].extra, None, "a fifth of the wake-ups were out of another state");
            costs.states[at].wakes[0].n_entered = 10;
        }
        costs.states[1].wakes[0].extra = None;
        costs.states[0].not_entered = Some("refused".into());
        costs.compare_with_floor();
        assert_eq!(costs.states[1].wakes[0].extra, None, "the shallowest that was entered is the floor");
        assert_eq!(costs.floor.as_deref(), Some("C6"));
    }
}
