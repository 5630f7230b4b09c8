//! Made-up sessions, and what they say together.

use super::*;
use crate::covers::Covers;
use crate::samples::Window;
use crate::samples::experiment::{Arm, Block, Metric, Verdict};
use crate::samples::study::Conclusions;
use crate::stats::random::Random;

const HOUR_S: u64 = 3600;
const NOW_S: u64 = 1_800_000_000;

/// Eight rounds in which the baseline takes so many times as long; begun so long after the boot.
fn run(ratio: f64, seed: u64, up_s: u64) -> Evidence {
    let mut random = Random::new(seed);
    let mut block = |round, arm: &str, ns: f64| Block {
        round,
        arm: arm.into(),
        window: Window { start_at_ns: up_s * 1_000_000_000, end_at_ns: (up_s + 60) * 1_000_000_000 },
        values: vec![Some(ns * (0.02 * random.normal()).exp())],
        disturbances: vec![],
        taken: None,
        waker: None,
        rejected: None,
        idle: vec![],
        ..Block::default()
    };
    let blocks =
        (0..8).flat_map(|round| [block(round, "found", ratio * 1_000.0), block(round, "poll", 1_000.0)]).collect();
    let experiment = ExperimentRun {
        arms: ["found", "poll"].map(|id| Arm { id: id.into(), title: id.into(), settings: vec![] }).into(),
        metrics: vec![Metric::latency("wakeup.eventfd.p50", "cross-CPU wake-up, median")],
        blocks,
        seed,
        ..ExperimentRun::default()
    };
    let conclusions = Some(Conclusions { name: "idle".into(), ..Conclusions::default() });
    Evidence::of(Samples { experiment: Some(experiment), conclusions, ..Samples::default() })
}

fn session<'a>(name: &str, host: &str, at_s: u64, evidence: &'a Evidence) -> Session<'a> {
    let host = Some(host.to_string()).filter(|h| !h.is_empty());
    Session { name: name.into(), host, made_at_s: Some(NOW_S + at_s), evidence }
}

#[test]
fn three_sessions_say_this_machine_and_how_they_differ() {
    let runs = [run(5.0, 1, 100), run(5.6, 2, 100 + HOUR_S), run(4.5, 3, 100)];
    let sessions = [
        session("a", "", 160, &runs[0]),
        session("b", "", 160 + HOUR_S, &runs[1]),
        session("c", "", 900_000, &runs[2]),
    ];
    let found = replicate(&sessions).unwrap();
    assert_eq!(
        (found.sessions.len(), found.n_boots, found.n_hosts, found.plan.as_deref()),
        (3, Some(2), 1, Some("idle"))
    );
    assert_eq!(found.sessions.iter().map(|p| p.boot).collect::<Vec<_>>(), [Some(1), Some(1), Some(2)]);
    let effect = &found.effects[0];
    assert_eq!((effect.verdict, effect.covers, effect.is_primary), (Verdict::Higher, Covers::Machine, true));
    assert!((4.5..5.6).contains(&effect.ratio), "{effect:?}");
    // Over sessions 3.8 to 6.6; the rounds of one session would say 4.9 to 5.1.
    assert!(effect.ratio_low.unwrap() < 4.4 && effect.ratio_high.unwrap() > 5.7, "{effect:?}");
    assert!(effect.sessions[0].ratio_high - effect.sessions[0].ratio_low < 0.4);
    assert!(effect.sessions.iter().all(|s| s.covers == Covers::Run && s.n_rounds == 8));
    let any = effect.any_time.unwrap();
    assert!(any.ratio_low > effect.ratio_low.unwrap() && any.covers == Covers::Run, "{any:?}");
    assert_eq!(found.caveats, [Caveat::HostsByLooks, Caveat::BetweenDominates]);
}

#[test]
fn two_sessions_are_little_and_that_is_said() {
    let runs = [run(5.0, 1, 100), run(5.1, 2, 200)];
    let found = replicate(&[session("a", "x", 160, &runs[0]), session("b", "x", 260, &runs[1])]).unwrap();
    assert!(found.caveats.contains(&Caveat::OnlyTwo) && found.caveats.contains(&Caveat::OneBoot), "{found:?}");
    assert!(!found.caveats.contains(&Caveat::HostsByLooks));
    let width = |f: &Replication| f.effects[0].ratio_high.unwrap().ln() - f.effects[0].ratio_low.unwrap().ln();
    assert!(width(&found) > 0.1, "12.7 times the error: {}", width(&found));
}

#[test]
fn several_hosts_are_these_machines() {
    let runs = [run(5.0, 1, 100), run(5.1, 2, 5_000), run(3.0, 3, 100), run(4.0, 4, 100)];
    let hosts = ["x", "x", "y", "z"];
    let sessions: Vec<Session<'_>> = runs
        .iter()
        .zip(hosts)
        .enumerate()
        .map(|(i, (r, h))| session(&format!("{i}"), h, 60_000 * i as u64, r))
        .collect();
    let found = replicate(&sessions).unwrap();
    let effect = &found.effects[0];
    assert_eq!((found.n_hosts, effect.covers), (3, Covers::Machines));
    // The two sessions of x count as one host: the middle of 5.05, 3 and 4.
    assert!((effect.ratio - (5.05f64 * 3.0 * 4.0).cbrt()).abs() < 0.05, "{}", effect.ratio);
}

#[test]
fn other_plans_arms_and_metrics_are_refused_by_type() {
    let first = run(5.0, 1, 100);
    let with = |change: fn(&mut Samples)| {
        let mut other = run(5.0, 2, 100);
        change(&mut other.samples);
        replicate(&[session("a", "", 0, &first), session("b", "", 0, &other)]).unwrap_err()
    };
    let plan = with(|s| s.conclusions.as_mut().unwrap().name = "k4".into());
    assert!(
        matches!(&plan, NotReplicated::OtherPlan { a_plan, b, .. } if a_plan == "the plan idle" && b == "b"),
        "{plan}"
    );
    let arms = with(|s| s.experiment.as_mut().unwrap().arms[1].id = "shallow".into());
    assert!(matches!(&arms, NotReplicated::OtherArms { b_arms, .. } if b_arms == "found, shallow"), "{arms}");
    let metric = with(|s| s.experiment.as_mut().unwrap().metrics[0].id = "steps.10.p50".into());
    assert!(matches!(metric, NotReplicated::OtherMetric { .. }), "{metric}");
}

#[test]
fn what_takes_no_part_is_named() {
    let (first, second, nothing) = (run(5.0, 1, 100), run(5.0, 2, 100), Evidence::default());
    let mut empty = run(5.0, 3, 100);
    empty.samples.experiment.as_mut().unwrap().blocks.clear();
    let sessions = [("a", &first), ("again", &first), ("none", &nothing), ("empty", &empty), ("b", &second)];
    let sessions = sessions.map(|(name, evidence)| session(name, "", 0, evidence));
    let found = replicate(&sessions).unwrap();
    let why: Vec<(&str, &WhyLeftOut)> = found.left_out.iter().map(|l| (l.name.as_str(), &l.why)).collect();
    let same = WhyLeftOut::SameAs { run: "a".into() };
    assert_eq!(
        why,
        [("none", &WhyLeftOut::NoExperiment), ("again", &same), ("empty", &WhyLeftOut::NoRounds { rejected: None })]
    );
    assert_eq!(found.sessions.len(), 2);
    let alone = replicate(&sessions[..4]).unwrap_err().to_string();
    assert!(alone.contains("only one session") && alone.contains("again: it is the same run as a"), "{alone}");
    assert_eq!(replicate(&sessions[2..3]), Err(NotReplicated::NoExperiment));
}
