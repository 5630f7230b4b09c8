//! After `tune undo` every attribute of the machine is what it was before `tune apply`, byte for byte.
//!
//! Each arm is applied, read back by a second hand (cat), looked at with status and verify, undone, and then the whole
//! machine is dumped and compared with the dump from before. While the marked arms hold, the machine is dumped too: the
//! dump must see what was set, or finding no difference afterwards would mean nothing.

use super::dump::{self, Dump};
use super::{Inside, Proof, ProofResult, as_filed, no_words};
use anyhow::Result;

pub(super) const PROOF: Proof = Proof {
    name: "undo-exact",
    machine: "governors",
    words: no_words,
    shape: as_filed,
    script,
    judge,
    boots: super::once,
};

/// What is applied, what must then be read in which file, and whether everything is dumped meanwhile.
struct Arm {
    words: &'static str,
    reads: &'static [(&'static str, &'static str)],
    is_dumped: bool,
}

const CPU: &str = "/sys/devices/system/cpu";

const fn arm(words: &'static str, reads: &'static [(&'static str, &'static str)], is_dumped: bool) -> Arm {
    Arm { words, reads, is_dumped }
}

const ARMS: &[Arm] = &[
    arm(
        "k4-ondemand",
        &[
            ("cpufreq/policy0/scaling_governor", "ondemand"),
            ("cpufreq/policy1/scaling_governor", "ondemand"),
            ("cpufreq/ondemand/up_threshold", "98"),
        ],
        true,
    ),
    arm(
        "k4-conservative",
        &[
            ("cpufreq/policy1/scaling_governor", "conservative"),
            ("cpufreq/conservative/up_threshold", "98"),
            ("cpufreq/conservative/down_threshold", "95"),
        ],
        false,
    ),
    arm("k4-performance", &[("cpufreq/policy1/scaling_governor", "performance")], false),
    arm("k4-powersave", &[("cpufreq/policy0/scaling_governor", "powersave")], false),
    // The exit latency of C1: the largest that still lets a CPU sleep, and nothing deeper.
    arm("--max-latency 2us", &[], false),
    // Between C2 and C3: the first limit that differs from none.
    arm("--max-latency 132us", &[], false),
    arm(
        "--set qos.cpu=2us",
        &[("cpu0/power/pm_qos_resume_latency_us", "2"), ("cpu1/power/pm_qos_resume_latency_us", "2")],
        false,
    ),
    arm(
        "--set idle.state.C3=off",
        &[("cpu0/cpuidle/state3/disable", "1"), ("cpu1/cpuidle/state3/disable", "1")],
        false,
    ),
    arm(
        "--set freq.max=2GHz --set freq.min=1.6GHz",
        &[("cpufreq/policy0/scaling_max_freq", "2000000"), ("cpufreq/policy1/scaling_min_freq", "1600000")],
        false,
    ),
    arm("--set idle.governor=ladder", &[("cpuidle/current_governor", "ladder")], false),
    arm("--set cpu.online@cpus:1=off", &[("cpu1/online", "0"), ("online", "0")], false),
    arm(
        "--max-latency 2us --set qos.cpu@cpus:0=40us --set idle.state.C3=off --set idle.governor=ladder \
         --set freq.governor=conservative --set freq.tunable.conservative.up_threshold=98 \
         --set freq.tunable.conservative.down_threshold=95 --set freq.max=2GHz --set freq.min=1.6GHz \
         --set cpu.online@cpus:1=off --set memory.numa_balancing=on",
        &[
            ("cpufreq/policy0/scaling_governor", "conservative"),
            ("cpufreq/conservative/down_threshold", "95"),
            ("cpufreq/policy0/scaling_max_freq", "2000000"),
            ("cpu0/power/pm_qos_resume_latency_us", "40"),
            ("cpu0/cpuidle/state3/disable", "1"),
            ("cpuidle/current_governor", "ladder"),
            ("cpu1/online", "0"),
        ],
        true,
    ),
];

fn script() -> String {
    let mut script = format!("{}\ndump quiet0\ndump quiet1\n", dump::SHELL);
    for (n, arm) in ARMS.iter().enumerate() {
        script += &format!("run {n}.apply wakewatt tune apply {}\n", arm.words);
        let files: Vec<String> = arm.reads.iter().map(|(file, _)| format!("{CPU}/{file}")).collect();
        if !files.is_empty() {
            script += &format!("run {n}.read cat {}\n", files.join(" "));
        }
        script += &format!("run {n}.status wakewatt tune status\n");
        if arm.is_dumped {
            script += &format!("dump {n}.inside\n");
        }
        script += &format!("run {n}.undo wakewatt tune undo\nrun {n}.after wakewatt tune status\ndump {n}\n");
    }
    script
}

fn judge(inside: &Inside) -> Result<ProofResult> {
    let mut verdict = ProofResult::default();
    let before = Dump::read(inside, "quiet0");
    for line in before.differences(&Dump::read(inside, "quiet1")) {
        verdict.wrong.push(format!("changes by itself and is not known to: {line}"));
    }
    let (n_listed, n_filled) = before.counts();
    verdict.expect(n_filled > 1000, || format!("only {n_filled} attributes could be read: the dump does not work"));
    let mut n_differences = Vec::new();
    for (n, arm) in ARMS.iter().enumerate() {
        let told = verdict.wrong.len();
        verdict.step(inside, &format!("{n}.apply"), 0, &["applied"]);
        verdict.step(inside, &format!("{n}.status"), 0, &[]);
        verdict.step(inside, &format!("{n}.undo"), 0, &[]);
        verdict.step(inside, &format!("{n}.after"), 0, &["Nothing is applied"]);
        let read = inside.said(&format!("{n}.read"));
        let expected: String = arm.reads.iter().map(|(_, value)| format!("{value}\n")).collect();
        verdict.expect(read == expected, || format!("reads {read:?}, not {expected:?}"));
        if arm.is_dumped {
            let differences = before.differences(&Dump::read(inside, &format!("{n}.inside")));
            verdict.expect(differences.len() >= arm.reads.len(), || format!("the dump saw {differences:?} only"));
            n_differences.push(differences.len().to_string());
        }
        let left = before.differences(&Dump::read(inside, &n.to_string()));
        verdict.wrong.extend(left.into_iter().map(|line| format!("after undo: {line}")));
        verdict.wrong[told..].iter_mut().for_each(|line| *line = format!("{}: {line}", arm.words));
    }
    verdict.counted.push(format!(
        "{n_listed} attributes that can be set, {n_filled} with a content, compared after each of {} arms; {} left out \
         because they change by themselves",
        ARMS.len(),
        dump::BY_ITSELF.iter().map(|(path, _)| *path).collect::<Vec<_>>().join(", ")
    ));
    verdict.counted.push(format!("seen to differ while applied: {} attributes", n_differences.join(" and ")));
    Ok(verdict)
}
