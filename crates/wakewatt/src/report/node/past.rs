//! The last hours as drawings, and the settings that were changed in them.

use super::draw::{self, Frame};
use super::view::when;
use crate::report::charts::svg::Svg;
use crate::report::words::{ns_rough, percent};
use serde::Serialize;
use wakewatt_agent::history::MOST_GAP_MS;
use wakewatt_agent::node::past::{Line, Past};
use wakewatt_core::units::{LatencyLimit, three_digits};
use wakewatt_words::{say, word};

/// What the template fills in.
#[derive(Debug, Serialize)]
pub(super) struct View {
    none_because: Option<String>,
    shares: Option<Drawing>,
    latency: Option<Drawing>,
    watts: Option<Drawing>,
    changes: Vec<Change>,
    n_older_changes: u64,
    span: String,
}

/// A drawing, what its colours mean, what it says in words.
#[derive(Debug, Serialize)]
struct Drawing {
    svg: String,
    legend: Vec<(String, String)>,
    caption: String,
}

#[derive(Debug, Serialize)]
struct Change {
    at: String,
    what: String,
    from: String,
    to: String,
    /// Who held it, who may have changed it, and between which moments it must lie.
    more: String,
}

pub(super) fn of(past: &Past) -> View {
    let known = |line: &&Line| line.values.iter().any(Option::is_some);
    let shares: Vec<&Line> = past.shares.iter().filter(known).collect();
    let watts: Vec<&Line> = past.watts.iter().filter(known).collect();
    let change = |c: &wakewatt_agent::history::Change| Change {
        at: when(c.wall_ms),
        what: c.what.replace('_', " "),
        from: if c.from.is_empty() { word!("not known").into() } else { c.from.clone() },
        to: if c.to.is_empty() { word!("not known").into() } else { c.to.clone() },
        more: more(c),
    };
    let hours = past.n_steps * past.step_ms / 3_600_000;
    View {
        none_because: past.none_because.clone(),
        shares: (!shares.is_empty()).then(|| of_shares(past, &shares)),
        latency: (!past.latency.per_s.is_empty()).then(|| of_latency(past)),
        watts: (!watts.is_empty()).then(|| of_watts(past, &watts)),
        changes: past.changes.iter().map(change).collect(),
        n_older_changes: past.n_older_changes,
        span: say!(
            "The last {}, in steps of {} min; times are UTC.",
            if hours == 1 { "hour".into() } else { say!("{hours} hours") },
            past.step_ms / 60_000
        ),
    }
}

fn more(change: &wakewatt_agent::history::Change) -> String {
    let mut parts = Vec::new();
    if !change.held_by.is_empty() {
        let is_lifted = change.to == LatencyLimit::None.to_string();
        parts.push(format!(
            "{} {}",
            if is_lifted { word!("had been held by") } else { word!("held by") },
            change.held_by.join(", ")
        ));
    }
    if !change.may_be_by.is_empty() {
        parts.push(say!("{} ran and may have changed it", change.may_be_by.join(", ")));
    }
    if let Some(was_ms) = change.was_ms.filter(|was_ms| change.wall_ms.saturating_sub(*was_ms) > MOST_GAP_MS) {
        parts.push(say!("last seen as before at {}", when(was_ms)));
    }
    parts.join("; ")
}

/// Since when each setting is what it is, where that was seen: "since 10:42".
pub(super) fn since(past: &Past, what: &str) -> Option<String> {
    past.changes.iter().rev().find(|change| change.what == what).map(|change| draw::since(change.wall_ms))
}

/// The newest value and the range, for those who do not see the drawing.
fn told(line: &Line, text: impl Fn(f64) -> String) -> String {
    let values = || line.values.iter().flatten().copied();
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    say!("{} {} to {}", line.name, text(least), text(most))
}

/// Busy has its own colour; the deeper a state, the stronger.
fn of_shares(past: &Past, lines: &[&Line]) -> Drawing {
    let n_states = lines.iter().filter(|line| line.name != "busy").count().max(1);
    let mut nth = 0;
    let classes: Vec<String> = lines
        .iter()
        .map(|line| {
            if line.name == "busy" {
                return word!("busy").to_string();
            }
            nth += 1;
            format!("state h{}", (nth * 8 / n_states).clamp(2, 8))
        })
        .collect();
    let stacked: Vec<(String, &[Option<f64>])> =
        classes.iter().cloned().zip(lines.iter().map(|line| line.values.as_slice())).collect();
    let words: Vec<String> = lines.iter().map(|line| told(line, percent)).collect();
    let body = |frame: &Frame<'_>, svg: &mut Svg| frame.stack(svg, &stacked);
    Drawing {
        svg: draw::both(past, "shares", (word!("Share of time by idle state"), &words.join("; ")), 150.0, body),
        legend: classes.into_iter().zip(lines.iter().map(|line| line.name.clone())).collect(),
        caption: word!("Where the CPUs’ time went: busy above, below it each idle state, the deepest strongest. What is left empty was stolen, or is of a sleep that had not ended.").into(),
    }
}

fn of_latency(past: &Past) -> Drawing {
    let heat = &past.latency;
    let name = |row: usize| match heat.bounds_s.get(row) {
        Some(bound_s) => ns_rough(bound_s * 1e9).replace(' ', "\u{a0}"),
        None => word!("more").into(),
    };
    let rows: Vec<(String, &[Option<f64>])> =
        heat.per_s.iter().enumerate().map(|(row, values)| (name(row), values.as_slice())).collect();
    let row_of = |p99_s: f64| heat.bounds_s.iter().position(|bound_s| *bound_s >= p99_s * 0.999);
    let line: Vec<Option<usize>> = past.p99_s.values.iter().map(|p99_s| row_of((*p99_s)?)).collect();
    let words = told(&past.p99_s, |s| ns_rough(s * 1e9));
    let body = |frame: &Frame<'_>, svg: &mut Svg| frame.heat(svg, &rows, &line);
    Drawing {
        svg: draw::both(past, "latency", (word!("Wake-up latency over time"), &words), 15.0 * rows.len().max(4) as f64, body),
        legend: vec![("p99".into(), word!("99 in 100 are at or below").into())],
        caption: word!("From made runnable to running, by CPUs that were idle: each column is one step of time, stronger where more of its wake-ups lie; rows are up to the time at their left.").into(),
    }
}

fn of_watts(past: &Past, lines: &[&Line]) -> Drawing {
    let values: Vec<&[Option<f64>]> = lines.iter().map(|line| line.values.as_slice()).collect();
    let watts = |w: f64| format!("{} W", three_digits(w));
    let words: Vec<String> = lines.iter().map(|line| told(line, watts)).collect();
    let body = |frame: &Frame<'_>, svg: &mut Svg| frame.lines(svg, &values, watts);
    let legend = lines.iter().enumerate().map(|(arm, line)| (format!("stroke a{}", arm.min(5)), line.name.clone()));
    Drawing {
        svg: draw::both(past, "watts", (word!("Power"), &words.join("; ")), 110.0, body),
        legend: legend.collect(),
        caption: word!(
            "Watts of each meter; a meter may hold another’s (a package holds its cores), so they are not added up."
        )
        .into(),
    }
}
