//! `cargo xtask testbed live`: every reading command on a real kernel whose idle states really sleep, and those that place
//! memory on one of two nodes.
//!
//! `check` compares facts; this runs the commands one after the other in one boot and looks at how each ends and what it
//! says: the documented exit code, no panic, every idle state by its name, and none of the doubts that a sound trace must
//! not have. Nothing measured is judged: time inside an emulator means nothing. To add a command add a row to `STEPS`,
//! here for machines of one node, in `two_nodes.rs` for others.

use super::check::unavailable;
use super::machine::Machine;
use super::run::{self, Ending, Job};
use super::step::Step;
use super::{prove, two_nodes, wakewatt};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// All steps together take half a minute where nothing else runs.
const LIMIT: Duration = Duration::from_secs(400);
const FOLDER: &str = "/tmp/live";
/// Said where the trace's count of requests and the kernel's count of entries are far apart.
const DOUBT: &str = "the driver went elsewhere";

const fn step(words: &'static str, says: &'static [&'static str], names_states: bool) -> Step {
    Step { words, code: 0, says, names_states, json: None }
}

/// In this order, since a later one may read what an earlier one wrote.
const STEPS: &[Step] = &[
    step("inspect", &["driver  ", "governor  ", "type information (BTF)  yes"], true),
    step("inspect --json", &["wakewatt/inspect/v1"], true),
    step("capture -o a.host", &["wrote a.host"], false),
    step("inspect --host a.host idle", &["Idle states"], true),
    step("measure wakeup --duration 200ms", &["timer", "futex", "eventfd", "ipi", "SCHED_FIFO"], false),
    step("measure network --duration 500ms", &["udp", "tcp"], false),
    step(
        "measure memory --max-size 16M --array-size 8M --sample-time 5ms --samples 2",
        &["Levels of the hierarchy", "copy-nt", "Latency under load"],
        false,
    ),
    step("measure idle --state C1,C10 --kind ipi --duration 600ms --gap 15ms", &["C1 ", "C10 ", "put back."], false),
    // The pages of a shell that sleeps; on a machine of one node the copy is told to be alone.
    step(
        "run --per-node -- sh -c 'sleep 2'",
        &["all ", "of its own pages lay there (policy bind:0; last looked at "],
        false,
    ),
    step("capture -o b.host", &["wrote b.host"], false),
    step("compare a.host b.host", &["facts agree"], false),
    step("doctor --read-only --no-report", &["--read-only changes nothing", "a timer wake-up takes"], false),
    step("watch --once", &["latency limit"], true),
    step("watch --once --json", &["wakewatt/watch/v1"], true),
    step("trace --for 2s", &["requested (trace), entered (sysfs)"], false),
    step(
        "trace --for 20s -- sh -c 'i=0; while [ $i -lt 60 ]; do usleep 20000; i=$((i+1)); done'",
        &["command sh", "another CPU"],
        false,
    ),
    step("trace --for 3s --record a.wtrace", &["idle intervals"], false),
    step("trace info a.wtrace", &["complete", "governor menu", "records lost: 0"], false),
    step("trace export a.wtrace -o a.parquet", &["a.parquet"], false),
    step("recover", &["Nothing to recover"], false),
    Step { words: "inspect --host none.host", code: 4, says: &["none.host"], names_states: false, json: None },
];

/// Runs the commands in each machine; says whether all was well.
pub(super) fn live(files: &[PathBuf], binary: Option<&Path>, is_strict: bool) -> Result<bool> {
    let mut is_right = true;
    for path in files {
        let machine = Machine::read(path)?;
        if let Some(why) = unavailable(&machine, binary) {
            println!("{:24} skipped: {why}", machine.name);
            is_right &= !is_strict;
            continue;
        }
        let (wrong, what) = match prove::full_node(&machine, binary) {
            Some(wrong) => (wrong?, "memory measured beside a full node".to_string()),
            None => (boot(&machine, binary)?, format!("{} commands run inside", steps(&machine).len())),
        };
        let verdict = if wrong.is_empty() { "all as expected" } else { "NOT as expected" };
        println!("{:24} {what}; {verdict}", machine.name);
        for sentence in &wrong {
            println!("    {sentence}");
        }
        is_right &= wrong.is_empty();
    }
    Ok(is_right)
}

/// What is run in it.
fn steps(machine: &Machine) -> &'static [Step] {
    if machine.numa.len() > 1 { two_nodes::STEPS } else { STEPS }
}

fn boot(machine: &Machine, binary: Option<&Path>) -> Result<Vec<String>> {
    let wakewatt = wakewatt::made(machine.arch, binary)?;
    // A folder of its own: what a step said is looked up after the next `check`, too.
    let out = super::out_folder(machine, Some(&super::cache()?.join("out").join(format!("{}-live", machine.name))))?;
    let ran = run::run(&Job {
        machine,
        wakewatt: Some(&wakewatt),
        command: &["sh".into(), "-c".into(), script(steps(machine))],
        files: &[],
        fetch: &[FOLDER.into()],
        out: &out,
        timeout: LIMIT,
        is_echoed: false,
    })?;
    match ran.ending {
        Ending::Exited(0) => {}
        Ending::Exited(code) => bail!("the script inside ended with {code}; see {}", out.display()),
        Ending::Late => bail!("not done after {} s; {} tells how far it came", LIMIT.as_secs(), out.display()),
        Ending::Interrupted => bail!("interrupted"),
    }
    let folder = out.join("files").join(FOLDER.trim_start_matches('/'));
    let mut wrong = Vec::new();
    for (number, step) in steps(machine).iter().enumerate() {
        let read = |kind: &str| {
            let bytes = std::fs::read(folder.join(format!("{number}.{kind}"))).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let mut found = judge(step, read("code").trim().parse().ok(), &(read("out") + &read("err")), machine);
        found.extend(
            step.json
                .map(|check| match serde_json::from_str(&read("out")) {
                    Ok(document) => check(&document),
                    Err(why) => vec![format!("wrote no JSON: {why}")],
                })
                .into_iter()
                .flatten(),
        );
        wrong.extend(found.into_iter().map(|sentence| format!("wakewatt {}: {sentence}", step.words)));
    }
    Ok(wrong)
}

/// Runs every step and keeps what it wrote and how it ended; tells on the way, for whoever finds it hanging.
fn script(steps: &[Step]) -> String {
    let steps = steps.iter().enumerate().map(|(number, step)| {
        let words = step.words;
        format!("echo {number}\nwakewatt {words} >{number}.out 2>{number}.err\necho $? >{number}.code\n")
    });
    format!("mkdir -p {FOLDER} && cd {FOLDER} || exit 1\n{}exit 0\n", steps.collect::<String>())
}

/// What is wrong with how a step ended, as sentences.
fn judge(step: &Step, code: Option<u8>, text: &str, machine: &Machine) -> Vec<String> {
    let mut wrong = Vec::new();
    if code != Some(step.code) {
        let code = code.map_or("no code".to_string(), |code| code.to_string());
        let last = text.lines().next_back().unwrap_or_default();
        wrong.push(format!("ended with {code}, not {}: {last}", step.code));
    }
    if let Some(line) = text.lines().find(|line| line.contains("panicked at")) {
        wrong.push(line.to_string());
    }
    if let Some(line) = text.lines().find(|line| line.contains(DOUBT)) {
        wrong.push(format!("doubts its own counts: {line}"));
    }
    wrong.extend(step.says.iter().filter(|word| !text.contains(**word)).map(|word| format!("does not say {word:?}")));
    let words = || text.split(|c: char| !c.is_alphanumeric());
    let unnamed = machine.idle.iter().filter(|state| step.names_states && !words().any(|word| word == state.name));
    wrong.extend(unnamed.map(|state| format!("does not name idle state {}", state.name)));
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        let state = |name: &str| format!("[[idle]]\nname='{name}'\nexit_latency_us=2\ntarget_residency_us=4\n");
        Machine::parse("m", &format!("summary='x'\narch='aarch64'\n{}{}", state("C1"), state("C10"))).unwrap()
    }

    #[test]
    fn each_kind_of_wrong_is_told() {
        let plain = step("x", &["here"], true);
        let judge = |code, text| judge(&plain, code, text, &machine());
        assert!(judge(Some(0), "here: C1 C10\n").is_empty());
        assert_eq!(judge(Some(0), "here: C10"), ["does not name idle state C1"], "C1 is not part of C10");
        assert_eq!(judge(Some(2), "here: C1 C10\nbad"), ["ended with 2, not 0: bad"]);
        assert!(judge(None, "here C1 C10")[0].contains("no code"));
        assert_eq!(judge(Some(0), "C1 C10"), ["does not say \"here\""]);
        assert!(judge(Some(0), "here C1 C10\nthread 'main' panicked at x")[0].contains("panicked"));
        assert!(judge(Some(0), "here C1 C10\nC1: the driver went elsewhere")[0].contains("doubts"));
    }

    #[test]
    fn the_script_is_one_a_shell_takes() {
        for steps in [STEPS, two_nodes::STEPS] {
            let status = std::process::Command::new("sh").args(["-n", "-c", &script(steps)]).status().unwrap();
            assert!(status.success());
        }
    }
}
