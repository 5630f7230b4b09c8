//! What stands beside an experiment's effects: the declared claim on the tail, and what the arms changed that nobody compared.

use super::super::table::{Table, heads};
use super::super::words;
use super::metrics::metric_title;
use wakewatt_core::samples::experiment::ExperimentRun;
use wakewatt_core::samples::side_effect::SideEffect;
use wakewatt_core::samples::study::AaNoise;
use wakewatt_core::samples::tail::{TailAnswer, TailTest};
use wakewatt_lab::study;
use wakewatt_words::{say, word};

/// Those that have a row.
pub(super) fn tables(run: &ExperimentRun) -> Vec<Table> {
    [tails(run), side_effects(run), against_itself(run)].into_iter().filter(|table| !table.rows.is_empty()).collect()
}

fn tails(run: &ExperimentRun) -> Table {
    let answer = |t: &TailTest| match t.answer {
        TailAnswer::NoHarm => say!("no worse by more than {}", words::percent(t.margin_ratio - 1.0)),
        TailAnswer::Harm => word!("worse").into(),
        TailAnswer::CannotTell => say!("cannot tell: {}", t.why_not()),
    };
    let row = |t: &TailTest| {
        let numbers = [words::p_value(t.no_harm_p), words::p_value(t.level), t.n_pairs.to_string()];
        [metric_title(run, &t.metric), t.arm.clone(), answer(t)].into_iter().chain(numbers).collect()
    };
    Table {
        caption: word!("Is the tail left as it is? Declared with the primary metric and tested at the whole level of the look; p of \u{201c}it is worse\u{201d}, adjusted for the arms").into(),
        heads: heads(&[word!("metric"), word!("arm"), word!("answer"), "p", word!("level"), word!("rounds")]),
        rows: run.tails.iter().map(row).collect(),
        n_text_columns: 3,
    }
}

fn side_effects(run: &ExperimentRun) -> Table {
    let row = |e: &SideEffect| {
        let show = |value| e.what.show(value);
        let word = match (e.is_shown, e.difference > 0.0) {
            (false, _) => word!("not shown to differ").to_string(),
            (true, true) => say!("more with {}", e.baseline),
            (true, false) => say!("more with {}", e.arm),
        };
        vec![
            e.what.words().into(),
            format!("{} / {}", e.baseline, e.arm),
            word,
            show(e.baseline_value),
            show(e.arm_value),
            match e.interval() {
                Some((low, high)) => say!("{} ({} to {})", show(e.difference), show(low), show(high)),
                None => show(e.difference),
            },
            words::p_value(e.p_value),
            e.n_pairs.to_string(),
        ]
    };
    Table {
        caption: word!("What the arms changed beside what was compared: measured, paired by round; intervals at 95 % each by itself, which cover this run, p adjusted together (Holm)").into(),
        heads: heads(&[word!("what"), word!("arms"), word!("in a word"), word!("baseline"), word!("arm"), word!("difference (interval)"), "p", word!("rounds")]),
        rows: run.side_effects.iter().map(row).collect(),
        n_text_columns: 3,
    }
}

fn against_itself(run: &ExperimentRun) -> Table {
    let row = |n: &AaNoise| {
        vec![
            metric_title(run, &n.metric),
            format!("{} ({})", words::ratio(n.ratio), words::ratio_interval(n.ratio_low, n.ratio_high)),
            words::p_value(n.p_value),
            n.n_pairs.to_string(),
            n.block_noise_ratio.map_or("–".into(), words::percent),
        ]
    };
    Table {
        caption: word!("The baseline held twice in a round and compared with itself: measured; what differs here is this host’s own noise").into(),
        heads: heads(&[word!("metric"), word!("ratio (95 %, this run)"), "p", word!("rounds"), word!("one block varies by")]),
        rows: study::noise(run).iter().map(row).collect(),
        n_text_columns: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::sample;
    use super::*;
    use wakewatt_core::samples::side_effect::Witnessed;

    #[test]
    fn the_tail_and_the_side_effects_are_on_every_page() {
        let report = sample::two_arms();
        let run = report.evidence.samples.experiment.as_ref().unwrap();
        let found = tables(run);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].rows.len(), 1);
        let sleeps = found[1].rows.iter().find(|row| row[0] == Witnessed::Sleeps.words()).unwrap();
        assert!(sleeps[2].starts_with("more with") && sleeps[4] == "0.00", "{sleeps:?}");
        assert!(report.to_html().unwrap().contains("beside what was compared"));
        assert!(tables(&ExperimentRun::default()).is_empty());
    }
}
