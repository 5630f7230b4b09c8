//! What an experiment over settings allows to say, arm by arm, with what weakens it: the host's own noise, blocks that did
//! not count, arms that were left out, and how large a difference would have been seen at all.

use super::super::table::Table;
use super::super::words;
use super::heads;
use super::metrics::{metric, metric_title};
use super::section::Section;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::kept_words;
use wakewatt_core::samples::experiment::{ExperimentRun, Verdict};
use wakewatt_core::samples::study::{Comparison, Conclusions};
use wakewatt_words::{say, word};

/// The section, where there was a plan.
pub(super) fn section(evidence: &Evidence) -> Option<Section> {
    let (conclusions, run) = (evidence.samples.conclusions.as_ref()?, evidence.samples.experiment.as_ref()?);
    let mut out = Section { is_result: true, ..Section::new(word!("What the experiment says")) };
    let host = &conclusions.host;
    out.intro.push(say!(
        "{} On {}, Linux {}, {}.",
        kept_words::shown(&conclusions.question),
        host.name,
        host.kernel,
        host.cpus
    ));
    out.intro.extend(conclusions.sentences.iter().cloned());
    out.lines.extend(conclusions.sentences.iter().cloned());
    out.tables.extend(filled(comparisons(run, conclusions)));
    out.tables.extend(filled(rejected(conclusions)));
    out.tables.extend(filled(skipped(conclusions)));
    out.remarks.extend(conclusions.remarks.iter().map(|remark| kept_words::shown(remark)));
    Some(out)
}

fn filled(table: Table) -> Option<Table> {
    (!table.rows.is_empty()).then_some(table)
}

fn in_a_word(c: &Comparison) -> &'static str {
    match c.effect.verdict {
        Verdict::Higher | Verdict::Lower => word!("differs"),
        Verdict::NoDifference => word!("no difference"),
        Verdict::Undecided if c.is_no_harm => word!("undecided, but no harm"),
        Verdict::Undecided => word!("undecided"),
    }
}

fn comparisons(run: &ExperimentRun, conclusions: &Conclusions) -> Table {
    let row = |c: &Comparison| {
        let e = &c.effect;
        let unit = metric(run, &e.metric).unit;
        let turned = e.inverted();
        vec![
            metric_title(run, &e.metric),
            e.arm.clone(),
            in_a_word(c).into(),
            format!("{} ({})", words::ratio(turned.ratio), words::interval_beside(&turned)),
            words::value(unit, turned.difference),
            words::p_value(e.p_value),
            e.n_pairs.to_string(),
            c.detectable_ratio.map_or("–".into(), |r| words::percent(r - 1.0)),
        ]
    };
    let sure = format!("{:.1} %", (1.0 - conclusions.level) * 100.0);
    let baseline = run.arms.first().map_or("", |a| a.title.as_str());
    Table {
        caption: say!(
            "Every arm against “{baseline}”: measured, paired by round; intervals at {sure} each (secondary metrics: each by itself), which cover this run; p adjusted by Holm; last: the least difference that so many rounds find four times in five"
        ),
        heads: heads(&[
            word!("metric"),
            word!("arm"),
            word!("in a word"),
            word!("times the baseline"),
            word!("difference"),
            "p",
            word!("rounds"),
            word!("could be seen"),
        ]),
        rows: conclusions.comparisons.iter().map(row).collect(),
        n_text_columns: 3,
    }
}

fn rejected(conclusions: &Conclusions) -> Table {
    Table {
        caption: word!("Blocks that did not count").into(),
        heads: heads(&[word!("arm"), word!("why"), word!("blocks")]),
        rows: conclusions.rejected.iter().map(|r| vec![r.arm.clone(), r.why.to_string(), r.n.to_string()]).collect(),
        n_text_columns: 2,
    }
}

fn skipped(conclusions: &Conclusions) -> Table {
    Table {
        caption: word!("Left out here").into(),
        heads: heads(&[word!("what"), word!("why")]),
        rows: conclusions.skipped.iter().map(|s| vec![kept_words::shown(&s.what), kept_words::shown(&s.why)]).collect(),
        n_text_columns: 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::samples::Samples;
    use wakewatt_core::samples::experiment::{Arm, Effect, Metric};
    use wakewatt_core::samples::study::{AaNoise, Rejected, Skipped};

    #[test]
    fn what_weakens_a_study_stands_beside_what_it_says() {
        let effect = Effect {
            covers: wakewatt_core::covers::Covers::Run,
            metric: "m".into(),
            baseline: "found".into(),
            arm: "poll".into(),
            ratio: 2.0,
            ratio_low: 1.6,
            ratio_high: 2.5,
            difference: 30e3,
            difference_low: 20e3,
            difference_high: 40e3,
            confidence: None,
            p_value: 0.004,
            at_look: None,
            n_pairs: 8,
            verdict: Verdict::Higher,
        };
        let comparison = Comparison {
            effect,
            equivalence_p: 1.0,
            no_harm_p: 0.0,
            is_no_harm: true,
            detectable_ratio: Some(1.3),
            any_time: None,
        };
        let noise = AaNoise {
            covers: wakewatt_core::covers::Covers::Run,
            metric: "m".into(),
            n_pairs: 8,
            ratio: 1.01,
            ratio_low: 0.97,
            ratio_high: 1.05,
            p_value: 0.6,
            block_noise_ratio: Some(0.04),
        };
        let conclusions = Conclusions {
            sentences: vec!["poll answers 2.0 times as fast.".into()],
            comparisons: vec![comparison],
            noise: vec![noise],
            skipped: vec![Skipped { what: "arm turbo".into(), why: "no such file".into() }],
            rejected: vec![Rejected { arm: "poll".into(), why: "steal".into(), n: 3 }],
            remarks: vec!["to know".into()],
            level: 0.0078,
            ..Conclusions::default()
        };
        let arm = |id: &str| Arm { id: id.into(), title: format!("arm {id}"), settings: vec![] };
        let run = ExperimentRun {
            arms: vec![arm("found"), arm("poll")],
            metrics: vec![Metric::latency("m", "wake-up")],
            ..ExperimentRun::default()
        };
        assert!(section(&Evidence::of(Samples { experiment: Some(run.clone()), ..Samples::default() })).is_none());
        let evidence =
            Evidence::of(Samples { experiment: Some(run), conclusions: Some(conclusions), ..Samples::default() });
        let section = section(&evidence).unwrap();
        let table = &section.tables[0];
        assert!(table.caption.contains("99.2 %") && table.caption.contains("arm found"), "{}", table.caption);
        assert_eq!(table.rows[0][..4], ["wake-up", "poll", "differs", "0.50 (0.40–0.62)"].map(String::from));
        assert!(table.rows[0][4].contains("30") && table.rows[0][7].contains("30"), "{:?}", table.rows);
        assert_eq!(section.tables.len(), 3, "the baseline against itself stands with the experiment");
        assert_eq!((section.lines.len(), section.remarks.len()), (1, 1));
    }
}
