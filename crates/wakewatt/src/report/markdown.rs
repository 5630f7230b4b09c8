//! The report as Markdown, compact, for tickets. Facts are foreign text here too: markup characters are escaped.

use super::table::Table;
use super::view;
use super::{Report, words};
use wakewatt_core::visible;
use wakewatt_words::{say, told, word};

pub fn render(report: &Report) -> String {
    let r = view::of(report);
    let mut out = format!("# {}\n\n**{}**\n\n", safe(&r.title), safe(&r.sentence));
    if let Some(busy) = &r.busy {
        out += &format!("> **{}**\n\n", safe(busy));
    }
    out += &format!("{}\n\n", safe(&r.how_sure));
    for warning in &r.warnings {
        out += &format!("> **{}**\n\n", safe(warning));
    }
    for h in &r.headlines {
        out += &format!("- {}: **{}** ({}; {})\n", safe(&h.name), h.value, safe(&h.note), told(h.label));
    }
    if let Some(run) = &r.experiment {
        out += &say!("\n## Effects\n\n{}", table(&run.effects));
    }
    if !r.idle_tables.is_empty() {
        out += word!("\n## Idle states, claimed and measured\n\n");
        r.idle_tables.iter().for_each(|t| out += &table(t));
    }
    sections(&mut out, &r, true);
    out += word!("\n## Findings\n\n");
    if r.findings.is_empty() {
        out += word!("No rule found anything to report.\n");
    }
    for (i, f) in r.findings.iter().enumerate() {
        out += &say!(
            "{}. **{}** ({}, confidence {}, {})\n",
            i + 1,
            safe(&f.title),
            told(f.weight),
            told(f.confidence),
            safe(&f.id)
        );
        out += &say!("   - Cost ({}): {}\n", told(f.cost_label), safe(&f.cost));
        for (says, path) in &f.evidence {
            out += &say!("   - Evidence: {} ({})\n", safe(says), safe(path));
        }
        out += &say!(
            "   - Remedy: {}\n   - Price: {}\n   - Verify: {}\n",
            safe(&f.remedy),
            safe(&f.price),
            safe(&f.verify)
        );
        if !f.commands.is_empty() {
            let lines: Vec<String> = f.commands.iter().map(|(_, line)| format!("     {line}\n")).collect();
            out += &format!("\n     ```sh\n{}     ```\n\n", lines.concat());
        }
    }
    if let Some(how) = r.how_to_apply {
        out += &format!("\n{}\n\n", safe(how));
    }
    for x in &r.cannot_tell {
        let hint = x.try_this.as_deref().map_or(String::new(), |t| say!("; to find out: {}", safe(t)));
        out += &say!("- Cannot tell: {} {}{hint} ({})\n", safe(&x.question), safe(&x.because), safe(&x.id));
    }
    if !r.no.is_empty() {
        let ids: Vec<String> = r.no.iter().map(|x| safe(&x.id)).collect();
        out += &say!("- Answered no: {}\n", words::listed(&ids));
    }
    sections(&mut out, &r, false);
    if let Some(run) = &r.experiment {
        out += &say!(
            "\n## What was changed\n\nPut back: {}\n\n{}",
            if run.is_restored { word!("yes") } else { word!("**NO**") },
            table(&run.changed)
        );
    }
    out += word!("\n## Not looked at\n\n");
    out += &r.not_seen.iter().map(|line| format!("- {}\n", safe(line))).collect::<String>();
    out += word!("\n## Method\n\n");
    out += &r.method.iter().map(|(head, text)| format!("- {}: {}\n", safe(head), safe(text))).collect::<String>();
    out += word!("\n## Raw numbers\n\n");
    if let Some(run) = &r.experiment {
        out += &(table(&run.pooled) + &table(&run.blocks));
    }
    if !r.as_found.rows.is_empty() {
        out += &table(&r.as_found);
    }
    out + &say!("wakewatt {}, {}\n", safe(&r.version), safe(&r.generated_at))
}

/// The numbers behind a figure beyond this many rows are in the page and in CSV; a ticket is read by people.
const MOST_ROWS: usize = 40;

fn sections(out: &mut String, r: &view::View, is_result: bool) {
    // What is only drawn has its numbers among the raw ones.
    let has_text = |s: &&view::section::Section| {
        let behind = s.figures.iter().any(|f| f.table.is_some());
        behind || !(s.intro.is_empty() && s.tables.is_empty() && s.remarks.is_empty())
    };
    for s in r.sections.iter().filter(|s| s.is_result == is_result).filter(has_text) {
        *out += &format!("\n## {}\n\n", safe(&s.title));
        *out += &s.intro.iter().map(|line| format!("{}\n\n", safe(line))).collect::<String>();
        let behind = s.figures.iter().filter_map(|f| f.table.as_ref());
        for t in s.tables.iter().chain(behind) {
            if t.rows.len() <= MOST_ROWS {
                *out += &table(t);
            } else {
                *out += &say!("{}: {} rows, in the page.\n\n", safe(&words::sentence_case(&t.caption)), t.rows.len());
            }
        }
        *out += &s.remarks.iter().map(|line| format!("- {}\n", safe(line))).collect::<String>();
    }
}

fn table(t: &Table) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.iter().map(|c| safe(c)).collect::<Vec<_>>().join(" | "));
    let ruler: Vec<&str> = (0..t.heads.len()).map(|i| if i < t.n_text_columns { "---" } else { "---:" }).collect();
    let rows: String = t.rows.iter().map(|row| line(row)).collect();
    format!("{}:\n\n{}| {} |\n{rows}\n", safe(&words::sentence_case(&t.caption)), line(&t.heads), ruler.join(" | "))
}

/// Foreign text on one line, its markup characters escaped.
pub(super) fn safe(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' => out.extend(['\\', c]),
            '\n' | '\t' => out.push(' '),
            c if visible::is_hidden(c) => visible::show(c, &mut out),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn a_ticket_has_the_verdict_the_effect_and_what_was_put_back() {
        for (name, report) in sample::all() {
            let md = render(&report);
            assert!(md.starts_with("# ") && md.contains("## Method"), "{name}");
            assert_eq!(md.contains("Put back: yes"), report.evidence.samples.experiment.is_some(), "{name}");
        }
    }

    #[test]
    fn foreign_text_cannot_break_a_table_or_bring_markup() {
        assert_eq!(safe("a|b\n<img> *x*"), "a\\|b &lt;img> \\*x\\*");
    }
}
