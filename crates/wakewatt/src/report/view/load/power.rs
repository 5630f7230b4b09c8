//! Watts: against load, work per watt, proportionality with the ideal line, and the price of staying awake for a year.

use super::super::super::charts::axis::{AxisSpec, Scale};
use super::super::super::charts::bars::{Bar, Bars};
use super::super::super::charts::legend::Style;
use super::super::super::charts::plot::Point;
use super::super::super::data::Show;
use super::super::section::Section;
use super::rate::plot;
use super::{Runs, ask, half_watts, watts, why};
use wakewatt_core::samples::load::{Ask, Kind, Level, kwh_per_year};
use wakewatt_words::word;

/// Draws all of it that a meter allows.
pub(super) fn draw(runs: &Runs<'_>, out: &mut Section) {
    let power = |level: &Level| {
        let (mean, half) = (watts(level)?, half_watts(level));
        Some((mean, half.map(|half| (mean - half, mean + half))))
    };
    let y = AxisSpec::new(word!("mean power"), Show::Watts, Scale::Fit);
    let caption = word!(
        "Mean over the recorded part of each level, with the 95 % interval from how it varied, which covers this window, where there were \
                   readings enough; the meter's own error is not in it. The axis does not begin at zero."
    );
    out.draw(
        format!("{}-watts", runs.id),
        word!("Power"),
        caption,
        &plot(runs, word!("Power at each level"), y, power),
    );
    let (title, what) = match runs.kind {
        Kind::Shop => (word!("Requests per joule"), word!("requests a second and watt")),
        _ => (word!("Work per joule"), word!("operations a second and watt")),
    };
    let y = AxisSpec::new(what, Show::PerJoule, Scale::Zero);
    let caption = word!("Operations per joule, which is operations a second and watt.");
    let per_joule = plot(runs, title, y, |level| Some((level.per_joule()?, None)));
    out.draw(format!("{}-per-joule", runs.id), title, caption, &per_joule);
    if runs.kind == Kind::Steps {
        proportionality(runs, out);
    }
    awake(runs, out);
}

fn proportionality(runs: &Runs<'_>, out: &mut Section) {
    let y = AxisSpec::new(word!("power, share of that at 100 %"), Show::Ratio, Scale::Zero);
    let mut chart = plot(runs, word!("Power in proportion to load"), y, |_| None);
    for r in &runs.all {
        let Some(full) = r.run.at_share(1.0).and_then(watts) else { continue };
        let point = |(at, level): (usize, &Level)| {
            Some(Point { x: runs.x(level, at), y: watts(level)? / full, invalid_because: why(level), interval: None })
        };
        chart.add(r.name.clone(), Style::Arm(r.index), r.run.levels.iter().enumerate().filter_map(point));
    }
    let corner = |v: f64| Point { x: v, y: v, ..Point::default() };
    chart.add(word!("in proportion"), Style::Ideal, [corner(0.0), corner(1.0)]);
    let caption =
        word!("Each run against its own power at 100 %. Dashed: a machine whose power is in proportion to its work.");
    out.draw(format!("{}-proportionality", runs.id), word!("Energy proportionality"), caption, &chart);
}

/// Beside the thriftiest run at the same level.
fn awake(runs: &Runs<'_>, out: &mut Section) {
    let is_wanted = |a: &Ask| match a {
        Ask::Idle | Ask::Clients(_) => true,
        Ask::Share(share) => (share - 0.5).abs() < 1e-6,
        _ => false,
    };
    let mut asks: Vec<(Ask, String)> = Vec::new();
    for (at, level) in runs.all.iter().flat_map(|r| r.run.levels.iter().enumerate()) {
        if is_wanted(&level.ask)
            && watts(level).is_some()
            && !asks.iter().any(|(a, _)| *a == level.ask)
            && asks.len() < 4
        {
            asks.push((level.ask, ask(level, at)));
        }
    }
    let level = |run: usize, a: &Ask| runs.all[run].run.levels.iter().find(|l| l.ask == *a);
    let mut bars = Bars::new(
        word!("Energy in a year beyond the thriftiest run"),
        "run",
        word!("kWh a year beyond the thriftiest run"),
        Show::KwhPerYear,
    );
    bars.series = asks.iter().map(|(_, name)| name.clone()).collect();
    for (i, r) in runs.all.iter().enumerate() {
        let bar = |(series, (a, _)): (usize, &(Ask, String))| {
            let least = (0..runs.all.len()).filter_map(|k| level(k, a)?.mean_uw()).min()?;
            let here = level(i, a)?;
            let more_uw = here.mean_uw()?.saturating_sub(least) as f64;
            Some(Bar { series, value: kwh_per_year(more_uw), invalid_because: why(here) })
        };
        bars.add(r.name.clone(), asks.iter().enumerate().filter_map(bar));
    }
    if runs.all.len() > 1 {
        let caption = word!(
            "If the machine stayed at that level around the clock: its watts over those of the thriftiest run, for 8766 hours."
        );
        out.draw(format!("{}-awake", runs.id), word!("What staying awake costs in a year"), caption, &bars);
    }
}
