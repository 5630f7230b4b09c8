//! What `import` prints: text by text what was understood, contradictions, wake-ups, figures, and the lines that are left.

use crate::view::Style;
use crate::view::width::{padded, places};
use std::fmt::Write as _;
use wakewatt_core::units::three_digits;
use wakewatt_core::visible;
use wakewatt_import::Imported;
use wakewatt_import::document::{Derived, FileRead, Wakeups};
use wakewatt_words::{say, word};

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
        let _ = writeln!(out, "{}", say!("{n} files of the kernel", n = copies.len()));
    } else {
        copies.iter().for_each(|file| heading(&mut out, file, style));
    }
    if n_empty > 0 {
        let _ = writeln!(out, "{}", say!("{n_empty} empty texts"));
    }
    let _ = writeln!(out, "\n{}", say!("{n} facts of the host.", n = document.n_facts));
    wakeups(&mut out, &document.wakeups, is_all, style);
    figures(&mut out, &document.derived, is_all, style);
    if !document.conflicts.is_empty() {
        let _ = writeln!(out, "\n{}", style.bold(word!("Contradictions: the first is kept")));
        for conflict in document.conflicts.iter().take(if is_all { usize::MAX } else { FEW }) {
            let (kept, other) = (&conflict.kept, &conflict.other);
            let _ = writeln!(out, "  {}", visible::line(&conflict.path));
            for said in [kept, other] {
                let (file, text) = (visible::line(&said.file), visible::line(&said.text));
                let _ = writeln!(out, "    {}", say!("{file} line {n}: {text}", n = said.line));
            }
        }
        more(&mut out, document.conflicts.len(), if is_all { usize::MAX } else { FEW });
    }
    if !document.remarks.is_empty() {
        let _ = writeln!(out, "\n{}", style.bold(word!("To be known")));
        for remark in document.remarks.iter().take(if is_all { usize::MAX } else { SOME }) {
            let _ = writeln!(out, "  {}", visible::line(remark));
        }
        more(&mut out, document.remarks.len(), if is_all { usize::MAX } else { SOME });
    }
    for file in document.files.iter().filter(|file| file.n_not_understood > 0) {
        let _ = writeln!(out, "\n{}", style.bold(&say!("Not understood in {file}", file = visible::line(&file.file))));
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
        let _ = writeln!(out, "  {}", say!("… and {n} more; --all or --json has them", n = n - shown));
    }
}

fn heading(out: &mut String, file: &FileRead, style: Style) {
    let (used, unused, left) = (file.n_understood, file.n_unused, file.n_not_understood);
    let name = style.bold(&visible::line(&file.file));
    let n = file.n_lines;
    let said = say!("{name}: {n} lines: {used} understood, {unused} known and not needed, {left} not understood");
    let _ = writeln!(out, "{said}");
    for found in &file.formats {
        let (from, to) = (found.from_line, found.to_line);
        let (title, n, n_taken) = (&found.title, found.n_understood, found.n_taken);
        let said =
            say!("{title} (lines {from}-{to}): {n} lines understood; facts, figures and events of them: {n_taken}");
        let _ = writeln!(out, "  {said}");
    }
}

fn wakeups(out: &mut String, rows: &[Wakeups], is_all: bool, style: Style) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\n{}",
        style.bold(word!("Wake-ups by the idle state the CPU was in (measured where the events were recorded)"))
    );
    let _ = writeln!(
        out,
        "  {} {} {} {:>7} {} {:>12} {}  {}",
        padded(word!("state"), 10),
        padded(word!("woken by"), 26),
        padded(word!("task"), 22),
        "n",
        behind(word!("median"), 12),
        "p99",
        behind(word!("greatest"), 12),
        word!("until")
    );
    for row in rows.iter().take(if is_all { usize::MAX } else { SOME }) {
        let task = match (&row.task, row.cpu) {
            (Some(task), Some(cpu)) => say!("{task} on CPU {cpu}", task = visible::line(task)),
            _ => say!("all"),
        };
        let task = padded(&task, 22);
        let until = match row.until {
            "exit" => word!("the CPU left idle"),
            _ => word!("the task ran"),
        };
        let p99 = row.p99_ns.map_or("-".into(), |ns| exact(ns as f64));
        let median = format!("{}{}", if row.is_exact { "" } else { "~" }, exact(row.median_ns));
        let _ = writeln!(
            out,
            "  {:<10} {:<26} {task} {:>7} {median:>12} {p99:>12} {:>12}  {until}",
            row.state.as_deref().map_or("-".into(), visible::line),
            row.by,
            row.n,
            exact(row.max_ns as f64),
        );
    }
    more(out, rows.len(), if is_all { usize::MAX } else { SOME });
}

/// With blanks before it, up to so many columns.
fn behind(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(places(text))))
}

/// To the nanosecond, as studies print it.
fn exact(ns: f64) -> String {
    if ns < 1e6 { format!("{:.3} us", ns / 1e3) } else { format!("{:.3} ms", ns / 1e6) }
}

fn figures(out: &mut String, figures: &[Derived], is_all: bool, style: Style) {
    if figures.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{}", style.bold(word!("Figures the tools had made")));
    let shown = if is_all { usize::MAX } else { SOME };
    for figure in figures.iter().take(shown) {
        let spread = if figure.n > 1 {
            say!(
                " (n {n}, {least} to {greatest})",
                n = figure.n,
                least = three_digits(figure.min),
                greatest = three_digits(figure.max)
            )
        } else {
            String::new()
        };
        let (what, of) = (visible::line(&figure.what), visible::line(&figure.of));
        let _ = writeln!(out, "  {what:<24} {of:<28} {} {}{spread}", three_digits(figure.mean), figure.unit);
    }
    more(out, figures.len(), shown);
}
