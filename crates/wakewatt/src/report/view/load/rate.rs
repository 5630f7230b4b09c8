//! What was done: score against load level, requests per second against clients.

use super::super::super::charts::axis::{AxisSpec, Scale};
use super::super::super::charts::legend::Style;
use super::super::super::charts::plot::{Plot, Point};
use super::super::super::data::Show;
use super::super::section::Section;
use super::{Runs, why};
use wakewatt_core::samples::load::{Kind, Level};
use wakewatt_words::word;

/// A value with its interval.
pub(super) type Value = (f64, Option<(f64, f64)>);

/// A plot of one value of every level of every run.
pub(super) fn plot(runs: &Runs<'_>, title: &str, y: AxisSpec, value: impl Fn(&Level) -> Option<Value>) -> Plot {
    let (name, show) = runs.axis();
    let mut plot = Plot::new(title, AxisSpec::new(name, show, Scale::Zero), y);
    // Several marks above one place: the timeline says in which order.
    plot.is_cloud = runs.kind != Kind::Command && runs.all.iter().any(|r| r.run.is_repeated());
    for r in &runs.all {
        let point = |(at, level): (usize, &Level)| {
            let (y, interval) = value(level)?;
            Some(Point { x: runs.x(level, at), y, interval, invalid_because: why(level) })
        };
        plot.add(r.name.clone(), Style::Arm(r.index), r.run.levels.iter().enumerate().filter_map(point));
    }
    plot
}

pub(super) fn draw(runs: &Runs<'_>, out: &mut Section) {
    let (title, axis) = match runs.kind {
        Kind::Steps => (word!("Score at each level"), word!("transactions a second")),
        Kind::Shop => (word!("Requests a second"), word!("requests a second")),
        Kind::Command => (word!("Work done"), word!("operations a second")),
    };
    let has_figure = runs.all.iter().flat_map(|r| &r.run.levels).any(|l| l.figure.is_some());
    let (title, axis, show) = match has_figure {
        true => (word!("What the command printed"), "figure", Show::Number),
        false => (title, axis, Show::PerS),
    };
    let y = AxisSpec::new(axis, show, Scale::Zero);
    let plot = plot(runs, title, y, |level| Some((level.achieved(), None)));
    let caption = word!(
        "Done in the recorded part of each level. Hollow: the level broke a rule and does not count; the table says which."
    );
    out.draw(format!("{}-rate", runs.id), title, caption, &plot);
}
