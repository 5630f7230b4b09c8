//! Synthetic reports: to test the page, to look at it, and to show what each kind of verdict looks like.
//!
//! The numbers are shaped like those of a 2-CPU virtual machine (halt about 33 us, polling about 6 us) and of a server
//! with C6 (170 us claimed). They are drawn from a fixed seed and prove nothing; every title says SYNTHETIC.

mod dice;
mod experiment;
mod findings;
mod load;
mod machine;
mod memory;
mod meters;
mod pings;
mod server;
mod states;

use super::Report;
use dice::{Dice, window};
use experiment::{DEFAULT, POLL, Shape, experiment};
use findings::rulings;
use machine::{HALTPOLL, SERVER, machine};
use wakewatt_core::evidence::Evidence;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::samples::experiment::{ExperimentRun, Metric};
use wakewatt_core::samples::not_done::{self, NotDone};
use wakewatt_core::samples::wakeup::{WakeKind, WakeupSample};
use wakewatt_core::samples::{Samples, Scheduling};
use wakewatt_core::source::Tree;
use wakewatt_core::stats::distribution::Distribution;

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
        memory: Some(memory::memory()),
        cores: vec![server::cores()],
        idle_states: vec![states::idle_costs()],
        speed: vec![states::ramp()],
        disk: server::disk(),
        disk_experiment: Some(disk_experiment),
        experiments: vec![more],
        energy: vec![meters::energy()],
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
