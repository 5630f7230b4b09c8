//! A terminal that can be taken away: a pair of pseudo-terminals, of which the test holds the other end.

use crate::tool::PROGRAM;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Nothing here is measured: this is for a machine that does everything else first.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The other end of a terminal.
pub struct Pty {
    master: OwnedFd,
    name: std::path::PathBuf,
    seen: Vec<u8>,
}

impl Pty {
    /// 100 columns, 30 lines.
    pub fn open() -> Pty {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = rustix::termios::Winsize { ws_row: 30, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&master, size).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap().into();
        Pty { master, name, seen: Vec::new() }
    }

    /// What a program on it gets as its files. Opening it gives this process no controlling terminal.
    pub fn end(&self) -> Stdio {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = i32::try_from(rustix::fs::OFlags::NOCTTY.bits()).unwrap();
        Stdio::from(File::options().read(true).write(true).custom_flags(flags).open(&self.name).unwrap())
    }

    /// Presses keys.
    pub fn press(&self, keys: &str) {
        assert_eq!(rustix::io::write(&self.master, keys.as_bytes()).unwrap(), keys.len());
    }

    /// Reads until the program has written this.
    pub fn wait_for(&mut self, text: &str) {
        let start = Instant::now();
        while !String::from_utf8_lossy(&self.seen).contains(text) {
            assert!(start.elapsed() < PATIENCE, "{text}: {}", String::from_utf8_lossy(&self.seen));
            let mut fds = [PollFd::from_borrowed_fd(self.master.as_fd(), PollFlags::IN)];
            poll(&mut fds, Some(&Timespec { tv_sec: 1, tv_nsec: 0 })).unwrap();
            let mut bytes = [0; 4096];
            if fds[0].revents().contains(PollFlags::IN) {
                let n = rustix::io::read(&self.master, &mut bytes).unwrap();
                self.seen.extend(&bytes[..n]);
            } else {
                assert!(
                    !fds[0].revents().contains(PollFlags::HUP),
                    "it ended: {}",
                    String::from_utf8_lossy(&self.seen)
                );
            }
        }
    }

    /// All that a program writes until it ends.
    pub fn until_it_ends(&mut self, child: &mut Child) -> String {
        let start = Instant::now();
        loop {
            let is_over = child.try_wait().unwrap().is_some();
            let mut fds = [PollFd::from_borrowed_fd(self.master.as_fd(), PollFlags::IN)];
            poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 50_000_000 })).unwrap();
            let mut bytes = [0; 4096];
            if fds[0].revents().contains(PollFlags::IN) {
                let n = rustix::io::read(&self.master, &mut bytes).unwrap();
                self.seen.extend(&bytes[..n]);
            } else if is_over {
                return String::from_utf8_lossy(&self.seen).into_owned();
            }
            assert!(start.elapsed() < PATIENCE, "{}", String::from_utf8_lossy(&self.seen));
        }
    }

    /// Forgets what was read so far.
    pub fn forget(&mut self) {
        self.seen.clear();
    }

    /// Is it in its own mode again: lines, echo?
    pub fn is_restored(&self) -> bool {
        use rustix::termios::LocalModes;
        let mode = rustix::termios::tcgetattr(&self.master).unwrap();
        mode.local_modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// The window closes.
    pub fn close(self) {
        drop(self.master);
    }
}

/// How a program stands to the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bond {
    /// It is the terminal's session: a hangup is also a signal.
    Controlling,
    /// It only has it open: nobody tells it.
    Open,
}

/// The program in a session of its own.
pub fn command(bond: Bond, args: &[&str]) -> Command {
    // setsid executes what it is given: the process is the program itself.
    let mut command = Command::new("setsid");
    if bond == Bond::Controlling {
        command.arg("--ctty");
    }
    command.arg(PROGRAM).args(args).env_clear().current_dir("/");
    command.envs([("PATH", "/usr/bin:/bin"), ("TERM", "xterm"), ("LC_ALL", "C.UTF-8")]);
    command
}

/// A program that is ended with the test, whatever becomes of it.
pub struct Running(pub Child);

impl Running {
    /// Its number.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    /// Sends it a signal; one that has just ended gets none.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(self.pid(), signal);
    }

    /// Its exit code once it ended by itself.
    pub fn code(&mut self) -> Option<i32> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.code();
            }
            assert!(start.elapsed() < PATIENCE, "it did not end; it used {} ticks of CPU", self.cpu_ticks());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// CPU time it used, in ticks of 10 ms: utime and stime of proc(5).
    pub fn cpu_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap_or_default();
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        fields.skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// On a terminal our own colours are sent as they are: none is shown as the text `\x1b[1m`.
#[test]
fn no_command_shows_its_own_escapes() {
    let dir = tempfile::tempdir().unwrap();
    let host = crate::tool::host("sklep0");
    let host = host.to_str().unwrap();
    let trace = crate::tool::fixtures().join("traces/arm64-menu-exact-6.1.wtrace");
    let text = crate::tool::fixtures().join("stories/jonas/lscpu.txt");
    for args in [
        &["doctor", "--no-report", "--host", host][..],
        &["doctor", "--preflight", "--host", host],
        &["inspect", "--host", host],
        &["explain", "C1", "--host", host],
        &["explain"],
        &["tune", "plan", "latency", "--host", host],
        &["tune", "plan", "--max-latency", "20us", "--host", host],
        &["tune", "knobs", "--host", host],
        &["tune", "status"],
        &["compare", host, host],
        &["replay", trace.to_str().unwrap(), "--recorded", "hz=250", "--set", "max-latency=85us"],
        &["trace", "info", trace.to_str().unwrap()],
        &["simulate", "plain"],
        &["import", text.to_str().unwrap()],
        &["experiment", "list"],
        &["experiment", "idle", "--dry-run", "--from", text.to_str().unwrap()],
        &["watch", "--once"],
        &["measure", "wakeup", "--duration", "100ms"],
        &["fleet", "rollout", "--example"],
        &["--help"],
        &["recover", "--help"],
        &["nonsense"],
    ] {
        let terminal = Pty::open();
        let mut child = Command::new(PROGRAM)
            .args(args)
            .current_dir(dir.path())
            .env_clear()
            .env("TERM", "xterm-256color")
            .stdin(Stdio::null())
            .stdout(terminal.end())
            .stderr(terminal.end())
            .spawn()
            .unwrap();
        let mut terminal = terminal;
        let shown = terminal.until_it_ends(&mut child);
        assert!(shown.len() > 20, "{args:?}: {shown}");
        assert!(!shown.contains("\\x1b"), "{args:?}: {shown}");
    }
}
