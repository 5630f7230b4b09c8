//! Idle states as an arm64 kernel learns of them: nodes of the device tree, one per state, and a list in every CPU.
//!
//! Sources: Documentation/devicetree/bindings/cpu/idle-states.yaml, drivers/cpuidle/dt_idle_states.c (what is read of a
//! node, and that the node's own name becomes the state's), drivers/cpuidle/cpuidle-psci.c. The tree QEMU makes for its
//! `virt` board is dumped, these properties are put in with fdtput, and QEMU gets it back with `-dtb`. State 0 is always
//! WFI, the architecture's own, 1 us; the kernel puts it in front.
//!
//! A suspend parameter with bit 16 clear asks for retention: the call returns and nothing has to be restored. QEMU's PSCI
//! answers any of these by waiting for an interrupt, so every state really sleeps, and wakes equally fast: the latencies
//! are what firmware claims. Left out: power-down states (QEMU has none), domains that CPUs enter together.

use crate::testbed::machine::{Idle, Machine};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// CPUIDLE_STATE_MAX less WFI.
const MOST_STATES: usize = 9;
/// CPUIDLE_NAME_LEN, with its closing zero.
const NAME_SIZE: usize = 16;
/// Handles of our nodes, far above those that QEMU counts up from 0x8000.
const FIRST_HANDLE: usize = 0x10000;
const FOLDER: &str = "/cpus/idle-states";

/// Refuses states that the kernel would drop, without a word or with the whole driver.
pub(super) fn check(states: &[Idle]) -> Result<()> {
    if states.len() > MOST_STATES {
        bail!("idle: {} states; the kernel has room for {MOST_STATES} beside WFI", states.len());
    }
    let mut names = BTreeSet::new();
    for state in states {
        let name = &state.name;
        let is_node_name = name.chars().all(|c| c.is_ascii_alphanumeric() || ",._+-".contains(c));
        if !is_node_name || !name.starts_with(|c: char| c.is_ascii_alphabetic()) || name.len() >= NAME_SIZE {
            bail!(
                "idle: {name:?} cannot be a device tree node; give a letter and up to 14 of letters, digits and ,._+-"
            );
        }
        if name == "WFI" || !names.insert(name) {
            bail!("idle: {name} is listed twice (WFI is the kernel's own first state); give each its own name");
        }
        if state.target_residency_us.is_none() {
            bail!("idle: {name} has no target_residency_us; a device tree must tell it");
        }
        if state.exit_latency_us == 0 {
            bail!("idle: {name}: exit_latency_us is 0; give 1 or more");
        }
    }
    Ok(())
}

/// The tree of this machine, extended, as a file in the work folder; none when it has no states of its own.
pub(super) fn write(machine: &Machine, program: &str, args: &[String], work_dir: &Path) -> Result<Option<PathBuf>> {
    if machine.idle.is_empty() {
        return Ok(None);
    }
    let tree = work_dir.join("machine.dtb");
    // A comma in a QEMU option is written twice.
    let dump = format!("virt,dumpdtb={}", tree.to_string_lossy().replace(',', ",,"));
    // The last -M wins, and QEMU ends once the tree is written.
    let mut qemu = Command::new(program);
    run(qemu.args(args).args(["-M", &dump, "-display", "none"]))?;
    for words in edits(&machine.idle, &cpu_nodes(&tree)?) {
        run(Command::new("fdtput").arg("-p").args(&words[..1]).arg(&tree).args(&words[1..]))?;
    }
    Ok(Some(tree))
}

/// Nodes such as `/cpus/cpu@0`.
fn cpu_nodes(tree: &Path) -> Result<Vec<String>> {
    let text = run(Command::new("fdtget").arg("-l").arg(tree).arg("/cpus"))?;
    Ok(text.lines().filter(|name| name.starts_with("cpu@")).map(|name| format!("/cpus/{name}")).collect())
}

/// What is put in: the type of the value as fdtput's option, then node, property and values.
fn edits(states: &[Idle], cpus: &[String]) -> Vec<Vec<String>> {
    let mut edits = vec![words("-ts", &[FOLDER, "entry-method", "psci"])];
    for (i, state) in states.iter().enumerate() {
        let node = format!("{FOLDER}/{}", state.name);
        let latency = state.exit_latency_us.to_string();
        let residency = state.target_residency_us.unwrap_or(state.exit_latency_us).to_string();
        let numbers = [
            ("arm,psci-suspend-param", (i + 1).to_string()),
            ("entry-latency-us", "1".into()),
            ("exit-latency-us", latency.clone()),
            // The whole of what the kernel shows as latency; without it the two above are added up.
            ("wakeup-latency-us", latency),
            ("min-residency-us", residency),
            ("phandle", (FIRST_HANDLE + i).to_string()),
        ];
        edits.push(words("-ts", &[&node, "compatible", "arm,idle-state"]));
        edits.push(words("-ts", &[&node, "idle-state-name", &state.name]));
        edits.extend(numbers.iter().map(|(property, value)| words("-tu", &[&node, property, value])));
    }
    let handles: Vec<String> = (0..states.len()).map(|i| (FIRST_HANDLE + i).to_string()).collect();
    for cpu in cpus {
        let mut edit = words("-tu", &[cpu, "cpu-idle-states"]);
        edit.extend(handles.iter().cloned());
        edits.push(edit);
    }
    edits
}

fn words(kind: &str, rest: &[&str]) -> Vec<String> {
    std::iter::once(kind).chain(rest.iter().copied()).map(str::to_string).collect()
}

/// Standard output of a command that has to succeed.
fn run(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| {
        format!("{program}: could not be run; fdtput and fdtget are in Debian's device-tree-compiler")
    })?;
    if !output.status.success() {
        bail!("{program} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(name: &str, exit_latency_us: u32, target_residency_us: Option<u32>) -> Idle {
        Idle { name: name.into(), exit_latency_us, target_residency_us, power_mw: 0 }
    }

    #[test]
    fn every_state_is_a_node_and_every_cpu_lists_them_all() {
        let states = [state("C1", 2, Some(2)), state("C7s", 124, Some(800))];
        let edits = edits(&states, &["/cpus/cpu@0".into(), "/cpus/cpu@1".into()]);
        let text: Vec<String> = edits.iter().map(|words| words.join(" ")).collect();
        assert_eq!(text[0], "-ts /cpus/idle-states entry-method psci");
        for line in [
            "-ts /cpus/idle-states/C7s compatible arm,idle-state",
            "-tu /cpus/idle-states/C7s arm,psci-suspend-param 2",
            "-tu /cpus/idle-states/C7s wakeup-latency-us 124",
            "-tu /cpus/idle-states/C7s min-residency-us 800",
            "-tu /cpus/cpu@0 cpu-idle-states 65536 65537",
            "-tu /cpus/cpu@1 cpu-idle-states 65536 65537",
        ] {
            assert!(text.iter().any(|t| t == line), "{line}");
        }
    }

    #[test]
    fn what_the_kernel_would_not_take_is_refused() {
        let refusal = |states: &[Idle]| check(states).map_err(|e| e.to_string()).unwrap_err();
        let many: Vec<Idle> = (0..10).map(|i| state(&format!("S{i}"), 1, Some(1))).collect();
        assert!(refusal(&many).contains("room for 9"));
        assert!(refusal(&[state("C 1", 1, Some(1))]).contains("cannot be a device tree node"));
        assert!(refusal(&[state("C1", 1, Some(1)), state("C1", 2, Some(2))]).contains("twice"));
        assert!(refusal(&[state("WFI", 1, Some(1))]).contains("own first state"));
        assert!(refusal(&[state("C1", 1, None)]).contains("target_residency_us"));
        assert!(refusal(&[state("C1", 0, Some(1))]).contains("is 0"));
        assert!(check(&[state("cpu-sleep_0.1", 5, Some(9))]).is_ok());
    }
}
