//! The two loops of a thread: transactions as planned, and one after another.
//!
//! Open: wait for the planned time, or not at all when it is past; work; count from the planned time. What is late is done
//! late, in order, and nothing is skipped; what is not begun when the load ends is counted with what it had waited by then.
//! Closed: no waiting, which is what the machine can do. Both are written against
//! [`Pace`], so that the tests can stall a clock and see that the latencies show it.
//!
//! The generator's own cost is looked at in every 16th transaction by the thread's CPU clock, from the end of one transaction
//! to the start of the next: plan, sleep, wake-up, clocks and counting. That clock is a system call, so it is not read each
//! time.

use super::message::{Counted, Times};
use super::schedule::Schedule;
use super::within::{N_PARTS, count_ended};
use hdrhistogram::Histogram;
use wakewatt_core::distribution::{Censored, N_TENTHS, Recorder, histogram};

/// Every so many transactions the thread's CPU clock is read.
const LOOK_EVERY: u64 = 16;

/// What a thread works with.
pub trait Pace {
    /// CLOCK_MONOTONIC.
    fn now_ns(&self) -> u64;
    /// Sleeps; may return early.
    fn sleep_until(&mut self, at_ns: u64);
    /// CPU time of this thread.
    fn cpu_ns(&self) -> u64;
    /// One transaction.
    fn work(&mut self);
}

/// What a loop counts; made before it begins, so that nothing is allocated in it.
#[derive(Debug)]
pub struct Tally {
    counted: Counted,
    latency: Recorder,
    service: Histogram<u64>,
    ended: Vec<u64>,
    n: u64,
    left_at_cpu_ns: Option<u64>,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally {
            counted: Counted::default(),
            latency: Recorder::default(),
            service: histogram(),
            ended: vec![0; N_PARTS],
            n: 0,
            left_at_cpu_ns: None,
        }
    }
}

impl Tally {
    /// Was there something to look at, which took its time?
    fn entering(&mut self, pace: &impl Pace) -> bool {
        let Some(left_at_ns) = self.left_at_cpu_ns.take() else { return false };
        self.counted.own_ns += pace.cpu_ns().saturating_sub(left_at_ns);
        self.counted.n_own += 1;
        true
    }

    fn left(&mut self, pace: &impl Pace) {
        self.n += 1;
        if self.n.is_multiple_of(LOOK_EVERY) {
            self.left_at_cpu_ns = Some(pace.cpu_ns());
        }
    }

    /// As a message.
    pub fn finish(self) -> Counted {
        let pairs =
            |h: &Histogram<u64>| h.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect();
        let tenths = self.latency.parts(N_TENTHS).into_iter().map(counts).collect();
        let (latency, service) = (pairs(&self.latency), pairs(&self.service));
        Counted { latency, tenths, service, ended: self.ended, ..self.counted }
    }
}

/// How often each step occurs.
fn counts(mut codes: Vec<u16>) -> Vec<(u16, u64)> {
    codes.sort_unstable();
    codes.chunk_by(|a, b| a == b).filter_map(|same| Some((*same.first()?, same.len() as u64))).collect()
}

/// Transactions as planned.
pub fn open(pace: &mut impl Pace, plan: Schedule, times: &Times, tally: &mut Tally) {
    for at_ns in plan.take_while(|at| *at < times.end_at_ns) {
        let counts = times.is_recorded(at_ns);
        tally.counted.n_planned += u64::from(counts);
        let mut start_ns = pace.now_ns();
        while start_ns < at_ns {
            pace.sleep_until(at_ns);
            start_ns = pace.now_ns();
        }
        // Past the end nothing is begun; what was planned has waited at least so long.
        if start_ns >= times.end_at_ns {
            if counts {
                let waited_ns = times.end_at_ns.saturating_sub(at_ns).max(1);
                tally.counted.censored = Censored::and(tally.counted.censored, waited_ns);
                tally.latency.saturating_record(waited_ns);
            }
            continue;
        }
        // The clock was read just now, unless a system call came between.
        if tally.entering(pace) {
            start_ns = pace.now_ns();
        }
        pace.work();
        let done_ns = pace.now_ns();
        tally.left(pace);
        tally.counted.n_finished += u64::from(times.is_recorded(done_ns));
        count_ended(&mut tally.ended, (times.from_ns, times.to_ns), done_ns);
        if counts {
            tally.counted.n_done += 1;
            tally.latency.saturating_record(done_ns.saturating_sub(at_ns).max(1));
            tally.service.saturating_record(done_ns.saturating_sub(start_ns).max(1));
        }
    }
}

/// One after another.
pub fn closed(pace: &mut impl Pace, times: &Times, tally: &mut Tally) {
    while pace.now_ns() < times.start_at_ns {
        pace.sleep_until(times.start_at_ns);
    }
    let mut start_ns = pace.now_ns();
    while start_ns < times.end_at_ns {
        tally.entering(pace);
        pace.work();
        let done_ns = pace.now_ns();
        tally.left(pace);
        if times.is_recorded(done_ns) {
            tally.counted.n_finished += 1;
            tally.service.saturating_record(done_ns.saturating_sub(start_ns).max(1));
        }
        start_ns = done_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that does a transaction in 100 us and stands still once.
    #[derive(Default)]
    struct Fake {
        now_ns: u64,
        stall: Option<(u64, u64)>,
        n_sleeps: u64,
        started: Vec<u64>,
    }

    const US: u64 = 1_000;
    const MS: u64 = 1_000_000;

    impl Pace for Fake {
        fn now_ns(&self) -> u64 {
            self.now_ns
        }
        fn sleep_until(&mut self, at_ns: u64) {
            self.n_sleeps += 1;
            self.now_ns = self.now_ns.max(at_ns);
        }
        fn cpu_ns(&self) -> u64 {
            self.now_ns
        }
        fn work(&mut self) {
            self.started.push(self.now_ns);
            self.now_ns += 100 * US;
            if let Some((_, length_ns)) = self.stall.take_if(|(at_ns, _)| self.now_ns >= *at_ns) {
                self.now_ns += length_ns;
            }
        }
    }

    fn times() -> Times {
        Times { start_at_ns: 0, from_ns: 100 * MS, to_ns: 1100 * MS, end_at_ns: 1200 * MS }
    }

    fn run(stall: Option<(u64, u64)>) -> (Fake, Counted) {
        let (mut fake, mut tally) = (Fake { stall, ..Fake::default() }, Tally::default());
        open(&mut fake, Schedule::new(4, 1000.0, 0), &times(), &mut tally);
        (fake, tally.finish())
    }

    fn later_than(latency: &[(u64, u64)], ns: u64) -> u64 {
        latency.iter().filter(|(value, _)| *value > ns).map(|(_, n)| n).sum()
    }

    #[test]
    fn a_stall_is_in_the_latencies_and_nothing_is_skipped() {
        let (_, calm) = run(None);
        let (fake, stalled) = run(Some((500 * MS, 200 * MS)));
        assert_eq!(calm.n_planned, stalled.n_planned, "what happens does not move the plan");
        assert_eq!(stalled.n_done, stalled.n_planned);
        assert_eq!(later_than(&calm.latency, 5 * MS), 0);
        // About 200 were planned while nothing ran, each late by what was left of the stall.
        let late = later_than(&stalled.latency, 50 * MS);
        assert!((120..260).contains(&late), "{late}: a generator that waits for answers would show one");
        assert!(later_than(&stalled.service, 5 * MS) == 1, "only one transaction itself took long");
        let planned: Vec<u64> = Schedule::new(4, 1000.0, 0).take(fake.started.len()).collect();
        assert!(fake.started.iter().zip(&planned).all(|(started, planned)| started >= planned));
        assert_eq!(fake.started.last().map(|s| s < &times().end_at_ns), Some(true));
    }

    #[test]
    fn what_could_not_be_begun_is_planned_and_not_done() {
        let (_, stalled) = run(Some((500 * MS, 900 * MS)));
        assert!(stalled.n_done < stalled.n_planned && stalled.n_planned > 900, "{stalled:?}");
        assert_eq!(
            stalled.latency.iter().map(|l| l.1).sum::<u64>(),
            stalled.n_planned,
            "what never ran is not left out"
        );
        let censored = stalled.censored.unwrap();
        assert_eq!(censored.n, stalled.n_planned - stalled.n_done);
        // Planned before 1100 ms, given up at 1200 ms.
        assert!((100 * MS..110 * MS).contains(&censored.from_ns), "{censored:?}");
        assert_eq!(stalled.ended.iter().sum::<u64>(), stalled.n_finished);
    }

    #[test]
    fn closed_loop_never_waits_and_counts_what_ends_in_the_window() {
        let (mut fake, mut tally) = (Fake::default(), Tally::default());
        closed(&mut fake, &Times { start_at_ns: 50 * MS, ..times() }, &mut tally);
        let counted = tally.finish();
        assert_eq!((fake.n_sleeps, counted.n_finished, counted.n_planned), (1, 10_000, 0));
        assert!(counted.n_own > 0 && counted.own_ns == 0, "this clock stands still between transactions");
    }
}
