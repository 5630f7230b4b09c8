//! The kernel words that `--boot-arg` plans, on a kernel that was started with them: only POLL and C1 remain, and
//! `tune verify` says so.
//!
//! The words stand where Debian's own update-grub puts those of the drop-in: it makes the line anew (`cargo xtask boot-tree
//! --json`) where that chore has its tree and may run; else a line of the same form, written by hand, is taken, and the
//! proof says which. The journal that `tune apply` had left before the boot is written by hand: this machine has no
//! disk that would keep one.

use super::{Inside, Proof, ProofResult};
use anyhow::{Context, Result};
use std::process::Command;

pub(super) const PROOF: Proof = Proof {
    name: "boot-max-cstate",
    machine: "governors",
    words,
    shape: super::as_filed,
    script,
    judge,
    boots: super::once,
};

/// By hand, in the form of Debian 12.
const BY_HAND: &str = "BOOT_IMAGE=/boot/vmlinuz-6.1.0-0-amd64 root=UUID=6f0c8a52-95c3-4f0e-8f10-5a7b1d3c9e21 ro quiet \
    intel_idle.max_cstate=1 processor.max_cstate=1";

/// The words after the image; the kernel is given its own by the emulator.
fn words() -> Result<Vec<String>> {
    let line = generated()?.unwrap_or_else(|| BY_HAND.into());
    Ok(line.split_whitespace().filter(|word| !word.starts_with("BOOT_IMAGE=")).map(String::from).collect())
}

/// The line as update-grub makes it now; none where the chore cannot run without first making its tree for minutes.
fn generated() -> Result<Option<String>> {
    let has_tree = crate::repository().join("target/boot-tree/bookworm.tar").is_file();
    if !has_tree || !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let output = Command::new(std::env::current_exe()?).args(["boot-tree", "--json"]).output()?;
    if !output.status.success() {
        anyhow::bail!("boot-tree --json: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let document: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    Ok(Some(document["normal"].as_str().context("boot-tree --json: no normal line")?.into()))
}

fn script() -> String {
    r#"
mkdir -p /var/lib/wakewatt/open /etc/default/grub.d
cat >/var/lib/wakewatt/open/tune-1.json <<'J'
{ "format": 2, "boot_id": "00000000-0000-0000-0000-000000000001", "pid": 1, "pid_start_ticks": 1,
  "purpose": "intel_idle.max_cstate=1, processor.max_cstate=1", "root": "/", "phase": "applied", "entries": [],
  "commands": [], "requests": [], "arguments": ["intel_idle.max_cstate=1", "processor.max_cstate=1"] }
J
run verify wakewatt tune verify
run status wakewatt tune status
run inspect wakewatt inspect idle
cat /proc/cmdline >cmdline
cat /sys/module/processor/parameters/max_cstate >parameter
cat /sys/devices/system/cpu/cpuidle/current_driver >driver
for cpu in 0 1; do cat /sys/devices/system/cpu/cpu$cpu/cpuidle/state*/name | tr '\n' ' '; echo; done >states
dmesg >dmesg
sed -i 's/processor.max_cstate=1"\]/processor.max_cstate=2"]/' /var/lib/wakewatt/open/tune-1.json
run other wakewatt tune verify
"#
    .into()
}

fn judge(inside: &Inside) -> Result<ProofResult> {
    let mut verdict = ProofResult::default();
    let is_fresh = generated()?.is_some();
    let made = if is_fresh { "made by update-grub in this run" } else { "written by hand, not by update-grub" };
    let (line, states, parameter) = (inside.text("cmdline"), inside.text("states"), inside.text("parameter"));
    for word in ["processor.max_cstate=1", "intel_idle.max_cstate=1"] {
        let n = line.split_whitespace().filter(|w| *w == word).count();
        verdict.expect(n == 1, || format!("{word} is {n} times in {line:?}"));
    }
    verdict.expect(states == "POLL C1 \nPOLL C1 \n", || format!("idle states per CPU: {states:?}"));
    verdict.expect(parameter.trim() == "1", || format!("processor.max_cstate reads {parameter:?}"));
    verdict.expect(inside.text("driver").trim() == "acpi_idle", || "the driver is not acpi_idle".into());
    // The kernel warns of a word nobody took ("Unknown kernel command line parameters").
    let dmesg = inside.text("dmesg");
    let unknown = dmesg.lines().find(|l| l.contains("Unknown kernel command line parameters") && l.contains("cstate"));
    verdict.expect(unknown.is_none(), || format!("the kernel says {unknown:?}"));
    verdict.step(inside, "verify", 0, &["processor.max_cstate"]);
    verdict.step(inside, "status", 0, &[]);
    verdict.step(inside, "inspect", 0, &["C1"]);
    verdict.step(inside, "other", 6, &["processor.max_cstate"]);
    verdict.counted.push(format!(
        "line {made}; POLL and C1 on both CPUs, parameter 1; verify ends with 0, and with 6 when 2 had been planned"
    ));
    Ok(verdict)
}
