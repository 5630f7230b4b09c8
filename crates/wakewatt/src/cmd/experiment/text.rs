//! The result for people: sentences first, then how sure, then what to be warned of.

use crate::report::study_sentences as sentences;
use crate::report::value_words;
use crate::view::Style;
use crate::view::wrap::wrap;
use std::fmt::Write as _;
use wakewatt_core::kept_words;
use wakewatt_core::samples::experiment::{Metric, Verdict};
use wakewatt_core::samples::side_effect::SideEffect;
use wakewatt_core::samples::study::{Comparison, Study};
use wakewatt_core::samples::tail::{TailAnswer, TailTest};
use wakewatt_core::units::{p_value, three_digits};
use wakewatt_words::{say, word};

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
        &say!(
            "{plan} on {host} ({kernel}, {cpus}): {question}",
            plan = study.conclusions.name,
            host = host.name,
            kernel = host.kernel,
            cpus = host.cpus,
            question = kept_words::shown(&study.conclusions.question)
        ),
    );
    say(&format!("\n{}", style.bold(word!("Answer"))), "", "");
    // Made again, in the language of the reader.
    sentences::of(study).iter().for_each(|sentence| say("  - ", "    ", sentence));
    let n_rounds = study.run.n_rounds();
    say(
        "\n",
        "",
        &say!(
            "It ended because {why}; {n_blocks} blocks in {n_rounds} rounds.",
            why = study.run.ended,
            n_blocks = study.run.blocks.len()
        ),
    );
    let Some((primary, _)) = study.run.metrics.split_first() else { return out };
    say(&format!("\n{}", style.bold(word!("Baseline over arm, and baseline less arm"))), "", "");
    let rows = |is_primary: bool| {
        study.conclusions.comparisons.iter().filter(move |c| (c.effect.metric == primary.id) == is_primary)
    };
    say(
        "  ",
        "  ",
        &say!(
            "Intervals are {share} each, so that all looks together are 95 % for the primary metric; the others' hold each by itself; they cover this run.",
            share = sentences::sure(study)
        ),
    );
    rows(true).chain(rows(false).take(N_SECONDARY)).for_each(|c| say("  ", "      ", &row(study, c)));
    let n_more = rows(false).count().saturating_sub(N_SECONDARY);
    if n_more > 0 {
        say("  ", "    ", &say!("… and {n_more} more (--json has all)"));
    }
    if !study.conclusions.noise.is_empty() {
        say(&format!("\n{}", style.bold(word!("This host against itself"))), "", "");
        for noise in study.conclusions.noise.iter().take(6) {
            let block = noise
                .block_noise_ratio
                .map_or(String::new(), |r| say!(", one block varies by {share} %", share = three_digits(r * 100.0)));
            let words = say!(
                "{metric}: x{ratio:.3} (95 % {low:.3}-{high:.3}, covers {covers}), p {p}, {n} pairs{block}",
                metric = noise.metric,
                ratio = noise.ratio,
                low = noise.ratio_low,
                high = noise.ratio_high,
                covers = noise.covers,
                p = p_value(noise.p_value),
                n = noise.n_pairs
            );
            say("  ", "      ", &words);
        }
    }
    let mut list = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            say(&format!("\n{}", style.bold(title)), "", "");
            lines.iter().for_each(|line| say("  - ", "    ", line));
        }
    };
    list(word!("Beside what was compared"), study.run.side_effects.iter().map(beside).collect());
    list(word!("The tail of the primary metric"), study.run.tails.iter().map(tail).collect());
    let rejected = study
        .conclusions
        .rejected
        .iter()
        .map(|r| say!("{n} of {arm}: {why}", n = r.n, arm = r.arm, why = r.why))
        .collect();
    list(word!("Blocks that did not count"), rejected);
    list(word!("Left out"), study.conclusions.skipped.iter().map(|s| format!("{}: {}", s.what, s.why)).collect());
    list(word!("To know"), study.conclusions.remarks.clone());
    let restored = if study.run.is_restored() {
        word!("Settings read as before.")
    } else {
        word!("Settings do NOT read as before.")
    };
    let dir = study.conclusions.run_dir.as_ref().map_or(String::new(), |dir| say!(" Kept in {dir}."));
    say("\n", "", &say!("{restored} Seed {seed}.{dir}", seed = study.run.seed));
    out
}

fn beside(effect: &SideEffect) -> String {
    let word = if effect.is_shown { word!("differs") } else { word!("not shown to differ") };
    format!("{}: p {}, {word}", effect.say(), p_value(effect.p_value))
}

fn tail(test: &TailTest) -> String {
    let margin = three_digits((test.margin_ratio - 1.0) * 100.0);
    let answer = match test.answer {
        TailAnswer::NoHarm => say!("no worse by more than {margin} %"),
        TailAnswer::Harm => say!("worse"),
        TailAnswer::CannotTell => say!("cannot tell: {why}", why = test.why_not()),
    };
    say!("{metric} with {arm}: {answer} (p {p})", metric = test.metric, arm = test.arm, p = p_value(test.no_harm_p))
}

fn row(study: &Study, c: &Comparison) -> String {
    let e = &c.effect;
    let metric =
        study.run.metrics.iter().find(|m| m.id == e.metric).cloned().unwrap_or_else(|| Metric::latency("", ""));
    let verdict = match e.verdict {
        Verdict::Higher | Verdict::Lower => word!("differs"),
        Verdict::NoDifference => word!("no difference"),
        Verdict::Undecided if c.is_no_harm => word!("undecided, but no harm"),
        Verdict::Undecided => word!("undecided"),
    };
    let detectable = c
        .detectable_ratio
        .map_or(String::new(), |r| say!(", {share} % could be seen", share = three_digits((r - 1.0) * 100.0)));
    let share = sentences::sure(study);
    let interval =
        e.interval().map_or(word!("no interval").to_string(), |(low, high)| format!("{share} {low:.3}-{high:.3}"));
    say!(
        "{metric} / {arm}: x{ratio:.3} ({interval}), difference {difference}, p {p}, {n} blocks{detectable}: {verdict}",
        metric = e.metric,
        arm = e.arm,
        ratio = e.ratio,
        difference = value_words(metric.unit, e.difference),
        p = p_value(e.p_value),
        n = e.n_pairs
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn our_own_styles_are_styles_and_no_text() {
        let mut n = 0;
        for (name, report) in sample::all() {
            let samples = report.evidence.samples;
            let Some(run) = samples.experiment else { continue };
            let conclusions = samples.conclusions.unwrap_or_default();
            let study = Study { conclusions, run, loads: Vec::new() };
            let styled = text(&study, Style { is_on: true }, 100);
            assert!(styled.contains("\x1b[1m") && !styled.contains("\\x1b"), "{name}: {styled}");
            n += 1;
        }
        assert!(n > 0, "no sample holds an experiment");
    }
}
