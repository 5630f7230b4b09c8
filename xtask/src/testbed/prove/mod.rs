//! `cargo xtask testbed prove [NAME…]`: what `wakewatt tune` promises, tried on real kernels, memory measured beside a full
//! node, and the governor study whole.
//!
//! Each proof boots one machine, runs a script in it and judges what came back: exit codes, files, dumps of every
//! attribute. The crash tests of wakewatt-tune try every operation on a machine in memory; these try fewer points where
//! the kernel is real. To add one: write the file, add it to `proofs`. What each counted is in docs/journal.

mod boot_max_cstate;
mod deep_idle;
mod dump;
mod frequency;
mod full_node;
mod governor_study;
mod governors;
mod hostile;
mod interruptions;
mod kill_everywhere;
mod power_loss;
mod undo_exact;

use super::check::unavailable;
use super::machine::Machine;
use super::run::{self, Ending, Job};
use super::wakewatt;
use anyhow::{Result, anyhow, bail};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where a proof's script leaves what is to be judged.
const FOLDER: &str = "/tmp/proof";
/// The longest, the governor study, takes a quarter of an hour.
const LIMIT: Duration = Duration::from_secs(1800);

/// One proof.
struct Proof {
    name: &'static str,
    machine: &'static str,
    /// Words for the kernel beside the machine's.
    words: fn() -> Result<Vec<String>>,
    /// What is otherwise than in the machine's file.
    shape: fn(&mut Machine),
    /// What runs inside, in `FOLDER`.
    script: fn() -> String,
    /// What came of it.
    judge: fn(&Inside) -> Result<ProofResult>,
    /// Boots it and judges it; none where it was interrupted.
    boots: Boots,
}

type Boots = fn(&Proof, &Machine, Option<&Path>) -> Result<Option<ProofResult>>;

/// In order of length, shortest first.
fn proofs() -> Vec<&'static Proof> {
    let mut all = vec![
        &boot_max_cstate::PROOF,
        &governors::SHORT,
        &deep_idle::PROOF,
        &full_node::PROOF,
        &full_node::PROOF_OF_VERSION_2,
        &hostile::PROOF,
        &power_loss::PROOF,
        &interruptions::PROOF,
        &undo_exact::PROOF,
        &kill_everywhere::PROOF,
        &governor_study::PROOF,
    ];
    all.extend([&frequency::PROOF, &frequency::PROOF_NEWER]);
    all.extend(&governors::PROOFS);
    all.push(&governors::predict::PROOF);
    all
}

/// What a script left.
struct Inside {
    folder: PathBuf,
}

impl Inside {
    /// A file's text, empty where it is not there.
    fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(&self.bytes(name)).into_owned()
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder.join(name)).unwrap_or_default()
    }

    /// The exit code that `run` noted.
    fn code(&self, step: &str) -> Option<u8> {
        self.text(&format!("{step}.code")).trim().parse().ok()
    }

    /// What a step wrote to both streams.
    fn said(&self, step: &str) -> String {
        self.text(&format!("{step}.said"))
    }
}

/// What a proof found.
#[derive(Default)]
struct ProofResult {
    /// What was tried and counted.
    counted: Vec<String>,
    /// What is not as promised.
    wrong: Vec<String>,
}

impl ProofResult {
    fn expect(&mut self, is_so: bool, otherwise: impl FnOnce() -> String) {
        if !is_so {
            self.wrong.push(otherwise());
        }
    }

    /// A step that `run` ran must have ended so, without a panic, and must say this.
    fn step(&mut self, inside: &Inside, step: &str, code: u8, says: &[&str]) {
        let said = inside.said(step);
        let found = inside.code(step);
        let short = said.lines().rev().take(3).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join(" | ");
        self.expect(found == Some(code), || format!("{step}: ended with {found:?}, not {code}: {short}"));
        self.expect(!said.contains("panicked at"), || format!("{step}: {short}"));
        for word in says {
            // Output is wrapped to a width, so blanks are compared as one.
            let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
            self.expect(flat.contains(word), || format!("{step}: does not say {word:?}: {short}"));
        }
    }
}

/// Shell functions every script has: `run STEP CMD…` notes streams and code.
const PRELUDE: &str = "mkdir -p /tmp/proof && cd /tmp/proof || exit 1\n\
    run() { step=$1; shift; \"$@\" >\"$step.said\" 2>&1; echo $? >\"$step.code\"; }\n";

/// Runs these, or all; says whether all was as promised.
pub(super) fn prove(names: &[String], binary: Option<&Path>, is_strict: bool) -> Result<bool> {
    let known = || proofs().iter().map(|p| p.name).collect::<Vec<_>>().join(", ");
    if let Some(strange) = names.iter().find(|n| proofs().iter().all(|p| p.name != **n)) {
        bail!("{strange}: no such proof; there are {}", known());
    }
    let mut is_right = true;
    for proof in proofs().into_iter().filter(|p| names.is_empty() || names.iter().any(|n| n == p.name)) {
        let mut machine = Machine::read(&super::machine_file(Path::new(proof.machine)))?;
        machine.command_line.extend((proof.words)()?);
        (proof.shape)(&mut machine);
        if let Some(why) = unavailable(&machine, binary) {
            println!("{:24} skipped: {why}", proof.name);
            is_right &= !is_strict;
            continue;
        }
        let began = Instant::now();
        let verdict = match (proof.boots)(proof, &machine, binary) {
            Ok(verdict) => verdict.ok_or_else(|| anyhow!("interrupted"))?,
            // A machine that died proves nothing; the next may.
            Err(why) => ProofResult { counted: Vec::new(), wrong: vec![format!("{why:#}")] },
        };
        let word = if verdict.wrong.is_empty() { "holds" } else { "DOES NOT HOLD" };
        println!("{:24} {word} ({}, {:.0} s)", proof.name, proof.machine, began.elapsed().as_secs_f64());
        verdict.counted.iter().for_each(|line| println!("    {line}"));
        verdict.wrong.iter().for_each(|line| println!("    NOT AS PROMISED: {line}"));
        is_right &= verdict.wrong.is_empty();
    }
    Ok(is_right)
}

/// What is wrong on the machine with a full node, for `testbed live`; none for other machines.
pub(super) fn full_node(machine: &Machine, binary: Option<&Path>) -> Option<Result<Vec<String>>> {
    let proof = &full_node::SHORT;
    (machine.name == proof.machine).then(|| {
        let verdict = once(proof, machine, binary)?.ok_or_else(|| anyhow!("interrupted"))?;
        Ok(verdict.wrong)
    })
}

/// One boot.
fn once(proof: &Proof, machine: &Machine, binary: Option<&Path>) -> Result<Option<ProofResult>> {
    let wakewatt = wakewatt::made(machine.arch, binary)?;
    let out = super::out_folder(machine, Some(&super::cache()?.join("out").join(format!("prove-{}", proof.name))))?;
    let ran = run::run(&Job {
        machine,
        wakewatt: Some(&wakewatt),
        command: &["sh".into(), "-c".into(), format!("{PRELUDE}{}\nexit 0\n", (proof.script)())],
        files: &[],
        fetch: &[FOLDER.into()],
        out: &out,
        timeout: LIMIT,
        is_echoed: false,
    })?;
    match ran.ending {
        Ending::Exited(0) => {}
        Ending::Exited(code) => bail!("{}: the script ended with {code}; see {}", proof.name, out.display()),
        Ending::Late => bail!("{}: not done after {} s; see {}", proof.name, LIMIT.as_secs(), out.display()),
        Ending::Interrupted => return Ok(None),
    }
    (proof.judge)(&Inside { folder: out.join("files").join(FOLDER.trim_start_matches('/')) }).map(Some)
}

/// The machine of its file.
fn as_filed(_: &mut Machine) {}

/// No words of its own.
fn no_words() -> Result<Vec<String>> {
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_script_is_one_a_shell_takes() {
        for proof in super::proofs().into_iter().chain([&super::full_node::SHORT]) {
            let script = format!("{}{}", super::PRELUDE, (proof.script)());
            let status = std::process::Command::new("sh").args(["-n", "-c", &script]).status().unwrap();
            assert!(status.success(), "{}", proof.name);
        }
    }
}
