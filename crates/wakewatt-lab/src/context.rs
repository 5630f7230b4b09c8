//! What every verb of the lab is lent: the machine to read, the flag that ends it, an ear, a clock.
//!
//! A verb takes a [`Lab`] and a plan of its own, and returns what it found. How signals arrive, and what becomes of what is
//! told (a progress bar, lines on standard error), is the caller's; tests lend a tree, a silent ear and their own time.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use wakewatt_core::source::Source;
use wakewatt_host::clock;

/// What a verb works with.
#[derive(Clone, Copy)]
pub struct Lab<'a> {
    /// The machine, to be read. Threads never see it.
    pub src: &'a dyn Source,
    /// Set when the run is to end: loops look at it, and what is known by then is returned.
    pub stop: &'a AtomicBool,
    /// Who is told while it runs.
    pub tell: &'a dyn Tell,
    /// What time it is, and how to wait.
    pub clock: &'a dyn Clock,
}

impl Lab<'_> {
    /// Is this to end?
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sleeps until then, or until this is to end.
    pub fn wait_until(&self, at_ns: u64) {
        while !self.is_stopped() && self.clock.now_ns() < at_ns {
            self.clock.sleep_until(at_ns, &[]);
        }
    }
}

/// Whoever watches a run.
pub trait Tell {
    /// The share that is done (0 to 1), and what is being done now.
    fn progress(&self, share: f64, words: &str);
    /// Worth a line now, and nothing is wrong.
    fn remark(&self, line: &str);
    /// Something failed and the run goes on: worth a line now, because its end may be hours away.
    fn complain(&self, line: &str);
}

/// Nobody watches.
#[derive(Clone, Copy, Debug)]
pub struct Unheard;

impl Tell for Unheard {
    fn progress(&self, _: f64, _: &str) {}
    fn remark(&self, _: &str) {}
    fn complain(&self, _: &str) {}
}

/// The clocks, so that tests need not wait.
pub trait Clock {
    /// CLOCK_MONOTONIC.
    fn now_ns(&self) -> u64;
    /// CPU time of this process.
    fn own_cpu_ns(&self) -> u64;
    /// The wall clock; it measures nothing, its steps are told.
    fn wall_ns(&self) -> u64 {
        self.now_ns()
    }
    /// Sleeps until CLOCK_MONOTONIC says so; less when a signal comes or one of these can be read or has lost its other end.
    fn sleep_until(&self, at_ns: u64, readable: &[BorrowedFd<'_>]);
}

/// The clocks of this machine.
///
/// A flag alone could be set between looking at it and going to sleep; a signal that also writes to a file which the sleep
/// looks at cannot be missed.
#[derive(Debug, Default)]
pub struct MachineClock {
    signals: Option<OwnedFd>,
}

impl MachineClock {
    /// Its sleeps end when this socket, to which signals write, can be read.
    pub fn woken_by(signals: OwnedFd) -> MachineClock {
        MachineClock { signals: Some(signals) }
    }
}

impl Clock for MachineClock {
    fn now_ns(&self) -> u64 {
        clock::monotonic_ns()
    }

    fn own_cpu_ns(&self) -> u64 {
        clock::own_cpu_ns()
    }

    fn wall_ns(&self) -> u64 {
        clock::realtime_ns()
    }

    fn sleep_until(&self, at_ns: u64, readable: &[BorrowedFd<'_>]) {
        let left_ns = at_ns.saturating_sub(self.now_ns());
        if left_ns == 0 {
            return;
        }
        let part = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let limit = Timespec { tv_sec: part(left_ns / 1_000_000_000), tv_nsec: part(left_ns % 1_000_000_000) };
        let signals = self.signals.iter().map(|fd| fd.as_fd());
        let mut fds: Vec<PollFd<'_>> =
            readable.iter().copied().chain(signals).map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        // EINTR is what a signal is for here.
        let _ = poll(&mut fds, Some(&limit));
        if let Some(signals) = &self.signals {
            // Emptied, so that the next sleep is one; who set the flag does not matter here.
            let _ = rustix::net::recv(signals, &mut [0u8; 16], rustix::net::RecvFlags::DONTWAIT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    const MINUTE_NS: u64 = 60_000_000_000;

    #[test]
    fn a_sleep_ends_with_a_signal_or_a_file_and_the_next_one_is_one_again() {
        let (near, far) = UnixStream::pair().unwrap();
        let clock = MachineClock::woken_by(near.into());
        let start_ns = clock.now_ns();
        std::io::Write::write_all(&mut &far, b"x").unwrap();
        clock.sleep_until(start_ns + MINUTE_NS, &[]);
        let (read, other) = UnixStream::pair().unwrap();
        drop(other);
        clock.sleep_until(start_ns + MINUTE_NS, &[read.as_fd()]);
        assert!(clock.now_ns() - start_ns < MINUTE_NS / 2);
        let again_ns = clock.now_ns();
        clock.sleep_until(again_ns + 2_000_000, &[]);
        assert!(clock.now_ns() >= again_ns + 2_000_000, "the signal was taken");
    }

    #[test]
    fn a_run_that_is_to_end_waits_for_nothing() {
        let (src, clock) = (wakewatt_core::source::Tree::default(), MachineClock::default());
        let lab = Lab { src: &src, stop: &AtomicBool::new(true), tell: &Unheard, clock: &clock };
        let start_ns = clock.now_ns();
        lab.wait_until(start_ns + MINUTE_NS);
        assert!(lab.is_stopped() && clock.now_ns() - start_ns < MINUTE_NS);
    }
}
