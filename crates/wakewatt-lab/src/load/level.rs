//! One level: load at a stated rate, and everything that is read around the part of it that counts.
//!
//! Another command drives one level as a block of its experiment: an engine, calibrated once or given a capacity, and this
//! function are all it needs. Temperatures and meters start shortly before the recorded part, under the same load, so that
//! their first readings lie before it; CPU time and idle counters are read at its edges, with the time they were read at.

use super::Announce;
use super::engine::{Engine, LoadError};
use super::message::{Counted, Order, Times};
use super::phases::Phases;
use super::rules::{self, Surroundings};
use super::schedule::stream_seed;
use super::usage::{Usage, cpu_ns_of, load_average, n_smis};
use super::within::{N_PARTS, cpu_per_op, sum_parts};
use crate::bench::IdleBaseline;
use crate::meters::Meters;
use crate::noise::NoiseCounters;
use hdrhistogram::Histogram;
use std::sync::atomic::AtomicBool;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::distribution::{Censored, Distribution, N_TENTHS, histogram};
use wakewatt_core::samples::Window;
use wakewatt_core::samples::load::{Ask, CpuBy, Level};
use wakewatt_core::source::Source;
use wakewatt_core::units::Cpu;
use wakewatt_host::clock::monotonic_ns;

/// Meters are started this long before what counts, or half the ramp.
const LEAD_NS: u64 = 1_000_000_000;

/// A level, and the generator's own cost in it.
#[derive(Clone, Debug)]
pub struct Run {
    /// What is published.
    pub level: Level,
    /// CPU time the generator took per transaction for itself, where it was looked at.
    pub overhead_ns: Option<f64>,
}

/// Runs one level. `Ask::Share` needs a capacity. After an error the engine is of no more use.
#[allow(clippy::too_many_arguments)]
pub fn level(
    engine: &mut Engine,
    ask: Ask,
    phases: &Phases,
    meters: &Meters,
    stop: &AtomicBool,
    src: &dyn Source,
    tell: Announce<'_>,
) -> Result<Run, LoadError> {
    let per_s = rates(engine, ask).map_err(LoadError::Failed)?;
    let target_per_s: f64 = per_s.iter().sum();
    let is_idle = target_per_s <= 0.0;
    let cpus = engine.cpus();
    let start_at_ns = monotonic_ns() + phases.settle_ns;
    let from_ns = start_at_ns + phases.ramp_up_ns;
    let to_ns = from_ns + phases.record_ns;
    let times = Times { start_at_ns, from_ns, to_ns, end_at_ns: to_ns + phases.ramp_down_ns };
    let what = ask.to_string();
    if !is_idle {
        let seeds: Vec<u64> = (0..per_s.len() as u64).map(|n| stream_seed(engine.seed, key(ask), n)).collect();
        engine.order(|mine, _| {
            let of = |all: &[f64]| all.get(mine.clone()).unwrap_or_default().to_vec();
            Order::Open { times, seeds: seeds.get(mine.clone()).unwrap_or_default().to_vec(), per_s: of(&per_s) }
        })?;
    }
    engine.wait_until(from_ns - LEAD_NS.min(phases.ramp_up_ns / 2), stop, tell, &format!("{what}, ramp up"))?;
    let recorder = meters.start();
    engine.wait_until(from_ns, stop, tell, &format!("{what}, ramp up"))?;
    let before = Counters::read(src, &cpus, &engine.pids());
    let mut edges = vec![before.usage.clone()];
    // In active idle nobody is woken for an interval that there is not.
    for part in (1..N_PARTS as u64).filter(|_| !is_idle) {
        let edge_ns = from_ns + phases.record_ns / N_PARTS as u64 * part;
        engine.wait_until(edge_ns, stop, tell, &format!("{what}, recording"))?;
        edges.push(Usage::read(src, &cpus, monotonic_ns()));
    }
    engine.wait_until(to_ns, stop, tell, &format!("{what}, recording"))?;
    let after = Counters::read(src, &cpus, &engine.pids());
    let idle = before.idle.since(src);
    let window = Window { start_at_ns: from_ns, end_at_ns: to_ns };
    let energy = meters.said(recorder.stop_within(window));
    let load_average = load_average(src, phases.ramp_up_ns.saturating_add(phases.record_ns));
    let counted = match is_idle {
        true => {
            engine.wait_until(times.end_at_ns, stop, tell, &format!("{what}, ramp down"))?;
            Vec::new()
        }
        false => engine.counted(times.end_at_ns, stop, tell, &format!("{what}, ramp down"))?,
    };
    engine.wait_until(times.end_at_ns, stop, tell, &format!("{what}, ramp down"))?;
    let used = after.usage.since(&before.usage);
    let noise = after.noise.since(&before.noise, after.at_ns.saturating_sub(before.at_ns));
    // Without a reading of any CPU nothing is known of others, not that there were none.
    let foreign_ratio = (!used.cpus.is_empty()).then_some(noise.foreign_ratio.max(0.0));
    // A share that is known is told by the rules.
    let noise = if foreign_ratio.is_some() { noise.without_others() } else { noise };
    edges.push(after.usage.clone());
    let cpu_ns: Vec<u64> = edges.windows(2).map(|edge| edge[1].since(&edge[0]).cpu_ns).collect();
    let sums = Sums::of(&counted);
    let seconds = phases.record_ns as f64 / 1e9;
    let mut disturbances = noise.notes();
    let n_displaced = counted.iter().filter(|c| c.is_displaced).count();
    if n_displaced > 0 {
        let n_all = counted.len();
        disturbances.push(format!("{n_displaced} of {n_all} load threads could not run on their CPUs (offline?)"));
    }
    let is_saturated = rules::is_saturated(ask);
    if is_saturated {
        disturbances.push("latency at 100 % is that of a queue without a steady state, so it is left out".into());
    }
    let mut level = Level {
        ask,
        phases_ns: phases.as_array(),
        window,
        target_per_s: (!is_idle).then_some(target_per_s),
        n_planned: sums.n_planned,
        n_done: sums.n_done,
        n_failed: 0,
        per_s: if seconds > 0.0 { sums.n_finished as f64 / seconds } else { 0.0 },
        figure: None,
        latency: (!is_saturated && sums.n_planned > 0)
            .then(|| Distribution::in_parts(&sums.latency, sums.tenths).with_censored(sums.censored)),
        cpu_per_op: cpu_per_op(&sums.ended, &cpu_ns, phases.record_ns),
        service: (sums.n_done > 0).then(|| Distribution::of(&sums.service)),
        parts: Vec::new(),
        cpu_ns: used.cpu_ns,
        cpu_by: Some(CpuBy::BusyCpus),
        system_ns: used.system_ns,
        cpus: used.cpus,
        foreign_ratio,
        load_average,
        idle,
        energy,
        disturbances,
        broken_rules: Vec::new(),
    };
    level.disturbances.extend(rules::silences(level.energy.as_ref()));
    level.broken_rules = rules::broken(
        &level,
        &Surroundings {
            capacity_per_s: engine.capacity_per_s(),
            steal_ratio: noise.steal_ratio,
            n_throttles: noise.n_throttles,
            n_smis: after.n_smis.zip(before.n_smis).map_or(0, |(now, then)| now.saturating_sub(then)),
            foreign_ratio,
        },
    );
    let overhead_ns = (sums.n_own > 0).then(|| sums.own_ns as f64 / sums.n_own as f64);
    Ok(Run { level, overhead_ns })
}

/// A number for the seed; the same level has the same in every run.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // rounded, and never negative
fn key(ask: Ask) -> u64 {
    match ask {
        Ask::Share(share) => (share * 1e6).round() as u64,
        Ask::Rate(per_s) => (1 << 62) | (per_s * 1e3).round() as u64,
        _ => 0,
    }
}

/// Every thread's rate: its part of what was calibrated, else equal parts.
fn rates(engine: &Engine, ask: Ask) -> Result<Vec<f64>, String> {
    let n = engine.n_threads().max(1) as f64;
    let capacity = engine.capacity.as_deref();
    let scaled = |share: f64| capacity.map(|all| all.iter().map(|c| c * share).collect::<Vec<f64>>());
    match ask {
        Ask::Idle => Ok(Vec::new()),
        Ask::Share(share) => scaled(share).ok_or_else(|| "a share of what? nothing was calibrated".into()),
        Ask::Rate(per_s) => Ok(match engine.capacity_per_s() {
            Some(all) if all > 0.0 => scaled(per_s / all).unwrap_or_default(),
            _ => vec![per_s / n; engine.n_threads()],
        }),
        Ask::Clients(_) | Ask::Run => Err(format!("this load knows no {ask}")),
    }
}

/// What is read at the edges.
struct Counters {
    at_ns: u64,
    n_smis: Option<u64>,
    usage: Usage,
    noise: NoiseCounters,
    idle: IdleBaseline,
}

impl Counters {
    fn read(src: &dyn Source, cpus: &CpuSet, pids: &[u32]) -> Counters {
        let at_ns = monotonic_ns();
        let usage = Usage::read(src, cpus, at_ns);
        // This process reads the meters, which is no work of others.
        let own_ns = cpu_ns_of(src, pids).saturating_add(cpu_ns_of(src, &[std::process::id()]));
        let all: Vec<Cpu> = cpus.iter().collect();
        let n_smis = n_smis(src, cpus);
        // A short transaction has a timer's interrupt each, which many kernels put into no process's time: at 50 us that is
        // a few per cent, and nobody else's.
        let noise = NoiseCounters::read(src, cpus, own_ns).without_interrupts();
        Counters { at_ns, n_smis, usage, noise, idle: IdleBaseline::read(src, &all) }
    }
}

/// All threads together.
struct Sums {
    n_planned: u64,
    n_done: u64,
    n_finished: u64,
    own_ns: u64,
    n_own: u64,
    latency: Histogram<u64>,
    tenths: Vec<Vec<u16>>,
    censored: Option<Censored>,
    service: Histogram<u64>,
    ended: Vec<u64>,
}

impl Sums {
    fn of(counted: &[Counted]) -> Sums {
        let sum = |of: fn(&Counted) -> u64| counted.iter().map(of).fold(0, u64::saturating_add);
        let joined = |of: fn(&Counted) -> &Vec<(u64, u64)>| {
            let mut all = histogram();
            counted.iter().flat_map(of).for_each(|(ns, n)| all.saturating_record_n(*ns, *n));
            all
        };
        Sums {
            n_planned: sum(|c| c.n_planned),
            n_done: sum(|c| c.n_done),
            n_finished: sum(|c| c.n_finished),
            own_ns: sum(|c| c.own_ns),
            n_own: sum(|c| c.n_own),
            latency: joined(|c| &c.latency),
            tenths: tenths(counted),
            censored: counted.iter().fold(None, |all, c| Censored::joined(all, c.censored)),
            service: joined(|c| &c.service),
            ended: sum_parts(counted.iter().map(|c| c.ended.as_slice())),
        }
    }
}

/// Tenth by tenth, all threads together; none where one of them gave it up.
fn tenths(counted: &[Counted]) -> Vec<Vec<u16>> {
    let busy = || counted.iter().filter(|c| !c.latency.is_empty());
    if busy().any(|c| c.tenths.len() != N_TENTHS) {
        return Vec::new();
    }
    let of = |at: usize| {
        let steps = busy().flat_map(|c| &c.tenths[at]);
        steps.flat_map(|(code, n)| std::iter::repeat_n(*code, usize::try_from(*n).unwrap_or(0))).collect()
    };
    (0..N_TENTHS).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_up() {
        let one = Counted {
            n_planned: 3,
            n_done: 2,
            n_finished: 4,
            latency: vec![(1000, 1), (2000, 1)],
            tenths: vec![vec![(9, 2)]; 10],
            censored: Some(Censored { n: 1, from_ns: 2000 }),
            ended: vec![4, 0],
            service: vec![(500, 2)],
            own_ns: 90,
            n_own: 3,
            is_displaced: false,
        };
        let sums = Sums::of(&[one.clone(), Counted { latency: vec![(2000, 5)], ..one }]);
        assert_eq!((sums.n_planned, sums.n_done, sums.n_finished, sums.own_ns, sums.n_own), (6, 4, 8, 180, 6));
        assert_eq!((sums.latency.len(), sums.service.len()), (7, 4));
        assert_eq!(sums.latency.count_at(2000), 6);
        assert_eq!(sums.tenths, vec![vec![9u16; 4]; 10]);
        assert_eq!(sums.censored, Some(Censored { n: 2, from_ns: 2000 }));
        assert_eq!(sums.ended, [8, 0]);
    }

    #[test]
    fn levels_have_names_and_numbers_of_their_own() {
        let names = [Ask::Share(1.0), Ask::Share(0.125), Ask::Idle, Ask::Rate(800.0)].map(|ask| ask.to_string());
        assert_eq!(names, ["100 %", "12.5 %", "active idle", "800/s"]);
        assert_ne!(key(Ask::Share(0.1)), key(Ask::Share(0.2)));
        assert_ne!(key(Ask::Share(0.1)), key(Ask::Rate(100.0)));
    }
}
