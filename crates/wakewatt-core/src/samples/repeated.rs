//! One load several times over, as values over time: what a person sees who changes a setting while it runs.
//!
//! The before and after of case K0: the same clients again and again, a setting changed in between, and every level one
//! mark. Settings are read between levels only, so that nobody is woken in a recorded window; a change is therefore known
//! to lie between two readings and stands in their middle, and the level around which it happened counts for neither side.
//! The machine may have changed by itself at the same moment: this shows a step, and proves nothing.

use super::Label;
use super::experiment::Unit;
use super::load::{Ask, Level, LoadRun};
use super::timeline::{Change, Moment, Timeline};
use crate::units::show_ns;
use wakewatt_words::{say, word};

/// A level's value with its interval.
type Value = (f64, Option<(f64, f64)>);
/// What is drawn: its title, its unit, and how a level has it.
type Quantity = (&'static str, Unit, fn(&Level) -> Option<Value>);

/// What every kind of load has.
const OF_ANY: &[Quantity] = &[
    ("median latency", Unit::Nanoseconds, |l| {
        let median = l.latency.as_ref()?.quantile(0.5)?;
        Some((median.value_ns as f64, Some((median.low_ns as f64, median.high_ns as f64))))
    }),
    ("operations per second", Unit::PerSecond, |l| (!matches!(l.ask, Ask::Idle | Ask::Run)).then_some((l.per_s, None))),
    ("figure of a run", Unit::Number, |l| Some((l.figure?.value, None))),
    ("time of a run", Unit::Nanoseconds, |l| {
        (l.ask == Ask::Run && l.figure.is_none()).then(|| (l.window.length_ns() as f64, None))
    }),
    ("CPU time per operation", Unit::Nanoseconds, |l| Some((l.cpu_ns_per_op()?, None))),
    ("mean power", Unit::Microwatts, |l| Some((l.mean_uw()? as f64, None))),
];

/// Their titles, looked up where they are shown.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    OF_ANY.iter().map(|(title, ..)| *title)
}

/// Timelines of a run in which the same was asked several times; none of another.
pub fn timelines(run: &LoadRun) -> Vec<Timeline> {
    let is_again = |level: &&Level| run.levels.iter().filter(|other| other.ask == level.ask).count() > 1;
    let levels: Vec<&Level> = run.levels.iter().filter(is_again).collect();
    let timeline = |(title, unit, value): &Quantity| {
        let moment = |level: &&Level| {
            let (value, interval) = value(level)?;
            let why: Vec<String> =
                level.broken_rules.iter().map(ToString::to_string).chain(changed_in(run, level)).collect();
            let invalid_because = (!why.is_empty()).then(|| why.join("; "));
            Some(Moment { window: level.window, series: series(level.ask), value, interval, invalid_because })
        };
        let moments: Vec<Moment> = levels.iter().filter_map(moment).collect();
        let title = (*title).to_string();
        let changes = run.changes.clone();
        (moments.len() > 1).then_some(Timeline { title, unit: *unit, label: Label::Measured, moments, changes })
    };
    OF_ANY.iter().filter_map(timeline).collect()
}

/// Why a level belongs to neither side.
fn changed_in(run: &LoadRun, level: &Level) -> Option<String> {
    let is_around = |c: &&Change| {
        let (from_ns, to_ns) = c.between_ns();
        from_ns < level.window.end_at_ns && to_ns > level.window.start_at_ns
    };
    run.changes.iter().find(is_around).map(|_| word!("settings were changed in this level or next to it").into())
}

/// What was changed and when, a line each, counted from the start of the first level.
pub fn told(run: &LoadRun) -> Vec<String> {
    let Some(first) = run.levels.first() else {
        return run.changes.iter().map(|c| say!("changed before the first level ended: {}", c.what)).collect();
    };
    let zero_ns = first.window.start_at_ns;
    let line = |c: &Change| {
        let (from_ns, to_ns) = c.between_ns();
        if to_ns <= zero_ns {
            return say!(
                "changed before the first level, so a maximum that was calibrated is that of other settings: {}",
                c.what
            );
        }
        let [from, to] = [from_ns, to_ns].map(|ns| show_ns(ns.saturating_sub(zero_ns)));
        say!("changed between {from} and {to} after the start of the first level: {}", c.what)
    };
    run.changes.iter().map(line).collect()
}

/// The name of a line.
fn series(ask: Ask) -> String {
    if ask == Ask::Run { word!("runs").into() } else { ask.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::Distribution;
    use crate::samples::Window;

    const S: u64 = 1_000_000_000;

    /// The nth of levels of ten seconds with two between.
    fn level(nth: u64, ask: Ask, p50_ns: u64) -> Level {
        Level {
            ask,
            window: Window { start_at_ns: nth * 12 * S, end_at_ns: (nth * 12 + 10) * S },
            n_planned: 1000,
            n_done: 1000,
            per_s: 100.0,
            cpu_ns: 5 * S,
            latency: Some(Distribution::from_ns((0..1000).map(|n| p50_ns + n))),
            ..Level::default()
        }
    }

    #[test]
    fn the_same_again_and_again_is_a_line_and_the_change_a_mark() {
        let ask = |n: u64| if n.is_multiple_of(2) { Ask::Clients(500) } else { Ask::Idle };
        let levels = (0..8).map(|n| level(n, ask(n), if n < 4 { 85_000_000 } else { 40_000_000 }));
        let change = Change { at_ns: 41 * S, within_ns: 6 * S, what: "governor: ondemand -> performance".into() };
        let mut run = LoadRun { levels: levels.collect(), changes: vec![change.clone()], ..LoadRun::default() };
        run.levels[7].broken_rules.push("rate missed".into());
        let all = timelines(&run);
        let titles: Vec<&str> = all.iter().map(|t| t.title.as_str()).collect();
        assert_eq!(titles, ["median latency", "operations per second", "CPU time per operation"], "no meter, no watts");
        assert!(all.iter().all(|t| t.changes == [change.clone()]));
        let latency = &all[0];
        assert_eq!(latency.moments.len(), 8);
        let names: Vec<&str> = latency.moments.iter().map(|m| m.series.as_str()).take(2).collect();
        assert_eq!(names, ["500 clients", "active idle"]);
        let not: Vec<usize> = (0..8).filter(|n| latency.moments[*n].invalid_because.is_some()).collect();
        assert_eq!(not, [3, 7], "around the change, and what broke a rule: {latency:?}");
        assert!(latency.moments[0].interval.is_some() && latency.moments[0].value > latency.moments[6].value);
        assert_eq!(all[1].moments.len(), 4, "active idle has no rate");
        assert_eq!(
            told(&run),
            ["changed between 35s and 47s after the start of the first level: governor: ondemand -> performance"]
        );
    }

    #[test]
    fn what_is_asked_once_is_no_line() {
        let mut run = LoadRun {
            levels: vec![level(0, Ask::Share(1.0), 1), level(1, Ask::Share(0.5), 1), level(2, Ask::Idle, 1)],
            ..LoadRun::default()
        };
        assert_eq!((timelines(&run).len(), timelines(&LoadRun::default()).len()), (0, 0));
        run.levels.push(level(3, Ask::Share(0.5), 1));
        let all = timelines(&run);
        assert_eq!((all[0].moments.len(), all[0].moments[0].series.as_str()), (2, "50 %"));
    }

    #[test]
    fn runs_of_a_command_have_the_figure_or_the_time() {
        let run = |figure| {
            let one = |n| Level { figure, latency: None, n_done: 1, n_planned: 1, per_s: 0.1, ..level(n, Ask::Run, 1) };
            LoadRun { levels: (0..3).map(one).collect(), ..LoadRun::default() }
        };
        let titles = |run: &LoadRun| timelines(run).into_iter().map(|t| t.title).collect::<Vec<_>>();
        assert_eq!(titles(&run(None)), ["time of a run", "CPU time per operation"]);
        let figure = crate::samples::load::Figure { value: 7.0, better: Default::default() };
        assert_eq!(titles(&run(Some(figure))), ["figure of a run", "CPU time per operation"]);
    }
}
