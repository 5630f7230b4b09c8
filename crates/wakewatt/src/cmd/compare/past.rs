//! `compare --at … --and …`: two moments of an agent's history, as text or as a document.

use crate::cli::CompareArgs;
use crate::exit::{Code, Failure};
use crate::output;
use crate::tui::words::{count, moment, percent};
use crate::view::Style;
use crate::view::table::Table;
use anyhow::Result;
use std::fmt::Write as _;
use wakewatt_agent::history::Change;
use wakewatt_agent::history::beside::{Asked, Beside, Differing, Number, Side, Spread, Unit, beside};
use wakewatt_core::units::{rough_ns, show_khz, show_ns, three_digits};

/// Changes in between that are listed without `--all`.
const MAX_CHANGES: usize = 20;

pub(super) fn run(args: &CompareArgs, at_ms: u64, style: Style) -> Result<Code> {
    let window_ms = args.window / 1_000_000;
    if !(20_000..=86_400_000).contains(&window_ms) {
        return Err(Failure::error(Code::Usage, "--window: give 20s to 24h"));
    }
    if let Some(why) = wakewatt_agent::history::others_write(&args.history) {
        output::remark(&why);
    }
    let asked = Asked { a_ms: at_ms, b_ms: args.and, window_ms };
    let found = beside(&args.history, asked, &mut output::remark)?;
    if args.json {
        output::print(&output::json("compare-past", &found)?)?;
    } else {
        output::print(&text(&found, args.all, style))?;
    }
    Ok(Code::Fine)
}

fn text(found: &Beside, is_all: bool, style: Style) -> String {
    let mut out = String::new();
    let heading = |out: &mut String, text: &str| {
        let _ = writeln!(out, "\n{}", style.bold(text));
    };
    for (letter, side) in [("A", &found.a), ("B", &found.b)] {
        let _ = writeln!(out, "{} {}", style.bold(letter), told(side));
    }
    if !found.settings.is_empty() {
        heading(&mut out, "Settings that differ");
    } else if found.a.settings_at_ms.is_some() && found.b.settings_at_ms.is_some() {
        let _ = writeln!(out, "\nNo difference in {} settings.", found.n_settings_equal);
    }
    for differing in &found.settings {
        setting(&mut out, differing, style);
    }
    let is_back = |change: &&Change| !found.settings.iter().any(|differing| differing.what == change.what);
    let back: Vec<&Change> = found.changes.iter().filter(is_back).collect();
    if !back.is_empty() {
        heading(&mut out, "Changed in between, and the same at both moments");
        let n_shown = if is_all { back.len() } else { back.len().min(MAX_CHANGES) };
        back[..n_shown].iter().for_each(|change| line(&mut out, &when_told(change)));
        if n_shown < back.len() {
            let _ = writeln!(out, "  … and {} more (--all shows them)", back.len() - n_shown);
        }
    }
    if !found.numbers.is_empty() {
        let window = show_ns(found.window_ms.saturating_mul(1_000_000));
        heading(&mut out, &format!("Measured: mean over {window}, least to most of its intervals"));
        numbers(&mut out, &found.numbers, is_all);
    }
    heading(&mut out, "What the history does not hold");
    found.not_held.iter().for_each(|text| line(&mut out, text));
    heading(&mut out, "What cannot be concluded");
    found.cannot_conclude.iter().for_each(|text| line(&mut out, text));
    out
}

fn told(side: &Side) -> String {
    let at = |wall_ms: u64| moment(wall_ms.saturating_mul(1_000_000));
    let seen = show_ns(side.seen_ms.saturating_mul(1_000_000));
    format!("{}: {} intervals, {seen}, of {} to {}", at(side.at_ms), side.n_intervals, at(side.from_ms), at(side.to_ms))
}

fn setting(out: &mut String, differing: &Differing, style: Style) {
    let known = |value: &Option<String>| value.as_deref().map_or("not known".to_string(), clean);
    let _ = writeln!(out, "  {}", style.bold(&clean(&differing.what.replace('_', " "))));
    let _ = writeln!(out, "    A {}", known(&differing.a));
    let _ = writeln!(out, "    B {}", known(&differing.b));
    for change in &differing.changes {
        let _ = writeln!(out, "    {}", clean(&when_told(change)));
    }
    if differing.changes.is_empty() {
        let _ = writeln!(out, "    when it changed was not seen");
    }
}

/// A moment, or the two between which it must lie.
fn when_told(change: &Change) -> String {
    const SOON_MS: u64 = 150_000;
    let at = |wall_ms: u64| moment(wall_ms.saturating_mul(1_000_000));
    let when = match change.was_ms.filter(|was_ms| change.wall_ms.saturating_sub(*was_ms) > SOON_MS) {
        Some(was_ms) => format!("between {} and {}", at(was_ms), at(change.wall_ms)),
        None => format!("since {}", at(change.wall_ms)),
    };
    format!("{when}: {}", change.sentence())
}

fn numbers(out: &mut String, numbers: &[Number], is_all: bool) {
    let cell = |unit: Unit, spread: Option<Spread>| {
        let show = |value: f64| shown(unit, value);
        spread.map_or("–".to_string(), |s| format!("{} ({} to {})", show(s.mean), show(s.least), show(s.most)))
    };
    let is_zero = |spread: Option<Spread>| spread.is_none_or(|spread| spread.most == 0.0);
    let wanted = numbers.iter().filter(|n| is_all || !(is_zero(n.a) && is_zero(n.b)));
    let row = |n: &Number| {
        let ratio = n.ratio.map_or("–".to_string(), |ratio| format!("x{}", three_digits(ratio)));
        let apart = if n.is_apart { "ranges apart" } else { "" };
        vec![clean(&n.name), cell(n.unit, n.a), cell(n.unit, n.b), ratio, apart.to_string()]
    };
    let rows: Vec<Vec<String>> = wanted.map(row).collect();
    let heads = ["", "A", "B", "B/A", ""].map(String::from);
    for line in (Table { heads: &heads, rows: &rows, n_text_columns: 1 }).lines(output::width().saturating_sub(2)) {
        let _ = writeln!(out, "  {line}");
    }
}

fn shown(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Ratio => percent(value),
        Unit::PerSecond => format!("{}/s", count(value)),
        Unit::Watts => format!("{} W", three_digits(value)),
        Unit::Celsius => format!("{value:.0} °C"),
        // A clock, which fits.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Unit::Hertz => show_khz((value / 1e3) as u64),
        Unit::Seconds => rough_ns(value * 1e9),
    }
}

fn line(out: &mut String, text: &str) {
    let _ = writeln!(out, "  - {}", clean(text));
}

/// The folder may come from anywhere.
fn clean(text: &str) -> String {
    crate::report::trace::clean(text)
}
