//! What a key or a new interval changes. Pure: what must be done outside is returned as an [`Effect`].

use super::filter::Filter;
use super::rows::Key;
use super::state::{Panel, Play, State};
use ratatui::crossterm::event::KeyCode;
use wakewatt_core::watch::{LatencyRow, Rates};

/// Intervals that `+` and `-` step through.
const INTERVALS_NS: [u64; 9] = [
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
    30_000_000_000,
    60_000_000_000,
];
/// Speeds of playing.
const SPEEDS: [u32; 9] = [1, 2, 5, 10, 20, 50, 100, 200, 500];

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A key.
    Key(KeyCode),
    /// Ctrl-C as a key: raw terminals send no signal for it.
    Interrupt,
    /// The mouse wheel: lines down.
    Wheel(isize),
    /// The terminal's new size.
    Resize(u16, u16),
    /// A new interval.
    Rates(Box<Rates>),
    /// The recording got this far, or stopped.
    Recorded(u64, Option<String>),
    /// What changed in the interval that is played.
    Told(String),
    /// What tracing knows.
    Latency(Result<Vec<LatencyRow>, String>),
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// End, as its user wished.
    Quit,
    /// End, interrupted.
    Interrupted,
    /// Read this often from now on.
    Interval(u64),
    /// Show this interval of the recording.
    Show(usize),
}

/// Changes the state.
pub fn update(state: &mut State, event: Event) -> Option<Effect> {
    match event {
        Event::Interrupt => return Some(Effect::Interrupted),
        Event::Resize(width, height) => {
            state.size = (width, height);
            state.keep_in_sight();
        }
        Event::Rates(rates) => {
            if !state.is_paused {
                state.history.push(&rates);
                state.rates = Some(*rates);
                state.refresh();
            }
        }
        Event::Recorded(n, trouble) => {
            let recorded = state.recorded.get_or_insert_default();
            if trouble.is_some() && recorded.trouble.is_none() {
                state.message.clone_from(&trouble);
            }
            (recorded.n, recorded.trouble) = (n, trouble);
        }
        Event::Latency(rows) => {
            if !state.is_paused {
                state.latency = rows;
            }
        }
        // It stays until the next, or until a key is pressed.
        Event::Told(what) => {
            if state.editing.is_none() {
                state.message = Some(what);
            }
        }
        Event::Wheel(lines) => move_by(state, lines),
        Event::Key(key) => return on_key(state, key),
    }
    None
}

fn on_key(state: &mut State, key: KeyCode) -> Option<Effect> {
    if state.editing.is_some() {
        edit(state, key);
        return None;
    }
    state.message = None;
    if state.is_help {
        // Any key closes the help; q there must not end the program by surprise.
        state.is_help = false;
        return None;
    }
    if state.play.is_some() {
        if let Some(effect) = play_key(state, key) {
            return effect;
        }
    }
    let page = isize::try_from(state.page()).unwrap_or(1);
    match key {
        KeyCode::Char('q') => return Some(Effect::Quit),
        KeyCode::Char('?' | 'h') => state.is_help = true,
        KeyCode::Char('p' | ' ') => state.is_paused = !state.is_paused,
        KeyCode::Char('s') => {
            state.sort = state.sort.next();
            state.refresh();
        }
        KeyCode::Char('g') => {
            state.group = state.group.next();
            (state.selected, state.scroll) = (0, 0);
            state.unfolded.clear();
            state.rows.clear();
            state.refresh();
        }
        KeyCode::Char('/') => state.editing = Some(state.filter.text.clone()),
        KeyCode::Char(sign @ ('+' | '=' | '-')) => return change_interval(state, sign != '-'),
        KeyCode::Up | KeyCode::Char('k') => move_by(state, -1),
        KeyCode::Down | KeyCode::Char('j') => move_by(state, 1),
        KeyCode::PageUp => move_by(state, -page),
        KeyCode::PageDown => move_by(state, page),
        KeyCode::Home => move_by(state, isize::MIN / 2),
        KeyCode::End => move_by(state, isize::MAX / 2),
        KeyCode::Enter => fold(state),
        KeyCode::Tab => switch(state, 1),
        KeyCode::BackTab => switch(state, 2),
        KeyCode::Esc if !state.filter.is_empty() => {
            state.filter = Filter::default();
            state.refresh();
        }
        _ => {}
    }
    None
}

fn move_by(state: &mut State, lines: isize) {
    let last = state.rows.len().saturating_sub(1);
    state.selected = state.selected.saturating_add_signed(lines).min(last);
    state.keep_in_sight();
}

fn switch(state: &mut State, steps: usize) {
    const PANELS: [Panel; 3] = [Panel::Cpus, Panel::Idle, Panel::Heat];
    let at = PANELS.iter().position(|p| *p == state.panel).unwrap_or(0);
    state.panel = PANELS[(at + steps) % PANELS.len()];
    state.keep_in_sight();
}

/// Enter on a group shows or hides its CPUs; on a CPU below a group it goes back to the group.
fn fold(state: &mut State) {
    let Some(row) = state.rows.get(state.selected) else { return };
    let (key, is_child) = (row.key, row.is_child);
    if is_child {
        let above = state.rows[..state.selected].iter().rposition(|r| !r.is_child);
        state.selected = above.unwrap_or(0);
    } else if matches!(key, Key::Group(_) | Key::Unknown) && !state.unfolded.remove(&key) {
        state.unfolded.insert(key);
    }
    state.refresh();
}

fn edit(state: &mut State, key: KeyCode) {
    let Some(text) = &mut state.editing else { return };
    match key {
        KeyCode::Char(c) if !c.is_control() && text.len() < 200 => text.push(c),
        KeyCode::Backspace => {
            text.pop();
        }
        KeyCode::Esc => {
            state.editing = None;
            state.message = None;
        }
        KeyCode::Enter => match Filter::parse(text) {
            Ok(filter) => {
                state.filter = filter;
                (state.editing, state.message) = (None, None);
                (state.selected, state.scroll) = (0, 0);
                state.rows.clear();
                state.refresh();
            }
            // What was typed stays, to be corrected.
            Err(why) => state.message = Some(why),
        },
        _ => {}
    }
}

fn change_interval(state: &mut State, is_longer: bool) -> Option<Effect> {
    let now = state.interval_ns;
    let next = if is_longer {
        INTERVALS_NS.iter().copied().find(|ns| *ns > now)
    } else {
        INTERVALS_NS.iter().copied().rev().find(|ns| *ns < now)
    }?;
    state.interval_ns = next;
    Some(Effect::Interval(next))
}

/// Keys that mean something else while playing. `Some(None)`: taken, nothing to do outside.
fn play_key(state: &mut State, key: KeyCode) -> Option<Option<Effect>> {
    let play = state.play.as_mut()?;
    let show = |play: &mut Play, at: usize| {
        let at = at.min(play.n.saturating_sub(1));
        (play.at != at).then(|| {
            play.at = at;
            Effect::Show(at)
        })
    };
    match key {
        KeyCode::Left => Some(show(play, play.at.saturating_sub(1))),
        KeyCode::Right => Some(show(play, play.at + 1)),
        KeyCode::Home => Some(show(play, 0)),
        KeyCode::End => Some(show(play, usize::MAX)),
        KeyCode::Char('p' | ' ') => {
            // From the end it starts again.
            let is_at_end = play.at + 1 >= play.n;
            play.is_running = !play.is_running;
            Some(if play.is_running && is_at_end { show(play, 0) } else { None })
        }
        KeyCode::Char(sign @ ('+' | '=' | '-')) => {
            let next = match sign {
                '-' => SPEEDS.iter().rev().find(|speed| **speed < play.speed),
                _ => SPEEDS.iter().find(|speed| **speed > play.speed),
            };
            play.speed = next.copied().unwrap_or(play.speed);
            Some(None)
        }
        _ => None,
    }
}
