//! What the idle experiment measures under each arm: a cross-CPU wake-up, a timer wake-up, a UDP round trip.
//!
//! The primary metric, declared here and nowhere else, is the median cross-CPU wake-up (eventfd): it is what a request
//! that arrives on another CPU pays, it contains the exit from the idle state whole, and no timer can pre-wake it. With
//! one CPU there is no other to wake from, and the timer's median is primary. CPU pairs are given by the caller.

use crate::bench::{
    DEFAULT_GAP_NS, IdleBaseline, NetworkSpec, RemoteKind, RemoteSpec, RespondSpec, Responder, TimerSpec, remote,
    round_trip, timer,
};
use crate::experiment::{Workload, Yield};
use std::sync::atomic::{AtomicBool, Ordering};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::distribution::{Distribution, Recorder};
use wakewatt_core::samples::experiment::Metric;
use wakewatt_core::samples::network::Transport;
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
    responder: Option<Responder>,
}

impl<'a> WakeWorkload<'a> {
    /// On these CPUs; a block measures for `block_ns`.
    pub fn new(src: &'a dyn Source, cpu: Cpu, from_cpu: Option<Cpu>, block_ns: u64) -> Self {
        // Without loopback (an empty network namespace) there is no responder and no network metric.
        let responder = from_cpu.and_then(|_| Responder::start(&RespondSpec::loopback(Some(cpu))).ok());
        WakeWorkload { src, cpu, from_cpu, block_ns, responder }
    }

    fn part(&self, share: f64) -> u64 {
        part_of(self.block_ns, share)
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

    fn run(&self, part: Part, stop: &AtomicBool) -> Result<Recorder, String> {
        let fail = |e: crate::bench::BenchError| e.to_string();
        match (part, self.from_cpu, &self.responder) {
            (Part::Remote, Some(from_cpu), _) => {
                let spec = RemoteSpec {
                    warmup_ns: WARMUP_NS,
                    ..RemoteSpec::between(RemoteKind::Eventfd, from_cpu, self.cpu, self.part(REMOTE_SHARE))
                };
                remote(&spec, stop, self.src).map(|s| s.hist).map_err(fail)
            }
            (Part::Network, Some(from_cpu), Some(responder)) => {
                let spec = NetworkSpec {
                    warmup_ns: WARMUP_NS,
                    local_responder_cpu: Some(self.cpu),
                    ..NetworkSpec::to(Transport::Udp, responder.address(), from_cpu, self.part(NETWORK_SHARE))
                };
                round_trip(&spec, stop, self.src).map(|s| s.hists.round_trip).map_err(fail)
            }
            _ => {
                let spec = TimerSpec { warmup_ns: WARMUP_NS, ..TimerSpec::on(self.cpu, self.part(TIMER_SHARE)) };
                timer(&spec, stop, self.src).map(|s| s.hist).map_err(fail)
            }
        }
    }
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
    fn title(self) -> &'static str {
        match self {
            Part::Remote => "cross-CPU wake-up",
            Part::Timer => "timer wake-up",
            Part::Network => "UDP round trip over loopback",
        }
    }
}

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
        self.parts().into_iter().flat_map(metrics_of_part).collect()
    }

    fn cpus(&self) -> CpuSet {
        self.from_cpu.into_iter().chain([self.cpu]).collect()
    }

    fn warm_up(&mut self, duration_ns: u64, stop: &AtomicBool) {
        // Sleeping is what the arms differ in, so the warm-up sleeps as the measurement will: once a gap.
        let end_ns = monotonic_ns() + duration_ns;
        while monotonic_ns() < end_ns && !stop.load(Ordering::Relaxed) {
            let _ = sleep_until(monotonic_ns() + DEFAULT_GAP_NS);
        }
    }

    fn measure(&mut self, stop: &AtomicBool) -> Result<Yield, String> {
        let cpus: Vec<Cpu> = self.cpus().iter().collect();
        let baseline = IdleBaseline::read(self.src, &cpus);
        let mut result = Yield::default();
        let mut n_woken = 0;
        for part in self.parts() {
            let hist = match self.run(part, stop) {
                Ok(hist) => Some(hist),
                // An interrupt cuts a block short; it is then rejected, not an error.
                Err(_) if stop.load(Ordering::Relaxed) => None,
                Err(why) => return Err(why),
            };
            let distribution = hist.as_ref().map(Distribution::recorded).unwrap_or_default();
            n_woken += distribution.n;
            for (q, _, _) in QUANTILES {
                result.values.push(distribution.quantile(q).map(|v| v.value_ns as f64));
            }
            result.latencies.push((part.id().into(), part.title().into(), hist.map(Recorder::into_histogram)));
        }
        result.idle = baseline.since(self.src);
        result.woken = Some(Woken { cpu: self.cpu, n: n_woken });
        Ok(result)
    }
}
