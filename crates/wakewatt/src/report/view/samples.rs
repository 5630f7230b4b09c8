//! Percentiles as cells, host facts, and the method: how each number was had.

use super::super::charts::distribution::{self, Curve};
use super::super::data::{Data, Show};
use super::super::figure::Figure;
use super::super::table::{Table, heads};
use super::super::words;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::kept_words;
use wakewatt_core::samples::Scheduling;
use wakewatt_core::sheet::Sheet;
use wakewatt_core::stats::distribution::{Distribution, QUANTILES};
use wakewatt_words::{say, told, word};

pub(super) const DISTRIBUTION_HEADS: &[&str] = &["n", "min", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"];

/// Cells for [`DISTRIBUTION_HEADS`].
pub(super) fn distribution_cells(d: &Distribution) -> Vec<String> {
    if d.n == 0 {
        return DISTRIBUTION_HEADS.iter().map(|_| word!("unavailable").to_string()).collect();
    }
    let least = if d.censored.is_some() { "> " } else { "" };
    let mut cells = vec![words::count(d.n), words::ns(d.min_ns as f64), format!("{least}{}", words::ns(d.mean_ns))];
    cells.extend(QUANTILES.iter().map(|q| match d.quantile(*q) {
        Some(q) => {
            format!("{} [{}]", words::ns_of(d, q.value_ns), words::ns_interval(q.low_ns as f64, q.high_ns as f64))
        }
        None => word!("too few").into(),
    }));
    cells.push(words::ns_of(d, d.max_ns));
    cells
}

/// One row for each named distribution.
fn distribution_table<'a>(caption: &str, named: impl IntoIterator<Item = (String, &'a Distribution)>) -> Table {
    let rows = named.into_iter().map(|(name, d)| {
        let mut row = vec![name];
        row.extend(distribution_cells(d));
        row
    });
    let mut names = heads(&[word!("what")]);
    names.extend(heads(DISTRIBUTION_HEADS));
    Table { caption: caption.into(), heads: names, rows: rows.collect(), n_text_columns: 1 }
}

/// The figure of these curves, measured, with the buckets as its raw numbers and their percentiles as a table, where that has a caption;
/// none without a curve.
pub(super) fn distribution_figure(
    id: String,
    title: &str,
    caption: impl Into<String>,
    curves: &[Curve<'_>],
    table: Option<String>,
) -> Option<Figure> {
    let named = || curves.iter().map(|c| (c.name.to_string(), c.latency));
    (!curves.is_empty()).then(|| Figure {
        svg: distribution::draw(&id, title, curves),
        title: title.into(),
        caption: caption.into(),
        label: "measured",
        table: table.map(|caption| distribution_table(&caption, named())),
        csv: distribution_csv(named()),
        id,
    })
}

/// What a distribution's figure draws: every bucket, and the share of samples up to it.
fn distribution_csv<'a>(named: impl IntoIterator<Item = (String, &'a Distribution)>) -> String {
    let columns = [
        (word!("what"), Show::Text),
        (word!("up to"), Show::Ns),
        (word!("samples"), Show::Count),
        (word!("share up to here"), Show::Ratio),
    ];
    let mut data = Data::with(&columns);
    for (name, d) in named {
        let mut seen = 0u64;
        for bucket in &d.buckets {
            seen = seen.saturating_add(bucket.n);
            let share = seen as f64 / d.n.max(1) as f64;
            data.rows.push(vec![
                name.clone().into(),
                (bucket.upto_ns as f64).into(),
                (bucket.n as f64).into(),
                share.into(),
            ]);
        }
    }
    data.csv()
}

fn scheduling(s: &Scheduling) -> String {
    match s {
        Scheduling::Fifo(priority) => say!("SCHED_FIFO {priority}"),
        Scheduling::Other(why) => say!("SCHED_OTHER ({why}); run-queue delay is included"),
        Scheduling::Ordinary => {
            word!("SCHED_OTHER, as asked for: what an ordinary thread meets, run-queue delay included").into()
        }
    }
}

/// A domain's rows.
pub(super) fn sheet_table(title: &str, sheet: &Sheet) -> Table {
    let rows = sheet.rows.iter().map(|row| {
        let (value, label) = match &row.cell {
            Ok(cell) => (cell.to_string(), if row.is_counter { word!("counter") } else { word!("claimed") }),
            Err(gap) => (gap.to_string(), told(gap.kind.word())),
        };
        let cpus = row.cpus.as_ref().map_or(word!("all").to_string(), ToString::to_string);
        vec![row.label.clone(), value, cpus, label.to_string()]
    });
    Table {
        caption: title.into(),
        heads: heads(&[word!("fact"), word!("value"), word!("CPUs"), word!("label")]),
        rows: rows.collect(),
        n_text_columns: 4,
    }
}

/// How it was measured, from what the run says about itself; then the limits, always.
pub(super) fn method(evidence: &Evidence, zero_at_ns: u64) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    let mut say = |head: &str, text: String| all.push((head.into(), text));
    if let Some(run) = &evidence.samples.experiment {
        let start = run.blocks.iter().map(|b| b.window.start_at_ns).min().unwrap_or(0);
        let end = run.blocks.iter().map(|b| b.window.end_at_ns).max().unwrap_or(0);
        let lengths = run.blocks.iter().map(|b| b.window.length_ns() as f64);
        say(
            word!("Design"),
            say!(
                "{} in random order, each measured once a round: {} measurements, median length {}; {} from first to last. \
                 Seed of the order: {:#x}. It ended because {}.",
                words::plural(run.arms.len(), "variant"),
                run.blocks.len(),
                words::ns(words::median(lengths).unwrap_or(0.0)),
                words::ns(end.saturating_sub(start) as f64),
                run.seed,
                run.ended
            ),
        );
        for arm in &run.arms {
            say(
                &say!("Arm {}", arm.id),
                format!(
                    "{}: {}",
                    arm.title,
                    words::clauses(&arm.settings.iter().map(|s| kept_words::shown(s)).collect::<Vec<_>>())
                ),
            );
        }
        say(
            word!("Statistics"),
            word!("The unit is the block, never the single sample. Ratio: Hodges-Lehmann estimate over rounds, blocks paired within a round; interval: Walsh averages over rounds at the level of the look that decided, so that it holds at 95 % over all looks, and holds 1 exactly where the test finds nothing; p: exact Wilcoxon signed-rank test on log ratios, with what earlier looks could spend added for the primary metric, which was declared before the run, and Holm-adjusted for all others, whose intervals are each for itself. Where a run with one arm ended after its first look, the ratio is the median-unbiased one. “No difference” means the interval lies within ±5 % of 1. Values of an arm are medians over its blocks.").into(),
        );
    }
    let mut how: Vec<String> = Vec::new();
    for s in &evidence.samples.wakeups {
        let text = say!(
            "{}; one clock read costs {} and is not subtracted",
            scheduling(&s.scheduling),
            words::ns(s.clock_read_ns as f64)
        );
        if !how.contains(&text) {
            how.push(text);
        }
    }
    for s in &evidence.samples.network {
        let text = scheduling(&s.scheduling);
        if !how.iter().any(|h| h.starts_with(&text)) {
            how.push(text);
        }
    }
    if !how.is_empty() {
        say(word!("Scheduling"), words::clauses(&how));
    }
    say(
        word!("Latency"),
        word!("A wake-up by another CPU is counted from the ring, the moment at which the waking thread really called, to running; how late it rang and what it missed is told apart. A timer's wake-up and a request are counted from the planned time, and a ring or a request that had to wait for the one before from when it was due, so a late sample does not hide the next (no coordinated omission). Percentiles: HDR histogram with three digits; one with fewer than ten samples beyond it is not shown.").into(),
    );
    if zero_at_ns > 0 {
        say(
            word!("Windows"),
            say!(
                "t is counted from {:.1} s of CLOCK_MONOTONIC, when the first measurement began.",
                zero_at_ns as f64 / 1e9
            ),
        );
    }
    say(
        word!("Labels"),
        word!("measured: taken here in the stated window. modelled: computed from facts or a model. claimed: what the kernel, driver or firmware says. unavailable: could not be had; the reason is beside it.").into(),
    );
    say(
        word!("Limits"),
        word!("An idle state is the one Linux asked for; hardware or hypervisor may have done something else. What holds for this machine, kernel and hour need not hold for another. Power is not in this report unless a number says so.").into(),
    );
    all
}
