//! Does every round agree: the value of every block, round by round in the order they ran.
//!
//! One column per round, its blocks joined by a thin line; within the column they stand in the order they ran. A block
//! that does not count is drawn hollow. If the effect were drift or luck, it would show here.

use super::super::words;
use super::axis::LogAxis;
use super::svg::{Anchor, Svg, text_width};
use super::{WIDTHS, arm_class, spread};
use std::collections::BTreeSet;
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::samples::experiment::Unit;
use wakewatt_words::{say, word};

/// One block.
#[derive(Debug)]
pub(crate) struct Dot {
    /// Round, from 0.
    pub(crate) round: usize,
    /// Place within the round, from 0, in the order run.
    pub(crate) place: usize,
    /// Arm style.
    pub(crate) index: usize,
    /// The block's value.
    pub(crate) value: f64,
    /// Counts?
    pub(crate) is_counted: bool,
}

/// Rounds whose marks are joined by a line.
const MOST_JOINED: usize = 60;

/// Draws the figure at both widths; `arms` are the names in order.
pub(crate) fn draw(id: &str, title: &str, unit: Unit, arms: &[String], dots: &[Dot]) -> String {
    let draw = |(class, width): &(&str, f64)| one(&format!("{id}-{class}"), class, *width, (title, unit), arms, dots);
    WIDTHS.iter().map(draw).collect()
}

fn one(id: &str, class: &str, width: f64, (title, unit): (&str, Unit), arms: &[String], dots: &[Dot]) -> String {
    let is_wide = class == "wide";
    let widest = arms.iter().map(|a| text_width(a, 12.5)).fold(0.0, f64::max);
    // On a phone the names go above the plot, so the rounds keep the width.
    let (left, right) = (60.0, if is_wide { width - widest - 26.0 } else { width - 8.0 });
    let (top, bottom) =
        if is_wide { (14.0, 264.0) } else { (12.0 + 18.0 * arms.len() as f64, 222.0 + 18.0 * arms.len() as f64) };
    let mut svg = Svg::new(width, bottom + 44.0);
    let y = LogAxis::around(dots.iter().map(|d| d.value), 2.0, bottom, top);
    for tick in y.ticks(7) {
        svg.line("grid", (left, y.at(tick)), (right, y.at(tick)));
        svg.text("tick", Anchor::End, (left - 8.0, y.at(tick) + 4.0), &words::value(unit, tick));
    }
    let n_rounds = dots.iter().map(|d| d.round.saturating_add(1)).max().unwrap_or(1);
    let n_places = dots.iter().map(|d| d.place + 1).max().unwrap_or(1);
    let column = (right - left) / n_rounds as f64;
    let x = |d: &Dot| {
        let within = (d.place as f64 + 0.5) / n_places as f64 - 0.5;
        left + column * (d.round as f64 + 0.5 + within * 0.62)
    };
    let every = (n_rounds as f64 * 22.0 / (right - left)).ceil().max(1.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at least 1; a float cast saturates")]
    for round in (0..n_rounds).step_by(every as usize) {
        let at = left + column * (round as f64 + 0.5);
        svg.text("tick", Anchor::Middle, (at, bottom + 18.0), &(round + 1).to_string());
    }
    // Those that ran: a file may give them any number. Of hundreds the lines would hide the marks.
    let drawn: BTreeSet<usize> = dots.iter().map(|d| d.round).collect();
    let is_joined = drawn.len() <= MOST_JOINED;
    for round in drawn.into_iter().filter(|_| is_joined) {
        let mut points: Vec<(f64, f64)> =
            dots.iter().filter(|d| d.round == round && d.is_counted).map(|d| (x(d), y.at(d.value))).collect();
        points.arrange_by(|a, b| a.0.total_cmp(&b.0));
        svg.path("join", &points, false);
    }
    svg.line("base", (left, bottom), (right, bottom));
    svg.text("axis", Anchor::End, (right, bottom + 37.0), word!("round, in the order run; logarithmic"));
    let radius = match column {
        _ if !is_joined => 2.0,
        narrow if narrow < 26.0 => 3.6,
        _ => 4.8,
    };
    for dot in dots {
        let hollow = if dot.is_counted { "mark" } else { "hollow" };
        let arm = arm_class(dot.index);
        svg.mark(&format!("{hollow} a{arm}"), arm, (x(dot), y.at(dot.value)), radius);
    }
    names(&mut svg, is_wide, arms, dots, |v| y.at(v), (left, right, top, bottom));
    svg.finish(
        id,
        class,
        title,
        &say!("{} measurements in {n_rounds} rounds; the values are in the table of measurements", dots.len()),
    )
}

fn names(
    svg: &mut Svg,
    is_wide: bool,
    arms: &[String],
    dots: &[Dot],
    y: impl Fn(f64) -> f64,
    (left, right, top, bottom): (f64, f64, f64, f64),
) {
    let middle =
        |i: usize| words::median(dots.iter().filter(|d| d.index == i && d.is_counted).map(|d| d.value)).map_or(top, &y);
    let wanted: Vec<f64> = (0..arms.len()).map(middle).collect();
    for ((i, name), at) in arms.iter().enumerate().zip(spread(&wanted, 18.0, top, bottom)) {
        let class = arm_class(i);
        if is_wide {
            svg.text(&format!("name a{class}"), Anchor::Start, (right + 14.0, at + 4.0), name);
        } else {
            let row = 12.0 + 18.0 * i as f64;
            svg.mark(&format!("mark a{class}"), class, (left + 5.0, row - 4.0), 4.5);
            svg.text(&format!("name a{class}"), Anchor::Start, (left + 16.0, row), name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_of_any_number_is_drawn_and_not_counted_up_to() {
        let dot = |round, place, value| Dot { round, place, index: place, value, is_counted: true };
        for last in [1, 1_000_000_000_000_000_000, usize::MAX] {
            let dots = [dot(0, 0, 30.0), dot(0, 1, 20.0), dot(last, 0, 31.0), dot(last, 1, 21.0)];
            let svg = draw("r", "every block", Unit::Nanoseconds, &["found".into(), "poll".into()], &dots);
            assert_eq!(svg.matches("class=\"join\"").count(), 4, "two rounds, two widths");
            assert!(svg.matches("</text>").count() < 200, "{last}: {}", svg.len());
        }
    }
}
