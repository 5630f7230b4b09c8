//! The result for people: sentences first, then how sure, then what to be warned of.

use crate::report::study_sentences as sentences;
use crate::report::value_words;
use crate::view::Style;
use crate::view::wrap::wrap;
use std::fmt::Write as _;
use wakewatt_core::samples::experiment::{Metric, Verdict};
use wakewatt_core::samples::side_effect::SideEffect;
use wakewatt_core::samples::study::{Comparison, Study};
use wakewatt_core::samples::tail::{TailAnswer, TailTest};
use wakewatt_core::units::{p_value, three_digits};

/// Rows of secondary metrics shown; JSON has all.
const N_SECONDARY: usize = 24;

/// The whole of it.
pub(super) fn text(study: &Study, style: Style, width: usize) -> String {
    let mut out = String::new();
    let mut say = |first: &str, rest: &str, words: &str| {
        let _ = writeln!(out, "{}", wrap(first, rest, words, width));
    };
    let host = &study.conclusions.host;
    say(
        "",
        "",
        &format!(
            "{} on {} ({}, {}): {}",
            study.conclusions.name, host.name, host.kernel, host.cpus, study.conclusions.question
        ),
    );
    say("\n", "", &style.bold("Answer"));
    study.conclusions.sentences.iter().for_each(|sentence| say("  - ", "    ", sentence));
    let n_rounds = study.run.n_rounds();
    say(
        "\n",
        "",
        &format!("It ended because {}; {} blocks in {n_rounds} rounds.", study.run.ended, study.run.blocks.len()),
    );
    let Some((primary, _)) = study.run.metrics.split_first() else { return out };
    say("\n", "", &style.bold("Baseline over arm, and baseline less arm"));
    let rows = |is_primary: bool| {
        study.conclusions.comparisons.iter().filter(move |c| (c.effect.metric == primary.id) == is_primary)
    };
    say(
        "  ",
        "  ",
        &format!(
            "Intervals are {} each, so that all looks together are 95 % for the primary metric; the others' hold each by itself; \
             they cover this run.",
            sentences::sure(study)
        ),
    );
    rows(true).chain(rows(false).take(N_SECONDARY)).for_each(|c| say("  ", "      ", &row(study, c)));
    let n_more = rows(false).count().saturating_sub(N_SECONDARY);
    if n_more > 0 {
        say("  ", "    ", &format!("… and {n_more} more (--json has all)"));
    }
    if !study.conclusions.noise.is_empty() {
        say("\n", "", &style.bold("This host against itself"));
        for noise in study.conclusions.noise.iter().take(6) {
            let block = noise
                .block_noise_ratio
                .map_or(String::new(), |r| format!(", one block varies by {} %", three_digits(r * 100.0)));
            let words = format!(
                "{}: x{:.3} (95 % {:.3}-{:.3}, covers {}), p {}, {} pairs{block}",
                noise.metric,
                noise.ratio,
                noise.ratio_low,
                noise.ratio_high,
                noise.covers,
                p_value(noise.p_value),
                noise.n_pairs
            );
            say("  ", "      ", &words);
        }
    }
    let mut list = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            say("\n", "", &style.bold(title));
            lines.iter().for_each(|line| say("  - ", "    ", line));
        }
    };
    list("Beside what was compared", study.run.side_effects.iter().map(beside).collect());
    list("The tail of the primary metric", study.run.tails.iter().map(tail).collect());
    let rejected = study.conclusions.rejected.iter().map(|r| format!("{} of {}: {}", r.n, r.arm, r.why)).collect();
    list("Blocks that did not count", rejected);
    list("Left out", study.conclusions.skipped.iter().map(|s| format!("{}: {}", s.what, s.why)).collect());
    list("To know", study.conclusions.remarks.clone());
    let restored = if study.run.is_restored() { "Settings read as before." } else { "Settings do NOT read as before." };
    let dir = study.conclusions.run_dir.as_ref().map_or(String::new(), |dir| format!(" Kept in {dir}."));
    say("\n", "", &format!("{restored} Seed {}.{dir}", study.run.seed));
    out
}

fn beside(effect: &SideEffect) -> String {
    let word = if effect.is_shown { "differs" } else { "not shown to differ" };
    format!("{}: p {}, {word}", effect.say(), p_value(effect.p_value))
}

fn tail(test: &TailTest) -> String {
    let margin = three_digits((test.margin_ratio - 1.0) * 100.0);
    let answer = match test.answer {
        TailAnswer::NoHarm => format!("no worse by more than {margin} %"),
        TailAnswer::Harm => "worse".into(),
        TailAnswer::CannotTell => format!("cannot tell: {}", test.why_not()),
    };
    format!("{} with {}: {answer} (p {})", test.metric, test.arm, p_value(test.no_harm_p))
}

fn row(study: &Study, c: &Comparison) -> String {
    let e = &c.effect;
    let metric =
        study.run.metrics.iter().find(|m| m.id == e.metric).cloned().unwrap_or_else(|| Metric::latency("", ""));
    let verdict = match e.verdict {
        Verdict::Higher | Verdict::Lower => "differs",
        Verdict::NoDifference => "no difference",
        Verdict::Undecided if c.is_no_harm => "undecided, but no harm",
        Verdict::Undecided => "undecided",
    };
    let detectable =
        c.detectable_ratio.map_or(String::new(), |r| format!(", {} % could be seen", three_digits((r - 1.0) * 100.0)));
    format!(
        "{} / {}: x{:.3} ({} {:.3}-{:.3}), difference {}, p {}, {} blocks{detectable}: {verdict}",
        e.metric,
        e.arm,
        e.ratio,
        sentences::sure(study),
        e.ratio_low,
        e.ratio_high,
        value_words(metric.unit, e.difference),
        p_value(e.p_value),
        e.n_pairs
    )
}
