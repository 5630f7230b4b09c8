//! Made-up loads, before and after, and what gates say of them.

use super::*;
use crate::compare::runs::compare_runs;
use crate::evidence::Evidence;
use crate::samples::Samples;
use crate::samples::load::LoadRun;
use crate::samples::replayed::Replayed;
use crate::stats::random::Random;

/// One window: so many operations a second, so much CPU time for each.
type Level = (f64, u64);

/// A run of loads, each with so many windows of one level.
fn run(loads: &[(&str, Vec<Level>)]) -> Evidence {
    let level = |(per_s, cpu_ns): &Level| {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // made up
        let busy_ns = (*cpu_ns as f64 * per_s) as u64;
        let json = serde_json::json!({ "ask": { "share": 0.5 }, "phases_ns": [0, 0, 1, 0], "target_per_s": 500.0,
            "window": { "start_at_ns": 0, "end_at_ns": 1_000_000_000 }, "n_planned": 1000, "n_done": 1000, "n_failed": 0,
            "per_s": per_s, "parts": [], "cpu_ns": busy_ns, "system_ns": 1, "cpus": [], "idle": [],
            "disturbances": [], "is_invalid": [] });
        serde_json::from_value(json).unwrap()
    };
    let load = |(title, levels): &(&str, Vec<Level>)| LoadRun {
        title: (*title).into(),
        levels: levels.iter().map(level).collect(),
        ..LoadRun::default()
    };
    Evidence::of(Samples { load: loads.iter().map(load).collect(), ..Samples::default() })
}

fn windows(per_s: f64, cpu_ns: f64) -> Vec<Level> {
    let jitter = [0.0, 0.004, -0.003, 0.001, -0.002, 0.002];
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // made up
    jitter.iter().map(|j| (per_s * (1.0 + j), (cpu_ns * (1.0 - j)) as u64)).collect()
}

fn gate(rules: &[&str], a: &[Evidence], b: &[Evidence]) -> Gate {
    let rules: Vec<Rule> = rules.iter().map(|text| text.parse().unwrap()).collect();
    judge(&rules, &compare_runs(a, b).runs.unwrap())
}

#[test]
fn worse_beyond_doubt_fails_and_the_other_way_does_not() {
    let (fast, slow) = ([run(&[("x", windows(500.0, 9e5))])], [run(&[("x", windows(400.0, 9e5))])]);
    let found = gate(&["slower:5%"], &fast, &slow);
    assert_eq!((found.end, found.checks.len()), (GateEnd::Failed, 1), "{found:#?}");
    let check = &found.checks[0];
    assert!(check.fails && check.worse_ratio > 0.24 && check.worse_ratio < 0.26, "{check:?}");
    let (low, high) = (check.worse_low_ratio.unwrap(), check.worse_high_ratio.unwrap());
    assert!(low > 0.05 && low < 0.25 && high > 0.25, "{check:?}");
    assert!(check.sentence.contains("worse beyond doubt") && check.sentence.contains("rule slower:5%"), "{check:?}");
    // As the numbers below it say: both sides, which need not be one machine.
    assert!(check.sentence.contains("covers these two runs"), "{check:?}");
    assert_eq!(gate(&["slower:5%"], &slow, &fast).end, GateEnd::Passed, "more work done is not worse");
    assert_eq!(gate(&["slower:60%"], &fast, &slow).checks[0].standing, Standing::Holds);
    assert_eq!(gate(&["cpu:5%"], &fast, &slow).end, GateEnd::Passed, "the CPU time is the same");
    let both = gate(&["rate:5%", "cpu:5%"], &fast, &slow);
    assert!(both.checks.len() == 2 && both.checks[0].fails && !both.checks[1].fails, "what fails stands first");
}

#[test]
fn not_knowing_fails_only_where_it_was_asked() {
    let few = |rate: f64| [run(&[("x", windows(rate, 9e5)[..2].to_vec())])];
    let found = gate(&["slower:5%"], &few(500.0), &few(300.0));
    assert_eq!((found.end, found.checks[0].standing), (GateEnd::Passed, Standing::NoInterval));
    assert!(found.sentence.contains("nothing can be told") && found.checks[0].p_value.is_none(), "{found:?}");
    assert!(found.checks[0].sentence.contains("load --repeat 4"), "{found:?}");
    assert_eq!(gate(&["slower:5%", "unsure"], &few(500.0), &few(300.0)).end, GateEnd::Failed);
    let noisy = |seed| {
        let mut random = Random::new(seed);
        [run(&[("x", (0..6).map(|_| (500.0 * (random.normal() * 0.2).exp(), 1)).collect())])]
    };
    let found = gate(&["slower:5%", "unsure"], &noisy(1), &noisy(2));
    assert_eq!((found.checks[0].standing, found.end), (Standing::WideInterval, GateEnd::Failed), "{found:?}");
}

#[test]
fn a_rule_with_nothing_to_look_at_has_not_passed() {
    let same = [run(&[("x", windows(500.0, 9e5))])];
    let found = gate(&["slower:5%", "watts:3%"], &same, &same);
    assert_eq!((found.end, found.without_quantity.len()), (GateEnd::NothingToJudge, 1), "{found:?}");
    assert!(found.sentence.contains("watts:3%: no power was measured on both sides"), "{found:?}");
    assert_eq!(gate(&["latency@p99:5%"], &same, &same).end, GateEnd::NothingToJudge);
    assert_eq!(gate(&["unsure"], &same, &same).end, GateEnd::NothingToJudge);
    let slow = [run(&[("x", windows(300.0, 9e5))])];
    assert_eq!(gate(&["slower:5%", "watts:3%"], &same, &slow).end, GateEnd::Failed, "what failed is said first");
    let mut modelled = same.clone();
    modelled[0].samples = Samples { replays: vec![Replayed::default()], ..Samples::default() };
    assert_eq!(gate(&["any:5%"], &modelled, &modelled).end, GateEnd::NothingToJudge, "a model proves no change");
}

/// So many windows, each of which resembles the one before.
fn moody(random: &mut Random) -> Vec<Level> {
    let mut mood = random.normal();
    let window = |_| {
        mood = 0.8 * mood + 0.6 * random.normal();
        (500.0 * (0.03 * mood).exp(), 1)
    };
    (0..6).map(window).collect()
}

/// One run on each side says nothing of the next pair, and the gate that fails says so.
#[test]
fn a_failure_of_two_runs_says_what_it_holds_for() {
    let dated = |per_s: f64, at_s: u64| {
        let mut run = run(&[("x", windows(per_s, 9e5))]);
        run.made_at_s = Some(at_s);
        run
    };
    let two = gate(&["slower:5%"], &[dated(500.0, 0)], &[dated(400.0, 3_600)]);
    assert!(two.sentence.contains("holds for these two runs") && two.sentence.contains("in turns"), "{}", two.sentence);
    let side = |per_s: f64, hours: [u64; 3]| hours.map(|hour| dated(per_s * (1.0 + 0.001 * hour as f64), hour * 3_600));
    let after = gate(&["slower:5%"], &side(500.0, [0, 1, 2]), &side(400.0, [3, 4, 5]));
    assert!(after.end == GateEnd::Failed && after.sentence.contains("did not take turns"), "{}", after.sentence);
    let in_turns = gate(&["slower:5%"], &side(500.0, [0, 3, 4]), &side(400.0, [1, 2, 5]));
    assert_eq!((in_turns.end, in_turns.checks[0].covers), (GateEnd::Failed, Some(Covers::Machine)));
    assert!(in_turns.sentence.ends_with(").") && !in_turns.sentence.contains("holds for"), "{}", in_turns.sentence);
}

/// Twelve things that nobody changed: one in forty gates may fail, whatever the number that is looked at.
#[test]
fn gates_over_many_quantities_fail_rarely_where_nothing_changed() {
    let (mut n_failed, mut n_single) = (0, 0);
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let mut side = || {
            let titles = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
            let loads = titles.map(|title| (title, moody(&mut random)));
            [run(&loads)]
        };
        let found = gate(&["rate:0%"], &side(), &side());
        n_failed += usize::from(found.end == GateEnd::Failed);
        n_single += usize::from(found.checks.iter().any(|c| c.standing == Standing::MayBeChance || c.fails));
    }
    println!("{n_failed} of 400 gates fail where nothing changed; {n_single} would if each quantity were judged alone");
    assert!(n_failed <= 16, "{n_failed} of 400: one in forty, and two standard errors");
    assert!(n_single > 2 * n_failed, "{n_single}: looking at many at once would not be worth a correction");
}

#[test]
fn a_real_change_is_found_among_many() {
    let side = |by: f64| {
        let of = |title, at: usize| (title, windows(500.0 * if at == 3 { by } else { 1.0 }, 9e5));
        [run(&[of("a", 0), of("b", 1), of("c", 2), of("d", 3), of("e", 4)])]
    };
    let found = gate(&["any:5%"], &side(1.0), &side(0.7));
    let failing: Vec<&str> = found.checks.iter().filter(|c| c.fails).map(|c| c.title.as_str()).collect();
    assert_eq!(failing, ["d, 50 % load: rate"], "{found:#?}");
}
