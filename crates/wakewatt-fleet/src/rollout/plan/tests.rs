//! What plans say, and what is refused with the nearest right word.

use super::*;

fn example() -> String {
    EXAMPLE.into()
}

#[test]
fn the_example_is_a_plan_and_says_what_its_comments_say() {
    let plan = parse(EXAMPLE).unwrap();
    assert_eq!(plan.change.words(), ["--set=idle.max-latency=50us"]);
    assert_eq!((plan.stages.len(), plan.gates.len()), (3, 2));
    assert_eq!((&plan.stages[0].gates[..], &plan.stages[2].gates[..]), (&[0, 1][..], &[0][..]));
    assert_eq!(plan.on_failure, OnFailure::UndoAll);
    assert_eq!(plan.unfit(40), None);
    // Every key that a comment shows is one; what firmware is set to stands alone.
    const FIRMWARE: [&str; 3] = ["bios", "reboot", "boot_within"];
    const LINUX: [&str; 3] = ["set", "profile", "max_latency"];
    let uncommented = |is_wanted: &dyn Fn(&str) -> bool, left_out: &[&str]| {
        let mut all = String::new();
        for line in EXAMPLE.lines() {
            let bare = line.strip_prefix("# ").unwrap_or(line);
            let key = bare.split_once(" = ").map_or("", |(key, _)| key);
            if left_out.contains(&key) {
                continue;
            }
            let is_key = !key.is_empty() && key.bytes().all(|b| b == b'_' || b.is_ascii_lowercase());
            all += if (is_key || bare.starts_with("[[")) && is_wanted(key) { bare } else { line };
            all.push('\n');
        }
        all
    };
    let plan = parse(&uncommented(&|key| FIRMWARE.contains(&key), &LINUX)).unwrap();
    assert_eq!(plan.change.bios, ["bios.c-states=off"]);
    let plan = parse(&uncommented(&|_| true, &FIRMWARE)).unwrap();
    assert_eq!((plan.gates.len(), plan.max_left_out, plan.targets.is_all), (4, 0, true));
}

#[test]
fn a_wrong_key_is_answered_with_the_nearest() {
    for (from, to, said) in [
        ("format = 1", "format = 2", "this wakewatt reads format 1"),
        ("[targets]", "[target]", "did you mean targets?"),
        ("groups =", "gruops =", "targets.gruops: no such key; did you mean groups?"),
        ("canary = 1", "count = 1", "the first stage is the canary"),
        ("percent = 25", "percent = 250", "percent = 250"),
        ("percent = 25", "percent = 25\ncount = 2", "one of count and percent"),
        ("below = 0.01", "bellow = 0.01", "did you mean below?"),
        ("below = 0.01", "", "give below = NUMBER"),
        ("gates = [\"errors\"]", "gates = [\"error\"]", "did you mean errors?"),
        ("compare = \"p99_s\"", "compare = \"p99\"", "did you mean p99_s?"),
        ("compare = \"p99_s\"", "compare = \"joules_per_work_j\"", "needs work"),
        ("at_most_ratio = 1.05", "", "at_most_ratio is missing"),
        ("cannot_tell = \"hold\"", "cannot_tell = \"maybe\"", "maybe"),
        ("set = [\"idle.max-latency=50us\"]", "profile = \"../x.toml\"", "a file of yours is not on the nodes"),
        ("set = [\"idle.max-latency=50us\"]", "set = []", "say what is changed"),
        ("groups = [\"web\"]", "groups = []", "say which nodes"),
        ("name = \"latency-budget\"", "name = \"a b\"", "letters, digits"),
        ("pause = \"10m\"", "pause = \"10 parsecs\"", "pause"),
    ] {
        let text = example().replacen(from, to, 1);
        assert_ne!(text, EXAMPLE, "{from} is not in the example");
        let why = parse(&text).unwrap_err();
        assert!(why.contains(said), "{to}: {why}");
    }
}

#[test]
fn nodes_that_nobody_boots_are_not_compared() {
    let firmware = example().replacen("set = [\"idle.max-latency=50us\"]", "bios = [\"bios.c-states=off\"]", 1);
    // It can be read all the same: a rollout that was begun with it must be taken back.
    let why = parse(&firmware).unwrap().unfit(40).unwrap();
    assert!(why.contains("gate p99: it would compare nodes that this plan does not boot"), "{why}");
    let restarted = firmware.replacen("[targets]", "reboot = \"gently\"\n[targets]", 1);
    assert_eq!(parse(&restarted).unwrap().unfit(40), None);
}

#[test]
fn nodes_are_meant_by_group_label_or_name() {
    let labels = |words: &[&str]| {
        words
            .iter()
            .map(|w| w.split_once('=').unwrap_or((w, "")))
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect()
    };
    let targets = |f: fn(&mut Targets)| {
        let mut t = Targets { except: vec!["n9".into()], ..Targets::default() };
        f(&mut t);
        t
    };
    let web = targets(|t| t.groups = vec!["web".into(), "db".into()]);
    assert!(web.has("n1", &labels(&["web"])) && !web.has("n1", &labels(&["x"])) && !web.has("n9", &labels(&["web"])));
    let labelled = targets(|t| t.labels = vec!["pool=web".into(), "fast".into()]);
    assert!(labelled.has("n1", &labels(&["pool=web", "fast=1"])) && !labelled.has("n1", &labels(&["pool=web"])));
    let named = targets(|t| t.hosts = vec!["n1".into()]);
    assert!(named.has("n1", &labels(&[])) && !named.has("n2", &labels(&[])), "no labels are not all labels");
}

#[test]
fn a_window_that_cannot_cover_its_stage_is_refused_before_anything_happens() {
    let short = example().replacen("[change]", "confirm_within = \"5m\"\n[change]", 1);
    let why = parse(&short).unwrap().unfit(40).unwrap();
    assert!(why.contains("confirm_within = 300s: stage canary with 1 nodes may take"), "{why}");
    let plan = parse(EXAMPLE).unwrap();
    assert!(plan.needed_ms(0, 1) >= 600_000 + 600_000 + 60_000);
    assert!(plan.unfit(1).unwrap().contains("no node is left"), "{:?}", plan.unfit(1));
    let all = example().replacen("gates = [\"errors\"]", "", 1);
    let why = parse(&all).unwrap().unfit(40).unwrap();
    assert!(why.contains("gate p99 needs 6"), "{why}");
}

#[test]
fn stages_take_their_nodes_in_order() {
    let plan = parse(EXAMPLE).unwrap();
    let of = plan.stages_of(10);
    let n = |stage| of.iter().filter(|s| **s == Some(stage)).count();
    assert_eq!((n(0), n(1), n(2)), (1, 3, 6));
    assert!(plan.stages_of(0).is_empty());
}
