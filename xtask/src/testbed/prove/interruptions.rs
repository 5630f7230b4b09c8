//! What runs for long while the machine changes under it: a CPU that goes and comes, a wall clock that jumps, a machine that is
//! suspended. The agent, `watch`, `trace`, `measure` and an experiment go on or end with a word, count nothing twice or
//! backwards, and leave every setting as it was.

use super::dump;
use super::{Inside, Proof, ProofResult, as_filed, no_words};
use anyhow::Result;
use std::collections::BTreeMap;

pub(super) const PROOF: Proof = Proof {
    name: "interruptions",
    machine: "governors",
    words: no_words,
    shape: as_filed,
    script,
    judge,
    boots: super::once,
};

/// Scrapes of the agent while a CPU goes and comes, and after the clock was set and the machine suspended.
const N_SCRAPES: usize = 18;
/// Runs of each kind while a CPU goes and comes.
const N_TOGGLED: usize = 6;

/// Two arms, so that both an idle state and a governor are set and put back.
const PLAN: &str = r#"format = 1
name = "toggled"
question = "Does an experiment survive a CPU that goes and comes?"
primary = "wakeup.timer.p50"
budget = "30s"
settle = "100ms"
measure = "300ms"
blocks = 10
again_every = 0

[[arm]]
name = "found"

[[arm]]
name = "shallow"
max_latency = "2us"

[[arm]]
name = "fast"
set = ["freq.governor=performance"]

[[workload]]
kind = "wakeup"
"#;

fn script() -> String {
    format!(
        "{}\nN_TOGGLED={N_TOGGLED}\nN_SCRAPES={N_SCRAPES}\ncat >plan.toml <<'P'\n{PLAN}P\n{}",
        dump::SHELL,
        include_str!("interruptions.sh")
    )
}

fn judge(inside: &Inside) -> Result<ProofResult> {
    let mut verdict = ProofResult::default();
    agent(inside, &mut verdict);
    let mut ended = BTreeMap::new();
    for n in 0..N_TOGGLED {
        for step in ["watch", "trace", "wakeup", "experiment"].map(|what| format!("{what}.{n}")) {
            known_end(inside, &mut verdict, &step, &mut ended);
        }
        rows(inside, &mut verdict, &format!("watch.{n}"));
        let same = inside.text(&format!("experiment.{n}.same"));
        verdict.expect(same == "same\n", || format!("experiment.{n}: settings differ: {}", same.trim()));
    }
    for step in ["clock.forwards", "clock.backwards", "suspend"] {
        verdict.step(inside, step, 0, &[]);
        rows(inside, &mut verdict, step);
    }
    verdict
        .expect(inside.text("journals") == "0\n", || format!("journals are left: {}", inside.text("journals").trim()));
    let ended: Vec<String> = ended.into_iter().map(|(end, n)| format!("{n} {end}")).collect();
    verdict
        .counted
        .push(format!("CPU 1 goes and comes every 0.4 s under {N_TOGGLED} runs of each: {}", ended.join(", ")));
    let slept = inside.text("suspend.slept");
    verdict.expect(slept.trim() == "0", || format!("no suspend: {}", inside.text("suspend.why").trim()));
    verdict.counted.push(format!(
        "the wall clock set 5 years on and 25 back, and {} suspend under agent and watch",
        if slept.trim() == "0" { "one" } else { "no" }
    ));
    Ok(verdict)
}

/// Ends well, or says what was in the way; never in a panic.
fn known_end(inside: &Inside, verdict: &mut ProofResult, step: &str, ended: &mut BTreeMap<String, usize>) {
    let (code, said) = (inside.code(step), inside.said(step));
    let is_told = matches!(code, Some(0)) || (matches!(code, Some(3..=10)) && said.contains("wakewatt: "));
    verdict.expect(is_told && !said.contains("panicked at"), || {
        let last: Vec<&str> = said.lines().rev().take(3).collect();
        format!("{step}: ended with {code:?}: {}", last.into_iter().rev().collect::<Vec<_>>().join(" | "))
    });
    let what = step.split('.').next().unwrap_or(step);
    *ended.entry(format!("{what} with {}", code.map_or("nothing".into(), |code| code.to_string()))).or_insert(0) += 1;
}

/// No number of a table is negative, not a number or a share above one.
fn rows(inside: &Inside, verdict: &mut ProofResult, step: &str) {
    let said = inside.said(step);
    let mut lines = said.lines().filter(|line| !line.starts_with("wakewatt"));
    let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    verdict.expect(names.len() > 3 || inside.code(step) != Some(0), || format!("{step}: no table: {said}"));
    for line in lines {
        for (name, cell) in names.iter().zip(line.split(',')) {
            let Ok(number) = cell.parse::<f64>() else { continue };
            let is_share = name.contains("ratio") || name.contains('%') || name.contains("percent");
            let most = if name.contains("ratio") { 1.001 } else { 100.1 };
            verdict.expect(number.is_finite() && number >= 0.0 && !(is_share && number > most), || {
                format!("{step}: {name} is {cell}")
            });
        }
    }
}

fn agent(inside: &Inside, verdict: &mut ProofResult) {
    let code = inside.text("agent.code");
    let said = inside.text("agent.said");
    // SIGTERM ends it with 130.
    verdict.expect(code.trim() == "130" && !said.contains("panicked at"), || {
        format!("the agent ended with {}: {}", code.trim(), said.lines().last().unwrap_or_default())
    });
    let mut before: BTreeMap<String, f64> = BTreeMap::new();
    let mut n_series = 0;
    for n in 0..N_SCRAPES {
        let text = inside.text(&format!("scrape.{n}"));
        verdict.expect(text.contains("# TYPE"), || format!("scrape {n}: nothing came"));
        let series = counters(&text);
        n_series = series.len().max(n_series);
        for (name, value) in &series {
            verdict.expect(value.is_finite() && *value >= 0.0, || format!("scrape {n}: {name} is {value}"));
            // A CPU that is away is left out of a sum over CPUs; a sum that falls looks like a restart to Prometheus.
            if let Some(old) = before.get(name) {
                verdict.expect(*value >= *old, || format!("scrape {n}: {name} fell from {old} to {value}"));
            }
        }
        before.extend(series);
    }
    verdict.counted.push(format!("{N_SCRAPES} scrapes of the agent, {n_series} counters, none fell"));
}

/// The counters of a page.
fn counters(text: &str) -> BTreeMap<String, f64> {
    let is_counter = |line: &str| {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        name.ends_with("_total")
    };
    let lines = text.lines().filter(|line| !line.starts_with('#') && is_counter(line));
    lines
        .filter_map(|line| line.rsplit_once(' '))
        .filter_map(|(name, value)| Some((name.into(), value.parse().ok()?)))
        .collect()
}
