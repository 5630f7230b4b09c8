//! `trace info`: what a recording holds.

use crate::cli::trace::InfoArgs;
use crate::exit::Code;
use crate::output;
use crate::recording::{ending, load, open};
use crate::report::trace::clean;
use crate::view::table::Table;
use anyhow::Result;
use std::fmt::Write as _;
use wakewatt_core::record::wtrace::{Header, Item, Mark, PairSummary, RecordedState, Summing};
use wakewatt_core::units::{show_bytes, show_ns};

/// The document of `trace info`.
#[derive(Debug, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceInfo {
    /// What the recording says about the machine.
    pub header: Header,
    /// What the recording holds.
    pub summary: PairSummary,
    /// Questions to the governor with its own arguments (`trace --record --exact`).
    pub n_choices: u64,
    /// Windows, losses and changed settings, in their order.
    pub marks: Vec<Mark>,
    /// complete, unfinished or cut.
    pub ending: String,
    /// Bytes of the file.
    pub n_bytes: u64,
    /// Bytes up to which it is good.
    pub n_good_bytes: u64,
    /// Bytes for each event; a stay is two events, its entry and its exit.
    pub bytes_per_event: Option<f64>,
}

/// Runs `trace info`.
pub(super) fn info(args: &InfoArgs) -> Result<Code> {
    let bytes = load(&args.file)?;
    let mut reader = open(&args.file, &bytes)?;
    let header = reader.header.clone();
    let mut summing = Summing::new(&header);
    let (mut marks, mut n_choices) = (Vec::new(), 0);
    for item in reader.by_ref() {
        match item {
            Item::Pairs(pairs) => summing.pairs(&pairs),
            Item::Choices(choices) => n_choices += choices.len() as u64,
            Item::Mark(mark) => {
                summing.mark(&mark);
                marks.push(mark);
            }
        }
    }
    let summary = summing.finish();
    let n_good_bytes = reader.good_bytes();
    let info = TraceInfo {
        ending: ending(reader.ending()),
        n_bytes: bytes.len() as u64,
        n_good_bytes,
        bytes_per_event: (summary.n_pairs > 0).then(|| n_good_bytes as f64 / (2 * summary.n_pairs) as f64),
        header: header.clone(),
        summary,
        n_choices,
        marks,
    };
    output::print(&if args.json { output::json("trace-info", &info)? } else { text(&info) })?;
    Ok(Code::Fine)
}

fn text(info: &TraceInfo) -> String {
    let (h, s) = (&info.header, &info.summary);
    // The file may come from anywhere, and says what it likes.
    let or = |v: &Option<String>| v.as_ref().map_or("none".into(), |v| clean(v));
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} idle intervals on {} of {} CPUs, {}; kernel {}, driver {}, governor {}",
        s.n_pairs,
        s.n_cpus,
        h.n_cpus,
        s.last_at_ns.zip(s.first_at_ns).map_or("no time".into(), |(l, f)| show_ns(l.saturating_sub(f))),
        clean(&h.kernel),
        or(&h.driver),
        or(&h.governor)
    );
    let each = info.bytes_per_event.map_or(String::new(), |b| format!(", {b:.1} bytes an event"));
    let _ = writeln!(out, "file: {}{each}, {}", show_bytes(info.n_bytes), info.ending);
    let _ = writeln!(out, "windows: {}; records lost: {}", s.n_windows, s.n_lost);
    if s.n_pairs > 0 {
        let percent = |n: u64| 100.0 * n as f64 / s.n_pairs as f64;
        let _ = writeln!(
            out,
            "governor's inputs: next timer known for {:.1} %, sleep length for {:.1} %",
            percent(s.n_with_timers),
            percent(s.n_with_sleep_length)
        );
        if info.n_choices > 0 {
            let _ = writeln!(out, "exact inputs: {} questions to the governor", info.n_choices);
        }
        out.push('\n');
        let heads = ["requested", "n", "time", "stay p50", "stay p99", "above", "below"].map(String::from);
        let row = |state: &RecordedState| {
            let at = |q| state.length.quantile(q).map_or("-".into(), |v| show_ns(v.value_ns));
            let (name, n, time) = (state.state.clone(), state.n.to_string(), show_ns(state.time_ns));
            vec![name, n, time, at(0.5), at(0.99), state.n_above.to_string(), state.n_below.to_string()]
        };
        let rows: Vec<_> = s.states.iter().map(row).collect();
        out.push_str(&Table { heads: &heads, rows: &rows, n_text_columns: 1 }.text(output::width()));
        let causes = s.ended_by.iter().map(|(cause, n)| format!("{} {:.1} %", cause.words(), percent(*n)));
        let _ = writeln!(out, "\nended by: {}", causes.collect::<Vec<_>>().join(", "));
    }
    for gap in &h.gaps {
        let _ = writeln!(out, "unavailable: {}", clean(gap));
    }
    for mark in &info.marks {
        match mark {
            Mark::Stopped { why } => {
                let _ = writeln!(out, "stopped early: {}", clean(why));
            }
            Mark::SettingChanged { what, cpus, value, .. } => {
                let whose = cpus.as_ref().map_or(String::new(), |c| format!(" of CPUs {}", clean(c)));
                let _ = writeln!(out, "changed meanwhile: {}{whose} to {}", clean(what), clean(value));
            }
            Mark::Resumed { is_same_boot, .. } => {
                let boot = if *is_same_boot { "the same boot" } else { "another boot: times start anew" };
                let _ = writeln!(out, "continued, in {boot}");
            }
            _ => {}
        }
    }
    out
}
