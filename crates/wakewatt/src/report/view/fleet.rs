//! The sections of a fleet: odd nodes with what differs, a strip per class, small multiples of odd nodes, what must be known.

use super::super::charts::axis::{AxisSpec, Scale};
use super::super::charts::multiples::Multiples;
use super::super::charts::strip::{Dot, Strip};
use super::super::data::Show;
use super::super::table::{Table, heads};
use super::super::trace::clean;
use super::super::words;
use super::section::{Section, figure};
use std::time::{Duration, UNIX_EPOCH};
use wakewatt_fleet::document::{Change, Fleet, Label, Node, NodeMeasure, OtherValue, Uneven, Word};
use wakewatt_fleet::measure::Measure;
use wakewatt_words::{say, word};

/// Little lines on one page.
const MOST_PANELS: usize = 24;
/// Odd nodes with a table of their own.
const MOST_TOLD: usize = 40;
/// Rows of firmware on one page.
const MOST_FIRMWARE: usize = 200;

/// All of it.
pub(in crate::report) fn sections(fleet: &Fleet) -> Vec<Section> {
    let mut all: Vec<Section> = Vec::new();
    all.extend(odd(fleet));
    all.extend(firmware(fleet));
    all.extend(courses(fleet));
    all.extend((0..fleet.classes.len()).filter_map(|at| class(fleet, at)));
    all.push(measures(fleet));
    all.extend(remarks(fleet));
    all
}

fn ratio(m: &NodeMeasure) -> String {
    let (value, low, high) = (Show::Times.text(m.ratio), Show::Times.text(m.low_ratio), Show::Times.text(m.high_ratio));
    say!("{value} ({low} to {high})")
}

fn word(word: Word) -> &'static str {
    match word {
        Word::Dearer => word!("dearer"),
        Word::Cheaper => word!("cheaper"),
        Word::Like => word!("like its peers"),
        Word::Ranked => "ranked",
        Word::CannotTell => word!("cannot tell"),
    }
}

/// Who is odd, and what is set otherwise there.
fn odd(fleet: &Fleet) -> Option<Section> {
    let mut out = Section { is_result: true, ..Section::new(word!("Odd nodes")) };
    let told: Vec<&Node> = fleet.nodes.iter().filter(|n| n.is_odd() || !n.differs.is_empty()).collect();
    if told.is_empty() {
        return None;
    }
    out.tables.push(Table {
        caption: word!("Nodes that differ from their peers at equal load, and by how much").into(),
        heads: heads(&[word!("node"), word!("what is said")]),
        rows: told.iter().take(MOST_TOLD).map(|n| vec![clean(&n.name), clean(&n.sentence)]).collect(),
        n_text_columns: 2,
    });
    let row = |(node, d): (&&Node, &wakewatt_fleet::document::Differs)| {
        let also = match (d.n_like_here, d.n_peers) {
            (0, _) => String::new(),
            (n, of) => say!("{n} of {of} that are not odd"),
        };
        let predicted = d.predicted.clone().unwrap_or_default();
        vec![clean(&node.name), clean(&d.what), clean(&d.here), clean(&d.peers), also, clean(&predicted)]
    };
    let rows: Vec<Vec<String>> =
        told.iter().take(MOST_TOLD).flat_map(|n| n.differs.iter().map(move |d| (n, d))).map(row).collect();
    if rows.is_empty() {
        out.remarks.push(word!("No setting that is known differs between odd nodes and their peers.").into());
    } else {
        out.tables.push(Table {
            caption: word!("What is set otherwise there; effects are predicted from what machines claim, not measured")
                .into(),
            heads: heads(&[
                word!("node"),
                word!("setting"),
                word!("here"),
                word!("on most peers"),
                word!("the same on peers"),
                word!("predicted effect"),
            ]),
            rows,
            n_text_columns: 6,
        });
    }
    Some(out)
}

/// What firmware has otherwise on some nodes of a class.
fn firmware(fleet: &Fleet) -> Option<Section> {
    let found = fleet.firmware.as_ref()?;
    let mut out = Section { is_result: true, ..Section::new("Firmware") };
    let n_equal = found.n_settings.saturating_sub(found.uneven.len());
    out.intro
        .push(format!("Settings and versions that are equal within their class: {n_equal} of {}.", found.n_settings));
    let row = |(u, other): (&Uneven, &OtherValue)| {
        let names = other.nodes.iter().take(MOST_TOLD).map(|n| clean(n)).collect::<Vec<_>>().join(", ");
        let more = other.nodes.len().saturating_sub(MOST_TOLD);
        let names = if more > 0 { format!("{names} and {more} more") } else { names };
        let usual = u.usual.as_ref().map_or("no value has more than half".to_string(), |value| {
            format!("{} ({} of {})", clean(value), u.n_usual, u.n_known)
        });
        let what = u.attribute.as_ref().map_or_else(|| clean(&u.what), |name| clean(&format!("{} ({name})", u.what)));
        let class = fleet.classes.get(u.class).map_or_else(String::new, |class| clean(&class.name));
        vec![what, clean(&other.value), other.nodes.len().to_string(), names, usual, class]
    };
    let told = found.uneven.iter().flat_map(|u| u.others.iter().map(move |other| (u, other)));
    out.tables.push(Table {
        caption: "What some nodes of a class have otherwise; a setting that differs is a fact, that it costs anything is not said".into(),
        heads: heads(&["setting", "value", "nodes", "which", "usual in the class", "class"]),
        rows: told.take(MOST_FIRMWARE).map(row).collect(),
        n_text_columns: 6,
    });
    Some(out)
}

/// Small multiples: cost over time, of the odd nodes, and of others where a change was named.
fn courses(fleet: &Fleet) -> Option<Section> {
    let length_ms = fleet.window_s.filter(|_| fleet.n_windows > 1)? * 1e3;
    let title = if fleet.changed_at_ms.is_some() { word!("Before and after") } else { word!("Odd nodes over time") };
    let mut out = Section { is_result: true, ..Section::new(title) };
    let drawn = || fleet.nodes.iter().filter(|n| !n.course.is_empty()).take(MOST_PANELS);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // moments of this century
    let begin_ms = |w: usize| fleet.from_ms + (length_ms * w as f64) as u64;
    let when =
        |w: usize| humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(begin_ms(w))).to_string();
    let chart = Multiples {
        title: word!("Nodes over time").into(),
        across: word!("begin of the window").into(),
        y: AxisSpec::new(word!("cost over that of peers at the same load"), Show::Times, Scale::Log),
        places: (0..fleet.n_windows).map(when).collect(),
        panels: drawn().map(|n| (clean(&n.name), n.course.clone())).collect(),
        changed_before: fleet.changed_at_ms.map(|at| (0..fleet.n_windows).filter(|w| begin_ms(*w) < at).count()),
    };
    let caption = word!(
        "Each line is a node's cost over that of its peers at the same load, window by window; the dashed line is 1. A gap is a window that does not count, an upright line the moment of the change."
    );
    out.figures.extend(figure("courses", word!("Nodes over time"), caption, "measured", &chart));
    (!out.is_empty()).then_some(out)
}

/// A class as strips, and its nodes as a table.
fn class(fleet: &Fleet, at: usize) -> Option<Section> {
    let class = &fleet.classes[at];
    let nodes: Vec<&Node> = fleet.nodes.iter().filter(|n| n.class == at).collect();
    let known: Vec<Measure> =
        Measure::ALL.into_iter().filter(|m| nodes.iter().any(|n| n.measure(*m).is_some())).collect();
    if known.is_empty() {
        return None;
    }
    let title = format!("{}: {}", clean(&class.name), words::plural(class.n_nodes, "node"));
    let mut out = Section { is_result: true, ..Section::new(&title) };
    if class.is_ranked_only {
        out.intro.push(word!("Fewer than eight nodes: they are ranked, and none is called odd.").into());
    }
    let dots = |m: Measure| {
        let dot = |n: &&Node| {
            let of = n.measure(m)?;
            let is_odd = matches!(of.word, Word::Dearer | Word::Cheaper);
            Some(Dot { name: clean(&n.name), value: of.ratio, is_odd })
        };
        nodes.iter().filter_map(dot).collect::<Vec<Dot>>()
    };
    let chart = Strip {
        title: word!("Each node beside its peers").into(),
        of: word!("node").into(),
        x: AxisSpec::new(word!("over that of peers at the same load"), Show::Times, Scale::Log),
        rows: known.iter().map(|m| (m.title().to_string(), dots(*m))).collect(),
    };
    let caption = word!(
        "Each mark is a node: the median of its windows over that of its peers at the same load. Odd nodes are named."
    );
    out.figures.extend(figure(format!("strip{at}"), word!("Each node beside its peers"), caption, "measured", &chart));
    let mut names = vec![word!("node"), "is"];
    names.extend(known.iter().map(|m| m.title()));
    let has_change = nodes.iter().any(|n| n.change.is_some());
    names.extend(has_change.then_some(word!("before and after")));
    let row = |n: &&Node| {
        let mut row = vec![clean(&n.name), word(n.word).to_string()];
        row.extend(known.iter().map(|m| n.measure(*m).map_or("–".into(), ratio)));
        row.extend(has_change.then(|| n.change.as_ref().map_or("–".into(), change)));
        row
    };
    out.folded.push(Table {
        caption: word!("Nodes of this class: over that of peers, with the interval of their windows").into(),
        heads: heads(&names),
        rows: nodes.iter().map(row).collect(),
        n_text_columns: 2,
    });
    Some(out)
}

fn change(c: &Change) -> String {
    say!("{} to {} ({} beside peers)", c.measure.show(c.before), c.measure.show(c.after), Show::Times.text(c.ratio))
}

/// What was compared, and how.
fn measures(fleet: &Fleet) -> Section {
    let mut out = Section::new(word!("What was compared"));
    let row = |m: &wakewatt_fleet::document::MeasureSummary| {
        let label = match m.label {
            Label::Measured => "measured",
            Label::Modelled => "modelled",
            Label::Unavailable => "unavailable",
        };
        let percent = |r: f64| words::percent(r);
        let slope = m.load_slope.map_or("–".into(), |s| Show::Times.text(s.exp2()));
        vec![
            m.measure.title().to_string(),
            label.to_string(),
            clean(m.why.as_deref().unwrap_or_default()),
            m.n_nodes.to_string(),
            slope,
            m.usual_spread_ratio.map_or("–".into(), percent),
        ]
    };
    out.tables.push(Table {
        caption: word!("Measures, and what equal nodes usually differ by").into(),
        heads: heads(&[
            word!("measure"),
            word!("is"),
            word!("why"),
            word!("nodes"),
            word!("at twice the load"),
            word!("usual difference"),
        ]),
        rows: fleet.measures.iter().map(row).collect(),
        n_text_columns: 3,
    });
    out
}

fn remarks(fleet: &Fleet) -> Option<Section> {
    let mut out = Section::new(word!("To be known with it"));
    out.remarks.extend(fleet.remarks.iter().map(|r| clean(r)));
    let would = fleet.agent_would_add.iter();
    out.remarks.extend(would.map(|w| clean(&say!("The agent on each node would add {w}."))));
    // Its table is a list.
    (!out.remarks.is_empty()).then_some(out)
}
