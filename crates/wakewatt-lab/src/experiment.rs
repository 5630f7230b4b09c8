//! The experiment: arms times rounds, in random order within each round, paired by round.
//!
//! A round holds one block per arm. Before each block the arm is set and a warm-up is discarded; after it the idle
//! counters must not contradict the setting, or the block does not count. The order is drawn from a recorded seed. The
//! experiment stops at a declared look that decides it, when the time budget does not reach the next look, or when it
//! is told to; whatever happens, the arms are left and the settings read again, so that "put back" is an observation
//! and not a promise.

use crate::noise::NoiseCounters;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::distribution::{Distribution, histogram};
use wakewatt_core::samples::experiment::{Arm, Block, Effect, ExperimentRun, Metric, PooledArm};
use wakewatt_core::samples::{IdleDelta, Window};
use wakewatt_core::source::Source;
use wakewatt_core::stats::paired::{adjust_secondary, log_ratios};
use wakewatt_core::stats::random::Random;
use wakewatt_core::stats::sequential::{Decision, Looks};

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
    pub values: Vec<Option<f64>>,
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
#[derive(Clone, Debug)]
pub struct Design {
    /// Discarded at the start of each block.
    pub warmup_ns: u64,
    /// Wall time for everything.
    pub budget_ns: u64,
    /// Seed of the order and of the bootstrap.
    pub seed: u64,
    /// When to look at the numbers, declared beforehand.
    pub looks: Looks,
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
    let mut failure = None;
    for round in 0.. {
        let mut order: Vec<usize> = (0..run.arms.len()).collect();
        random.shuffle(&mut order);
        for index in order {
            let block =
                one_block(arms, workload, (round, index), &run.arms[index].id, design.warmup_ns, src, clock, stop);
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
        if let Some(why) = enough(&run, &design, round + 1, clock.now_ns() - start_ns) {
            run.stopped_because = why;
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
    run.effects = effects(&run, &design.looks);
    run.pooled = pools
        .into_iter()
        .map(|((arm, what), (title, hist))| PooledArm {
            arm: run.arms[arm].id.clone(),
            what,
            title,
            latency: Distribution::of(&hist),
        })
        .collect();
    // As the metrics are ordered: what the primary one is about comes first.
    let ExperimentRun { pooled, metrics, .. } = &mut run;
    pooled.sort_by_key(|p| metrics.iter().position(|m| m.id.starts_with(&p.what)));
    Ok(run)
}

type BlockAndSamples = (Block, Vec<(String, String, Option<Histogram<u64>>)>);

#[allow(clippy::too_many_arguments)]
fn one_block(
    arms: &mut dyn Arms,
    workload: &mut dyn Workload,
    (round, index): (usize, usize),
    arm: &str,
    warmup_ns: u64,
    src: &dyn Source,
    clock: &dyn Clock,
    stop: &AtomicBool,
) -> Result<BlockAndSamples, String> {
    arms.enter(index)?;
    workload.warm_up(warmup_ns, stop);
    let cpus = workload.cpus();
    let noise_before = NoiseCounters::read(src, &cpus, clock.own_cpu_ns());
    let start_at_ns = clock.now_ns();
    let measured = workload.measure(stop)?;
    let end_at_ns = clock.now_ns();
    let noise_after = NoiseCounters::read(src, &cpus, clock.own_cpu_ns());
    let is_cut = stop.load(Ordering::Relaxed).then(|| "interrupted before its end".to_string());
    let noise = noise_after.since(&noise_before, end_at_ns - start_at_ns);
    let block = Block {
        round,
        arm: arm.to_string(),
        window: Window { start_at_ns, end_at_ns },
        values: measured.values,
        is_rejected: is_cut.or_else(|| arms.contradiction(index, &measured.idle)).or(noise.is_too_busy),
        disturbances: noise.notes,
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
            .and_then(|b| b.values.get(metric).copied().flatten())
            .filter(|v| *v > 0.0)
    };
    let n_rounds = run.blocks.last().map_or(0, |b| b.round + 1);
    (0..n_rounds).filter_map(|round| value(round, &run.arms[0].id).zip(value(round, &run.arms[arm].id))).collect()
}

/// Did both blocks of the round count for the primary metric?
fn counts(run: &ExperimentRun, round: usize, arm: usize) -> bool {
    [&run.arms[0].id, &run.arms[arm].id].iter().all(|id| {
        let mut blocks = run.blocks.iter().filter(|b| b.round == round && b.arm == **id && b.is_rejected.is_none());
        blocks.any(|b| b.values.first().copied().flatten().is_some_and(|v| v > 0.0))
    })
}

/// Should it stop after so many whole rounds? Then why.
fn enough(run: &ExperimentRun, design: &Design, n_rounds: usize, spent_ns: u64) -> Option<String> {
    // Looks are taken at numbers of counted rounds, each once: a round that did not count adds nothing to look at.
    let look = |arm: usize| {
        let pairs = pairs(run, 0, arm);
        let is_new = counts(run, n_rounds - 1, arm);
        let n = if is_new { pairs.len() } else { 0 };
        design.looks.decide(n, &log_ratios(&pairs), design.seed)
    };
    let decisions: Vec<Decision> = (1..run.arms.len()).map(look).collect();
    let reached = decisions.iter().find_map(|d| if let Decision::Continue(next) = d { Some(*next) } else { None });
    let n_counted = pairs(run, 0, 1).len();
    let is_a_look = counts(run, n_rounds - 1, 1) && design.looks.all().iter().any(|l| l.n_rounds == n_counted);
    let n_to_next = reached.map_or(0, |next| next.saturating_sub(n_counted)) as u64;
    let per_round_ns = spent_ns / (n_rounds.max(1) as u64);
    match (reached, decisions.first()) {
        (None, Some(Decision::Stop(reason))) => Some(format!("{} after {n_rounds} rounds", reason.text())),
        // Rounds that end between two looks would be judged at a level that is spent already: stop at the look.
        (Some(_), _) if is_a_look && spent_ns + per_round_ns * n_to_next > design.budget_ns => {
            Some(format!("the time budget does not reach the next look, {n_rounds} rounds ran"))
        }
        (Some(_), _) if spent_ns + per_round_ns > design.budget_ns => {
            Some(format!("the time budget was spent after {n_rounds} rounds"))
        }
        _ => None,
    }
}

fn effects(run: &ExperimentRun, looks: &Looks) -> Vec<Effect> {
    let mut effects = Vec::new();
    for arm in 1..run.arms.len() {
        // Between two looks the level of the next one is what has not been spent yet.
        let n_counted = pairs(run, 0, arm).len();
        let look = looks.all().iter().find(|l| l.n_rounds >= n_counted).map_or(n_counted, |l| l.n_rounds);
        let judge = looks.judge(look, run.seed);
        let one = |metric: usize| {
            judge.effect(&run.metrics[metric].id, &run.arms[0].id, &run.arms[arm].id, &pairs(run, metric, arm))
        };
        let mut secondary: Vec<Effect> = (1..run.metrics.len()).filter_map(one).collect();
        adjust_secondary(&mut secondary, &judge);
        effects.extend(one(0).into_iter().chain(secondary));
    }
    // JSON has no infinity; an interval that says nothing says so with its verdict.
    for effect in &mut effects {
        for end in [&mut effect.ratio_high, &mut effect.difference_high] {
            *end = end.min(1e18);
        }
        effect.difference_low = effect.difference_low.max(-1e18);
    }
    // Primary metric first, in the order of the metrics.
    effects.sort_by_key(|e| run.metrics.iter().position(|m| m.id == e.metric));
    effects
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::rc::Rc;
    use wakewatt_core::samples::experiment::Verdict;
    use wakewatt_core::source::Tree;

    /// A machine in memory: one setting, whose value decides how long a wake-up takes; time passes per block.
    #[derive(Default)]
    struct Fake {
        setting: Cell<usize>,
        now_ns: Cell<u64>,
        n_enter: Cell<usize>,
        fail_at: Option<usize>,
        is_stuck: bool,
        is_noisy: bool,
        order: RefCell<Vec<usize>>,
    }

    struct FakeArms(Rc<Fake>);
    struct FakeWork(Rc<Fake>, Random, f64);
    struct FakeClock(Rc<Fake>);

    impl Arms for FakeArms {
        fn arms(&self) -> Vec<Arm> {
            ["found", "poll"].map(|id| Arm { id: id.into(), title: id.into(), settings: vec![] }).to_vec()
        }
        fn enter(&mut self, index: usize) -> Result<(), String> {
            self.0.n_enter.set(self.0.n_enter.get() + 1);
            self.0.order.borrow_mut().push(index);
            if self.0.fail_at == Some(self.0.n_enter.get()) {
                return Err("the kernel refused".into());
            }
            self.0.setting.set(index);
            Ok(())
        }
        fn leave(&mut self) -> Result<(), String> {
            if self.0.is_stuck {
                return Err("stuck".into());
            }
            self.0.setting.set(0);
            Ok(())
        }
        fn state(&self) -> Vec<(String, String)> {
            vec![("/setting".into(), self.0.setting.get().to_string())]
        }
        fn contradiction(&self, _: usize, _: &[IdleDelta]) -> Option<String> {
            // Every third block is spoilt, when asked for.
            (self.0.is_noisy && self.0.n_enter.get().is_multiple_of(3)).then(|| "spoilt".into())
        }
    }

    impl Workload for FakeWork {
        fn metrics(&self) -> Vec<Metric> {
            vec![Metric::latency("wake.p50", "wake-up")]
        }
        fn cpus(&self) -> CpuSet {
            CpuSet::new()
        }
        fn warm_up(&mut self, _: u64, _: &AtomicBool) {}
        fn measure(&mut self, _: &AtomicBool) -> Result<Yield, String> {
            self.0.now_ns.set(self.0.now_ns.get() + 1_000_000_000);
            let base = if self.0.setting.get() == 0 { 10_000.0 * self.2 } else { 10_000.0 };
            let value = base * (0.1 * (self.1.unit() - 0.5)).exp();
            let mut hist = histogram();
            (0..50).for_each(|_| hist.saturating_record(10_000));
            Ok(Yield { values: vec![Some(value)], latencies: vec![("w".into(), "w".into(), Some(hist))], idle: vec![] })
        }
    }

    impl Clock for FakeClock {
        fn now_ns(&self) -> u64 {
            self.0.now_ns.get()
        }
        fn own_cpu_ns(&self) -> u64 {
            0
        }
    }

    fn experiment(fake: Fake, ratio: f64, budget_s: u64, stop: bool) -> (Rc<Fake>, Result<ExperimentRun, String>) {
        let fake = Rc::new(fake);
        let design = Design { warmup_ns: 0, budget_ns: budget_s * 1_000_000_000, seed: 42, looks: Looks::quick() };
        let (mut arms, mut work) = (FakeArms(fake.clone()), FakeWork(fake.clone(), Random::new(1), ratio));
        let result = run(
            &mut arms,
            &mut work,
            design,
            &Tree::default(),
            &FakeClock(fake.clone()),
            &AtomicBool::new(stop),
            &|_, _, _| {},
        );
        (fake, result)
    }

    #[test]
    fn a_five_fold_effect_is_proven_at_the_first_look_and_all_is_put_back() {
        let (fake, run) = experiment(Fake::default(), 5.0, 1000, false);
        let run = run.unwrap();
        assert_eq!(run.blocks.len(), 12, "{}", run.stopped_because);
        let effect = run.primary().unwrap();
        assert_eq!(effect.verdict, Verdict::Higher);
        assert!(effect.ratio_low > 4.5 && effect.ratio_high < 5.5, "{effect:?}");
        assert!(run.is_restored() && fake.setting.get() == 0);
        let order = fake.order.borrow();
        assert!(order.chunks(2).any(|c| c == [1, 0]) && order.chunks(2).any(|c| c == [0, 1]), "the order is random");
        assert!(order.chunks(2).all(|c| c[0] != c[1]), "each round holds each arm once");
        assert_eq!(run.pooled.len(), 2);
    }

    #[test]
    fn rounds_that_do_not_count_delay_the_look_and_do_not_spend_it() {
        let (_, run) = experiment(Fake { is_noisy: true, ..Fake::default() }, 5.0, 1000, false);
        let run = run.unwrap();
        let effect = run.primary().unwrap();
        assert!(run.blocks.len() > 12, "some rounds did not count");
        assert_eq!((effect.n_pairs, effect.verdict), (6, Verdict::Higher), "{}", run.stopped_because);
    }

    #[test]
    fn no_effect_is_not_called_one() {
        let (_, run) = experiment(Fake::default(), 1.0, 1000, false);
        assert!(matches!(run.unwrap().primary().unwrap().verdict, Verdict::NoDifference | Verdict::Undecided));
    }

    #[test]
    fn a_spent_budget_and_an_interrupt_end_it_without_a_claim() {
        let (_, run) = experiment(Fake::default(), 5.0, 7, false);
        let run = run.unwrap();
        assert!(run.stopped_because.contains("budget"), "{}", run.stopped_because);
        assert_eq!(run.primary().unwrap().verdict, Verdict::Undecided, "three rounds prove nothing");
        let (fake, run) = experiment(Fake::default(), 5.0, 1000, true);
        let run = run.unwrap();
        assert!(run.stopped_because.contains("interrupted") && run.is_restored() && fake.setting.get() == 0);
        assert!(run.blocks.iter().all(|b| b.is_rejected.is_some()), "a cut block does not count");
    }

    #[test]
    fn a_failure_anywhere_puts_back_what_was_set() {
        for fail_at in 1..8 {
            let (fake, run) = experiment(Fake { fail_at: Some(fail_at), ..Fake::default() }, 5.0, 1000, false);
            assert_eq!(fake.setting.get(), 0, "failure at block {fail_at}");
            assert_eq!(run.is_err(), fail_at == 1, "what was measured before the failure is kept");
        }
        let (_, run) = experiment(Fake { is_stuck: true, ..Fake::default() }, 5.0, 1000, false);
        assert!(run.unwrap().stopped_because.contains("could be put back: stuck"));
    }
}
