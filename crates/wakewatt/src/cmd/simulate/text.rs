//! A simulation as text: point by point, what was published beside it, and what the numbers are not.

use crate::view::table::Table;
use std::fmt::Write as _;
use wakewatt_core::units::{rough_ns, three_digits};
use wakewatt_sim::examples::Example;
use wakewatt_sim::outcome::{Estimate, Outcome};
use wakewatt_sim::sensitivity::listed;
use wakewatt_sim::server::Against;
use wakewatt_sim::study::{Held, Point, Study};

/// The shipped files.
pub(super) fn examples(all: &[Example]) -> String {
    let width = all.iter().map(|e| e.name.len()).max().unwrap_or(0);
    all.iter().fold(String::new(), |mut out, e| {
        let _ = writeln!(out, "{:width$}  {}", e.name, e.about);
        out
    })
}

fn percent(ratio: f64) -> String {
    format!("{:.1} %", ratio * 100.0)
}

/// A time with its interval where that is wide enough to see.
fn time(e: Estimate) -> String {
    match e.half.filter(|half| *half > 0.005 * e.value) {
        Some(half) => format!("{} ±{}", rough_ns(e.value), percent(half / e.value)),
        None => rough_ns(e.value),
    }
}

fn name(p: &Point) -> String {
    let level = p.level_percent.map(|level| if level > 0.0 { format!("{level} %") } else { "idle".into() });
    let swept = p.swept.iter().map(|s| s.rsplit('.').next().unwrap_or(s).to_string());
    std::iter::once(p.setting.clone()).chain(level).chain(swept).collect::<Vec<_>>().join(", ")
}

/// All of it.
pub(super) fn study(s: &Study, has_details: bool, width: usize) -> String {
    let exits = s.exits.words();
    let exits = if exits.is_empty() { exits } else { format!("; {exits}") };
    let mut out = format!("{} (modelled, not measured{exits})\n", s.name);
    if let Some(full) = s.full_per_s {
        let _ = writeln!(out, "100 % is {} requests per second", three_digits(full));
    }
    out.push('\n');
    let is_swept = s.points.iter().any(|p| !p.swept.is_empty());
    let mut heads = vec![
        "point",
        "done/s",
        "mean",
        "p50",
        "p99",
        "p99.9",
        "CPU use",
        "in kernel",
        "load",
        "MHz",
        "watts",
        "per joule",
    ];
    if is_swept {
        heads.push("");
    }
    let heads: Vec<String> = heads.into_iter().map(String::from).collect();
    let rows: Vec<Vec<String>> = s.points.iter().map(|p| row(p, is_swept)).collect();
    out.push_str(&Table { heads: &heads, rows: &rows, n_text_columns: 1 }.text(width));
    for p in s.points.iter().filter(|p| p.outcome.is_saturated) {
        let at = p.outcome.bottleneck.as_ref().map_or(String::new(), |at| format!(" ({at})"));
        let _ = writeln!(out, "{}: saturated{at}; its times grow with the duration and mean nothing", name(p));
    }
    for (p, why) in
        s.points.iter().filter(|p| !p.outcome.is_saturated).filter_map(|p| Some((p, p.outcome.no_interval?)))
    {
        let _ = writeln!(out, "{}: times without an interval: {why}", name(p));
    }
    if has_details {
        s.points.iter().for_each(|p| out.push_str(&details(p, width)));
    }
    if !s.held.is_empty() {
        out.push_str("\nPublished beside simulated:\n");
        out.push_str(&held(&s.held, width));
    }
    let n = s.points.first().map_or(0, |p| p.outcome.n_replications);
    let _ = writeln!(
        out,
        "\nIntervals (±): at least 95 %, over {n} replications. They show how well the model's number is known, not how well the model fits a machine."
    );
    if let Some(list) = listed(&s.sensitivity) {
        let _ = writeln!(out, "Most sensitive assumption (±20 %): {list}.");
    }
    if !s.about.is_empty() {
        let _ = writeln!(out, "Assumed: {}", s.about.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    out
}

fn row(p: &Point, is_swept: bool) -> Vec<String> {
    let o = &p.outcome;
    let at = |q: f64| o.quantiles.iter().find(|x| (x.q - q).abs() < 1e-9).map_or("-".into(), |x| time(x.ns));
    let first = o.machines.first();
    let of = |f: &dyn Fn(&wakewatt_sim::outcome::MachineOutcome) -> String| first.map_or("-".into(), f);
    let is_idle = o.done_per_s.value <= 0.0;
    let mut row = vec![
        name(p),
        three_digits(o.done_per_s.value),
        if is_idle { "-".into() } else { time(o.mean_ns) },
        at(0.5),
        at(0.99),
        at(0.999),
        of(&|m| percent(m.use_ratio.value)),
        of(&|m| percent(m.system_ratio.value)),
        of(&|m| format!("{:.2}", m.load.value)),
        of(&|m| format!("{:.0}", m.mhz.value)),
        format!("{:.1}", o.wall_w.value),
        if is_idle { "-".into() } else { three_digits(o.per_joule.value) },
    ];
    if is_swept {
        row.push(if p.is_frontier { "frontier".into() } else { String::new() });
    }
    row
}

/// Idle states and the course of time.
fn details(p: &Point, width: usize) -> String {
    let mut out = format!("\n{}\n", name(p));
    for m in &p.outcome.machines {
        let rows: Vec<Vec<String>> = m
            .states
            .iter()
            .map(|s| {
                let ratio = |r: f64| if s.per_s > 0.0 { percent(r) } else { "-".into() };
                vec![
                    s.name.clone(),
                    percent(s.time_ratio.value),
                    three_digits(s.per_s),
                    ratio(s.too_deep_ratio),
                    ratio(s.too_shallow_ratio),
                ]
            })
            .collect();
        let heads = ["state", "time", "entries/s", "too deep", "too shallow"].map(String::from);
        let _ = writeln!(
            out,
            "{}: package asleep {}, {} wake-ups/s, idle for {} on average",
            m.name,
            percent(m.package_asleep_ratio.value),
            three_digits(m.wakes_per_s.value),
            rough_ns(m.idle_periods.mean_ns)
        );
        out.push_str(&Table { heads: &heads, rows: &rows, n_text_columns: 1 }.text(width));
    }
    out.push_str(&series(&p.outcome, width));
    out
}

fn series(o: &Outcome, width: usize) -> String {
    let heads = ["until", "done/s", "mean", "CPU use", "load", "watts"].map(String::from);
    let row = |b: &wakewatt_sim::outcome::BinOutcome| {
        vec![
            rough_ns(b.until_ns as f64),
            three_digits(b.done_per_s),
            b.mean_ns.map_or("-".into(), rough_ns),
            percent(b.use_ratio),
            format!("{:.2}", b.load),
            format!("{:.1}", b.wall_w),
        ]
    };
    let rows: Vec<Vec<String>> = o.series.iter().map(row).collect();
    Table { heads: &heads, rows: &rows, n_text_columns: 0 }.text(width)
}

fn held(all: &[Held], width: usize) -> String {
    let heads = ["what", "published", "simulated", "off", "why"].map(String::from);
    let row = |h: &Held| {
        let p = &h.published;
        let is_ratio = p.than.is_some() && p.against == Against::Ratio;
        let number = |v: f64| {
            if is_ratio { format!("{v:.3}") } else { format!("{} {}", signed(v), p.quantity.unit()).trim().to_string() }
        };
        let fitted = if p.fitted { "chosen to fit: " } else { "" };
        vec![
            p.what.clone(),
            number(p.value),
            h.simulated.map_or("-".into(), number),
            h.off_ratio.map_or("-".into(), |off| format!("{:+.0} %", off * 100.0)),
            format!("{fitted}{}", p.why),
        ]
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    // The reason is the longest: it stands last, where what is left of the width goes.
    Table { heads: &heads, rows: &rows, n_text_columns: 5 }.text(width)
}

fn signed(value: f64) -> String {
    if value < 0.0 { format!("-{}", three_digits(-value)) } else { three_digits(value) }
}
