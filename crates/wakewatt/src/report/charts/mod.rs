//! The figures: each answers one question, is drawn for a wide page and for a phone, and is labelled directly.
//!
//! Arms keep their colour, line style and mark through the whole page (`a0`, `a1`, `a2` … in the style sheet), so
//! nobody hunts for a legend and grey print still tells them apart. Latency axes are logarithmic: idle costs are
//! factors, and a tail a hundred times out must stay on the page.
//!
//! `plot`, `bars`, `ranges`, `columns` and `grid` are `Chart`s: they draw their own points and make the table of them.
//! To add a figure: build one of these in `report/view`; to add a chart: one file here, one line below.

use super::data::Data;
use wakewatt_core::arrange::Arrange as _;

pub(super) mod axis;
pub(super) mod bars;
pub(super) mod columns;
pub(super) mod distribution;
pub(super) mod forest;
pub(super) mod grid;
pub(super) mod multiples;
pub(super) mod plot;
pub(super) mod ranges;
pub(super) mod rounds;
pub(super) mod strip;
pub(super) mod legend;
pub(in crate::report) mod svg;

/// The two widths, in CSS pixels: the page's column, and a 390 px phone less its margins.
pub(in crate::report) const WIDTHS: [(&str, f64); 2] = [("wide", 760.0), ("narrow", 350.0)];

/// Styles there are.
pub(in crate::report) const N_STYLES: usize = 6;

/// Arms beyond the sixth share the sixth's style; their labels still tell them apart.
pub(super) fn arm_class(index: usize) -> usize {
    index.min(N_STYLES - 1)
}

/// A figure that knows its own numbers.
pub(in crate::report) trait Chart {
    /// One drawing; `class` is `wide` or `narrow`.
    fn one(&self, id: &str, class: &str, width: f64) -> String;
    /// The drawn numbers.
    fn data(&self) -> Data;
    /// Nothing to draw?
    fn is_empty(&self) -> bool;
    /// Both widths.
    fn draw(&self, id: &str) -> String {
        WIDTHS.iter().map(|(class, width)| self.one(&format!("{id}-{class}"), class, *width)).collect()
    }
}

/// Moves label positions apart so that no two are nearer than `gap`, keeping their order, inside `low..high`.
pub(super) fn spread(positions: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..positions.len()).collect();
    order.arrange_by(|&a, &b| positions[a].total_cmp(&positions[b]));
    let mut out = positions.to_vec();
    let mut floor = low;
    for &i in &order {
        out[i] = out[i].max(floor);
        floor = out[i] + gap;
    }
    let mut ceiling = high;
    for &i in order.iter().rev() {
        out[i] = out[i].min(ceiling);
        ceiling = out[i] - gap;
    }
    out
}

#[cfg(test)]
mod tests;
