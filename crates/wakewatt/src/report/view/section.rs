//! A section of the page: figures with their tables, further tables, remarks; and the lines that a terminal shows of it.

use super::super::charts::Chart;
use super::super::data::Data;
use super::super::figure::Figure;
use super::super::table::Table;
use serde::Serialize;
use wakewatt_core::samples::Label;

/// A section.
#[derive(Debug, Default, Serialize)]
pub(in crate::report) struct Section {
    /// Its heading.
    pub(in crate::report) title: String,
    /// Sentences below the heading.
    pub(in crate::report) intro: Vec<String>,
    /// Figures, each with its table folded below it.
    pub(in crate::report) figures: Vec<Figure>,
    /// Tables that stand open.
    pub(in crate::report) tables: Vec<Table>,
    /// Tables that are folded.
    pub(in crate::report) folded: Vec<Table>,
    /// What must be known with the numbers.
    pub(in crate::report) remarks: Vec<String>,
    /// What a terminal shows.
    pub(in crate::report) lines: Vec<String>,
    /// What stands in place of a table where none is shown.
    pub(in crate::report) in_short: Vec<String>,
    /// Ids of the figures whose numbers stand in no table of the section: a terminal shows their own tables.
    pub(in crate::report) only_drawn: Vec<String>,
    /// It belongs before the findings: what the user asked to have measured.
    pub(in crate::report) is_result: bool,
}

impl Section {
    /// A section without content.
    pub(super) fn new(title: &str) -> Section {
        Section { title: title.into(), ..Section::default() }
    }

    /// Adds a figure of this chart, unless it is empty.
    pub(super) fn draw(&mut self, id: impl Into<String>, title: &str, caption: impl Into<String>, chart: &dyn Chart) {
        self.figures.extend(figure(id, title, caption, "measured", chart));
    }

    /// The same where no table of the section has the numbers.
    pub(super) fn draw_only(
        &mut self,
        id: impl Into<String>,
        title: &str,
        caption: impl Into<String>,
        chart: &dyn Chart,
    ) {
        let id = id.into();
        self.only_drawn.push(id.clone());
        self.draw(id, title, caption, chart);
    }

    /// Nothing in it?
    pub(super) fn is_empty(&self) -> bool {
        self.figures.is_empty() && self.tables.is_empty() && self.folded.is_empty()
    }
}

/// A figure of this chart; none if it is empty.
pub(super) fn figure(
    id: impl Into<String>,
    title: &str,
    caption: impl Into<String>,
    label: &'static str,
    chart: &dyn Chart,
) -> Option<Figure> {
    if chart.is_empty() {
        return None;
    }
    let (id, data) = (id.into(), chart.data());
    Some(Figure {
        svg: chart.draw(&id),
        title: title.into(),
        caption: caption.into(),
        label,
        table: Some(data.table(title)),
        csv: data.csv(),
        id,
    })
}

/// The same for numbers that come without a chart.
pub(super) fn table_if_any(data: &Data, caption: &str) -> Option<Table> {
    (!data.rows.is_empty()).then(|| data.table(caption))
}

/// The word of a label.
pub(super) fn label_word(label: Label) -> &'static str {
    match label {
        Label::Measured => "measured",
        Label::Modelled => "modelled",
        Label::Unavailable => "unavailable",
        Label::PresentButDead => "present but dead",
    }
}
