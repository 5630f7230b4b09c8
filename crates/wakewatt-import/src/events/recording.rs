//! Idle intervals from events, as a recording that `replay` reads.
//!
//! The events hold which state was entered and left, and when; with timer and interrupt events also what ended it. What governors look
//! at before (the next timer, the tick, tasks in iowait) they do not hold, so it stays unknown in the recording and its header says so.

use std::collections::{BTreeMap, BTreeSet};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::record::wtrace::{Encoder, Header, Mark, StateTable, TableState};
use wakewatt_core::samples::idle_pair::IdlePair;

/// A recording is no longer than this.
const MAX_BYTES: usize = 512 << 20;

/// The intervals, packed.
#[derive(Debug, Default)]
pub struct Recorded {
    blocks: Vec<u8>,
    encoder: Option<Encoder>,
    /// How many intervals there are.
    pub n_pairs: u64,
    /// How many did not fit.
    pub n_left_out: u64,
    states: BTreeMap<u32, BTreeSet<u8>>,
    start_at_ns: u64,
    end_at_ns: u64,
    has_causes: bool,
}

/// How times are kept: to the nanosecond.
fn grid() -> Header {
    Header { unit_ns: None, ..Header::default() }
}

impl Recorded {
    pub(super) fn push(&mut self, pair: IdlePair) {
        if self.blocks.len() >= MAX_BYTES {
            self.n_left_out += 1;
            return;
        }
        let encoder = self.encoder.get_or_insert_with(|| Encoder::resume(&grid()));
        if self.n_pairs == 0 {
            self.start_at_ns = pair.enter_at_ns;
            self.blocks.extend(encoder.mark(&Mark::WindowOpened { at_ns: pair.enter_at_ns }));
        }
        self.n_pairs += 1;
        self.end_at_ns = self.end_at_ns.max(pair.enter_at_ns.saturating_add(pair.duration_ns));
        self.states.entry(pair.cpu).or_default().insert(pair.state);
        self.has_causes |= pair.is_tick_fired.is_some();
        self.blocks.extend(encoder.push(pair).unwrap_or_default());
    }

    /// The file, if there is an interval. `wakewatt` is the version that writes it, `now_s` the time since 1970.
    pub fn wtrace(mut self, facts: &Snapshot, wakewatt: &str, now_s: u64) -> Option<Vec<u8>> {
        let mut encoder = self.encoder.take()?;
        self.blocks.extend(encoder.mark(&Mark::WindowClosed { at_ns: self.end_at_ns, n_lost: self.n_left_out }));
        self.blocks.extend(encoder.end());
        let (_, mut out) = Encoder::start(&self.header(facts, wakewatt, now_s));
        out.append(&mut self.blocks);
        Some(out)
    }

    fn header(&self, facts: &Snapshot, wakewatt: &str, now_s: u64) -> Header {
        let idle = &facts.idle;
        let known = idle.tables();
        let recorded: CpuSet = self.states.keys().copied().collect();
        let mut gaps = vec![
            "next event, sleep length, tick, iowait: imported events do not hold them".to_string(),
            "boot and clock: not known".to_string(),
        ];
        if !self.has_causes {
            gaps.push("what ended an interval: no timer events".into());
        }
        let mut tables: Vec<StateTable> = Vec::new();
        let mut covered = CpuSet::new();
        for (cpus, rows) in &known {
            // A table that lacks a state that was entered is of another kind of CPU.
            let has_all = |cpu: &u32| {
                self.states.get(cpu).is_none_or(|s| s.iter().all(|i| rows.iter().any(|r| r.index == u32::from(*i))))
            };
            let own: CpuSet = match known.len() {
                1 => recorded.iter().filter(has_all).collect(),
                _ => cpus.iter().filter(has_all).collect(),
            };
            if known.len() == 1 && !recorded.minus(cpus).is_empty() {
                gaps.push(format!("idle table: that of CPUs {cpus} is taken for all"));
            }
            covered = covered.union(&own);
            tables.push(StateTable { cpus: own.to_string(), states: rows.iter().map(TableState::from).collect() });
        }
        tables.retain(|table| !table.cpus.is_empty());
        let bare = recorded.minus(&covered);
        if !bare.is_empty() {
            let deepest = bare.iter().filter_map(|cpu| self.states.get(&cpu)?.last().copied()).max().unwrap_or(0);
            let state = |index| TableState { index, name: format!("state{index}"), ..TableState::default() };
            tables.push(StateTable { cpus: bare.to_string(), states: (0..=u32::from(deepest)).map(state).collect() });
            gaps.push(format!("idle table of CPUs {bare}: no imported text has it"));
        }
        let last = recorded.iter().last().map_or(0, |cpu| cpu + 1);
        Header {
            wakewatt: wakewatt.into(),
            created_at_s: now_s,
            kernel: facts.kernel.release.get().cloned().unwrap_or_else(|| "unknown".into()),
            kernel_build: facts.kernel.build.get().cloned(),
            arch: "unknown".into(),
            driver: idle.driver.get().cloned(),
            governor: idle.governor.get().cloned(),
            n_cpus: last,
            tables,
            sources: vec!["stays: power:cpu_idle, imported from text".into()],
            gaps,
            window_ns: self.end_at_ns.saturating_sub(self.start_at_ns),
            every_window: 1,
            ..grid()
        }
    }
}
