//! What the idle experiment measures under each arm: a cross-CPU wake-up, a timer wake-up, a UDP round trip.
//!
//! The primary metric, declared here and nowhere else, is the median cross-CPU wake-up (eventfd): it is what a request
//! that arrives on another CPU pays, it contains the exit from the idle state whole, and no timer can pre-wake it. With
//! one CPU there is no other to wake from, and the timer's median is primary. CPU pairs are given by the caller. The pauses
//! between wake-ups are drawn anew for each round and are the same for all its arms: every arm sleeps through the same plan.

use crate::bench::gaps::Gaps;
use crate::bench::{
    DEFAULT_GAP_NS, IdleBaseline, NetworkSpec, RemoteKind, RemoteSpec, RespondSpec, Responder, TimerSpec, clock_bound,
    remote, round_trip, timer,
};
use crate::experiment::{ShortMeasurement, Workload, Yield};
use crate::load::schedule::stream_seed;
use hdrhistogram::Histogram;
use std::sync::atomic::{AtomicBool, Ordering};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::distribution::Recorder;
use wakewatt_core::samples::experiment::Metric;
use wakewatt_core::samples::network::Transport;
use wakewatt_core::samples::tail::MIN_BEYOND;
use wakewatt_core::samples::waker::{Pauses, Waker};
use wakewatt_core::samples::woken::Woken;
use wakewatt_core::source::Source;
use wakewatt_core::units::Cpu;
use wakewatt_host::clock::monotonic_ns;
use wakewatt_host::sleep::sleep_until;

/// Share of a whole measurement for each probe. Most is the primary one's, whose 99th percentile needs a thousand.
const TIMER_SHARE: f64 = 0.15;
const REMOTE_SHARE: f64 = 0.7;
const NETWORK_SHARE: f64 = 0.15;
/// Discarded at the start of each probe: the first wake-ups after a switch.
const WARMUP_NS: u64 = 20_000_000;

/// So much longer than its pause a wake-up takes, until the next begins.
const WAKE_NS: u64 = 100_000;

/// How many cross-CPU wake-ups a block of this length has, about.
pub fn expected_wakes(block_ns: u64) -> u64 {
    part_of(block_ns, REMOTE_SHARE).saturating_sub(WARMUP_NS) / (DEFAULT_GAP_NS + WAKE_NS)
}

fn part_of(block_ns: u64, share: f64) -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let ns = (block_ns as f64 * share) as u64;
    ns
}

/// The workload.
pub struct WakeWorkload<'a> {
    src: &'a dyn Source,
    cpu: Cpu,
    from_cpu: Option<Cpu>,
    block_ns: u64,
    /// Of the pauses; none where they are all alike.
    seed: Option<u64>,
    round: u64,
    /// The two CPUs' clocks agree within this.
    clock_bound_ns: Option<u64>,
    responder: Option<Responder>,
}

/// How a workload of wake-ups is begun.
#[derive(Clone, Copy, Debug)]
pub struct WakePlaces {
    /// The CPU that is woken.
    pub cpu: Cpu,
    /// The CPU that wakes it, where there is a second one.
    pub from_cpu: Option<Cpu>,
    /// A block measures for so long.
    pub block_ns: u64,
    /// Of the pauses; none for pauses that are all alike.
    pub seed: Option<u64>,
}

impl<'a> WakeWorkload<'a> {
    /// On these CPUs.
    pub fn new(src: &'a dyn Source, places: WakePlaces) -> Self {
        let WakePlaces { cpu, from_cpu, block_ns, seed } = places;
        // Where it cannot be had, the first block says why.
        let clock_bound_ns = from_cpu.and_then(|from| clock_bound(from, cpu).ok().flatten());
        // Without loopback (an empty network namespace) there is no responder and no network metric.
        let responder = from_cpu.and_then(|_| Responder::start(&RespondSpec::loopback(Some(cpu))).ok());
        WakeWorkload { src, cpu, from_cpu, block_ns, seed, round: 0, clock_bound_ns, responder }
    }

    /// The same for all arms of a round.
    fn pauses(&self, stream: u64) -> Pauses {
        let seed = |seed| stream_seed(seed, self.round, stream);
        self.seed.map_or(Pauses::Fixed, |s| Pauses::Exponential { seed: seed(s) })
    }

    fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        if self.from_cpu.is_some() {
            parts.push(Part::Remote);
        }
        parts.push(Part::Timer);
        if self.responder.is_some() {
            parts.push(Part::Network);
        }
        parts
    }

    /// One probe for so long.
    fn probe(&self, part: Part, duration_ns: u64, stop: &AtomicBool) -> Result<Measured, String> {
        let fail = |e: crate::bench::BenchError| e.to_string();
        let alone = |hist: Recorder| Measured { hist: hist.into_histogram(), rung: None };
        let pauses = self.pauses(part as u64);
        match (part, self.from_cpu, &self.responder) {
            (Part::Remote, Some(from_cpu), _) => {
                let spec = RemoteSpec {
                    warmup_ns: WARMUP_NS,
                    pauses,
                    ..RemoteSpec::between(RemoteKind::Eventfd, from_cpu, self.cpu, duration_ns)
                };
                let slice = remote(&spec, stop, self.src).map_err(fail)?;
                let rung = slice.sample.waker.map(|waker| (waker, slice.late.into_histogram()));
                Ok(Measured { hist: slice.hist.into_histogram(), rung })
            }
            (Part::Network, Some(from_cpu), Some(responder)) => {
                let spec = NetworkSpec {
                    warmup_ns: WARMUP_NS,
                    pauses,
                    local_responder_cpu: Some(self.cpu),
                    ..NetworkSpec::to(Transport::Udp, responder.address(), from_cpu, duration_ns)
                };
                round_trip(&spec, stop, self.src).map(|s| alone(s.hists.round_trip)).map_err(fail)
            }
            _ => {
                let spec = TimerSpec { warmup_ns: WARMUP_NS, pauses, ..TimerSpec::on(self.cpu, duration_ns) };
                timer(&spec, stop, self.src).map(|s| alone(s.hist)).map_err(fail)
            }
        }
    }

    /// The probes asked for, one after the other; the values of the others are none.
    fn probes(&self, asked: &[(Part, u64)], stop: &AtomicBool) -> Result<Yield, String> {
        let cpus: Vec<Cpu> = self.cpus().iter().collect();
        let baseline = IdleBaseline::read(self.src, &cpus);
        let mut all = Yield::default();
        let mut n_woken = 0;
        for part in self.parts() {
            let Some((_, duration_ns)) = asked.iter().find(|(wanted, _)| *wanted == part) else {
                all.values.extend(QUANTILES.map(|_| None));
                continue;
            };
            let (hist, rung) = match self.probe(part, *duration_ns, stop) {
                Ok(measured) => (Some(measured.hist), measured.rung),
                // An interrupt cuts a measurement short; it is then discarded, not an error.
                Err(_) if stop.load(Ordering::Relaxed) => (None, None),
                Err(why) => return Err(why),
            };
            n_woken += hist.as_ref().map_or(0, Histogram::len);
            let n_missed = rung.as_ref().map_or(0, |(waker, _)| waker.n_missed);
            all.values.extend(QUANTILES.map(|(q, ..)| censored_quantile(hist.as_ref()?, q, n_missed)));
            all.latencies.push((part.id().into(), part.pooled_title().into(), hist));
            if let Some((waker, late)) = rung {
                all.waker = Some(waker);
                all.latencies.push((LATE_ID.into(), LATE_TITLE.into(), Some(late)));
            }
        }
        all.idle = baseline.since(self.src);
        all.woken = Some(Woken::new(self.cpu, n_woken));
        Ok(all)
    }
}

/// A quantile of samples of which so many are missing: each counts as longer than any that was measured. None where fewer
/// than ten samples lie beyond it, or the quantile itself is missing.
fn censored_quantile(hist: &Histogram<u64>, q: f64, n_missing: u64) -> Option<f64> {
    let n = hist.len() as f64;
    let n_all = n + n_missing as f64;
    let is_supported = n_all * (1.0 - q) >= MIN_BEYOND as f64;
    let rank = n_all * q;
    (is_supported && rank <= n).then(|| hist.value_at_quantile(rank / n) as f64)
}

/// What a part came to; of wake-ups by another CPU also how the waker kept its plan, and how late it rang.
struct Measured {
    hist: Histogram<u64>,
    rung: Option<(Waker, Histogram<u64>)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Remote,
    Timer,
    Network,
}

impl Part {
    fn id(self) -> &'static str {
        match self {
            Part::Remote => "wakeup.eventfd",
            Part::Timer => "wakeup.timer",
            Part::Network => "network.udp",
        }
    }
    /// Of its samples: from when to when.
    fn pooled_title(self) -> &'static str {
        match self {
            Part::Remote => "cross-CPU wake-up, from the ring to running",
            Part::Timer => "timer wake-up, from the planned time to running",
            Part::Network => self.title(),
        }
    }
    fn title(self) -> &'static str {
        match self {
            Part::Remote => "cross-CPU wake-up",
            Part::Timer => "timer wake-up",
            Part::Network => "UDP round trip over loopback",
        }
    }
}

/// The warm-up has pauses of its own.
const WARM_UP: u64 = u64::MAX;
/// What is kept of the waker, to draw.
const LATE_ID: &str = "waker.late";
const LATE_TITLE: &str = "lateness of the waker, from its plan to its ring";

/// Per part: the median and the 99th percentile.
const QUANTILES: [(f64, &str, &str); 2] = [(0.5, "p50", "median"), (0.99, "p99", "99th percentile")];

fn metrics_of_part(part: Part) -> impl Iterator<Item = Metric> {
    let of = move |(_, id, words): (f64, &str, &str)| {
        Metric::latency(format!("{}.{id}", part.id()), format!("{}, {words}", part.title()))
    };
    QUANTILES.into_iter().map(of)
}

/// Its metrics where a second CPU can wake and there is a loopback interface, known before anything is started.
pub fn metrics_of() -> Vec<Metric> {
    [Part::Remote, Part::Timer, Part::Network].into_iter().flat_map(metrics_of_part).collect()
}

impl Workload for WakeWorkload<'_> {
    fn metrics(&self) -> Vec<Metric> {
        let of = |part: Part| {
            let clock_bound_ns = self.clock_bound_ns.filter(|_| part == Part::Remote);
            metrics_of_part(part).map(move |metric| Metric { clock_bound_ns, ..metric })
        };
        self.parts().into_iter().flat_map(of).collect()
    }

    fn cpus(&self) -> CpuSet {
        self.from_cpu.into_iter().chain([self.cpu]).collect()
    }

    fn warm_up(&mut self, duration_ns: u64, stop: &AtomicBool) {
        // Sleeping is what the arms differ in, so the warm-up sleeps as the measurement will.
        let mut gaps = Gaps::new(DEFAULT_GAP_NS, self.pauses(WARM_UP));
        let end_ns = monotonic_ns() + duration_ns;
        while monotonic_ns() < end_ns && !stop.load(Ordering::Relaxed) {
            let _ = sleep_until(monotonic_ns() + gaps.next_ns());
        }
    }

    fn begin_round(&mut self, round: usize) {
        self.round = round as u64;
    }

    fn measure(&mut self, stop: &AtomicBool) -> Result<Yield, String> {
        let share = |part: Part| match part {
            Part::Remote => REMOTE_SHARE,
            Part::Timer => TIMER_SHARE,
            Part::Network => NETWORK_SHARE,
        };
        let asked: Vec<(Part, u64)> =
            self.parts().into_iter().map(|part| (part, part_of(self.block_ns, share(part)))).collect();
        self.probes(&asked, stop)
    }

    fn short(&mut self) -> Option<&mut dyn ShortMeasurement> {
        Some(self)
    }
}

impl ShortMeasurement for WakeWorkload<'_> {
    /// The primary probe alone.
    fn measure_for(&mut self, measure_ns: u64, stop: &AtomicBool) -> Result<Yield, String> {
        let primary = self.parts().into_iter().next();
        let asked: Vec<(Part, u64)> = primary.into_iter().map(|part| (part, measure_ns)).collect();
        self.probes(&asked, stop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::distribution::histogram;

    #[test]
    fn a_missing_wake_up_counts_as_longer_than_any_other() {
        let mut hist = histogram();
        (1..=100).for_each(|us| hist.saturating_record(us * 1000));
        let median_us = |n_missing| censored_quantile(&hist, 0.5, n_missing).map(|ns| (ns / 1e3).round());
        assert_eq!((median_us(0), median_us(20), median_us(99)), (Some(50.0), Some(60.0), Some(100.0)));
        assert_eq!(median_us(101), None, "more than half are missing");
        assert_eq!(censored_quantile(&hist, 0.99, 0), None, "one sample lies beyond it");
        (0..900).for_each(|_| hist.saturating_record(50_000));
        assert!(censored_quantile(&hist, 0.99, 0).is_some_and(|ns| (90_000.0..=91_000.0).contains(&ns)));
    }
}
