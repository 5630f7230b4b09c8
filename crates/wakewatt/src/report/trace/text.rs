//! A trace in a terminal.

use super::TraceReport;
use super::view;
use crate::view::wrap::wrap;
use std::fmt::Write as _;

/// The tables, then the heat map, then what must be known.
pub(super) fn render(report: &TraceReport<'_>, width: usize, is_coloured: bool) -> String {
    let v = view::of(report.traced, report.is_by_cpu);
    let bold = |text: &str| if is_coloured { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_string() };
    let mut out = String::new();
    for line in wrapped(&v.sentence, "", width) {
        let _ = writeln!(out, "{}", bold(&line));
    }
    let _ = writeln!(out, "{}", v.scope);
    for (i, t) in v.tables.iter().enumerate() {
        let _ = writeln!(out);
        for line in wrapped(&t.caption, "  ", width) {
            let _ = writeln!(out, "{}", bold(&line));
        }
        out += &t.in_terminal(width);
        if i == 0 && !v.map.rows.is_empty() {
            let _ = writeln!(out);
            for line in v.map.text(width, is_coloured) {
                let _ = writeln!(out, "{}", line.trim_end());
            }
        }
    }
    let _ = writeln!(out);
    for remark in v.remarks.iter().chain([&v.observer]) {
        for line in wrapped(&format!("- {remark}"), "  ", width) {
            let _ = writeln!(out, "{line}");
        }
    }
    out
}

fn wrapped(text: &str, indent: &str, width: usize) -> Vec<String> {
    wrap("", indent, text, width).lines().map(str::to_string).collect()
}
