//! The help over everything else: keys, columns, words.

use super::{accent, dim, glyphs, strong};
use crate::tui::state::State;
use crate::view::width::padded;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph};
use wakewatt_words::{told, word};

const KEYS: &[(&str, &str)] = &[
    ("q, ctrl-c", "quit"),
    ("p, space", "pause the screen (recording goes on); playing: play, stop"),
    ("s", "sort: cpu, busy, wakeups, misses, asleep, freq, throttles"),
    ("g", "rows by package, node, core, cpu"),
    ("enter", "show or hide the CPUs of a group"),
    ("/", "filter: 0-3,8 busy>50 wakes>1000 package=1 asleep limited"),
    ("tab", "panel: CPUs, idle states, power and heat"),
    ("+ -", "longer, shorter interval; playing: speed"),
    ("arrows, pages", "move the mark, also home, end; playing: left, right = time"),
];
const WORDS: &[(&str, &str)] = &[
    ("asleep", "in a sleep that has not ended yet: the kernel books it on waking"),
    ("wakes/s", "idle states left per second, of all kinds"),
    ("above", "woke before the idle state paid"),
    ("below", "slept long enough for a deeper idle state"),
    ("~GHz", "stale: the CPU did not run"),
    ("dead", "the counter exists and does not move"),
    ("claimed", "the driver's word for the exit latency, not measured"),
    ("quiet", "memory only; --sources package and all interrupt CPUs"),
];

/// What is looked up of these.
pub(super) fn spoken() -> Vec<&'static str> {
    KEYS.iter().map(|(_, what)| *what).chain(WORDS.iter().flat_map(|(word, what)| [*word, *what])).collect()
}

/// Draws it.
pub(super) fn draw(state: &State, frame: &mut Frame<'_>) {
    let all = frame.area();
    let height = u16::try_from(KEYS.len() + WORDS.len() + 5).unwrap_or(24).min(all.height);
    let width = all.width.min(80);
    let area = Rect::new((all.width - width) / 2, (all.height - height) / 2, width, height);
    let mut lines = Vec::new();
    for (key, what) in KEYS {
        lines.push(Line::from(vec![Span::styled(format!(" {key:<14}"), accent(state)), Span::raw(told(what))]));
    }
    lines.push(Line::raw(""));
    for (word, what) in WORDS {
        lines.push(Line::from(vec![
            Span::styled(format!(" {}", padded(told(word), 14)), strong()),
            Span::raw(told(what)),
        ]));
    }
    lines.push(Line::raw(""));
    lines.push(Line::styled(word!(" any key closes this"), dim(state)));
    let block = Block::new().borders(Borders::ALL).border_set(glyphs::border(state.look)).title(word!(" help "));
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(block), area);
}
