//! The experiment: arms times rounds, in random order within each round, paired by round.
//!
//! A round holds one block per arm. Before each block the arm is set and a warm-up is discarded; after it the idle
//! counters must not contradict the setting, or the block does not count. The order is drawn from a recorded seed. The
//! experiment stops when the interval of the primary metric is narrow enough, when the effect is decided, when the
//! budget is spent, or when it is told to; whatever happens, the arms are left and the settings read again, so that
//! "put back" is an observation and not a promise.

use crate::noise::NoiseCounters;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::experiment::{Arm, Block, Effect, ExperimentRun, Metric, PooledArm};
use wakewatt_core::samples::{IdleDelta, Window};
use wakewatt_core::source::Source;
use wakewatt_core::stats::distribution::{Distribution, histogram};
use wakewatt_core::stats::random::Random;
use wakewatt_core::stats::sequential::{Decision, Sequential};

/// The settings under test. Leaving must restore what was found, and dropping must too.
pub trait Arms {
    /// In order; the first is the machine as it was found.
    fn arms(&self) -> Vec<Arm>;
    /// Makes arm number `index` effective.
    fn enter(&mut self, index: usize) -> Result<(), String>;
    /// Puts everything back.
    fn leave(&mut self) -> Result<(), String>;
    /// The settings as they are now, path and value.
    fn state(&self) -> Vec<(String, String)>;
    /// Do the idle counters contradict the arm? Then why.
    fn contradiction(&self, index: usize, idle: &[IdleDelta]) -> Option<String>;
}

/// One block's yield.
#[derive(Clone, Debug, Default)]
pub struct Yield {
    /// Nanoseconds per metric.
    pub values_ns: Vec<Option<f64>>,
    /// Samples to pool for drawing: id, title, histogram.
    pub latencies: Vec<(String, String, Option<Histogram<u64>>)>,
    /// Idle counters of the measured CPUs.
    pub idle: Vec<IdleDelta>,
}

/// What is measured under each arm.
pub trait Workload {
    /// The first is primary.
    fn metrics(&self) -> Vec<Metric>;
    /// The CPUs it runs on.
    fn cpus(&self) -> CpuSet;
    /// Runs for a while and throws the result away.
    fn warm_up(&mut self, duration_ns: u64, stop: &AtomicBool);
    /// One block.
    fn measure(&mut self, stop: &AtomicBool) -> Result<Yield, String>;
}

/// The clocks, so that tests need not wait.
pub trait Clock {
    /// CLOCK_MONOTONIC.
    fn now_ns(&self) -> u64;
    /// CPU time of this process.
    fn own_cpu_ns(&self) -> u64;
}

/// How long, how often.
#[derive(Clone, Copy, Debug)]
pub struct Design {
    /// Discarded at the start of each block.
    pub warmup_ns: u64,
    /// Wall time for everything.
    pub budget_ns: u64,
    /// Seed of the order and of the bootstrap.
    pub seed: u64,
    /// Confidence interval of the primary ratio narrower than this (on the log scale, half width) is enough.
    pub enough_half_width: f64,
}

/// Told after each block: blocks done, share of the budget spent, words.
pub type Progress<'a> = &'a dyn Fn(usize, f64, &str);

/// Runs it. An error means that not one block could be run; what was set is put back in any case.
pub fn run(
    arms: &mut dyn Arms,
    workload: &mut dyn Workload,
    design: Design,
    src: &dyn Source,
    clock: &dyn Clock,
    stop: &AtomicBool,
    progress: Progress<'_>,
) -> Result<ExperimentRun, String> {
    let mut random = Random::new(design.seed);
    let mut run = ExperimentRun {
        arms: arms.arms(),
        metrics: workload.metrics(),
        blocks: Vec::new(),
        effects: Vec::new(),
        pooled: Vec::new(),
        seed: design.seed,
        warmup_ns: design.warmup_ns,
        stopped_because: String::new(),
        before: arms.state(),
        after: Vec::new(),
    };
    let mut pools: BTreeMap<(usize, String), (String, Histogram<u64>)> = BTreeMap::new();
    let start_ns = clock.now_ns();
    let sequential = Sequential::default();
    let mut failure = None;
    for round in 0.. {
        let spent_ns = clock.now_ns() - start_ns;
        let per_round_ns = spent_ns / (round.max(1) as u64);
        if round > 0 && spent_ns + per_round_ns > design.budget_ns {
            run.stopped_because = format!("the time budget was spent after {round} rounds");
            break;
        }
        let mut order: Vec<usize> = (0..run.arms.len()).collect();
        random.shuffle(&mut order);
        for index in order {
            let block = one_block(arms, workload, (round, index), &run.arms[index].id, design, src, clock, stop);
            match block {
                Ok((block, latencies)) => {
                    if block.is_rejected.is_none() {
                        for (what, title, hist) in latencies {
                            let pool = pools.entry((index, what)).or_insert_with(|| (title, histogram()));
                            hist.map(|h| pool.1.add(h));
                        }
                    }
                    run.blocks.push(block);
                }
                Err(why) => failure = Some(why),
            }
            let share = (clock.now_ns() - start_ns) as f64 / design.budget_ns.max(1) as f64;
            progress(run.blocks.len(), share, &format!("round {}, {}", round + 1, run.arms[index].title));
            if failure.is_some() || stop.load(Ordering::Relaxed) {
                break;
            }
        }
        if stop.load(Ordering::Relaxed) {
            run.stopped_because = "it was interrupted".into();
            break;
        }
        if let Some(why) = &failure {
            run.stopped_because = format!("it failed: {why}");
            break;
        }
        let decisions: Vec<Decision> = (1..run.arms.len())
            .map(|arm| sequential.look(&pairs(&run, 0, arm), design.enough_half_width, design.seed))
            .collect();
        if decisions.iter().all(|d| *d != Decision::GoOn) {
            run.stopped_because = match decisions.first() {
                Some(Decision::NarrowEnough) => format!("the interval was narrow enough after {} rounds", round + 1),
                Some(Decision::Decided) => format!("the effect was decided after {} rounds", round + 1),
                _ => format!("further rounds would not decide it (after {})", round + 1),
            };
            break;
        }
    }
    let left = arms.leave();
    run.after = arms.state();
    if let Err(why) = left {
        run.stopped_because.push_str(&format!("; not everything could be put back: {why}"));
    }
    if let (true, Some(why)) = (run.blocks.is_empty(), failure) {
        return Err(why);
    }
    run.effects = effects(&run, &sequential);
    run.pooled = pools
        .into_iter()
        .map(|((arm, what), (title, hist))| PooledArm {
            arm: run.arms[arm].id.clone(),
            what,
            title,
            latency: Distribution::of(&hist),
        })
        .collect();
    Ok(run)
}

type BlockAndSamples = (Block, Vec<(String, String, Option<Histogram<u64>>)>);

#[allow(clippy::too_many_arguments)]
fn one_block(
    arms: &mut dyn Arms,
    workload: &mut dyn Workload,
    (round, index): (usize, usize),
    arm: &str,
    design: Design,
    src: &dyn Source,
    clock: &dyn Clock,
    stop: &AtomicBool,
) -> Result<BlockAndSamples, String> {
    arms.enter(index)?;
    workload.warm_up(design.warmup_ns, stop);
    let cpus = workload.cpus();
    let noise_before = NoiseCounters::read(src, &cpus, clock.own_cpu_ns());
    let start_at_ns = clock.now_ns();
    let measured = workload.measure(stop)?;
    let end_at_ns = clock.now_ns();
    let noise_after = NoiseCounters::read(src, &cpus, clock.own_cpu_ns());
    let is_cut = stop.load(Ordering::Relaxed).then(|| "interrupted before its end".to_string());
    let block = Block {
        round,
        arm: arm.to_string(),
        window: Window { start_at_ns, end_at_ns },
        values_ns: measured.values_ns,
        disturbances: noise_after.since(&noise_before, end_at_ns - start_at_ns),
        is_rejected: is_cut.or_else(|| arms.contradiction(index, &measured.idle)),
        idle: measured.idle,
    };
    Ok((block, measured.latencies))
}

/// Baseline and arm values of the rounds in which both blocks counted.
fn pairs(run: &ExperimentRun, metric: usize, arm: usize) -> Vec<(f64, f64)> {
    let value = |round: usize, arm: &str| {
        run.blocks
            .iter()
            .find(|b| b.round == round && b.arm == arm && b.is_rejected.is_none())
            .and_then(|b| b.values_ns.get(metric).copied().flatten())
            .filter(|v| *v > 0.0)
    };
    let n_rounds = run.blocks.last().map_or(0, |b| b.round + 1);
    (0..n_rounds).filter_map(|round| value(round, &run.arms[0].id).zip(value(round, &run.arms[arm].id))).collect()
}

fn effects(run: &ExperimentRun, sequential: &Sequential) -> Vec<Effect> {
    let mut effects = Vec::new();
    for arm in 1..run.arms.len() {
        let names =
            |metric: usize| (run.metrics[metric].id.as_str(), run.arms[0].id.as_str(), run.arms[arm].id.as_str());
        let all: Vec<(usize, Vec<(f64, f64)>)> = (0..run.metrics.len()).map(|m| (m, pairs(run, m, arm))).collect();
        effects.extend(sequential.effects(all.iter().map(|(m, pairs)| (names(*m), pairs.as_slice())), run.seed));
    }
    // Primary metric first, in the order of the metrics.
    effects.sort_by_key(|e| run.metrics.iter().position(|m| m.id == e.metric));
    effects
}
