//! The heat map: how long wake-ups took, by the state they came from. One column per factor of two.
//!
//! Shading is the share within the row, on a square-root scale: a tail of one in a hundred must still be seen. In the
//! terminal each cell is also a different character, so it reads without colour.

use super::super::charts::WIDTHS;
use super::super::charts::svg::{Anchor, Svg};
use super::super::data::{Cell, Data, Show};
use super::super::words;
use crate::view::width::{begin, padded, places};
use wakewatt_core::distribution::Distribution;
use wakewatt_words::{say, word};

/// Rows of counts over common columns.
#[derive(Debug, Default)]
pub(super) struct HeatMap {
    /// Upper edges of the columns.
    pub(super) columns_ns: Vec<u64>,
    /// Name, and counts per column.
    pub(super) rows: Vec<(String, Vec<u64>)>,
}

impl HeatMap {
    /// Of these distributions; empty without samples.
    pub(super) fn of<'a>(rows: impl IntoIterator<Item = (String, &'a Distribution)>) -> HeatMap {
        let rows: Vec<(String, &Distribution)> = rows.into_iter().filter(|(_, d)| d.n > 0).collect();
        let buckets = || rows.iter().flat_map(|(_, d)| &d.buckets);
        let column = |upto_ns: u64| upto_ns.saturating_sub(1).max(1).ilog2();
        let (Some(first), Some(last)) =
            (buckets().map(|b| column(b.upto_ns)).min(), buckets().map(|b| column(b.upto_ns)).max())
        else {
            return HeatMap::default();
        };
        let count = |d: &Distribution| {
            let mut counts = vec![0; (last - first + 1) as usize];
            for bucket in &d.buckets {
                counts[(column(bucket.upto_ns) - first) as usize] += bucket.n;
            }
            counts
        };
        HeatMap {
            columns_ns: (first..=last).map(|c| 1u64 << (c + 1)).collect(),
            rows: rows.iter().map(|(name, d)| (name.clone(), count(d))).collect(),
        }
    }

    /// Shade of a cell, 0 (empty) to 8.
    fn shade(row: &[u64], n: u64) -> usize {
        let all: u64 = row.iter().sum();
        if n == 0 {
            return 0;
        }
        let share = n as f64 / all.max(1) as f64;
        // 0 to 8 by construction.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let shade = (share.sqrt() * 8.0).ceil() as usize;
        shade.clamp(1, 8)
    }

    /// Lines for a terminal.
    pub(super) fn text(&self, width: usize, is_coloured: bool) -> Vec<String> {
        const CELLS: [&str; 9] = [" ", ".", ":", "-", "=", "+", "*", "#", "@"];
        // 256-colour ramp from dark blue over orange to pale yellow.
        const RAMP: [u8; 9] = [0, 17, 54, 90, 126, 166, 208, 220, 229];
        let name_width = self.rows.iter().map(|(name, _)| places(name)).max().unwrap_or(0).min(32);
        let cell = if name_width + 2 + self.columns_ns.len() * 5 <= width { 5 } else { 3 };
        let mut lines = Vec::new();
        for (name, counts) in &self.rows {
            let mut line = padded(begin(name, name_width), name_width + 2);
            for n in counts {
                let shade = HeatMap::shade(counts, *n);
                let body = CELLS[shade].repeat(cell);
                if is_coloured && shade > 0 {
                    line += &format!("\u{1b}[38;5;16;48;5;{}m{body}\u{1b}[0m", RAMP[shade]);
                } else {
                    line += &body;
                }
            }
            lines.push(line);
        }
        // A column's upper edge stands at its right end; every second or third is labelled.
        let mut axis = " ".repeat(name_width + 2);
        for (i, upto_ns) in self.columns_ns.iter().enumerate() {
            let end = name_width + 2 + (i + 1) * cell;
            let label = short(*upto_ns);
            if end > axis.chars().count() + label.chars().count() {
                axis = format!("{axis:<pad$}{label}", pad = end - label.chars().count());
            }
        }
        lines.push(axis);
        lines
    }

    /// The drawn counts.
    pub(super) fn data(&self) -> Data {
        let mut data = Data::with(&[(word!("woken from"), Show::Text)]);
        data.columns.extend(self.columns_ns.iter().map(|ns| (say!("up to {}", short(*ns)), Show::Count)));
        for (name, counts) in &self.rows {
            let mut row: Vec<Cell> = vec![name.clone().into()];
            row.extend(counts.iter().map(|n| Cell::from(*n as f64)));
            data.rows.push(row);
        }
        data
    }

    /// The figure for the page, at both widths.
    pub(super) fn svg(&self, id: &str, title: &str) -> String {
        WIDTHS.iter().map(|(class, width)| self.one(&format!("{id}-{class}"), class, *width, title)).collect()
    }

    fn one(&self, id: &str, class: &str, width: f64, title: &str) -> String {
        let is_wide = class == "wide";
        // On a phone the name stands above its row.
        let (left, step, top) = if is_wide { (190.0, 30.0, 4.0) } else { (0.0, 46.0, 18.0) };
        let right = width - 2.0;
        let cell = (right - left) / self.columns_ns.len().max(1) as f64;
        let bottom = top + step * self.rows.len() as f64;
        let mut svg = Svg::new(width, bottom + 40.0);
        for (row, (name, counts)) in self.rows.iter().enumerate() {
            let y = top + step * row as f64;
            if is_wide {
                svg.text("label", Anchor::End, (left - 10.0, y + 18.0), name);
            } else {
                svg.text("label", Anchor::Start, (left, y - 4.0), name);
            }
            for (i, n) in counts.iter().enumerate() {
                let shade = HeatMap::shade(counts, *n);
                svg.rect(&format!("heat h{shade}"), (left + cell * i as f64, y), (cell - 1.0, 26.0));
            }
        }
        let every = if is_wide { 2 } else { 4 };
        for (i, upto_ns) in self.columns_ns.iter().enumerate().filter(|(i, _)| i % every == every - 1) {
            svg.text("tick", Anchor::Middle, (left + cell * (i + 1) as f64, bottom + 14.0), &short(*upto_ns));
        }
        svg.text("axis", Anchor::End, (right, bottom + 34.0), word!("made runnable to running, up to"));
        let desc: Vec<String> =
            self.rows.iter().map(|(name, c)| say!("{name}: {} wake-ups", c.iter().sum::<u64>())).collect();
        svg.finish(id, class, title, &desc.join("; "))
    }
}

/// A power of two of nanoseconds in few characters: 1us, 33us, 1ms.
fn short(ns: u64) -> String {
    words::ns_rough(ns as f64).replace(' ', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_span_what_was_seen_and_a_rare_tail_still_shows() {
        let fast = Distribution::from_ns([900; 99].into_iter().chain([40_000]));
        let slow = Distribution::from_ns([30_000; 50]);
        let map = HeatMap::of([
            ("POLL".to_string(), &fast),
            ("C6".to_string(), &slow),
            ("none".to_string(), &Distribution::default()),
        ]);
        assert_eq!((map.rows.len(), map.columns_ns[0], *map.columns_ns.last().unwrap()), (2, 1024, 65_536));
        let lines = map.text(80, false);
        assert!(lines[0].starts_with("POLL  @@@@@") && lines[0].trim_end().ends_with("....."), "{lines:?}");
        assert!(map.text(80, true)[0].contains("\u{1b}[38;5;16;48;5;229m"));
        assert!(map.text(80, false).iter().all(|l| l.chars().count() <= 80));
        assert!(HeatMap::of([]).rows.is_empty());
        assert!(map.svg("heat", "t").contains("class=\"heat h8\""));
    }
}
