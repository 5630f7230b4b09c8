//! What the idle experiment measures under each arm: a cross-CPU wake-up, a timer wake-up, a UDP round trip.
//!
//! The primary metric, declared here and nowhere else, is the median cross-CPU wake-up (eventfd): it is what a request
//! that arrives on another CPU pays, it contains the exit from the idle state whole, and no timer can pre-wake it. With
//! one CPU there is no other to wake from, and the timer's median is primary. CPU pairs are given by the caller. The pauses
//! between wake-ups are drawn anew for each round and are the same for all its arms: every arm sleeps through the same plan.

use crate::bench::gaps::Gaps;
use crate::bench::idle_counters;
use crate::bench::slice::with_lateness;
use crate::bench::{
    DEFAULT_GAP_NS, IdleBaseline, NetworkSpec, RemoteKind, RemoteSpec, RespondSpec, Responder, TimerSpec, clock_bound,
    remote, round_trip, timer,
};
use crate::experiment::{Sliced, Workload, Yield};
use crate::load::schedule::stream_seed;
use hdrhistogram::Histogram;
use std::sync::atomic::{AtomicBool, Ordering};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::distribution::{Distribution, Recorder};
use wakewatt_core::samples::experiment::Metric;
use wakewatt_core::samples::network::Transport;
use wakewatt_core::samples::waker::{Pauses, Waker};
use wakewatt_core::samples::woken::Woken;
use wakewatt_core::source::Source;
use wakewatt_core::units::Cpu;
use wakewatt_host::clock::monotonic_ns;
use wakewatt_host::sleep::sleep_until;

/// One block's parts: share of its length for each probe. Most is the primary one's, whose 99th percentile needs a thousand.
const TIMER_SHARE: f64 = 0.15;
const REMOTE_SHARE: f64 = 0.7;
const NETWORK_SHARE: f64 = 0.15;
/// Discarded at the start of each probe; the block's own warm-up came before.
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

    fn part(&self, share: f64, of: usize) -> u64 {
        part_of(self.block_ns, share) / of.max(1) as u64
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

    fn run(&self, part: Part, (at, of): (usize, usize), stop: &AtomicBool) -> Result<Measured, String> {
        let fail = |e: crate::bench::BenchError| e.to_string();
        let alone = |hist: Recorder| Measured { hist: hist.into_histogram(), rung: None };
        // Every slice has pauses of its own, the same for all arms.
        let pauses = self.pauses(part as u64 + 16 * at as u64);
        match (part, self.from_cpu, &self.responder) {
            (Part::Remote, Some(from_cpu), _) => {
                let spec = RemoteSpec {
                    warmup_ns: WARMUP_NS,
                    pauses,
                    ..RemoteSpec::between(RemoteKind::Eventfd, from_cpu, self.cpu, self.part(REMOTE_SHARE, of))
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
                    ..NetworkSpec::to(Transport::Udp, responder.address(), from_cpu, self.part(NETWORK_SHARE, of))
                };
                round_trip(&spec, stop, self.src).map(|s| alone(s.hists.round_trip)).map_err(fail)
            }
            _ => {
                let spec =
                    TimerSpec { warmup_ns: WARMUP_NS, pauses, ..TimerSpec::on(self.cpu, self.part(TIMER_SHARE, of)) };
                timer(&spec, stop, self.src).map(|s| alone(s.hist)).map_err(fail)
            }
        }
    }
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
        let whole = self.slice(0, 1, stop)?;
        Ok(self.whole(vec![whole]))
    }

    fn sliced(&mut self) -> Option<&mut dyn Sliced> {
        Some(self)
    }
}

impl Sliced for WakeWorkload<'_> {
    fn block_ns(&self) -> u64 {
        self.block_ns
    }

    fn slice(&mut self, at: usize, of: usize, stop: &AtomicBool) -> Result<Yield, String> {
        let cpus: Vec<Cpu> = self.cpus().iter().collect();
        let baseline = IdleBaseline::read(self.src, &cpus);
        let mut result = Yield::default();
        let mut n_woken = 0;
        for part in self.parts() {
            let (hist, rung) = match self.run(part, (at, of), stop) {
                Ok(measured) => (Some(measured.hist), measured.rung),
                // An interrupt cuts a block short; it is then rejected, not an error.
                Err(_) if stop.load(Ordering::Relaxed) => (None, None),
                Err(why) => return Err(why),
            };
            n_woken += hist.as_ref().map_or(0, Histogram::len);
            result.latencies.push((part.id().into(), part.pooled_title().into(), hist));
            if let Some((waker, late)) = rung {
                result.waker = Some(waker);
                result.latencies.push((LATE_ID.into(), LATE_TITLE.into(), Some(late)));
            }
        }
        result.idle = baseline.since(self.src);
        result.woken = Some(Woken { cpu: self.cpu, n: n_woken });
        Ok(result)
    }

    fn whole(&self, slices: Vec<Yield>) -> Yield {
        let mut all =
            Yield { waker: Waker::together(slices.iter().filter_map(|s| s.waker.as_ref())), ..Yield::default() };
        let n_woken = slices.iter().filter_map(|slice| Some(slice.woken?.n)).sum();
        all.woken = Some(Woken { cpu: self.cpu, n: n_woken });
        for slice in slices {
            for (id, title, hist) in slice.latencies {
                match (all.latencies.iter_mut().find(|(known, ..)| *known == id), hist) {
                    // All have the same bounds, so nothing is out of range.
                    (Some((.., Some(sum))), Some(hist)) => drop(sum.add(&hist)),
                    (Some((.., sum)), Some(hist)) => *sum = Some(hist),
                    (Some(_), None) => {}
                    (None, hist) => all.latencies.push((id, title, hist)),
                }
            }
            idle_counters::add(&mut all.idle, slice.idle);
        }
        let of = |id: &str| all.latencies.iter().find(|(known, ..)| known == id).and_then(|(.., hist)| hist.as_ref());
        for part in self.parts() {
            let distribution = of(part.id()).map(Distribution::of).unwrap_or_default();
            all.values.extend(QUANTILES.map(|(q, ..)| distribution.quantile(q).map(|v| v.value_ns as f64)));
        }
        all.waker = all.waker.map(|waker| of(LATE_ID).map_or(waker, |late| with_lateness(waker, late)));
        all
    }
}
