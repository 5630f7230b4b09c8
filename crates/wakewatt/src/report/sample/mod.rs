//! Synthetic reports: to test the page, to look at it, and to show what each kind of verdict looks like.
//!
//! The numbers are shaped like those of a 2-CPU virtual machine (halt about 33 us, polling about 6 us) and of a server
//! with C6 (170 us claimed). They are drawn from a fixed seed and prove nothing; every title says SYNTHETIC.

mod load;
mod pings;
mod server;

use super::Report;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::plan::{Plan, Step};
use wakewatt_core::rules::{Answer, Basis, Confidence, Cost, Finding, Ruling, Weight};
use wakewatt_core::samples::disturbance::Disturbance;
use wakewatt_core::samples::ended::Ended;
use wakewatt_core::samples::experiment::{Arm, Block, Effect, ExperimentRun, Metric, PooledArm, Verdict};
use wakewatt_core::samples::not_done::{self, NotDone};
use wakewatt_core::samples::roles::Role;
use wakewatt_core::samples::tail::{TailAnswer, TailTest};
use wakewatt_core::samples::taken::Taken;
use wakewatt_core::samples::wakeup::{WakeKind, WakeupSample};
use wakewatt_core::samples::woken::Woken;
use wakewatt_core::samples::{IdleDelta, Samples, Scheduling, StateDelta, Window};
use wakewatt_core::source::Tree;
use wakewatt_core::stats::distribution::Distribution;
use wakewatt_core::stats::side_effects;

/// How an arm behaves: id, title, setting, median, share of the slow tail, what it sleeps in.
struct Shape {
    id: &'static str,
    title: &'static str,
    setting: &'static str,
    p50_ns: f64,
    tail: f64,
    scatter: f64,
    state: &'static str,
}

const DEFAULT: Shape = Shape {
    id: "default",
    title: "idle states as they were",
    setting: "nothing: the machine as it was found",
    p50_ns: 33_000.0,
    tail: 2.3,
    scatter: 0.07,
    state: "halt",
};
const POLL: Shape = Shape {
    id: "poll",
    title: "no sleep (polling)",
    setting: "/dev/cpu_dma_latency held at 0",
    p50_ns: 6_300.0,
    tail: 2.9,
    scatter: 0.05,
    state: "POLL",
};

/// Two arms, a clear effect: the machine of the project's own tests.
pub fn two_arms() -> Report {
    report("two arms", HALTPOLL, Some(experiment(&[DEFAULT, POLL], 10)))
}

/// Three arms on a server with C6.
pub fn three_arms() -> Report {
    let c6 = Shape { p50_ns: 171_000.0, tail: 1.6, state: "C6", ..DEFAULT };
    let c1 = Shape {
        id: "c1",
        title: "C1 at most",
        setting: "/dev/cpu_dma_latency held at 2",
        p50_ns: 9_100.0,
        tail: 2.2,
        scatter: 0.06,
        state: "C1",
    };
    let poll = Shape { p50_ns: 4_200.0, ..POLL };
    report("three arms", SERVER, Some(experiment(&[c6, c1, poll], 10)))
}

/// The median improves and the tail gets worse, as polling in a virtual machine often does.
pub fn tail_reversed() -> Report {
    let poll = Shape { tail: 18.0, ..POLL };
    report("tail reversed", HALTPOLL, Some(experiment(&[DEFAULT, poll], 10)))
}

/// Six noisy rounds that cannot decide.
pub fn undecided() -> Report {
    let a = Shape { p50_ns: 8_900.0, scatter: 0.35, ..DEFAULT };
    let b = Shape { p50_ns: 7_400.0, scatter: 0.35, ..POLL };
    report("undecided", HALTPOLL, Some(experiment(&[a, b], 6)))
}

/// Doctor turned the governor, because there was more at stake than in idle states.
pub fn governor() -> Report {
    let found = Shape {
        id: "found",
        title: "governor as found",
        setting: "nothing is written",
        p50_ns: 780_000.0,
        tail: 1.9,
        scatter: 0.05,
        state: "C1",
    };
    let performance = Shape {
        id: "performance",
        title: "governor performance",
        setting: "freq.governor on CPUs 0-1: ondemand -> performance",
        p50_ns: 560_000.0,
        ..found
    };
    let mut run = experiment(&[found, performance], 10);
    run.metrics = vec![
        Metric::latency("steps.10.p50", "load at 10 %, median answer"),
        Metric::latency("steps.10.p99", "load at 10 %, 99th percentile"),
    ];
    for (effect, id) in run.effects.iter_mut().zip(["steps.10.p50", "steps.10.p99"]) {
        effect.metric = id.into();
    }
    run.pooled.iter_mut().for_each(|p| (p.what, p.title) = ("steps.10".into(), "load at 10 %".into()));
    run.before = vec![("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor".into(), "ondemand".into())];
    run.after = run.before.clone();
    let mut report = report("governor turned", SERVER, None);
    report.evidence.not_done.retain(|n| n.step != not_done::Step::Experiment);
    report.evidence.samples.experiments = vec![run];
    let policy: String = [
        ("affected_cpus", "0 1"),
        ("related_cpus", "0 1"),
        ("scaling_driver", "acpi-cpufreq"),
        ("scaling_governor", "ondemand"),
        ("scaling_available_governors", "ondemand performance"),
    ]
    .map(|(name, value)| format!("//- /sys/devices/system/cpu/cpufreq/policy0/{name}\n{value}\n"))
    .concat();
    report.evidence.facts = Snapshot::read(&Tree::from_text(&(machine(SERVER) + &policy)), |_| true);
    report.rulings = wakewatt_core::rules::judge(&report.evidence);
    report
}

/// Nothing was changed: an ordinary user, reading only.
pub fn read_only() -> Report {
    report("read-only", SERVER, None)
}

/// Every kind of sample at once, so that every chart is drawn: a server with two sockets under five governors.
pub fn everything() -> Report {
    let mut report = three_arms();
    report.title = "SYNTHETIC everything".into();
    report.evidence.samples = Samples { experiment: report.evidence.samples.experiment, ..samples() };
    report.evidence.not_done.clear();
    report
}

/// A load run alone, and no meter.
pub fn load_without_meter() -> Report {
    let mut report = report("load without meter", SERVER, None);
    report.evidence.samples.load = load::without_meter();
    report
}

/// The same load again and again while somebody changed a setting.
pub fn repeated_load() -> Report {
    let mut report = report("repeated load", SERVER, None);
    report.evidence.samples.load = vec![load::repeated()];
    report
}

fn samples() -> Samples {
    let disk = [DEFAULT, POLL].map(|s| Shape { p50_ns: s.p50_ns * 2.4, ..s });
    let mut disk_experiment = experiment(&disk, 8);
    disk_experiment.metrics = vec![
        Metric::latency("disk.psync.p50", "random read, median"),
        Metric::latency("disk.psync.p99", "random read, p99"),
    ];
    for (effect, id) in disk_experiment.effects.iter_mut().zip(["disk.psync.p50", "disk.psync.p99"]) {
        effect.metric = id.into();
    }
    let mut more = experiment(&[DEFAULT, POLL], 8);
    more.metrics[0].title = "wake-up by eventfd, median".into();
    Samples {
        load: load::steps().into_iter().chain(load::shop()).collect(),
        icmp: pings::pings(),
        work: Some(pings::work()),
        memory: Some(server::memory()),
        cores: vec![server::cores()],
        idle_states: vec![server::idle_costs()],
        speed: vec![server::ramp()],
        disk: server::disk(),
        disk_experiment: Some(disk_experiment),
        experiments: vec![more],
        energy: vec![server::energy()],
        timelines: vec![server::timeline()],
        ..Samples::default()
    }
}

/// Every synthetic report with a file name.
pub fn all() -> Vec<(&'static str, Report)> {
    vec![
        ("two-arms", two_arms()),
        ("three-arms", three_arms()),
        ("tail-reversed", tail_reversed()),
        ("undecided", undecided()),
        ("governor", governor()),
        ("read-only", read_only()),
        ("everything", everything()),
        ("load-without-meter", load_without_meter()),
        ("repeated-load", repeated_load()),
        ("empty", Report::new("empty", "2026-11-21 09:00 UTC", Evidence::default(), Vec::new())),
    ]
}

fn report(name: &str, states: &[(&str, u64, u64)], experiment: Option<ExperimentRun>) -> Report {
    let mut dice = Dice(7);
    let mut not_done = vec![NotDone::named("trace", "needs CAP_BPF and CAP_PERFMON")];
    if experiment.is_none() {
        not_done.push(NotDone::new(not_done::Step::Experiment, "needs root, and --read-only was asked for"));
    }
    let wakeups = [(WakeKind::Timer, None, 29_400.0), (WakeKind::Eventfd, Some(0), 33_200.0)]
        .into_iter()
        .zip(0u64..)
        .map(|((kind, from_cpu, p50_ns), i)| WakeupSample {
            kind,
            cpu: 1,
            from_cpu,
            gap_ns: 1_000_000,
            scheduling: Scheduling::Other("SCHED_FIFO refused: Operation not permitted".into()),
            latency: Distribution::from_ns((0..5_000).map(|_| dice.latency_ns(p50_ns, 2.2))),
            pauses: Default::default(),
            waker: None,
            clock_bound_ns: None,
            n_late_starts: 3,
            clock_read_ns: 31,
            window: window(1_000 + i * 6_000, 5_000),
            idle: None,
        })
        .collect();
    let facts = Snapshot::read(&Tree::from_text(&machine(states)), |_| true);
    let evidence = Evidence {
        facts,
        not_done,
        samples: Samples { wakeups, experiment, ..Samples::default() },
        ..Evidence::default()
    };
    Report::new(format!("SYNTHETIC {name}"), "2026-11-21 09:00 UTC", evidence, rulings())
}

/// A generator small enough to read: the sequence only has to be fixed and well spread.
struct Dice(u64);

impl Dice {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
    /// A narrow bulk, and 3 % in a tail `tail` times as far out.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and far below 2^63")]
    fn latency_ns(&mut self, p50_ns: f64, tail: f64) -> u64 {
        let bulk = p50_ns * (0.14 * self.normal()).exp();
        let late = if self.unit() < 0.03 { tail * (0.35 * self.normal()).exp() } else { 1.0 };
        (bulk * late.max(0.8)) as u64
    }
}

fn window(start_ms: u64, length_ms: u64) -> Window {
    let start_at_ns = 4_021_000_000_000 + start_ms * 1_000_000;
    Window { start_at_ns, end_at_ns: start_at_ns + length_ms * 1_000_000 }
}

fn experiment(shapes: &[Shape], n_rounds: usize) -> ExperimentRun {
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
                woken: Some(Woken { cpu: 1, n: 2_000 }),
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

const HALTPOLL: &[(&str, u64, u64)] = &[("POLL", 0, 0), ("halt", 1, 1)];
const SERVER: &[(&str, u64, u64)] = &[("POLL", 0, 0), ("C1", 2, 2), ("C1E", 4, 4), ("C6", 170, 600)];

fn machine(states: &[(&str, u64, u64)]) -> String {
    let root = "/sys/devices/system/cpu";
    let driver = if states.len() == 2 { "haltpoll" } else { "intel_idle" };
    let mut text = format!(
        "//- {root}/online\n0-1\n//- {root}/present\n0-1\n//- {root}/cpuidle/current_driver\n{driver}\n//- {root}/cpuidle/current_governor\nmenu\n//- /dev/cpu_dma_latency!denied\n"
    );
    for cpu in 0..2 {
        text += &format!("//- {root}/cpu{cpu}/power/pm_qos_resume_latency_us\n0\n");
        for (k, (name, latency_us, residency_us)) in states.iter().enumerate() {
            let dir = format!("{root}/cpu{cpu}/cpuidle/state{k}");
            text += &format!(
                "//- {dir}/name\n{name}\n//- {dir}/latency\n{latency_us}\n//- {dir}/residency\n{residency_us}\n//- {dir}/disable\n0\n//- {dir}/usage\n{}\n//- {dir}/time\n{}\n",
                1000 * (k + 1),
                90_000 * (k + 1)
            );
        }
    }
    text
}

fn rulings() -> Vec<Ruling> {
    let finding = Finding {
        id: "rule.deep-idle-vs-latency".into(),
        title: "Idle states add to every wake-up, and nothing limits them".into(),
        weight: Weight::Problem,
        cost: Cost::measured_ns(
            27_000.0,
            "27 us more per wake-up (interval 25–29 us, 95 % over all looks), measured here over 10 rounds",
        ),
        confidence: Confidence::High,
        evidence: vec![
            Basis { says: "no latency limit is in force".into(), path: "/dev/cpu_dma_latency".into() },
            Basis {
                says: "the governor may choose every state".into(),
                path: "/sys/devices/system/cpu/cpu0/cpuidle/state1/disable".into(),
            },
        ],
        remedy: "Hold a latency limit of 5us while the service runs.".into(),
        plan: Some(Plan::of([Step {
            knob: "qos.global".into(),
            on: None,
            to: "5us".into(),
            path: "/dev/cpu_dma_latency".into(),
            reason: "no state slower than 5us may be chosen".into(),
        }])),
        price: "Idle CPUs draw more power; how much was not measured here: no power meter was found.".into(),
        verify: "wakewatt measure wakeup: the median should fall to about 6 us".into(),
    };
    let risk = Finding {
        id: "rule.fifo-refused".into(),
        title: "Measured without real-time priority: run-queue delay is in the numbers".into(),
        weight: Weight::Note,
        cost: Cost::unknown("unknown; affects how the other numbers read"),
        confidence: Confidence::Medium,
        evidence: vec![Basis { says: "Operation not permitted".into(), path: "sched_setscheduler(2)".into() }],
        remedy: "Run as root or with CAP_SYS_NICE.".into(),
        plan: None,
        price: "none".into(),
        verify: "the method section names SCHED_FIFO".into(),
    };
    let ruling = |rule: &str, question: &str, answer| Ruling { rule: rule.into(), question: question.into(), answer };
    vec![
        ruling("rule.deep-idle-vs-latency", "Do idle states cost wake-up latency?", Answer::Yes(Box::new(finding))),
        ruling("rule.fifo-refused", "Was the measurement itself delayed?", Answer::Yes(Box::new(risk))),
        ruling(
            "rule.cfs-quota",
            "Is a CPU quota throttling the work?",
            Answer::No { because: "no cgroup has been throttled since boot".into() },
        ),
        ruling(
            "rule.dimm-speed",
            "Do the DIMMs run below their rated speed?",
            Answer::CannotTell {
                because: "/sys/firmware/dmi/tables/DMI: permission denied".into(),
                try_this: "run as root".into(),
            },
        ),
    ]
}
