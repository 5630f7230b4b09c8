//! A simulation as rows for a spreadsheet: one per point, raw numbers with their unit in the name.

use crate::view::csv::{Ends, text};
use wakewatt_sim::outcome::Estimate;
use wakewatt_sim::study::{Point, Study};

const HEADS: [&str; 22] = [
    "setting",
    "level_percent",
    "swept",
    "is_frontier",
    "is_saturated",
    "offered_per_s",
    "done_per_s",
    "turned_away_ratio",
    "mean_ns",
    "mean_half_ns",
    "p50_ns",
    "p90_ns",
    "p99_ns",
    "p99_half_ns",
    "p999_ns",
    "use_ratio",
    "system_ratio",
    "load",
    "mhz",
    "wall_w",
    "per_joule",
    "wakes_per_s",
];

/// All points.
pub(super) fn study(s: &Study) -> String {
    let head = HEADS.map(String::from).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(s.points.iter().map(row)).collect();
    text(Ends::Unix, &rows)
}

fn number(value: f64) -> String {
    if value.is_finite() { format!("{value}") } else { String::new() }
}

fn row(p: &Point) -> Vec<String> {
    let o = &p.outcome;
    let half = |e: Estimate| e.half.map_or(String::new(), number);
    let quantile = |q: f64| o.quantiles.iter().find(|x| (x.q - q).abs() < 1e-9).map(|x| x.ns);
    let at = |q: f64| quantile(q).map_or(String::new(), |e| number(e.value));
    let first = |f: &dyn Fn(&wakewatt_sim::outcome::MachineOutcome) -> f64| {
        o.machines.first().map_or(String::new(), |m| number(f(m)))
    };
    vec![
        p.setting.clone(),
        p.level_percent.map_or(String::new(), number),
        p.swept.join(" "),
        p.is_frontier.to_string(),
        o.is_saturated.to_string(),
        number(o.offered_per_s.value),
        number(o.done_per_s.value),
        number(o.turned_away_ratio),
        number(o.mean_ns.value),
        half(o.mean_ns),
        at(0.5),
        at(0.9),
        at(0.99),
        quantile(0.99).map_or(String::new(), half),
        at(0.999),
        first(&|m| m.use_ratio.value),
        first(&|m| m.system_ratio.value),
        first(&|m| m.load.value),
        first(&|m| m.mhz.value),
        number(o.wall_w.value),
        number(o.per_joule.value),
        first(&|m| m.wakes_per_s.value),
    ]
}
