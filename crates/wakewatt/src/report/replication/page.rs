//! Joined sessions as one HTML page: for each effect the sessions with their rounds, what they come to together, and the
//! windows behind every round.
//!
//! The picture has the three levels of the hierarchy: a tick is a round (the ratio of its two windows), a bar the interval of a
//! session over its rounds, the last bar that of the sessions, which alone speaks of the machine.

use super::{apart, caveat_words, scatter, sentence};
use crate::report::charts::forest;
use crate::report::data::{Data, Show};
use crate::report::figure::Figure;
use crate::report::finish::finish;
use crate::report::table::{Table, heads};
use crate::report::view::Section;
use crate::report::{template, words};
use anyhow::Context;
use minijinja::context;
use wakewatt_core::compare::replication::{JoinedEffect, Replication, SessionEffect};
use wakewatt_core::samples::experiment::Unit;
use wakewatt_words::{say, word};

/// Secondary effects that get a picture; the table has all.
const N_DRAWN: usize = 6;

/// The page.
pub(crate) fn html(found: &Replication, generated_at: &str) -> anyhow::Result<String> {
    wakewatt_words::spoken(|| {
        let env = template::environment()?;
        let page = env.get_template("replication_page.html").context("report template replication_page.html")?;
        let (primary, secondary): (Vec<&JoinedEffect>, Vec<&JoinedEffect>) =
            found.effects.iter().partition(|e| e.is_primary);
        let drawn = primary.iter().chain(secondary.iter().take(N_DRAWN)).enumerate();
        let mut sections: Vec<Section> = drawn.map(|(at, effect)| section(found, effect, at)).collect();
        let n_left = secondary.len().saturating_sub(N_DRAWN);
        if n_left > 0 {
            let rest = &secondary[N_DRAWN..];
            let title = say!("{n_left} more, each for itself");
            sections.push(Section { title, tables: vec![together(rest)], ..Section::default() });
        }
        let caveats: Vec<String> = found.caveats.iter().map(|c| caveat_words(*c, found)).collect();
        let left_out: Vec<String> = found.left_out.iter().map(|l| format!("{}: {}", l.name, l.why)).collect();
        page.render(context! {
            title => found.plan.as_deref().unwrap_or(word!("Joined sessions")),
            kind => super::who(found),
            sentence => primary.first().map_or_else(|| word!("No effect can be compared").to_string(), |e| sentence(e)),
            sections,
            caveats,
            left_out,
            runs => runs(found),
            generated_at,
            version => env!("CARGO_PKG_VERSION"),
        })
        .context("filling the page of joined sessions")
        .map(|html| finish(&html))
    })
}

/// One effect.
fn section(found: &Replication, effect: &JoinedEffect, at: usize) -> Section {
    let is_primary = if effect.is_primary { "" } else { word!(", secondary") };
    let title = say!("{}: {} against {}{is_primary}", effect.metric.title, effect.baseline, effect.arm);
    Section {
        intro: vec![words::ended(&sentence(effect))],
        figures: vec![picture(found, effect, &title, at)],
        tables: vec![sessions(effect)],
        folded: vec![rounds(effect)],
        remarks: [apart(effect), scatter(effect)].into_iter().filter(|line| !line.is_empty()).collect(),
        title,
        ..Section::default()
    }
}

/// A file's name without its folders.
fn short(name: &str) -> String {
    name.trim_end_matches('/').rsplit('/').next().unwrap_or(name).into()
}

fn ratio(round: &(f64, f64)) -> f64 {
    round.0 / round.1
}

fn picture(found: &Replication, effect: &JoinedEffect, title: &str, at: usize) -> Figure {
    let of_session = |s: &SessionEffect| forest::Row {
        label: short(&s.name),
        note: say!("{}, covers {}", words::plural(s.n_rounds, "round"), s.covers),
        index: 0,
        ratio: (s.ratio, s.ratio_low, s.ratio_high),
        parts: s.rounds.iter().map(ratio).collect(),
        is_primary: false,
    };
    let mut rows: Vec<forest::Row> = effect.sessions.iter().map(of_session).collect();
    if let Some((low, high)) = effect.ratio_low.zip(effect.ratio_high) {
        rows.push(forest::Row {
            label: word!("together").into(),
            note: say!("{}, covers {}", words::plural(effect.sessions.len(), "session"), effect.covers),
            index: 1,
            ratio: (effect.ratio, low, high),
            parts: Vec::new(),
            is_primary: true,
        });
    }
    let columns = [
        (word!("session"), Show::Text),
        (word!("rounds"), Show::Count),
        (word!("ratio"), Show::Times),
        (word!("low"), Show::Times),
        (word!("high"), Show::Times),
    ];
    let mut data = Data::with(&columns);
    for row in &rows {
        let (middle, low, high) = row.ratio;
        let n = row.parts.len() as f64;
        data.rows.push(vec![row.label.clone().into(), n.into(), middle.into(), low.into(), high.into()]);
    }
    let id = format!("session-effect-{at}");
    let sides = if effect.metric.unit == Unit::Nanoseconds {
        (word!("faster"), word!("slower"))
    } else {
        (word!("lower"), word!("higher"))
    };
    Figure {
        svg: forest::draw(&id, title, &found.baseline, sides, &rows),
        title: word!("Sessions, and what they say together").into(),
        caption: say!(
            "How many times as much with “{}” as with “{}”. A tick is a round, the ratio of its two windows; a bar is the 95 % interval of \
             a session over its rounds, which covers that run; the last bar is that over sessions, which covers {}. Shaded: within 5 % of equal.",
            effect.baseline,
            effect.arm,
            effect.covers
        ),
        label: "measured",
        table: None,
        csv: data.csv(),
        id,
    }
}

fn sessions(effect: &JoinedEffect) -> Table {
    let one = |s: &SessionEffect| {
        let interval = words::ratio_interval(s.ratio_low, s.ratio_high);
        vec![short(&s.name), words::ratio(s.ratio), interval, s.covers.to_string(), s.n_rounds.to_string()]
    };
    let mut rows: Vec<Vec<String>> = effect.sessions.iter().map(one).collect();
    if let Some((low, high)) = effect.ratio_low.zip(effect.ratio_high) {
        let (interval, n) =
            (words::ratio_interval(low, high), effect.sessions.iter().map(|s| s.n_rounds).sum::<usize>());
        rows.push(vec![
            word!("together").into(),
            words::ratio(effect.ratio),
            interval,
            effect.covers.to_string(),
            n.to_string(),
        ]);
    }
    Table {
        caption: word!("Each session by itself, and together: measured").into(),
        heads: heads(&[
            word!("session"),
            word!("ratio"),
            word!("95 % interval"),
            word!("which covers"),
            word!("rounds"),
        ]),
        rows,
        n_text_columns: 1,
    }
}

fn rounds(effect: &JoinedEffect) -> Table {
    let value = |v: f64| words::value(effect.metric.unit, v);
    let of_session = |s: &SessionEffect| {
        let name = short(&s.name);
        let row = |(at, round): (usize, &(f64, f64))| {
            vec![name.clone(), (at + 1).to_string(), value(round.0), value(round.1), words::ratio(ratio(round))]
        };
        s.rounds.iter().enumerate().map(row).collect::<Vec<_>>()
    };
    Table {
        caption: word!("Every round with its two windows: measured; rounds in which both counted").into(),
        heads: heads(&[
            word!("session"),
            word!("round"),
            effect.baseline.as_str(),
            effect.arm.as_str(),
            word!("ratio"),
        ]),
        rows: effect.sessions.iter().flat_map(of_session).collect(),
        n_text_columns: 1,
    }
}

fn together(effects: &[&JoinedEffect]) -> Table {
    let row = |e: &&JoinedEffect| {
        let interval =
            e.ratio_low.zip(e.ratio_high).map_or(word!("none").into(), |(low, high)| words::ratio_interval(low, high));
        vec![e.metric.title.clone(), e.arm.clone(), words::ratio(e.ratio), interval, e.covers.to_string()]
    };
    Table {
        caption: word!("Together: measured, 95 % intervals each for itself").into(),
        heads: heads(&[
            word!("metric"),
            word!("against"),
            word!("ratio"),
            word!("95 % interval"),
            word!("which covers"),
        ]),
        rows: effects.iter().map(row).collect(),
        n_text_columns: 2,
    }
}

fn runs(found: &Replication) -> Table {
    let row = |part: &wakewatt_core::compare::replication::Part| {
        let boot = part.boot.map_or(word!("not known").into(), |boot| boot.to_string());
        vec![part.name.clone(), part.host.to_string(), boot]
    };
    Table {
        caption: word!("The runs that take part").into(),
        heads: heads(&[word!("run"), word!("host"), word!("boot")]),
        rows: found.sessions.iter().map(row).collect(),
        n_text_columns: 1,
    }
}
