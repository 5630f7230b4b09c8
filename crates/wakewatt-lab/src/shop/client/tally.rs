//! What the requests of one generator thread came to, page by page, and what the threads came to together.
//!
//! A request belongs to the window in which it was planned. The throughput of the window is what was answered in it,
//! whenever that was planned: otherwise an overloaded server would get credit for what it answered long after.
//!
//! A request that failed was not answered in any time that a client would wait, so it is counted among the latencies at the
//! time-out (after its own lateness), as one that took at least so long. Left out, a server that refuses what it cannot do
//! would have the best percentiles of all.

use super::connection::Failure;
use crate::load::within::{N_PARTS, count_ended};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wakewatt_core::distribution::{Censored, Distribution, Recorder};
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

    /// From when to when.
    pub fn ends_ns(&self) -> (u64, u64) {
        (self.start_at_ns.load(Relaxed), self.end_at_ns.load(Relaxed))
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
    /// A failed request is counted as one that took at least so long from its start.
    timeout_ns: u64,
    /// By page.
    pages: Vec<PageTally>,
    /// Failed before it was known which page they would ask for.
    of_no_page: Recorder,
    censored: Option<Censored>,
    /// Answered in each part of the window, whenever planned.
    ended: Vec<u64>,
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
    n_done: u64,
    n_failed: u64,
    censored: Option<Censored>,
}

impl Tally {
    /// Nothing yet.
    pub fn new(n_pages: usize, timeout_ns: u64) -> Tally {
        let page = |_| PageTally { latency: Recorder::default(), n_done: 0, n_failed: 0, censored: None };
        Tally {
            timeout_ns,
            pages: (0..n_pages).map(page).collect(),
            of_no_page: Recorder::default(),
            censored: None,
            ended: vec![0; N_PARTS],
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
        if done.is_ok() && recorded.holds(moments.end_at_ns) {
            self.n_answered += 1;
            count_ended(&mut self.ended, recorded.ends_ns(), moments.end_at_ns);
        }
        if !recorded.holds(moments.planned_at_ns) {
            return;
        }
        self.n_planned += 1;
        let Moments { planned_at_ns, start_at_ns, end_at_ns } = moments;
        self.late.saturating_record(start_at_ns.saturating_sub(planned_at_ns).max(1));
        let late_ns = start_at_ns.saturating_sub(planned_at_ns);
        let Some(tally) = self.pages.get_mut(page) else { return };
        match done {
            Ok(()) => {
                let took_ns = end_at_ns.saturating_sub(planned_at_ns).max(1);
                tally.n_done += 1;
                tally.latency.saturating_record(took_ns);
                self.service.saturating_record(end_at_ns.saturating_sub(start_at_ns).max(1));
            }
            Err(why) => {
                *self.failures.entry(why).or_default() += 1;
                self.gave_up(late_ns, Some(page));
            }
        }
    }

    /// One that was planned and never came to its end; it may not even have begun, and then has no page.
    pub fn note_unfinished(&mut self, recorded: &Recorded, planned_at_ns: u64, page: Option<usize>) {
        if recorded.holds(planned_at_ns) {
            self.n_planned += 1;
            *self.failures.entry(Failure::Unfinished).or_default() += 1;
            self.gave_up(0, page);
        }
    }

    /// Counts it as one that took at least as long as would have been waited.
    fn gave_up(&mut self, late_ns: u64, page: Option<usize>) {
        let least_ns = self.timeout_ns.saturating_add(late_ns).max(1);
        self.censored = Censored::and(self.censored, least_ns);
        match page.and_then(|page| self.pages.get_mut(page)) {
            Some(tally) => {
                tally.n_failed += 1;
                tally.latency.saturating_record(least_ns);
                tally.censored = Censored::and(tally.censored, least_ns);
            }
            None => self.of_no_page.saturating_record(least_ns),
        }
    }

    /// Adds another thread's.
    pub fn add(&mut self, other: &Tally) {
        for (mine, others) in self.pages.iter_mut().zip(&other.pages) {
            mine.latency.add(&others.latency);
            mine.n_done += others.n_done;
            mine.n_failed += others.n_failed;
            mine.censored = Censored::joined(mine.censored, others.censored);
        }
        self.of_no_page.add(&other.of_no_page);
        self.censored = Censored::joined(self.censored, other.censored);
        self.ended.iter_mut().zip(&other.ended).for_each(|(mine, theirs)| *mine += theirs);
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
            n_done: tally.n_done,
            n_failed: tally.n_failed,
            latency: Distribution::recorded(&tally.latency).with_censored(tally.censored),
        };
        self.pages.iter().zip(names).map(part).collect()
    }

    /// Answered in each part of the window, whenever planned.
    pub fn ended(&self) -> &[u64] {
        &self.ended
    }

    /// All pages together, from the planned start, failed ones at the time-out; none where nothing was planned.
    pub fn latency(&self) -> Option<Distribution> {
        let mut all = self.of_no_page.clone();
        for page in &self.pages {
            all.add(&page.latency);
        }
        (!all.is_empty()).then(|| Distribution::recorded(&all).with_censored(self.censored))
    }

    /// Of those answered, from the real start.
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
        let mut tally = Tally::new(2, 1_000_000);
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
        assert_eq!((latency.n, latency.censored), (4, Some(Censored { n: 2, from_ns: 1_000_000 })));
        assert!(latency.is_at_least(latency.max_ns), "what failed is counted at the time-out: {latency:?}");
        let answered = tally.parts(&["a".into(), "b".into()])[0].latency.clone();
        assert!((3_990..=4_010).contains(&answered.max_ns), "late by 3 us, then 1 us: {answered:?}");
        assert!((1_000..=1_001).contains(&tally.service().unwrap().min_ns));
        assert!((2_990..=3_010).contains(&tally.late().max_ns));
        let mut all = Tally::new(2, 1_000_000);
        all.add(&tally);
        all.add(&tally);
        let parts = all.parts(&["a".into(), "b".into()]);
        assert_eq!((parts[0].n_done, parts[0].n_failed, parts[1].n_done, parts[1].n_failed), (2, 0, 2, 4));
        assert_eq!(all.failures[&Failure::Status(503)], 2);
    }
}
