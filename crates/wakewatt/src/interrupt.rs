//! Ctrl-C, SIGTERM and SIGHUP become a flag: measuring loops look at it, settings are put back, what is known is printed.
//!
//! SIGHUP comes when a terminal closes, but only to those whose terminal it is; a wait therefore also says when the
//! files it was given have lost their other end. Who was started with SIGHUP ignored (`nohup`) goes on without the
//! terminal. The lab is lent the flag and a clock whose sleeps end with a signal.

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::Write;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use wakewatt_core::source::Source;
use wakewatt_lab::context::{Clock, Lab, MachineClock, Tell};

/// The flag, and a clock whose sleeps end when it is set; clones share both.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    flag: Arc<AtomicBool>,
    clock: Arc<MachineClock>,
    /// What signals write to; none where none is listened for.
    end: Option<Arc<UnixStream>>,
}

impl Interrupt {
    /// From now on these signals set the flag instead of ending the process.
    pub fn listen() -> Result<Interrupt> {
        let flag = Arc::new(AtomicBool::new(false));
        let (pipe, end) = UnixStream::pair().context("cannot make a pipe for signals")?;
        for signal in ends() {
            signal_hook::flag::register(signal, Arc::clone(&flag)).context("cannot catch signals")?;
            // After the flag: who is woken by it finds that set.
            let end = end.try_clone().context("cannot make a pipe for signals")?;
            signal_hook::low_level::pipe::register(signal, end).context("cannot catch signals")?;
        }
        Ok(Interrupt { flag, clock: Arc::new(MachineClock::woken_by(pipe.into())), end: Some(Arc::new(end)) })
    }

    /// As if a signal had come: for a thread without which going on has no use.
    pub fn set(&self) {
        self.flag.store(true, Ordering::Relaxed);
        if let Some(mut end) = self.end.as_deref() {
            // A full pipe wakes as well.
            let _ = end.write(&[0]);
        }
    }

    /// What a verb of the lab is lent.
    pub fn lab<'a>(&'a self, src: &'a dyn Source, tell: &'a dyn Tell) -> Lab<'a> {
        Lab { src, stop: &self.flag, tell, clock: &*self.clock }
    }

    /// Has one come?
    pub fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Waits for one, however long that takes, without waking up in between.
    pub fn wait(&self) {
        const DAY_NS: u64 = 86_400_000_000_000;
        while !self.is_set() {
            self.clock.sleep_until(self.clock.now_ns().saturating_add(DAY_NS), &[]);
        }
    }

    /// For the probes.
    pub fn flag(&self) -> &AtomicBool {
        &self.flag
    }
}

/// The signals that end a run.
fn ends() -> impl Iterator<Item = i32> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    // As it was at the start: once caught it is ignored no more.
    static WAS_HANGUP_IGNORED: OnceLock<bool> = OnceLock::new();
    let is_ignored = *WAS_HANGUP_IGNORED
        .get_or_init(|| std::fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores(&status, SIGHUP)));
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(move |signal| *signal != SIGHUP || !is_ignored)
}

/// Does the process of this `/proc/PID/status` ignore the signal? (proc(5): `SigIgn`, a mask, bit 0 is signal 1.)
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
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
    /// A file has lost its other end: the terminal closed, the reader of the pipe ended.
    Gone,
}

impl Wait {
    /// From now on these signals end a wait.
    pub fn listen() -> Result<Wait> {
        let (pipe, end) = UnixStream::pair().context("cannot make a pipe for signals")?;
        pipe.set_nonblocking(true).context("cannot make a pipe for signals")?;
        for signal in ends().chain([signal_hook::consts::SIGWINCH]) {
            let end = end.try_clone().context("cannot make a pipe for signals")?;
            signal_hook::low_level::pipe::register(signal, end).context("cannot catch signals")?;
        }
        Ok(Wait { pipe })
    }

    /// At most this long.
    pub fn wait(&self, at_most_ns: u64) -> Woken {
        self.wait_for(None, None, at_most_ns)
    }

    /// The same, and no longer than until there is something to read, or until either file has lost its other end.
    pub fn wait_for(&self, input: Option<BorrowedFd<'_>>, output: Option<BorrowedFd<'_>>, at_most_ns: u64) -> Woken {
        use std::io::Read;
        let mut fds = vec![PollFd::new(&self.pipe, PollFlags::IN)];
        fds.extend(input.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        // Asked for nothing, told what cannot be helped: HUP and ERR.
        fds.extend(output.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::empty())));
        let part = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let limit = Timespec { tv_sec: part(at_most_ns / 1_000_000_000), tv_nsec: part(at_most_ns % 1_000_000_000) };
        match poll(&mut fds, Some(&limit)) {
            Err(_) => Woken::Signal,
            Ok(0) => Woken::Time,
            Ok(_) if !fds[0].revents().is_empty() => {
                let _ = (&self.pipe).read(&mut [0u8; 64]);
                Woken::Signal
            }
            Ok(_) if fds[1..].iter().any(|fd| fd.revents().intersects(GONE)) => Woken::Gone,
            Ok(_) => Woken::Input,
        }
    }
}

/// What `poll` says of a file without another end.
pub const GONE: PollFlags = PollFlags::HUP.union(PollFlags::ERR).union(PollFlags::NVAL);

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    const MINUTE_NS: u64 = 60_000_000_000;

    #[test]
    fn a_wait_says_what_ended_it() {
        let wait = Wait::listen().unwrap();
        let (near, far) = UnixStream::pair().unwrap();
        assert_eq!(wait.wait_for(Some(near.as_fd()), None, 0), Woken::Time);
        std::io::Write::write_all(&mut &far, b"x").unwrap();
        assert_eq!(wait.wait_for(Some(near.as_fd()), None, MINUTE_NS), Woken::Input);
        drop(far);
        assert_eq!(
            wait.wait_for(Some(near.as_fd()), None, MINUTE_NS),
            Woken::Gone,
            "though there is something to read"
        );
        assert_eq!(wait.wait_for(None, Some(near.as_fd()), MINUTE_NS), Woken::Gone);
    }

    #[test]
    fn another_thread_can_end_the_wait() {
        let interrupt = Interrupt::listen().unwrap();
        let other = interrupt.clone();
        let setting = std::thread::spawn(move || other.set());
        interrupt.wait();
        assert!(interrupt.is_set());
        setting.join().unwrap();
    }

    #[test]
    fn an_ignored_hangup_is_seen() {
        let status = |mask: &str| format!("Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t{mask}\n");
        assert!(ignores(&status("0000000000001001"), 1) && !ignores(&status("0000000000001000"), 1));
        assert!(!ignores("", 1) && !ignores(&status("rubbish"), 1));
    }
}
