//! Names of series: beside the last point on a wide page, in rows above the plot on a phone.

use super::svg::{Anchor, Svg, text_width};
use super::{N_STYLES, arm_class, spread};
use crate::view::width::{begin, places};

/// Longest name that is drawn whole; foreign text may be any length.
const LONGEST: usize = 34;

/// The style of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::report) enum Style {
    /// The style of this arm or run.
    Arm(usize),
    /// A line to compare with: dashed, grey, no marks.
    Ideal,
}

impl Style {
    /// The class of its colour.
    pub(super) fn class(self) -> String {
        match self {
            Style::Arm(index) => format!("a{}", arm_class(index)),
            Style::Ideal => "ideal".into(),
        }
    }
}

/// A name cut to what can be drawn.
pub(super) fn short(name: &str) -> String {
    short_to(name, LONGEST)
}

/// The same, cut to so many places of a terminal: a Chinese character is as wide as two Latin ones.
pub(super) fn short_to(name: &str, longest: usize) -> String {
    if places(name) <= longest {
        return name.to_string();
    }
    format!("{}…", begin(name, longest.saturating_sub(1)))
}

/// Pixels that names need at the right of a wide plot.
pub(super) fn room(names: &[(String, Style)]) -> f64 {
    if names.len() < 2 {
        return 8.0;
    }
    names.iter().map(|(name, _)| text_width(&short(name), 14.5)).fold(0.0, f64::max) + 20.0
}

/// Draws rows of names from the top; the height they took.
pub(super) fn rows(svg: &mut Svg, names: &[(String, Style)], left: f64, right: f64) -> f64 {
    if names.len() < 2 {
        return 0.0;
    }
    let (mut x, mut y) = (left, 14.0);
    for (name, style) in names {
        let name = short(name);
        // Bold, and fonts differ: a little more than the average.
        let width = text_width(&name, 15.5) + 34.0;
        if x > left && x + width > right {
            (x, y) = (left, y + 20.0);
        }
        key(svg, *style, (x + 8.0, y - 4.0));
        svg.text(&format!("name {}", style.class()), Anchor::Start, (x + 20.0, y), &name);
        x += width;
    }
    y + 10.0
}

/// The mark or line that stands for a series.
fn key(svg: &mut Svg, style: Style, at: (f64, f64)) {
    match style {
        Style::Arm(index) => svg.mark(&format!("mark a{}", arm_class(index)), index.min(N_STYLES - 1), at, 4.8),
        Style::Ideal => svg.line("ideal", (at.0 - 8.0, at.1), (at.0 + 8.0, at.1)),
    }
}

/// Names at the right, each near its last point, with a thin line where it had to move.
pub(super) fn beside(svg: &mut Svg, names: &[(String, Style, (f64, f64))], right: f64, (top, bottom): (f64, f64)) {
    if names.len() < 2 {
        return;
    }
    let wanted: Vec<f64> = names.iter().map(|n| n.2.1).collect();
    let gap = 18.0_f64.min((bottom - top) / names.len() as f64);
    for ((name, style, last), at) in names.iter().zip(spread(&wanted, gap, top, bottom)) {
        if (at - last.1).abs() > 5.0 || right - last.0 > 24.0 {
            svg.path("join", &[(last.0 + 6.0, last.1), (right + 4.0, at), (right + 10.0, at)], false);
        }
        svg.text(&format!("name {}", style.class()), Anchor::Start, (right + 13.0, at + 4.0), &short(name));
    }
}
