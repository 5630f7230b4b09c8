//! The experiment as text and figures: headlines, distributions, effects, rounds, blocks, and what was put back.

use super::super::charts::{N_STYLES, distribution, forest, rounds};
use super::super::data::{Data, Show};
use super::super::figure::Figure;
use super::super::table::{Table, heads};
use super::super::{verdict, words};
use super::metrics::{metric, metric_title};
use super::samples::{distribution_csv, distribution_table};
use super::section::Section;
use super::{ExperimentView, Headline, beside};
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::experiment::{Effect, ExperimentRun, Metric, Unit, Verdict};
use wakewatt_core::samples::grade::Grade;
use wakewatt_core::samples::stated::Stated;

/// The big numbers: every arm's value of the primary metric and the ratio; without an experiment what was measured as found.
pub(super) fn headlines(evidence: &Evidence) -> Vec<Headline> {
    let main = verdict::turned(evidence).into_iter().next();
    let Some((run, primary)) = main.and_then(|run| Some((run, run.metrics.first()?))) else {
        let as_found = evidence.samples.wakeups.iter().take(3).filter_map(|s| {
            Some(Headline {
                value: words::ns_rough(s.latency.p50_ns()? as f64),
                name: format!("{} wake-up, median", s.kind.word()),
                note: format!("as found, {} samples", words::count(s.latency.n)),
                label: "measured",
                arm: None,
            })
        });
        return as_found.collect();
    };
    let lengths = run.blocks.iter().map(|b| b.window.length_ns() as f64);
    let length = words::median(lengths).map_or(String::new(), |ns| format!(" of {}", words::ns(ns)));
    let mut all: Vec<Headline> = run
        .arms
        .iter()
        .enumerate()
        .filter_map(|(i, arm)| {
            let values: Vec<f64> = run.values(&arm.id, 0).map(|(_, v)| v).collect();
            Some(Headline {
                value: words::value_rough(primary.unit, words::median(values.iter().copied())?),
                name: arm.title.clone(),
                note: format!("{}; middle of {}{length}", primary.title, words::plural(values.len(), "block")),
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
                Stated::Open => "not sure".into(),
            },
            name: format!("{} over {}", effect.baseline, effect.arm),
            note: match run.is_sized() {
                true => format!(
                    "interval {}, 95 % over all looks",
                    words::ratio_interval(effect.ratio_low, effect.ratio_high)
                ),
                false => "its size is refused".into(),
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
    let restored = if v.is_restored { "Everything was put back." } else { "NOT everything was put back." };
    out.intro.push(format!("{restored} It ended because {}.", run.ended));
    let graded = run.graded();
    if graded.grade != Grade::Clean {
        out.remarks.push(format!("Graded {}: {}.", graded.grade.word(), graded.reasons()));
    }
    for effect in run.effects.iter().take(4) {
        let unit = metric(run, &effect.metric).unit;
        let interval = words::ratio_interval(effect.ratio_low, effect.ratio_high);
        out.lines.push(format!(
            "{}: {} over {} ×{} ({interval}), {}",
            metric_title(run, &effect.metric),
            effect.baseline,
            effect.arm,
            words::ratio(effect.ratio),
            verdict_word(unit, effect)
        ));
    }
    out
}

/// All of it; `id` begins the ids of its figures.
pub(super) fn view(run: &ExperimentRun, id: &str, zero_at_ns: u64) -> ExperimentView {
    ExperimentView {
        arms: run.arms.iter().map(|a| (a.id.clone(), a.title.clone(), a.settings.clone())).collect(),
        distributions: distributions(run, id),
        forest: forest_figure(run, id),
        rounds: run.metrics.iter().enumerate().take(2).filter_map(|(i, m)| rounds_figure(run, id, i, m)).collect(),
        effects: effects(run),
        beside: beside::tables(run),
        pooled: pooled(run),
        blocks: blocks(run, zero_at_ns),
        changed: changed(run),
        is_restored: run.is_restored(),
    }
}

fn arm_index(run: &ExperimentRun, id: &str) -> usize {
    run.arms.iter().position(|a| a.id == id).unwrap_or(0)
}

fn distributions(run: &ExperimentRun, id: &str) -> Vec<Figure> {
    let mut sources: Vec<(&str, &str)> = Vec::new();
    for pooled in &run.pooled {
        if !sources.iter().any(|(what, _)| *what == pooled.what) {
            sources.push((&pooled.what, &pooled.title));
        }
    }
    let figure = |(i, (what, title)): (usize, &(&str, &str))| {
        let curves: Vec<distribution::Curve<'_>> = run
            .pooled
            .iter()
            .filter(|p| p.what == *what && p.latency.n > 0)
            .map(|p| {
                let index = arm_index(run, &p.arm);
                distribution::Curve {
                    name: run.arms.get(index).map_or(&p.arm, |a| &a.title),
                    index,
                    latency: &p.latency,
                }
            })
            .collect();
        let n: u64 = curves.iter().map(|c| c.latency.n).sum();
        let id = format!("{id}dist{i}");
        let named = || curves.iter().map(|c| (c.name.to_string(), c.latency));
        (!curves.is_empty()).then(|| Figure {
            svg: distribution::draw(&id, title, &curves),
            title: words::sentence_case(title),
            table: Some(distribution_table(title, named())),
            csv: distribution_csv(named()),
            id: id.clone(),
            caption: format!(
                "{}: how often each latency occurred (top, every arm scaled to its own peak) and the percentiles (below). {} samples pooled over all counted blocks: to see the shape, not to test.",
                words::sentence_case(title),
                words::count(n)
            ),
            label: "measured",
        })
    };
    sources.iter().enumerate().filter_map(figure).collect()
}

fn forest_figure(run: &ExperimentRun, id: &str) -> Option<Figure> {
    let baseline = &run.arms.first()?.id;
    let primary = run.metrics.first()?;
    let rows: Vec<forest::Row> = run
        .effects
        .iter()
        .filter(|e| e.baseline == *baseline && e.ratio.is_finite() && e.ratio > 0.0)
        .map(|e| forest::Row {
            label: metric_title(run, &e.metric),
            against: e.arm.clone(),
            index: arm_index(run, &e.arm),
            ratio: (e.ratio, e.ratio_low, e.ratio_high),
            is_primary: e.metric == primary.id,
        })
        .collect();
    let columns = [
        ("metric", Show::Text),
        ("against", Show::Text),
        ("ratio", Show::Times),
        ("low", Show::Times),
        ("high", Show::Times),
    ];
    let mut data = Data::with(&columns);
    for r in &rows {
        let (ratio, low, high) = r.ratio;
        data.rows.push(vec![r.label.clone().into(), r.against.clone().into(), ratio.into(), low.into(), high.into()]);
    }
    let id = format!("{id}forest");
    // More work is not slower.
    let is_time = run.metrics.iter().all(|m| m.unit == Unit::Nanoseconds);
    let sides = if is_time { ("faster", "slower") } else { ("lower", "higher") };
    (!rows.is_empty()).then(|| Figure {
        svg: forest::draw(&id, baseline, sides, &rows),
        title: "Effects".into(),
        table: None,
        csv: data.csv(),
        id: id.clone(),
        caption: format!(
            "How many times as much with “{baseline}” as with the other arm, paired by round, with intervals over rounds (Walsh averages) that cover this run and hold at 95 % over all looks. Bold: the primary metric, declared before the run; the others' intervals are each for itself. Shaded: within 5 % of equal."
        ),
        label: "measured",
    })
}

fn rounds_figure(run: &ExperimentRun, id: &str, index: usize, metric: &Metric) -> Option<Figure> {
    let mut dots: Vec<rounds::Dot> = Vec::new();
    for block in &run.blocks {
        let Some(value) = block.values.get(index).copied().flatten() else { continue };
        let place = dots.iter().filter(|d| d.round == block.round).count();
        let is_counted = block.rejected.is_none();
        dots.push(rounds::Dot { round: block.round, place, index: arm_index(run, &block.arm), value, is_counted });
    }
    let arms: Vec<String> = run.arms.iter().map(|a| a.id.clone()).collect();
    let columns =
        [("arm", Show::Text), ("counts", Show::Text), ("round", Show::Count), ("value", value_show(metric.unit))];
    let mut data = Data::with(&columns);
    for d in &dots {
        let (arm, counts) = (arms.get(d.index).cloned().unwrap_or_default(), if d.is_counted { "yes" } else { "no" });
        data.rows.push(vec![arm.into(), counts.into(), (d.round as f64 + 1.0).into(), d.value.into()]);
    }
    let id = format!("{id}rounds{index}");
    (!dots.is_empty()).then(|| Figure {
        title: format!("Every block: {}", metric.title),
        table: None,
        csv: data.csv(),
        id: id.clone(),
        svg: rounds::draw(&id, &format!("{} of every block", metric.title), metric.unit, &arms, &dots),
        caption: format!(
            "{}: the value of every block, in the order they ran; hollow blocks were thrown away.",
            words::sentence_case(&metric.title)
        ),
        label: "measured",
    })
}

/// The unit of a metric's raw values.
fn value_show(unit: Unit) -> Show {
    match unit {
        Unit::Nanoseconds => Show::Ns,
        Unit::PerSecond => Show::PerS,
        Unit::PerJoule => Show::PerJoule,
        Unit::Microwatts | Unit::Number => Show::Number,
    }
}

fn verdict_word(unit: Unit, effect: &Effect) -> String {
    let (higher, lower) = if unit == Unit::Nanoseconds { ("slower", "faster") } else { ("higher", "lower") };
    match effect.verdict {
        Verdict::Higher => format!("{} is {higher}", effect.baseline),
        Verdict::Lower => format!("{} is {lower}", effect.baseline),
        Verdict::NoDifference => "no difference".into(),
        Verdict::Undecided => "undecided".into(),
    }
}

fn effects(run: &ExperimentRun) -> Table {
    let row = |e: &Effect| {
        let unit = metric(run, &e.metric).unit;
        vec![
            metric_title(run, &e.metric),
            format!("{} / {}", e.baseline, e.arm),
            verdict_word(unit, e),
            format!("{} ({})", words::ratio(e.ratio), words::ratio_interval(e.ratio_low, e.ratio_high)),
            format!(
                "{} ({} to {})",
                words::value(unit, e.difference),
                words::value(unit, e.difference_low),
                words::value(unit, e.difference_high)
            ),
            words::p_value(e.p_value),
            e.n_pairs.to_string(),
        ]
    };
    Table {
        caption: "Effects: measured, paired by round; the primary metric's intervals hold at 95 % over all looks, the others' each by itself, and they cover this run; p of secondary metrics Holm-adjusted".into(),
        heads: heads(&["metric", "arms", "in a word", "ratio (interval)", "difference (interval)", "p", "rounds"]),
        rows: run.effects.iter().map(row).collect(),
        n_text_columns: 3,
    }
}

fn pooled(run: &ExperimentRun) -> Table {
    let rows = run.pooled.iter().map(|p| {
        let mut row = vec![p.title.clone(), p.arm.clone()];
        row.extend(super::samples::distribution_cells(&p.latency));
        row
    });
    let mut names = heads(&["what", "arm"]);
    names.extend(heads(super::samples::DISTRIBUTION_HEADS));
    Table {
        caption: "Pooled samples per arm: measured; percentiles with their 95 % interval, which covers these samples alone: of independent ones, and samples of a block are not".into(),
        heads: names,
        rows: rows.collect(),
        n_text_columns: 2,
    }
}

fn blocks(run: &ExperimentRun, zero_at_ns: u64) -> Table {
    let mut names = heads(&["round", "arm", "window", "remarks"]);
    names.extend(run.metrics.iter().map(|m| m.title.clone()));
    let rows = run.blocks.iter().map(|b| {
        let mut remarks: Vec<String> = b.disturbances.iter().map(ToString::to_string).collect();
        remarks.extend(b.rejected.iter().map(|why| format!("thrown away: {why}")));
        let remarks = if remarks.is_empty() { "–".into() } else { remarks.join("; ") };
        let mut row =
            vec![b.round.saturating_add(1).to_string(), b.arm.clone(), words::window(&b.window, zero_at_ns), remarks];
        let value = |(i, metric): (usize, &Metric)| {
            let value = b.values.get(i).copied().flatten();
            value.map_or("–".into(), |v| words::value(metric.unit, v))
        };
        row.extend(run.metrics.iter().enumerate().map(value));
        row
    });
    Table {
        caption: "Blocks in the order they ran: measured".into(),
        heads: names,
        rows: rows.collect(),
        n_text_columns: 4,
    }
}

fn changed(run: &ExperimentRun) -> Table {
    let mut paths: Vec<&String> = run.before.iter().map(|(path, _)| path).collect();
    paths.extend(run.after.iter().map(|(path, _)| path).filter(|p| !run.before.iter().any(|(q, _)| q == *p)));
    let find = |list: &[(String, String)], path: &str| {
        list.iter().find(|(p, _)| p == path).map_or("not read".to_string(), |(_, value)| value.clone())
    };
    let rows = paths.into_iter().map(|path| {
        let (before, after) = (find(&run.before, path), find(&run.after, path));
        let same = if before == after { "yes" } else { "NO" };
        vec![path.clone(), before, after, same.into()]
    });
    Table {
        caption: "Settings read before the first block and after the last".into(),
        heads: heads(&["setting", "before", "after", "put back"]),
        rows: rows.collect(),
        n_text_columns: 4,
    }
}
