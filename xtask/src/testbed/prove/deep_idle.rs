//! On arm64, where every idle state really sleeps: settings are taken, held, read back and put back exactly, and the
//! kernel's own counters show that no CPU enters an excluded state while it is excluded.

use super::dump::{self, Dump};
use super::{Inside, Proof, ProofResult, as_filed, no_words};
use anyhow::Result;

pub(super) const PROOF: Proof = Proof {
    name: "deep-idle",
    machine: "deep-idle",
    words: no_words,
    shape: as_filed,
    script,
    judge,
    boots: super::once,
};

/// What is applied; the states that must not be entered; those that are.
const ARMS: &[(&str, &[&str])] = &[
    ("--max-latency 15us", &["C3", "C6", "C7s", "C8", "C9", "C10"]),
    ("--set qos.cpu=15us", &["C3", "C6", "C7s", "C8", "C9", "C10"]),
    ("--set idle.state.C9=off --set idle.state.C10=off", &["C9", "C10"]),
    (
        "--set idle.governor=ladder --set idle.state.C8=off --set idle.state.C9=off --set idle.state.C10=off",
        &["C8", "C9", "C10"],
    ),
];

/// `usage NAME`: entries of every state of every CPU. `rest`: a second of timers far enough apart for the deep ones.
const SHELL: &str = r#"
usage() { for s in /sys/devices/system/cpu/cpu[01]/cpuidle/state*; do echo "${s%/cpuidle*} $(cat "$s/name") $(cat "$s/usage")"; done >"$1"; }
rest() { i=0; while [ $i -lt 40 ]; do usleep 30000; i=$((i+1)); done; }
"#;

fn script() -> String {
    let mut script = format!("{}{SHELL}\nrun knobs wakewatt tune knobs\ndump quiet0\ndump quiet1\n", dump::SHELL);
    script += "usage free.a; rest; usage free.b\n";
    for (n, (words, _)) in ARMS.iter().enumerate() {
        script += &format!(
            "run {n}.plan wakewatt tune plan {words}\nrun {n}.apply wakewatt tune apply {words}\nusleep 300000\nusage {n}.a\nrest\n\
             usage {n}.b\nrun {n}.status wakewatt tune status\nrun {n}.verify wakewatt tune verify\n\
             run {n}.undo wakewatt tune undo\ndump {n}\nrest\n"
        );
    }
    script
}

/// Entries into these states between two looks, over all CPUs.
fn entered(inside: &Inside, name: &str, states: &[&str]) -> u64 {
    let total = |file: &str| -> u64 {
        let text = inside.text(file);
        let lines = text.lines().map(|l| l.split(' ').collect::<Vec<_>>());
        lines.filter(|w| w.len() == 3 && states.contains(&w[1])).filter_map(|w| w[2].parse::<u64>().ok()).sum()
    };
    total(&format!("{name}.b")).saturating_sub(total(&format!("{name}.a")))
}

fn judge(inside: &Inside) -> Result<ProofResult> {
    let mut verdict = ProofResult::default();
    verdict.step(inside, "knobs", 0, &["idle.state.C10", "idle.governor", "qos.global"]);
    let before = Dump::read(inside, "quiet0");
    for line in before.differences(&Dump::read(inside, "quiet1")) {
        verdict.wrong.push(format!("changes by itself and is not known to: {line}"));
    }
    let deep: &[&str] = ARMS[0].1;
    let free = entered(inside, "free", deep);
    verdict.expect(free > 20, || format!("left alone, the deep states were entered {free} times only: proves nothing"));
    for (n, (words, excluded)) in ARMS.iter().enumerate() {
        let told = verdict.wrong.len();
        for step in ["plan", "apply", "status", "verify", "undo"] {
            verdict.step(inside, &format!("{n}.{step}"), 0, &[]);
        }
        let n_entered = entered(inside, &n.to_string(), excluded);
        verdict.expect(n_entered == 0, || format!("excluded states were entered {n_entered} times"));
        let left = before.differences(&Dump::read(inside, &n.to_string()));
        verdict.wrong.extend(left.into_iter().map(|line| format!("after undo: {line}")));
        let others = ["WFI", "C1", "C1E", "C3", "C6", "C7s", "C8"];
        let allowed: Vec<&str> = others.into_iter().filter(|s| !excluded.contains(s)).collect();
        verdict.counted.push(format!(
            "{words}: {} entered {n_entered} times, other states {} times",
            excluded.join(", "),
            entered(inside, &n.to_string(), &allowed)
        ));
        verdict.wrong[told..].iter_mut().for_each(|line| *line = format!("{words}: {line}"));
    }
    let (n_listed, n_filled) = before.counts();
    verdict.counted.push(format!(
        "left alone, the states deeper than 15us were entered {free} times; {n_listed} attributes, {n_filled} with a \
         content, compared after each undo"
    ));
    Ok(verdict)
}
