//! The terminal goes away: ssh drops, the window closes, tmux is killed. Everything that runs ends, by itself, with 130,
//! without a panic and without spinning; and who was told to outlive its terminal does.
//!
//! CPU time is counted, not timed: a loop that never waits uses all it can get until somebody kills it.

use crate::pty::{Bond, PATIENCE, Pty, Running, command};
use crate::tool::wait_until;
use rustix::process::Signal;
use std::fs;
use std::process::Stdio;

/// Two seconds of CPU: a start in a debug build and some readings need a tenth.
const MOST_TICKS: u64 = 200;

/// `watch` on both ends of a terminal, started and drawn.
fn screen(bond: Bond, more: &[&str]) -> (Pty, Running) {
    let mut pty = Pty::open();
    let args = [&["watch", "--interval", "200ms"], more].concat();
    let mut command = command(bond, &args);
    let child = command.stdin(pty.end()).stdout(pty.end()).stderr(pty.end()).spawn().unwrap();
    drop(command);
    let running = Running(child);
    pty.wait_for("wakes/s");
    (pty, running)
}

#[test]
fn a_screen_ends_with_its_terminal() {
    for bond in [Bond::Open, Bond::Controlling] {
        for keys in ["", "s", "\x1b[B", "/busy"] {
            for is_told in [false, true] {
                let (mut pty, mut running) = screen(bond, &[]);
                if !keys.is_empty() {
                    pty.forget();
                    pty.press(keys);
                    pty.wait_for("\x1b[");
                }
                let before = running.cpu_ticks();
                pty.close();
                if is_told {
                    running.signal(Signal::TERM);
                }
                let mut used = before;
                let has_ended = wait_until(PATIENCE, || {
                    used = used.max(running.cpu_ticks());
                    running.0.try_wait().unwrap().is_some() || used > before + MOST_TICKS
                });
                assert!(has_ended && used <= before + MOST_TICKS, "{bond:?}, {keys:?}: {} ticks", used - before);
                assert_eq!(running.code(), Some(130), "{bond:?}, {keys:?}, TERM: {is_told}");
            }
        }
    }
}

#[test]
fn a_screen_ends_when_only_its_output_goes() {
    let (keyboard, mut shown) = (Pty::open(), Pty::open());
    let mut command = command(Bond::Open, &["watch", "--interval", "200ms"]);
    let child = command.stdin(keyboard.end()).stdout(shown.end()).stderr(Stdio::piped()).spawn().unwrap();
    drop(command);
    let mut running = Running(child);
    shown.wait_for("wakes/s");
    shown.close();
    assert_eq!(running.code(), Some(130));
    let mut said = String::new();
    std::io::Read::read_to_string(running.0.stderr.as_mut().unwrap(), &mut said).unwrap();
    assert!(said.contains("the terminal is gone") && !said.contains("panicked"), "{said}");
    assert!(keyboard.is_restored());
}

#[test]
fn sigterm_with_a_living_terminal_gives_it_back() {
    let (pty, mut running) = screen(Bond::Controlling, &["--mouse"]);
    running.signal(Signal::TERM);
    assert_eq!(running.code(), Some(130));
    assert!(pty.is_restored());
}

#[test]
fn a_recording_gets_its_end_when_the_terminal_goes() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("r");
    let (pty, mut running) = screen(Bond::Open, &["--record", folder.to_str().unwrap()]);
    pty.close();
    assert_eq!(running.code(), Some(130));
    assert!(fs::read_to_string(folder.join("counters.watch")).unwrap().contains("the screen was lost"));
}

#[test]
fn a_stream_ends_with_its_terminal_at_once() {
    for bond in [Bond::Open, Bond::Controlling] {
        for kind in ["--json", "--csv"] {
            let mut pty = Pty::open();
            // The first interval is one of ten minutes: nothing is ever written.
            let dir = tempfile::tempdir().unwrap();
            let folder = dir.path().join("r");
            let args = ["watch", kind, "--interval", "10min", "--record", folder.to_str().unwrap()];
            let mut command = command(bond, &args);
            let child = command.stdin(pty.end()).stdout(pty.end()).stderr(pty.end()).spawn().unwrap();
            drop(command);
            let mut running = Running(child);
            let file = folder.join("counters.watch");
            assert!(wait_until(PATIENCE, || fs::read_to_string(&file).is_ok_and(|t| t.lines().count() >= 3)));
            pty.forget();
            pty.close();
            assert_eq!(running.code(), Some(130), "{bond:?} {kind}");
            assert!(fs::read_to_string(&file).unwrap().contains(r#"{"end":"#));
        }
    }
}

#[test]
fn who_was_told_to_outlive_its_terminal_does() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("r");
    let program = crate::tool::PROGRAM;
    let script = format!("trap '' HUP; exec {program} watch --json --interval 100ms --record {}", folder.display());
    let mut sh = std::process::Command::new("sh");
    let child = sh.args(["-c", &script]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = Running(child.spawn().unwrap());
    let file = folder.join("counters.watch");
    let n_lines = || fs::read_to_string(&file).map_or(0, |t| t.lines().count());
    assert!(wait_until(PATIENCE, || n_lines() >= 3));
    running.signal(Signal::HUP);
    let then = n_lines();
    assert!(wait_until(PATIENCE, || n_lines() >= then + 3), "it goes on");
    running.signal(Signal::TERM);
    assert_eq!(running.code(), Some(130));
}

/// `trace` and `doctor` while they measure, with their progress on the terminal.
#[test]
fn live_what_measures_ends_with_its_terminal_and_puts_settings_back() {
    let Some(_machine) = crate::live::machine("live_what_measures_ends_with_its_terminal") else { return };
    let before = crate::live::state();
    for (args, started) in [
        (&["trace", "--for", "10min"][..], "trac"),
        (&["measure", "wakeup", "--duration", "10min"], "%"),
        (&["doctor", "--no-report"], "experiment"),
    ] {
        let mut pty = Pty::open();
        let mut command = command(Bond::Controlling, args);
        let child = command.stdin(pty.end()).stdout(pty.end()).stderr(pty.end()).spawn().unwrap();
        drop(command);
        let mut running = Running(child);
        pty.wait_for(started);
        pty.close();
        assert_eq!(running.code(), Some(130), "{args:?}");
        assert_eq!(crate::live::state(), before, "{args:?}");
    }
}
