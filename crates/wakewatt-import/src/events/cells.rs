//! Latencies by what they are of: the very values, as long as there are not too many, and a histogram beyond.
//!
//! A median that somebody printed can only be met with the very values. They are kept up to a few million over all; from then on
//! what comes is counted in the histogram that the eBPF programs use, and the figures say that they are interpolated.

use super::line::Names;
use crate::document::Wakeups;
use std::collections::BTreeMap;
use wakewatt_core::samples::kernel_histogram::KernelHistogram;
use wakewatt_core::samples::wakes::WakeClass;

/// Values that are kept over all, 32 MiB.
const MAX_VALUES: usize = 4 << 20;
/// Different kinds that are told apart.
const MAX_KINDS: usize = 20_000;
/// Rows of single tasks.
const MAX_ROWS: usize = 60;

/// Whose name stands for all that were not told apart.
const NOBODY: u32 = u32::MAX;

/// What a latency is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// To the task's running, else to the exit from idle.
    pub(super) is_running: bool,
    pub(super) state: Option<u8>,
    pub(super) class: WakeClass,
    pub(super) cpu: u32,
    pub(super) task: u32,
}

#[derive(Clone, Debug, Default)]
struct Cell {
    values: Vec<u64>,
    hist: KernelHistogram,
    min_ns: u64,
}

/// Those that make one row.
type Kept<'a> = Vec<(&'a Key, &'a Cell)>;

/// All latencies.
#[derive(Debug, Default)]
pub(super) struct Cells {
    cells: BTreeMap<Key, Cell>,
    n_values: usize,
}

impl Cells {
    pub(super) fn add(&mut self, mut key: Key, ns: u64) {
        if self.cells.len() >= MAX_KINDS && !self.cells.contains_key(&key) {
            key.task = NOBODY;
        }
        let cell = self.cells.entry(key).or_default();
        cell.min_ns = if cell.hist.n == 0 { ns } else { cell.min_ns.min(ns) };
        cell.hist.add(ns);
        if self.n_values < MAX_VALUES && cell.values.len() as u64 + 1 == cell.hist.n {
            cell.values.push(ns);
            self.n_values += 1;
        }
    }

    /// Histograms of one way to end, by CPU, state and class.
    pub(super) fn histograms(&self, is_running: bool) -> BTreeMap<(u32, Option<u8>, WakeClass), KernelHistogram> {
        let mut all: BTreeMap<(u32, Option<u8>, WakeClass), KernelHistogram> = BTreeMap::new();
        for (key, cell) in self.cells.iter().filter(|(key, _)| key.is_running == is_running) {
            all.entry((key.cpu, key.state, key.class)).or_default().merge(&cell.hist);
        }
        all
    }

    fn row(
        keys: &[(&Key, &Cell)],
        state: Option<String>,
        by: &str,
        task: Option<String>,
        cpu: Option<u32>,
    ) -> Option<Wakeups> {
        let mut hist = KernelHistogram::default();
        let mut values: Vec<u64> = Vec::new();
        for (_, cell) in keys {
            hist.merge(&cell.hist);
            values.extend(&cell.values);
        }
        values.sort_unstable();
        let is_exact = values.len() as u64 == hist.n;
        let (first, _) = keys.first()?;
        let distribution = hist.distribution();
        let rough = |q: f64| distribution.quantiles.iter().find(|known| known.q == q).map(|known| known.value_ns);
        // Nearest rank.
        let at = |per_mille: usize| values.get((values.len() * per_mille).div_ceil(1000).checked_sub(1)?).copied();
        let middle = (values.get(values.len().saturating_sub(1) / 2), values.get(values.len() / 2));
        let median_ns = match (is_exact, middle) {
            (true, (Some(low), Some(high))) => (*low as f64 + *high as f64) / 2.0,
            _ => rough(0.5).map_or(hist.mean_ns()?, |ns| ns as f64),
        };
        Some(Wakeups {
            until: if first.is_running { "running" } else { "exit" },
            state,
            by: by.into(),
            task,
            cpu,
            n: hist.n,
            min_ns: keys.iter().map(|(_, cell)| cell.min_ns).min()?,
            median_ns,
            p90_ns: if is_exact { at(900).filter(|_| hist.n >= 100) } else { rough(0.9) },
            p99_ns: if is_exact { at(990).filter(|_| hist.n >= 1000) } else { rough(0.99) },
            max_ns: hist.max_ns,
            is_exact,
        })
    }

    /// Rows: all together by state and class, then single tasks onto single CPUs, the most frequent first.
    pub(super) fn rows(&self, names: &Names, name_of: &dyn Fn(u32, u32) -> String) -> Vec<Wakeups> {
        let state_of = |key: &Key| key.state.map(|state| name_of(key.cpu, u32::from(state)));
        let mut all: BTreeMap<(bool, Option<String>, WakeClass), Kept<'_>> = BTreeMap::new();
        let mut single: BTreeMap<(bool, u32, u32), Kept<'_>> = BTreeMap::new();
        for (key, cell) in &self.cells {
            all.entry((key.is_running, state_of(key), key.class)).or_default().push((key, cell));
            single.entry((key.is_running, key.cpu, key.task)).or_default().push((key, cell));
        }
        let mut rows: Vec<Wakeups> = all
            .into_iter()
            .filter_map(|((_, state, class), cells)| Cells::row(&cells, state, by(class), None, None))
            .collect();
        let mut tasks: Vec<Wakeups> = Vec::new();
        for ((_, cpu, task), cells) in single {
            let task = Some(if task == NOBODY { "(others)".to_string() } else { names.name(task).to_string() });
            for one in &cells {
                tasks.extend(Cells::row(&[*one], state_of(one.0), by(one.0.class), task.clone(), Some(cpu)));
            }
            // What the CPU did meanwhile apart: every wake-up, to whatever came of it.
            if cells.len() > 1 {
                tasks.extend(Cells::row(&cells, None, "anybody, in whatever state", task, Some(cpu)));
            }
        }
        tasks.sort_by_key(|row| std::cmp::Reverse(row.n));
        tasks.truncate(MAX_ROWS);
        rows.extend(tasks);
        rows
    }
}

fn by(class: WakeClass) -> &'static str {
    match class {
        WakeClass::Busy => "anybody, while not idle",
        class => class.words(),
    }
}
