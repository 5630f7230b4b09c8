//! What the requests of one generator thread came to, page by page, and what the threads came to together.
//!
//! A request belongs to the window in which it was planned. The throughput of the window is what was answered in it,
//! whenever that was planned: otherwise an overloaded server would get credit for what it answered long after.

use super::connection::Failure;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wakewatt_core::distribution::{Distribution, Recorder};
use wakewatt_core::samples::load::Part;

/// The recorded window, told to the threads when it begins.
#[derive(Debug)]
pub struct Recorded {
    start_at_ns: AtomicU64,
    end_at_ns: AtomicU64,
}

impl Default for Recorded {
    fn default() -> Recorded {
        Recorded { start_at_ns: AtomicU64::new(u64::MAX), end_at_ns: AtomicU64::new(u64::MAX) }
    }
}

impl Recorded {
    /// From then on, until told otherwise.
    pub fn begin(&self, at_ns: u64) {
        self.start_at_ns.store(at_ns, Relaxed);
    }

    /// Until then.
    pub fn end(&self, at_ns: u64) {
        self.end_at_ns.store(at_ns, Relaxed);
    }

    /// Is that moment in it?
    pub fn holds(&self, at_ns: u64) -> bool {
        at_ns >= self.start_at_ns.load(Relaxed) && at_ns < self.end_at_ns.load(Relaxed)
    }
}

/// One request's moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moments {
    /// When it should have started.
    pub planned_at_ns: u64,
    /// When it did.
    pub start_at_ns: u64,
    /// When it was over.
    pub end_at_ns: u64,
}

/// Counts of one thread, or of all.
#[derive(Clone, Debug)]
pub struct Tally {
    /// By page.
    pages: Vec<PageTally>,
    /// Real start to end.
    service: Recorder,
    /// Planned to real start.
    late: Recorder,
    /// Answered in the window, whenever planned.
    pub n_answered: u64,
    /// Planned in the window.
    pub n_planned: u64,
    /// Failures of those planned in the window, by kind.
    pub failures: BTreeMap<Failure, u64>,
    /// Answered at all, in any phase: a sign of life.
    pub n_good_ever: u64,
}

#[derive(Clone, Debug)]
struct PageTally {
    latency: Recorder,
    n_failed: u64,
}

impl Tally {
    /// Nothing yet.
    pub fn new(n_pages: usize) -> Tally {
        Tally {
            pages: (0..n_pages).map(|_| PageTally { latency: Recorder::default(), n_failed: 0 }).collect(),
            service: Recorder::default(),
            late: Recorder::default(),
            n_answered: 0,
            n_planned: 0,
            failures: BTreeMap::new(),
            n_good_ever: 0,
        }
    }

    /// A request is over.
    pub fn note(&mut self, recorded: &Recorded, page: usize, moments: Moments, done: Result<(), Failure>) {
        self.n_good_ever += u64::from(done.is_ok());
        self.n_answered += u64::from(done.is_ok() && recorded.holds(moments.end_at_ns));
        if !recorded.holds(moments.planned_at_ns) {
            return;
        }
        self.n_planned += 1;
        let Moments { planned_at_ns, start_at_ns, end_at_ns } = moments;
        self.late.saturating_record(start_at_ns.saturating_sub(planned_at_ns).max(1));
        let Some(tally) = self.pages.get_mut(page) else { return };
        match done {
            Ok(()) => {
                tally.latency.saturating_record(end_at_ns.saturating_sub(planned_at_ns).max(1));
                self.service.saturating_record(end_at_ns.saturating_sub(start_at_ns).max(1));
            }
            Err(why) => {
                tally.n_failed += 1;
                *self.failures.entry(why).or_default() += 1;
            }
        }
    }

    /// One that was planned and never came to its end; it may not even have begun, and then has no page.
    pub fn note_unfinished(&mut self, recorded: &Recorded, planned_at_ns: u64, page: Option<usize>) {
        if recorded.holds(planned_at_ns) {
            self.n_planned += 1;
            *self.failures.entry(Failure::Unfinished).or_default() += 1;
            if let Some(tally) = page.and_then(|page| self.pages.get_mut(page)) {
                tally.n_failed += 1;
            }
        }
    }

    /// Adds another thread's.
    pub fn add(&mut self, other: &Tally) {
        for (mine, others) in self.pages.iter_mut().zip(&other.pages) {
            mine.latency.add(&others.latency);
            mine.n_failed += others.n_failed;
        }
        self.service.add(&other.service);
        self.late.add(&other.late);
        self.n_answered += other.n_answered;
        self.n_planned += other.n_planned;
        self.n_good_ever += other.n_good_ever;
        other.failures.iter().for_each(|(why, n)| *self.failures.entry(*why).or_default() += n);
    }

    /// Per page.
    pub fn parts(&self, names: &[String]) -> Vec<Part> {
        let part = |(tally, name): (&PageTally, &String)| Part {
            name: name.clone(),
            n_done: tally.latency.len(),
            n_failed: tally.n_failed,
            latency: Distribution::recorded(&tally.latency),
        };
        self.pages.iter().zip(names).map(part).collect()
    }

    /// All pages together, from the planned start; none where nothing was answered.
    pub fn latency(&self) -> Option<Distribution> {
        let mut all = Recorder::default();
        for page in &self.pages {
            all.add(&page.latency);
        }
        (!all.is_empty()).then(|| Distribution::recorded(&all))
    }

    /// From the real start.
    pub fn service(&self) -> Option<Distribution> {
        (!self.service.is_empty()).then(|| Distribution::recorded(&self.service))
    }

    /// How late requests started.
    pub fn late(&self) -> Distribution {
        Distribution::recorded(&self.late)
    }

    /// Failed or unfinished, of those planned in the window.
    pub fn n_failed(&self) -> u64 {
        self.failures.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(planned_at_ns: u64, start_at_ns: u64, end_at_ns: u64) -> Moments {
        Moments { planned_at_ns, start_at_ns, end_at_ns }
    }

    #[test]
    fn latency_counts_from_the_plan_and_only_the_window_counts() {
        let recorded = Recorded::default();
        let mut tally = Tally::new(2);
        tally.note(&recorded, 0, at(500, 500, 600), Ok(()));
        assert_eq!((tally.n_planned, tally.n_answered), (0, 0), "nothing is recorded before the window is told");
        recorded.begin(1_000);
        recorded.end(10_000);
        tally.note(&recorded, 0, at(900, 900, 1_100), Ok(()));
        tally.note(&recorded, 0, at(2_000, 5_000, 6_000), Ok(()));
        tally.note(&recorded, 1, at(9_999, 9_999, 12_000), Ok(()));
        tally.note(&recorded, 1, at(3_000, 3_000, 4_000), Err(Failure::Status(503)));
        tally.note_unfinished(&recorded, 9_000, Some(1));
        tally.note_unfinished(&recorded, 10_000, Some(1));
        assert_eq!((tally.n_planned, tally.n_answered, tally.n_failed(), tally.n_good_ever), (4, 2, 2, 4));
        let latency = tally.latency().unwrap();
        assert_eq!((latency.n, latency.max_ns), (2, 4_000.max(latency.max_ns)));
        assert!((3_990..=4_010).contains(&latency.max_ns), "late by 3 us, then 1 us: {latency:?}");
        assert!((1_000..=1_001).contains(&tally.service().unwrap().min_ns));
        assert!((2_990..=3_010).contains(&tally.late().max_ns));
        let mut all = Tally::new(2);
        all.add(&tally);
        all.add(&tally);
        let parts = all.parts(&["a".into(), "b".into()]);
        assert_eq!((parts[0].n_done, parts[0].n_failed, parts[1].n_done, parts[1].n_failed), (2, 0, 2, 4));
        assert_eq!(all.failures[&Failure::Status(503)], 2);
    }
}
