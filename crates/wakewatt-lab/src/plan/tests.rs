//! Plans: the shipped ones, what is refused and how it is said, and what they come to on recorded hosts.

use super::*;
use crate::setting_arms::resolve_arms;
use wakewatt_host::recorded;
use wakewatt_tune::knob::Host;
use wakewatt_tune::profile::{self, Profile};

fn profile(name: &str) -> Result<Profile, String> {
    Profile::parse(profile::shipped(name)?)
}

fn read(text: &str) -> Result<Plan, String> {
    parse(text, &profile)
}

const GOOD: &str = "format = 1\nname = \"mine\"\nquestion = \"Faster?\"\n[[arm]]\nname = \"found\"\n[[arm]]\nname = \"fast\"\nprofile = \"k4-ondemand\"\nset = [\"freq.max@cpus:0=2GHz\"]\nmax_latency = \"5us\"\ncommand = \"systemctl stop x\"\nundo_command = [\"systemctl\", \"start\", \"x\"]\n[[workload]]\nkind = \"wakeup\"\n";

#[test]
fn the_shipped_ones_are_read_and_ask_something() {
    for (name, text) in SHIPPED {
        let plan = read(text).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!(plan.name, *name);
        assert!(plan.question.ends_with('?') && plan.arms.len() > 1, "{name}");
    }
    assert!(shipped("k4-governers").unwrap_err().contains("did you mean k4-governors?"));
    let k4 = read(shipped("k4-governors").unwrap()).unwrap();
    assert_eq!((k4.arms[0].name.as_str(), k4.arms[1].name.as_str()), ("ondemand", "found"), "the baseline goes first");
}

#[test]
fn an_arm_is_settings_a_limit_and_a_command() {
    let plan = read(GOOD).unwrap();
    let arm = &plan.arms[1];
    let said: Vec<String> = arm.requests.iter().map(ToString::to_string).collect();
    assert_eq!(said, ["freq.governor=ondemand", "freq.tunable.ondemand.up_threshold=98", "freq.max@cpus:0=2GHz"]);
    assert_eq!(arm.limit, Some(ArmLimit::At(LatencyLimit::AtMostNs(5000))));
    assert_eq!(arm.command.as_ref().unwrap().0, ["sh", "-c", "systemctl stop x"]);
    assert_eq!((plan.looks, plan.again_every, plan.is_strict), (vec![8, 12, 20, 32], 1, false));
    // A profile's latency budget is a limit on the machine, which the experiment holds.
    let budget = read(
        &GOOD.replace("profile = \"k4-ondemand\"", "profile = \"latency\"").replace("max_latency = \"5us\"\n", ""),
    );
    assert!(budget.unwrap().arms[1].limit.is_some());
}

#[test]
fn an_agent_fills_its_place_and_no_other_plan_takes_one() {
    let observer = shipped("observer").unwrap();
    let evil = ["/opt/agent".to_string(), "--name=\"a\"\n[[arm]]".into()];
    let plan = read(&with_agent(observer, &evil).unwrap()).unwrap();
    assert_eq!((plan.arms.len(), plan.arms[1].beside.as_deref()), (2, Some(&evil[..])), "words stay words");
    assert_eq!(plan.arms[0].beside, None);
    assert!(with_agent(observer, &[]).unwrap_err().contains("behind --"));
    let idle = shipped("idle").unwrap();
    assert!(with_agent(idle, &evil).unwrap_err().contains("no place"));
    assert_eq!(with_agent(idle, &[]).unwrap(), idle);
    assert!(read(&GOOD.replace("[[workload]]", "beside = []\n[[workload]]")).unwrap_err().contains("beside: an empty"));
}

#[test]
fn wrong_words_are_named_with_the_nearest_right_one() {
    let with = |from: &str, to: &str| read(&GOOD.replace(from, to)).unwrap_err();
    for (from, to, says) in [
        ("question =", "qestion =", "did you mean question?"),
        ("max_latency =", "max_latancy =", "arm fast: max_latancy: no such key; did you mean max_latency?"),
        ("freq.max@", "freq.mx@", "did you mean freq.max?"),
        ("k4-ondemand", "k4-ondemnd", "did you mean k4-ondemand?"),
        ("kind = \"wakeup\"", "kind = \"wakup\"", "did you mean wakeup?"),
        ("kind = \"wakeup\"", "kind = \"wakeup\"\npeer = \"x\"", "workload wakeup: peer: no such key"),
        ("kind = \"wakeup\"", "kind = \"command\"", "say what to run"),
        ("[[workload]]", "[reject]\nothers_percent = -1\n[[workload]]", "reject.others_percent = -1: give 0 to 100"),
        ("[[workload]]", "[reject]\nsteal_percent = nan\n[[workload]]", "reject.steal_percent = NaN"),
        ("kind = \"wakeup\"", "kind = \"shop\"", "say how many"),
        ("kind = \"wakeup\"", "kind = \"disk\"\nengine = \"iouring\"", "did you mean io_uring?"),
        ("undo_command = [\"systemctl\", \"start\", \"x\"]\n", "", "say how it is taken back"),
        ("format = 1\n", "format = 2\n", "reads format 1"),
        ("format = 1\n", "format = 1\nbaseline = \"fst\"\n", "no arm fst; did you mean fast?"),
        ("format = 1\n", "format = 1\nlooks = [8]\nblocks = 8\n", "give one of them"),
        ("format = 1\n", "format = 1\nbudget = \"30\"\n", "has no unit"),
        ("format = 1\n", "format = 1\nblocks = \"8\"\n", "invalid type"),
        ("name = \"fast\"", "name = \"found\"", "named twice"),
        ("name = \"mine\"", "name = \"a/b\"", "letters, digits"),
        ("5us", "5", "max_latency: "),
        ("format = 1\n", "format = ", "TOML parse error"),
    ] {
        let why = with(from, to);
        assert!(why.contains(says), "{to:?}: {why}");
    }
    assert!(
        read("format = 1\nname = \"x\"\nquestion = \"\"\narm = []\nworkload = []\n")
            .unwrap_err()
            .contains("at least two")
    );
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[a-z\\[\\]=\"\\n0-9. -]{0,200}", cut in 0usize..400) {
        let _ = read(&text);
        let cut = GOOD.char_indices().nth(cut).map_or(GOOD.len(), |(at, _)| at);
        let _ = read(&GOOD[..cut]);
    }
}

#[test]
fn on_recorded_hosts_what_is_missing_is_skipped_with_the_reason() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts");
    let mut n = 0;
    for file in std::fs::read_dir(folder)
        .unwrap()
        .flatten()
        .map(|f| f.path())
        .filter(|p| p.extension().is_some_and(|e| e == "host"))
    {
        let source = recorded::open(&file).unwrap();
        let host = Host::read(&source);
        for (name, text) in SHIPPED {
            let plan = read(text).unwrap();
            let (ready, skipped) = resolve_arms(&host, &plan.arms);
            assert_eq!(ready.len() + skipped.len(), plan.arms.len(), "{name} on {}", file.display());
            assert!(skipped.iter().all(|s| !s.why.is_empty() && s.what.starts_with("arm ")));
            assert!(ready.iter().all(|a| !a.arm.settings.is_empty()));
            n += skipped.len();
        }
    }
    assert!(n > 10, "some host lacks some governor");
    let vm = recorded::open(
        &std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts/vm-haltpoll-2cpu.host"),
    )
    .unwrap();
    let (ready, skipped) = resolve_arms(&Host::read(&vm), &read(shipped("k4-governors").unwrap()).unwrap().arms);
    assert_eq!(ready.iter().map(|a| a.arm.id.as_str()).collect::<Vec<_>>(), ["found"], "a guest without cpufreq");
    assert!(skipped[0].why.contains("freq.governor"), "{:?}", skipped[0]);
}
