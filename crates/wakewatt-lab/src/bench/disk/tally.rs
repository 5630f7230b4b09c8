//! What one reading thread counted.

use wakewatt_core::samples::Scheduling;
use wakewatt_core::stats::distribution::Recorder;

/// Times of one read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    /// None in the closed loop.
    pub(crate) planned_at_ns: Option<u64>,
    /// Just before the system call.
    pub(crate) submitted_at_ns: u64,
    /// The data is there, as the thread sees it.
    pub(crate) done_at_ns: u64,
}

/// Counts of one thread, later of all.
#[derive(Debug)]
pub(crate) struct Tally {
    count_from_ns: u64,
    pub(crate) latency: Recorder,
    pub(crate) service: Recorder,
    pub(crate) n_late_starts: u64,
    pub(crate) n_never_started: u64,
    pub(crate) n_reads_with_warmup: u64,
    pub(crate) last_at_ns: u64,
    pub(crate) scheduling: Scheduling,
}

impl Tally {
    /// Reads planned (or submitted) earlier are warm-up.
    pub(crate) fn from(count_from_ns: u64, scheduling: Scheduling) -> Tally {
        Tally {
            count_from_ns,
            latency: Recorder::default(),
            service: Recorder::default(),
            n_late_starts: 0,
            n_never_started: 0,
            n_reads_with_warmup: 0,
            last_at_ns: count_from_ns,
            scheduling,
        }
    }

    /// Counts one. `is_late`: its planned start was over before it could be submitted.
    pub(crate) fn record(&mut self, read: Read, is_late: bool) {
        self.n_reads_with_warmup += 1;
        let begun_at_ns = read.planned_at_ns.unwrap_or(read.submitted_at_ns);
        if begun_at_ns < self.count_from_ns {
            return;
        }
        self.latency.saturating_record(read.done_at_ns.saturating_sub(begun_at_ns).max(1));
        if read.planned_at_ns.is_some() {
            self.service.saturating_record(read.done_at_ns.saturating_sub(read.submitted_at_ns).max(1));
        }
        self.n_late_starts += u64::from(is_late);
        self.last_at_ns = read.done_at_ns;
    }

    /// Adds another thread's.
    pub(crate) fn add(&mut self, other: &Tally) {
        self.latency.add(&other.latency);
        self.service.add(&other.service);
        self.n_late_starts += other.n_late_starts;
        self.n_never_started += other.n_never_started;
        self.n_reads_with_warmup += other.n_reads_with_warmup;
        self.last_at_ns = self.last_at_ns.max(other.last_at_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_read_is_counted_from_its_plan_and_warm_up_is_not_counted() {
        let mut tally = Tally::from(1_000, Scheduling::Fifo(1));
        tally.record(Read { planned_at_ns: Some(900), submitted_at_ns: 1_100, done_at_ns: 1_200 }, true);
        tally.record(Read { planned_at_ns: Some(1_000), submitted_at_ns: 1_600, done_at_ns: 1_700 }, true);
        assert_eq!((tally.latency.len(), tally.latency.max(), tally.service.max()), (1, 700, 100));
        assert_eq!((tally.n_late_starts, tally.n_reads_with_warmup), (1, 2));
        let mut closed = Tally::from(0, Scheduling::Fifo(1));
        closed.record(Read { planned_at_ns: None, submitted_at_ns: 10, done_at_ns: 15 }, false);
        closed.add(&tally);
        assert_eq!((closed.latency.len(), closed.service.len(), closed.last_at_ns), (2, 1, 1_700));
    }
}
