//! The idle governors' models against the kernels they mirror: recorded under menu and ladder, then replayed.
//!
//! Every state of the arm64 machine really sleeps, and the kernel's own governor chooses. Three idle tables (a laptop's, a
//! telephone's, a server's, as device trees) and four loads (timers, network over loopback, disk, all of them), on Debian's
//! kernel and on the one of its backports. Judged: the share of identical decisions from exact inputs (99.9 %) and from what is rebuilt
//! without them (95 %), each scenario by itself; and `predict`: what a replay says of a setting, beside that setting run.
//!
//! While each recording runs the governor is switched away for a second and back, because that puts its memory into a known state:
//! the model begins where the kernel does. Each CPU must choose once meanwhile, or its recording does not show the switch.
//!
//! The machine's time is counted in instructions: how busy the host is changes nothing inside but how long it takes.

mod judge;
mod load;
pub(super) mod predict;
mod tables;

use super::{Inside, Proof, ProofResult, no_words};
use crate::testbed::machine::{Idle, Machine};
use anyhow::Result;
use std::fmt::Write as _;

/// Seconds of a recording.
const RECORDED_S: u32 = 20;
const GOVERNORS: [&str; 2] = ["menu", "ladder"];

/// The kernel of Debian's backports, or of its next release: whatever apt has of this series.
const NEWER: &str = "6.12";

const fn proof(name: &'static str, shape: fn(&mut Machine)) -> Proof {
    Proof { name, machine: "deep-idle", words: no_words, shape, script, judge, boots: super::once }
}

/// By table, then by kernel.
pub(super) const PROOFS: [Proof; 6] = [
    proof("replay-laptop", |m| shaped(m, tables::laptop, None)),
    proof("replay-telephone", |m| shaped(m, tables::telephone, None)),
    proof("replay-server", |m| shaped(m, tables::server, None)),
    proof("replay-laptop-newer", |m| shaped(m, tables::laptop, Some(NEWER))),
    proof("replay-telephone-newer", |m| shaped(m, tables::telephone, Some(NEWER))),
    proof("replay-server-newer", |m| shaped(m, tables::server, Some(NEWER))),
];

/// One table and one load: what `make test` has time for.
pub(super) const SHORT: Proof = Proof {
    name: "replay-short",
    machine: "deep-idle",
    words: no_words,
    shape: |m| shaped(m, tables::laptop, None),
    script: short_script,
    judge,
    boots: super::once,
};

fn shaped(machine: &mut Machine, table: fn() -> Vec<Idle>, kernel: Option<&str>) {
    machine.idle = table();
    if let Some(kernel) = kernel {
        machine.kernel = kernel.into();
    }
    load::repeatable(machine);
}

/// `record NAME GOVERNOR LOAD`: the file, its replay's inputs exact. The list of what was recorded is what is judged.
const SHELL: &str = r#"
G=/sys/devices/system/cpu/cpuidle/current_governor
record() {
  other=menu; [ "$2" = menu ] && other=ladder
  echo "$2" >$G; "$3" & usleep 1500000
  (while [ ! -s "$1.wtrace" ]; do usleep 100000; done; echo $other >$G; usleep 1000000; echo "$2" >$G) &
  run "$1" wakewatt trace --record "$1.wtrace" --exact --for ${S}s --window 60s
  wait; echo "$1" >>recorded
}
"#;

fn script_of(loads: &[&str], recorded_s: u32) -> String {
    let mut script = format!("S={recorded_s}\n{}{SHELL}", load::SHELL);
    for governor in GOVERNORS {
        for load in loads {
            let _ = writeln!(script, "record {governor}-{load} {governor} {load}");
        }
    }
    script
}

fn script() -> String {
    script_of(&load::ALL, RECORDED_S)
}

fn short_script() -> String {
    script_of(&["timers"], 8)
}

fn judge(inside: &Inside) -> Result<ProofResult> {
    let mut verdict = ProofResult::default();
    let recorded = inside.text("recorded");
    verdict.expect(!recorded.trim().is_empty(), || "nothing was recorded".into());
    for name in recorded.lines() {
        verdict.step(inside, name, 0, &[]);
        judge::decisions(name, &inside.bytes(&format!("{name}.wtrace")), &mut verdict)?;
    }
    Ok(verdict)
}
