//! Before and after: a value over time with the moments of change marked.

use super::super::charts::axis::{AxisSpec, Scale};
use super::super::charts::legend::Style;
use super::super::charts::plot::{Plot, Point};
use super::super::data::Show;
use super::super::words;
use super::section::{Section, figure, label_word};
use wakewatt_core::samples::experiment::Unit;
use wakewatt_core::samples::timeline::{Moment, Timeline};

/// The section; none without values.
pub(super) fn section(timelines: &[Timeline]) -> Option<Section> {
    let mut out = Section { is_result: true, ..Section::new("Before and after") };
    for (i, timeline) in timelines.iter().enumerate() {
        let starts = timeline.moments.iter().map(|m| m.window.start_at_ns);
        let Some(zero) = starts.chain(timeline.changes.iter().map(|c| c.at_ns)).min() else { continue };
        let last = timeline.moments.iter().map(|m| m.window.end_at_ns).max().unwrap_or(zero);
        let (time, unit_ns) = clock(last.saturating_sub(zero));
        let since = |ns: u64| ns.saturating_sub(zero) as f64 / unit_ns;
        let (show, scale) = shown(timeline.unit);
        let mut plot = Plot::new(
            timeline.title.as_str(),
            AxisSpec::new("since the first window", time, Scale::Zero),
            AxisSpec::new(timeline.title.as_str(), show, Scale::Zero),
        );
        let mut names: Vec<&str> = Vec::new();
        timeline.moments.iter().for_each(|m| {
            if !names.contains(&m.series.as_str()) {
                names.push(&m.series);
            }
        });
        for (index, name) in names.iter().enumerate() {
            let point = |m: &Moment| Point {
                x: f64::midpoint(since(m.window.start_at_ns), since(m.window.end_at_ns)),
                y: m.value * scale,
                interval: m.interval.map(|(low, high)| (low * scale, high * scale)),
                is_invalid: m.is_invalid.clone(),
            };
            let own = timeline.moments.iter().filter(|m| m.series == **name);
            plot.add(*name, Style::Arm(index), own.map(point));
        }
        plot.marks = timeline.changes.iter().map(|c| (since(c.at_ns), c.what.clone())).collect();
        let caption = "One mark for each window, not smoothed; the upright lines are the moments of change. A drawing proves nothing by itself: an experiment does.";
        let label = label_word(timeline.label);
        out.figures.extend(figure(
            format!("timeline-{i}"),
            &words::sentence_case(&timeline.title),
            caption,
            label,
            &plot,
        ));
        for change in &timeline.changes {
            let at = time.text(since(change.at_ns));
            out.remarks.push(format!("{}, changed after {at}: {}", words::sentence_case(&timeline.title), change.what));
        }
    }
    (!out.is_empty()).then_some(out)
}

/// The unit of time for so long, and its nanoseconds.
fn clock(length_ns: u64) -> (Show, f64) {
    match length_ns {
        0..300_000_000_000 => (Show::Seconds, 1e9),
        300_000_000_000..18_000_000_000_000 => (Show::Minutes, 60e9),
        _ => (Show::Hours, 3600e9),
    }
}

/// How a metric's unit is said, and the factor to get there.
fn shown(unit: Unit) -> (Show, f64) {
    match unit {
        Unit::Nanoseconds => (Show::Ns, 1.0),
        Unit::PerSecond => (Show::PerS, 1.0),
        Unit::Microwatts => (Show::Watts, 1e-6),
        Unit::PerJoule => (Show::PerJoule, 1.0),
        Unit::Number => (Show::Number, 1.0),
    }
}
