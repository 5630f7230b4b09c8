//! Every CPU as a column: the share of time it was busy, one panel for each run, all to one scale, so that where the work
//! went is seen at a glance. Kernel time is the darker foot of the column.

use super::super::data::{Cell, Data, Show};
use super::super::words;
use super::Chart;
use super::arm_class;
use super::legend;
use super::svg::{Anchor, Svg};
use wakewatt_words::{say, word};

/// One column.
#[derive(Clone, Copy, Debug)]
pub(in crate::report) struct Column {
    pub(in crate::report) cpu: u32,
    /// Busy, kernel time included.
    pub(in crate::report) busy_ratio: f64,
    /// In the kernel.
    pub(in crate::report) system_ratio: f64,
}

/// The figure.
#[derive(Clone, Debug, Default)]
pub(in crate::report) struct Columns {
    /// What it shows.
    pub(in crate::report) title: String,
    /// Name, style and columns of each panel.
    pub(in crate::report) panels: Vec<(String, usize, Vec<Column>)>,
}

impl Columns {
    /// Adds a panel of what can be drawn.
    pub(in crate::report) fn add(&mut self, name: String, index: usize, columns: impl IntoIterator<Item = Column>) {
        let columns: Vec<Column> =
            columns.into_iter().filter(|c| c.busy_ratio.is_finite() && c.system_ratio.is_finite()).collect();
        if !columns.is_empty() {
            self.panels.push((name, index, columns));
        }
    }
}

const PANEL: f64 = 74.0;
const STEP: f64 = 132.0;

impl Chart for Columns {
    fn is_empty(&self) -> bool {
        self.panels.is_empty()
    }

    fn one(&self, id: &str, class: &str, width: f64) -> String {
        // Side by side on a wide page, two in a row; below each other on a phone.
        let n_across = if class == "wide" && self.panels.len() > 1 { 2 } else { 1 };
        let panel_width = (width - 28.0 * (n_across - 1) as f64) / n_across as f64;
        let n_rows = self.panels.len().div_ceil(n_across);
        let mut svg = Svg::new(width, 8.0 + STEP * n_rows as f64);
        let busiest = self.panels.iter().flat_map(|p| &p.2).map(|c| c.busy_ratio).fold(0.0, f64::max);
        // A tenth of load would be a row of dots at full scale.
        let scale = [0.1, 0.2, 0.4, 0.6, 1.0].into_iter().find(|s| busiest <= *s).unwrap_or(1.0);
        for (i, (name, index, columns)) in self.panels.iter().enumerate() {
            let left = (panel_width + 28.0) * (i % n_across) as f64 + 42.0;
            let right = left - 42.0 + panel_width;
            let top = 30.0 + STEP * (i / n_across) as f64;
            let arm = arm_class(*index);
            let y = |ratio: f64| top + PANEL * (1.0 - (ratio / scale).clamp(0.0, 1.0));
            let longest = if n_across == 1 && class == "wide" { 90 } else { 36 };
            svg.text(&format!("name a{arm}"), Anchor::Start, (left, top - 10.0), &legend::short_to(name, longest));
            for tick in [0.0, scale / 2.0, scale] {
                svg.line(if tick == 0.0 { "base" } else { "grid" }, (left, y(tick)), (right, y(tick)));
                svg.text("tick", Anchor::End, (left - 7.0, y(tick) + 4.0), &words::percent(tick));
            }
            let step = (right - left) / columns.len() as f64;
            let air = if step > 6.0 { 1.5 } else { step * 0.12 };
            let every = ((34.0 / step).ceil().max(1.0), columns.len());
            for (k, column) in columns.iter().enumerate() {
                let x = left + step * k as f64;
                let (up, foot) = (y(column.busy_ratio), y(column.system_ratio.min(column.busy_ratio)));
                svg.rect(&format!("bar a{arm}"), (x + air, up), (step - 2.0 * air, y(0.0) - up));
                svg.rect(&format!("foot a{arm}"), (x + air, foot), (step - 2.0 * air, y(0.0) - foot));
                if k as f64 % every.0 < 0.5 {
                    let at = (x + step / 2.0, y(0.0) + 16.0);
                    svg.text_if_free("tick", Anchor::Middle, at, &column.cpu.to_string());
                }
            }
            svg.text_if_free("axis", Anchor::End, (right, y(0.0) + 16.0), word!("CPU"));
        }
        let desc: Vec<String> = self.panels.iter().map(|(name, _, c)| say!("{name}: {} CPUs", c.len())).collect();
        svg.finish(id, class, &self.title, &say!("{}; the numbers are in its table", desc.join("; ")))
    }

    fn data(&self) -> Data {
        let mut data = Data { columns: vec![(word!("CPU").into(), Show::Number)], rows: Vec::new() };
        for (name, ..) in &self.panels {
            data.columns.push((say!("{name}: busy"), Show::Ratio));
            data.columns.push((say!("{name}: kernel"), Show::Ratio));
        }
        let mut cpus: Vec<u32> = self.panels.iter().flat_map(|p| &p.2).map(|c| c.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        for cpu in cpus {
            let mut row: Vec<Cell> = vec![f64::from(cpu).into()];
            for (.., columns) in &self.panels {
                let column = columns.iter().find(|c| c.cpu == cpu);
                row.extend([column.map(|c| c.busy_ratio).into(), column.map(|c| c.system_ratio).into()]);
            }
            data.rows.push(row);
        }
        data
    }
}
