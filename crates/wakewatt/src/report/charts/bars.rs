//! Lengths from zero, in groups: one group for each thing, one bar for each series, the value at its end.
//!
//! Bars begin at zero or they lie, so there is no logarithmic one; `ranges` is the figure for factors.

use super::super::data::{Cell, Data, Show};
use super::Chart;
use super::arm_class;
use super::axis::{AxisSpec, Scale};
use super::legend::{self, Style};
use super::svg::{Anchor, Svg, text_width};
use wakewatt_words::{say, word};

/// One bar.
#[derive(Clone, Debug)]
pub(in crate::report) struct Bar {
    /// Which series.
    pub(in crate::report) series: usize,
    /// Its length.
    pub(in crate::report) value: f64,
    /// Why it does not count.
    pub(in crate::report) invalid_because: Option<String>,
}

/// The figure.
#[derive(Clone, Debug)]
pub(in crate::report) struct Bars {
    /// What it shows.
    pub(in crate::report) title: String,
    /// What the groups are: the head of the table's first column.
    pub(in crate::report) of: String,
    /// The lengths.
    pub(in crate::report) x: AxisSpec,
    /// Series; a single one is not named in the figure.
    pub(in crate::report) series: Vec<String>,
    /// Name and bars of each group.
    pub(in crate::report) groups: Vec<(String, Vec<Bar>)>,
}

const THICK: f64 = 18.0;

impl Bars {
    pub(in crate::report) fn new(title: impl Into<String>, of: &str, axis: &str, show: Show) -> Bars {
        let x = AxisSpec::new(axis, show, Scale::Zero);
        Bars { title: title.into(), of: of.into(), x, series: Vec::new(), groups: Vec::new() }
    }

    /// Adds a group of what is finite and not negative.
    pub(in crate::report) fn add(&mut self, name: impl Into<String>, bars: impl IntoIterator<Item = Bar>) {
        let bars: Vec<Bar> = bars.into_iter().filter(|b| b.value.is_finite() && b.value >= 0.0).collect();
        if !bars.is_empty() {
            self.groups.push((name.into(), bars));
        }
    }
}

impl Chart for Bars {
    fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    fn one(&self, id: &str, class: &str, width: f64) -> String {
        let is_wide = class == "wide";
        let names: Vec<(String, Style)> =
            self.series.iter().enumerate().map(|(i, name)| (name.clone(), Style::Arm(i))).collect();
        let widest = self.groups.iter().map(|(name, _)| text_width(&legend::short(name), 13.0)).fold(40.0, f64::max);
        let left = if is_wide { widest + 14.0 } else { 0.0 };
        let (head, gap) = if is_wide { (0.0, 14.0) } else { (18.0, 12.0) };
        let n_bars: usize = self.groups.iter().map(|(_, bars)| bars.len()).sum();
        let mut probe = Svg::new(width, 0.0);
        let top = legend::rows(&mut probe, &names, left, width) + 6.0;
        let bottom = top + n_bars as f64 * THICK + self.groups.len() as f64 * (head + gap);
        let mut svg = Svg::new(width, bottom + 44.0);
        legend::rows(&mut svg, &names, left, width);
        let values: Vec<f64> = self.groups.iter().flat_map(|(_, bars)| bars).map(|b| b.value).collect();
        let label = values.iter().map(|v| text_width(&self.x.show.text(*v), 12.5)).fold(30.0, f64::max);
        let right = (width - label - 10.0).max(left + 60.0);
        let x = self.x.around(&values, left, right);
        for tick in x.ticks(if is_wide { 7 } else { 4 }) {
            svg.line("grid", (x.at(tick), top), (x.at(tick), bottom));
            svg.text_if_free("tick", Anchor::Middle, (x.at(tick), bottom + 18.0), &self.x.show.text(tick));
        }
        svg.line("base", (left, top), (left, bottom));
        svg.text("axis", Anchor::End, (width - 2.0, bottom + 37.0), &self.x.title);
        let mut y = top + gap / 2.0;
        for (name, bars) in &self.groups {
            if is_wide {
                let middle = y + bars.len() as f64 * THICK / 2.0 + 4.0;
                svg.text("label", Anchor::End, (left - 10.0, middle), &legend::short(name));
            } else {
                svg.text("label", Anchor::Start, (4.0, y + 13.0), &legend::short(name));
                y += head;
            }
            for bar in bars {
                let arm = arm_class(bar.series);
                let kind = if bar.invalid_because.is_some() { "empty" } else { "bar" };
                svg.rect(&format!("{kind} a{arm}"), (left, y + 2.0), (x.at(bar.value) - left, THICK - 4.0));
                let value = self.x.show.text(bar.value);
                svg.text(&format!("value a{arm}"), Anchor::Start, (x.at(bar.value) + 6.0, y + 13.0), &value);
                y += THICK;
            }
            y += gap;
        }
        let desc: Vec<String> = self.groups.iter().map(|(name, bars)| say!("{name}: {} bars", bars.len())).collect();
        svg.finish(id, class, &self.title, &say!("{}; the numbers are in its table", desc.join("; ")))
    }

    fn data(&self) -> Data {
        let names: Vec<String> = if self.series.is_empty() { vec![self.x.title.clone()] } else { self.series.clone() };
        let mut data = Data::with(&[(self.of.as_str(), Show::Text)]);
        data.columns.extend(names.iter().map(|name| (name.clone(), self.x.show)));
        data.columns.push((word!("does not count because").into(), Show::Text));
        for (name, bars) in &self.groups {
            let mut row: Vec<Cell> = vec![name.clone().into()];
            row.extend((0..names.len()).map(|i| Cell::of(bars.iter().find(|b| b.series == i).map(|b| b.value))));
            let why: Vec<String> = bars.iter().filter_map(|b| b.invalid_because.clone()).collect();
            row.push(why.join("; ").into());
            data.rows.push(row);
        }
        data
    }
}
