//! Load: rate, latency, CPU time and watts, level by level, for one run or several side by side (one for each governor).
//!
//! A level that broke a rule is hollow in every figure, with its reason in the table. Without a meter there is no figure of
//! watts but a sentence that says so. The figures are those of docs/methods/load.md; nothing here is a SPEC result.

use super::super::data::Show;
use super::super::words;
use super::section::Section;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::kept_words;
use wakewatt_core::samples::experiment::Better;
use wakewatt_core::samples::load::{Ask, Kind, Length, Level, LoadRun, Overall};
use wakewatt_words::{say, word};

mod cpu;
mod latency;
mod power;
mod rate;
mod tables;

/// A run with the name and the style it keeps through the section.
struct Named<'a> {
    name: String,
    index: usize,
    run: &'a LoadRun,
}

/// Runs of one kind.
struct Runs<'a> {
    kind: Kind,
    /// Beginning of the figures' ids.
    id: &'static str,
    all: Vec<Named<'a>>,
}

/// One section for each kind of load that ran.
pub(super) fn sections(evidence: &Evidence) -> Vec<Section> {
    let kinds = [
        (Kind::Steps, "load", word!("Graduated load")),
        (Kind::Shop, "shop", word!("The shop under load")),
        (Kind::Command, "command", word!("The command under test")),
    ];
    let section = |(kind, id, title): (Kind, &'static str, &str)| {
        let runs: Vec<&LoadRun> =
            evidence.samples.load.iter().filter(|r| r.kind == kind && !r.levels.is_empty()).collect();
        let all = names(&runs).into_iter().zip(&runs).enumerate();
        let all = all.map(|(index, (name, run))| Named { name, index, run }).collect();
        let runs = Runs { kind, id, all };
        (!runs.all.is_empty()).then(|| one(&runs, title))
    };
    kinds.into_iter().filter_map(section).collect()
}

fn one(runs: &Runs<'_>, title: &str) -> Section {
    let mut out = Section { is_result: true, ..Section::new(title) };
    intro(runs, &mut out);
    out.tables.extend(tables::overall(runs));
    rate::draw(runs, &mut out);
    power::draw(runs, &mut out);
    latency::draw(runs, &mut out);
    cpu::draw(runs, &mut out);
    tables::folded(runs, &mut out);
    lines(runs, &mut out);
    out
}

/// What tells the runs apart: the settings that differ, else the titles, else a number.
fn names(runs: &[&LoadRun]) -> Vec<String> {
    let value = |run: &LoadRun, key: &str| run.settings.iter().find(|(k, _)| k == key).map(|(_, v)| v.clone());
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in runs.iter().flat_map(|r| &r.settings) {
        let differs = runs.iter().any(|r| value(r, key) != value(runs[0], key));
        if differs && !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    let has_titles = runs.iter().any(|r| r.title != runs[0].title);
    let mut all: Vec<String> = Vec::new();
    for run in runs {
        let said: Vec<String> = keys.iter().filter_map(|key| value(run, key)).collect();
        let name = if !said.is_empty() && !has_titles { said.join(", ") } else { run.title.clone() };
        let n_same = all.iter().filter(|n| **n == name || n.starts_with(&format!("{name} ("))).count();
        all.push(if n_same > 0 { format!("{name} ({})", n_same + 1) } else { name });
    }
    all
}

fn intro(runs: &Runs<'_>, out: &mut Section) {
    let first = runs.all[0].run;
    let what = match runs.kind {
        Kind::Steps => {
            word!(
                "Transactions at shares of the calibrated maximum, in the manner of SPECpower_ssj2008; not a SPEC result."
            )
        }
        Kind::Shop => word!("Clients of an online shop with think time."),
        Kind::Command => word!("The user’s own command."),
    };
    // Titles that differ name the runs, not the load.
    let is_one = runs.all.iter().all(|r| r.run.title == first.title);
    let service = first.service_ns.map(|ns| say!(" A transaction takes {} at full speed.", words::ns(ns as f64)));
    let title = if is_one { format!(" {}.", words::sentence_case(&first.title)) } else { service.unwrap_or_default() };
    out.intro.push(format!("{what}{title}"));
    if !runs.all.iter().any(|r| r.run.levels.iter().any(|l| l.mean_uw().is_some())) {
        out.intro.push(word!("No power meter works here: watts, work per watt and proportionality are absent.").into());
    } else {
        let meters: Vec<String> = runs.all.iter().filter_map(|r| meter(r.run)).fold(Vec::new(), unique);
        out.intro.push(say!("Watts by {}.", meters.join(" and ")));
        let without =
            runs.all.iter().filter(|r| meter(r.run).is_none()).map(|r| r.name.clone()).fold(Vec::new(), unique);
        if !without.is_empty() {
            out.remarks.push(say!("no watts for {}: no meter worked", words::listed(&without)));
        }
    }
    if runs.all.iter().any(|r| r.run.length == Length::Quick) {
        out.remarks.push(word!("Quick phases: for a first look, too short to be quoted.").into());
    }
    if !runs.is_same_work() {
        let units: Vec<String> =
            runs.all.iter().filter_map(|r| Some(format!("{} {}", r.name, words::count(r.run.work_units?)))).collect();
        out.remarks.push(say!(
            "A transaction is not the same work in all runs (units: {}), so rates, latencies and watts of one are no measure of \
             the others, and scores are left out; --work makes it the same.",
            units.join(", ")
        ));
    }
    for r in &runs.all {
        let of = if runs.all.len() > 1 { format!("{}: ", r.name) } else { String::new() };
        out.remarks.extend(r.run.remarks.iter().map(|text| format!("{of}{}", kept_words::shown(text))));
    }
}

fn unique(mut all: Vec<String>, one: String) -> Vec<String> {
    if !all.contains(&one) {
        all.push(one);
    }
    all
}

fn meter(run: &LoadRun) -> Option<String> {
    let energy = run.levels.iter().filter(|l| l.mean_uw().is_some()).find_map(|l| l.energy.as_ref())?;
    let meter = energy.chosen()?;
    Some(format!("{} ({})", meter.meter, meter.total.as_ref()?.covers))
}

impl Runs<'_> {
    /// Is a transaction the same work in all of them?
    fn is_same_work(&self) -> bool {
        let mut units = self.all.iter().filter_map(|r| r.run.work_units);
        units.next().is_none_or(|first| units.all(|n| n == first))
    }

    /// What the levels are counted in.
    fn axis(&self) -> (&'static str, Show) {
        let asks = || self.all.iter().flat_map(|r| &r.run.levels).map(|l| l.ask);
        if asks().any(|a| matches!(a, Ask::Clients(_))) {
            ("clients", Show::Count)
        } else if asks().any(|a| matches!(a, Ask::Rate(_))) {
            (word!("planned rate"), Show::PerS)
        } else if asks().any(|a| a == Ask::Run) {
            ("run", Show::Count)
        } else {
            (word!("load level, share of the maximum"), Show::Ratio)
        }
    }

    /// Where a level stands on that axis: a share stands among rates by what it came to.
    fn x(&self, level: &Level, at: usize) -> f64 {
        match level.ask {
            Ask::Share(share) if self.axis().1 == Show::PerS => level.target_per_s.unwrap_or(share),
            Ask::Share(share) => share,
            Ask::Idle => 0.0,
            Ask::Clients(n) => f64::from(n),
            Ask::Rate(rate) => rate,
            Ask::Run => at as f64 + 1.0,
        }
    }
}

/// A level in words.
fn ask(level: &Level, at: usize) -> String {
    match level.ask {
        Ask::Run => say!("run {}", at + 1),
        Ask::Share(share) => Show::Ratio.text(share),
        Ask::Rate(per_s) => Show::PerS.text(per_s),
        Ask::Clients(n) if n > 1 => say!("{} clients", words::count(u64::from(n))),
        Ask::Clients(_) | Ask::Idle => level.ask.to_string(),
    }
}

/// Why a level does not count.
fn why(level: &Level) -> Option<String> {
    (!level.broken_rules.is_empty())
        .then(|| level.broken_rules.iter().map(ToString::to_string).collect::<Vec<_>>())
        .map(|all| words::clauses(&all))
}

fn watts(level: &Level) -> Option<f64> {
    level.mean_uw().map(|uw| uw as f64 / 1e6)
}

/// Half of the interval of a level's watts.
fn half_watts(level: &Level) -> Option<f64> {
    level.half_width_uw()?.ok().map(|uw| uw as f64 / 1e6)
}

/// The more, the better.
fn worth(level: &Level) -> f64 {
    let is_lower = level.figure.is_some_and(|f| f.better == Better::Lower);
    if is_lower { -level.achieved() } else { level.achieved() }
}

fn lines(runs: &Runs<'_>, out: &mut Section) {
    for r in &runs.all {
        let counts = |l: &&Level| l.broken_rules.is_empty() || r.run.levels.iter().all(|l| !l.broken_rules.is_empty());
        let Some(top) = r.run.levels.iter().filter(counts).max_by(|a, b| worth(a).total_cmp(&worth(b))) else {
            continue;
        };
        let at = r.run.levels.iter().position(|l| std::ptr::eq(l, top)).unwrap_or(0);
        let best = top.figure.map_or_else(|| Show::PerS.text(top.per_s), |f| Show::Number.text(f.value));
        let mut line = say!("{}: {best} at {}", r.name, ask(top, at));
        if let Some(p99) = top.latency.as_ref().and_then(wakewatt_core::distribution::Distribution::p99_ns) {
            line += &format!(", p99 {}", words::ns(p99 as f64));
        }
        match (watts(top), r.run.overall().filter(|_| runs.is_same_work())) {
            (Some(w), Some(Overall { per_joule: Some(per_joule), is_partial, .. })) => {
                let over =
                    if is_partial { word!("its levels (not all of ten and active idle)") } else { word!("all levels") };
                line += &say!(", {}; {} over {over}", Show::Watts.text(w), Show::PerJoule.text(per_joule));
            }
            (Some(w), _) => line += &format!(", {}", Show::Watts.text(w)),
            _ => {}
        }
        let n_invalid = r.run.levels.iter().filter(|l| !l.broken_rules.is_empty()).count();
        if n_invalid > 0 {
            line += &say!("; {} invalid", words::plural(n_invalid, "level"));
        }
        out.lines.push(line);
    }
}

#[cfg(test)]
mod tests;
