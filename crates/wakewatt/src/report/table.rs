//! A table as text: what charts give their numbers as, what views are made of, and what every format lays out.

use serde::Serialize;
use wakewatt_words::told;

/// A table: heads, rows of cells, and which columns hold numbers (aligned right).
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Table {
    /// What it shows, and what its numbers are worth.
    pub(super) caption: String,
    /// One per column.
    pub(super) heads: Vec<String>,
    /// A cell per column each.
    pub(super) rows: Vec<Vec<String>>,
    /// So many columns from the left are words.
    pub(super) n_text_columns: usize,
}

impl Table {
    /// Laid out for a terminal, without its caption.
    pub(super) fn in_terminal(&self, width: usize) -> String {
        let Table { heads, rows, n_text_columns, .. } = self;
        crate::view::table::Table { heads, rows, n_text_columns: *n_text_columns }.text(width)
    }
}

/// The heads of a table, in the language in force.
pub(super) fn heads(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| told(word).to_string()).collect()
}
