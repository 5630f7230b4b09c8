//! The sections of the page in a terminal: what `measure` and `load` print of what they measured.
//!
//! Title, what is to be remembered, how it was had, the tables, what must be known with them. Charts are left to the page;
//! where a chart's numbers stand in no table, its own table is printed. Nothing is computed here, so a command and the
//! page made of its run cannot disagree.

use super::table::Table;
use super::view::{self, Section};
use crate::view::wrap::wrap;
use std::fmt::Write as _;
use wakewatt_core::evidence::Evidence;

/// Everything that was measured, in the order of the page.
pub fn samples(evidence: &Evidence, width: usize, is_coloured: bool) -> String {
    wakewatt_words::spoken(|| {
        let sections = view::measured(evidence);
        sections.iter().filter(|s| is_said(s)).map(|s| section(s, width, is_coloured)).collect::<Vec<_>>().join("\n")
    })
}

/// Has it more than charts?
fn is_said(s: &Section) -> bool {
    let has_text = [&s.lines, &s.intro, &s.remarks, &s.only_drawn].into_iter().any(|all| !all.is_empty());
    has_text || !s.tables.is_empty() || !s.folded.is_empty()
}

fn section(s: &Section, width: usize, is_coloured: bool) -> String {
    let mut out = String::new();
    let bold = |text: &str| if is_coloured { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_string() };
    let _ = writeln!(out, "{}", bold(&wrap("", "", &s.title, width)));
    for line in &s.lines {
        let _ = writeln!(out, "{}", wrap("  ", "    ", line, width));
    }
    // What is said as a line already is not said again.
    let is_new = |text: &&String| !s.lines.contains(*text);
    for text in s.intro.iter().filter(is_new) {
        let _ = writeln!(out, "{}", wrap("", "", text, width));
    }
    let is_only_drawn = |id: &str| s.only_drawn.iter().any(|only| only == id);
    let drawn = s.figures.iter().filter(|f| is_only_drawn(&f.id)).filter_map(|f| f.table.as_ref());
    for table in s.tables.iter().chain(drawn).chain(&s.folded) {
        out += "\n";
        out += &one(table, width, &bold);
    }
    if s.remarks.iter().any(|r| is_new(&r)) {
        out += "\n";
    }
    for text in s.remarks.iter().filter(is_new) {
        let _ = writeln!(out, "{}", wrap("- ", "  ", text, width));
    }
    out
}

fn one(table: &Table, width: usize, bold: &dyn Fn(&str) -> String) -> String {
    format!("{}\n{}", bold(&wrap("", "  ", &table.caption, width)), table.in_terminal(width))
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use ratatui::text::Span;

    #[test]
    fn every_table_of_the_page_is_there_and_fits() {
        let evidence = sample::everything().evidence;
        for width in [60, 80, 140] {
            let text = samples(&evidence, width, false);
            let is_path = |line: &&str| line.contains('/') && !line.contains("  ");
            let longest = text.lines().filter(|l| !is_path(l)).map(|l| Span::raw(l).width()).max().unwrap();
            assert!(longest <= width, "{longest} > {width}");
            assert!(!text.contains('\u{1b}') && !text.contains("NaN"));
        }
        let text = samples(&evidence, 140, false);
        for s in view::measured(&evidence) {
            for caption in s.tables.iter().chain(&s.folded).map(|t| &t.caption) {
                let first = wrap("", "  ", caption, 140);
                assert!(text.contains(first.lines().next().unwrap()), "{caption} is missing");
            }
            for head in s.tables.iter().flat_map(|t| &t.heads) {
                assert!(text.contains(head.split_whitespace().last().unwrap()), "{head} is missing");
            }
        }
    }

    #[test]
    fn what_stands_only_in_a_chart_has_the_charts_table() {
        let evidence = sample::everything().evidence;
        let text = samples(&evidence, 80, false);
        for title in ["Memory latency against working set", "Temperatures", "Latency between nodes"] {
            assert!(text.contains(title), "{title}: {text}");
        }
        // The bars of bandwidth are in the table of every bandwidth.
        assert!(!text.contains("\nMemory bandwidth\n"), "{text}");
        assert!(samples(&Evidence::default(), 80, false).is_empty());
        assert!(samples(&evidence, 80, true).contains("\u{1b}[1mMemory\u{1b}[0m"));
    }
}
