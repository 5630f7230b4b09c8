//! Small multiples: one little line for each of many, all on the same axes, with the line of 1 and a moment of change.

use super::super::data::{Cell, Data, Show};
use super::Chart;
use super::axis::AxisSpec;
use super::legend;
use super::svg::{Anchor, Svg};
use wakewatt_words::say;

/// The figure.
#[derive(Clone, Debug)]
pub(in crate::report) struct Multiples {
    /// What it shows.
    pub(in crate::report) title: String,
    /// What stands across, such as the window.
    pub(in crate::report) across: String,
    /// Up, for all.
    pub(in crate::report) y: AxisSpec,
    /// Places across, in words, for the table.
    pub(in crate::report) places: Vec<String>,
    /// Name and value at each place of each.
    pub(in crate::report) panels: Vec<(String, Vec<Option<f64>>)>,
    /// The place before which something was changed.
    pub(in crate::report) changed_before: Option<usize>,
}

const PANEL: f64 = 84.0;
const HEAD: f64 = 22.0;

impl Multiples {
    fn values(&self) -> impl Iterator<Item = f64> + '_ {
        self.panels.iter().flat_map(|(_, v)| v).filter_map(|v| v.filter(|v| self.y.scale.has(*v)))
    }
}

impl Chart for Multiples {
    fn is_empty(&self) -> bool {
        self.values().next().is_none()
    }

    fn one(&self, id: &str, class: &str, width: f64) -> String {
        let n_columns = if class == "wide" { 4 } else { 2 };
        let n_rows = self.panels.len().div_ceil(n_columns);
        let across = width / n_columns as f64;
        let mut svg = Svg::new(width, n_rows as f64 * (PANEL + HEAD + 12.0) + 20.0);
        let values: Vec<f64> = self.values().chain([1.0]).collect();
        for (i, (name, course)) in self.panels.iter().enumerate() {
            let left = (i % n_columns) as f64 * across + 38.0;
            let right = left + across - 50.0;
            let top = (i / n_columns) as f64 * (PANEL + HEAD + 12.0) + HEAD;
            let bottom = top + PANEL;
            let y = self.y.around(&values, bottom, top);
            svg.text("label", Anchor::Start, (left - 34.0, top - 8.0), &legend::short_to(name, 22));
            for tick in y.ticks(3) {
                svg.line("grid", (left, y.at(tick)), (right, y.at(tick)));
                svg.text("tick", Anchor::End, (left - 4.0, y.at(tick) + 4.0), &self.y.show.text(tick));
            }
            svg.line("ideal", (left, y.at(1.0)), (right, y.at(1.0)));
            let step = (right - left) / (self.places.len().max(2) - 1) as f64;
            if let Some(before) = self.changed_before {
                let at = left + (before as f64 - 0.5) * step;
                svg.line("one", (at, top), (at, bottom));
            }
            let mut line: Vec<(f64, f64)> = Vec::new();
            // A gap ends a line: what was not seen is not drawn.
            for (place, value) in course.iter().map(|v| v.filter(|v| self.y.scale.has(*v))).chain([None]).enumerate() {
                match value {
                    Some(value) => line.push((left + place as f64 * step, y.at(value))),
                    None if line.len() > 1 => svg.path("line a0", &std::mem::take(&mut line), false),
                    None => std::mem::take(&mut line).iter().for_each(|at| svg.mark("mark a0", 0, *at, 2.4)),
                }
            }
        }
        let desc = say!("{} lines over {}; the numbers are in its table", self.panels.len(), self.across);
        svg.finish(id, class, &self.title, &desc)
    }

    fn data(&self) -> Data {
        let mut data = Data::with(&[(self.across.as_str(), Show::Text)]);
        data.columns.extend(self.panels.iter().map(|(name, _)| (name.clone(), self.y.show)));
        for (at, place) in self.places.iter().enumerate() {
            let mut row: Vec<Cell> = vec![place.clone().into()];
            row.extend(self.panels.iter().map(|(_, course)| Cell::of(course.get(at).copied().flatten())));
            data.rows.push(row);
        }
        data
    }
}
