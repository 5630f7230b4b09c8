//! The screen of `watch` in a real terminal: tmux presses the keys and looks at what is there.
//!
//! Skipped aloud where tmux is not installed. Each test has a tmux server of its own and ends only that.

use crate::tool::{PROGRAM, wait_until};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use wakewatt_testing::{Lacks, skipped};

const PATIENCE: Duration = Duration::from_secs(120);

/// A tmux server with one window that runs a shell.
struct Tmux {
    socket: tempfile::TempDir,
}

impl Tmux {
    fn start(test: &str, width: u16, height: u16) -> Option<Tmux> {
        let has_tmux = Command::new("tmux").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !has_tmux.is_ok_and(|s| s.success()) {
            skipped(test, Lacks::Program("tmux"), "tmux is not installed");
            return None;
        }
        let tmux = Tmux { socket: tempfile::tempdir().unwrap() };
        let size = [width.to_string(), height.to_string()];
        let shell = "env -i PATH=/usr/bin:/bin TERM=screen LC_ALL=C.UTF-8 PS1='ready>' sh";
        tmux.run(&["-f", "/dev/null", "new-session", "-d", "-s", "t", "-x", &size[0], "-y", &size[1], shell]);
        tmux.wait_for("ready>");
        Some(tmux)
    }

    fn run(&self, args: &[&str]) -> String {
        let socket = self.socket.path().join("s");
        let out = Command::new("tmux").arg("-S").arg(socket).args(args).env("LC_ALL", "C.UTF-8").output().unwrap();
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    fn keys(&self, keys: &[&str]) {
        self.run(&[&["send-keys", "-t", "t"], keys].concat());
    }

    fn line(&self, text: &str) {
        self.keys(&["-l", text]);
        self.keys(&["Enter"]);
    }

    fn screen(&self) -> String {
        self.run(&["capture-pane", "-p", "-t", "t"])
    }

    fn wait_for(&self, text: &str) -> String {
        let is_there = wait_until(PATIENCE, || self.screen().contains(text));
        let screen = self.screen();
        assert!(is_there, "\"{text}\" did not appear:\n{screen}");
        screen
    }

    fn wait_gone(&self, text: &str) {
        let is_gone = wait_until(PATIENCE, || !self.screen().contains(text));
        assert!(is_gone, "\"{text}\" did not go:\n{}", self.screen());
    }

    /// The shell is back, in its own mode: it shows what is typed, and lines end where they should.
    fn assert_restored(&self, code: u8) {
        self.line("echo code=$?");
        self.wait_for(&format!("code={code}"));
        let flags = self.run(&["display-message", "-p", "-t", "t", "#{alternate_on} #{cursor_flag} #{mouse_any_flag}"]);
        assert_eq!(flags.trim(), "0 1 0", "alternate screen off, cursor on, mouse off");
        self.line("stty -a | tr ' ;' '\\n\\n' | grep -x -e icanon -e echo | tr '\\n' ' '; echo stty-done");
        let screen = self.wait_for("icanon echo stty-done");
        assert!(!screen.contains(" wakewatt · "), "{screen}");
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

#[test]
fn keys_do_what_the_footer_says() {
    let Some(t) = Tmux::start("keys_do_what_the_footer_says", 80, 24) else { return };
    t.line(&format!("{PROGRAM} watch --interval 200ms"));
    let screen = t.wait_for("cpu 0");
    for word in ["quiet: wakes no other CPU", "busy", "q quit", "tab panel", "[CPUs]", "cpu 0"] {
        assert!(screen.contains(word), "{word}:\n{screen}");
    }
    assert!(screen.lines().all(|l| l.chars().count() <= 80));
    t.keys(&["?"]);
    t.wait_for("any key closes this");
    t.keys(&["x"]);
    t.wait_gone("any key closes this");
    t.keys(&["p"]);
    t.wait_for("PAUSED");
    t.keys(&["p"]);
    t.wait_gone("PAUSED");
    t.keys(&["s"]);
    t.wait_for("sort busy");
    t.keys(&["g"]);
    let screen = t.wait_for("by package");
    assert!(screen.contains("package"), "{screen}");
    t.keys(&["Enter"]);
    t.wait_for("- package");
    t.keys(&["Down"]);
    t.wait_for("▸  cpu");
    t.keys(&["/"]);
    t.wait_for("filter:");
    t.keys(&["-l", "busy>x"]);
    t.keys(&["Enter"]);
    t.wait_for("use a CPU list");
    t.keys(&["BSpace", "BSpace", "BSpace", "BSpace", "BSpace", "BSpace", "0", "Enter"]);
    t.wait_for("filter 0");
    t.keys(&["Tab"]);
    t.wait_for("wake-up latency: needs tracing");
    t.keys(&["Tab"]);
    t.wait_for("fans");
    t.keys(&["+"]);
    t.wait_for("every 500ms");
    t.keys(&["q"]);
    t.wait_gone("[power and heat]");
    t.assert_restored(0);
}

#[test]
fn a_window_that_shrinks_and_grows() {
    let Some(t) = Tmux::start("a_window_that_shrinks_and_grows", 80, 24) else { return };
    t.line(&format!("{PROGRAM} watch --interval 200ms"));
    t.wait_for("wakes/s");
    t.run(&["resize-window", "-t", "t", "-x", "40", "-y", "10"]);
    t.wait_for("too small");
    t.run(&["resize-window", "-t", "t", "-x", "200", "-y", "60"]);
    let screen = t.wait_for("busy before");
    assert!(screen.contains("idle states and wake-up latency") && screen.contains("power and heat"), "{screen}");
    t.keys(&["C-c"]);
    t.wait_gone("busy before");
    t.assert_restored(130);
}

#[test]
fn sigterm_gives_the_terminal_back() {
    let Some(t) = Tmux::start("sigterm_gives_the_terminal_back", 100, 30) else { return };
    // The shell becomes the parent and tells the number; only that process is ended.
    t.line(&format!("{PROGRAM} watch --mouse --interval 10min"));
    t.wait_for("q quit");
    let shell: i32 = t.run(&["display-message", "-p", "-t", "t", "#{pane_pid}"]).trim().parse().unwrap();
    let pid = child_of(shell).expect("the shell runs watch");
    let start = std::time::Instant::now();
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), rustix::process::Signal::TERM).unwrap();
    t.wait_gone("q quit");
    assert!(start.elapsed() < Duration::from_secs(120), "it waited for its interval: {:?}", start.elapsed());
    t.assert_restored(130);
}

fn child_of(parent: i32) -> Option<i32> {
    let text = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok();
    if let Some(pid) = text.and_then(|t| t.split_whitespace().next()?.parse().ok()) {
        return Some(pid);
    }
    let pids = std::fs::read_dir("/proc").ok()?.flatten().filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    pids.into_iter().find(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after = stat.rsplit(')').next().unwrap_or_default();
        after.split_whitespace().nth(1).and_then(|p| p.parse().ok()) == Some(parent)
    })
}

#[test]
fn recording_and_time_travel() {
    let Some(t) = Tmux::start("recording_and_time_travel", 80, 24) else { return };
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("rec");
    t.line(&format!("{PROGRAM} watch --interval 100ms --record {}", folder.display()));
    t.wait_for("recording 8");
    t.keys(&["q"]);
    t.wait_gone("q quit");
    assert!(Path::new(&folder.join("counters.watch")).exists());
    t.line(&format!("clear; {PROGRAM} watch --play {}", folder.display()));
    t.wait_for("recording: ended by its user");
    t.keys(&["End"]);
    t.wait_for("STOP");
    t.keys(&["Left"]);
    t.keys(&["Home"]);
    t.wait_for("STOP 1/");
    t.keys(&["+", "Space"]);
    t.wait_for("x2");
    t.keys(&["q"]);
    t.wait_gone("q quit");
    t.assert_restored(0);
}

#[test]
fn a_dumb_terminal_is_told_what_works() {
    let Some(t) = Tmux::start("a_dumb_terminal_is_told_what_works", 100, 24) else { return };
    t.line(&format!("TERM=dumb {PROGRAM} watch"));
    t.wait_for("cannot move its cursor");
    t.wait_for("--once");
    t.assert_restored(2);
}
