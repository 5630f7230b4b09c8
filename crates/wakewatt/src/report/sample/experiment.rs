//! A made-up experiment: blocks whose scatter, tail and idle states are those of a shape.

use super::dice::{Dice, window};
use wakewatt_core::samples::disturbance::Disturbance;
use wakewatt_core::samples::ended::Ended;
use wakewatt_core::samples::experiment::{Arm, Block, Effect, ExperimentRun, Metric, PooledArm, Verdict};
use wakewatt_core::samples::roles::Role;
use wakewatt_core::samples::tail::{TailAnswer, TailTest};
use wakewatt_core::samples::taken::Taken;
use wakewatt_core::samples::woken::Woken;
use wakewatt_core::samples::{IdleDelta, StateDelta};
use wakewatt_core::stats::distribution::Distribution;
use wakewatt_core::stats::side_effects;

/// How an arm behaves: id, title, setting, median, share of the slow tail, what it sleeps in.
pub(super) struct Shape {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) setting: &'static str,
    pub(super) p50_ns: f64,
    pub(super) tail: f64,
    pub(super) scatter: f64,
    pub(super) state: &'static str,
}

/// A machine that halts.
pub(super) const DEFAULT: Shape = Shape {
    id: "default",
    title: "idle states as they were",
    setting: "nothing: the machine as it was found",
    p50_ns: 33_000.0,
    tail: 2.3,
    scatter: 0.07,
    state: "halt",
};
/// The same one, polling.
pub(super) const POLL: Shape = Shape {
    id: "poll",
    title: "idle states disabled (polling)",
    setting: "/dev/cpu_dma_latency held at 0",
    p50_ns: 6_300.0,
    tail: 2.9,
    scatter: 0.05,
    state: "POLL",
};

/// An experiment over these arms.
pub(super) fn experiment(shapes: &[Shape], n_rounds: usize) -> ExperimentRun {
    let mut dice = Dice(42);
    let metrics =
        [("wakeup.eventfd.p50", "cross-CPU wake-up, median"), ("wakeup.eventfd.p99", "cross-CPU wake-up, p99")]
            .map(|(id, title)| Metric::latency(id, title))
            .to_vec();
    let (mut blocks, mut pooled): (Vec<Block>, Vec<Vec<u64>>) = (Vec::new(), vec![Vec::new(); shapes.len()]);
    for round in 0..n_rounds {
        let first = if dice.unit() < 0.5 { 0 } else { 1 };
        for i in 0..shapes.len() {
            let at = (i + first) % shapes.len();
            let shape = &shapes[at];
            let centre_ns = shape.p50_ns * (shape.scatter * dice.normal()).exp();
            let samples: Vec<u64> = (0..2_000).map(|_| dice.latency_ns(centre_ns, shape.tail)).collect();
            let latency = Distribution::from_ns(samples.iter().copied());
            pooled[at].extend(samples);
            let start_ms = 20_000 + blocks.len() as u64 * 2_600;
            blocks.push(Block {
                round,
                arm: shape.id.into(),
                window: window(start_ms, 2_000),
                values: vec![latency.p50_ns().map(|v| v as f64), latency.p99_ns().map(|v| v as f64)],
                disturbances: if blocks.len() == 7 {
                    vec![Disturbance::Said("steal 0.6 %".into())]
                } else {
                    Vec::new()
                },
                taken: Some(Taken { steal_ratio: 0.001, foreign_ratio: Some(0.01) }),
                idle: vec![idle(shape.state, 0), idle(shape.state, 1)],
                woken: Some(Woken::new(1, 2_000)),
                ..Block::default()
            });
        }
    }
    let mut run = ExperimentRun {
        carry_over: vec![],
        arms: shapes
            .iter()
            .map(|s| Arm { id: s.id.into(), title: s.title.into(), settings: vec![s.setting.into()] })
            .collect(),
        metrics,
        blocks,
        pooled: shapes
            .iter()
            .zip(pooled)
            .map(|(s, samples)| PooledArm {
                arm: s.id.into(),
                what: "wakeup.eventfd".into(),
                title: "cross-CPU wake-up by eventfd".into(),
                latency: Distribution::from_ns(samples),
            })
            .collect(),
        seed: 0x5eed,
        warmup_ns: 500_000_000,
        ended: Ended::enough("the interval of the primary metric was narrow enough"),
        before: settings(),
        after: settings(),
        ..ExperimentRun::default()
    };
    run.effects = (0..run.metrics.len())
        .flat_map(|m| shapes.iter().skip(1).map(move |s| (m, s)))
        .filter_map(|(m, s)| effect(&run, m, shapes.first()?.id, s.id))
        .collect();
    run.tails = run.effects.iter().filter(|e| run.role(&e.metric) == Role::Tail).map(tail).collect();
    run.side_effects = side_effects::of(&run);
    run
}

/// A stand-in for the real estimator: mean log ratio and a t interval.
fn effect(run: &ExperimentRun, metric: usize, baseline: &str, arm: &str) -> Option<Effect> {
    let values = |arm: &str| -> Vec<f64> {
        run.blocks.iter().filter(|b| b.arm == arm).filter_map(|b| b.values.get(metric).copied().flatten()).collect()
    };
    let (a, b) = (values(baseline), values(arm));
    let logs: Vec<f64> = a.iter().zip(&b).map(|(a, b)| (a / b).ln()).collect();
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let half = 2.26 * (logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt();
    let difference = a.iter().zip(&b).map(|(a, b)| a - b).sum::<f64>() / n;
    let (low, high) = ((mean - half).exp(), (mean + half).exp());
    let verdict = match (low, high) {
        (low, high) if low > 0.95 && high < 1.05 => Verdict::NoDifference,
        (low, _) if low > 1.0 => Verdict::Higher,
        (_, high) if high < 1.0 => Verdict::Lower,
        _ => Verdict::Undecided,
    };
    Some(Effect {
        covers: wakewatt_core::covers::Covers::Run,
        metric: run.metrics.get(metric)?.id.clone(),
        baseline: baseline.into(),
        arm: arm.into(),
        ratio: mean.exp(),
        ratio_low: low,
        ratio_high: high,
        difference,
        difference_low: difference - 0.07 * difference.abs(),
        difference_high: difference + 0.07 * difference.abs(),
        confidence: None,
        p_value: if verdict == Verdict::Undecided { 0.22 } else { 2.0 / 2f64.powf(n) },
        at_look: None,
        n_pairs: logs.len(),
        verdict,
    })
}

fn tail(effect: &Effect) -> TailTest {
    TailTest {
        metric: effect.metric.clone(),
        baseline: effect.baseline.clone(),
        arm: effect.arm.clone(),
        margin_ratio: 1.05,
        no_harm_p: effect.p_value,
        level: 0.05,
        n_pairs: effect.n_pairs,
        n_needed: 6,
        answer: match effect.verdict {
            Verdict::Higher | Verdict::NoDifference => TailAnswer::NoHarm,
            Verdict::Lower => TailAnswer::Harm,
            Verdict::Undecided => TailAnswer::CannotTell,
        },
    }
}

fn idle(state: &str, cpu: u32) -> IdleDelta {
    let mut states = vec![StateDelta { index: 0, name: "POLL".into(), n_usage: 4, time_ns: 60_000 }];
    if state == "POLL" {
        states = vec![StateDelta { index: 0, name: "POLL".into(), n_usage: 2_011, time_ns: 1_962_000_000 }];
    } else {
        states.push(StateDelta { index: 1, name: state.into(), n_usage: 2_007, time_ns: 1_894_000_000 });
    }
    IdleDelta { cpu, states }
}

fn settings() -> Vec<(String, String)> {
    vec![
        ("/dev/cpu_dma_latency".into(), "none".into()),
        ("/sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us".into(), "0".into()),
        ("/sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us".into(), "0".into()),
    ]
}
