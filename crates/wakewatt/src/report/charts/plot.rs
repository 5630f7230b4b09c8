//! One value against another: lines with marks, their intervals, lines to compare with, levels, and moments of change.
//!
//! A point that does not count is hollow and off the line, with its reason in the table. Names stand beside the lines
//! (`legend`). A number that is not finite, or not positive on a logarithmic axis, is not drawn and not in the table.

use super::super::data::{Cell, Data, Show};
use super::Chart;
use super::arm_class;
use super::axis::{Axis, AxisSpec};
use super::legend::{self, Style};
use super::svg::{Anchor, Svg, text_width};
use wakewatt_core::arrange::Arrange as _;
use wakewatt_words::{say, word};

/// A point.
#[derive(Clone, Debug, Default)]
pub(in crate::report) struct Point {
    /// Across.
    pub(in crate::report) x: f64,
    /// Up.
    pub(in crate::report) y: f64,
    /// Its 95 % interval.
    pub(in crate::report) interval: Option<(f64, f64)>,
    /// Why it does not count.
    pub(in crate::report) invalid_because: Option<String>,
}

/// A line.
#[derive(Clone, Debug)]
pub(in crate::report) struct Series {
    pub(in crate::report) name: String,
    /// Its look.
    pub(in crate::report) style: Style,
    /// Its points.
    pub(in crate::report) points: Vec<Point>,
}

/// A level found in a line.
#[derive(Clone, Debug)]
pub(in crate::report) struct Level {
    /// Which series.
    pub(in crate::report) series: usize,
    /// From and to, across.
    pub(in crate::report) x: (f64, f64),
    /// Its height.
    pub(in crate::report) y: f64,
}

/// The figure.
#[derive(Clone, Debug)]
pub(in crate::report) struct Plot {
    /// What it shows.
    pub(in crate::report) title: String,
    /// Across.
    pub(in crate::report) x: AxisSpec,
    /// Up.
    pub(in crate::report) y: AxisSpec,
    /// Lines.
    pub(in crate::report) series: Vec<Series>,
    /// Levels.
    pub(in crate::report) levels: Vec<Level>,
    /// Moments of change, with what was changed.
    pub(in crate::report) marks: Vec<(f64, String)>,
    /// No line between points: a cloud.
    pub(in crate::report) is_cloud: bool,
}

impl Plot {
    pub(in crate::report) fn new(title: impl Into<String>, x: AxisSpec, y: AxisSpec) -> Plot {
        let title = title.into();
        Plot { title, x, y, series: Vec::new(), levels: Vec::new(), marks: Vec::new(), is_cloud: false }
    }

    /// Adds a line; what cannot be drawn is dropped here, once.
    pub(in crate::report) fn add(
        &mut self,
        name: impl Into<String>,
        style: Style,
        points: impl IntoIterator<Item = Point>,
    ) {
        let (x, y) = (self.x.scale, self.y.scale);
        let mut points: Vec<Point> = points.into_iter().filter(|p| x.has(p.x) && y.has(p.y)).collect();
        for point in &mut points {
            point.interval = point.interval.filter(|(low, high)| y.has(*low) && y.has(*high));
        }
        points.arrange_by(|a, b| a.x.total_cmp(&b.x));
        if !points.is_empty() {
            self.series.push(Series { name: name.into(), style, points });
        }
    }

    fn draw_axes(&self, svg: &mut Svg, (x, y): (&Axis, &Axis), [left, top, right, bottom]: [f64; 4]) {
        let n = ((bottom - top) / 34.0).max(2.0);
        for tick in y.ticks(to_count(n)) {
            svg.line("grid", (left, y.at(tick)), (right, y.at(tick)));
            svg.text("tick", Anchor::End, (left - 8.0, y.at(tick) + 4.0), &self.y.show.text(tick));
        }
        let widest = x.ticks(8).iter().map(|t| text_width(&self.x.show.text(*t), 12.0)).fold(20.0, f64::max);
        for tick in x.ticks(to_count((right - left) / (widest + 12.0)).clamp(2, 11)) {
            svg.line("grid", (x.at(tick), top), (x.at(tick), bottom));
            svg.text_if_free("tick", Anchor::Middle, (x.at(tick), bottom + 18.0), &self.x.show.text(tick));
        }
        svg.line("base", (left, bottom), (right, bottom));
        let log = |axis: &Axis| if matches!(axis, Axis::Log(..)) { word!(", logarithmic") } else { "" };
        svg.text("axis", Anchor::Start, (0.0, top - 12.0), &format!("{}{}", self.y.title, log(y)));
        svg.text("axis", Anchor::End, (right, bottom + 37.0), &format!("{}{}", self.x.title, log(x)));
    }

    fn draw_series(&self, svg: &mut Svg, series: &Series, (x, y): (&Axis, &Axis)) {
        let at = |p: &Point| (x.at(p.x), y.at(p.y));
        let class = series.style.class();
        let line: Vec<(f64, f64)> = series.points.iter().filter(|p| p.invalid_because.is_none()).map(at).collect();
        let Style::Arm(index) = series.style else {
            svg.path("ideal", &line, false);
            return;
        };
        if !self.is_cloud {
            svg.path(&format!("line {class}"), &line, false);
        }
        for point in &series.points {
            let (px, py) = at(point);
            if let Some((low, high)) = point.interval {
                svg.line(&format!("whisker {class}"), (px, y.at(low)), (px, y.at(high)));
            }
            let mark = if point.invalid_because.is_some() { "hollow" } else { "mark" };
            let r = if series.points.len() > 30 { 2.4 } else { 4.2 };
            svg.mark(&format!("{mark} {class}"), arm_class(index), (px, py), r);
        }
    }

    fn draw_levels(&self, svg: &mut Svg, (x, y): (&Axis, &Axis)) {
        for level in self.levels.iter().filter(|l| self.y.scale.has(l.y)) {
            let Some(series) = self.series.get(level.series) else { continue };
            let class = series.style.class();
            let (from, to, up) = (x.at(level.x.0), x.at(level.x.1), y.at(level.y));
            // The first curve's labels below it, the others' above: the second is the slower one.
            let down = if level.series == 0 { 20.0 } else { -10.0 };
            let value = self.y.show.text(level.y);
            svg.text_if_free(&format!("value {class}"), Anchor::Middle, (f64::midpoint(from, to), up + down), &value);
        }
    }
}

impl Chart for Plot {
    fn is_empty(&self) -> bool {
        self.series.iter().all(|s| s.style == Style::Ideal)
    }

    fn one(&self, id: &str, class: &str, width: f64) -> String {
        let is_wide = class == "wide";
        let names: Vec<(String, Style)> = self.series.iter().map(|s| (s.name.clone(), s.style)).collect();
        let points = || self.series.iter().flat_map(|s| &s.points);
        let ys: Vec<f64> =
            points().flat_map(|p| [p.y].into_iter().chain(p.interval.into_iter().flat_map(|(l, h)| [l, h]))).collect();
        let marks = self.marks.iter().filter(|m| self.x.scale.has(m.0));
        let xs: Vec<f64> = points().map(|p| p.x).chain(marks.clone().map(|m| m.0)).collect();
        let probe = self.y.around(&ys, 0.0, 100.0);
        let widest = probe.ticks(7).iter().map(|t| text_width(&self.y.show.text(*t), 12.0)).fold(24.0, f64::max);
        let left = widest + 14.0;
        let right = if is_wide { width - legend::room(&names) } else { width - 10.0 };
        let height = if is_wide { 250.0 } else { 210.0 };
        let mut legend_svg = Svg::new(width, 0.0);
        let legend_height = if is_wide { 0.0 } else { legend::rows(&mut legend_svg, &names, 0.0, width) };
        let n_marks = marks.clone().count().min(4);
        let top = legend_height + 26.0 + 18.0 * n_marks as f64;
        let bottom = top + height;
        let mut svg = Svg::new(width, bottom + 44.0);
        if !is_wide {
            legend::rows(&mut svg, &names, 0.0, width);
        }
        let x = self.x.around(&xs, left + 8.0, right - 8.0);
        let y = self.y.around(&ys, bottom, top);
        self.draw_axes(&mut svg, (&x, &y), [left, top, right, bottom]);
        for (i, (at, what)) in marks.enumerate() {
            let (px, row) = (x.at(*at), top - 26.0 - 18.0 * (i % 4) as f64);
            svg.line("one", (px, row + 4.0), (px, bottom));
            let what = legend::short_to(what, if is_wide { 80 } else { 40 });
            let anchor = if px > (left + right) / 2.0 { Anchor::End } else { Anchor::Start };
            let room = if px > (left + right) / 2.0 { px } else { width - px };
            let what = legend::short_to(&what, to_count(room / 7.4).max(4));
            let dx = if px > (left + right) / 2.0 { -6.0 } else { 6.0 };
            svg.text("label", anchor, (px + dx, row + 10.0), &what);
        }
        for series in &self.series {
            self.draw_series(&mut svg, series, (&x, &y));
        }
        self.draw_levels(&mut svg, (&x, &y));
        if is_wide {
            let named: Vec<(String, Style, (f64, f64))> = self
                .series
                .iter()
                .filter_map(|s| s.points.last().map(|p| (s.name.clone(), s.style, (x.at(p.x), y.at(p.y)))))
                .collect();
            legend::beside(&mut svg, &named, right, (top + 6.0, bottom - 4.0));
        }
        let desc: Vec<String> = self.series.iter().map(|s| say!("{}: {} points", s.name, s.points.len())).collect();
        svg.finish(id, class, &self.title, &say!("{}; the numbers are in its table", desc.join("; ")))
    }

    /// One row for each place across, one column for each line, and its interval where it has one.
    fn data(&self) -> Data {
        let mut data = Data { columns: vec![(self.x.title.clone(), self.x.show)], rows: Vec::new() };
        let mut xs: Vec<f64> = self.series.iter().flat_map(|s| &s.points).map(|p| p.x).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        // A cloud has places that are met twice: every point is a row of its own.
        let is_met_twice = self.series.iter().any(|s| s.points.windows(2).any(|w| w[0].x >= w[1].x));
        if self.is_cloud || is_met_twice {
            return self.long();
        }
        let has_interval = |s: &Series| s.points.iter().any(|p| p.interval.is_some());
        for series in &self.series {
            data.columns.push((series.name.clone(), self.y.show));
            if has_interval(series) {
                data.columns.push((say!("{}, low", series.name), self.y.show));
                data.columns.push((say!("{}, high", series.name), self.y.show));
            }
        }
        data.columns.push((word!("does not count because").into(), Show::Text));
        for x in xs {
            let mut row: Vec<Cell> = vec![x.into()];
            let mut why: Vec<String> = Vec::new();
            for series in &self.series {
                let point = series.points.iter().find(|p| p.x.total_cmp(&x).is_eq());
                row.push(point.map(|p| p.y).into());
                if has_interval(series) {
                    let interval = point.and_then(|p| p.interval);
                    row.extend([interval.map(|i| i.0).into(), interval.map(|i| i.1).into()]);
                }
                why.extend(point.and_then(|p| p.invalid_because.as_ref()).map(|w| format!("{}: {w}", series.name)));
            }
            row.push(why.join("; ").into());
            data.rows.push(row);
        }
        data
    }
}

impl Plot {
    /// One row for each point.
    fn long(&self) -> Data {
        let columns =
            [(word!("series"), Show::Text), ("", self.x.show), ("", self.y.show), (word!("low"), self.y.show)];
        let mut data = Data::with(&columns);
        data.columns[1].0.clone_from(&self.x.title);
        data.columns[2].0.clone_from(&self.y.title);
        data.columns.extend([
            (word!("high").to_string(), self.y.show),
            (word!("does not count because").to_string(), Show::Text),
        ]);
        for series in &self.series {
            for p in &series.points {
                let why = p.invalid_because.clone().unwrap_or_default();
                let (low, high) = (p.interval.map(|i| i.0), p.interval.map(|i| i.1));
                data.rows.push(vec![
                    series.name.clone().into(),
                    p.x.into(),
                    p.y.into(),
                    low.into(),
                    high.into(),
                    why.into(),
                ]);
            }
        }
        data
    }
}

/// A small count of pixels over pixels.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturating, and negative becomes 0
fn to_count(value: f64) -> usize {
    value.max(0.0) as usize
}
