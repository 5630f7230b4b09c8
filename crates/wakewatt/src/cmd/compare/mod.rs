//! `wakewatt compare`: the differences between hosts, ranked by predicted effect; between two runs also what was measured; between two moments of an agent's
//! history what was set and what was measured around each.

#[cfg(feature = "agent")]
mod past;
mod runs;

use crate::cli::CompareArgs;
use crate::exit::{Code, Failure};
use crate::output::{self, Colour, Outlet};
use crate::report;
use crate::saved;
use crate::view::Style;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::slice;
use wakewatt_core::compare::gate::{self, GateEnd, Rule};
use wakewatt_core::compare::runs::compare_runs;
use wakewatt_core::compare::{Comparison, Difference, compare};
use wakewatt_core::evidence::Evidence;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::kept_words;
use wakewatt_words::{Language, say, within, word};

/// Runs it: documents in English, what people read in their language.
pub fn run(args: &CompareArgs, colour: Colour) -> Result<Code> {
    let is_document = args.json || args.junit.is_some();
    within(if is_document { Language::English } else { wakewatt_words::wanted() }, || compared(args, colour))
}

fn compared(args: &CompareArgs, colour: Colour) -> Result<Code> {
    if let Some(at_ms) = args.at {
        return of_moments(args, at_ms, colour);
    }
    if !args.fail_on.is_empty() && args.fail_on.iter().all(|rule| *rule == Rule::Unsure) {
        return Err(Failure::error(
            Code::Usage,
            word!("--fail-on unsure is about other rules; add one such as slower:5%"),
        ));
    }
    let junit = args.junit.as_deref().map(|file| Outlet::open(file, "--junit")).transpose()?;
    let mut comparison = if args.against.is_empty() { of_hosts(&args.hosts)? } else { of_sides(args)? };
    if !args.fail_on.is_empty() {
        let Some(runs) = &comparison.runs else {
            return Err(Failure::error(
                Code::Usage,
                word!("--fail-on judges what was measured; name two run files, or two sides"),
            ));
        };
        comparison.gate = Some(Box::new(gate::judge(&args.fail_on, runs)));
    }
    let shown = if args.json {
        output::print(&output::json("compare", &comparison)?)
    } else if args.markdown {
        output::print(&report::gate::markdown(&comparison))
    } else {
        output::print(&text(&comparison, args.all, Style { is_on: colour.is_on() }))
    };
    let Some(gate) = &comparison.gate else { return shown.map(|()| Code::Fine) };
    let written = junit.map_or(Ok(()), |file| file.write(&report::gate::junit(gate)));
    // Whoever could not read the result still gets the code: a pipeline looks at nothing else.
    Ok(output::settled(shown.and(written), code_of(gate.end)))
}

fn code_of(end: GateEnd) -> Code {
    match end {
        GateEnd::Passed => Code::Fine,
        GateEnd::Failed => Code::Findings,
        GateEnd::NothingToJudge => Code::CouldNotMeasure,
    }
}

#[cfg(feature = "agent")]
fn of_moments(args: &CompareArgs, at_ms: u64, colour: Colour) -> Result<Code> {
    past::run(args, at_ms, Style { is_on: colour.is_on() })
}

#[cfg(not(feature = "agent"))]
fn of_moments(_: &CompareArgs, _: u64, _: Colour) -> Result<Code> {
    Err(crate::features::Feature::Agent.lacking("compare --at"))
}

/// Each by itself: facts of all, and what was measured where there are two run files.
fn of_hosts(hosts: &[PathBuf]) -> Result<Comparison> {
    if hosts.len() < 2 {
        return Err(Failure::error(
            Code::Usage,
            word!("name two hosts, or the runs of a second side behind --against"),
        ));
    }
    let mut all: Vec<Evidence> = Vec::new();
    let mut n_runs = 0;
    for path in hosts {
        if saved::is_run(path) {
            all.push(saved::open(path)?.1);
            n_runs += 1;
        } else {
            let source = super::open_path(path).with_context(|| format!("cannot compare {}", path.display()))?;
            all.push(Evidence { facts: Snapshot::read(&*source, |_| true), ..Evidence::default() });
        }
    }
    Ok(match &all[..] {
        [a, b] if n_runs == 2 => compare_runs(slice::from_ref(a), slice::from_ref(b)),
        _ => {
            if n_runs > 0 {
                output::remark(word!(
                    "Only facts are compared: what was measured is compared between two run files, or several of two sides (--against)."
                ));
            }
            compare(&all.into_iter().map(|e| e.facts).collect::<Vec<_>>())
        }
    })
}

/// Several runs on each side.
fn of_sides(args: &CompareArgs) -> Result<Comparison> {
    let open = |paths: &[PathBuf]| paths.iter().map(|path| Ok(saved::open(path)?.1)).collect::<Result<Vec<Evidence>>>();
    Ok(compare_runs(&open(&args.hosts)?, &open(&args.against)?))
}

/// The most plain differences shown without `--all`.
const MAX_SHOWN: usize = 25;

fn text(comparison: &Comparison, is_all: bool, style: Style) -> String {
    let mut out = String::new();
    for (at, host) in comparison.hosts.iter().enumerate() {
        let _ = writeln!(out, "{} {}", style.bold(&letter(at)), kept_words::shown(host));
    }
    if let Some(gate) = &comparison.gate {
        runs::gate(&mut out, gate, is_all, style);
    }
    if let Some(found) = &comparison.runs {
        runs::text(&mut out, found, is_all, style);
    }
    let (predicted, plain): (Vec<&Difference>, Vec<&Difference>) =
        comparison.differences.iter().partition(|d| d.predicted.is_some());
    if comparison.differences.is_empty() {
        let _ = writeln!(out, "\n{}", say!("No difference in {n} facts.", n = comparison.n_equal));
    }
    if !predicted.is_empty() {
        let _ = writeln!(out, "\n{}", style.bold(word!("Predicted effect (modelled from what the hosts claim)")));
    }
    for difference in &predicted {
        let Some(effect) = &difference.predicted else { continue };
        let _ = writeln!(out, "  {}: {}", style.bold(&difference.label), effect.text);
        show_values(&mut out, difference);
    }
    if !plain.is_empty() {
        let _ = writeln!(out, "\n{}", style.bold(word!("Other differences")));
    }
    let n_shown = if is_all { plain.len() } else { plain.len().min(MAX_SHOWN) };
    for difference in &plain[..n_shown] {
        let _ = writeln!(out, "  {} {}", difference.label, style.dim(&format!("[{}]", difference.topic)));
        show_values(&mut out, difference);
    }
    if n_shown < plain.len() {
        let _ = writeln!(out, "  {}", say!("… and {n} more (--all shows them)", n = plain.len() - n_shown));
    }
    let (n_equal, n_unknown) = (comparison.n_equal, comparison.n_unknown);
    let said =
        say!("{n_equal} facts agree; {n_unknown} could not be compared because a host does not tell or record them.");
    let _ = writeln!(out, "\n{said}");
    out
}

fn show_values(out: &mut String, difference: &Difference) {
    for (at, value) in difference.values.iter().enumerate() {
        let _ = writeln!(out, "    {} {}", letter(at), shorten(value));
    }
}

fn letter(at: usize) -> String {
    u8::try_from(at)
        .ok()
        .filter(|n| *n < 26)
        .map_or_else(|| format!("#{}", at + 1), |n| char::from(b'A' + n).to_string())
}

fn shorten(text: &str) -> String {
    if text.chars().count() <= 160 { text.to_string() } else { text.chars().take(159).chain(['…']).collect() }
}
