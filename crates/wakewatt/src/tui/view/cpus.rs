//! The table: one row per CPU or group, with more columns the wider the screen.
//!
//! To add a column: a variant of `Kind`, its line in `COLUMNS` and its cell in `text`.

use super::{accent, alarm, dim, glyphs, strong};
use crate::tui::rows::Row;
use crate::tui::state::State;
use crate::tui::words::{self, cell, count, percent};
use crate::view::width::{begin, padded, right};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use wakewatt_core::units::LatencyLimit;
use wakewatt_words::{told, word};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Name,
    Busy,
    Freq,
    Bar,
    Wakeups,
    Above,
    Below,
    Watts,
    Heat,
    Asleep,
    Limit,
    Throttles,
    Steal,
    History,
}

/// Heading, width, and the screen's width from which it is shown. Bar and history share what is left.
const COLUMNS: &[(Kind, &str, usize, usize)] = &[
    (Kind::Name, "", 13, 0),
    (Kind::Busy, "busy", 6, 0),
    (Kind::Freq, "GHz", 5, 0),
    (Kind::Bar, "where the time went", 0, 0),
    (Kind::Asleep, "asleep", 6, 120),
    (Kind::Wakeups, "wakes/s", 7, 0),
    (Kind::Above, "above/s", 7, 0),
    (Kind::Below, "below/s", 7, 0),
    (Kind::Watts, "watts", 6, 100),
    (Kind::Heat, "heat", 5, 100),
    (Kind::Limit, "limit", 6, 90),
    (Kind::Throttles, "throt/s", 7, 130),
    (Kind::Steal, "stolen", 6, 140),
    (Kind::History, "busy before", 0, 150),
];
/// What is looked up of these.
pub(super) fn spoken() -> Vec<&'static str> {
    COLUMNS.iter().map(|(_, title, ..)| *title).collect()
}

/// A bar wider than this says nothing more.
const WIDEST_BAR: usize = 60;

struct Column {
    kind: Kind,
    title: &'static str,
    width: usize,
}

fn columns(width: usize) -> Vec<Column> {
    let shown: Vec<_> = COLUMNS.iter().filter(|(.., from)| width >= *from).collect();
    let fixed: usize = shown.iter().map(|(_, _, w, _)| w + 1).sum();
    let left = width.saturating_sub(fixed + 1);
    let has_history = shown.iter().any(|(kind, ..)| *kind == Kind::History);
    let bar = if has_history { (left / 2).min(WIDEST_BAR) } else { left.min(WIDEST_BAR) };
    let history = left.saturating_sub(bar).min(100);
    let width_of = |kind: Kind, w: usize| match kind {
        Kind::Bar => bar,
        Kind::History => history,
        _ => w,
    };
    shown.into_iter().map(|(kind, title, w, _)| Column { kind: *kind, title, width: width_of(*kind, *w) }).collect()
}

/// Draws heading and rows.
pub(super) fn draw(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let columns = columns(usize::from(area.width));
    let mut heading = Vec::new();
    for column in &columns {
        let w = column.width;
        let title = begin(told(column.title), w);
        let text = match column.kind {
            Kind::Name => format!(" {}", padded(state.group.word(), w)),
            Kind::Bar | Kind::History => format!(" {}", padded(title, w)),
            _ => format!(" {}", right(title, w)),
        };
        heading.push(Span::styled(text, dim(state).add_modifier(Modifier::BOLD)));
    }
    let mut lines = vec![Line::from(heading)];
    if state.rows.is_empty() {
        let why = match (&state.rates, state.filter.is_empty()) {
            (None, _) => word!(" reading the first interval …"),
            (_, false) => word!(" no CPU passes the filter; / changes it, esc clears it"),
            (_, true) => word!(" no CPU"),
        };
        lines.push(Line::raw(why));
    }
    for (at, row) in state.rows.iter().enumerate().skip(state.scroll).take(state.page()) {
        let is_marked = at == state.selected;
        lines.push(line(state, row, &columns, is_marked));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

fn line(state: &State, row: &Row, columns: &[Column], is_marked: bool) -> Line<'static> {
    let mut spans = Vec::new();
    for column in columns {
        let w = column.width;
        match column.kind {
            Kind::Name => {
                let mark = if is_marked { if state.look.is_unicode { "▸" } else { ">" } } else { " " };
                let fold = match row.is_unfolded {
                    Some(true) => "- ",
                    Some(false) => "+ ",
                    None if row.is_child => "  ",
                    None => "",
                };
                let text = format!("{mark}{}", padded(&format!("{fold}{}", row.label), w));
                let style = if row.is_child { Style::new() } else { strong() };
                let style = if is_marked { accent(state).add_modifier(Modifier::REVERSED) } else { style };
                spans.push(Span::styled(text, style));
            }
            Kind::Bar => {
                spans.push(Span::raw(" "));
                let states = state.rates.as_ref().map_or(&[][..], |r| &r.states);
                spans.extend(glyphs::bar(&glyphs::parts(state.look, &row.summary, states), w));
            }
            Kind::History => {
                let series = state.history.busy_of(&row.cpus, w);
                spans.push(Span::styled(format!(" {}", glyphs::spark(state.look, &series, w, Some(1.0))), dim(state)));
            }
            _ => {
                let (text, style) = text(state, row, column.kind);
                spans.push(Span::styled(format!(" {}", right(&text, w)), style));
            }
        }
    }
    Line::from(spans)
}

fn text(state: &State, row: &Row, kind: Kind) -> (String, Style) {
    let s = &row.summary;
    let plain = Style::new();
    // A dash or a word stands back behind the numbers.
    let styled = |text: String, is_known: bool| (text, if is_known { plain } else { dim(state) });
    let number = |r: wakewatt_core::watch::Reading<f64>, show: fn(f64) -> String| {
        styled(cell(r, show), r.get().is_some_and(|v| v != 0.0))
    };
    match kind {
        Kind::Busy => number(s.busy_ratio, percent),
        Kind::Asleep => number(s.asleep_ratio, percent),
        Kind::Steal => number(s.steal_ratio, percent),
        Kind::Freq => {
            let text = cell(s.freq_khz, words::ghz);
            if s.is_freq_stale && s.freq_khz.get().is_some() { (format!("~{text}"), dim(state)) } else { (text, plain) }
        }
        Kind::Wakeups => number(s.wakeups_per_s, count),
        Kind::Above => number(s.above_per_s, count),
        Kind::Below => number(s.below_per_s, count),
        Kind::Throttles => match s.throttles_per_s.get() {
            Some(n) if n > 0.0 => (count(n), alarm(state)),
            _ => number(s.throttles_per_s, count),
        },
        Kind::Watts => number(row.power_uw, words::watts),
        Kind::Heat => styled(cell(row.temperature_mc, words::celsius), row.temperature_mc.get().is_some()),
        Kind::Limit => match s.cpu_limit.get() {
            Some(LatencyLimit::None) => (word!("none").into(), dim(state)),
            Some(limit) => (words::limit(limit), alarm(state)),
            None => styled(cell(s.cpu_limit, words::limit), false),
        },
        Kind::Name | Kind::Bar | Kind::History => (String::new(), plain),
    }
}
