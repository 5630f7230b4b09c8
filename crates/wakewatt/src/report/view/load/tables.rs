//! The tables of a load section: sums, every level, the kinds of request, settings.

use super::super::super::data::{Cell, Data, Show};
use super::super::super::table::Table;
use super::super::super::words;
use super::super::section::{Section, table_if_any};
use super::{Runs, ask, half_watts, watts, why};
use wakewatt_core::distribution::Distribution;
use wakewatt_core::kept_words;
use wakewatt_core::samples::load::{Kind, Level};
use wakewatt_words::word;

/// One row for each graduated run; none for other kinds.
pub(super) fn overall(runs: &Runs<'_>) -> Option<Table> {
    let mut data = Data::with(&[
        (word!("run"), Show::Text),
        (word!("levels"), Show::Text),
        (word!("calibrated maximum"), Show::PerS),
        (word!("sum of scores"), Show::PerS),
        (word!("sum of watts"), Show::Watts),
        (word!("score per watt"), Show::PerJoule),
        (word!("idle over full power"), Show::Ratio),
        (word!("proportionality (1 is ideal)"), Show::Number),
        (word!("invalid levels"), Show::Count),
    ]);
    for r in runs.all.iter().filter(|_| runs.kind == Kind::Steps) {
        let Some(o) = r.run.overall() else { continue };
        let sum = o.sum_uw.map(|uw| uw as f64 / 1e6);
        let levels =
            if o.is_partial { word!("partial: not those of a whole run") } else { word!("100 % to 10 %, active idle") };
        // Sums of other work are no comparison.
        let score = |value: Option<f64>| value.filter(|_| runs.is_same_work());
        let mut row = vec![r.name.clone().into(), levels.into(), r.run.capacity_per_s.into()];
        row.push(Cell::of(score(Some(o.score_per_s))));
        row.extend(
            [sum, score(o.per_joule), o.idle_fraction, o.proportionality, Some(o.n_invalid as f64)].map(Cell::of),
        );
        data.rows.push(row);
    }
    table_if_any(&named(data, runs), word!("Over all levels: measured"))
}

/// Levels, parts, settings.
pub(super) fn folded(runs: &Runs<'_>, out: &mut Section) {
    out.folded.extend(table_if_any(&levels(runs), word!("Every level: measured")));
    out.folded.extend(table_if_any(&parts(runs), word!("By kind of request: measured")));
    let mut settings =
        Data::with(&[(word!("run"), Show::Text), (word!("what"), Show::Text), (word!("value"), Show::Text)]);
    for r in &runs.all {
        let mut say = |what: &str, value: String| {
            settings.rows.push(vec![r.name.clone().into(), what.into(), value.into()]);
        };
        say("title", r.run.title.clone());
        say(word!("length of phases"), format!("{:?}", r.run.length).to_lowercase());
        say(word!("seed of the schedules"), format!("{:#x}", r.run.seed));
        r.run.settings.iter().for_each(|(key, value)| say(&kept_words::shown(key), kept_words::shown(value)));
        for w in &r.run.workers {
            say(word!("worker on CPUs"), w.cpus.to_string());
        }
    }
    out.folded.extend(table_if_any(&named(settings, runs), word!("Settings of each run")));
}

fn quantile(d: Option<&Distribution>, q: f64) -> Cell {
    match d.and_then(|d| Some((d, d.quantile(q)?.value_ns))) {
        Some((d, ns)) if d.is_at_least(ns) => Cell::Text(words::ns_of(d, ns)),
        Some((_, ns)) => Cell::Value(ns as f64),
        None => Cell::Missing,
    }
}

fn levels(runs: &Runs<'_>) -> Data {
    let mut data = Data::with(&[
        (word!("run"), Show::Text),
        (word!("level"), Show::Text),
        (word!("does not count because"), Show::Text),
        (word!("disturbances"), Show::Text),
        (word!("asleep in"), Show::Text),
        (word!("planned"), Show::PerS),
        (word!("done"), Show::PerS),
        (word!("figure"), Show::Number),
        (word!("failed"), Show::Count),
        ("p50", Show::Ns),
        ("p90", Show::Ns),
        ("p99", Show::Ns),
        ("p99.9", Show::Ns),
        (word!("took"), Show::Ns),
        (word!("CPU time"), Show::Ns),
        (word!("CPUs busy"), Show::Ratio),
        (word!("in the kernel"), Show::Ratio),
        (word!("CPU per operation"), Show::Ns),
        (word!("from"), Show::Ns),
        (word!("to"), Show::Ns),
        (word!("kernel per operation"), Show::Ns),
        (word!("load average"), Show::Number),
        (word!("power"), Show::Watts),
        (word!("power ±"), Show::Watts),
        (word!("per joule"), Show::PerJoule),
    ]);
    for r in &runs.all {
        for (at, l) in r.run.levels.iter().enumerate() {
            let mut row: Vec<Cell> = vec![r.name.clone().into(), ask(l, at).into()];
            row.extend([why(l).unwrap_or_default().into(), words::clauses(&l.disturbances).into(), asleep(l).into()]);
            row.extend([
                l.target_per_s.into(),
                l.per_s.into(),
                Cell::of(l.figure.map(|f| f.value)),
                (l.n_failed as f64).into(),
            ]);
            row.extend([0.5, 0.9, 0.99, 0.999].map(|q| quantile(l.latency.as_ref(), q)));
            // A command ends when it is done; the other kinds of load have their length.
            let is_command = runs.kind == Kind::Command;
            let times = [l.window.length_ns(), l.cpu_ns].map(|ns| is_command.then_some(ns as f64));
            row.extend(times.map(Cell::of));
            let (from, to) = l.cpu_per_op.map(|r| (r.low_ns, r.high_ns)).unzip();
            let per_op = l.cpu_ns_per_op();
            let numbers = [l.busy_ratio(), in_kernel(l), per_op, from, to, l.system_ns_per_op(), l.load_average];
            row.extend(numbers.map(Cell::of));
            row.extend([watts(l), half_watts(l), l.per_joule()].map(Cell::of));
            data.rows.push(row);
        }
    }
    named(data, runs)
}

/// A single run needs no name in each row.
fn named(mut data: Data, runs: &Runs<'_>) -> Data {
    if runs.all.len() == 1 {
        data.columns.remove(0);
        data.rows.iter_mut().for_each(|row| drop(row.remove(0)));
    }
    data
}

/// The part of the CPUs' time that went to the kernel.
fn in_kernel(level: &Level) -> Option<f64> {
    let n = level.cpus.len();
    (n > 0).then(|| level.cpus.iter().map(|c| c.system_ratio).sum::<f64>() / n as f64)
}

/// The idle state that held the CPUs longest, and its share of their time.
fn asleep(level: &Level) -> String {
    let mut states: Vec<(&str, u64)> = Vec::new();
    for state in level.idle.iter().flat_map(|cpu| &cpu.states) {
        match states.iter_mut().find(|(name, _)| *name == state.name) {
            Some((_, ns)) => *ns = ns.saturating_add(state.time_ns),
            None => states.push((&state.name, state.time_ns)),
        }
    }
    let all_ns = level.window.length_ns().saturating_mul(level.idle.len() as u64);
    let longest = states.into_iter().max_by_key(|(_, ns)| *ns).filter(|(_, ns)| *ns > 0 && all_ns > 0);
    longest.map_or(String::new(), |(name, ns)| {
        format!("{name} {}", Show::Ratio.text((ns as f64 / all_ns as f64).min(1.0)))
    })
}

fn parts(runs: &Runs<'_>) -> Data {
    let mut data = Data::with(&[
        (word!("run"), Show::Text),
        (word!("level"), Show::Text),
        (word!("request"), Show::Text),
        (word!("done"), Show::Count),
        (word!("failed"), Show::Count),
        ("p50", Show::Ns),
        ("p99", Show::Ns),
    ]);
    for r in &runs.all {
        for (at, l) in r.run.levels.iter().enumerate() {
            for p in &l.parts {
                let mut row: Vec<Cell> = vec![r.name.clone().into(), ask(l, at).into(), p.name.clone().into()];
                row.extend([(p.n_done as f64).into(), (p.n_failed as f64).into()]);
                row.extend([0.5, 0.99].map(|q| quantile(Some(&p.latency), q)));
                data.rows.push(row);
            }
        }
    }
    named(data, runs)
}
