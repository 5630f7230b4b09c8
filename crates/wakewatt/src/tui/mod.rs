//! The screen of `wakewatt watch`: a state, what changes it, and how it is drawn, each pure; this file ties them to the
//! terminal and the clock.
//!
//! The process sleeps in one `poll` until the next reading is due, a key is pressed or a signal comes, so watching wakes
//! its own CPU once per interval and no more.

pub mod words;
pub mod areas;
pub mod filter;
pub mod rows;
pub mod history;
pub mod state;
pub mod update;
pub mod view;
mod keys;
mod terminal;
#[cfg(test)]
pub(crate) mod sample;

use crate::cli::WatchArgs;
use crate::exit::{Code, Failure};
use crate::gone;
use crate::interrupt::{Interrupt, Wait, Woken};
use crate::output::Colour;
use anyhow::{Context, Result};
use filter::Filter;
use rows::{GroupBy, Sort};
use state::{Look, Play, State};
use terminal::{Heard, Screen, size};
use update::{Effect, Event, update};
use wakewatt_core::watch::LatencyRow;
use wakewatt_host::clock;
use wakewatt_lab::watch::{Feed, LatencyFeed, Played};

/// Length of the first interval.
const FIRST_NS: u64 = 300_000_000;
/// The rest of a sequence comes with its Escape, or within this over a slow line.
const ESCAPE_NS: u64 = 50_000_000;

/// Words of the screen that are looked up where they are shown.
pub(crate) fn spoken() -> Vec<&'static str> {
    [words::spoken(), view::spoken()].concat()
}

/// Runs the screen until its user ends it.
pub fn run(
    args: &WatchArgs,
    colour: Colour,
    feed: &mut Feed,
    latency: &mut dyn LatencyFeed,
    interrupt: &Interrupt,
) -> Result<Code> {
    let mut state = start(args, colour, feed)?;
    let wait = Wait::listen()?;
    let mut screen = Screen::take(args.mouse)?;
    let mut due_ns = clock::monotonic_ns();
    loop {
        if interrupt.is_set() {
            return Ok(Code::Interrupted);
        }
        let mut effects: Vec<Effect> = Vec::new();
        if clock::monotonic_ns() >= due_ns {
            if let Some(event) = tick(&mut state, feed) {
                effects.extend(update(&mut state, event));
            }
            let rows = latency_now(&state, latency);
            effects.extend(update(&mut state, Event::Latency(rows)));
            // A machine that was stopped or suspended is late: what was missed is not made up for. The first interval is
            // short, so that there is something to see.
            let pace_ns = if state.rates.is_none() { state.interval_ns.min(FIRST_NS) } else { pace_ns(&state) };
            due_ns = next_due_ns(due_ns, pace_ns);
        }
        // What cannot be drawn on a terminal that has gone is no trouble of its own.
        if let Err(error) = screen.draw(state.size, |frame| wakewatt_words::spoken(|| view::draw(&state, frame))) {
            return Err(if gone::is_gone(rustix::stdio::stdout()) { gone::error() } else { error.into() });
        }
        let left_ns = due_ns.saturating_sub(clock::monotonic_ns());
        // Whether an Escape was the key shows when nothing follows it.
        let left_ns = if screen.is_waiting() { left_ns.min(ESCAPE_NS) } else { left_ns };
        let woken = wait.wait_for(Some(screen.input()), Some(rustix::stdio::stdout()), left_ns);
        // A signal counts before any key: it may have come because the terminal went.
        if interrupt.is_set() {
            return Ok(Code::Interrupted);
        }
        match woken {
            Woken::Time if !screen.is_waiting() => {}
            Woken::Gone => return Err(gone::error()),
            Woken::Time | Woken::Signal | Woken::Input => match screen.heard() {
                Heard::Gone => return Err(gone::error()),
                Heard::Keys(keys) => effects.extend(keys.into_iter().filter_map(|key| update(&mut state, key))),
            },
        }
        if let Some((width, height)) = size().filter(|size| *size != state.size) {
            effects.extend(update(&mut state, Event::Resize(width, height)));
        }
        for effect in effects {
            match effect {
                Effect::Quit => return Ok(Code::Fine),
                Effect::Interrupted => return Ok(Code::Interrupted),
                Effect::Interval(_) => due_ns = clock::monotonic_ns().saturating_add(state.interval_ns),
                Effect::Show(at) => show(&mut state, feed, at),
            }
        }
    }
}

/// When to read next. Late by more than an interval (stopped, suspended)? A whole one from now: rates over microseconds
/// are noise.
pub fn next_due_ns(due_ns: u64, interval_ns: u64) -> u64 {
    let (next_ns, now_ns) = (due_ns.saturating_add(interval_ns), clock::monotonic_ns());
    if next_ns > now_ns { next_ns } else { now_ns.saturating_add(interval_ns) }
}

/// How long one interval stays: as long as it took, or shorter when playing fast.
fn pace_ns(state: &State) -> u64 {
    match (&state.play, &state.rates) {
        (Some(play), Some(rates)) => {
            let length = rates.window.length_ns().clamp(20_000_000, 60_000_000_000);
            (length / u64::from(play.speed.max(1))).max(20_000_000)
        }
        _ => state.interval_ns,
    }
}

/// The next interval, if there is one now.
fn tick(state: &mut State, feed: &mut Feed) -> Option<Event> {
    match feed {
        Feed::Live(sampler) => {
            // A recorded host does not move: one reading says all there is.
            if sampler.is_still && state.rates.is_some() {
                return None;
            }
            let rates = sampler.take();
            if let Some(recorder) = &sampler.recorder {
                update(state, Event::Recorded(recorder.n_moments, recorder.trouble.clone()));
            }
            rates.map(|rates| Event::Rates(Box::new(rates)))
        }
        Feed::Play(player) => {
            let play = state.play.as_mut()?;
            if !play.is_running {
                return None;
            }
            if play.at + 1 >= play.n {
                play.is_running = false;
                return None;
            }
            play.at += 1;
            let at = play.at;
            if let Some(told) = player.told(at) {
                update(state, Event::Told(told));
            }
            player.rates(at).map(|rates| Event::Rates(Box::new(rates)))
        }
    }
}

/// Jumps to an interval of a recording, with the history that led there.
fn show(state: &mut State, feed: &mut Feed, at: usize) {
    let Feed::Play(player) = feed else { return };
    state.history = history::History::default();
    for before in at.saturating_sub(100)..=at {
        if let Some(rates) = player.rates(before) {
            update(state, Event::Rates(Box::new(rates)));
        }
    }
    if let Some(told) = player.told(at) {
        update(state, Event::Told(told));
    }
    let rows = played_latency(state);
    update(state, Event::Latency(rows));
}

fn start(args: &WatchArgs, colour: Colour, feed: &mut Feed) -> Result<State> {
    let (width, height) = size().context("the terminal does not tell its size")?;
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()));
    // Nothing set says nothing; terminals of today show UTF-8. A locale that names another charset is believed.
    let is_unicode = locale.is_none_or(|l| {
        let l = l.to_ascii_lowercase();
        l.contains("utf-8") || l.contains("utf8") || l == "c" || l == "posix"
    });
    let look = Look { is_coloured: colour.is_on(), is_unicode };
    let mut state = State::new(feed.layout(), look, (width, height), args.interval);
    state.group = GroupBy::start(args.group.as_deref(), state.title.n_cpus);
    state.sort = Sort::parse(args.sort.as_deref());
    state.filter =
        Filter::parse(args.filter.as_deref().unwrap_or_default()).map_err(|why| Failure::error(Code::Usage, why))?;
    if let Feed::Play(player) = feed {
        state.play = Some(play(&**player, args.speed));
        show(&mut state, feed, 0);
    }
    Ok(state)
}

fn play(player: &dyn Played, speed: u32) -> Play {
    Play { at: 0, n: player.n_intervals(), is_running: true, speed, end: player.end() }
}

/// Whoever traces now, or whoever traced then.
fn latency_now(state: &State, latency: &mut dyn LatencyFeed) -> Result<Vec<LatencyRow>, String> {
    if state.play.is_some() { played_latency(state) } else { latency.rows() }
}

fn played_latency(state: &State) -> Result<Vec<LatencyRow>, String> {
    let kept = state.rates.as_ref().and_then(|rates| rates.wake_latency.clone());
    kept.ok_or_else(|| "none was kept in this interval".into())
}
