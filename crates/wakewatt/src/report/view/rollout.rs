//! The sections of a rollout: what its gates saw, its stages, its nodes.

use super::super::charts::axis::{AxisSpec, Scale};
use super::super::charts::legend::Style;
use super::super::charts::plot::{Plot, Point};
use super::super::data::Show;
use super::super::table::{Table, heads};
use super::super::trace::clean;
use super::section::{Section, figure};
use std::time::{Duration, UNIX_EPOCH};
use wakewatt_fleet::rollout::gate::Word;
use wakewatt_fleet::rollout::state::{Is, Rollout};
use wakewatt_words::{say, word};

/// What a gate's query said over time.
#[derive(Clone, Debug)]
pub struct Course {
    /// The gate.
    pub name: String,
    /// What its values are.
    pub what: String,
    /// What it must lie below, and above.
    pub limits: [Option<f64>; 2],
    /// The moments, in milliseconds since 1970.
    pub at_ms: Vec<u64>,
    /// Each series with its values at these moments.
    pub lines: Vec<(String, Vec<Option<f64>>)>,
}

/// Nodes in the table.
const MOST_NODES: usize = 500;

/// All of it.
pub(in crate::report) fn sections(
    r: &Rollout,
    courses: &[Course],
    remarks: Vec<String>,
    is: &dyn Fn(Is) -> &'static str,
) -> Vec<Section> {
    let mut seen = Section { is_result: true, remarks, ..Section::new(word!("Before and after")) };
    seen.figures = courses.iter().enumerate().filter_map(|(at, course)| chart(r, at, course)).collect();
    vec![seen, stages(r), nodes(r, is)]
}

/// A moment, to the second.
fn moment(ms: Option<u64>) -> String {
    ms.map_or_else(
        || "-".into(),
        |ms| humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(ms)).to_string(),
    )
}

fn chart(r: &Rollout, at: usize, course: &Course) -> Option<super::Figure> {
    let first_ms = *course.at_ms.first()?;
    let since_s = |ms: u64| (ms as f64 - first_ms as f64) / 1e3;
    let length_s = since_s(*course.at_ms.last()?);
    let (show, unit_s) = match length_s {
        s if s > 3.0 * 3600.0 => (Show::Hours, 3600.0),
        s if s > 180.0 => (Show::Minutes, 60.0),
        _ => (Show::Seconds, 1.0),
    };
    // Ticks have two digits behind the point.
    let limits = course.limits.iter().flatten();
    let most =
        course.lines.iter().flat_map(|(_, v)| v.iter().flatten()).chain(limits).fold(0.0, |m: f64, v| m.max(v.abs()));
    let (factor, what) = match most {
        m if m >= 0.1 || m == 0.0 => (1.0, course.what.clone()),
        m if m >= 1e-4 => (1e3, format!("{} × 1000", course.what)),
        _ => (1e6, format!("{} × 1 000 000", course.what)),
    };
    let mut plot = Plot::new(
        clean(&say!("Gate {}", course.name)),
        AxisSpec::new(word!("since the first moment"), show, Scale::Zero),
        AxisSpec::new(what, Show::Number, Scale::Zero),
    );
    for (line, (name, values)) in course.lines.iter().enumerate() {
        let name = if name.is_empty() { word!("the query").into() } else { clean(name) };
        let points = course.at_ms.iter().zip(values).filter_map(|(at_ms, value)| {
            Some(Point { x: since_s(*at_ms) / unit_s, y: (*value)? * factor, ..Point::default() })
        });
        plot.add(name, Style::Arm(line), points);
    }
    for (name, limit) in [word!("below this"), word!("above this")].iter().zip(course.limits) {
        let ends = limit.map(|y| [0.0, length_s / unit_s].map(|x| Point { x, y: y * factor, ..Point::default() }));
        plot.add(*name, Style::Ideal, ends.into_iter().flatten());
    }
    let mark = |s: &wakewatt_fleet::rollout::state::StageState| Some((since_s(s.began_ms?) / unit_s, clean(&s.name)));
    plot.marks = r.stages.iter().filter_map(mark).collect();
    let caption = word!(
        "Upright lines are the moments at which the stages began to be changed. A drawing proves nothing by itself; what counts is what the gates said."
    );
    figure(format!("gate-{at}"), &plot.title.clone(), caption, "measured", &plot)
}

fn stages(r: &Rollout) -> Section {
    let mut out = Section::new(word!("Stages"));
    let row = |(at, s): (usize, &wakewatt_fleet::rollout::state::StageState)| {
        let n = r.of_stage(at).count();
        vec![clean(&s.name), moment(s.began_ms), moment(s.changed_ms), moment(s.passed_ms), n.to_string()]
    };
    out.tables.push(Table {
        caption: word!("When each stage was changed and kept").into(),
        heads: heads(&[word!("stage"), word!("first change"), word!("last change"), word!("kept"), word!("nodes")]),
        rows: r.stages.iter().enumerate().map(row).collect(),
        n_text_columns: 4,
    });
    let gate = |stage: &str, g: &wakewatt_fleet::rollout::state::GateState| {
        let word = match g.verdict.word {
            Word::Passed => word!("passed"),
            Word::Failed => word!("failed"),
            Word::CannotTell => word!("cannot tell"),
            Word::NoAnswer => word!("no answer"),
        };
        vec![clean(stage), clean(&g.name), word.into(), clean(&g.verdict.why)]
    };
    let rows: Vec<Vec<String>> = r.stages.iter().flat_map(|s| s.gates.iter().map(|g| gate(&s.name, g))).collect();
    if !rows.is_empty() {
        out.tables.push(Table {
            caption: word!("What the gates said").into(),
            heads: heads(&[word!("stage"), word!("gate"), word!("it said"), word!("why")]),
            rows,
            n_text_columns: 4,
        });
    }
    out
}

fn nodes(r: &Rollout, is: &dyn Fn(Is) -> &'static str) -> Section {
    let mut out = Section::new(word!("Nodes"));
    let stage = |at: Option<usize>| at.and_then(|at| r.stages.get(at)).map_or(word!("none"), |s| s.name.as_str());
    let row = |n: &wakewatt_fleet::rollout::state::NodeState| {
        let id = n.id.clone().unwrap_or_else(|| "-".into());
        vec![
            clean(&n.name),
            clean(stage(n.stage)),
            is(n.is).into(),
            moment(Some(n.at_ms)),
            clean(&id),
            clean(n.why.as_deref().unwrap_or("")),
        ]
    };
    out.tables.push(Table {
        caption: word!("Each node, and its transaction as tune status there names it").into(),
        heads: heads(&[
            word!("node"),
            word!("stage"),
            word!("it is"),
            word!("since"),
            word!("transaction"),
            word!("why"),
        ]),
        rows: r.nodes.iter().take(MOST_NODES).map(row).collect(),
        n_text_columns: 6,
    });
    if r.nodes.len() > MOST_NODES {
        out.remarks.push(say!("{} more nodes are in the document only (--json).", r.nodes.len() - MOST_NODES));
    }
    out
}
