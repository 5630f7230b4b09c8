//! Snapshots on ratatui's test backend: a small machine and one of 512 CPUs, at the smallest size and a large one.
//!
//! The counters are made here. `UPDATE_EXPECT=1 cargo test -p wakewatt tui` rewrites the pictures; look at them.

use super::draw;
use crate::tui::sample::{large, small};
use crate::tui::state::{Look, Panel, Play, State};
use crate::tui::update::{Effect, Event, update};
use expect_test::{ExpectFile, expect_file};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::KeyCode;
use wakewatt_core::watch::LatencyRow;
use wakewatt_core::watch::document::PlaceRate;

fn picture(state: &State) -> String {
    let mut terminal = Terminal::new(TestBackend::new(state.size.0, state.size.1)).unwrap();
    terminal.draw(|frame| draw(state, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y: u16| (0..state.size.0).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_string();
    (0..state.size.1).map(line).collect::<Vec<_>>().join("\n") + "\n"
}

fn check(state: &State, expected: &ExpectFile) {
    expected.assert_eq(&picture(state));
}

fn press(state: &mut State, keys: &str) -> Vec<Effect> {
    keys.chars()
        .filter_map(|c| {
            let key = match c {
                '\n' => KeyCode::Enter,
                '\t' => KeyCode::Tab,
                '\u{1b}' => KeyCode::Esc,
                '↓' => KeyCode::Down,
                '→' => KeyCode::Right,
                c => KeyCode::Char(c),
            };
            update(state, Event::Key(key))
        })
        .collect()
}

const SMALL: (u16, u16) = (80, 24);
const LARGE: (u16, u16) = (200, 60);

#[test]
fn small_machine_on_the_smallest_screen() {
    let mut state = small(SMALL);
    check(&state, &expect_file!["snapshots/small-80x24.txt"]);
    press(&mut state, "\t");
    check(&state, &expect_file!["snapshots/small-80x24-idle.txt"]);
    press(&mut state, "\t");
    check(&state, &expect_file!["snapshots/small-80x24-heat.txt"]);
    press(&mut state, "?");
    check(&state, &expect_file!["snapshots/small-80x24-help.txt"]);
}

#[test]
fn small_machine_on_a_large_screen() {
    let mut state = small(LARGE);
    let row = LatencyRow {
        state: "C6".into(),
        class: "remote".into(),
        n: 12_345,
        p50_ns: Some(88_000),
        p99_ns: None,
        lost_ns: 1_100_000_000,
    };
    update(&mut state, Event::Latency(Ok(vec![row])));
    check(&state, &expect_file!["snapshots/small-200x60.txt"]);
}

#[test]
fn five_hundred_cpus() {
    let mut state = large(SMALL);
    check(&state, &expect_file!["snapshots/large-80x24.txt"]);
    press(&mut state, "↓\ns");
    check(&state, &expect_file!["snapshots/large-80x24-unfolded.txt"]);
    check(&large(LARGE), &expect_file!["snapshots/large-200x60.txt"]);
}

#[test]
fn plain_ascii_without_colour() {
    let mut state = small(SMALL);
    state.look = Look { is_coloured: false, is_unicode: false };
    check(&state, &expect_file!["snapshots/small-80x24-ascii.txt"]);
}

#[test]
fn too_small_says_what_it_needs() {
    let text = picture(&small((40, 10)));
    let words: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words, "terminal too small: needs 80x24, has 40x10; `watch --once` prints text");
}

#[test]
fn every_size_draws_and_every_key_is_harmless() {
    let mut state = large((80, 24));
    for (width, height) in [(1, 1), (80, 24), (81, 25), (120, 36), (119, 60), (250, 70), (500, 200), (0, 0)] {
        update(&mut state, Event::Resize(width, height));
        for key in "?xps/0-3\n\ng\t\t\tgjjjk+-\u{1b}g\n↓→".chars() {
            press(&mut state, &key.to_string());
            if width > 0 && height > 0 {
                picture(&state);
            }
        }
    }
}

#[test]
fn keys_change_what_they_say() {
    let mut state = small(SMALL);
    assert_eq!(press(&mut state, "q"), [Effect::Quit]);
    assert_eq!(press(&mut state, "+"), [Effect::Interval(2_000_000_000)]);
    assert_eq!(press(&mut state, "-"), [Effect::Interval(1_000_000_000)]);
    press(&mut state, "/busy>200%\n");
    assert!(state.message.as_deref().unwrap().contains("use a CPU list"), "a wrong filter is explained");
    assert!(picture(&state).contains("use a CPU list"));
    press(&mut state, "\u{1b}/1\n");
    assert_eq!(state.rows.len(), 1);
    press(&mut state, "\u{1b}p");
    assert!(state.is_paused && picture(&state).contains("PAUSED") && state.rows.len() == 4);
    let before = state.rates.clone();
    update(&mut state, Event::Rates(Box::default()));
    assert_eq!(state.rates, before, "a paused screen stands still");
    assert_eq!(update(&mut state, Event::Interrupt), Some(Effect::Interrupted));
}

#[test]
fn time_travel() {
    let mut state = small(SMALL);
    state.play = Some(Play { at: 1, n: 3, is_running: false, speed: 1, end: "recording: done".into() });
    assert_eq!(press(&mut state, "→"), [Effect::Show(2)]);
    assert_eq!(press(&mut state, "→"), []);
    assert_eq!(press(&mut state, "p+"), [Effect::Show(0)], "from the end it starts again");
    let text = picture(&state);
    assert!(text.contains("PLAY 1/3 x2") && text.contains("recording: done"), "{text}");
}

#[test]
fn a_history_without_single_cpus_is_shown_by_place() {
    let mut state = small(SMALL);
    state.play = Some(Play { at: 1, n: 60_480, is_running: true, speed: 100, end: "history of an agent".into() });
    let mut rates = state.rates.clone().unwrap();
    let place = |node| PlaceRate { node: Some(node), package: Some(0), summary: rates.machine.summary.clone() };
    (rates.places, rates.wall_at_ns) = (vec![place(0), place(1)], 1_795_168_800_000_000_000);
    rates.cpus.clear();
    update(&mut state, Event::Rates(Box::new(rates)));
    update(&mut state, Event::Told("idle_governor: menu -> teo".into()));
    let text = picture(&state);
    for part in ["2026-11-20 10:00:00 UTC", "x100", "pkg 0 node 1", "– not kept", "idle_governor: menu -> teo"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains(" 0 of 4 throughout"), "{text}");
    press(&mut state, "s");
    assert!(!picture(&state).contains("menu -> teo"), "a key takes it away");
}

#[test]
fn a_full_disk_is_said_once_and_stays_visible() {
    let mut state = small(SMALL);
    let trouble = Some("/r/counters.watch: No space left on device; the recording ends after 7 moments".to_string());
    update(&mut state, Event::Recorded(7, trouble.clone()));
    assert!(picture(&state).contains("No space left"));
    press(&mut state, "j");
    update(&mut state, Event::Recorded(7, trouble));
    let text = picture(&state);
    assert!(!text.contains("No space left") && text.contains("RECORDING INCOMPLETE after 7"), "{text}");
}

#[test]
fn panels_by_name() {
    let mut state = small(SMALL);
    press(&mut state, "\t");
    assert_eq!(state.panel, Panel::Idle);
}
