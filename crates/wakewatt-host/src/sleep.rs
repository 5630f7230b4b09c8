//! The ways a thread sleeps and is woken: absolute timers, futex, eventfd. Thin, so that what is measured is the kernel.

use crate::clock::timespec_of;
use rustix::event::{EventfdFlags, PollFd, PollFlags, poll};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io;
use rustix::thread::futex;
use std::sync::atomic::AtomicU32;

/// Sleeps until CLOCK_MONOTONIC reaches the time; returns at once if it has. `Err(INTR)` if a signal came first.
pub fn sleep_until(at_ns: u64) -> io::Result<()> {
    rustix::thread::clock_nanosleep_absolute(rustix::thread::ClockId::Monotonic, &timespec_of(at_ns))
}

/// Sleeps while the word holds this value. Returns on a wake, on a signal, when it held another value, or after the
/// time-out: look at the word.
pub fn futex_wait(word: &AtomicU32, while_it_is: u32, timeout_ns: u64) {
    let _ = futex::wait(word, futex::Flags::PRIVATE, while_it_is, Some(&timespec_of(timeout_ns)));
}

/// Wakes at most one sleeper; how many were asleep.
pub fn futex_wake(word: &AtomicU32) -> usize {
    futex::wake(word, futex::Flags::PRIVATE, 1).unwrap_or(0)
}

/// An eventfd: a counter to sleep on.
#[derive(Debug)]
pub struct Event(OwnedFd);

impl Event {
    /// A new one, at zero.
    pub fn new() -> io::Result<Event> {
        Ok(Event(rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?))
    }
    /// Adds one: wakes a sleeper.
    pub fn signal(&self) -> io::Result<()> {
        rustix::io::write(&self.0, &1u64.to_ne_bytes()).map(|_| ())
    }
    /// Sleeps until it is not zero, or until there is something to read from the other; takes nothing of either.
    pub fn wait_or_readable(&self, other: BorrowedFd<'_>) {
        let mut fds = [PollFd::new(&self.0, PollFlags::IN), PollFd::from_borrowed_fd(other, PollFlags::IN)];
        // A signal ends it early: whoever waits looks again anyway.
        let _ = poll(&mut fds, None);
    }
    /// Sleeps until it is not zero, and takes all; `Err(INTR)` if a signal came first.
    pub fn wait(&self) -> io::Result<()> {
        rustix::io::read(&self.0, &mut [0u8; 8]).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic_ns;
    use std::io::Write;
    use std::os::fd::AsFd;

    #[test]
    fn sleeps_end_when_they_should() {
        let until = monotonic_ns() + 2_000_000;
        sleep_until(until).unwrap();
        assert!(monotonic_ns() >= until);
        let word = AtomicU32::new(5);
        futex_wait(&word, 4, 1_000_000_000);
        assert_eq!(futex_wake(&word), 0);
        let event = Event::new().unwrap();
        let (readable, mut other) = std::io::pipe().unwrap();
        other.write_all(b"x").unwrap();
        event.wait_or_readable(readable.as_fd());
        let (silent, _open) = std::io::pipe().unwrap();
        event.signal().unwrap();
        event.wait_or_readable(silent.as_fd());
        event.wait().unwrap();
    }
}
