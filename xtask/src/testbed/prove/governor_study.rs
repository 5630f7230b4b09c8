//! The whole governor study of case K4, end to end: every arm of the shipped plan, eleven levels, the shop at three sizes.
//!
//! Only its times are shortened, since time inside an emulator means nothing: nothing measured is judged, and an interrupt
//! ends the run long before a verdict. What is judged: all ten arms take part, a watcher beside the experiment sees every governor and both tuned thresholds on both
//! policies, the clock's register is really written to, watts are absent and not 0, the page is made, and every attribute
//! reads as before.

use super::dump::{self, Dump};
use super::{Inside, Proof, ProofResult, as_filed, no_words};
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) const PROOF: Proof = Proof {
    name: "k4-governors",
    machine: "governors",
    words: no_words,
    shape: as_filed,
    script,
    judge,
    boots: super::once,
};

const PLAN: &str = include_str!("../../../../crates/wakewatt-lab/plans/k4-governors.toml");
/// Replaced in the plan: what keeps it under a quarter of an hour.
const SHORTER: [(&str, &str); 3] = [
    ("settle = \"10s\"", "settle = \"100ms\""),
    ("measure = \"60s\"", "measure = \"200ms\""),
    // The watcher is another process, and the emulator's own threads are steal.
    ("again_every = 3", "again_every = 1\n\n[reject]\nothers_percent = 100\nsteal_percent = 100"),
];
/// Two rounds: every arm is entered from others and left for others.
const LEAST_ROUNDS: u64 = 2;
/// What stays different, and why.
const KEPT: (&str, &str) =
    ("/sys/fs/cgroup/cgroup.subtree_control", "a controller that is switched on restricts nothing");
const GOVERNORS: [&str; 6] = ["performance", "powersave", "userspace", "ondemand", "conservative", "schedutil"];

/// A line a second: both policies' governors, the clock asked for, and the thresholds where they are there.
const WATCH: &str = r#"
watch() {
  while [ ! -e stop ]; do
    line=
    for f in cpufreq/policy0/scaling_governor cpufreq/policy1/scaling_governor cpufreq/policy0/scaling_cur_freq \
             cpufreq/ondemand/up_threshold cpufreq/conservative/up_threshold; do
      v=-; [ -e /sys/devices/system/cpu/$f ] && read -r v </sys/devices/system/cpu/$f
      line="$line $v"
    done
    echo "$line"; sleep 1
  done
}
"#;

fn plan() -> String {
    SHORTER.iter().fold(PLAN.to_string(), |plan, (long, short)| plan.replace(long, short))
}

fn script() -> String {
    format!(
        "{}{WATCH}\ncat >k4.toml <<'PLAN'\n{}\nPLAN\n\
         run dry wakewatt experiment k4.toml --dry-run\ndump quiet0\ndump quiet1\nwatch >watched 2>/dev/null &\n\
         run study timeout -s INT 540 wakewatt experiment k4.toml --seed 4 --run-dir /tmp/k4 --save k4.json -o k4.html\ntouch stop\nwait\n\
         dump after\nrun report wakewatt report k4.json -o k4.md\n",
        dump::SHELL,
        plan()
    )
}

fn judge(inside: &Inside) -> Result<ProofResult> {
    let mut verdict = ProofResult::default();
    verdict.step(inside, "dry", 0, &["consolidate"]);
    verdict.step(inside, "study", 130, &["it was interrupted", "Settings read as before", "watts are absent"]);
    verdict.step(inside, "report", 0, &[]);
    let run: Value = serde_json::from_slice(&inside.bytes("k4.json")).context("k4.json")?;
    let list = |name: &str| run[name].as_array().cloned().unwrap_or_default();
    let blocks = run["experiment"]["blocks"].as_array().cloned().unwrap_or_default();
    let arms: BTreeSet<&str> = blocks.iter().filter_map(|b| b["arm"].as_str()).collect();
    verdict.expect(arms.len() == 11, || format!("not ten arms and the baseline again took part: {arms:?}"));
    verdict.expect(run["conclusions"]["skipped"].as_array().is_some_and(Vec::is_empty), || {
        format!("left out: {}", run["conclusions"]["skipped"])
    });
    let n_rounds = blocks.iter().filter_map(|b| b["round"].as_u64()).max().map_or(0, |last| last + 1);
    verdict.expect(n_rounds >= LEAST_ROUNDS, || format!("only {n_rounds} rounds"));
    let loads = list("load");
    let n_levels = |kind: &str| {
        loads
            .iter()
            .filter(|l| l["kind"] == kind)
            .map(|l| l["levels"].as_array().map_or(0, Vec::len))
            .collect::<Vec<_>>()
    };
    let (steps, shop) = (n_levels("steps"), n_levels("shop"));
    verdict
        .expect(steps.len() == 10 && steps.iter().all(|n| *n == 11), || format!("levels of graduated load: {steps:?}"));
    verdict.expect(shop.len() == 10 && shop.iter().all(|n| *n == 3), || format!("sizes of the shop: {shop:?}"));
    let metrics = run["experiment"]["metrics"].as_array().cloned().unwrap_or_default();
    let is_watts = |m: &&Value| m["unit"] == "microwatts";
    let at: Vec<usize> = (0..metrics.len()).filter(|i| is_watts(&&metrics[*i])).collect();
    let has_watts = blocks.iter().any(|b| at.iter().any(|i| !b["values"][i].is_null()));
    verdict.expect(!has_watts, || "watts without a meter".into());
    watched(inside, &mut verdict);
    let before = Dump::read(inside, "quiet0");
    let known = before.differences(&Dump::read(inside, "quiet1"));
    let left = before.differences(&Dump::read(inside, "after"));
    let is_fault = |line: &String| !known.contains(line) && !line.starts_with(KEPT.0);
    verdict.wrong.extend(left.into_iter().filter(is_fault).map(|line| format!("after: {line}")));
    let rejected: Vec<String> = run["conclusions"]["rejected"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|r| format!("{} of {}: {}", r["n"], r["arm"], r["why"]))
        .collect();
    verdict.counted.push(format!(
        "{} blocks of ten arms in {n_rounds} rounds, {} metrics each; {} attributes compared, but for {} ({}); did not count: {}",
        blocks.len(),
        metrics.len(),
        before.counts().1,
        KEPT.0,
        KEPT.1,
        if rejected.is_empty() { "none".into() } else { rejected.join("; ") }
    ));
    Ok(verdict)
}

/// What the watcher saw.
fn watched(inside: &Inside, verdict: &mut ProofResult) {
    let text = inside.text("watched");
    let lines: Vec<Vec<&str>> =
        text.lines().map(|l| l.split_whitespace().collect()).filter(|l: &Vec<_>| l.len() == 5).collect();
    let seen = |at: usize| lines.iter().map(|l| l[at]).filter(|v| *v != "-").collect::<BTreeSet<_>>();
    for policy in [0, 1] {
        let missing: Vec<&&str> = GOVERNORS.iter().filter(|g| !seen(policy).contains(**g)).collect();
        verdict.expect(missing.is_empty(), || format!("policy{policy} never had {missing:?}"));
    }
    let clocks = seen(2);
    verdict.expect(clocks.len() >= 3, || format!("the clock was only ever asked for {clocks:?}"));
    verdict.expect(seen(3).contains("98") && seen(4).contains("98"), || "a tuned threshold was never seen".into());
    let n_of = |governor: &str| lines.iter().filter(|l| l[0] == governor && l[1] == governor).count();
    let all: Vec<String> = GOVERNORS.iter().map(|g| format!("{g} {}", n_of(g))).collect();
    verdict.counted.push(format!(
        "seen once a second on both policies: {}; clocks asked for: {}",
        all.join(", "),
        clocks.into_iter().collect::<Vec<_>>().join(", ")
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_is_shortened_in_its_times_only() {
        assert!(SHORTER.iter().all(|(long, _)| PLAN.matches(long).count() == 1));
        assert_eq!(plan().matches("[[arm]]").count(), 10);
    }
}
