//! The tables of an experiment: effects, pooled samples, blocks, and what was put back.

use super::super::super::table::{Table, heads};
use super::super::super::words;
use super::super::metrics::{metric, metric_title};
use super::super::samples;
use super::figures::of_pooled;
use super::verdict_word;
use wakewatt_core::kept_words;
use wakewatt_core::samples::experiment::{Effect, ExperimentRun, Metric};
use wakewatt_words::{say, word};

/// Every comparison, with its intervals.
pub(super) fn effects(run: &ExperimentRun) -> Table {
    let row = |e: &Effect| {
        let unit = metric(run, &e.metric).unit;
        vec![
            metric_title(run, &e.metric),
            format!("{} / {}", e.baseline, e.arm),
            verdict_word(unit, e),
            format!("{} ({})", words::ratio(e.ratio), words::interval_beside(e)),
            match e.interval() {
                Some(_) => say!(
                    "{} ({} to {})",
                    words::value(unit, e.difference),
                    words::value(unit, e.difference_low),
                    words::value(unit, e.difference_high)
                ),
                None => words::value(unit, e.difference),
            },
            words::p_value(e.p_value),
            e.n_pairs.to_string(),
        ]
    };
    Table {
        caption: word!("Effects: measured, paired by round; the primary metric's intervals hold at 95 % over all looks, the others' each by itself, and they cover this run; p of secondary metrics Holm-adjusted").into(),
        heads: heads(&[word!("metric"), word!("arms"), word!("in a word"), word!("ratio (interval)"), word!("difference (interval)"), "p", word!("rounds")]),
        rows: run.effects.iter().map(row).collect(),
        n_text_columns: 3,
    }
}

/// All samples of each arm together.
pub(super) fn pooled(run: &ExperimentRun) -> Table {
    let rows = run.pooled.iter().map(|p| {
        let mut row = vec![p.title.clone(), p.arm.clone()];
        row.extend(samples::distribution_cells(&p.latency));
        row
    });
    let mut names = heads(&[word!("what"), word!("arm")]);
    names.extend(heads(samples::DISTRIBUTION_HEADS));
    Table {
        caption: say!("Pooled samples per arm: measured; {}", of_pooled()),
        heads: names,
        rows: rows.collect(),
        n_text_columns: 2,
    }
}

/// More measurements than this are in the run file; the page lists those that were discarded.
const MOST_ROWS: usize = 200;

/// Every measurement in the order it ran, or of many those that were discarded.
pub(super) fn blocks(run: &ExperimentRun, zero_at_ns: u64) -> Table {
    let is_long = run.blocks.len() > MOST_ROWS;
    let mut names = heads(&[word!("round"), word!("arm"), word!("window"), word!("remarks")]);
    names.extend(run.metrics.iter().map(|m| m.title.clone()));
    let rows = run.blocks.iter().filter(|b| !is_long || b.rejected.is_some()).map(|b| {
        let mut remarks: Vec<String> = b.disturbances.iter().map(ToString::to_string).collect();
        remarks.extend(b.rejected.iter().map(|why| say!("discarded: {why}")));
        let remarks = if remarks.is_empty() { "–".into() } else { words::clauses(&remarks) };
        let mut row = vec![
            b.round.saturating_add(1).to_string(),
            kept_words::shown(&b.arm),
            words::window(&b.window, zero_at_ns),
            remarks,
        ];
        let value = |(i, metric): (usize, &Metric)| {
            let value = b.values.get(i).copied().flatten();
            value.map_or("–".into(), |v| words::value(metric.unit, v))
        };
        row.extend(run.metrics.iter().enumerate().map(value));
        row
    });
    Table {
        caption: match is_long {
            true => say!(
                "Discarded measurements of {}, in the order they ran; all are in the run file (--save)",
                run.blocks.len()
            ),
            false => word!("Measurements in the order they ran").into(),
        },
        heads: names,
        rows: rows.collect(),
        n_text_columns: 4,
    }
}

/// What was read before and after.
pub(super) fn changed(run: &ExperimentRun) -> Table {
    let mut paths: Vec<&String> = run.before.iter().map(|(path, _)| path).collect();
    paths.extend(run.after.iter().map(|(path, _)| path).filter(|p| !run.before.iter().any(|(q, _)| q == *p)));
    let find = |list: &[(String, String)], path: &str| {
        list.iter()
            .find(|(p, _)| p == path)
            .map_or(word!("not read").to_string(), |(_, value)| kept_words::shown(value))
    };
    let rows = paths.into_iter().map(|path| {
        let (before, after) = (find(&run.before, path), find(&run.after, path));
        let same = if before == after { word!("yes") } else { word!("NO") };
        vec![path.clone(), before, after, same.into()]
    });
    Table {
        caption: word!("Settings read before the first measurement and after the last").into(),
        heads: heads(&[word!("setting"), word!("before"), word!("after"), word!("restored")]),
        rows: rows.collect(),
        n_text_columns: 4,
    }
}
