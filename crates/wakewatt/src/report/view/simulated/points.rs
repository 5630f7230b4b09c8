//! Points of a simulation: the frontier of a sweep, levels of a graduated load, or settings beside each other; and their idle states.

use super::super::super::charts::axis::{AxisSpec, Scale};
use super::super::super::charts::bars::{Bar, Bars};
use super::super::super::charts::legend::Style;
use super::super::super::charts::plot::{Plot, Point as Mark};
use super::super::super::charts::ranges::{Mark as Ranged, Ranges};
use super::super::super::data::Show;
use super::super::super::table::{Table, heads};
use super::super::super::words;
use super::super::section::{Section, figure};
use super::{mean_ns, name, p99_ns, setting};
use wakewatt_core::units::three_digits;
use wakewatt_sim::outcome::{Estimate, NoInterval};
use wakewatt_sim::study::{Point, Study};
use wakewatt_words::{say, word};

/// What is drawn of a point, where it means something.
type Value = fn(&Point) -> Option<f64>;

/// More settings than styles are no picture: the table has them all.
const MOST_SERIES: usize = 6;
/// Bars of more points would be longer than the page is read.
const MOST_BARS: usize = 16;
/// Levels with a frontier of their own.
const MOST_LEVELS: usize = 12;

/// Every point as latency against power; who is beaten by nobody stands on a line.
pub(super) fn frontier(s: &Study) -> Section {
    let mut out = Section { is_result: true, ..Section::new(word!("The frontier")) };
    let mut levels: Vec<Option<f64>> = Vec::new();
    for p in &s.points {
        if !levels.contains(&p.level_percent) {
            levels.push(p.level_percent);
        }
    }
    for (i, level) in levels.iter().take(MOST_LEVELS).enumerate() {
        let here = || s.points.iter().filter(|p| p.level_percent == *level);
        let at = level.map_or(String::new(), |l| say!(" at {l} %"));
        let title = say!("Time of a request against power{at}");
        let mut plot = Plot::new(
            &title,
            AxisSpec::new(word!("power at the wall"), Show::Watts, Scale::Fit),
            AxisSpec::new(word!("p99 of a request"), Show::Ns, Scale::Log),
        );
        let mark = |p: &Point| Some(Mark { x: p.outcome.wall_w.value, y: p99_ns(&p.outcome)?, ..Mark::default() });
        plot.add(word!("beaten by nobody"), Style::Arm(0), here().filter(|p| p.is_frontier).filter_map(mark));
        plot.add(word!("beaten by another"), Style::Arm(1), here().filter(|p| !p.is_frontier).filter_map(mark));
        plot.is_cloud = true;
        let caption = word!(
            "Each mark is a point of the sweep. One that no other beats in both, time and power, is on the frontier."
        );
        out.figures.extend(figure(format!("frontier{i}"), &title, caption, "modelled", &plot));
    }
    let row = |p: &Point| {
        vec![
            name(p),
            time(p, |p| p99_ns(&p.outcome)),
            time(p, |p| mean_ns(&p.outcome)),
            Show::Watts.text(p.outcome.wall_w.value),
        ]
    };
    out.tables.push(Table {
        caption: word!("Points that no other beats in both").into(),
        heads: heads(&[word!("point"), "p99", word!("mean"), word!("power")]),
        rows: s.points.iter().filter(|p| p.is_frontier).map(row).collect(),
        n_text_columns: 1,
    });
    out
}

fn time(p: &Point, value: fn(&Point) -> Option<f64>) -> String {
    value(p).map_or("–".into(), words::ns)
}

/// Latency, power and work per joule by level, a line for each setting.
pub(super) fn by_level(s: &Study) -> Section {
    let mut out = Section { is_result: true, ..Section::new(word!("By level")) };
    out.intro.extend(s.full_per_s.map(|full| say!("100 % is {} requests per second.", three_digits(full))));
    let mut settings: Vec<String> = Vec::new();
    for p in &s.points {
        if !settings.contains(&setting(p)) {
            settings.push(setting(p));
        }
    }
    let charts: [(&str, &str, AxisSpec, Value); 3] = [
        (
            "p99",
            word!("Time of a request by level"),
            AxisSpec::new(word!("p99 of a request"), Show::Ns, Scale::Log),
            |p| p99_ns(&p.outcome),
        ),
        ("watts", word!("Power by level"), AxisSpec::new(word!("power at the wall"), Show::Watts, Scale::Zero), |p| {
            Some(p.outcome.wall_w.value)
        }),
        (
            "work",
            word!("Work per joule by level"),
            AxisSpec::new(word!("requests per joule"), Show::PerJoule, Scale::Zero),
            |p| Some(p.outcome.per_joule.value),
        ),
    ];
    for (id, title, y, value) in charts {
        let mut plot = Plot::new(title, AxisSpec::new(word!("level"), Show::Ratio, Scale::Zero), y);
        for (i, wanted) in settings.iter().take(MOST_SERIES).enumerate() {
            let mark = |p: &Point| Some(Mark { x: p.level_percent? / 100.0, y: value(p)?, ..Mark::default() });
            plot.add(wanted, Style::Arm(i), s.points.iter().filter(|p| setting(p) == *wanted).filter_map(mark));
        }
        let left = settings.len().saturating_sub(MOST_SERIES);
        let caption = match left {
            0 => word!("A line for each setting.").to_string(),
            n => say!("A line for each of the first {MOST_SERIES} settings; the other {n} are in the table."),
        };
        out.figures.extend(figure(format!("level-{id}"), title, caption, "modelled", &plot));
    }
    out.folded.push(table(s));
    out
}

/// Points beside each other.
pub(super) fn beside(s: &Study) -> Section {
    let mut out = Section { is_result: true, ..Section::new(word!("Points beside each other")) };
    if s.points.len() <= MOST_BARS {
        let title = word!("Time of a request");
        let mut chart = Ranges {
            title: title.into(),
            of: word!("point").into(),
            range: word!("95 % interval"),
            x: AxisSpec::new(word!("time of a request"), Show::Ns, Scale::Log),
            series: [word!("mean"), word!("median"), "p99"].map(String::from).to_vec(),
            is_first_claimed: false,
            rows: Vec::new(),
        };
        for p in &s.points {
            let o = &p.outcome;
            let at = |q: f64| o.quantiles.iter().find(|x| (x.q - q).abs() < 1e-9).map(|x| x.ns);
            let all = [mean_ns(o).map(|_| o.mean_ns), at(0.5), at(0.99)];
            let mark = |(series, e): (usize, Option<Estimate>)| {
                let e = e.filter(|_| !o.is_saturated)?;
                Some(Ranged { series, value: e.value, range: e.half.map(|half| (e.value - half, e.value + half)) })
            };
            chart.add(name(p), all.into_iter().enumerate().filter_map(mark));
        }
        out.figures.extend(figure(
            "times",
            title,
            word!("Lines are 95 % intervals of the model's number."),
            "modelled",
            &chart,
        ));
        let title = word!("Power at the wall");
        let mut bars = Bars::new(title, word!("point"), word!("power at the wall"), Show::Watts);
        for p in &s.points {
            bars.add(name(p), [Bar { series: 0, value: p.outcome.wall_w.value, invalid_because: None }]);
        }
        out.figures.extend(figure(
            "watts",
            title,
            word!("All machines, by the power model of the file."),
            "modelled",
            &bars,
        ));
    }
    // A long table would push the figures off the screen.
    if s.points.len() <= MOST_SERIES {
        out.tables.push(table(s));
    } else {
        out.folded.push(table(s));
    }
    out
}

/// Why the times of a point have no interval.
fn no_interval(why: NoInterval) -> &'static str {
    match why {
        NoInterval::Saturated => word!("saturated"),
        NoInterval::OneReplication => word!("no interval: one replication"),
        NoInterval::TooShort { .. } => word!("no interval: run too short"),
        NoInterval::RecordingTooShort { .. } => word!("no interval: recording too short"),
        NoInterval::Replayed => word!("no interval: arrivals replayed"),
    }
}

fn table(s: &Study) -> Table {
    let row = |p: &Point| {
        let o = &p.outcome;
        let first = o.machines.first();
        let p50 = o.quantiles.iter().find(|q| (q.q - 0.5).abs() < 1e-9).filter(|_| !o.is_saturated);
        vec![
            name(p),
            o.no_interval.map_or(String::new(), |why| no_interval(why).into()),
            Show::PerS.text(o.done_per_s.value),
            time(p, |p| mean_ns(&p.outcome)),
            p50.map_or("–".into(), |q| words::ns(q.ns.value)),
            time(p, |p| p99_ns(&p.outcome)),
            first.map_or("–".into(), |m| words::percent(m.use_ratio.value)),
            first.map_or("–".into(), |m| words::percent(m.system_ratio.value)),
            first.map_or("–".into(), |m| format!("{:.0}", m.mhz.value)),
            Show::Watts.text(o.wall_w.value),
            if o.done_per_s.value > 0.0 { Show::PerJoule.text(o.per_joule.value) } else { "–".into() },
        ]
    };
    Table {
        caption: word!("All points").into(),
        heads: heads(&[
            word!("point"),
            "",
            word!("done"),
            word!("mean"),
            word!("median"),
            "p99",
            word!("CPU use"),
            word!("in kernel"),
            "MHz",
            word!("power"),
            word!("work"),
        ]),
        rows: s.points.iter().map(row).collect(),
        n_text_columns: 2,
    }
}

/// Where CPUs spent their time, of few points; none where no state has a name that tells anything.
pub(super) fn states(s: &Study) -> Option<Section> {
    let first = &s.points.first()?.outcome.machines.first()?.states;
    if s.points.len() > MOST_SERIES || first.len() < 2 {
        return None;
    }
    let mut out = Section::new(word!("Idle states"));
    let title = word!("Share of all CPUs' time");
    let mut bars = Bars::new(title, word!("state"), word!("share of time"), Show::Ratio);
    bars.series = s.points.iter().map(name).collect();
    for (at, state) in first.iter().enumerate() {
        let bar = |(series, p): (usize, &Point)| {
            let state = p.outcome.machines.first()?.states.get(at)?;
            Some(Bar { series, value: state.time_ratio.value, invalid_because: None })
        };
        bars.add(super::clean(&state.name), s.points.iter().enumerate().filter_map(bar));
    }
    let caption = word!("Of the first machine. What is missing to the whole is work.");
    out.figures.extend(figure("states", title, caption, "modelled", &bars));
    Some(out)
}
