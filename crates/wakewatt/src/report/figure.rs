//! A drawing ready to be laid out: with its caption, its label and the numbers behind it, as text and raw.

use super::table::Table;
use serde::Serialize;

/// A figure with its caption and its numbers.
#[derive(Debug, Default, Serialize)]
pub(super) struct Figure {
    /// Unique in the report; the name of its files.
    pub(super) id: String,
    /// What it shows.
    pub(super) title: String,
    /// Both widths.
    pub(super) svg: String,
    /// The sentence below.
    pub(super) caption: String,
    /// What its numbers are worth.
    pub(super) label: &'static str,
    /// Its numbers as text; none where a table of the section has them.
    pub(super) table: Option<Table>,
    /// Its numbers, raw.
    #[serde(skip)]
    pub(super) csv: String,
}
