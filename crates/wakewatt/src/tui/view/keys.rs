//! The keys at the foot of the screen, and what each does.

use super::{accent, dim};
use crate::tui::state::State;
use ratatui::text::{Line, Span};
use wakewatt_words::told;

/// Keys and what they do, while machine or recording is watched.
const LIVE: [(&str, &str); 9] = [
    ("q", "quit"),
    ("?", "help"),
    ("p", "pause"),
    ("s", "sort"),
    ("/", "filter"),
    ("g", "group"),
    ("enter", "fold"),
    ("tab", "panel"),
    ("+-", "time"),
];
/// The same while playing.
const PLAY: [(&str, &str); 7] = [
    ("q", "quit"),
    ("?", "help"),
    ("space", "play"),
    ("left/right", "step"),
    ("home/end", "first, last"),
    ("+-", "speed"),
    ("tab", "panel"),
];

/// What is looked up of these.
pub(super) fn spoken() -> Vec<&'static str> {
    LIVE.iter().chain(&PLAY).map(|(_, what)| *what).collect()
}

/// The keys in a line.
pub(super) fn line(state: &State) -> Line<'static> {
    let list: &[(&str, &str)] = if state.play.is_some() { &PLAY } else { &LIVE };
    let bar = if state.look.is_unicode { "│" } else { "|" };
    let mut spans = Vec::new();
    for (at, (key, what)) in list.iter().enumerate() {
        spans.push(Span::styled(if at == 0 { " " } else { bar }, dim(state)));
        spans.push(Span::styled(*key, accent(state)));
        spans.push(Span::raw(format!(" {}", told(what))));
    }
    Line::from(spans)
}
