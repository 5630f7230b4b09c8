//! Before and after: a value over time with the moments of change marked.

use super::super::charts::axis::{AxisSpec, Scale};
use super::super::charts::legend::Style;
use super::super::charts::plot::{Plot, Point};
use super::super::data::Show;
use super::super::words;
use super::section::{Section, figure, label_word};
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::experiment::Unit;
use wakewatt_core::samples::load::LoadRun;
use wakewatt_core::samples::repeated::timelines;
use wakewatt_core::samples::timeline::{Moment, Timeline};
use wakewatt_words::{say, word};

/// The section: timelines that were made as such, and those of loads that asked the same several times. None without values.
pub(super) fn section(evidence: &Evidence) -> Option<Section> {
    let all = of_loads(evidence);
    let timelines: Vec<&Timeline> = evidence.samples.timelines.iter().chain(&all).collect();
    let title =
        if timelines.iter().any(|t| !t.changes.is_empty()) { word!("Before and after") } else { word!("Over time") };
    let mut out = Section { is_result: true, ..Section::new(title) };
    for (i, timeline) in timelines.into_iter().enumerate() {
        let starts = timeline.moments.iter().map(|m| m.window.start_at_ns);
        let Some(zero) = starts.chain(timeline.changes.iter().map(|c| c.at_ns)).min() else { continue };
        let last = timeline.moments.iter().map(|m| m.window.end_at_ns).max().unwrap_or(zero);
        let (time, unit_ns) = clock(last.saturating_sub(zero));
        let since = |ns: u64| ns.saturating_sub(zero) as f64 / unit_ns;
        let (show, scale) = shown(timeline.unit);
        let mut plot = Plot::new(
            timeline.title.as_str(),
            AxisSpec::new(word!("since the first window"), time, Scale::Zero),
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
                invalid_because: m.invalid_because.clone(),
            };
            let own = timeline.moments.iter().filter(|m| m.series == **name);
            plot.add(*name, Style::Arm(index), own.map(point));
        }
        plot.marks = timeline.changes.iter().map(|c| (since(c.at_ns), c.what.clone())).collect();
        let caption = word!(
            "One mark for each window, not smoothed; hollow ones do not count, the table says why. Upright lines are the moments of change. A drawing proves nothing by itself, something else may have changed at the same moment; for proof: wakewatt experiment."
        );
        let bars = match timeline.moments.iter().any(|m| m.interval.is_some()) {
            true => word!(" A bar is the mark's 95 % interval; it covers its own window."),
            false => "",
        };
        let label = label_word(timeline.label);
        out.figures.extend(figure(
            format!("timeline-{i}"),
            &words::sentence_case(&timeline.title),
            format!("{caption}{bars}"),
            label,
            &plot,
        ));
        for change in &timeline.changes {
            let at = time.text(since(change.at_ns));
            let within = match change.within_ns {
                0 => String::new(),
                ns => format!(" (± {})", time.text(ns as f64 / unit_ns)),
            };
            let said = say!("Changed after {at}{within}: {}", change.what);
            if !out.remarks.contains(&said) {
                out.remarks.push(said);
            }
        }
    }
    (!out.is_empty()).then_some(out)
}

/// Where several loads ran, each timeline says whose it is.
fn of_loads(evidence: &Evidence) -> Vec<Timeline> {
    let repeated = || evidence.samples.load.iter().filter(|run| run.is_repeated());
    let name = |mut timeline: Timeline, run: &LoadRun| {
        if repeated().count() > 1 {
            timeline.title = format!("{}, {}", timeline.title, run.title);
        }
        timeline
    };
    repeated().flat_map(|run| timelines(run).into_iter().map(move |t| name(t, run))).collect()
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

#[cfg(test)]
mod tests {
    use super::super::super::sample;
    use super::*;
    use wakewatt_core::samples::timeline::Change;

    #[test]
    fn a_load_that_repeats_itself_has_a_timeline_with_the_change_marked() {
        let report = sample::repeated_load();
        let out = section(&report.evidence).unwrap();
        assert_eq!(out.title, "Before and after");
        let titles: Vec<&str> = out.figures.iter().map(|f| f.title.as_str()).collect();
        assert_eq!(titles, ["Median latency", "Operations per second", "CPU time per operation", "Mean power"]);
        assert!(
            out.figures[0].svg.contains("idle states off") && out.figures[0].caption.contains("wakewatt experiment.")
        );
        assert_eq!(out.remarks.len(), 1, "said once, not once for each figure: {:?}", out.remarks);
        assert!(out.remarks[0].starts_with("Changed after ") && out.remarks[0].contains(" (± "), "{:?}", out.remarks);
        assert!(
            out.figures[0].table.as_ref().unwrap().rows.iter().any(|r| r.join(" ").contains("settings were changed"))
        );

        let mut calm = report.evidence.clone();
        calm.samples.load[0].changes.clear();
        assert_eq!(section(&calm).unwrap().title, "Over time");
        calm.samples.load.push(calm.samples.load[0].clone());
        calm.samples.load[1].changes.push(Change { at_ns: 1, within_ns: 0, what: "x".into() });
        assert!(section(&calm).unwrap().figures[0].title.starts_with("Median latency, shop"));
        calm.samples.load.iter_mut().for_each(|run| run.levels.truncate(1));
        assert!(section(&calm).is_none(), "asked once");
    }
}
