//! Wake-ups of the last one to two minutes: what was counted since the older of two marks that are set a minute apart.
//!
//! The kernel's counts only grow, and after a month they say nothing about now.

use crate::families::Latencies;
use std::time::{Duration, Instant};
use wakewatt_core::samples::kernel_histogram::KernelHistogram;

/// From mark to mark.
const EVERY: Duration = Duration::from_secs(60);

/// The two marks.
#[derive(Debug)]
pub(crate) struct Recent {
    older: (Instant, Latencies),
    newer: (Instant, Latencies),
}

impl Recent {
    /// From a time at which nothing was counted.
    pub(crate) fn from(now: Instant) -> Recent {
        Recent { older: (now, Latencies::new()), newer: (now, Latencies::new()) }
    }

    /// Sets a mark where one is due.
    pub(crate) fn look(&mut self, now: Instant, counted: &Latencies) {
        if now.saturating_duration_since(self.newer.0) >= EVERY {
            self.older = std::mem::replace(&mut self.newer, (now, counted.clone()));
        }
    }

    /// What was counted since the older mark, and how long ago that was.
    pub(crate) fn since(&self, now: Instant, counted: &Latencies) -> (Latencies, u64) {
        let (at, then) = &self.older;
        let none = KernelHistogram::default();
        let grown = counted.iter().map(|(key, now)| (key.clone(), now.since(then.get(key).unwrap_or(&none))));
        let window_ns = u64::try_from(now.saturating_duration_since(*at).as_nanos()).unwrap_or(u64::MAX);
        (grown.collect(), window_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::samples::wakes::WakeClass;

    #[test]
    fn a_month_ago_is_not_now() {
        let start = Instant::now();
        let (mut recent, mut counted) = (Recent::from(start), Latencies::new());
        let key = ("C6".to_string(), 2, WakeClass::Remote);
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        for second in 0..300 {
            counted.entry(key.clone()).or_default().add(50_000);
            recent.look(at(second), &counted);
        }
        // Marks at 60, 120, 180, 240; the older one of the last two.
        let (grown, window_ns) = recent.since(at(299), &counted);
        assert_eq!((grown[&key].n, window_ns), (119, 119_000_000_000));
    }
}
