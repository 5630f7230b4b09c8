//! How often 95 % intervals hold: queues whose truth is known, simulated with many seeds, each as a person
//! would whose file leaves its length open.
//!
//! M/M/1 and M/M/8 by Kleinrock (1975). Recorded arrivals: every seed takes a Poisson recording of its own,
//! so the truth is that of M/M/1, and an interval must allow for what the recording happened to be. `cargo
//! xtask bench coverage` makes the table of docs/methods/simulate-coverage.md.

use crate::law::Law;
use crate::outcome::{Estimate, Outcome};
use crate::server::{ArrivalKind, Arrivals, Hop, Machine, Refused, Server, Workload};
use crate::simulate;
use crate::span::Span;
use crate::ziggurat::exponential;
use wakewatt_core::stats::random::Random;

/// Arrivals of a recording: as many as a `.wtrace` gives at most.
const N_RECORDED: usize = crate::recorded::MOST_ARRIVALS;
const SERVICE_NS: f64 = 500_000.0;

/// A queue of known truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// One CPU, Poisson arrivals, exponential work.
    Mm1,
    /// Eight CPUs with one queue.
    Mm8,
    /// One CPU, arrivals from a recording.
    Recorded,
}

impl Queue {
    /// All of them.
    pub const ALL: [Queue; 3] = [Queue::Mm1, Queue::Mm8, Queue::Recorded];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Queue::Mm1 => "M/M/1",
            Queue::Mm8 => "M/M/8",
            Queue::Recorded => "recorded arrivals",
        }
    }

    fn n_cpus(self) -> u32 {
        if self == Queue::Mm8 { 8 } else { 1 }
    }

    /// A server at this load, with this seed.
    pub fn server(self, rho: f64, seed: u64) -> Server {
        let per_s = rho * f64::from(self.n_cpus()) * 1e9 / SERVICE_NS;
        let arrivals = match self {
            Queue::Recorded => recorded(per_s, seed),
            _ => Arrivals::poisson(per_s),
        };
        let hop = vec![Hop::of(Law::exponential(Span::us(500)))];
        let mut server =
            Server::of(Machine::bare(self.n_cpus()), Workload { arrivals, hop, rounds: None, limit: None });
        server.run.seed = seed;
        server
    }

    /// Mean, median and 99th percentile of the time of a request, in nanoseconds.
    pub fn truth(self, rho: f64) -> [f64; 3] {
        let c = f64::from(self.n_cpus());
        // Rates per mean of the work. The wait of those who wait is exponential; Erlang C says how many do.
        let (load, drain) = (c * rho, c * (1.0 - rho));
        let inverse = (1..=self.n_cpus()).fold(1.0, |inverse, k| 1.0 + f64::from(k) / load * inverse);
        let waits = 1.0 / inverse / (1.0 - rho * (1.0 - 1.0 / inverse));
        let beyond = |t: f64| {
            let both = match drain - 1.0 {
                apart if apart.abs() < 1e-9 => (1.0 + t) * (-t).exp(),
                apart => (drain * (-t).exp() - (-drain * t).exp()) / apart,
            };
            (1.0 - waits) * (-t).exp() + waits * both
        };
        let quantile = |q: f64| {
            let (mut low, mut high) = (0.0, 1e4);
            for _ in 0..100 {
                let middle = (low + high) / 2.0;
                if beyond(middle) > 1.0 - q { low = middle } else { high = middle }
            }
            low
        };
        [1.0 + waits / drain, quantile(0.5), quantile(0.99)].map(|t| t * SERVICE_NS)
    }
}

/// A Poisson recording.
fn recorded(per_s: f64, seed: u64) -> Arrivals {
    let (mut random, mut at_us) = (Random::new(seed ^ 0x7265_636f_7264), 0.0);
    let times = (0..N_RECORDED).map(|_| {
        at_us += exponential(&mut random) * 1e6 / per_s;
        at_us
    });
    Arrivals { kind: ArrivalKind::Recorded, at_us: times.collect(), ..Arrivals::default() }
}

/// How often the intervals of mean, median and 99th percentile held.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Coverage {
    /// Seeds whose run has intervals.
    pub n_shown: u32,
    /// Seeds whose run is refused one, with the length that is needed.
    pub n_refused: u32,
    /// Of those shown, how many held.
    pub n_held: [u32; 3],
    /// Half the width of an interval over the truth, on average.
    pub half_ratio: [f64; 3],
    /// How far off the number is on average, over the truth.
    pub bias_ratio: [f64; 3],
    /// Simulated time that counted, per replication, on average, in seconds.
    pub seconds: f64,
}

/// Runs a queue with these seeds.
pub fn coverage(
    queue: Queue,
    rho: f64,
    seeds: impl IntoIterator<Item = u64>,
    n_threads: usize,
) -> Result<Coverage, Refused> {
    let (truth, mut all) = (queue.truth(rho), Coverage::default());
    for seed in seeds {
        let outcome = simulate(&queue.server(rho, seed), n_threads)?;
        match times(&outcome) {
            Some(times) => all.add(times, truth, outcome.duration_ns),
            None => all.n_refused += 1,
        }
    }
    let n = f64::from(all.n_shown.max(1));
    all.half_ratio = all.half_ratio.map(|sum| sum / n);
    all.bias_ratio = all.bias_ratio.map(|sum| sum / n);
    all.seconds /= n;
    Ok(all)
}

/// Mean, median and 99th percentile, where all have an interval.
fn times(outcome: &Outcome) -> Option<[Estimate; 3]> {
    let at = |q: f64| outcome.quantiles.iter().find(|x| (x.q - q).abs() < 1e-9).map(|x| x.ns);
    let times = [outcome.mean_ns, at(0.5)?, at(0.99)?];
    times.iter().all(|t| t.half.is_some()).then_some(times)
}

impl Coverage {
    fn add(&mut self, times: [Estimate; 3], truth: [f64; 3], duration_ns: u64) {
        self.n_shown += 1;
        self.seconds += duration_ns as f64 / 1e9;
        for (i, (time, truth)) in times.iter().zip(truth).enumerate() {
            self.n_held[i] += u32::from(time.low() <= truth && truth <= time.high());
            self.half_ratio[i] += time.half.unwrap_or(0.0) / truth;
            self.bias_ratio[i] += time.value / truth - 1.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_truth_is_that_of_the_textbook() {
        let close = |a: [f64; 3], b: [f64; 3]| a.iter().zip(b).all(|(a, b)| (a / b - 1.0).abs() < 1e-4);
        assert!(close(Queue::Mm1.truth(0.9), [5e6, 5e6 * 2f64.ln(), 5e6 * 100f64.ln()]));
        // Erlang's C of 8 CPUs at a load of 6.4 is 0.4576; those who wait do so for 1 / 1.6 of the work.
        assert!((Queue::Mm8.truth(0.8)[0] / 500e3 - 1.0 - 0.4576 / 1.6).abs() < 2e-4, "{:?}", Queue::Mm8.truth(0.8));
    }
}
