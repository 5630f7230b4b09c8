//! The experiment as text: headlines, sections; its figures and tables stand beside this.

mod figures;
mod tables;

use super::super::charts::N_STYLES;
use super::super::{verdict, words};
use super::metrics::{metric, metric_title};
use super::section::Section;
use super::{ExperimentView, Headline, beside};
use wakewatt_core::evidence::Evidence;
use wakewatt_core::kept_words;
use wakewatt_core::samples::experiment::{Effect, ExperimentRun, Unit, Verdict};
use wakewatt_core::samples::grade::Grade;
use wakewatt_core::samples::stated::Stated;
use wakewatt_words::{say, told, word};

/// The big numbers: every arm's value of the primary metric and the ratio; without an experiment what was measured as found.
pub(super) fn headlines(evidence: &Evidence) -> Vec<Headline> {
    let main = verdict::turned(evidence).into_iter().next();
    let Some((run, primary)) = main.and_then(|run| Some((run, run.metrics.first()?))) else {
        let as_found = evidence.samples.wakeups.iter().take(3).filter_map(|s| {
            Some(Headline {
                value: words::ns_rough(s.latency.p50_ns()? as f64),
                name: say!("{} wake-up, median", told(s.kind.word())),
                note: say!("as found, {} samples", words::count(s.latency.n)),
                label: "measured",
                arm: None,
            })
        });
        return as_found.collect();
    };
    let lengths = run.blocks.iter().map(|b| b.window.length_ns() as f64);
    let length = words::median(lengths).map_or(String::new(), |ns| say!(" of {}", words::ns(ns)));
    let mut all: Vec<Headline> = run
        .arms
        .iter()
        .enumerate()
        .filter_map(|(i, arm)| {
            let values: Vec<f64> = run.values(&arm.id, 0).map(|(_, v)| v).collect();
            Some(Headline {
                value: words::value_rough(primary.unit, words::median(values.iter().copied())?),
                name: arm.title.clone(),
                note: say!("{}; median of {}{length}", primary.title, words::plural(values.len(), "measurement")),
                label: "measured",
                arm: Some(i.min(N_STYLES - 1)),
            })
        })
        .collect();
    // Of many arms the first other one's ratio is none to stand out.
    let is_told = evidence.samples.conclusions.is_none() || run.arms.len() <= 2;
    if let Some(effect) = run.primary().filter(|_| is_told) {
        all.push(Headline {
            value: match run.stated_ratio(effect) {
                Stated::Value(value) => format!("×{}", words::ratio(value)),
                Stated::AtLeast(low) => format!("≥ ×{}", words::ratio(low)),
                Stated::AtMost(high) => format!("≤ ×{}", words::ratio(high)),
                Stated::Open => word!("not sure").into(),
            },
            name: say!("{} over {}", effect.baseline, effect.arm),
            note: match run.is_sized() {
                true => match effect.interval() {
                    Some((low, high)) => format!("{}, {}", words::ratio_interval(low, high), effect.sureness()),
                    None => word!("no interval").into(),
                },
                false => word!("effect size not reported").into(),
            },
            label: "measured",
            arm: None,
        });
    }
    all
}

/// One that is not the report's main experiment, as a section of its own; `id` begins the ids of its figures.
pub(super) fn section(run: &ExperimentRun, id: &str, title: &str, zero_at_ns: u64) -> Section {
    let v = view(run, id, zero_at_ns);
    let mut out = Section { is_result: true, ..Section::new(title) };
    out.figures = v.distributions;
    out.figures.extend(v.forest);
    out.figures.extend(v.rounds);
    out.tables = std::iter::once(v.effects).chain(v.beside).collect();
    out.folded = vec![v.pooled, v.blocks, v.changed].into_iter().filter(|t| !t.rows.is_empty()).collect();
    let restored =
        if v.is_restored { word!("Everything was put back.") } else { word!("NOT everything was put back.") };
    out.intro.push(say!("{restored} It ended because {}.", run.ended));
    let graded = run.graded();
    if graded.grade != Grade::Clean {
        out.remarks.push(say!("Graded {}: {}.", graded.grade.word(), graded.reasons()));
    }
    for effect in run.effects.iter().take(4) {
        let unit = metric(run, &effect.metric).unit;
        let interval = words::interval_beside(effect);
        out.lines.push(say!(
            "{}: {} over {} ×{} ({interval}, covers {}), {}",
            metric_title(run, &effect.metric),
            effect.baseline,
            effect.arm,
            words::ratio(effect.ratio),
            effect.covers,
            verdict_word(unit, effect)
        ));
    }
    out
}

/// All of it; `id` begins the ids of its figures.
pub(super) fn view(run: &ExperimentRun, id: &str, zero_at_ns: u64) -> ExperimentView {
    ExperimentView {
        arms: run
            .arms
            .iter()
            .map(|a| (a.id.clone(), a.title.clone(), a.settings.iter().map(|s| kept_words::shown(s)).collect()))
            .collect(),
        distributions: figures::distributions(run, id),
        forest: figures::forest_figure(run, id),
        rounds: run
            .metrics
            .iter()
            .enumerate()
            .take(2)
            .filter_map(|(i, m)| figures::rounds_figure(run, id, i, m))
            .collect(),
        effects: tables::effects(run),
        beside: beside::tables(run),
        pooled: tables::pooled(run),
        blocks: tables::blocks(run, zero_at_ns),
        changed: tables::changed(run),
        is_restored: run.is_restored(),
    }
}

fn verdict_word(unit: Unit, effect: &Effect) -> String {
    let (higher, lower) =
        if unit == Unit::Nanoseconds { (word!("slower"), word!("faster")) } else { (word!("higher"), word!("lower")) };
    match effect.verdict {
        Verdict::Higher => say!("{} is {higher}", effect.baseline),
        Verdict::Lower => say!("{} is {lower}", effect.baseline),
        Verdict::NoDifference => word!("no difference").into(),
        Verdict::Undecided => word!("undecided").into(),
    }
}
