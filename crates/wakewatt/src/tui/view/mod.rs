//! Draws a [`State`]: header, machine, panels, table, keys. Pure, so it is tested against a buffer.
//!
//! Colour only repeats what characters say already: residency bars differ by fill, the marked row is reversed, a number
//! that is not known is a word or a dash.

mod cpus;
mod glyphs;
mod header;
mod heat;
mod help;
mod idle;
mod keys;

use super::state::{Panel, State};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph};
use wakewatt_words::{say, word};

/// Words of the panels that stand in constants.
pub(crate) fn spoken() -> Vec<&'static str> {
    [keys::spoken(), help::spoken(), cpus::spoken()].concat()
}

/// The smallest screen.
pub const SMALLEST: (u16, u16) = (80, 24);
/// Draws everything.
pub fn draw(state: &State, frame: &mut Frame<'_>) {
    let (width, height) = state.size;
    if width < SMALLEST.0 || height < SMALLEST.1 {
        let text = say!(
            "terminal too small: needs {}x{}, has {width}x{height}; `watch --once` prints text",
            SMALLEST.0,
            SMALLEST.1
        );
        let wrapped = Paragraph::new(text).wrap(ratatui::widgets::Wrap { trim: true });
        frame.render_widget(wrapped, frame.area());
        return;
    }
    let areas = state.areas();
    header::draw(state, frame, areas.header);
    header::overview(state, frame, areas.overview);
    if let Some((left, right)) = areas.middle {
        boxed(
            state,
            frame,
            left,
            word!("idle states and wake-up latency"),
            Panel::Idle,
            idle::lines(state, left.width - 2),
        );
        boxed(state, frame, right, word!("power and heat"), Panel::Heat, heat::lines(state, right.width - 2));
    }
    header::tabs(state, frame, areas.tabs);
    let body = areas.table;
    match state.panel {
        Panel::Idle if areas.middle.is_none() => plain(frame, body, idle::lines(state, body.width)),
        Panel::Heat if areas.middle.is_none() => plain(frame, body, heat::lines(state, body.width)),
        _ => cpus::draw(state, frame, body),
    }
    header::footer(state, frame, areas.footer);
    if state.is_help {
        help::draw(state, frame);
    }
    if !state.look.is_unicode {
        spell_in_ascii(frame);
    }
    super::words::guard(frame.buffer_mut());
}

/// For a terminal that shows nothing else: punctuation has a plain twin, anything foreign becomes a question mark.
fn spell_in_ascii(frame: &mut Frame<'_>) {
    for cell in &mut frame.buffer_mut().content {
        let plain = match cell.symbol() {
            symbol if symbol.is_ascii() => continue,
            "·" => ".",
            "–" | "—" => "-",
            "…" => "~",
            "°" => " ",
            "█" => "_",
            _ => "?",
        };
        cell.set_symbol(plain);
    }
}

fn boxed(state: &State, frame: &mut Frame<'_>, area: Rect, title: &str, panel: Panel, lines: Vec<Line<'_>>) {
    let style = if state.panel == panel { accent(state) } else { dim(state) };
    let block = Block::new()
        .borders(Borders::ALL)
        .border_set(glyphs::border(state.look))
        .border_style(dim(state))
        .title(Span::styled(format!(" {title} "), style));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    plain(frame, inner, lines);
}

/// Lines, with a word about those that do not fit.
fn plain(frame: &mut Frame<'_>, area: Rect, mut lines: Vec<Line<'_>>) {
    let fit = usize::from(area.height);
    if lines.len() > fit && fit > 1 {
        let n = lines.len() - (fit - 1);
        lines.truncate(fit - 1);
        lines.push(Line::from(say!("… {n} more lines; a taller terminal or `watch --once` shows them")));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// Less important.
fn dim(state: &State) -> Style {
    if state.look.is_coloured { Style::new().fg(Color::DarkGray) } else { Style::new() }
}

/// Headings.
fn strong() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

/// What has the keys.
fn accent(state: &State) -> Style {
    if state.look.is_coloured { strong().fg(Color::Cyan) } else { strong().add_modifier(Modifier::UNDERLINED) }
}

/// What needs attention.
fn alarm(state: &State) -> Style {
    if state.look.is_coloured { strong().fg(Color::Red) } else { strong().add_modifier(Modifier::REVERSED) }
}

#[cfg(test)]
mod tests;
