//! The figures of an experiment: how samples lie, what the effects are, every block.

use super::super::super::charts::{distribution, forest, rounds};
use super::super::super::data::{Data, Show};
use super::super::super::figure::Figure;
use super::super::super::words;
use super::super::metrics::metric_title;
use super::super::samples::distribution_figure;
use wakewatt_core::samples::experiment::{Effect, ExperimentRun, Metric, Unit};
use wakewatt_words::{say, word};

/// What the intervals of pooled samples are worth.
pub(super) fn of_pooled() -> &'static str {
    word!(
        "percentiles with their 95 % interval, which covers these samples alone: of independent ones, and samples of a block are not"
    )
}

/// How often each latency occurred, arm by arm; one for each kind of sample.
pub(super) fn distributions(run: &ExperimentRun, id: &str) -> Vec<Figure> {
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
        let caption = say!(
            "{}: how often each latency occurred (top, every arm scaled to its own peak) and the percentiles (below). {} samples pooled over all counted blocks: to see the shape, not to test.",
            words::sentence_case(title),
            words::count(n)
        );
        let table = format!("{title}: {}", of_pooled());
        distribution_figure(format!("{id}dist{i}"), &words::sentence_case(title), caption, &curves, Some(table))
    };
    sources.iter().enumerate().filter_map(figure).collect()
}

/// Every effect with its interval; none where there is none.
pub(super) fn forest_figure(run: &ExperimentRun, id: &str) -> Option<Figure> {
    let baseline = &run.arms.first()?.id;
    let primary = run.metrics.first()?;
    let is_drawn =
        |e: &&Effect| e.baseline == *baseline && e.ratio.is_finite() && e.ratio > 0.0 && e.interval().is_some();
    let effects: Vec<&Effect> = run.effects.iter().filter(is_drawn).collect();
    let rows: Vec<forest::Row> = effects
        .iter()
        .map(|e| forest::Row {
            label: metric_title(run, &e.metric),
            note: say!("against {}", e.arm),
            index: arm_index(run, &e.arm),
            ratio: (e.ratio, e.ratio_low, e.ratio_high),
            parts: Vec::new(),
            is_primary: e.metric == primary.id,
        })
        .collect();
    let columns = [
        (word!("metric"), Show::Text),
        (word!("against"), Show::Text),
        (word!("ratio"), Show::Times),
        (word!("low"), Show::Times),
        (word!("high"), Show::Times),
    ];
    let mut data = Data::with(&columns);
    for (r, effect) in rows.iter().zip(&effects) {
        let (ratio, low, high) = r.ratio;
        data.rows.push(vec![r.label.clone().into(), effect.arm.clone().into(), ratio.into(), low.into(), high.into()]);
    }
    let id = format!("{id}forest");
    // More work is not slower.
    let is_time = run.metrics.iter().all(|m| m.unit == Unit::Nanoseconds);
    let sides = if is_time { (word!("faster"), word!("slower")) } else { (word!("lower"), word!("higher")) };
    (!rows.is_empty()).then(|| Figure {
        svg: forest::draw(
            &id,
            &say!(
                "Ratio of {baseline} to each other arm, with intervals that cover this run and hold at 95 % over all looks"
            ),
            baseline,
            sides,
            &rows,
        ),
        title: word!("Effects").into(),
        table: None,
        csv: data.csv(),
        id: id.clone(),
        caption: say!(
            "How many times as much with “{baseline}” as with the other arm, paired by round, with intervals over rounds (Walsh averages) that cover this run and hold at 95 % over all looks. Bold: the primary metric, declared before the run; the others' intervals are each for itself. Shaded: within 5 % of equal."
        ),
        label: "measured",
    })
}

/// One metric's value in every block; none where none of them counts.
pub(super) fn rounds_figure(run: &ExperimentRun, id: &str, index: usize, metric: &Metric) -> Option<Figure> {
    let mut dots: Vec<rounds::Dot> = Vec::new();
    for block in &run.blocks {
        let Some(value) = block.values.get(index).copied().flatten() else { continue };
        let place = dots.iter().filter(|d| d.round == block.round).count();
        let is_counted = block.rejected.is_none();
        dots.push(rounds::Dot { round: block.round, place, index: arm_index(run, &block.arm), value, is_counted });
    }
    let arms: Vec<String> = run.arms.iter().map(|a| a.id.clone()).collect();
    let columns = [
        (word!("arm"), Show::Text),
        (word!("counts"), Show::Text),
        (word!("round"), Show::Count),
        (word!("value"), value_show(metric.unit)),
    ];
    let mut data = Data::with(&columns);
    for d in &dots {
        let (arm, counts) =
            (arms.get(d.index).cloned().unwrap_or_default(), if d.is_counted { word!("yes") } else { word!("no") });
        data.rows.push(vec![arm.into(), counts.into(), (d.round as f64 + 1.0).into(), d.value.into()]);
    }
    let id = format!("{id}rounds{index}");
    dots.iter().any(|d| d.is_counted).then(|| Figure {
        title: say!("Every measurement: {}", metric.title),
        table: None,
        csv: data.csv(),
        id: id.clone(),
        svg: rounds::draw(&id, &say!("{} of every measurement", metric.title), metric.unit, &arms, &dots),
        caption: say!(
            "{}: the value of every measurement, in the order they ran; hollow ones were discarded.",
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

fn arm_index(run: &ExperimentRun, id: &str) -> usize {
    run.arms.iter().position(|a| a.id == id).unwrap_or(0)
}
