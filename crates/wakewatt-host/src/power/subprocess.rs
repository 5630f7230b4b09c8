//! A program of somebody else's whose output is a meter: started in its own process group, read with a deadline, ended.
//!
//! Its lines are read by a thread of their own, which stamps each as it comes: a meter that prints once a second is
//! timed by its lines, not by when we look. A program that floods is held up by its full pipe, since lines that nobody has
//! taken are kept in a small number only. It sees only the variables of [`foreign`]. The group is killed when this is dropped, so a shell's children go too.

use crate::clock::monotonic_ns;
use crate::environment::foreign;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::time::Duration;

/// Longer lines are no watts.
const MAX_LINE: u64 = 4 << 10;

/// Lines kept until they are taken: a second of a meter at 4 kHz.
pub(super) const MAX_LINES: usize = 4096;

/// A running program.
pub(super) struct Program {
    child: Child,
    lines: Receiver<(u64, String)>,
    name: String,
}

/// What a program gave.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A line, and when it came.
    Line(u64, String),
    /// Nothing yet.
    Nothing,
    /// It has closed its output.
    End,
}

impl Program {
    pub(super) fn start(program: &str, arguments: &[&str]) -> Result<Program, String> {
        let mut child = foreign(program)
            .map_err(|e| format!("{program}: could not be started: {e}"))?
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|e| format!("{program}: could not be started: {e}"))?;
        let (sender, lines) = sync_channel(MAX_LINES);
        if let Some(out) = child.stdout.take() {
            let read = move || {
                let mut out = BufReader::new(out);
                let mut line = Vec::new();
                while matches!(out.by_ref().take(MAX_LINE).read_until(b'\n', &mut line), Ok(1..)) {
                    let text = String::from_utf8_lossy(&line).into_owned();
                    if sender.send((monotonic_ns(), text)).is_err() {
                        return;
                    }
                    line.clear();
                }
            };
            let named = std::thread::Builder::new().name("meter-lines".into());
            named.spawn(read).map_err(|e| format!("{program}: no thread to read it: {e}"))?;
        }
        Ok(Program { child, lines, name: program.into() })
    }

    /// The next line, waiting at most this long for it.
    pub(super) fn next(&self, wait_ns: u64) -> Next {
        if wait_ns == 0 {
            return match self.lines.try_recv() {
                Ok((at_ns, line)) => Next::Line(at_ns, line),
                Err(TryRecvError::Empty) => Next::Nothing,
                Err(TryRecvError::Disconnected) => Next::End,
            };
        }
        match self.lines.recv_timeout(Duration::from_nanos(wait_ns)) {
            Ok((at_ns, line)) => Next::Line(at_ns, line),
            Err(RecvTimeoutError::Timeout) => Next::Nothing,
            Err(RecvTimeoutError::Disconnected) => Next::End,
        }
    }

    /// After its output has ended: did it end well? Waits a little for it to go.
    pub(super) fn end(mut self) -> Result<(), String> {
        for _ in 0..100 {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(format!("{}: {status}", self.name)),
                Ok(None) => std::thread::sleep(Duration::from_millis(10)),
                Err(e) => return Err(format!("{}: {e}", self.name)),
            }
        }
        Err(format!("{}: it closed its output and does not end", self.name))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        let group = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(group) = group {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.wait();
    }
}
