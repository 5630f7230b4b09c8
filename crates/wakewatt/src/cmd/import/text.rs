//! What `import` prints: text by text what was understood, contradictions, wake-ups, figures, and the lines that are left.

use crate::view::Style;
use std::fmt::Write as _;
use wakewatt_core::units::three_digits;
use wakewatt_core::visible;
use wakewatt_import::Imported;
use wakewatt_import::document::{Derived, FileRead, Wakeups};

/// Rows of each table, without `--all`.
const FEW: usize = 10;
const SOME: usize = 24;

pub(super) fn text(imported: &Imported, is_all: bool, style: Style) -> String {
    let document = &imported.document;
    let mut out = String::new();
    let n_empty = document.files.iter().filter(|f| f.formats.is_empty() && f.n_lines == 0).count();
    // The files of an archive are many, and each says one thing.
    let (copies, texts): (Vec<&FileRead>, Vec<&FileRead>) = document
        .files
        .iter()
        .filter(|f| f.n_lines > 0)
        .partition(|f| f.formats.iter().all(|x| x.format == "kernel-files") && f.n_not_understood == 0);
    for file in &texts {
        heading(&mut out, file, style);
    }
    if copies.len() > 3 {
        let _ = writeln!(out, "{} files of the kernel", copies.len());
    } else {
        copies.iter().for_each(|file| heading(&mut out, file, style));
    }
    if n_empty > 0 {
        let _ = writeln!(out, "{n_empty} empty texts");
    }
    let _ = writeln!(out, "\n{} facts of the host.", document.n_facts);
    wakeups(&mut out, &document.wakeups, is_all, style);
    figures(&mut out, &document.derived, is_all, style);
    if !document.conflicts.is_empty() {
        let _ = writeln!(out, "\n{}", style.bold("Contradictions: the first is kept"));
        for conflict in document.conflicts.iter().take(if is_all { usize::MAX } else { FEW }) {
            let (kept, other) = (&conflict.kept, &conflict.other);
            let _ = writeln!(out, "  {}", visible::line(&conflict.path));
            for said in [kept, other] {
                let _ = writeln!(
                    out,
                    "    {} line {}: {}",
                    visible::line(&said.file),
                    said.line,
                    visible::line(&said.text)
                );
            }
        }
        more(&mut out, document.conflicts.len(), if is_all { usize::MAX } else { FEW });
    }
    if !document.remarks.is_empty() {
        let _ = writeln!(out, "\n{}", style.bold("To be known"));
        for remark in document.remarks.iter().take(if is_all { usize::MAX } else { SOME }) {
            let _ = writeln!(out, "  {}", visible::line(remark));
        }
        more(&mut out, document.remarks.len(), if is_all { usize::MAX } else { SOME });
    }
    for file in document.files.iter().filter(|file| file.n_not_understood > 0) {
        let _ = writeln!(out, "\n{}", style.bold(&format!("Not understood in {}", visible::line(&file.file))));
        let shown = if is_all { usize::MAX } else { FEW };
        for left in file.not_understood.iter().take(shown) {
            let _ = writeln!(
                out,
                "  {:>6}  {}\n          {}",
                left.line,
                visible::line(&left.text),
                visible::line(&left.why)
            );
        }
        more(&mut out, file.n_not_understood, shown.min(file.not_understood.len()));
    }
    out
}

fn more(out: &mut String, n: usize, shown: usize) {
    if n > shown {
        let _ = writeln!(out, "  … and {} more; --all or --json has them", n - shown);
    }
}

fn heading(out: &mut String, file: &FileRead, style: Style) {
    let (used, unused, left) = (file.n_understood, file.n_unused, file.n_not_understood);
    let name = style.bold(&visible::line(&file.file));
    let _ = writeln!(
        out,
        "{name}: {} lines: {used} understood, {unused} known and not needed, {left} not understood",
        file.n_lines
    );
    for found in &file.formats {
        let (from, to) = (found.from_line, found.to_line);
        let _ = writeln!(
            out,
            "  {} (lines {from}-{to}): {} of {} understood lines give something",
            found.title,
            found.n_taken.min(found.n_understood),
            found.n_understood
        );
    }
}

fn wakeups(out: &mut String, rows: &[Wakeups], is_all: bool, style: Style) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\n{}",
        style.bold("Wake-ups by the idle state the CPU was in (measured where the events were recorded)")
    );
    let _ = writeln!(
        out,
        "  {:<10} {:<26} {:<22} {:>7} {:>12} {:>12} {:>12}  until",
        "state", "woken by", "task", "n", "median", "p99", "greatest"
    );
    for row in rows.iter().take(if is_all { usize::MAX } else { SOME }) {
        let task = match (&row.task, row.cpu) {
            (Some(task), Some(cpu)) => format!("{} on CPU {cpu}", visible::line(task)),
            _ => "all".into(),
        };
        let until = match row.until {
            "exit" => "the CPU left idle",
            _ => "the task ran",
        };
        let p99 = row.p99_ns.map_or("-".into(), |ns| exact(ns as f64));
        let median = format!("{}{}", if row.is_exact { "" } else { "~" }, exact(row.median_ns));
        let _ = writeln!(
            out,
            "  {:<10} {:<26} {task:<22} {:>7} {median:>12} {p99:>12} {:>12}  {until}",
            row.state.as_deref().map_or("-".into(), visible::line),
            row.by,
            row.n,
            exact(row.max_ns as f64),
        );
    }
    more(out, rows.len(), if is_all { usize::MAX } else { SOME });
}

/// To the nanosecond, as studies print it.
fn exact(ns: f64) -> String {
    if ns < 1e6 { format!("{:.3} us", ns / 1e3) } else { format!("{:.3} ms", ns / 1e6) }
}

fn figures(out: &mut String, figures: &[Derived], is_all: bool, style: Style) {
    if figures.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{}", style.bold("Figures the tools had made"));
    let shown = if is_all { usize::MAX } else { SOME };
    for figure in figures.iter().take(shown) {
        let spread = if figure.n > 1 {
            format!(" (n {}, {} to {})", figure.n, three_digits(figure.min), three_digits(figure.max))
        } else {
            String::new()
        };
        let (what, of) = (visible::line(&figure.what), visible::line(&figure.of));
        let _ = writeln!(out, "  {what:<24} {of:<28} {} {}{spread}", three_digits(figure.mean), figure.unit);
    }
    more(out, figures.len(), shown);
}
