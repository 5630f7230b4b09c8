//! The waking side of the experiment: what was planned and has no sample, arm by arm, how late the waker rang, and how well
//! the two CPUs' clocks agree.

use super::super::table::{Table, heads};
use super::super::words;
use super::section::Section;
use wakewatt_core::samples::experiment::ExperimentRun;
use wakewatt_core::samples::waker::{Pauses, Waker};
use wakewatt_words::{say, word};

/// None where nobody was woken from another CPU.
pub(super) fn section(run: &ExperimentRun) -> Option<Section> {
    let rows: Vec<Vec<String>> = run.arms.iter().filter_map(|arm| row(run, &arm.id, &arm.title)).collect();
    if rows.is_empty() {
        return None;
    }
    let mut out = Section::new(word!("The waking side"));
    out.intro.push(
        word!(
            "A cross-CPU wake-up is timed from the wake call to the first instruction of the woken thread. How late the \
             waker was is not in the latency. A missed wake-up counts as longer than any that was measured."
        )
        .into(),
    );
    out.intro.extend(clocks(run));
    out.tables.push(Table {
        caption: word!(
            "Planned wake-ups without a sample, and how late the waker rang: measured, all blocks of an arm together"
        )
        .into(),
        heads: heads(&[
            word!("arm"),
            word!("planned"),
            word!("missed by the waker"),
            word!("not asleep"),
            word!("lost"),
            word!("late, median"),
            word!("late, p99"),
        ]),
        rows,
        n_text_columns: 1,
    });
    Some(out)
}

fn clocks(run: &ExperimentRun) -> Option<String> {
    let bound_ns = run.metrics.iter().find_map(|m| m.clock_bound_ns)?;
    Some(say!(
        "The two CPUs' clocks agree within {}, as measured before the first block: a smaller difference is not told as an effect.",
        words::ns(bound_ns as f64)
    ))
}

fn row(run: &ExperimentRun, id: &str, title: &str) -> Option<Vec<String>> {
    let blocks = || run.blocks.iter().filter(|b| b.arm == id);
    let waker = Waker::together(blocks().filter_map(|b| b.waker.as_ref()))?;
    let late = |ns: Option<u64>| ns.map_or(word!("too few").into(), |ns| words::ns(ns as f64));
    Some(vec![
        title.into(),
        words::count(waker.n_planned),
        words::count(waker.n_missed),
        words::count(waker.n_not_asleep),
        waker.lost_ratio().map_or("–".into(), words::percent),
        late(waker.late_p50_ns),
        late(waker.late_p99_ns),
    ])
}

/// How the pauses were drawn, in a table's words.
pub(super) fn pause(gap_ns: u64, pauses: Pauses) -> String {
    let gap = words::ns(gap_ns as f64);
    match pauses {
        Pauses::Fixed => say!("pause {gap}"),
        Pauses::Exponential { .. } => say!("random pause, {gap} in the mean"),
    }
}

/// How the waker kept its plan, in a table's words.
pub(super) fn kept(waker: &Waker) -> String {
    let lost = waker.lost_ratio().map_or("–".into(), words::percent);
    let late =
        waker.late_p50_ns.map_or(String::new(), |ns| say!(", waker late by {} in the middle", words::ns(ns as f64)));
    say!("{lost} of {} planned lost{late}", words::count(waker.n_planned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn what_each_arm_lost_stands_beside_how_late_the_waker_was() {
        let report = sample::two_arms();
        let mut run = report.evidence.samples.experiment.clone().unwrap();
        run.blocks.iter_mut().for_each(|b| b.waker = None);
        assert!(section(&run).is_none(), "nobody was woken from another CPU");
        let first = run.arms[0].id.clone();
        for block in run.blocks.iter_mut().filter(|b| b.arm == first) {
            block.waker = Some(Waker {
                n_planned: 1000,
                n_missed: 100,
                n_not_asleep: 11,
                late_p50_ns: Some(60_000),
                late_p99_ns: None,
            });
        }
        run.metrics[0].clock_bound_ns = Some(142);
        let section = section(&run).unwrap();
        assert_eq!(section.tables[0].rows.len(), 1);
        let row = &section.tables[0].rows[0];
        assert!(row[4].starts_with("11") && row[5].contains("60") && row[6] == "too few", "{row:?}");
        assert!(section.intro[1].contains("142 ns"), "{:?}", section.intro);
    }
}
