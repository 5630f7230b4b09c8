//! Recorded events as text, of `perf script`, `trace-cmd report` and ftrace's own file: wake-ups by idle state.
//!
//! The caller of a wake-up and the CPU that was woken are often recorded into two files, so all texts of events are read together in
//! the order of their times (`merged`), line by line, in bounded memory however long they are. From them come (`cpus`):
//!
//! - each CPU's idle intervals: `cpu_idle` with a state is the entry, with 4294967295 (-1) the exit;
//! - wake-ups: from `sched_waking` to the moment the task runs (`sched_switch` to it), by the state its CPU was in when it was woken,
//!   as `trace` counts them; and to the exit from idle that follows on the CPU that is named, which needs no `sched_switch` and is
//!   what "Energy Efficiency Aspects of the AMD Zen 2 Architecture" (Schöne et al., 2021) calls the latency of a C-state;
//! - intervals for `replay` (`recording`), without the timers that governors look at: the events do not hold them.
//!
//! States have numbers in events. Their names come from the other texts, where one has the machine's idle table.

mod cells;
mod cpu;
mod cpus;
mod line;
mod merged;
mod recording;

pub use merged::EventText;
pub use recording::Recorded;

use crate::document::{Document, Found, Wakeups};
use cpus::Machine;
use line::Names;
use merged::Merged;
use wakewatt_core::distribution::Distribution;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::samples::Window;
use wakewatt_core::samples::traced::Traced;
use wakewatt_core::samples::traced_whose::TracedWhose;

/// Lines that are looked at to tell.
const FIRST: usize = 2000;

/// Is the line one of a recorded event?
pub fn is_event(text: &str) -> bool {
    line::parts(text).is_some()
}

/// Are these lines events?
pub fn are_events(lines: &mut dyn Iterator<Item = &str>) -> bool {
    let (mut n, mut n_events) = (0, 0);
    for text in lines.take(FIRST).filter(|text| !text.trim().is_empty() && !text.starts_with('#')) {
        n += 1;
        n_events += usize::from(is_event(text));
    }
    n_events > 0 && (n_events >= 3 || n_events * 2 >= n)
}

/// What came of events.
#[derive(Debug, Default)]
pub(crate) struct Came {
    pub(crate) traced: Option<Traced>,
    pub(crate) recorded: Recorded,
    pub(crate) wakeups: Vec<Wakeups>,
    pub(crate) remarks: Vec<String>,
}

/// Reads them all in the order of their times.
pub(crate) fn read(texts: Vec<EventText>, facts: &Snapshot, document: &mut Document) -> Came {
    let mut names = Names::default();
    let mut machine = Machine::new(facts);
    let mut merged = Merged::of(texts, &mut names);
    while let Some(event) = merged.next(&mut names) {
        machine.event(&event);
    }
    machine.finish();
    let mut came = Came::default();
    let mut n_backwards = 0;
    for text in merged.finished() {
        n_backwards += text.n_backwards;
        let Some(file) = document.files.get_mut(text.file) else { continue };
        file.n_lines += text.n_lines;
        file.n_understood += text.n_events;
        file.n_unused += text.n_other;
        file.n_not_understood += text.n_left;
        file.not_understood.extend(text.left);
        if text.n_events + text.n_other > 0 {
            let (format, title) = (text.kind.id().into(), text.kind.title().into());
            file.formats.push(Found {
                format,
                title,
                from_line: text.first_line,
                to_line: text.last_line,
                n_understood: text.n_events,
                n_taken: text.n_events,
            });
        }
    }
    if n_backwards > 0 {
        came.remarks.push(format!(
            "{n_backwards} events stood before earlier ones in their text and were read where they stood: sort by time"
        ));
    }
    let name_of = |cpu: u32, state: u32| state_name(facts, cpu, state);
    came.wakeups = machine.wakeups(&names, &name_of);
    came.remarks.extend(machine.remarks());
    if let Some((start_at_ns, end_at_ns)) = machine.window() {
        let window = Window { start_at_ns, end_at_ns };
        let counters = machine.counters(end_at_ns, &names);
        let mut traced = Traced::of(&counters, &name_of, window, TracedWhose::Machine);
        let until = if machine.has_switches() { "running" } else { "exit" };
        for row in &mut traced.rows {
            let is_same = |w: &&Wakeups| {
                w.task.is_none() && w.until == until && w.state == row.state && w.by == row.class.words()
            };
            if let Some(known) = came.wakeups.iter().find(is_same).filter(|w| w.is_exact) {
                sharpen(&mut row.latency, known);
            }
        }
        traced.remarks = came.remarks.clone();
        traced.remarks.insert(0, "from recorded events that were imported as text, not traced here".into());
        came.traced = Some(traced).filter(|t| !t.rows.is_empty() || !t.states.is_empty());
    }
    came.recorded = machine.recorded();
    came
}

/// Quantiles of the very values in place of those between the edges of buckets; their intervals hold both.
fn sharpen(latency: &mut Distribution, known: &Wakeups) {
    latency.min_ns = known.min_ns;
    for quantile in &mut latency.quantiles {
        // Below the age of the universe.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let exact = match quantile.q {
            0.5 => Some(known.median_ns.round() as u64),
            0.9 => known.p90_ns,
            0.99 => known.p99_ns,
            _ => None,
        };
        quantile.value_ns = exact.unwrap_or(quantile.value_ns);
    }
}

/// The name of a state by the imported idle table, else by its number.
fn state_name(facts: &Snapshot, cpu: u32, state: u32) -> String {
    let known = facts.idle.states.iter().find(|s| s.index == state);
    let name = known.and_then(|s| {
        // A table of one CPU stands for all where nothing else is said.
        s.name.of(cpu).and_then(|f| f.get()).or_else(|| s.name.known().map(|(_, n)| n).next()).cloned()
    });
    name.unwrap_or_else(|| format!("state{state}"))
}
