//! How long was recorded, and what share of that time CPUs were idle.
//!
//! A recording may be of windows with pauses between them. One that was cut has an open window at its end: it counts up to the last
//! thing seen in it.

use wakewatt_core::record::wtrace::Mark;

/// Time recorded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Windows {
    closed_ns: u64,
    opened_at_ns: Option<u64>,
    last_at_ns: u64,
}

impl Windows {
    pub(super) fn mark(&mut self, mark: &Mark) {
        match mark {
            Mark::WindowOpened { at_ns } => {
                self.close_at(self.last_at_ns);
                (self.opened_at_ns, self.last_at_ns) = (Some(*at_ns), *at_ns);
            }
            Mark::WindowClosed { at_ns, .. } => self.close_at(*at_ns),
            _ => {}
        }
    }

    /// Something ended then.
    pub(super) fn seen(&mut self, at_ns: u64) {
        self.last_at_ns = self.last_at_ns.max(at_ns);
    }

    fn close_at(&mut self, at_ns: u64) {
        if let Some(opened) = self.opened_at_ns.take() {
            self.closed_ns = self.closed_ns.saturating_add(at_ns.saturating_sub(opened));
        }
    }

    /// Nanoseconds in all; none where the recording has no windows.
    pub(super) fn length_ns(mut self) -> Option<u64> {
        self.close_at(self.last_at_ns);
        (self.closed_ns > 0).then_some(self.closed_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_add_up_and_an_open_one_ends_with_what_was_seen() {
        let mut windows = Windows::default();
        assert_eq!(windows.length_ns(), None);
        windows.mark(&Mark::WindowOpened { at_ns: 100 });
        windows.seen(150);
        assert_eq!(windows.length_ns(), Some(50));
        windows.mark(&Mark::WindowClosed { at_ns: 200, n_lost: 0 });
        windows.mark(&Mark::WindowOpened { at_ns: 1000 });
        windows.seen(1_030);
        windows.seen(1_010);
        assert_eq!(windows.length_ns(), Some(130));
        windows.mark(&Mark::WindowClosed { at_ns: 5, n_lost: 0 });
        assert_eq!(windows.length_ns(), Some(100), "a clock that goes back adds nothing");
    }
}
