//! Requests that wait to be sent: so many and so many bytes, and no more. Where there is no room the oldest goes, because what is new is asked for first
//! once a server is back, and counters lose nothing but the moments between.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Ten minutes at the default interval.
const MOST: usize = 60;
const MOST_BYTES: usize = 4 << 20;

/// The box; clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct Outbox(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    held: Mutex<Held>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Held {
    waiting: VecDeque<Vec<u8>>,
    n_bytes: usize,
    is_closed: bool,
    n_sent: u64,
    n_dropped: u64,
}

impl Held {
    fn shrink(&mut self) {
        while self.waiting.len() > MOST || self.n_bytes > MOST_BYTES {
            let Some(oldest) = self.waiting.pop_front() else { return };
            self.n_bytes -= oldest.len();
            self.n_dropped += 1;
        }
    }
}

impl Outbox {
    fn held(&self) -> MutexGuard<'_, Held> {
        // Whoever panicked while it held this left a whole box.
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a request; the oldest goes where there is no room.
    pub(crate) fn put(&self, request: Vec<u8>) {
        let mut held = self.held();
        held.n_bytes += request.len();
        held.waiting.push_back(request);
        held.shrink();
        self.0.changed.notify_all();
    }

    /// Puts one back that is to be sent again: before all others, if there is still room.
    pub(super) fn back(&self, request: Vec<u8>) {
        let mut held = self.held();
        held.n_bytes += request.len();
        held.waiting.push_front(request);
        held.shrink();
    }

    /// Waits for a request; none when the box was closed.
    pub(super) fn next(&self) -> Option<Vec<u8>> {
        let held = self.held();
        let empty = |held: &mut Held| held.waiting.is_empty() && !held.is_closed;
        let mut held = self.0.changed.wait_while(held, empty).unwrap_or_else(PoisonError::into_inner);
        if held.is_closed {
            return None;
        }
        let request = held.waiting.pop_front()?;
        held.n_bytes -= request.len();
        Some(request)
    }

    /// Waits so long, or until the box is closed.
    pub(super) fn pause(&self, wait: Duration) {
        let until = Instant::now() + wait;
        let mut held = self.held();
        while !held.is_closed {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            held = self.0.changed.wait_timeout(held, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(super) fn sent(&self) {
        self.held().n_sent += 1;
    }

    pub(super) fn refused(&self) {
        self.held().n_dropped += 1;
    }

    /// How many were sent, and how many never will be.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let held = self.held();
        (held.n_sent, held.n_dropped)
    }

    /// Nothing more is sent.
    pub(crate) fn close(&self) {
        self.held().is_closed = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_grows_beyond_its_limits_and_loses_the_oldest() {
        let outbox = Outbox::default();
        for n in 0..1000u32 {
            outbox.put(n.to_le_bytes().to_vec());
        }
        let size = || {
            let held = outbox.held();
            (held.waiting.len(), held.n_bytes)
        };
        assert_eq!((size().0, outbox.counts()), (MOST, (0, 940)));
        assert_eq!(outbox.next(), Some(940u32.to_le_bytes().to_vec()));
        for _ in 0..100 {
            outbox.put(vec![0; MOST_BYTES / 4]);
        }
        assert!(size().1 <= MOST_BYTES && size().0 == 4, "{:?}", size());
        // One that was tried goes first again, and goes altogether where the box is full meanwhile.
        let first = outbox.next().unwrap();
        outbox.back(first);
        assert_eq!(size().0, 4);
        outbox.back(vec![1]);
        assert_eq!(size().0, 4);
        assert_eq!(outbox.next().map(|first| first.len()), Some(MOST_BYTES / 4));
        outbox.close();
        assert_eq!(outbox.next(), None);
        // Nobody waits for a box that is closed.
        outbox.pause(Duration::from_secs(3600));
    }

    #[test]
    fn who_waits_is_woken() {
        let outbox = Outbox::default();
        let waiting = std::thread::spawn({
            let outbox = outbox.clone();
            move || (outbox.next(), outbox.next())
        });
        outbox.put(vec![7]);
        std::thread::sleep(Duration::from_millis(20));
        outbox.close();
        let (first, _) = waiting.join().unwrap();
        assert!(first.is_none() || first == Some(vec![7]));
    }
}
