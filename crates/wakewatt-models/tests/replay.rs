//! A recording of a real kernel, replayed: the model decides as that kernel did, and other policies do what they should.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use wakewatt_core::record::wtrace::{Header, Item, Reader};
use wakewatt_models::kernel::Kernel;
use wakewatt_models::replay::slo::{Asked, Objective, Slo, slo};
use wakewatt_models::replay::{Change, Replay, Replayed, Side, Upgrade, sweep};

fn replayed(changes: &[&str], corrections: &[&str]) -> Replayed {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/traces/vm-haltpoll-6.18.wtrace");
    let bytes = std::fs::read(path).unwrap();
    let mut reader = Reader::new(&bytes).unwrap();
    let header = reader.header.clone();
    let parsed = |texts: &[&str]| texts.iter().map(|text| Change::parse(text).unwrap()).collect::<Vec<_>>();
    let mut replay = Replay::new(&header, &parsed(changes), &parsed(corrections)).unwrap();
    for item in reader.by_ref() {
        match item {
            Item::Pairs(pairs) => replay.pairs(&pairs),
            Item::Choices(choices) => replay.choices(&choices),
            Item::Mark(mark) => replay.mark(&mark),
        }
    }
    replay.finish()
}

/// What this machine had set, and the recording does not hold.
const NO_SPINNING: &[&str] = &["guest-halt-poll=0us"];

fn share(side: &Side, state: &str) -> f64 {
    side.states.iter().find(|s| s.state == state).map_or(0.0, |s| s.time_ratio)
}

#[test]
fn the_recorded_policy_returns_the_recorded_decisions_and_times() {
    let r = replayed(&[], NO_SPINNING);
    assert_eq!((r.n_compared, r.n_identical, r.is_trusted), (3137, 3137, Some(true)), "{}", r.trust);
    assert_eq!(r.predicted, r.recorded_again);
    let time = |side: &Side| side.states.iter().map(|s| s.time_ns).sum::<u64>() as f64;
    let wakes = |side: &Side| side.states.iter().map(|s| s.n_wakes).sum::<u64>() as f64;
    assert!((time(&r.recorded_again) / time(&r.recorded) - 1.0).abs() < 0.01);
    assert!(
        (wakes(&r.recorded_again) / wakes(&r.recorded) - 1.0).abs() < 0.02,
        "{:?} {:?}",
        r.recorded,
        r.recorded_again
    );
    assert!(r.remarks.iter().any(|words| words.contains("the governor became menu")));
}

#[test]
fn without_what_the_recording_lacks_fewer_decisions_are_alike() {
    let r = replayed(&[], &[]);
    assert!(r.identical_ratio.unwrap() < 1.0 && r.n_compared == 3137);
    // Rules of another kernel for what menu recorded: told apart, and said first.
    let other = replayed(&[], &["governor=ladder", "table=POLL:0us/0us,C1:400us/900us,C6:900us/2000us"]);
    assert_eq!(other.is_trusted, Some(false));
    assert!(other.trust.starts_with("Not to be trusted"), "{}", other.trust);
}

#[test]
fn limits_and_switched_off_states_are_kept() {
    let limited = replayed(&["max-latency=poll"], NO_SPINNING);
    assert_eq!((share(&limited.predicted, "POLL"), limited.predicted.wake_cost.max_ns), (1.0, 0));
    let deep = "table=POLL:0us/0us,C1:2us/2us,C6:133us/600us";
    let free = replayed(&["governor=menu", deep], NO_SPINNING);
    assert!(share(&free.predicted, "C6") > 0.5);
    for set in ["max-state=1", "disable=c6", "max-latency=50us"] {
        let held = replayed(&["governor=menu", deep, set], NO_SPINNING);
        assert_eq!(share(&held.predicted, "C6"), 0.0, "{set}");
        assert!(held.predicted.wake_cost.mean_ns <= free.predicted.wake_cost.mean_ns, "{set}");
        assert!(held.predicted.modelled_energy_uj > free.predicted.modelled_energy_uj, "{set}");
    }
    assert!(free.remarks.iter().any(|words| words.contains("is assumed")));
}

#[test]
fn what_cannot_be_asked_is_said() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/traces/vm-haltpoll-6.18.wtrace");
    let bytes = std::fs::read(path).unwrap();
    let header = Reader::new(&bytes).unwrap().header.clone();
    let refused = |header: &Header, text: &[&str]| {
        let changes: Vec<Change> = text.iter().map(|t| Change::parse(t).unwrap()).collect();
        Replay::new(header, &changes, &[]).unwrap_err().to_string()
    };
    assert_eq!(refused(&header, &["disable=C9"]), "no idle state `C9` in the table; it has POLL, haltpoll idle");
    let other = Header { governor: Some("own".into()), ..header.clone() };
    assert!(refused(&other, &[]).contains("governor is own, which has no model"));
    assert!(refused(&Header { kernel: "elm".into(), ..header.clone() }, &[]).contains("kernel is elm"));
    assert!(refused(&Header { tick_ns: None, ..header.clone() }, &[]).contains("how long a tick is"));
    assert!(refused(&Header { tables: Vec::new(), ..header }, &[]).contains("the recording has none"));
}

const DEEP: &str = "table=POLL:0us/0us,C1:2us/2us,C6:133us/600us";

fn asked_slo(objective: &str, sleeper_ratio: Option<f64>, corrections: &[&str]) -> Slo {
    let replays: Vec<(u64, Replayed)> = [0u64, 2_000, 133_000]
        .into_iter()
        .map(|ns| {
            let limit = sweep::asking(ns).to_string();
            (ns, replayed(&["governor=menu", DEEP, &limit], corrections))
        })
        .collect();
    let objective = Objective::parse(objective).unwrap();
    slo(&replays, &Asked { objective, sleeper_ratio, hop_cost_ns: 0 }).unwrap()
}

#[test]
fn an_objective_becomes_the_largest_limit_that_keeps_it() {
    // Forty hops that all sleep in C6 cost 40 x 66.5 us; a limit of 2 us costs 40 us.
    let found = asked_slo("p99 < 500us over 40 hops", Some(1.0), NO_SPINNING);
    assert_eq!(found.limit.map(|l| l.to_string()).as_deref(), Some("2us"), "{found:?}");
    assert_eq!(found.command.as_deref(), Some("wakewatt tune plan --max-latency 2us"));
    assert!(
        found.answer.starts_with("The largest latency limit that keeps p99 < 500us over 40 hops is 2us"),
        "{}",
        found.answer
    );
    let of = |at: usize| (found.limits[at].percentile_ns, found.limits[at].worst_percentile_ns);
    assert_eq!((of(0), of(1).1 >= of(1).0), ((0, 0), true));
    assert!((1_000_000..=2_660_000).contains(&of(2).0) && of(2).1 == 2 * of(2).0, "{:?}", found.limits);
    assert!(found.limits[0].modelled_energy_uj > found.limits[2].modelled_energy_uj);
    // Of parallel hops the slowest counts: one exit.
    let parallel = asked_slo("p99 < 500us over 40 parallel hops", Some(1.0), NO_SPINNING);
    assert_eq!((parallel.command, parallel.limits[2].percentile_ns), (None, 66_500));
    assert!(parallel.answer.starts_with("Every latency limit keeps"), "{}", parallel.answer);
    let never = asked_slo("p99 < 0ns", None, NO_SPINNING);
    assert!(never.limit.is_none() && never.answer.starts_with("No latency limit keeps"), "{}", never.answer);
    // Nobody sleeps where no hop finds a sleeper.
    assert!(asked_slo("p99 <= 0ns over 40 hops", Some(0.0), NO_SPINNING).limits.iter().all(|l| l.is_kept));
    let share = asked_slo("p99 < 500us over 40 hops", None, NO_SPINNING);
    assert!(
        share.sleeper_ratio > 0.2 && share.sleeper_ratio <= 1.0 && share.sleeper_basis.contains("idle"),
        "{share:?}"
    );
    let wrong =
        asked_slo("p99 < 500us", None, &["governor=ladder", "table=POLL:0us/0us,C1:400us/900us,C6:900us/2000us"]);
    assert!(wrong.trust.starts_with("Not to be trusted") && wrong.is_trusted == Some(false));
}

fn upgraded(kernels: (Option<&str>, &str), changes: &[&str]) -> Upgrade {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/traces/vm-haltpoll-6.18.wtrace");
    let bytes = std::fs::read(path).unwrap();
    let mut reader = Reader::new(&bytes).unwrap();
    let header = reader.header.clone();
    let parsed = |texts: &[&str]| texts.iter().map(|text| Change::parse(text).unwrap()).collect::<Vec<_>>();
    let kernel = |text: &str| Kernel::parse(text).unwrap();
    let kernels = (kernels.0.map(kernel), kernel(kernels.1));
    let mut replay = Replay::upgrade(&header, kernels, &parsed(changes), &parsed(NO_SPINNING)).unwrap();
    for item in reader.by_ref() {
        match item {
            Item::Pairs(pairs) => replay.pairs(&pairs),
            Item::Choices(choices) => replay.choices(&choices),
            Item::Mark(mark) => replay.mark(&mark),
        }
    }
    let (upgrade, replayed) = replay.finish_upgrade();
    assert_eq!((replayed.predicted, replayed.recorded_again), (upgrade.new.clone(), upgrade.old.clone()));
    upgrade
}

#[test]
fn an_upgrade_is_two_kernels_on_the_same_inputs() {
    let menu = ["governor=menu", DEEP];
    let same = upgraded((Some("6.1.158"), "6.1.158"), &menu);
    assert_eq!((same.n_different, same.old == same.new), (0, true));
    assert!(same.judgement.ends_with("nothing changes here."), "{}", same.judgement);
    // Between these two menu stopped to look at short sleeps before the timer: 493 of 3,335 decisions here.
    let menu = ["governor=menu", "table=POLL:0us/0us,C1:1us/20us,C2:15us/300us,C3:70us/1ms,C6:200us/3ms"];
    let up = upgraded((Some("6.1.145"), "6.6.9"), &menu);
    assert!(up.n_different > 0 && up.n_different < up.n_decisions, "{}", up.judgement);
    assert_eq!(up.moves.iter().map(|m| m.n).sum::<u64>(), up.n_different);
    assert!(up.moves.windows(2).all(|w| w[0].n >= w[1].n));
    assert_eq!([&up.policies[0][0].kernel, &up.policies[0][1].kernel], ["6.1.145", "6.6.9"]);
    assert!(
        up.judgement.starts_with("From 6.1.145 to 6.6.9, ") && up.judgement.contains("(model)"),
        "{}",
        up.judgement
    );
    assert!(up.trust.starts_with("The model decided as the recorded kernel did in 100.00 %"), "{}", up.trust);
    // Back is the mirror.
    let down = upgraded((Some("6.6.9"), "6.1.145"), &menu);
    assert_eq!((down.n_different, &down.old, &down.new), (up.n_different, &up.new, &up.old));
    let vendor = upgraded((None, "5.14.0-427.13.1.el9_4.x86_64"), &menu);
    assert!(vendor.remarks.iter().any(|r| r.contains("Red Hat") && r.contains("are assumed")), "{:?}", vendor.remarks);
    assert_eq!(vendor.policies[0][1].basis, "assumed");
}

#[test]
fn a_table_out_of_order_is_used_and_said() {
    let r = replayed(&["governor=menu", "table=POLL:0us/0us,C1:90us/90us,C6:30us/600us"], NO_SPINNING);
    assert!(
        r.remarks.iter().any(|w| w.contains("exit latency of C6 is below that of a shallower state")),
        "{:?}",
        r.remarks
    );
    assert!(!replayed(&["governor=menu", DEEP], NO_SPINNING).remarks.iter().any(|w| w.contains("is below that")));
}

/// The recording under menu, with the inputs of every `nth` stay left out.
fn without_inputs_of_every(nth: usize, changes: &[&str]) -> Replayed {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/traces/vm-haltpoll-6.18.wtrace");
    let bytes = std::fs::read(path).unwrap();
    let mut reader = Reader::new(&bytes).unwrap();
    let header = Header { governor: Some("menu".into()), ..reader.header.clone() };
    let changes: Vec<Change> = changes.iter().map(|text| Change::parse(text).unwrap()).collect();
    let mut replay = Replay::new(&header, &changes, &[]).unwrap();
    let mut n = 0;
    for item in reader.by_ref() {
        if let Item::Pairs(mut pairs) = item {
            for pair in &mut pairs {
                n += 1;
                if n % nth == 0 {
                    (pair.sleep_length_ns, pair.is_tick_stopped) = (None, None);
                }
            }
            replay.pairs(&pairs);
        }
    }
    replay.finish()
}

#[test]
fn a_recording_that_cannot_be_followed_says_so_first() {
    let r = without_inputs_of_every(1, &[]);
    assert_eq!((r.is_trusted, r.n_compared, r.predicted.states.iter().map(|s| s.n).sum::<u64>()), (Some(false), 0, 0));
    assert!(r.trust.starts_with("No verdict: 0.0 % of "), "{}", r.trust);
    assert!(
        r.n_left_out > 0 && r.recorded.states.iter().map(|s| s.n).sum::<u64>() > 3000,
        "what was recorded still counts"
    );
    assert_eq!((r.followed.n_followed, r.followed.n_recorded > 3000), (0, true), "{:?}", r.followed);
}

/// A third of the stays lack their inputs: enough decisions can be compared, and too few periods lived.
#[test]
fn a_share_below_the_bound_gives_no_verdict() {
    let under = |ns: u64| (ns, without_inputs_of_every(3, &[DEEP, &sweep::asking(ns).to_string()]));
    let replays: Vec<(u64, Replayed)> = [0, 2_000, 133_000].into_iter().map(under).collect();
    for (ns, r) in &replays {
        let share = r.followed.ratio();
        assert!(share > 0.0 && share < 0.95 && r.is_trusted == Some(false), "{ns}: {:?}", r.followed);
        assert!(r.trust.starts_with("No verdict: "), "{}", r.trust);
    }
    let asked = Asked { objective: Objective::parse("p99 < 500ms").unwrap(), sleeper_ratio: Some(1.0), hop_cost_ns: 0 };
    let told = slo(&replays, &asked).unwrap();
    assert_eq!((told.limit, &told.command, told.limits.iter().any(|l| l.is_kept)), (None, &None, false));
    assert!(told.answer.starts_with("No latency limit is named"), "{}", told.answer);
    let swept = sweep::sweep(&replays);
    assert!(swept.knee_ns.is_none() && swept.trust.starts_with("No verdict: "), "{}", swept.trust);
    // One in a hundred is within the bound.
    let r = without_inputs_of_every(100, &[]);
    assert!(r.followed.is_enough() && r.followed.ratio() < 1.0 && !r.trust.starts_with("No verdict"), "{}", r.trust);
}

/// The strictest limit may use up what a replay may predict, while the loosest is followed: the least bounds them all.
#[test]
fn one_limit_that_is_not_followed_leaves_all_without_a_verdict() {
    let mut all: Vec<(u64, Replayed)> = [0, 2_000, 133_000]
        .into_iter()
        .map(|ns| (ns, replayed(&["governor=menu", DEEP, &sweep::asking(ns).to_string()], NO_SPINNING)))
        .collect();
    let asked = Asked { objective: Objective::parse("p99 < 500ms").unwrap(), sleeper_ratio: Some(1.0), hop_cost_ns: 0 };
    assert!(slo(&all, &asked).unwrap().limit.is_some());
    all[0].1.followed.n_followed = 1;
    assert_eq!((slo(&all, &asked).unwrap().limit, sweep::sweep(&all).knee_ns), (None, None));
}

/// A verdict by claims says so in its own sentence.
#[test]
fn claimed_exits_are_named_with_the_verdict() {
    let claimed = asked_slo("p99 < 500us over 40 hops", Some(1.0), NO_SPINNING);
    assert!(claimed.answer.ends_with("claimed, not measured.") && claimed.answer.contains("C6"), "{}", claimed.answer);
    assert!(claimed.trust.ends_with("claimed, not measured."), "{}", claimed.trust);
    let never = asked_slo("p99 < 0ns", None, NO_SPINNING);
    assert!(never.answer.ends_with("claimed, not measured."), "{}", never.answer);
    // Who polls leaves nothing.
    let polls = replayed(&["max-latency=poll"], NO_SPINNING);
    assert_eq!(polls.predicted.claimed_with(&Side::default()), Vec::<&str>::new());
    let up = upgraded((Some("6.1.145"), "6.6.9"), &["governor=menu", DEEP]);
    assert!(up.judgement.ends_with("claimed, not measured."), "{}", up.judgement);
}

/// Recorded with exact inputs on an emulated arm64 machine under Debian's 6.1; for a second the other governor had taken over, and no remark
/// says so (fixtures/traces).
#[test]
fn a_governor_that_takes_over_while_it_is_recorded_is_known_by_its_choices() {
    for governor in ["menu", "ladder"] {
        let path = format!("{}/../../fixtures/traces/arm64-{governor}-exact-6.1.wtrace", env!("CARGO_MANIFEST_DIR"));
        let bytes = std::fs::read(&path).unwrap();
        let mut reader = Reader::new(&bytes).unwrap();
        let header = reader.header.clone();
        // The kernel's configuration did not lie there; Debian's says 250.
        let mut replay = Replay::new(&header, &[], &[Change::Hz(250)]).unwrap();
        for item in reader.by_ref() {
            match item {
                Item::Pairs(pairs) => replay.pairs(&pairs),
                Item::Choices(choices) => replay.choices(&choices),
                Item::Mark(mark) => replay.mark(&mark),
            }
        }
        let r = replay.finish();
        assert!(r.n_compared > 3000 && r.n_identical == r.n_compared, "{governor}: {}", r.trust);
        let rebuilt = r.rebuilt.unwrap();
        assert!(rebuilt.n_compared > 3000 && rebuilt.identical_ratio > Some(0.98), "{governor}: {rebuilt:?}");
        assert!(r.remarks.iter().any(|r| r.contains("another governor decided for a time")), "{:?}", r.remarks);
    }
}
