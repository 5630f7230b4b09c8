//! A table in a terminal, laid out from its content: what every command prints its tables with.
//!
//! Words stand on the left of their column, numbers on the right. A column is as wide as its widest cell or the longest
//! word of its head, and no wider than `MOST`: longer text goes on below, in its own column. Columns that do not fit
//! into the terminal follow in a further block, behind the columns that tell the rows apart, so nothing is left out.
//!
//! Widths are those of the terminal (a Chinese character takes two places, a combining one none), from ratatui. Foreign
//! text is made visible here, because an escaped character takes more places than the character.

use super::width::{pieces, places};
use wakewatt_core::visible;

/// No column is wider.
const MOST: usize = 28;
/// Nor narrower than this for the terminal's sake: a character may take two places.
const LEAST: usize = 4;
/// Blanks between columns.
const GAP: usize = 2;

/// What is laid out: a row may be short, its last cells are then empty.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    /// One per column.
    pub heads: &'a [String],
    /// A cell per column each.
    pub rows: &'a [Vec<String>],
    /// So many columns from the left are words; the others are numbers.
    pub n_text_columns: usize,
}

/// A column, its cells broken into lines.
struct Column {
    width: usize,
    is_text: bool,
    head: Vec<String>,
    cells: Vec<Vec<String>>,
}

impl Table<'_> {
    /// Lines of at most so many places, without blanks at their ends.
    pub fn lines(&self, width: usize) -> Vec<String> {
        let limit = MOST.min(width.saturating_sub(GAP) / 2).max(LEAST);
        let mut columns: Vec<Column> = (0..self.heads.len()).map(|at| self.column(at, limit)).collect();
        // What is left of a terminal that all fit into goes to the text that is broken most.
        let slack = width.saturating_sub(of_all(&columns.iter().collect::<Vec<_>>()));
        let deepest = |at: &usize| columns[*at].cells.iter().map(Vec::len).max().unwrap_or(0);
        if let Some(at) = (0..columns.len()).max_by_key(deepest).filter(|at| slack > 0 && deepest(at) > 1) {
            columns[at] = self.column(at, columns[at].width + slack);
        }
        let n_keys = self.n_keys(&columns, width);
        let keys: Vec<&Column> = columns.iter().take(n_keys).collect();
        let mut out = Vec::new();
        let mut block = keys.clone();
        for column in columns.iter().skip(n_keys) {
            if block.len() > n_keys && of_all(&block) + GAP + column.width > width {
                self.draw(&block, &mut out);
                out.push(String::new());
                block.clone_from(&keys);
            }
            block.push(column);
        }
        self.draw(&block, &mut out);
        out
    }

    /// The same with line ends.
    pub fn text(&self, width: usize) -> String {
        self.lines(width).into_iter().map(|line| line + "\n").collect()
    }

    fn column(&self, at: usize, limit: usize) -> Column {
        let cells: Vec<Vec<String>> =
            self.rows.iter().map(|row| broken(row.get(at).map_or("", String::as_str), limit)).collect();
        let head = self.heads.get(at).map_or("", String::as_str);
        let words = visible::line(head).split_whitespace().flat_map(pieces).map(places).max().unwrap_or(0).min(limit);
        let width = cells.iter().flatten().map(|line| places(line)).max().unwrap_or(0).max(words);
        Column { width, is_text: at < self.n_text_columns, head: broken(head, width.max(LEAST)), cells }.widened()
    }

    /// So many columns tell the rows apart; one where those would take half of the terminal.
    fn n_keys(&self, columns: &[Column], width: usize) -> usize {
        let is_apart = |n: &usize| {
            let mut seen: Vec<Vec<&String>> = self.rows.iter().map(|row| row.iter().take(*n).collect()).collect();
            seen.sort_unstable();
            seen.windows(2).all(|pair| pair[0] != pair[1])
        };
        let most = self.n_text_columns.min(columns.len());
        let n = (1..=most).find(is_apart).unwrap_or(1);
        let taken: usize = columns.iter().take(n).map(|c| c.width + GAP).sum();
        if taken * 2 > width { 1.min(columns.len()) } else { n.min(columns.len()) }
    }

    fn draw(&self, block: &[&Column], out: &mut Vec<String>) {
        let n_head = block.iter().map(|c| c.head.len()).max().unwrap_or(0);
        for line in 0..n_head {
            // Short heads stand on the line above the values.
            let part = |c: &Column| (line + c.head.len()).checked_sub(n_head).and_then(|at| c.head.get(at)).cloned();
            out.push(joined(block, part));
        }
        for row in 0..self.rows.len() {
            let n_lines = block.iter().filter_map(|c| Some(c.cells.get(row)?.len())).max().unwrap_or(0);
            for line in 0..n_lines {
                out.push(joined(block, |c| c.cells.get(row)?.get(line).cloned()));
            }
        }
    }
}

impl Column {
    /// A head's word may have been broken wider than the cells.
    fn widened(mut self) -> Column {
        self.width = self.head.iter().map(|line| places(line)).max().unwrap_or(0).max(self.width);
        self
    }
}

fn of_all(block: &[&Column]) -> usize {
    block.iter().map(|c| c.width).sum::<usize>() + GAP * block.len().saturating_sub(1)
}

fn joined(block: &[&Column], part: impl Fn(&Column) -> Option<String>) -> String {
    let mut line = String::new();
    for (at, column) in block.iter().enumerate() {
        let text = part(column).unwrap_or_default();
        let blanks = " ".repeat(column.width.saturating_sub(places(&text)));
        line += if at == 0 { "" } else { "  " };
        line += &if column.is_text { text + &blanks } else { blanks + &text };
    }
    line.trim_end().to_string()
}

/// Broken between words, and inside a word that is too long; at least one line.
fn broken(text: &str, limit: usize) -> Vec<String> {
    let clean = visible::line(text);
    let mut lines = vec![String::new()];
    // Leading blanks show what belongs to the row above.
    let indent: String = clean.chars().take_while(|c| *c == ' ').take(limit / 2).collect();
    if let Some(first) = lines.last_mut() {
        first.push_str(&indent);
    }
    let words = clean.split_whitespace().flat_map(|word| pieces(word).into_iter().enumerate());
    for (at, word) in words {
        let Some(line) = lines.last_mut() else { break };
        let is_begun = !line.trim().is_empty();
        let blank = is_begun && at == 0;
        if places(line) + usize::from(blank) + places(word) <= limit {
            *line += if blank { " " } else { "" };
            *line += word;
            continue;
        }
        if is_begun {
            lines.push(String::new());
        }
        for c in word.chars() {
            let Some(line) = lines.last_mut() else { break };
            if !line.is_empty() && places(line) + places(c.encode_utf8(&mut [0; 4])) > limit {
                lines.push(c.to_string());
            } else {
                line.push(c);
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(all: &[&str]) -> Vec<String> {
        all.iter().map(ToString::to_string).collect()
    }

    fn laid(heads: &[&str], rows: &[&[&str]], n_text_columns: usize, width: usize) -> String {
        let rows: Vec<Vec<String>> = rows.iter().map(|row| words(row)).collect();
        Table { heads: &words(heads), rows: &rows, n_text_columns }.text(width)
    }

    #[test]
    fn words_stand_left_and_numbers_right() {
        let text = laid(&["state", "claimed exit"], &[&["C1", "2 us"], &["C6 deep", "170 us"]], 1, 80);
        assert_eq!(text, "         claimed\nstate       exit\nC1          2 us\nC6 deep   170 us\n");
    }

    #[test]
    fn columns_that_do_not_fit_follow_behind_those_that_tell_the_rows_apart() {
        let rows: [&[&str]; 2] = [&["run", "10 %", "111111", "222222"], &["run", "20 %", "333333", "444444"]];
        let text = laid(&["run", "level", "p50", "p99"], &rows, 2, 25);
        assert_eq!(
            text,
            "run  level     p50\nrun  10 %   111111\nrun  20 %   333333\n\nrun  level     p99\nrun  10 %   222222\nrun  20 %   444444\n"
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_whatever_the_text() {
        let long = "x".repeat(90);
        let wide = "漢".repeat(40);
        let combining = "e\u{301}".repeat(50);
        let said = "a sentence that goes on for more than one line of its column";
        let rows: [&[&str]; 3] = [&[&long, &wide, "1"], &[&combining, said, "2"], &["\u{1b}[31m\n\u{202e}", "", "−3"]];
        for width in [10, 20, 40, 80, 140] {
            for n_text in [0, 1, 3, 9] {
                let text = laid(&["a very-long-head-of-one-word-and-more", "漢漢漢", "n"], &rows, n_text, width);
                let longest = text.lines().map(places).max().unwrap();
                assert!(longest <= width, "{longest} > {width}:\n{text}");
                assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
            }
        }
        let text = laid(&["a", "b"], &[&["漢字", "1"], &["e\u{301}", "2"]], 1, 80);
        assert_eq!(text, "a     b\n漢字  1\ne\u{301}     2\n");
    }

    #[test]
    fn nothing_and_short_rows_are_laid_out() {
        assert_eq!(laid(&[], &[], 0, 80), "");
        assert_eq!(laid(&["a", "b"], &[], 5, 80), "a  b\n");
        assert_eq!(laid(&["a", "b"], &[&["x"], &[], &["y", "2", "more"]], 1, 80), "a  b\nx\n\ny  2\n");
    }
}
