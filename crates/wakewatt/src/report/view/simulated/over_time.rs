//! A change in mid-run: what clients see, what the machine does and what it takes, before and after.

use super::super::super::charts::axis::{AxisSpec, Scale};
use super::super::super::charts::legend::Style;
use super::super::super::charts::plot::{Plot, Point as Mark};
use super::super::super::data::Show;
use super::super::super::trace::clean;
use super::super::section::{Section, figure};
use wakewatt_sim::outcome::BinOutcome;
use wakewatt_sim::server::Change;
use wakewatt_sim::study::Study;
use wakewatt_words::word;

type Value = fn(&BinOutcome) -> Option<f64>;

/// The figures; none without a point.
pub(super) fn section(s: &Study, change: &Change) -> Option<Section> {
    let o = &s.points.first()?.outcome;
    let mut out = Section { is_result: true, ..Section::new(word!("Over time")) };
    let charts: [(&str, [&str; 2], Show, Value); 4] = [
        ("mean", [word!("Mean time of a request"), word!("mean time")], Show::Ns, |b| b.mean_ns),
        ("use", [word!("CPU use"), word!("CPU use")], Show::Ratio, |b| Some(b.use_ratio)),
        ("load", [word!("Tasks that run or wait"), word!("tasks")], Show::Number, |b| Some(b.load)),
        ("power", [word!("Power at the wall"), "power"], Show::Watts, |b| Some(b.wall_w)),
    ];
    for (id, [title, axis], show, value) in charts {
        let time = AxisSpec::new(word!("time"), Show::Seconds, Scale::Zero);
        let mut plot = Plot::new(title, time, AxisSpec::new(axis, show, Scale::Zero));
        let mark = |b: &BinOutcome| Some(Mark { x: b.until_ns as f64 / 1e9, y: value(b)?, ..Mark::default() });
        plot.add(word!("simulated"), Style::Arm(0), o.series.iter().filter_map(mark));
        plot.marks.push((change.at.seconds(), clean(&change.setting)));
        let caption =
            word!("Each mark is the mean of a part of the run, at its end. The line is the moment of the change.");
        out.figures.extend(figure(format!("time-{id}"), title, caption, "modelled", &plot));
    }
    Some(out)
}
