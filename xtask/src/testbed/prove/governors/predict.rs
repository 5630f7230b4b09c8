//! The proof that matters: recorded under one setting, another predicted, that other one run, and the two held side by side.
//!
//! The recorded setting is menu without a limit; predicted are a limit, switched-off states, and the other governor. What leaving a state
//! costs is measured inside first, since the claims mean nothing to an emulator. The same setting recorded twice shows
//! how far two runs of one load are apart by themselves: nothing can be predicted better than that. The machine's time is
//! counted in instructions, since by the host's clock two runs of one setting were 10 to 14 points apart; and all are recorded in the same way,
//! since probes on the governor make the machine another one.

use super::judge::replay;
use super::{Inside, Proof, ProofResult, load, no_words, shaped, tables};
use anyhow::Result;
use std::fmt::Write as _;
use wakewatt_core::record::run_file::RunFile;
use wakewatt_models::replay::{Change, Exits, Side};

pub(in super::super) const PROOF: Proof = Proof {
    name: "predict",
    machine: "deep-idle",
    words: no_words,
    shape: |m| shaped(m, tables::laptop, None),
    script,
    judge,
    boots: super::super::once,
};

/// Points of residency, and of the share of wake-ups, by which a prediction may be off.
const OFF: f64 = 0.05;
const RECORDED_S: u32 = 40;

/// A setting: its name, what sets it inside, what is asked of the replay.
const SETTINGS: &[(&str, &str, &[&str])] = &[
    ("as-it-is", "", &[]),
    ("limit", "exec 9>/dev/cpu_dma_latency; printf '0x00000055' >&9", &["max-latency=85us"]),
    ("switched-off", "off 6 8", &["disable=C8", "disable=C10"]),
    ("ladder", "echo ladder >$G", &["governor=ladder"]),
];
const LOADS: [&str; 2] = ["timers", "mixed"];

const SHELL: &str = r#"
G=/sys/devices/system/cpu/cpuidle/current_governor
off() { for n in "$@"; do for f in /sys/devices/system/cpu/cpu[01]/cpuidle/state$n/disable; do echo 1 >$f; done; done; }
free() { exec 9>&-; echo menu >$G; for f in /sys/devices/system/cpu/cpu[01]/cpuidle/state*/disable; do echo 0 >$f; done; }
take() { "$2" & usleep 1500000; run "$1" wakewatt trace --record "$1.wtrace" --for ${S}s --window 60s; wait; }
exec 9>&-
"#;

fn script() -> String {
    let mut script = format!("S={RECORDED_S}\n{}{SHELL}\nfree\n", load::SHELL);
    script +=
        "run exits wakewatt measure idle --kind ipi --gap 7ms --duration 3s --seed 1 --no-watts --save exits.run\n";
    for load in LOADS {
        let _ = writeln!(script, "take {load}-recorded {load}");
        for (name, set, _) in SETTINGS {
            let _ = writeln!(script, "{set}\ntake {load}-{name} {load}\nfree");
        }
    }
    script
}

/// Share of idle time, and of wake-ups, by state.
fn shares(side: &Side) -> Vec<(String, f64, f64)> {
    let n_wakes = side.states.iter().map(|s| s.n_wakes).sum::<u64>().max(1) as f64;
    side.states.iter().map(|s| (s.state.clone(), s.time_ratio, s.n_wakes as f64 / n_wakes)).collect()
}

/// The largest difference of both.
fn furthest(a: &Side, b: &Side) -> (f64, f64) {
    let (a, b) = (shares(a), shares(b));
    let off = |pick: fn(&(String, f64, f64)) -> f64| {
        a.iter().zip(&b).map(|(x, y)| (pick(x) - pick(y)).abs()).fold(0.0, f64::max)
    };
    (off(|s| s.1), off(|s| s.2))
}

fn judge(inside: &Inside) -> Result<ProofResult> {
    let mut verdict = ProofResult::default();
    verdict.step(inside, "exits", 0, &[]);
    let exits = Exits::of(&RunFile::read(&inside.text("exits.run"))?.samples.idle_states);
    verdict.expect(!exits.is_empty(), || "what leaving a state costs was not measured".into());
    for load in LOADS {
        let before = inside.bytes(&format!("{load}-recorded.wtrace"));
        verdict.step(inside, &format!("{load}-recorded"), 0, &[]);
        for (name, _, asked) in SETTINGS {
            verdict.step(inside, &format!("{load}-{name}"), 0, &[]);
            let changes: Vec<Change> = asked.iter().flat_map(|text| Change::parse(text)).collect();
            // Measured exits are the machine's, whatever is asked of it: they are what recorded stays are undone with, too.
            let measured = [Change::Measured(exits.clone())];
            let predicted = replay(&before, &changes, &measured)?;
            let run = replay(&inside.bytes(&format!("{load}-{name}.wtrace")), &[], &measured)?;
            let (time, wakes) = furthest(&predicted.predicted, &run.recorded);
            let (was_time, _) = furthest(&predicted.recorded, &run.recorded);
            let of = |side: &Side| {
                let states = shares(side).into_iter().filter(|s| s.1 >= 0.005 || s.2 >= 0.005);
                states.map(|(s, t, w)| format!("{s} {:.1}/{:.1}", 100.0 * t, 100.0 * w)).collect::<Vec<_>>().join(" ")
            };
            verdict.counted.push(format!(
                "{load}, {name}: off by at most {:.1} points of idle time and {:.1} of wake-ups (unchanged it would be {:.1}); \
                 time/wake-ups predicted {}; run {}",
                100.0 * time,
                100.0 * wakes,
                100.0 * was_time,
                of(&predicted.predicted),
                of(&run.recorded)
            ));
            verdict.expect(time <= OFF && wakes <= OFF, || {
                format!("{load}, {name}: off by {:.1} and {:.1} points", 100.0 * time, 100.0 * wakes)
            });
        }
    }
    Ok(verdict)
}
