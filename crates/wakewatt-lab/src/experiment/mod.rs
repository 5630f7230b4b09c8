//! The experiment: variants times rounds, in random order within each round, paired by round.
//!
//! A round measures each variant once; every k-th round measures the first one twice, under another name: that shows what
//! this host calls a difference where there is none. Where switching is instant (a latency limit, idle states), a
//! measurement takes 150 ms and there are hundreds of rounds ([`Design::short`]); what needs longer, such as a 99th
//! percentile, is measured in whole rounds afterwards. Noise that strikes all variants alike discards nothing: pairs of
//! neighbouring measurements share it, the estimator is robust, and the rest widens the interval. A measurement is
//! discarded only where it is not the variant's: the idle counters contradict the setting, or the CPU was never idle.
//! The order is drawn from a recorded seed, so a run that was cut short resumes in the same order. The experiment stops at
//! the first interim analysis that decides it, when the budget does not reach the next one, or when it is interrupted;
//! settings are restored and read again, so that "restored" is an observation and not a promise.

mod carry_over;
mod design;
mod judging;
pub mod loads;
mod parts;
#[cfg(test)]
mod tests;
mod together;

use design::Pace;
pub use design::{Design, Rule, SHORT_NS, Short};
pub use judging::{Standing, by_round, level, standing};
pub use parts::{Arms, Calibrated, ShortMeasurement, Workload, Yield};
pub use wakewatt_core::samples::compared::AGAIN;

use crate::context::Clock;
use crate::noise::{Noise, NoiseCounters};
use crate::surroundings::Surroundings;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::distribution::{Distribution, histogram};
use wakewatt_core::samples::Window;
use wakewatt_core::samples::disturbance::Disturbance;
use wakewatt_core::samples::ended::{Ended, How};
use wakewatt_core::samples::experiment::{Block, ExperimentRun, PooledArm};
use wakewatt_core::samples::grade::Graded;
use wakewatt_core::samples::load::Level;
use wakewatt_core::samples::rejection::Rejection;
use wakewatt_core::source::Source;
use wakewatt_core::stats::random::Random;
use wakewatt_core::stats::{side_effects, unstable};

/// A difference between wall clock and monotonic clock that grew by more than this was a step.
const CLOCK_STEP_NS: i128 = 100_000_000;

/// Below this share of idle time the CPU that is woken was never idle.
const NEVER_IDLE_RATIO: f64 = 0.05;

/// With so many measurements, none of which met an idle CPU, more of them would meet none either.
const NEVER_IDLE_AFTER: usize = 12;

/// So many blocks in a row whose arm cannot be entered are no accident.
const REFUSED_IN_A_ROW: usize = 3;

/// Counts of a histogram, as kept: value and how often.
pub type Counts = Vec<(u64, u64)>;

/// Samples to pool, as kept: id, title, counts.
pub type Latencies = Vec<(String, String, Counts)>;

/// A block as it is kept, with its samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptBlock {
    /// The block.
    pub block: Block,
    /// Samples to pool: id, title, counts.
    pub latencies: Latencies,
    /// Levels of the workloads that are loads, by the workload's id: `steps`, or `half.shop` where it has a name.
    #[serde(default)]
    pub levels: Vec<(String, Level)>,
    /// Time spent until its end, earlier parts of the run included.
    pub spent_ns: u64,
}

/// Where a run is, for whoever watches it.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// Blocks done.
    pub n_blocks: usize,
    /// Share of the budget that is spent.
    pub share: f64,
    /// Time left of the budget.
    pub left_ns: u64,
    /// "round 3, performance".
    pub words: String,
}

/// Told before and after each block; the run so far may be looked at, but decides nothing between looks.
pub type Progress<'a> = &'a dyn Fn(&Moment, &ExperimentRun);

/// What a run goes on from, and how it keeps what it has.
pub struct History<'a> {
    /// Blocks of an earlier part, in order.
    pub done: Vec<KeptBlock>,
    /// Keeps a finished block; an error ends the run.
    pub keep: &'a mut dyn FnMut(&KeptBlock) -> Result<(), String>,
}

/// What a run needs besides.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// Where counters are read.
    pub src: &'a dyn Source,
    /// The clocks.
    pub clock: &'a dyn Clock,
    /// Ends it.
    pub stop: &'a AtomicBool,
    /// Is told.
    pub progress: Progress<'a>,
}

/// Runs it from the start and keeps nothing. An error means that not one block could be run; what was set was put back.
pub fn run(
    arms: &mut dyn Arms,
    workload: &mut dyn Workload,
    design: &Design,
    around: Around<'_>,
) -> Result<ExperimentRun, String> {
    run_on(arms, workload, design, around, History { done: Vec::new(), keep: &mut |_| Ok(()) })
}

/// Runs it from where an earlier part ended.
pub fn run_on(
    arms: &mut dyn Arms,
    workload: &mut dyn Workload,
    design: &Design,
    around: Around<'_>,
    history: History<'_>,
) -> Result<ExperimentRun, String> {
    let design = &design.in_force(arms, workload);
    let run = ExperimentRun {
        arms: arms.arms(),
        metrics: workload.metrics(),
        seed: design.seed,
        warmup_ns: design.warmup_ns,
        before: arms.found(),
        watts: design.watts.clone(),
        ..ExperimentRun::default()
    };
    let start_ns = around.clock.now_ns();
    let before_ns = history.done.last().map_or(0, |k| k.spent_ns);
    let mut runner = Runner {
        run,
        pools: BTreeMap::new(),
        design,
        around,
        start_ns,
        before_ns,
        done: history.done.into(),
        keep: history.keep,
        wall_offset_ns: wall_offset_ns(around.clock),
        n_refused: BTreeMap::new(),
        surroundings: Surroundings::find(around.src),
    };
    let failure = runner.rounds(arms, workload);
    let left = arms.leave();
    let Runner { mut run, pools, .. } = runner;
    run.after = arms.state();
    if let Err(why) = left {
        run.ended.not_put_back = Some(why);
    }
    let has_counted = run.blocks.iter().any(|b| b.rejected.is_none());
    if let (false, Err(why)) = (has_counted, failure) {
        return Err(why);
    }
    run.effects = judging::effects(&run, design);
    run.carry_over = carry_over::of(&run);
    run.tails = judging::tails(&run, design, &run.effects);
    run.side_effects = side_effects::of(&run);
    run.grade = Some(Graded::of(&run).with(unstable::of(&run)));
    run.pooled = pools
        .into_iter()
        .map(|((arm, what), (title, hist))| PooledArm { arm, what, title, latency: Distribution::of(&hist) })
        .collect();
    // As the arms and the metrics are ordered: what the primary one is about comes first.
    let ExperimentRun { pooled, metrics, arms, .. } = &mut run;
    pooled.arrange_by_key(|p| {
        let arm = arms.iter().position(|a| a.id == p.arm);
        // What no metric is about comes last.
        (metrics.iter().position(|m| m.id.starts_with(&p.what)).unwrap_or(usize::MAX), arm)
    });
    Ok(run)
}

fn wall_offset_ns(clock: &dyn Clock) -> i128 {
    i128::from(clock.wall_ns()) - i128::from(clock.now_ns())
}

struct Runner<'a> {
    run: ExperimentRun,
    pools: BTreeMap<(String, String), (String, Histogram<u64>)>,
    design: &'a Design,
    around: Around<'a>,
    start_ns: u64,
    /// Spent in earlier parts.
    before_ns: u64,
    done: VecDeque<KeptBlock>,
    keep: &'a mut dyn FnMut(&KeptBlock) -> Result<(), String>,
    wall_offset_ns: i128,
    /// By arm: so many of its blocks in a row could not be entered.
    n_refused: BTreeMap<usize, usize>,
    surroundings: Surroundings,
}

impl Runner<'_> {
    fn spent_ns(&self) -> u64 {
        self.before_ns + self.around.clock.now_ns().saturating_sub(self.start_ns)
    }

    fn tell(&self, words: String) {
        let spent_ns = self.spent_ns();
        let moment = Moment {
            n_blocks: self.run.blocks.len(),
            share: spent_ns as f64 / self.design.budget_ns.max(1) as f64,
            left_ns: self.design.budget_ns.saturating_sub(spent_ns),
            words,
        };
        (self.around.progress)(&moment, &self.run);
    }

    /// The arms of a round in the order drawn for it; one past the last is the baseline again.
    fn order(&self, random: &mut Random, round: usize) -> Vec<usize> {
        let is_again = self.design.again_every > 0 && (round + 1).is_multiple_of(self.design.again_every);
        let mut order: Vec<usize> = (0..self.run.arms.len() + usize::from(is_again)).collect();
        random.shuffle(&mut order);
        order
    }

    fn rounds(&mut self, arms: &mut dyn Arms, workload: &mut dyn Workload) -> Result<(), String> {
        let mut random = Random::new(self.design.seed);
        let Some(short) = &self.design.short else {
            return self.until_decided(arms, workload, Pace::Whole, &mut random);
        };
        self.until_decided(arms, workload, Pace::Short(short.measure_ns), &mut random)?;
        if self.is_never_idle() {
            return Ok(());
        }
        self.rest(arms, workload, short.n_whole_rounds, &mut random)
    }

    /// Rounds until an analysis decides, the budget is spent, or the run is interrupted.
    fn until_decided(
        &mut self,
        arms: &mut dyn Arms,
        workload: &mut dyn Workload,
        pace: Pace,
        random: &mut Random,
    ) -> Result<(), String> {
        for round in 0.. {
            self.round(arms, workload, (round, pace), random)?;
            if self.is_interrupted() {
                return Ok(());
            }
            if self.is_never_idle() {
                self.run.ended = Ended::enough(format!("no CPU was idle in {} measurements", self.run.blocks.len()));
                break;
            }
            // Kept blocks are judged by the time that was spent when they ran.
            let spent_ns = if self.done.is_empty() { self.spent_ns() } else { 0 };
            if let Some(why) = judging::enough(&self.run, self.design, round + 1, spent_ns) {
                self.run.ended = Ended::enough(why);
                break;
            }
        }
        Ok(())
    }

    /// Was there nothing to wake in all of many measurements?
    fn is_never_idle(&self) -> bool {
        let is_busy = |b: &Block| matches!(b.rejected, Some(Rejection::Busy { .. }));
        self.run.blocks.len() >= NEVER_IDLE_AFTER && self.run.blocks.iter().all(is_busy)
    }

    /// What the short measurements did not yield, in as many whole rounds as the budget reaches.
    fn rest(
        &mut self,
        arms: &mut dyn Arms,
        workload: &mut dyn Workload,
        n: usize,
        random: &mut Random,
    ) -> Result<(), String> {
        if self.is_interrupted() {
            return Ok(());
        }
        let (first, start_ns) = (self.run.n_rounds(), self.spent_ns());
        for round in first..first.saturating_add(n) {
            let n_done = (round - first) as u64;
            let spent_ns = self.spent_ns();
            let per_round_ns = spent_ns.saturating_sub(start_ns).checked_div(n_done).unwrap_or(0);
            if self.done.is_empty() && spent_ns.saturating_add(per_round_ns) > self.design.budget_ns {
                let How::Enough(why) = &self.run.ended.how else { break };
                let why = format!("{why}; the time budget was spent after {n_done} of {n} whole rounds");
                self.run.ended = Ended::enough(why);
                break;
            }
            self.round(arms, workload, (round, Pace::Rest), random)?;
            if self.is_interrupted() {
                break;
            }
        }
        Ok(())
    }

    fn is_interrupted(&mut self) -> bool {
        let is_stopped = self.around.stop.load(Ordering::Relaxed);
        if is_stopped {
            self.run.ended = How::Interrupted.into();
        }
        is_stopped
    }

    /// Each variant once; a failure ends the run.
    fn round(
        &mut self,
        arms: &mut dyn Arms,
        workload: &mut dyn Workload,
        (round, pace): (usize, Pace),
        random: &mut Random,
    ) -> Result<(), String> {
        for slot in self.order(random, round) {
            if let Err(why) = self.slot(arms, workload, (round, pace), slot) {
                self.run.ended = How::Failed(why.clone()).into();
                return Err(why);
            }
            if self.around.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(())
    }

    /// Index and id of the arm of a slot: one past the last is the baseline again.
    fn arm_of(&self, slot: usize) -> (usize, String) {
        match self.run.arms.get(slot) {
            Some(arm) => (slot, arm.id.clone()),
            None => (0, AGAIN.to_string()),
        }
    }

    fn slot(
        &mut self,
        arms: &mut dyn Arms,
        workload: &mut dyn Workload,
        (round, pace): (usize, Pace),
        slot: usize,
    ) -> Result<(), String> {
        let (index, id) = self.arm_of(slot);
        if let Some(kept) = self.done.pop_front() {
            if (kept.block.round, &kept.block.arm) != (round, &id) {
                return Err(format!(
                    "kept block {} is of round {}, {}, but the seed draws round {}, {id} here",
                    self.run.blocks.len() + 1,
                    kept.block.round.saturating_add(1),
                    kept.block.arm,
                    round + 1
                ));
            }
            self.take(kept);
            return Ok(());
        }
        let words = format!("round {}, {}", round + 1, if id == AGAIN { AGAIN } else { &self.run.arms[index].title });
        self.tell(words.clone());
        let (block, samples) = self.block(arms, workload, (round, pace), (index, &id))?;
        self.finish(block, samples, words)
    }

    /// Keeps a block and takes it into the run.
    fn finish(&mut self, block: Block, samples: Samples, words: String) -> Result<(), String> {
        let Samples { latencies, levels } = samples;
        let counts = |hist: Option<Histogram<u64>>| -> Counts {
            hist.iter().flat_map(|h| h.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value()))).collect()
        };
        let latencies = latencies.into_iter().map(|(id, title, hist)| (id, title, counts(hist))).collect();
        let kept = KeptBlock { block, latencies, levels, spent_ns: self.spent_ns() };
        // A block that was cut short is measured again when the run goes on.
        let is_cut = self.around.stop.load(Ordering::Relaxed);
        let is_kept = if is_cut { Ok(()) } else { (self.keep)(&kept) };
        self.take(kept);
        self.tell(words);
        is_kept
    }

    /// Takes it into the run; samples of those that count are pooled.
    fn take(&mut self, kept: KeptBlock) {
        if kept.block.rejected.is_none() && kept.block.arm != AGAIN {
            for (what, title, counts) in kept.latencies {
                let pool = self.pools.entry((kept.block.arm.clone(), what)).or_insert_with(|| (title, histogram()));
                counts.into_iter().for_each(|(value, n)| pool.1.saturating_record_n(value, n));
            }
        }
        self.run.blocks.push(kept.block);
    }

    fn block(
        &mut self,
        arms: &mut dyn Arms,
        workload: &mut dyn Workload,
        (round, pace): (usize, Pace),
        (index, id): (usize, &str),
    ) -> Result<(Block, Samples), String> {
        let Around { src, clock, stop, .. } = self.around;
        workload.begin_round(round);
        if let Err(why) = enter(arms, index) {
            let n_refused = self.n_refused.entry(index).or_insert(0);
            *n_refused += 1;
            if *n_refused >= REFUSED_IN_A_ROW {
                return Err(why);
            }
            let at_ns = clock.now_ns();
            return Ok((refused(round, id, at_ns, workload.metrics().len(), &why), Samples::default()));
        }
        self.n_refused.remove(&index);
        if !matches!(pace, Pace::Short(_)) {
            workload.warm_up(self.design.warmup_ns, stop);
        }
        let (cpus, n_metrics) = (workload.cpus(), workload.metrics().len());
        let noise_before = NoiseCounters::read(src, &cpus, clock.own_cpu_ns());
        let running = self.surroundings.clock(src, &cpus, clock.now_ns());
        let start_at_ns = clock.now_ns();
        let mut measured = match (pace, workload.short()) {
            (Pace::Short(measure_ns), Some(short)) => short.measure_for(measure_ns, stop)?,
            _ => workload.measure(stop)?,
        };
        let end_at_ns = clock.now_ns();
        let counters = NoiseCounters::read(src, &cpus, clock.own_cpu_ns());
        if let Some(woken) = &mut measured.woken {
            woken.steal_ns = counters.steal_ns(&noise_before, woken.cpu);
        }
        let frequency_khz = running.and_then(|then| then.mean_khz(&self.surroundings.clock(src, &cpus, end_at_ns)?));
        let held = Held {
            frequency_khz,
            temperature_mc: self.surroundings.temperature_mc(src),
            window: Window { start_at_ns, end_at_ns },
            noise: counters.since(&noise_before, end_at_ns - start_at_ns),
            idle_ratio: measured.woken.and_then(|woken| counters.idle_ratio(&noise_before, woken.cpu)),
            // Without a single counter nothing is known, which is not quiet.
            is_noise_known: noise_before.is_known(),
            is_busy: workload.is_busy(),
        };
        let (mut block, samples) = self.block_of(arms, round, (index, id), measured, held);
        block.values.resize(n_metrics, None);
        if let (Pace::Rest, Some(primary)) = (pace, block.values.first_mut()) {
            *primary = None;
        }
        Ok((block, samples))
    }

    /// What was measured, judged by what went on meanwhile.
    fn block_of(
        &mut self,
        arms: &dyn Arms,
        round: usize,
        (index, id): (usize, &str),
        measured: Yield,
        held: Held,
    ) -> (Block, Samples) {
        let Around { clock, stop, .. } = self.around;
        let is_cut = stop.load(Ordering::Relaxed).then_some(Rejection::Interrupted);
        let contradiction = || arms.contradiction(index, &measured.idle).map(Rejection::Said);
        let said = measured.disturbances;
        let spoilt = held.noise.spoilt(&self.design.limits, held.is_busy).or_else(|| held.never_idle());
        let noise = if held.is_busy { held.noise.without_others() } else { held.noise };
        let taken = held.is_noise_known.then(|| noise.taken());
        let said = said.into_iter().chain(noise.notes()).map(Disturbance::Said);
        let mut disturbances: Vec<Disturbance> = said.collect();
        let offset_ns = wall_offset_ns(clock);
        let step_ns = offset_ns - std::mem::replace(&mut self.wall_offset_ns, offset_ns);
        if step_ns.abs() > CLOCK_STEP_NS {
            disturbances.push(Disturbance::wall_clock_set(step_ns));
        }
        let block = Block {
            round,
            arm: id.to_string(),
            window: held.window,
            values: measured.values,
            rejected: is_cut.or(measured.rejected).or_else(contradiction).or(spoilt),
            disturbances,
            taken,
            waker: measured.waker,
            idle: measured.idle,
            woken: measured.woken,
            frequency_khz: held.frequency_khz,
            temperature_mc: held.temperature_mc,
        };
        (block, Samples { latencies: measured.latencies, levels: measured.levels })
    }
}

/// What went on while an arm was held.
struct Held {
    window: Window,
    frequency_khz: Option<u64>,
    temperature_mc: Option<i64>,
    noise: Noise,
    /// Idle time of the CPU that was woken; none where nobody counted.
    idle_ratio: Option<f64>,
    is_noise_known: bool,
    is_busy: bool,
}

impl Held {
    /// A CPU that was never idle says nothing of idle states, whichever variant was in force.
    fn never_idle(&self) -> Option<Rejection> {
        let idle_ratio = self.idle_ratio.filter(|ratio| !self.is_busy && *ratio < NEVER_IDLE_RATIO)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of at most 1")]
        let percent = ((1.0 - idle_ratio) * 100.0).round() as u32;
        Some(Rejection::Busy { percent })
    }
}

/// A second attempt is worth a week's run: files are busy, a device is away for a moment.
fn enter(arms: &mut dyn Arms, index: usize) -> Result<(), String> {
    arms.enter(index).or_else(|_| arms.enter(index))
}

/// A block whose arm could not be entered, twice.
fn refused(round: usize, id: &str, at_ns: u64, n_metrics: usize, why: &str) -> Block {
    Block {
        round,
        arm: id.to_string(),
        window: Window { start_at_ns: at_ns, end_at_ns: at_ns },
        values: vec![None; n_metrics],
        rejected: Some(Rejection::NotSet(why.into())),
        ..Block::default()
    }
}

/// What is kept with a block beside its values.
#[derive(Default)]
struct Samples {
    latencies: Vec<(String, String, Option<Histogram<u64>>)>,
    levels: Vec<(String, Level)>,
}
