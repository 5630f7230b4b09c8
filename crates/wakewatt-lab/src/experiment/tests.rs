//! The runner against a machine in memory: order, rejected blocks, looks, failures, and that all is put back.

use super::*;
use crate::noise::Limits;
use rustix::fd::BorrowedFd;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::IdleDelta;
use wakewatt_core::samples::experiment::Verdict;
use wakewatt_core::samples::experiment::{Arm, Metric};
use wakewatt_core::source::Tree;
use wakewatt_core::stats::sequential::Looks;

/// A machine in memory: one setting, whose value decides how long a wake-up takes; time passes per block.
#[derive(Default)]
struct Fake {
    setting: Cell<usize>,
    now_ns: Cell<u64>,
    n_enter: Cell<usize>,
    fail_at: Option<(usize, usize)>,
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
        if self.0.fail_at.is_some_and(|(from, n)| (from..from + n).contains(&self.0.n_enter.get())) {
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
        let latencies = vec![("w".into(), "w".into(), Some(hist))];
        Ok(Yield { values: vec![Some(value)], latencies, ..Yield::default() })
    }
}

impl Clock for FakeClock {
    fn now_ns(&self) -> u64 {
        self.0.now_ns.get()
    }
    fn own_cpu_ns(&self) -> u64 {
        0
    }
    fn sleep_until(&self, _: u64, _: &[BorrowedFd<'_>]) {}
}

fn experiment(fake: Fake, ratio: f64, budget_s: u64, stop: bool) -> (Rc<Fake>, Result<ExperimentRun, String>) {
    let fake = Rc::new(fake);
    let design = Design { budget_ns: budget_s * 1_000_000_000, ..Design::new(Looks::standard(), 42) };
    let (mut arms, mut work) = (FakeArms(fake.clone()), FakeWork(fake.clone(), Random::new(1), ratio));
    let (tree, clock, stop) = (Tree::default(), FakeClock(fake.clone()), AtomicBool::new(stop));
    let around = Around { src: &tree, clock: &clock, stop: &stop, progress: &|_, _| {} };
    let result = run(&mut arms, &mut work, &design, around);
    (fake, result)
}

#[test]
fn a_five_fold_effect_is_proven_at_the_first_look_and_all_is_put_back() {
    let (fake, run) = experiment(Fake::default(), 5.0, 1000, false);
    let run = run.unwrap();
    assert_eq!(run.blocks.len(), 16, "{}", run.ended);
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
    assert!(run.blocks.len() > 16, "some rounds did not count");
    assert_eq!((effect.n_pairs, effect.verdict), (8, Verdict::Higher), "{}", run.ended);
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
    assert!(run.ended.to_string().contains("budget"), "{}", run.ended);
    assert_eq!(run.primary().unwrap().verdict, Verdict::Undecided, "three rounds prove nothing");
    let (fake, run) = experiment(Fake::default(), 5.0, 1000, true);
    let run = run.unwrap();
    assert!(run.ended.how == How::Interrupted && run.is_restored() && fake.setting.get() == 0);
    assert!(run.blocks.iter().all(|b| b.rejected.is_some()), "a cut block does not count");
}

#[test]
fn a_failure_anywhere_puts_back_what_was_set() {
    for from in 1..8 {
        let failing = |n: usize| experiment(Fake { fail_at: Some((from, n)), ..Fake::default() }, 5.0, 1000, false);
        let (fake, run) = failing(usize::MAX / 2);
        assert_eq!(fake.setting.get(), 0, "failure at block {from}");
        assert_eq!(run.is_err(), from == 1, "what was measured before the failure is kept");
        // Once is overcome, and twice is one block.
        let (_, run) = failing(1);
        let run = run.unwrap();
        assert!(run.blocks.iter().all(|b| b.rejected.is_none()), "{}", run.ended);
        let (_, run) = failing(2);
        let run = run.unwrap();
        let refused: Vec<&Rejection> = run.blocks.iter().filter_map(|b| b.rejected.as_ref()).collect();
        assert!(
            refused.len() == 1 && matches!(refused[0], Rejection::NotSet(why) if why.contains("the kernel refused")),
            "{refused:?}"
        );
        assert_eq!(run.primary().unwrap().verdict, Verdict::Higher);
    }
    let (_, run) = experiment(Fake { is_stuck: true, ..Fake::default() }, 5.0, 1000, false);
    assert!(run.unwrap().ended.not_put_back.as_deref() == Some("stuck"));
}

mod families {
    //! Several arms judged together, blocks that are kept, and runs that go on.

    use super::super::*;
    use rustix::fd::BorrowedFd;
    use std::cell::{Cell, RefCell};
    use std::rc::Rc;
    use wakewatt_core::cpuset::CpuSet;
    use wakewatt_core::samples::IdleDelta;
    use wakewatt_core::samples::experiment::Verdict;
    use wakewatt_core::samples::experiment::{Arm, Metric};
    use wakewatt_core::source::Tree;
    use wakewatt_core::stats::random::Random;
    use wakewatt_core::stats::sequential::Looks;

    /// What a block measures depends on seed, block and arm only, so that a run can be compared with itself.
    #[derive(Default)]
    struct Fake {
        setting: Cell<usize>,
        n_blocks: Cell<u64>,
        now_ns: Cell<u64>,
        wall_step_ns: Cell<u64>,
        entered: RefCell<Vec<usize>>,
        left: Cell<bool>,
    }

    struct FakeArms(Rc<Fake>, usize);
    struct FakeWork(Rc<Fake>, &'static [f64], Option<(u64, Rc<AtomicBool>)>);
    struct FakeClock(Rc<Fake>);

    impl Arms for FakeArms {
        fn arms(&self) -> Vec<Arm> {
            (0..self.1).map(|n| Arm { id: format!("arm{n}"), title: format!("arm {n}"), settings: vec![] }).collect()
        }
        fn enter(&mut self, index: usize) -> Result<(), String> {
            self.0.setting.set(index);
            self.0.entered.borrow_mut().push(index);
            Ok(())
        }
        fn leave(&mut self) -> Result<(), String> {
            self.0.setting.set(0);
            self.0.left.set(true);
            Ok(())
        }
        fn state(&self) -> Vec<(String, String)> {
            vec![("/setting".into(), self.0.setting.get().to_string())]
        }
        fn contradiction(&self, index: usize, _: &[IdleDelta]) -> Option<String> {
            (index == 2 && self.0.n_blocks.get().is_multiple_of(5)).then(|| "CPU 0 entered C6 30 times of 60".into())
        }
    }

    impl Workload for FakeWork {
        fn metrics(&self) -> Vec<Metric> {
            vec![Metric::latency("p50", "median"), Metric::rate("rate", "rate")]
        }
        fn cpus(&self) -> CpuSet {
            CpuSet::new()
        }
        fn warm_up(&mut self, _: u64, _: &AtomicBool) {}
        fn measure(&mut self, stop: &AtomicBool) -> Result<Yield, String> {
            let n = self.0.n_blocks.replace(self.0.n_blocks.get() + 1);
            self.0.now_ns.set(self.0.now_ns.get() + 1_000_000_000);
            if let Some((at, flag)) = &self.2 {
                if n == *at {
                    flag.store(true, Ordering::Relaxed);
                    stop.store(true, Ordering::Relaxed);
                }
            }
            let mut random = Random::new(n * 1000 + 17);
            let value = 1e5 * self.1[self.0.setting.get()] * (0.06 * random.normal()).exp();
            let mut hist = histogram();
            (0..20).for_each(|i| hist.saturating_record(1000 + i));
            let latencies = vec![("p".into(), "p".into(), Some(hist))];
            Ok(Yield { values: vec![Some(value), Some(1e9 / value)], latencies, ..Yield::default() })
        }
    }

    impl Clock for FakeClock {
        fn now_ns(&self) -> u64 {
            self.0.now_ns.get()
        }
        fn own_cpu_ns(&self) -> u64 {
            0
        }
        fn sleep_until(&self, _: u64, _: &[BorrowedFd<'_>]) {}
        fn wall_ns(&self) -> u64 {
            self.0.now_ns.get() + self.0.wall_step_ns.get()
        }
    }

    fn design(rounds: &[usize]) -> Design {
        let (looks, _) = Looks::spread(rounds, 2).unwrap();
        let budget_ns = 1_000_000_000_000;
        Design { rule: Rule::AllArms { margin_ratio: 1.05 }, again_every: 2, budget_ns, ..Design::new(looks, 5) }
    }

    const RATIOS: &[f64] = &[1.0, 0.5, 1.0];

    /// Runs from some kept blocks until block `until`; what was kept, and the run.
    fn part(
        design: &Design,
        done: Vec<KeptBlock>,
        until: Option<u64>,
        fail_at: Option<usize>,
    ) -> (Rc<Fake>, Vec<KeptBlock>, Result<ExperimentRun, String>) {
        let fake = Rc::new(Fake::default());
        fake.n_blocks.set(done.len() as u64);
        fake.now_ns.set(77_000_000_000);
        let (flag, stop) = (Rc::new(AtomicBool::new(false)), AtomicBool::new(false));
        let (mut arms, clock) = (FakeArms(fake.clone(), 3), FakeClock(fake.clone()));
        let mut work = FakeWork(fake.clone(), RATIOS, until.map(|n| (n, flag.clone())));
        let tree = Tree::default();
        let around = Around { src: &tree, clock: &clock, stop: &stop, progress: &|_, _| {} };
        let mut kept = done.clone();
        let mut keep = |block: &KeptBlock| {
            if fail_at == Some(kept.len()) {
                return Err("No space left on device".to_string());
            }
            // As a file gives it back.
            let text = serde_json::to_string(block).unwrap();
            kept.push(serde_json::from_str(&text).unwrap());
            Ok(())
        };
        let run = run_on(&mut arms, &mut work, design, around, History { done, keep: &mut keep });
        (fake, kept, run)
    }

    #[test]
    fn a_run_that_was_cut_anywhere_ends_as_one_that_was_not() {
        let design = design(&[8, 10]);
        let (fake, whole_kept, whole) = part(&design, vec![], None, None);
        let whole = whole.unwrap();
        assert!(fake.left.get() && whole.is_restored());
        let again = whole.blocks.iter().filter(|b| b.arm == AGAIN);
        assert_eq!(again.clone().count(), again.clone().filter(|b| b.round % 2 == 1).count());
        assert!(again.count() >= 4 && whole.blocks.iter().any(|b| b.rejected.is_some()));
        assert_eq!(whole.effects[0].verdict, Verdict::Higher, "{}", whole.ended);
        assert!(!matches!(whole.effects[1].verdict, Verdict::Higher | Verdict::Lower));
        for cut in [0, 1, 4, 7, 13, 20] {
            let (fake, kept, first) = part(&design, vec![], Some(cut), None);
            assert!(fake.left.get(), "settings go back");
            assert!(first.unwrap().ended.how == How::Interrupted);
            assert_eq!(kept.len() as u64, cut, "the cut block is not kept");
            let (_, kept, second) = part(&design, kept, None, None);
            let mut second = second.unwrap();
            let order =
                |kept: &[KeptBlock]| kept.iter().map(|k| (k.block.round, k.block.arm.clone())).collect::<Vec<_>>();
            assert_eq!(order(&kept), order(&whole_kept), "cut at {cut}");
            // Only the time at which they ran differs.
            second.blocks.iter_mut().zip(&whole.blocks).for_each(|(b, w)| b.window = w.window);
            assert!(second == whole, "cut at {cut}");
        }
        // Everything is there already: nothing more is measured.
        let (fake, _, done) = part(&design, whole_kept, None, None);
        assert!(fake.entered.borrow().is_empty());
        assert_eq!(done.unwrap().effects, whole.effects);
    }

    #[test]
    fn a_block_that_cannot_be_kept_ends_the_run_and_the_settings_go_back() {
        let (fake, kept, run) = part(&design(&[8]), vec![], None, Some(5));
        let run = run.unwrap();
        assert!(
            matches!(&run.ended.how, How::Failed(why) if why.contains("No space left"))
                && fake.left.get()
                && run.is_restored()
        );
        assert_eq!((kept.len(), run.blocks.len()), (5, 6));
        let mut other = kept;
        other.swap(0, 4);
        let (_, _, refused) = part(&design(&[8]), other, None, None);
        assert!(refused.is_err_and(|why| why.contains("but the seed draws")));
    }

    #[test]
    fn a_step_of_the_wall_clock_is_told_and_moves_nothing() {
        let fake = Rc::new(Fake::default());
        let (mut arms, clock) = (FakeArms(fake.clone(), 2), FakeClock(fake.clone()));
        let mut work = FakeWork(fake.clone(), RATIOS, None);
        let (tree, stop) = (Tree::default(), AtomicBool::new(false));
        let step = |moment: &Moment, _: &ExperimentRun| {
            if moment.n_blocks == 3 {
                fake.wall_step_ns.set(60_000_000_000);
            }
        };
        let around = Around { src: &tree, clock: &clock, stop: &stop, progress: &step };
        let run = run(&mut arms, &mut work, &design(&[8]), around).unwrap();
        let told: Vec<usize> =
            run.blocks.iter().enumerate().filter(|(_, b)| !b.disturbances.is_empty()).map(|(at, _)| at).collect();
        assert_eq!(told, [3]);
        assert!(
            run.blocks[3].disturbances == [Disturbance::wall_clock_set(60_000_000_000)]
                && run.blocks[3].rejected.is_none()
        );
    }
}

/// A machine that drifts, and remembers for a moment what was set before; time passes as it measures.
struct Drifting {
    fake: Rc<Fake>,
    random: Random,
    /// What the value is multiplied by right after the other variant, in the log.
    memory: f64,
    before: usize,
}

impl Drifting {
    /// Nanoseconds of a wake-up, measured for so long from now on.
    fn value(&mut self, length_ns: u64) -> f64 {
        let middle_s = (self.fake.now_ns.get() + length_ns / 2) as f64 / 1e9;
        self.fake.now_ns.set(self.fake.now_ns.get() + length_ns);
        let now = self.fake.setting.get();
        let memory = if std::mem::replace(&mut self.before, now) == now { 0.0 } else { self.memory * now as f64 };
        // A heat wave of half a minute, and the noise of a second of measuring.
        let drift = 0.3 * (middle_s / 31.0 * std::f64::consts::TAU).sin();
        let noise = 0.02 * self.random.normal() * (1e9 / length_ns as f64).sqrt();
        let base: f64 = if now == 0 { 12_000.0 } else { 10_000.0 };
        base * (drift + noise + memory).exp()
    }
}

impl Workload for Drifting {
    fn metrics(&self) -> Vec<Metric> {
        vec![Metric::latency("wake.p50", "wake-up"), Metric::latency("wake.p99", "wake-up, p99")]
    }
    fn cpus(&self) -> CpuSet {
        CpuSet::new()
    }
    fn warm_up(&mut self, _: u64, _: &AtomicBool) {}
    fn measure(&mut self, _: &AtomicBool) -> Result<Yield, String> {
        let value = self.value(4_000_000_000);
        Ok(Yield { values: vec![Some(value), Some(2.0 * value)], ..Yield::default() })
    }
    fn short(&mut self) -> Option<&mut dyn ShortMeasurement> {
        Some(self)
    }
}

impl ShortMeasurement for Drifting {
    fn measure_for(&mut self, measure_ns: u64, _: &AtomicBool) -> Result<Yield, String> {
        Ok(Yield { values: vec![Some(self.value(measure_ns)), None], ..Yield::default() })
    }
}

struct InstantArms(FakeArms, bool);

impl Arms for InstantArms {
    fn arms(&self) -> Vec<Arm> {
        self.0.arms()
    }
    fn enter(&mut self, index: usize) -> Result<(), String> {
        self.0.enter(index)
    }
    fn leave(&mut self) -> Result<(), String> {
        self.0.leave()
    }
    fn state(&self) -> Vec<(String, String)> {
        self.0.state()
    }
    fn is_instant(&self) -> bool {
        self.1
    }
    fn contradiction(&self, _: usize, _: &[IdleDelta]) -> Option<String> {
        None
    }
}

/// From what was kept, on a machine whose switching is instant or is not.
fn drifting(seed: u64, is_instant: bool, memory: f64, done: Vec<KeptBlock>) -> ExperimentRun {
    let fake = Rc::new(Fake::default());
    let looks = Looks::spread(&[12], 1).unwrap().0;
    let design = Design { short: Some(Short { n_whole_rounds: 8, ..Short::new() }), ..Design::new(looks, seed) };
    let mut arms = InstantArms(FakeArms(fake.clone()), is_instant);
    let mut work = Drifting { fake: fake.clone(), random: Random::new(seed ^ 99), memory, before: 0 };
    let (tree, clock, stop) = (Tree::default(), FakeClock(fake), AtomicBool::new(false));
    let around = Around { src: &tree, clock: &clock, stop: &stop, progress: &|_, _| {} };
    run_on(&mut arms, &mut work, &design, around, History { done, keep: &mut |_| Ok(()) }).unwrap()
}

#[test]
fn short_measurements_decide_what_long_ones_cannot_and_the_tail_comes_after() {
    let (short, long) = (drifting(3, true, 0.0, vec![]), drifting(3, false, 0.0, vec![]));
    let width = |run: &ExperimentRun| run.primary().map(|e| e.ratio_high / e.ratio_low).unwrap();
    assert!(width(&short) < 1.15 && width(&short) < width(&long), "{} {}", width(&short), width(&long));
    let effect = short.primary().unwrap();
    assert_eq!((effect.n_pairs, effect.verdict), (24, Verdict::Higher), "{}", short.ended);
    assert!((effect.ratio_low..=effect.ratio_high).contains(&1.2), "{effect:?}");
    // The median is judged by short measurements alone, the 99th percentile by eight whole ones.
    let has = |at: usize| short.blocks.iter().filter(move |b| b.values[at].is_some()).count();
    assert_eq!((has(0), has(1), short.n_rounds()), (48, 16, 32));
    assert_eq!(short.effects.iter().find(|e| e.metric == "wake.p99").unwrap().n_pairs, 8);
    assert_eq!(drifting(3, true, 0.0, vec![]), short, "the seed is the order");
}

#[test]
fn what_a_variant_leaves_to_the_next_is_found_and_nothing_is_found_where_it_leaves_nothing() {
    let p = |seed, memory| {
        let run = drifting(seed, true, memory, vec![]);
        run.carry_over.first().unwrap_or_else(|| panic!("seed {seed}: {:?} {:?}", run.ended, run.effects)).p_value
    };
    assert!((1..21).filter(|seed| p(*seed, 0.0) <= 0.05).count() <= 4, "by chance one in twenty");
    // Right after the baseline the variant is 30 % slower, and it is not where it follows itself.
    let found = (1..11).filter(|seed| {
        let run = drifting(*seed, true, 0.3, vec![]);
        run.carry_over[0].p_value <= 0.05 && run.carry_over[0].ratio < 1.0
    });
    assert!(found.count() >= 8);
}

#[test]
fn a_short_run_that_was_cut_resumes_in_the_same_order() {
    let whole = drifting(5, true, 0.0, vec![]);
    let order = |run: &ExperimentRun| run.blocks.iter().map(|b| (b.round, b.arm.clone())).collect::<Vec<_>>();
    for n_kept in [1, 4, 47, 48, 53] {
        let kept = |b: &Block| KeptBlock { block: b.clone(), latencies: vec![], levels: vec![], spent_ns: 1 };
        let run = drifting(5, true, 0.0, whole.blocks[..n_kept].iter().map(kept).collect());
        assert_eq!(run.blocks[..n_kept], whole.blocks[..n_kept]);
        assert_eq!(order(&run), order(&whole), "{n_kept} kept");
    }
}

/// A neighbour that takes half of the time discards nothing; a CPU that is never idle does, whichever variant was in force.
#[test]
fn only_a_cpu_that_was_never_idle_discards_a_measurement() {
    let mut noise = Noise::default();
    (noise.foreign_ratio, noise.steal_ratio) = (0.9, 0.5);
    let held = |idle_ratio: Option<f64>| Held {
        window: Window::default(),
        frequency_khz: None,
        temperature_mc: None,
        noise: noise.clone(),
        idle_ratio,
        is_noise_known: true,
        is_busy: false,
    };
    let rejected = |idle_ratio| {
        let held = held(idle_ratio);
        held.noise.spoilt(&Limits::default(), false).or_else(|| held.never_idle())
    };
    assert_eq!((rejected(Some(0.4)), rejected(None)), (None, None));
    assert_eq!(rejected(Some(0.01)), Some(Rejection::Busy { percent: 99 }));
}
