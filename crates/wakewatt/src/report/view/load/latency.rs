//! Latency: percentiles at each level with their intervals, and the whole distribution at one level.

use super::super::super::charts::axis::{AxisSpec, Scale};
use super::super::super::charts::distribution;
use super::super::super::data::Show;
use super::super::super::words;
use super::super::samples::distribution_figure;
use super::super::section::Section;
use super::rate::plot;
use super::{Runs, ask};
use wakewatt_core::covers::Covers;
use wakewatt_core::samples::load::{Ask, Kind, Level};
use wakewatt_words::{say, word};

pub(super) fn draw(runs: &Runs<'_>, out: &mut Section) {
    for (q, word) in [(0.5, word!("median")), (0.99, word!("99th percentile"))] {
        let y = AxisSpec::new("latency", Show::Ns, if runs.kind == Kind::Steps { Scale::Log } else { Scale::Zero });
        let value = |level: &Level| {
            let quantile = level.latency.as_ref()?.quantile(q)?;
            Some((quantile.value_ns as f64, Some((quantile.low_ns as f64, quantile.high_ns as f64))))
        };
        let title = say!("Latency, {word}");
        let chart = plot(runs, &title, y, value);
        let interval = words::interval_of(Covers::Window);
        let is_lost = |l: &Level| l.latency.as_ref().is_some_and(|d| d.censored.is_some());
        let lost = match runs.all.iter().flat_map(|r| &r.run.levels).any(is_lost) {
            true => {
                word!(
                    " Requests that failed or were not done count as longer than the time-out, or than the level had left: a mark there is a lower bound."
                )
            }
            false => "",
        };
        let caption = say!(
            "From the planned start, with the {interval}: the recorded part of one level, by how its tenths differ where they are kept. Fewer than ten requests beyond a percentile: not shown.{lost}"
        );
        out.draw(format!("{}-{}", runs.id, words::quantile(q)), &title, &caption, &chart);
    }
    whole(runs, out);
}

/// All of it at the level where most runs have one: 50 % of the maximum, or the most clients.
fn whole(runs: &Runs<'_>, out: &mut Section) {
    let has = |level: &&Level| level.latency.as_ref().is_some_and(|d| d.n > 0);
    let asks = runs.all.iter().flat_map(|r| r.run.levels.iter().filter(has)).map(|l| l.ask);
    let key = |a: &Ask| match a {
        Ask::Share(share) => -(share - 0.5).abs(),
        Ask::Clients(n) => f64::from(*n),
        Ask::Rate(rate) => *rate,
        Ask::Idle | Ask::Run => -1e9,
    };
    let Some(chosen) = asks.max_by(|a, b| key(a).total_cmp(&key(b))) else { return };
    let found: Vec<(usize, &str, &Level)> = runs
        .all
        .iter()
        .filter_map(|r| Some((r.index, r.name.as_str(), r.run.levels.iter().filter(has).find(|l| l.ask == chosen)?)))
        .collect();
    let curves: Vec<distribution::Curve<'_>> = found
        .iter()
        .filter_map(|(index, name, level)| {
            Some(distribution::Curve { name, index: *index, latency: level.latency.as_ref()? })
        })
        .collect();
    let Some((.., level)) = found.first() else { return };
    let title = say!("Latency at {}", ask(level, 0));
    let caption =
        word!("How often each latency occurred (top, every run scaled to its own peak) and the percentiles (below).");
    let table = say!("{title}: percentiles with their {}", words::interval_of(Covers::Window));
    let id = format!("{}-distribution", runs.id);
    out.figures.extend(distribution_figure(id, &title, caption, &curves, Some(table)));
}
