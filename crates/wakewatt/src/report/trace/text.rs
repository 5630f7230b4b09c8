//! A trace in a terminal.

use super::TraceReport;
use super::view;
use crate::report::table::Table;
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
        table(&mut out, t, width);
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

/// Aligned columns; columns that do not fit are left out from the right, never the first four.
fn table(out: &mut String, table: &Table, width: usize) {
    let n = table.heads.len();
    let width_of = |i: usize| {
        let cells = table.rows.iter().filter_map(|r| r.get(i)).chain([&table.heads[i]]);
        cells.map(|c| c.chars().count()).max().unwrap_or(0).min(28)
    };
    let widths: Vec<usize> = (0..n).map(width_of).collect();
    let mut shown = n;
    while shown > 4 && widths[..shown].iter().sum::<usize>() + 2 * (shown - 1) > width {
        shown -= 1;
    }
    let line = |cells: &[String]| {
        let mut text = String::new();
        for (i, cell) in cells.iter().enumerate().take(shown) {
            let w = widths[i];
            let cell: String = cell.chars().take(w).collect();
            let _ = if i < table.n_text_columns { write!(text, "{cell:<w$}  ") } else { write!(text, "{cell:>w$}  ") };
        }
        text.trim_end().to_string()
    };
    let _ = writeln!(out, "{}", line(&table.heads));
    for row in &table.rows {
        let _ = writeln!(out, "{}", line(row));
    }
}

fn wrapped(text: &str, indent: &str, width: usize) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split_whitespace() {
        if !line.trim().is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::replace(&mut line, indent.to_string()));
        }
        if !line.trim().is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}
