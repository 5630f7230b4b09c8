//! Marks on rows with their ranges: what is claimed beside what was measured, a meter's mean between its least and most.

use super::super::data::{Cell, Data, Show};
use super::Chart;
use super::arm_class;
use super::axis::AxisSpec;
use super::legend::{self, Style};
use super::svg::{Anchor, Svg, text_width};
use wakewatt_words::{say, word};

/// One mark.
#[derive(Clone, Debug)]
pub(in crate::report) struct Mark {
    /// Which series.
    pub(in crate::report) series: usize,
    pub(in crate::report) value: f64,
    /// From and to.
    pub(in crate::report) range: Option<(f64, f64)>,
}

/// The figure.
#[derive(Clone, Debug)]
pub(in crate::report) struct Ranges {
    /// What it shows.
    pub(in crate::report) title: String,
    /// What the rows are.
    pub(in crate::report) of: String,
    /// What a range is: the smallest to the largest, 95 %.
    pub(in crate::report) range: &'static str,
    /// Across.
    pub(in crate::report) x: AxisSpec,
    /// Series. The first is drawn hollow if `is_first_claimed`.
    pub(in crate::report) series: Vec<String>,
    /// Hollow marks for the first series.
    pub(in crate::report) is_first_claimed: bool,
    /// Name and marks of each row.
    pub(in crate::report) rows: Vec<(String, Vec<Mark>)>,
}

const LINE: f64 = 20.0;

impl Ranges {
    /// Adds a row of what can be drawn.
    pub(in crate::report) fn add(&mut self, name: impl Into<String>, marks: impl IntoIterator<Item = Mark>) {
        let scale = self.x.scale;
        let mut marks: Vec<Mark> = marks.into_iter().filter(|m| scale.has(m.value)).collect();
        for mark in &mut marks {
            mark.range = mark.range.filter(|(low, high)| scale.has(*low) && scale.has(*high));
        }
        if !marks.is_empty() {
            self.rows.push((name.into(), marks));
        }
    }
}

impl Chart for Ranges {
    fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn one(&self, id: &str, class: &str, width: f64) -> String {
        let is_wide = class == "wide";
        let names: Vec<(String, Style)> =
            self.series.iter().enumerate().map(|(i, name)| (name.clone(), Style::Arm(i))).collect();
        let widest = self.rows.iter().map(|(name, _)| text_width(&legend::short(name), 13.0)).fold(40.0, f64::max);
        let left = if is_wide { widest + 22.0 } else { 6.0 };
        let (head, gap) = if is_wide { (0.0, 10.0) } else { (20.0, 8.0) };
        let mut probe = Svg::new(width, 0.0);
        let top = legend::rows(&mut probe, &names, if is_wide { left } else { 0.0 }, width) + 6.0;
        let n_lines: usize = self.rows.iter().map(|(_, marks)| marks.len()).sum();
        let bottom = top + n_lines as f64 * LINE + self.rows.len() as f64 * (head + gap);
        let mut svg = Svg::new(width, bottom + 44.0);
        legend::rows(&mut svg, &names, if is_wide { left } else { 0.0 }, width);
        let marks = || self.rows.iter().flat_map(|(_, marks)| marks);
        let ends = |m: &Mark| [m.value].into_iter().chain(m.range.into_iter().flat_map(|(l, h)| [l, h]));
        let values: Vec<f64> = marks().flat_map(ends).collect();
        let label = marks().map(|m| text_width(&self.x.show.text(m.value), 12.5)).fold(30.0, f64::max);
        let right = (width - label - 14.0).max(left + 60.0);
        let x = self.x.around(&values, left, right);
        for tick in x.ticks(if is_wide { 7 } else { 4 }) {
            svg.line("grid", (x.at(tick), top), (x.at(tick), bottom));
            svg.text_if_free("tick", Anchor::Middle, (x.at(tick), bottom + 18.0), &self.x.show.text(tick));
        }
        svg.line("base", (left, bottom), (right, bottom));
        svg.text("axis", Anchor::End, (width - 2.0, bottom + 37.0), &self.x.title);
        let mut y = top + gap / 2.0;
        for (name, marks) in &self.rows {
            if is_wide {
                let middle = y + marks.len() as f64 * LINE / 2.0 + 4.0;
                svg.text("label", Anchor::End, (left - 14.0, middle), &legend::short(name));
            } else {
                svg.text("label", Anchor::Start, (0.0, y + 13.0), &legend::short(name));
                y += head;
            }
            for mark in marks {
                let (arm, middle) = (arm_class(mark.series), y + LINE / 2.0);
                let mut end = x.at(mark.value);
                if let Some((low, high)) = mark.range {
                    svg.line(&format!("ci a{arm}"), (x.at(low), middle), (x.at(high), middle));
                    end = end.max(x.at(high));
                }
                let kind = if self.is_first_claimed && mark.series == 0 { "hollow" } else { "mark" };
                svg.mark(&format!("{kind} a{arm}"), arm, (x.at(mark.value), middle), 4.8);
                let value = self.x.show.text(mark.value);
                svg.text(&format!("value a{arm}"), Anchor::Start, (end + 10.0, middle + 4.0), &value);
                y += LINE;
            }
            y += gap;
        }
        let desc: Vec<String> = self.rows.iter().map(|(name, marks)| say!("{name}: {} marks", marks.len())).collect();
        svg.finish(id, class, &self.title, &say!("{}; the numbers are in its table", desc.join("; ")))
    }

    fn data(&self) -> Data {
        let mut data = Data::with(&[(self.of.as_str(), Show::Text), (word!("what"), Show::Text)]);
        data.columns.push((self.x.title.clone(), self.x.show));
        data.columns.push((say!("{}, from", self.range), self.x.show));
        data.columns.push((word!("to").into(), self.x.show));
        for (name, marks) in &self.rows {
            for mark in marks {
                let series = self.series.get(mark.series).cloned().unwrap_or_default();
                let mut row: Vec<Cell> = vec![name.clone().into(), series.into(), mark.value.into()];
                row.extend([mark.range.map(|r| r.0).into(), mark.range.map(|r| r.1).into()]);
                data.rows.push(row);
            }
        }
        data
    }
}
