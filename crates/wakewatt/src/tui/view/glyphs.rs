//! Characters and colours of bars and sparklines; block characters, or ASCII where the locale is not UTF-8.

use crate::tui::history::Series;
use crate::tui::state::Look;
use ratatui::style::{Color, Style};
use ratatui::symbols::border;
use ratatui::text::Span;
use wakewatt_core::watch::Reading;
use wakewatt_core::watch::document::Summary;
use wakewatt_core::watch::layout::StateInfo;

/// One kind of time: its character, colour, name and share.
pub(super) struct Part {
    pub(super) glyph: char,
    pub(super) style: Style,
    pub(super) name: String,
    pub(super) share: Reading<f64>,
}

const STATES: [(char, char, Color); 6] = [
    ('▓', '@', Color::Magenta),
    ('▒', '+', Color::Cyan),
    ('░', '=', Color::Blue),
    ('≡', '-', Color::Green),
    ('─', '~', Color::LightBlue),
    ('┄', '_', Color::LightGreen),
];

/// Busy, stolen, each state, still asleep.
pub(super) fn parts(look: Look, summary: &Summary, states: &[StateInfo]) -> Vec<Part> {
    let pick = |unicode: char, ascii: char| if look.is_unicode { unicode } else { ascii };
    let colour = |c: Color| if look.is_coloured { Style::new().fg(c) } else { Style::new() };
    let mut all = vec![
        Part { glyph: pick('█', '#'), style: colour(Color::Yellow), name: "busy".into(), share: summary.busy_ratio },
        Part { glyph: pick('▚', '!'), style: colour(Color::Red), name: "stolen".into(), share: summary.steal_ratio },
    ];
    for (rank, info) in states.iter().enumerate() {
        let (unicode, ascii, c) = STATES[rank.min(STATES.len() - 1)];
        let state = summary.idle.iter().find(|s| s.index == info.index);
        // A state these CPUs do not have takes none of their time.
        let share = state.map_or(Reading::Known(0.0), |s| s.share_ratio);
        all.push(Part { glyph: pick(unicode, ascii), style: colour(c), name: info.name.clone(), share });
    }
    let asleep = Part {
        glyph: pick('·', '.'),
        style: colour(Color::DarkGray),
        name: "asleep".into(),
        share: summary.asleep_ratio,
    };
    all.push(asleep);
    all
}

/// A bar of these shares; what is not known stays blank.
pub(super) fn bar(parts: &[Part], width: usize) -> Vec<Span<'static>> {
    let known: f64 = parts.iter().filter_map(|p| p.share.get()).sum();
    if known <= 0.0 || width == 0 {
        return vec![Span::raw(" ".repeat(width))];
    }
    // Rounding errors of ticks may add up to more than the whole.
    let scale = width as f64 / known.max(1.0);
    let exact: Vec<f64> = parts.iter().map(|p| p.share.get().unwrap_or(0.0) * scale).collect();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at most the width
    let mut cells: Vec<usize> = exact.iter().map(|x| x.floor() as usize).collect();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let total = (exact.iter().sum::<f64>().round() as usize).min(width);
    while cells.iter().sum::<usize>() < total {
        let left = |i: usize| exact[i] - cells[i] as f64;
        let Some(most) = (0..cells.len()).max_by(|a, b| left(*a).total_cmp(&left(*b))) else { break };
        cells[most] += 1;
    }
    let filled: usize = cells.iter().sum();
    let mut spans: Vec<Span<'static>> = parts
        .iter()
        .zip(&cells)
        .filter(|(_, n)| **n > 0)
        .map(|(part, n)| Span::styled(part.glyph.to_string().repeat(*n), part.style))
        .collect();
    spans.push(Span::raw(" ".repeat(width.saturating_sub(filled))));
    spans
}

/// The last `width` values, newest at the right. `top` is what fills a cell; the highest shown when none is given.
pub(super) fn spark(look: Look, series: &Series, width: usize, top: Option<f64>) -> String {
    let levels: Vec<char> =
        if look.is_unicode { "▁▂▃▄▅▆▇█".chars().collect() } else { "_.:-=+*#".chars().collect() };
    let shown: Vec<Option<f64>> = series.iter().rev().take(width).rev().copied().collect();
    let highest = top.unwrap_or_else(|| shown.iter().flatten().copied().fold(0.0, f64::max));
    let level = |v: f64| {
        let share = if highest > 0.0 { (v / highest).clamp(0.0, 1.0) } else { 0.0 };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to 7
        levels[((share * levels.len() as f64) as usize).min(levels.len() - 1)]
    };
    let text: String = shown.iter().map(|v| v.map_or(' ', level)).collect();
    format!("{text:>width$}")
}

/// Lines of a box.
pub(super) fn border(look: Look) -> border::Set<'static> {
    if look.is_unicode {
        return border::ROUNDED;
    }
    border::Set {
        top_left: "+",
        top_right: "+",
        bottom_left: "+",
        bottom_right: "+",
        vertical_left: "|",
        vertical_right: "|",
        horizontal_top: "-",
        horizontal_bottom: "-",
    }
}
