//! `wakewatt agent query`: what the history of an agent says.

use crate::cli::agent::QueryArgs;
use crate::exit::{Code, Failure};
use crate::output;
use anyhow::Result;
use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wakewatt_agent::history::query::{Answer, Point, Query, ask, percentile};
use wakewatt_agent::history::{Change, segments, segments_since};
use wakewatt_host::input;

/// Longer than this between two moments, and the agent did not run.
const MOST_GAP_MS: u64 = 150_000;

pub(super) fn run(args: &QueryArgs) -> Result<Code> {
    if segments(&args.history).is_empty() {
        let why = format!("{}: holds no history; make one with: wakewatt agent --history DIR", args.history.display());
        return Err(Failure::error(Code::BadFile, why));
    }
    let to_ms = args.until.unwrap_or_else(now_ms);
    let is_percentile = args.percentile.is_some();
    let query = Query {
        names: vec![if is_percentile { format!("{}_in", args.metric) } else { args.metric.clone() }],
        labels: args.label.clone(),
        from_ms: to_ms.saturating_sub(args.last / 1_000_000),
        to_ms,
        step_ms: (args.step / 1_000_000).max(1),
        is_rate: args.rate || is_percentile,
    };
    let files = segments_since(&args.history, query.from_ms);
    // One after the other: together they may be larger than memory.
    let mut unread = None;
    let read = files.iter().map_while(|file| match input::read(file, input::HISTORY) {
        Ok(bytes) => Some(bytes),
        Err(why) => {
            unread = Some(why);
            None
        }
    });
    let mut answer = ask(&query, read, MOST_GAP_MS);
    if let Some(why) = unread {
        return Err(why.into());
    }
    for (number, trouble) in &answer.troubles {
        // The newest is being written: that it is cut is no news.
        if number + 1 < files.len() {
            output::remark(&format!("{}: {trouble}", files[*number].display()));
        }
    }
    if let Some(percent) = args.percentile {
        answer.series = percentile(&answer, percent / 100.0);
    }
    if args.json {
        output::print(&output::json("agent-query", &Document::of(&answer))?)?;
    } else if args.csv {
        output::print(&csv(&answer)?)?;
    } else {
        output::print(&text(&answer, &query))?;
    }
    Ok(Code::Fine)
}

/// What `--json` prints.
#[derive(Debug, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Document {
    /// Each series with its points.
    pub series: Vec<Series>,
    /// Settings that changed within the time.
    pub changes: Vec<Change>,
    /// Moments that were read.
    pub n_moments: u64,
}

/// A series of the history with what it was in each step.
#[derive(Debug, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// Name with labels.
    pub name: String,
    /// Its steps in order of time; a step in which it was not seen is left out.
    pub points: Vec<Told>,
}

/// What a series was in one step of time.
#[derive(Debug, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Told {
    /// Begin of the step, in milliseconds since 1970.
    pub wall_ms: u64,
    /// Mean, growth per second, or percentile, in the metric's base unit; `+Inf` for a limit that nobody set.
    pub value: Amount,
    /// Milliseconds of the step in which the series was seen.
    pub seen_ms: u64,
}

/// A number, or that it has no end, for which JSON has no number.
#[derive(Debug, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Amount {
    /// In the metric's base unit.
    Number(f64),
    /// A number without end.
    Endless(Endless),
}

/// The word for what has no end, as the texts of Prometheus write it.
#[derive(Debug, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Endless {
    /// Infinity, with its sign.
    #[serde(rename = "+Inf")]
    Positive,
}

impl Amount {
    fn of(value: f64) -> Amount {
        if value == f64::INFINITY { Amount::Endless(Endless::Positive) } else { Amount::Number(value) }
    }
}

impl Document {
    fn of(answer: &Answer) -> Document {
        let told = |p: &Point| Told { wall_ms: p.wall_ms, value: Amount::of(p.value), seen_ms: p.seen_ms };
        let series = answer.series.iter();
        Document {
            series: series
                .map(|(n, points)| Series { name: n.clone(), points: points.iter().map(told).collect() })
                .collect(),
            changes: answer.changes.clone(),
            n_moments: answer.n_moments,
        }
    }
}

fn csv(answer: &Answer) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["time", "series", "value", "seen_s"])?;
    for (name, points) in &answer.series {
        for p in points {
            let seen_s = (p.seen_ms as f64 / 1e3).to_string();
            writer.write_record([when(p.wall_ms), name.clone(), p.value.to_string(), seen_s])?;
        }
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

fn text(answer: &Answer, query: &Query) -> String {
    let mut out = String::new();
    for (name, points) in &answer.series {
        let _ = writeln!(out, "{name}");
        for p in points {
            let whole = if p.seen_ms + p.seen_ms / 10 < query.step_ms {
                format!("   ({} s of the step were seen)", p.seen_ms / 1000)
            } else {
                String::new()
            };
            let _ = writeln!(out, "  {}  {}{whole}", when(p.wall_ms), short(p.value));
        }
    }
    if answer.series.is_empty() {
        let _ = writeln!(out, "No such series in that time; {} moments were read.", answer.n_moments);
    }
    for change in &answer.changes {
        let from = if change.from.is_empty() { "not known" } else { &change.from };
        let _ = writeln!(out, "{}  {} changed: {from} -> {}", when(change.wall_ms), change.what, change.to);
    }
    out
}

/// Four digits that matter.
fn short(value: f64) -> String {
    match value.abs() {
        v if v == 0.0 || (1e-3..1e7).contains(&v) => format!("{value:.4}"),
        _ => format!("{value:.3e}"),
    }
}

fn when(wall_ms: u64) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(wall_ms)).to_string()
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
