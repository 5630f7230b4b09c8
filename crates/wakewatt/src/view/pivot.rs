//! Rows that describe several things alike become a table: one line per thing, one column per attribute.
//!
//! Idle states, memory nodes, power zones: their rows are `topic.<thing>.<attribute>` with labels `<thing> <attribute>`.
//! No topic is named here; a run of such rows with at least two things and three shared attributes is a table.

use super::Row;
use super::width::{padded, pieces, places, right};
use std::fmt::Write as _;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::fact::GapKind;

/// A table over groups `start..end` of a sheet.
pub(super) struct Pivot {
    /// First group.
    pub(super) start: usize,
    /// One past the last.
    pub(super) end: usize,
    things: Vec<String>,
    columns: Vec<String>,
    cells: Vec<Vec<String>>,
}

/// Wider tables do not fit a terminal.
const MAX_WIDTH: usize = 118;
const INDENT: usize = 2;

/// The tables of a sheet. `show` draws one group of rows, or declines (gaps, several values).
pub(super) fn find(groups: &[Vec<&Row>], online: Option<&CpuSet>) -> Vec<Pivot> {
    let mut pivots = Vec::new();
    let mut start = 0;
    while start < groups.len() {
        let end = start
            + groups[start..]
                .iter()
                .take_while(|g| thing_of(g).is_some_and(|t| same_topic(g, groups[start][0]) && !t.is_empty()))
                .count();
        if let Some(pivot) = table(groups, start, end, online) {
            pivots.push(pivot);
        }
        start = end.max(start + 1);
    }
    pivots
}

fn same_topic(group: &[&Row], first: &Row) -> bool {
    group[0].id.split('.').next() == first.id.split('.').next()
}

/// The thing a group of rows is about: what its label starts with and its id names second.
fn thing_of<'a>(group: &[&'a Row]) -> Option<&'a str> {
    let row = group[0];
    let (_, rest) = row.id.split_once('.')?;
    let (thing, _) = rest.rsplit_once('.')?;
    row.label.strip_prefix(thing)?.strip_prefix(' ')?;
    Some(thing)
}

fn table(groups: &[Vec<&Row>], start: usize, end: usize, online: Option<&CpuSet>) -> Option<Pivot> {
    let mut pivot = Pivot { start, end, things: Vec::new(), columns: Vec::new(), cells: Vec::new() };
    for group in &groups[start..end] {
        let thing = thing_of(group)?;
        let column = group[0].label.get(thing.len() + 1..)?.to_string();
        let text = one_value(group, online)?;
        if pivot.things.last().is_none_or(|t| t != thing) {
            if pivot.things.iter().any(|t| t == thing) {
                return None;
            }
            pivot.things.push(thing.to_string());
            pivot.cells.push(Vec::new());
        }
        let at = match pivot.columns.iter().position(|c| *c == column) {
            Some(at) => at,
            None => {
                pivot.columns.push(column);
                pivot.columns.len() - 1
            }
        };
        let row = pivot.cells.last_mut()?;
        if row.len() <= at {
            row.resize(at + 1, String::new());
        }
        row[at] = text;
    }
    let is_worth_it = pivot.things.len() >= 2 && pivot.columns.len() >= 3;
    // A column that no thing fills is what the gap summary is for.
    let filled: Vec<usize> = (0..pivot.columns.len())
        .filter(|c| pivot.cells.iter().any(|r| r.get(*c).is_some_and(|t| !t.is_empty())))
        .collect();
    pivot.columns = filled.iter().map(|c| pivot.columns[*c].clone()).collect();
    for row in &mut pivot.cells {
        *row = filled.iter().map(|c| row.get(*c).cloned().unwrap_or_default()).collect();
    }
    (is_worth_it && pivot.width() <= MAX_WIDTH).then_some(pivot)
}

/// The one value a group has on all running CPUs; an absent file is an empty cell; anything else is not for a table.
fn one_value(group: &[&Row], online: Option<&CpuSet>) -> Option<String> {
    let [row] = group else { return None };
    match &row.cell {
        Ok(cell) if row.cpus.is_none() || row.cpus.as_ref() == online => Some(cell.to_string()),
        Err(gap) if matches!(gap.kind, GapKind::Absent | GapKind::NotRecorded) => Some(String::new()),
        _ => None,
    }
}

impl Pivot {
    fn widths(&self) -> Vec<usize> {
        let of = |c: usize| {
            let values = self.cells.iter().map(|r| places(&r[c]));
            values.chain(self.columns[c].split(' ').map(head_width)).max().unwrap_or(0)
        };
        (0..self.columns.len()).map(of).collect()
    }

    /// Each column's name in lines no wider than the column.
    fn header(&self) -> Vec<Vec<String>> {
        let lines_of = |(column, width): (&String, usize)| {
            let mut lines: Vec<String> = Vec::new();
            let words = column.split(' ').flat_map(|word| pieces(word).into_iter().enumerate());
            for (at, word) in words {
                let blank = if at == 0 { " " } else { "" };
                match lines.last_mut() {
                    Some(line) if places(line) + blank.len() + places(word) <= width => {
                        line.push_str(blank);
                        line.push_str(word);
                    }
                    _ => lines.push(word.to_string()),
                }
            }
            lines
        };
        self.columns.iter().zip(self.widths()).map(lines_of).collect()
    }

    fn first_width(&self) -> usize {
        self.things.iter().map(|t| places(t)).max().unwrap_or(0)
    }

    fn width(&self) -> usize {
        INDENT + self.first_width() + self.widths().iter().map(|w| w + 2).sum::<usize>()
    }

    pub(super) fn draw(&self, out: &mut String, dim: impl Fn(&str) -> String) {
        let (words, widths, first) = (self.header(), self.widths(), self.first_width());
        let n_lines = words.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..n_lines {
            // Headers stand on the line above the values, so short ones are filled from the top.
            let cell = |c: usize| (line + words[c].len()).checked_sub(n_lines).map_or("", |at| words[c][at].as_str());
            let head: String = (0..widths.len()).map(|c| format!("  {}", right(cell(c), widths[c]))).collect();
            let _ = writeln!(out, "{}", dim(&format!("{:INDENT$}{:first$}{head}", "", "")));
        }
        for (thing, row) in self.things.iter().zip(&self.cells) {
            let cells: String = row
                .iter()
                .zip(&widths)
                .map(|(t, w)| format!("  {}", right(if t.is_empty() { "-" } else { t }, *w)))
                .collect();
            let _ = writeln!(out, "{:INDENT$}{}{cells}", "", padded(thing, first));
        }
    }
}

/// The least room for a word of a head: Chinese ones may be broken, but not into a column of single characters.
fn head_width(word: &str) -> usize {
    const LEAST: usize = 8;
    let longest = pieces(word).into_iter().map(places).max().unwrap_or(0);
    places(word).min(longest.max(LEAST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::sheet::{Cell, Sheet};

    #[test]
    fn things_described_alike_become_one_table() {
        let mut sheet = Sheet::default();
        sheet.say("idle.driver", "driver", Cell::text("x"));
        for (name, ns) in [("C1", 2_000u64), ("C6", 290_000)] {
            for what in ["exit latency", "time", "use"] {
                sheet.say(format!("idle.{name}.{}", what.replace(' ', "_")), format!("{name} {what}"), Cell::Ns(ns));
            }
        }
        let groups = super::super::group_rows(&sheet.rows);
        let pivots = find(&groups, None);
        assert_eq!((pivots.len(), pivots[0].start, pivots[0].end), (1, 1, 7));
        let mut out = String::new();
        pivots[0].draw(&mut out, str::to_string);
        assert_eq!(
            out,
            "         exit              \n      latency   time    use\n  C1      2us    2us    2us\n  C6    290us  290us  290us\n"
        );
    }
}
