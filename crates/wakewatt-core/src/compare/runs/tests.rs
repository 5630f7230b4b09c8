//! Made-up runs and what is said of them.

use super::*;
use crate::compare::quantities;
use crate::distribution::Distribution;
use crate::facts::Snapshot;
use crate::samples::Samples;
use crate::samples::disk::{DiskAccess, DiskEngine, DiskSample, DiskTarget, DiskTargetKind};
use crate::samples::experiment::{Arm, Block, ExperimentRun, Metric};
use crate::samples::load::LoadRun;
use crate::samples::memory::{Bandwidth, MemorySample, PageWish, Traffic};
use crate::samples::study::Conclusions;
use crate::samples::timeline::Change;
use crate::samples::wakeup::{WakeKind, WakeupSample};
use crate::samples::{IdleDelta, Scheduling, StateDelta, Window};
use crate::source::Tree;
use crate::stats::paired::Judge;
use crate::stats::random::Random;
use proptest::prelude::*;

fn latency(middle_ns: f64, seed: u64) -> Distribution {
    let mut random = Random::new(seed);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // made up
    Distribution::from_ns((0..20_000).map(|_| (middle_ns + random.normal() * 4_000.0).max(1.0) as u64))
}

fn idle(c1_ns: u64, c6_ns: u64) -> IdleDelta {
    let state = |index, name: &str, time_ns| StateDelta { index, name: name.into(), n_usage: 9, time_ns };
    IdleDelta { cpu: 1, states: vec![state(1, "C1", c1_ns), state(3, "C6", c6_ns)] }
}

fn disk(middle_ns: f64, idle: IdleDelta, seed: u64) -> DiskSample {
    DiskSample {
        engine: DiskEngine::Psync,
        target: DiskTarget {
            path: "/dev/sda".into(),
            kind: DiskTargetKind::Device,
            filesystem: None,
            device: Some("sda".into()),
            size_bytes: 1 << 30,
            is_direct: true,
        },
        access: DiskAccess::Random,
        block_bytes: 32 << 10,
        depth: 1,
        planned_per_s: None,
        cpus: vec![1],
        scheduling: Scheduling::Fifo(80),
        latency: latency(middle_ns, seed),
        service: None,
        n_late_starts: 0,
        n_never_started: 0,
        reads_per_s: 1e9 / middle_ns,
        bytes_per_s: 1e9,
        cpu_ns_per_read: 5_000.0,
        n_reads_with_warmup: 20_000,
        seed,
        clock_read_ns: 20,
        window: Window::default(),
        idle: vec![idle],
        remarks: vec![],
    }
}

#[test]
fn loads_of_other_work_are_not_compared() {
    let level = serde_json::json!({ "ask": { "share": 0.5 }, "phases_ns": [0, 0, 1, 0], "target_per_s": 500.0,
        "window": { "start_at_ns": 0, "end_at_ns": 1_000_000_000 }, "n_planned": 500, "n_done": 500, "n_failed": 0,
        "per_s": 500.0, "parts": [], "cpu_ns": 1_000_000, "system_ns": 1, "cpus": [], "idle": [], "disturbances": [],
        "is_invalid": [] });
    let evidence = |work_units| {
        Evidence::of(Samples {
            load: vec![LoadRun {
                title: "steps, 500us a transaction".into(),
                work_units: Some(work_units),
                levels: vec![serde_json::from_value(level.clone()).unwrap()],
                ..LoadRun::default()
            }],
            ..Samples::default()
        })
    };
    let runs = |a, b| compare_runs(&[evidence(a)], &[evidence(b)]).runs.unwrap();
    let same = runs(1000, 1000);
    assert!(same.samples.len() == 2 && !same.cannot_conclude.iter().any(|l| l.contains("--work")), "{same:?}");
    let other = runs(1000, 1300);
    assert_eq!(other.samples, []);
    assert!(other.cannot_conclude[0].contains("1000 units of work in A and 1300 in B"), "{:?}", other.cannot_conclude);
    let with = |change: fn(&mut Evidence)| {
        let mut one = evidence(1000);
        change(&mut one);
        quantities::of(&one).len()
    };
    assert_eq!(with(|_| {}), 2);
    let changed = with(|one| {
        one.samples.load[0].changes.push(Change { at_ns: 1, within_ns: 0, what: "governor".into() });
    });
    assert_eq!(changed, 0, "before and after a change are not one quantity");
    let drawn = with(|one| one.samples.conclusions = Some(Conclusions::default()));
    assert_eq!(drawn, 0, "a round that is kept for drawing is no measurement of the whole");
}

/// Case K3's laptop; only what its kernel and its settings say.
fn host(kernel: &str, is_c6_disabled: bool) -> Snapshot {
    let root = "/sys/devices/system/cpu";
    let mut text = format!(
        "//- {root}/online\n0-1\n//- {root}/present\n0-1\n//- /proc/sys/kernel/osrelease\n{kernel}\n//- {root}/cpuidle/current_driver\nintel_idle\n"
    );
    for cpu in 0..2 {
        for (index, name, us, off) in [(1, "C1", 2, false), (3, "C6", 85, is_c6_disabled)] {
            let at = format!("//- {root}/cpu{cpu}/cpuidle/state{index}");
            text += &format!("{at}/name\n{name}\n{at}/latency\n{us}\n{at}/disable\n{}\n", u8::from(off));
        }
    }
    for cpu in 0..2 {
        let block = format!("processor : {cpu}\nvendor_id : GenuineIntel\ncpu family : 6\nmodel : 85\n\n");
        text += &if cpu == 0 { format!("//- /proc/cpuinfo\n{block}") } else { block };
    }
    Snapshot::read(&Tree::from_text(&text), |_| true)
}

/// Before and after the upgrade, each measured so many times in one run.
fn k3_windows(n_windows: u64) -> (Evidence, Evidence) {
    let run = |kernel, middle_ns, residency: IdleDelta, seed| Evidence {
        facts: host(kernel, false),
        samples: Samples {
            disk: (0..n_windows).map(|n| disk(middle_ns, residency.clone(), seed + n)).collect(),
            ..Samples::default()
        },
        ..Evidence::default()
    };
    (run("5.3.18-lp152", 150_000.0, idle(800, 200), 1), run("5.14.17-default", 180_000.0, idle(200, 800), 100))
}

fn k3() -> (Evidence, Evidence) {
    k3_windows(4)
}

#[test]
fn one_window_each_proves_nothing_and_says_what_would() {
    let (before, after) = k3_windows(1);
    let found = runs(&before, &after);
    let median = &found.samples[0];
    let why = (median.basis, median.verdict, median.undecided_because, median.decided_by);
    let few = (Basis::FewWindows, Verdict::Undecided, Some(Undecided::FewWindows), Some(Decider::RepeatRuns));
    assert_eq!(why, few);
    assert_eq!(median.a_window.map(|w| w.covers), Some(Covers::Window));
    assert!((median.ratio_low, median.covers, median.p_value) == (None, None, None));
    let said = &median.sentence;
    assert!(
        said.contains("undecided with fewer than 4 windows on a side; several runs on each side would decide"),
        "{said}"
    );
    assert!(
        said.contains("(150us [150us to 150us, covers this window] in A")
            || said.contains("covers this window] in A, 180us"),
        "{said}"
    );
    assert!(found.summary[0].starts_with("nothing measured is called different"), "{:?}", found.summary);
    assert!(!found.summary.iter().any(|line| line.starts_with("first suspect")), "{:?}", found.summary);
    assert!(found.cannot_conclude.iter().any(|line| line.contains("nothing is called different")));
}

#[test]
fn several_runs_on_a_side_are_sessions() {
    let side = |middle_ns: f64, by_ns: f64, seed: u64| -> Vec<Evidence> {
        (0..3u32)
            .map(|n| Evidence {
                facts: host("6.1.0", false),
                samples: Samples {
                    disk: (0..2).map(|w| disk(middle_ns + f64::from(n) * by_ns, idle(500, 500), seed + w)).collect(),
                    ..Samples::default()
                },
                ..Evidence::default()
            })
            .collect()
    };
    let apart = of_sides(&side(150_000.0, 1_000.0, 1), &side(180_000.0, 1_000.0, 50));
    let median = &apart.samples[0];
    assert_eq!((median.basis, median.n_runs, median.n_windows), (Basis::Sessions, [3, 3], [6, 6]));
    assert_eq!((median.verdict, median.covers), (Verdict::Higher, Some(Covers::Hours)));
    let said = &median.sentence;
    assert!(
        said.contains("covers these hours only, because the sides did not take turns; 6 and 6 windows in 3 and 3 runs"),
        "{said}"
    );
    assert!(
        apart.cannot_conclude.iter().any(|line| line.contains("measure A, B, B, A")),
        "{:?}",
        apart.cannot_conclude
    );
    // By the calendar where it is known: clocks of two boots begin anywhere.
    let dated = |mut runs: Vec<Evidence>, hours: [u64; 3]| {
        runs.iter_mut().zip(hours).for_each(|(run, hour)| run.made_at_s = Some(hour * 3_600));
        runs
    };
    let (a, b) = (side(150_000.0, 1_000.0, 1), side(180_000.0, 1_000.0, 50));
    let in_turns = of_sides(&dated(a, [0, 3, 4]), &dated(b, [1, 2, 5]));
    let median = &in_turns.samples[0];
    assert_eq!((median.verdict, median.covers), (Verdict::Higher, Some(Covers::Machine)));
    assert!(median.sentence.contains("covers the machines, over the sessions given"), "{}", median.sentence);
    assert!(!in_turns.cannot_conclude.iter().any(|line| line.contains("turns")), "{:?}", in_turns.cannot_conclude);
    // What sessions differ by among themselves is no difference of the sides.
    let scattered = of_sides(&side(150_000.0, 40_000.0, 1), &side(180_000.0, 40_000.0, 50));
    let why = (scattered.samples[0].verdict, scattered.samples[0].undecided_because);
    assert_eq!(why, (Verdict::Undecided, Some(Undecided::WideInterval)));
}

fn of_sides(a: &[Evidence], b: &[Evidence]) -> RunComparison {
    *compare_runs(a, b).runs.unwrap()
}

fn runs(a: &Evidence, b: &Evidence) -> RunComparison {
    of_sides(std::slice::from_ref(a), std::slice::from_ref(b))
}

#[test]
fn case_k3_in_two_sentences_and_a_suspect() {
    let (before, after) = k3();
    let found = runs(&before, &after);
    let [service, residency, suspect] = &found.summary[..] else { panic!("{:#?}", found.summary) };
    assert!(
        service.starts_with("random reads of 32KiB, psync, depth 1, median: service time grew by a steady 30us (150us in A, 180us in B; B is 1.20 times A, 95 % interval"),
        "{service}"
    );
    assert!(service.ends_with("covers these two runs; 4 and 4 windows)"), "{service}");
    assert_eq!(residency, "while reading from disk, residency moved from C1 (80 to 20 %) to C6 (20 to 80 %)");
    assert!(
        suspect.starts_with("first suspect: kernel: 5.3.18 and 5.14.17; SUSE")
            && suspect.contains("known changes of mainline"),
        "{suspect}"
    );
    assert!(suspect.contains("C6 claims 92us instead of 133us"), "{suspect}");
    assert!(!suspect.contains("Sapphire Rapids"), "the table of another processor: {suspect}");
    let said = found.cannot_conclude.join("\n");
    assert!(said.contains("time and kernel (5.3.18-lp152 and 5.14.17-default)"), "{said}");
    assert!(said.contains("One run on each side") && said.contains("measure disk --experiment"), "{said}");
    let back = runs(&after, &before);
    assert!(back.summary[0].contains("shrank by a steady 30us"), "{}", back.summary[0]);
    assert!(back.summary.last().unwrap().contains("known changes of mainline between the two"), "{:?}", back.summary);
}

#[test]
fn a_change_that_stretches_is_not_steady() {
    let (before, mut after) = k3();
    // Two reads in three meet a slower disk; the third does not.
    let mut random = Random::new(9);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // made up
    let mixed =
        (0..20_000u32).map(|i| (150_000.0 + random.normal() * 4_000.0) as u64 + if i % 3 == 0 { 0 } else { 60_000 });
    let mixed = Distribution::from_ns(mixed.collect::<Vec<_>>());
    after.samples.disk.iter_mut().for_each(|window| window.latency = mixed.clone());
    let found = runs(&before, &after);
    assert!(found.summary[0].contains("higher in B by"), "{}", found.summary[0]);
    assert_eq!(found.samples[0].is_steady, Some(false));
}

#[test]
fn a_limit_is_a_suspect_with_its_direction() {
    let (mut a, mut b) = k3();
    (a.facts, b.facts) = (host("6.1.0", true), host("6.1.0", false));
    let found = runs(&a, &b);
    let first = &found.suspects[0];
    assert_eq!((first.values[0].as_str(), first.claimed_ns), ("C1, 2us", Some(83_000.0)));
    assert!(first.line().ends_with("83us longer (claimed exit latency) (longer in B)"), "{}", first.line());
    assert_eq!(runs(&b, &a).suspects[0].claimed_ns, Some(-83_000.0));
    assert!(found.cannot_conclude[0].contains("the kernel release is the same"));
}

fn wakeup(p50_ns: f64, cpu: u32, seed: u64) -> WakeupSample {
    WakeupSample {
        kind: WakeKind::Timer,
        cpu,
        from_cpu: None,
        gap_ns: 1_000_000,
        scheduling: Scheduling::Fifo(80),
        latency: latency(p50_ns, seed),
        pauses: Default::default(),
        waker: None,
        clock_bound_ns: None,
        n_late_starts: 0,
        clock_read_ns: 20,
        window: Window::default(),
        idle: None,
    }
}

#[test]
fn several_windows_get_an_interval_and_a_test() {
    let run = |base: f64, seed: u64| {
        Evidence::of(Samples {
            wakeups: (0..6u32).map(|cpu| wakeup(base + f64::from(cpu) * 500.0, cpu, seed + u64::from(cpu))).collect(),
            ..Samples::default()
        })
    };
    let found = runs(&run(40_000.0, 1), &run(80_000.0, 50));
    let median = found.samples.iter().find(|d| d.id == "wakeup.timer.1ms.median").unwrap();
    assert_eq!((median.basis, median.n_windows, median.verdict), (Basis::Windows, [6, 6], Verdict::Higher));
    assert!(median.p_value.unwrap() < 0.01 && (median.ratio - 1.96).abs() < 0.1, "{median:?}");
    let two = |mut run: Evidence| {
        run.samples.wakeups.truncate(2);
        run
    };
    let few = runs(&two(run(40_000.0, 1)), &two(run(80_000.0, 50)));
    assert_eq!((few.samples[0].basis, few.samples[0].verdict), (Basis::FewWindows, Verdict::Undecided));
    assert!(few.samples[0].sentence.ends_with("without an interval; 2 and 2 windows)"), "{}", few.samples[0].sentence);
    let same = |base: f64, seed| {
        let mut one = run(base, seed);
        one.samples.wakeups.iter_mut().for_each(|w| w.latency = latency(base, seed + u64::from(w.cpu)));
        one
    };
    let same = runs(&same(40_000.0, 1), &same(40_100.0, 50));
    assert_eq!(same.samples[0].verdict, Verdict::NoDifference);
    assert!(same.summary.is_empty() && same.samples[0].sentence.contains("no difference worth a word"));
}

#[test]
fn a_number_without_an_interval_decides_nothing() {
    let run = |gigabytes: f64| {
        let bandwidth = Bandwidth {
            traffic: Traffic::Load,
            simd: "avx2".into(),
            pages: PageWish::Huge,
            cpus: crate::cpuset::CpuSet::parse("0-3").unwrap(),
            node: None,
            array_bytes: 1,
            best_bytes_per_s: gigabytes * 1e9,
            median_bytes_per_s: 1.0,
            cv_ratio: 0.0,
            n_passes: 3,
            huge_ratio: None,
        };
        let memory = Some(MemorySample { bandwidth: vec![bandwidth], ..MemorySample::default() });
        Evidence::of(Samples { memory, ..Samples::default() })
    };
    let found = runs(&run(40.0), &run(20.0));
    assert_eq!((found.samples[0].basis, found.samples[0].verdict), (Basis::FewWindows, Verdict::Undecided));
    assert!(
        found.samples[0]
            .sentence
            .contains("40 GB/s in A, 20 GB/s in B; B is 0.50 times A, without an interval; one number each")
    );
    let nothing = runs(&run(40.0), &Evidence::default());
    assert!(nothing.samples.is_empty() && nothing.n_only_one == 1);
    assert!(nothing.cannot_conclude[0].starts_with("No quantity was measured in both runs"));
}

fn experiment(default_ns: f64, poll_ns: f64, n_rounds: u32, seed: u64) -> ExperimentRun {
    let mut random = Random::new(seed);
    let mut pairs = Vec::new();
    let mut blocks = Vec::new();
    for round in 0..n_rounds {
        let pair = (default_ns * (random.normal() * 0.02).exp(), poll_ns * (random.normal() * 0.02).exp());
        for (arm, value) in [("default", pair.0), ("poll", pair.1)] {
            blocks.push(Block {
                round: round as usize,
                arm: arm.into(),
                window: Window::default(),
                values: vec![Some(value)],
                ..Block::default()
            });
        }
        pairs.push(pair);
    }
    let metric = Metric::latency("wakeup.eventfd.p50", "cross-CPU wake-up, median");
    ExperimentRun {
        arms: ["default", "poll"].map(|id| Arm { id: id.into(), title: id.into(), settings: vec![] }).into(),
        effects: Judge::default().effect(&metric.id, "default", "poll", &pairs).into_iter().collect(),
        metrics: vec![metric],
        blocks,
        seed,
        ..ExperimentRun::default()
    }
}

#[test]
fn the_same_experiment_on_a_slower_machine_is_the_same_effect() {
    let run = |default_ns, poll_ns, n, seed| {
        Evidence::of(Samples { experiment: Some(experiment(default_ns, poll_ns, n, seed)), ..Samples::default() })
    };
    // Twice as slow as a whole, five times the cost of sleep.
    let found = runs(&run(30_000.0, 6_000.0, 8, 1), &run(60_000.0, 12_000.0, 8, 2));
    assert_eq!((found.effects[0].verdict, found.effects[0].n_rounds), (Verdict::NoDifference, [8, 8]));
    assert!(
        found.effects[0].sentence.contains("the setting matters the same in both"),
        "{}",
        found.effects[0].sentence
    );
    assert_eq!(found.samples[0].verdict, Verdict::Higher, "the machine as found is slower all the same");
    let found = runs(&run(30_000.0, 6_000.0, 8, 1), &run(120_000.0, 6_000.0, 8, 2));
    let effect = &found.effects[0];
    assert_eq!(effect.verdict, Verdict::Higher);
    assert!((effect.ratio - 4.0).abs() < 0.2 && effect.p_value.is_some(), "{effect:?}");
    assert!(effect.sentence.starts_with("cross-CPU wake-up, median: \"default\" is 5.0"), "{}", effect.sentence);
    let few = runs(&run(30_000.0, 6_000.0, 3, 1), &run(120_000.0, 6_000.0, 3, 2));
    assert_eq!((few.effects[0].p_value, few.effects[0].verdict), (None, Verdict::Undecided), "three rounds");
    assert!(few.effects[0].sentence.contains("too few rounds for an interval"));
}

#[test]
fn further_experiments_are_compared_with_their_own_kind() {
    let run = |found_ns, seed| {
        let mut further = experiment(found_ns, 6_000.0, 8, seed);
        further.metrics[0].id = "steps.10.p50".into();
        further.effects.iter_mut().for_each(|e| e.metric = "steps.10.p50".into());
        let mut other = further.clone();
        other.arms[1].id = "powersave".into();
        other.effects[0].arm = "powersave".into();
        Evidence::of(Samples { experiments: vec![other, further], ..Samples::default() })
    };
    let found = runs(&run(30_000.0, 1), &run(120_000.0, 2));
    let effect = found.effects.iter().find(|e| e.arm == "poll").unwrap();
    assert!(effect.verdict == Verdict::Higher && (effect.ratio - 4.0).abs() < 0.2, "{effect:?}");
    let ids: Vec<&str> = found.samples.iter().map(|d| d.id.as_str()).collect();
    assert_eq!(ids, ["blocks.default-powersave.steps.10.p50", "blocks.default-poll.steps.10.p50"]);
    assert_eq!(found.samples[1].verdict, Verdict::Higher);
    let nothing = runs(&run(30_000.0, 1), &Evidence::default());
    assert_eq!((nothing.effects.len(), nothing.n_only_one), (0, 2));
}

/// Names are masked in saved titles, so two commands may be called alike, and one otherwise in each run.
#[test]
fn loads_of_commands_are_matched_by_what_was_run() {
    let run = |title: &str, command: &[&str]| {
        let level = serde_json::json!({ "ask": "run", "phases_ns": [0, 0, 1, 0], "window": { "start_at_ns": 0, "end_at_ns": 1_000_000_000 },
            "n_planned": 1, "n_done": 1, "n_failed": 0, "per_s": 5.0, "parts": [], "cpu_ns": 1_000_000, "system_ns": 1, "cpus": [],
            "idle": [], "disturbances": [], "is_invalid": [] });
        let words: Vec<String> = command.iter().map(ToString::to_string).collect();
        Evidence::of(Samples {
            load: vec![LoadRun {
                kind: crate::samples::load::Kind::Command,
                title: title.into(),
                command_hash: Some(crate::samples::load::command_hash(&words)),
                levels: vec![serde_json::from_value(level).unwrap()],
                ..LoadRun::default()
            }],
            ..Samples::default()
        })
    };
    let bench = run("masked1 --threads 4", &["acme-bench", "--threads", "4"]);
    let other = run("masked1 --threads 4", &["acme-serve", "--threads", "4"]);
    let again = run("masked2 --threads 4", &["acme-bench", "--threads", "4"]);
    assert_eq!(runs(&bench, &other).samples, [], "another command");
    assert_eq!(runs(&bench, &again).samples.len(), runs(&bench, &bench).samples.len(), "the same");
    assert!(!runs(&bench, &again).samples.is_empty());
    // Arguments that are cut otherwise are others.
    assert_ne!(run("x", &["a b"]).samples.load[0].command_hash, run("x", &["a", "b"]).samples.load[0].command_hash);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn swapped_runs_say_the_opposite(a in 1_000.0f64..1e6, b in 1_000.0f64..1e6) {
        let windows = |ns, seed: u64| (0..4).map(|n| wakeup(ns, 0, seed + n)).collect();
        let run = |ns, seed| Evidence::of(Samples { wakeups: windows(ns, seed), ..Samples::default() });
        let (x, y) = (run(a, 1), run(b, 20));
        let (there, back) = (runs(&x, &y), runs(&y, &x));
        let opposite = |v| match v { Verdict::Higher => Verdict::Lower, Verdict::Lower => Verdict::Higher, same => same };
        for (there, back) in there.samples.iter().zip(&back.samples) {
            prop_assert_eq!(there.verdict, opposite(back.verdict));
            prop_assert!((there.ratio * back.ratio - 1.0).abs() < 1e-9);
        }
    }
}
