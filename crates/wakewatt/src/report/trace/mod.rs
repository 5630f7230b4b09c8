//! A trace of wake-ups, for people: tables and a heat map, in the terminal and on a page.
//!
//! `view` turns the numbers into words once; text and page only lay out, so they cannot disagree.

mod heat;
mod names;
mod page;
mod stacks;
mod text;
pub(super) mod view;

pub use names::clean;
use wakewatt_core::samples::traced::Traced;

/// What is shown.
#[derive(Debug)]
pub struct TraceReport<'a> {
    pub title: String,
    /// When it was written.
    pub generated_at: String,
    pub traced: &'a Traced,
    /// Every CPU too.
    pub is_by_cpu: bool,
}

impl TraceReport<'_> {
    /// For a terminal of this width.
    pub fn to_text(&self, width: usize, is_coloured: bool) -> String {
        wakewatt_words::spoken(|| text::render(self, width, is_coloured))
    }

    /// The self-contained page.
    pub fn to_html(&self) -> anyhow::Result<String> {
        wakewatt_words::spoken(|| page::render(self))
    }
}
