//! `wakewatt agent query`: what the history of an agent says.

use super::{Document, table};
use crate::cli::agent::QueryArgs;
use crate::exit::{Code, Failure};
use crate::features::Feature;
use crate::output::{self, Outlet};
use anyhow::Result;
use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wakewatt_agent::history::query::{Answer, Query, ask, percentile};
use wakewatt_agent::history::{MOST_GAP_MS, segments, segments_since};
use wakewatt_host::input;

pub(super) fn run(args: &QueryArgs) -> Result<Code> {
    let outlet = args.output.as_deref().map(|file| {
        Feature::Parquet.need("agent query --output")?;
        Outlet::open(file, "-o")
    });
    let outlet = outlet.transpose()?;
    if segments(&args.history).is_empty() {
        let why = format!("{}: holds no history; make one with: wakewatt agent --history DIR", args.history.display());
        return Err(Failure::error(Code::BadFile, why));
    }
    if let Some(why) = wakewatt_agent::history::others_write(&args.history) {
        output::remark(&why);
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
    let mut unread = Vec::new();
    let read = files.iter().enumerate().filter_map(|(number, file)| match input::read(file, input::HISTORY) {
        Ok(bytes) => Some((number, bytes)),
        // One that cannot be read hides no other.
        Err(why) => {
            unread.push(why);
            None
        }
    });
    let mut answer = ask(&query, read, MOST_GAP_MS);
    if !unread.is_empty() && unread.len() == files.len() {
        return Err(unread.remove(0).into());
    }
    unread.iter().for_each(|why| output::remark(&format!("{why}; it is passed over")));
    for (number, trouble) in &answer.troubles {
        // The newest is being written: that it is cut is no news.
        if number + 1 < files.len() {
            output::remark(&format!("{}: {trouble}", files[*number].display()));
        }
    }
    if let Some(percent) = args.percentile {
        answer.series = percentile(&answer, percent / 100.0);
    }
    if let Some(outlet) = &outlet {
        table::write(outlet, &answer)?;
    } else if args.json {
        output::print(&output::json("agent-query", &Document::of(&answer))?)?;
    } else if args.csv {
        output::print(&csv(&answer)?)?;
    } else {
        output::print(&text(&answer, &query))?;
    }
    Ok(Code::Fine)
}

fn csv(answer: &Answer) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["time", "series", "value", "seen_s", "least", "most"])?;
    for (name, points) in &answer.series {
        for p in points {
            let seen_s = (p.seen_ms as f64 / 1e3).to_string();
            let [least, most] = [p.range.map(|r| r.0), p.range.map(|r| r.1)];
            let [least, most] = [least, most].map(|value| value.map_or(String::new(), |value| value.to_string()));
            writer.write_record([when(p.wall_ms), name.clone(), p.value.to_string(), seen_s, least, most])?;
        }
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

fn text(answer: &Answer, query: &Query) -> String {
    let mut out = String::new();
    for (name, points) in &answer.series {
        let _ = writeln!(out, "{}", clean(name));
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
        let _ = writeln!(out, "{}  changed: {}", when(change.wall_ms), clean(&change.sentence()));
    }
    out
}

/// What a machine, or a file from anywhere, calls itself.
fn clean(text: &str) -> String {
    crate::report::trace::clean(text)
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
