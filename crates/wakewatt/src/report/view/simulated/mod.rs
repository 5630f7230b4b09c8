//! The sections of a simulation: points beside each other or by level, the frontier of a sweep, what changed in mid-run, what was published.

mod over_time;
mod points;

use super::super::table::{Table, heads};
use super::super::trace::clean;
use super::super::words;
use super::section::Section;
use wakewatt_core::units::three_digits;
use wakewatt_sim::outcome::Outcome;
use wakewatt_sim::server::{Against, Server};
use wakewatt_sim::study::{Held, Point, Study};
use wakewatt_words::{say, word};

/// What was simulated.
pub(in crate::report) fn sentence(s: &Study) -> String {
    let n_saturated = s.points.iter().filter(|p| p.outcome.is_saturated).count();
    let more = match n_saturated {
        0 => String::new(),
        n => say!(" At {n} of them more came than can be done."),
    };
    let exits = s.exits.words();
    let exits = if exits.is_empty() { exits } else { format!(" ({exits})") };
    format!("{}, {}{exits}.{more}", s.name, words::plural(s.points.len(), "point"))
}

/// All of it.
pub(in crate::report) fn sections(server: &Server, s: &Study) -> Vec<Section> {
    let is_swept = s.points.iter().any(|p| !p.swept.is_empty());
    let is_leveled = s.points.iter().any(|p| p.level_percent.is_some());
    let mut all = Vec::new();
    if is_swept {
        all.push(points::frontier(s));
    }
    all.push(if is_leveled { points::by_level(s) } else { points::beside(s) });
    all.extend(points::states(s));
    all.extend(server.change.as_ref().and_then(|change| over_time::section(s, change)));
    if !s.held.is_empty() {
        all.push(published(&s.held));
    }
    all
}

/// What a point is called.
fn name(p: &Point) -> String {
    let level = p.level_percent.map(|level| if level > 0.0 { format!("{level} %") } else { "idle".into() });
    clean(&std::iter::once(setting(p)).chain(level).collect::<Vec<_>>().join(", "))
}

/// The same without its level.
fn setting(p: &Point) -> String {
    let swept = p.swept.iter().map(|s| s.rsplit('.').next().unwrap_or(s).to_string());
    let named = (p.setting != "as written" || p.swept.is_empty()).then(|| p.setting.clone());
    clean(&named.into_iter().chain(swept).collect::<Vec<_>>().join(", "))
}

/// The 99th percentile, where it means something.
fn p99_ns(o: &Outcome) -> Option<f64> {
    let q = o.quantiles.iter().find(|q| (q.q - 0.99).abs() < 1e-9)?;
    (!o.is_saturated).then_some(q.ns.value)
}

/// The mean, likewise.
fn mean_ns(o: &Outcome) -> Option<f64> {
    (!o.is_saturated && o.done_per_s.value > 0.0).then_some(o.mean_ns.value)
}

fn published(held: &[Held]) -> Section {
    let mut out = Section { is_result: true, ..Section::new(word!("Published beside simulated")) };
    let row = |h: &Held| {
        let p = &h.published;
        let is_ratio = p.than.is_some() && p.against == Against::Ratio;
        let number = |v: f64| {
            let digits = if v < 0.0 { format!("−{}", three_digits(-v)) } else { three_digits(v) };
            if is_ratio { digits } else { format!("{digits} {}", p.quantity.unit()).trim().to_string() }
        };
        vec![
            clean(&p.what),
            clean(&format!("{}{}", if p.fitted { word!("chosen to fit: ") } else { "" }, p.why)),
            number(p.value),
            h.simulated.map_or("–".into(), number),
            h.off_ratio.map_or("–".into(), |off| format!("{:+.0} %", off * 100.0).replace('-', "−")),
        ]
    };
    out.tables.push(Table {
        caption: word!("Figures of others, and the model's").into(),
        heads: heads(&[word!("what"), word!("why"), word!("published"), word!("simulated"), word!("deviation")]),
        rows: held.iter().map(row).collect(),
        n_text_columns: 2,
    });
    out
}
