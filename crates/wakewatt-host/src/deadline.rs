//! Waiting for another process, but not for ever: its first words on a pipe, and its end.
//!
//! A process may be stopped (SIGSTOP, a debugger, a frozen cgroup), wedged, or another program than was meant; who waits
//! for it without a limit hangs with it. Words are waited for with `poll`. A process that does not end in time is killed:
//! SIGKILL also ends one that is stopped. Only one that the kernel itself holds (a dead disk) outlives that; it is left.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{Error, ErrorKind, Read, Result};
use std::os::fd::AsFd;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// How often an end is looked for.
const LOOK: Duration = Duration::from_millis(5);
/// How long a killed process is waited for.
const AFTER_KILL: Duration = Duration::from_secs(5);

/// Is there something to read, or the end of it, within this time?
fn is_readable(fd: impl AsFd, within: Duration) -> Result<bool> {
    let began = Instant::now();
    loop {
        let left = within.saturating_sub(began.elapsed());
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)) {
            Ok(n) => return Ok(n > 0),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Reads exactly these bytes within this time; anything else, the end included, is an error.
pub fn expect(from: &mut (impl Read + AsFd), word: &[u8], within: Duration) -> Result<()> {
    let began = Instant::now();
    let mut got = Vec::with_capacity(word.len());
    while got.len() < word.len() {
        if !is_readable(&*from, within.saturating_sub(began.elapsed()))? {
            return Err(Error::new(ErrorKind::TimedOut, format!("said nothing within {} s", within.as_secs())));
        }
        let mut byte = [0u8];
        if from.read(&mut byte)? == 0 {
            return Err(Error::new(ErrorKind::UnexpectedEof, "ended without a word"));
        }
        got.push(byte[0]);
    }
    if got == word { Ok(()) } else { Err(Error::new(ErrorKind::InvalidData, "said something else")) }
}

/// What can be read until the end, for at most this time: last words of a child whose own children may keep the pipe open.
pub fn last_words(from: &mut (impl Read + AsFd), within: Duration) -> String {
    let began = Instant::now();
    let mut words = Vec::new();
    let mut part = [0u8; 4096];
    while words.len() < 64 * 1024 && is_readable(&*from, within.saturating_sub(began.elapsed())).unwrap_or(false) {
        match from.read(&mut part) {
            Ok(0) | Err(_) => break,
            Ok(n) => words.extend_from_slice(&part[..n]),
        }
    }
    String::from_utf8_lossy(&words).trim().to_string()
}

/// How a child ends within this time; none: it has been killed instead.
pub fn end(child: &mut Child, within: Duration) -> Option<ExitStatus> {
    let status = ends(child, within);
    if status.is_none() {
        let _ = child.kill();
        let _ = ends(child, AFTER_KILL);
    }
    status
}

fn ends(child: &mut Child, within: Duration) -> Option<ExitStatus> {
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if began.elapsed() < within => std::thread::sleep(LOOK),
            Ok(None) | Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn shell(script: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
    }

    #[test]
    fn words_come_in_time_or_are_missed() {
        let minute = Duration::from_secs(60);
        let says = |script: &str, within| {
            let mut child = shell(script);
            let said = expect(child.stdout.as_mut().unwrap(), b"on\n", within).map_err(|e| e.kind());
            assert!(child.kill().and_then(|()| child.wait()).is_ok());
            said
        };
        assert_eq!(says("printf o; sleep 0.05; echo n; exec sleep 600", minute), Ok(()));
        assert_eq!(says("exit 0", minute), Err(ErrorKind::UnexpectedEof));
        assert_eq!(says("echo no", minute), Err(ErrorKind::InvalidData));
        assert_eq!(says("exec sleep 600", Duration::from_millis(50)), Err(ErrorKind::TimedOut));
    }

    #[test]
    fn who_does_not_end_is_killed_even_when_stopped() {
        let mut stopped = shell("kill -STOP $$; sleep 600");
        assert_eq!(end(&mut stopped, Duration::from_millis(200)), None);
        assert!(stopped.try_wait().unwrap().is_some(), "it is gone, not left behind");
        assert_eq!(end(&mut shell("exit 3"), Duration::from_secs(60)).and_then(|s| s.code()), Some(3));
    }

    #[test]
    fn last_words_end_though_somebody_keeps_the_pipe() {
        let mut child = shell("echo why; sleep 20 & exit 1");
        assert_eq!(end(&mut child, Duration::from_secs(60)).and_then(|s| s.code()), Some(1));
        assert_eq!(last_words(child.stdout.as_mut().unwrap(), Duration::from_millis(300)), "why");
    }
}
