//! Ctrl-C, SIGTERM and SIGHUP become a flag: measuring loops look at it, settings are put back, what is known is printed.

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The flag; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on these signals set the flag instead of ending the process.
    pub fn listen() -> Result<Interrupt> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&flag)).context("cannot catch signals")?;
        }
        Ok(Interrupt(flag))
    }

    /// Has one come?
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// For the probes.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }
}

/// Waits that a signal ends at once, without looking at the flag every few milliseconds: signals also write to a pipe.
#[derive(Debug)]
pub struct Wait {
    pipe: UnixStream,
}

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The time was up.
    Time,
    /// A signal came (also a change of the terminal's size).
    Signal,
    /// The file has something to read.
    Input,
}

impl Wait {
    /// From now on these signals end a wait.
    pub fn listen() -> Result<Wait> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};
        let (pipe, end) = UnixStream::pair().context("cannot make a pipe for signals")?;
        pipe.set_nonblocking(true).context("cannot make a pipe for signals")?;
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGWINCH] {
            let end = end.try_clone().context("cannot make a pipe for signals")?;
            signal_hook::low_level::pipe::register(signal, end).context("cannot catch signals")?;
        }
        Ok(Wait { pipe })
    }

    /// At most this long.
    pub fn wait(&self, input: Option<BorrowedFd<'_>>, at_most_ns: u64) -> Woken {
        use std::io::Read;
        let mut fds = vec![PollFd::new(&self.pipe, PollFlags::IN)];
        fds.extend(input.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)));
        let part = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let limit = Timespec { tv_sec: part(at_most_ns / 1_000_000_000), tv_nsec: part(at_most_ns % 1_000_000_000) };
        match poll(&mut fds, Some(&limit)) {
            Err(_) => Woken::Signal,
            Ok(0) => Woken::Time,
            Ok(_) if !fds[0].revents().is_empty() => {
                let _ = (&self.pipe).read(&mut [0u8; 64]);
                Woken::Signal
            }
            Ok(_) => Woken::Input,
        }
    }
}
