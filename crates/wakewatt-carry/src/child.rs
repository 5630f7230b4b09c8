//! A program that carries, run once: its input given, its output taken up to a limit, and ended when its time is up.
//!
//! It gets a process group of its own: Ctrl-C at the terminal must not cut an order in two, and a proxy that it started ends
//! with it. What it says on standard error is kept for people, the last of it, and never decided on.

use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};
use wakewatt_core::visible;

/// How often its end is looked for.
const LOOK: Duration = Duration::from_millis(5);
/// How long pipes are read after its end: a child of its own may keep them open.
const AFTER: Duration = Duration::from_secs(1);
/// The last of standard error.
const MOST_SAID: usize = 4096;

/// Its standard input.
#[derive(Debug)]
pub enum Input {
    /// These bytes, then the end.
    Bytes(Vec<u8>),
    /// A file from where it stands.
    File(File),
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code; none where a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub output: Vec<u8>,
    /// The last lines of its standard error, made visible.
    pub said: String,
}

/// Why there is no end of its own.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// It could not be started.
    #[error("cannot be started: {0}")]
    NotStarted(std::io::Error),
    /// Its time was up.
    #[error("did not end within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// It said more than is taken.
    #[error("said more than {0} bytes")]
    TooLong(usize),
}

/// Runs it.
pub fn run(mut command: Command, input: Input, within: Duration, at_most: usize) -> Result<Ended, Trouble> {
    let began = Instant::now();
    let (stdin, bytes) = match input {
        Input::File(file) => (Stdio::from(file), None),
        Input::Bytes(bytes) if bytes.is_empty() => (Stdio::null(), None),
        Input::Bytes(bytes) => (Stdio::piped(), Some(bytes)),
    };
    let started = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn();
    let mut child = started.map_err(Trouble::NotStarted)?;
    if let (Some(mut pipe), Some(bytes)) = (child.stdin.take(), bytes) {
        // Who does not read to the end ends, and that is what counts.
        thread::spawn(move || pipe.write_all(&bytes));
    }
    let is_too_long = Arc::new(AtomicBool::new(false));
    let output = all_of(child.stdout.take(), at_most, Arc::clone(&is_too_long));
    let said = last_of(child.stderr.take());
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if began.elapsed() < within && !is_too_long.load(Ordering::Relaxed) => thread::sleep(LOOK),
            Ok(None) | Err(_) => break None,
        }
    };
    if is_too_long.load(Ordering::Relaxed) {
        kill(&mut child);
        return Err(Trouble::TooLong(at_most));
    }
    let Some(status) = status else {
        kill(&mut child);
        return Err(Trouble::TimedOut(within));
    };
    let output = output.recv_timeout(AFTER).unwrap_or_default();
    if is_too_long.load(Ordering::Relaxed) {
        return Err(Trouble::TooLong(at_most));
    }
    Ok(Ended { code: status.code(), output, said: said.recv_timeout(AFTER).unwrap_or_default() })
}

/// With all that it has started.
fn kill(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

fn all_of(pipe: Option<impl Read + Send + 'static>, at_most: usize, is_too_long: Arc<AtomicBool>) -> Receiver<Vec<u8>> {
    let (tell, told) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            // What was read before an error counts.
            let _ = pipe.take(at_most as u64 + 1).read_to_end(&mut bytes);
        }
        is_too_long.store(bytes.len() > at_most, Ordering::Relaxed);
        let _ = tell.send(bytes);
    });
    told
}

fn last_of(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (tell, told) = channel();
    thread::spawn(move || {
        let (mut last, mut part) = (Vec::new(), [0u8; MOST_SAID]);
        if let Some(mut pipe) = pipe {
            while let Ok(n @ 1..) = pipe.read(&mut part) {
                last.extend_from_slice(&part[..n]);
                let excess = last.len().saturating_sub(MOST_SAID);
                last.drain(..excess);
            }
        }
        let text = String::from_utf8_lossy(&last);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        let lines = &lines[lines.len().saturating_sub(3)..];
        let _ = tell.send(visible::line(&lines.join("; ")).into_owned());
    });
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, input: &[u8], within: Duration, at_most: usize) -> Result<Ended, Trouble> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command, Input::Bytes(input.to_vec()), within, at_most)
    }

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn output_code_and_last_words_come_back() {
        let ended = shell("cat; echo one >&2; printf 'two\\033[2J' >&2; exit 3", b"in", MINUTE, 100).unwrap();
        assert_eq!((ended.code, ended.output.as_slice()), (Some(3), &b"in"[..]));
        assert!(ended.said.starts_with("one; two") && !ended.said.contains('\u{1b}'), "{}", ended.said);
        // More input than a pipe holds, to somebody who does not read it.
        assert_eq!(shell("exit 0", &vec![0; 1 << 20], MINUTE, 10).unwrap().code, Some(0));
    }

    #[test]
    fn who_is_late_or_says_too_much_is_ended_with_its_children() {
        let late = shell("sleep 600 & exec sleep 600", b"", Duration::from_millis(100), 10);
        assert!(matches!(late, Err(Trouble::TimedOut(_))), "{late:?}");
        let much = shell("exec yes", b"", MINUTE, 1000);
        assert!(matches!(much, Err(Trouble::TooLong(1000))), "{much:?}");
        assert!(matches!(run(Command::new("/no/such"), Input::Bytes(vec![]), MINUTE, 1), Err(Trouble::NotStarted(_))));
    }
}
