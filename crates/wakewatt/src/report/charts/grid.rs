//! Rows against columns, the value as a shade and, where there is room, as text: node by node, CPU by CPU, state by kind.
//!
//! Shades go by the logarithm between the least and the greatest value, because what is compared here are factors.

use super::super::data::{Cell, Data, Show};
use super::Chart;
use super::legend::short_to;
use super::svg::{Anchor, Svg, text_width};
use wakewatt_words::say;

/// The figure.
#[derive(Clone, Debug)]
pub(in crate::report) struct Grid {
    /// What it shows.
    pub(in crate::report) title: String,
    /// What rows and columns are.
    pub(in crate::report) of: (String, String),
    /// The values' unit.
    pub(in crate::report) show: Show,
    /// Names of the columns.
    pub(in crate::report) columns: Vec<String>,
    /// Name and values of each row; none where nothing was measured.
    pub(in crate::report) rows: Vec<(String, Vec<Option<f64>>)>,
}

const N_SHADES: f64 = 8.0;

impl Grid {
    fn values(&self) -> impl Iterator<Item = f64> + '_ {
        self.rows.iter().flat_map(|(_, v)| v).filter_map(|v| v.filter(|v| v.is_finite()))
    }

    /// 0 for nothing, 1 to 8 between the least and the greatest.
    fn shade(&self, value: Option<f64>) -> u32 {
        let Some(value) = value.filter(|v| v.is_finite() && *v > 0.0) else { return 0 };
        let positive = || self.values().filter(|v| *v > 0.0);
        let (least, most) = (positive().fold(f64::INFINITY, f64::min), positive().fold(0.0, f64::max));
        // Less than a tenth apart is one shade: noise must not look like a pattern.
        let span = (most / least).ln().max(0.1);
        let share = ((value / least).ln() / span).clamp(0.0, 1.0);
        // 1 to 8 by construction.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let shade = 1 + (share * (N_SHADES - 1.0)).round() as u32;
        shade
    }
}

impl Chart for Grid {
    fn is_empty(&self) -> bool {
        self.values().next().is_none()
    }

    fn one(&self, id: &str, class: &str, width: f64) -> String {
        let is_wide = class == "wide";
        let n = self.columns.len().max(1) as f64;
        let longest = if is_wide { 26 } else { 12 };
        let name = self.rows.iter().map(|(name, _)| text_width(&short_to(name, longest), 12.0)).fold(16.0, f64::max);
        let left = name + 12.0;
        let cell = ((width - left) / n).min(if is_wide { 120.0 } else { 80.0 });
        let text = self.values().map(|v| text_width(&self.show.text(v), 12.0)).fold(0.0, f64::max);
        let has_text = text + 4.0 <= cell;
        let height = if has_text { 28.0 } else { cell.clamp(5.0, 28.0) };
        let top = 42.0;
        let bottom = top + height * self.rows.len() as f64;
        let mut svg = Svg::new(width, bottom + 24.0);
        svg.text("axis", Anchor::Start, (0.0, 12.0), &say!("rows: {}; columns: {}", self.of.0, self.of.1));
        for (i, column) in self.columns.iter().enumerate() {
            let column = short_to(column, to_characters(cell.max(60.0)));
            svg.text_if_free("tick", Anchor::Middle, (left + cell * (i as f64 + 0.5), top - 7.0), &column);
        }
        let air = if cell > 10.0 { 1.0 } else { 0.2 };
        for (i, (name, values)) in self.rows.iter().enumerate() {
            let y = top + height * i as f64;
            let at = (left - 8.0, y + height / 2.0 + 4.0);
            svg.text_if_free("tick", Anchor::End, at, &short_to(name, longest));
            for (k, value) in values.iter().enumerate() {
                let x = left + cell * k as f64;
                let shade = self.shade(*value);
                svg.rect(&format!("heat g{shade}"), (x, y), (cell - air, height - air));
                if has_text {
                    let text = value.filter(|v| v.is_finite()).map_or("–".into(), |v| self.show.text(v));
                    svg.text("cell", Anchor::Middle, (x + cell / 2.0, y + height / 2.0 + 4.0), &text);
                }
            }
        }
        let (least, most) = (self.values().fold(f64::INFINITY, f64::min), self.values().fold(0.0, f64::max));
        let range = say!("from {} (faint) to {} (strong)", self.show.text(least), self.show.text(most));
        svg.text("axis", Anchor::Start, (0.0, bottom + 18.0), &range);
        let desc = say!("{} by {}, {range}; the numbers are in its table", self.rows.len(), self.columns.len());
        svg.finish(id, class, &self.title, &desc)
    }

    fn data(&self) -> Data {
        let mut data = Data::with(&[(self.of.0.as_str(), Show::Text)]);
        data.columns.extend(self.columns.iter().map(|c| (c.clone(), self.show)));
        for (name, values) in &self.rows {
            let mut row: Vec<Cell> = vec![name.clone().into()];
            row.extend(values.iter().map(|v| Cell::of(*v)));
            data.rows.push(row);
        }
        data
    }
}

/// Characters that fit into so many pixels.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // pixels of a page
fn to_characters(px: f64) -> usize {
    (px / 6.8).max(2.0) as usize
}
