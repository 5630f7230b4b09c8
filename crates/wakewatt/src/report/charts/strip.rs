//! A strip per row: everybody as a mark on one line, those who stand apart in another colour and with their name.
//!
//! Names give way to each other: one that finds no room below its mark or above it is in the table only.

use super::super::data::{Cell, Data};
use super::Chart;
use super::axis::AxisSpec;
use super::legend;
use super::svg::{Anchor, Svg, text_width};
use wakewatt_words::say;

/// A mark.
#[derive(Clone, Debug)]
pub(in crate::report) struct Dot {
    /// Whose it is.
    pub(in crate::report) name: String,
    /// Where it stands.
    pub(in crate::report) value: f64,
    /// Does it stand apart?
    pub(in crate::report) is_odd: bool,
}

/// The figure.
#[derive(Clone, Debug)]
pub(in crate::report) struct Strip {
    /// What it shows.
    pub(in crate::report) title: String,
    /// What the marks are.
    pub(in crate::report) of: String,
    /// Across; the line of 1 is drawn.
    pub(in crate::report) x: AxisSpec,
    /// Name and marks of each row.
    pub(in crate::report) rows: Vec<(String, Vec<Dot>)>,
}

const ROW: f64 = 58.0;
/// Marks of those that do not stand apart are drawn up to here, evenly chosen: more would be one bar.
const MOST_DRAWN: usize = 400;

impl Strip {
    fn dots(&self) -> impl Iterator<Item = &Dot> {
        self.rows.iter().flat_map(|(_, dots)| dots).filter(|d| self.x.scale.has(d.value))
    }
}

impl Chart for Strip {
    fn is_empty(&self) -> bool {
        self.dots().next().is_none()
    }

    fn one(&self, id: &str, class: &str, width: f64) -> String {
        let is_wide = class == "wide";
        let widest = self.rows.iter().map(|(name, _)| text_width(&legend::short(name), 13.0)).fold(40.0, f64::max);
        let (left, head) = if is_wide { (widest + 18.0, 0.0) } else { (8.0, 18.0) };
        let right = width - 14.0;
        let bottom = self.rows.len() as f64 * (ROW + head) + 8.0;
        let mut svg = Svg::new(width, bottom + 44.0);
        let values: Vec<f64> = self.dots().map(|d| d.value).chain([1.0]).collect();
        let x = self.x.around(&values, left + 6.0, right - 6.0);
        for tick in x.ticks(if is_wide { 8 } else { 4 }) {
            svg.line("grid", (x.at(tick), 0.0), (x.at(tick), bottom));
            svg.text_if_free("tick", Anchor::Middle, (x.at(tick), bottom + 18.0), &self.x.show.text(tick));
        }
        svg.line("one", (x.at(1.0), 0.0), (x.at(1.0), bottom));
        svg.line("base", (left, bottom), (right, bottom));
        svg.text("axis", Anchor::End, (right, bottom + 37.0), &self.x.title);
        let mut y = 4.0;
        for (name, dots) in &self.rows {
            if is_wide {
                svg.text("label", Anchor::End, (left - 12.0, y + ROW / 2.0 + 4.0), &legend::short(name));
            } else {
                svg.text("label", Anchor::Start, (0.0, y + 13.0), &legend::short(name));
                y += head;
            }
            let middle = y + ROW / 2.0;
            let drawn = |d: &&Dot| self.x.scale.has(d.value);
            let usual: Vec<&Dot> = dots.iter().filter(drawn).filter(|d| !d.is_odd).collect();
            let step = usual.len().div_ceil(MOST_DRAWN).max(1);
            for dot in usual.iter().step_by(step) {
                svg.mark("mark a1", 0, (x.at(dot.value), middle), 3.6);
            }
            for (at, dot) in dots.iter().filter(drawn).filter(|d| d.is_odd).enumerate() {
                let px = x.at(dot.value);
                svg.mark("mark a0", 1, (px, middle), 5.0);
                let anchor = if px > (left + right) / 2.0 { Anchor::End } else { Anchor::Start };
                let name = legend::short_to(&dot.name, 24);
                let places = if at % 2 == 0 { [18.0, -10.0] } else { [-10.0, 18.0] };
                let _ = places.iter().any(|dy| svg.text_if_free("value a0", anchor, (px, middle + dy), &name));
            }
            y += ROW;
        }
        let desc: Vec<String> = self.rows.iter().map(|(name, dots)| say!("{name}: {} marks", dots.len())).collect();
        svg.finish(id, class, &self.title, &say!("{}; the numbers are in its table", desc.join("; ")))
    }

    fn data(&self) -> Data {
        let mut data = Data::with(&[(self.of.as_str(), super::super::data::Show::Text)]);
        data.columns.extend(self.rows.iter().map(|(name, _)| (name.clone(), self.x.show)));
        let mut names: Vec<&String> = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for dot in self.rows.iter().flat_map(|(_, dots)| dots) {
            if seen.insert(&dot.name) {
                names.push(&dot.name);
            }
        }
        let by_row: Vec<std::collections::BTreeMap<&String, f64>> =
            self.rows.iter().map(|(_, dots)| dots.iter().map(|d| (&d.name, d.value)).collect()).collect();
        for name in names {
            let mut row: Vec<Cell> = vec![name.clone().into()];
            row.extend(by_row.iter().map(|values| Cell::of(values.get(name).copied())));
            data.rows.push(row);
        }
        data
    }
}
