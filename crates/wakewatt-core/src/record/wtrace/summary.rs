//! What a recording of idle intervals holds, for `trace info`: how long, which states, what ended them, what was missed.
//!
//! `above` and `below` are the kernel's own rule (cpuidle core, since 5.x): a stay shorter than the state's target
//! residency is above when any enabled shallower state exists; one longer than the exit latency is below when the stay
//! less that latency reaches the target residency of the next deeper enabled state. Computed from the trace, whose stays
//! are 0.2 to 1 us too long, so borderline cases may differ from sysfs.

use super::header::{Header, Mark, TableState};
use super::tables::Tables;
use crate::distribution::Distribution;
use crate::samples::idle_pair::{IdlePair, WakeCause};
use crate::samples::kernel_histogram::KernelHistogram;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The stays in one idle state that were recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecordedState {
    /// Name of the idle state.
    pub state: String,
    /// How many stays in it were recorded.
    pub n: u64,
    /// Time spent in it, in nanoseconds.
    pub time_ns: u64,
    /// Woke before its target residency.
    pub n_above: u64,
    /// Stayed long enough for a deeper one.
    pub n_below: u64,
    /// Length of the stays.
    pub length: Distribution,
}

/// A recording in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairSummary {
    /// How many stays were recorded.
    pub n_pairs: u64,
    /// First entry, CLOCK_MONOTONIC of the recorded machine.
    pub first_at_ns: Option<u64>,
    /// When the last stay ended, on CLOCK_MONOTONIC.
    pub last_at_ns: Option<u64>,
    /// How many CPUs were seen.
    pub n_cpus: u64,
    /// Stays by the name of their state.
    pub states: Vec<RecordedState>,
    /// What ended the stays, and how many.
    pub ended_by: Vec<(WakeCause, u64)>,
    /// Stays with the next timer known.
    pub n_with_timers: u64,
    /// Stays with the sleep length known.
    pub n_with_sleep_length: u64,
    /// Records lost, by the windows' own count.
    pub n_lost: u64,
    /// How many windows were closed.
    pub n_windows: u64,
}

/// Stays of one state, those above, those below.
type Counted = (KernelHistogram, u64, u64);

/// Builds a summary pair by pair.
#[derive(Debug)]
pub struct Summing<'a> {
    tables: Tables<'a>,
    /// By table and state, not by CPU: a histogram is 2 KiB, and a file can name a CPU with a dozen bytes.
    by_state: BTreeMap<(Option<usize>, u8), Counted>,
    cpus: BTreeSet<u32>,
    causes: BTreeMap<WakeCause, u64>,
    summary: PairSummary,
}

impl<'a> Summing<'a> {
    /// For pairs of this recording. Tables that the reader would have refused count as none.
    pub fn new(header: &'a Header) -> Summing<'a> {
        Summing {
            tables: Tables::of(header).unwrap_or_default(),
            by_state: BTreeMap::new(),
            cpus: BTreeSet::new(),
            causes: BTreeMap::new(),
            summary: PairSummary::default(),
        }
    }

    /// Adds pairs of one CPU.
    pub fn pairs(&mut self, pairs: &[IdlePair]) {
        let Some(first) = pairs.first() else { return };
        let table = self.tables.on(first.cpu);
        let (number, states) = table.map_or((None, &[][..]), |(at, table)| (Some(at), &table.states[..]));
        self.cpus.insert(first.cpu);
        for pair in pairs {
            let (hist, above, below) = self.by_state.entry((number, pair.state)).or_default();
            hist.add(pair.duration_ns);
            let (is_above, is_below) = missed(states, pair);
            *above += u64::from(is_above);
            *below += u64::from(is_below);
            *self.causes.entry(pair.ended_by).or_default() += 1;
            let s = &mut self.summary;
            s.n_pairs += 1;
            s.n_with_timers += u64::from(pair.next_event_ns.is_some());
            s.n_with_sleep_length += u64::from(pair.sleep_length_ns.is_some());
            let exit_at_ns = pair.enter_at_ns.saturating_add(pair.duration_ns);
            s.first_at_ns = Some(s.first_at_ns.unwrap_or(u64::MAX).min(pair.enter_at_ns));
            s.last_at_ns = Some(s.last_at_ns.unwrap_or(0).max(exit_at_ns));
        }
    }

    /// Adds a remark.
    pub fn mark(&mut self, mark: &Mark) {
        if let Mark::WindowClosed { n_lost, .. } = mark {
            self.summary.n_windows += 1;
            self.summary.n_lost = self.summary.n_lost.saturating_add(*n_lost);
        }
    }

    /// The numbers.
    pub fn finish(self) -> PairSummary {
        let mut by_name: BTreeMap<String, Counted> = BTreeMap::new();
        for ((table, state), (hist, above, below)) in self.by_state {
            let entry = by_name.entry(self.tables.name_in(table, state)).or_default();
            entry.0.merge(&hist);
            entry.1 += above;
            entry.2 += below;
        }
        let states = by_name.into_iter().map(|(state, (hist, n_above, n_below))| RecordedState {
            state,
            n: hist.n,
            time_ns: hist.sum_ns,
            n_above,
            n_below,
            length: hist.distribution(),
        });
        PairSummary {
            states: states.collect(),
            ended_by: self.causes.into_iter().collect(),
            n_cpus: self.cpus.len() as u64,
            ..self.summary
        }
    }
}

/// The kernel's accounting of one stay: above, below.
fn missed(states: &[TableState], pair: &IdlePair) -> (bool, bool) {
    let Some(entered) = states.iter().find(|s| s.index == u32::from(pair.state)) else { return (false, false) };
    let (Some(latency), Some(residency)) = (entered.exit_latency_ns, entered.target_residency_ns) else {
        return (false, false);
    };
    let is_enabled = |s: &&TableState| s.is_enabled != Some(false);
    if pair.duration_ns < residency {
        return (states.iter().filter(is_enabled).any(|s| s.index < entered.index), false);
    }
    let deeper = states.iter().filter(is_enabled).find(|s| s.index > entered.index);
    let is_below = pair.duration_ns > latency
        && deeper.and_then(|d| d.target_residency_ns).is_some_and(|t| pair.duration_ns - latency >= t);
    (false, is_below)
}

#[cfg(test)]
mod tests {
    use super::super::header::StateTable;
    use super::*;

    fn header() -> Header {
        let state = |(index, (name, latency, residency)): (usize, (&str, u64, u64))| TableState {
            index: u32::try_from(index).unwrap(),
            name: name.into(),
            exit_latency_ns: Some(latency * 1000),
            target_residency_ns: Some(residency * 1000),
            is_polling: index == 0,
            is_enabled: Some(true),
        };
        // What acpi_idle makes of _CST latencies 1, 41 and 100 us (docs/governors.md).
        let rows = [("POLL", 0, 0), ("C1", 1, 2), ("C2", 41, 82), ("C3", 100, 200)];
        let states = rows.into_iter().enumerate().map(state).collect();
        Header { tables: vec![StateTable { cpus: "0-1".into(), states }], ..Header::default() }
    }

    #[test]
    fn misses_are_counted_as_the_kernel_counts_them() {
        // By hand: 60 us in C2 (41/82); 350 us in C2, then C3 (200) fitted; 84 us in C1, then C2 fitted.
        let states = &header().tables[0].states;
        let said =
            |state: u8, us: u64| missed(states, &IdlePair { state, duration_ns: us * 1000, ..IdlePair::default() });
        assert_eq!(
            (said(2, 60), said(2, 350), said(1, 84), said(1, 82)),
            ((true, false), (false, true), (false, true), (false, false))
        );
        assert_eq!((said(3, 199), said(3, 5000), said(9, 1)), ((true, false), (false, false), (false, false)));
    }

    #[test]
    fn a_summary_adds_up() {
        let header = header();
        let mut summing = Summing::new(&header);
        let pair = |cpu, state, us: u64, at| IdlePair {
            cpu,
            state,
            duration_ns: us * 1000,
            enter_at_ns: at,
            ..IdlePair::default()
        };
        summing.pairs(&[pair(0, 1, 5, 10), pair(0, 1, 7, 90_000)]);
        summing.pairs(&[IdlePair { next_event_ns: Some(-3), ..pair(1, 3, 900, 50) }]);
        summing.mark(&Mark::WindowClosed { at_ns: 1, n_lost: 4 });
        let s = summing.finish();
        assert_eq!((s.n_pairs, s.n_cpus, s.n_lost, s.n_windows, s.n_with_timers), (3, 2, 4, 1, 1));
        assert_eq!((s.first_at_ns, s.last_at_ns), (Some(10), Some(900_050)));
        let names: Vec<(&str, u64)> = s.states.iter().map(|s| (s.state.as_str(), s.n)).collect();
        assert_eq!(names, [("C1", 2), ("C3", 1)]);
        assert_eq!(PairSummary::default(), Summing::new(&header).finish());
    }
}
