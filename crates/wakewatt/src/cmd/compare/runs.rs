//! Two runs as text: what stands out, every number, suspects, and what must not be concluded.

use crate::output;
use crate::view::Style;
use crate::view::table::Table;
use std::fmt::Write as _;
use wakewatt_core::compare::gate::{Check, Gate};
use wakewatt_core::compare::runs::RunComparison;
use wakewatt_core::samples::experiment::Verdict;
use wakewatt_words::{say, told, word};

/// Sentences of differences that are none, shown without `--all`.
const MAX_QUIET: usize = 6;
/// States of a residency table that are shown.
const MAX_STATES: usize = 6;

pub(super) fn text(out: &mut String, runs: &RunComparison, is_all: bool, style: Style) {
    if !runs.summary.is_empty() {
        let _ = writeln!(out, "\n{}", style.bold(word!("What stands out")));
        lines(out, &runs.summary);
    }
    if !runs.samples.is_empty() {
        let _ = writeln!(out, "\n{}", style.bold(word!("Measured (B against A)")));
        let is_loud = |v: Verdict| matches!(v, Verdict::Higher | Verdict::Lower);
        let (loud, quiet): (Vec<_>, Vec<_>) = runs.samples.iter().partition(|d| is_loud(d.verdict));
        let n_quiet = if is_all { quiet.len() } else { quiet.len().min(MAX_QUIET) };
        loud.iter().chain(&quiet[..n_quiet]).for_each(|d| lines(out, std::slice::from_ref(&d.sentence)));
        if n_quiet < quiet.len() {
            let _ = writeln!(
                out,
                "  {}",
                say!("… and {n} more without a difference (--all shows them)", n = quiet.len() - n_quiet)
            );
        }
        if runs.n_only_one > 0 {
            let _ = writeln!(
                out,
                "  {}",
                say!("{n} quantities were measured in one of the runs only.", n = runs.n_only_one)
            );
        }
    }
    if !runs.effects.is_empty() {
        let _ = writeln!(out, "\n{}", style.bold(word!("The same experiment in both")));
        lines(out, &runs.effects.iter().map(|e| e.sentence.clone()).collect::<Vec<_>>());
    }
    if !runs.residency.is_empty() {
        let _ = writeln!(out, "\n{}", style.bold(word!("Share of idle time by state (the kernel's counters)")));
    }
    for line in residency(runs) {
        let _ = writeln!(out, "  {line}");
    }
    if !runs.suspects.is_empty() {
        let _ = writeln!(out, "\n{}", style.bold(word!("Suspects: what differs and could explain it")));
        lines(out, &runs.suspects.iter().map(|s| s.line()).collect::<Vec<_>>());
    }
    let _ = writeln!(out, "\n{}", style.bold(word!("What cannot be concluded")));
    lines(out, &runs.cannot_conclude);
}

/// What the rules came to: the sentence, what fails, and of the rest the first.
pub(super) fn gate(out: &mut String, gate: &Gate, is_all: bool, style: Style) {
    let _ = writeln!(out, "\n{}", style.bold(&clean(&gate.sentence)));
    let (failing, rest): (Vec<&Check>, Vec<&Check>) = gate.checks.iter().partition(|c| c.fails);
    let n_rest = if is_all { rest.len() } else { rest.len().min(MAX_QUIET) };
    failing.iter().chain(&rest[..n_rest]).for_each(|c| lines(out, std::slice::from_ref(&c.sentence)));
    if n_rest < rest.len() {
        let _ =
            writeln!(out, "  {}", say!("… and {n} more that do not fail (--all shows them)", n = rest.len() - n_rest));
    }
}

/// One table: what was measured, and the states below it.
fn residency(runs: &RunComparison) -> Vec<String> {
    let percent = |ratio: f64| format!("{:.1} %", ratio * 100.0);
    let mut rows: Vec<Vec<String>> = Vec::new();
    for residency in &runs.residency {
        rows.push(vec![told(&residency.when).to_string()]);
        let states = residency.states.iter().take(MAX_STATES);
        rows.extend(states.map(|s| vec![format!("  {}", s.name), percent(s.a_ratio), percent(s.b_ratio)]));
    }
    if rows.is_empty() {
        return Vec::new();
    }
    let heads = ["", "A", "B"].map(String::from);
    Table { heads: &heads, rows: &rows, n_text_columns: 1 }.lines(output::width().saturating_sub(2))
}

fn lines(out: &mut String, lines: &[String]) {
    for line in lines {
        let _ = writeln!(out, "  - {}", clean(line));
    }
}

/// The files may come from anywhere.
fn clean(text: &str) -> String {
    crate::report::trace::clean(text)
}
