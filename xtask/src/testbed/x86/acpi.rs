//! Idle and performance states as ACPI: an SSDT in ASL, compiled by iasl.
//!
//! Per CPU object, which QEMU's own tables name `\_SB.CPUS.C000` and on: `_CST` with the first state as fixed hardware
//! (HLT) and the rest as reads of a System I/O port, `_PSS`/`_PCT`/`_PPC` with one port for control and status. The
//! ports are those of QEMU's `pc-testdev`, a plain store of bytes: what acpi-cpufreq writes it reads back. A port read
//! returns at once, so deep states are chosen and counted but not slept in. ACPI 6.5, 8.4.1 and 8.4.5. Left out: MWAIT
//! states (TCG has none), throttling, CPPC.

use crate::testbed::machine::{Idle, Machine};
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Control and status of the clock, 16 bits of the device's 32.
const CLOCK_PORT: u16 = 0xE0;
/// Read to enter the second state of the table; each further one has the next port.
const IDLE_PORT: u16 = 0xE2;
/// Linux keeps at most this many (ACPI_PROCESSOR_MAX_POWER is 8, and slot 0 is not used).
const MAX_STATES: usize = 7;
/// The field has 16 bits.
const MAX_LATENCY_US: u32 = u16::MAX as u32;

/// Refuses what ACPI cannot say.
pub(super) fn check(machine: &Machine) -> Result<()> {
    if machine.idle.len() > MAX_STATES {
        bail!("idle: {} states; the kernel's ACPI driver keeps {MAX_STATES}", machine.idle.len());
    }
    for (number, state) in machine.idle.iter().enumerate() {
        let name = format!("C{}", number + 1);
        if state.name != name {
            bail!("idle: state {:?}; the kernel's ACPI driver names it {name}, so write that", state.name);
        }
        if state.exit_latency_us > MAX_LATENCY_US {
            bail!("idle: {name} has exit_latency_us {}; ACPI holds {MAX_LATENCY_US}", state.exit_latency_us);
        }
        let made_us = target_residency_us(state);
        if state.target_residency_us.is_some_and(|us| us != made_us) {
            bail!(
                "idle: {name}: the kernel's ACPI driver takes twice the latency as residency: {made_us}, or leave it out"
            );
        }
    }
    Ok(())
}

/// ACPI tells none; the kernel multiplies by its `latency_factor`, 2 unless its command line says otherwise.
pub(super) fn target_residency_us(state: &Idle) -> u32 {
    state.exit_latency_us * 2
}

/// The table as text; none when the machine has neither kind of state.
pub(super) fn ssdt(machine: &Machine) -> Option<String> {
    if machine.idle.is_empty() && machine.pstate.is_empty() {
        return None;
    }
    let mut text = String::from("DefinitionBlock (\"\", \"SSDT\", 2, \"WKWATT\", \"TESTBED\", 1)\n{\n");
    for cpu in 0..machine.n_cpus() {
        let _ = writeln!(text, "    External (\\_SB.CPUS.C{cpu:03X}, DeviceObj)");
    }
    // Written once; the CPUs after the first return what the first holds.
    let states = [idle_states(machine), performance_states(machine)].concat();
    let _ = write!(text, "    Scope (\\_SB.CPUS.C000)\n    {{\n{states}    }}\n");
    for cpu in 1..machine.n_cpus() {
        let _ = write!(text, "    Scope (\\_SB.CPUS.C{cpu:03X})\n    {{\n{}    }}\n", borrowed(machine));
    }
    text.push_str("}\n");
    Some(text)
}

fn idle_states(machine: &Machine) -> String {
    if machine.idle.is_empty() {
        return String::new();
    }
    let mut text = format!("        Name (_CST, Package () {{ {},\n", machine.idle.len());
    for (number, state) in machine.idle.iter().enumerate() {
        // Types beyond C3 do not exist; the kernel numbers the states itself.
        let kind = (number + 1).min(3);
        let register = match u16::try_from(number) {
            Ok(0) | Err(_) => "FFixedHW, 0, 0, 0".to_string(),
            Ok(n) => format!("SystemIO, 8, 0, 0x{:X}", IDLE_PORT + n - 1),
        };
        let comma = if number + 1 == machine.idle.len() { "" } else { "," };
        let (latency_us, power_mw) = (state.exit_latency_us, state.power_mw);
        let _ = writeln!(
            text,
            "            Package () {{ ResourceTemplate () {{ Register ({register}) }}, {kind}, {latency_us}, {power_mw} }}{comma}"
        );
    }
    text + "        })\n"
}

fn performance_states(machine: &Machine) -> String {
    if machine.pstate.is_empty() {
        return String::new();
    }
    let register = format!("ResourceTemplate () {{ Register (SystemIO, 16, 0, 0x{CLOCK_PORT:X}) }}");
    let mut text = format!("        Name (_PPC, 0)\n        Name (_PCT, Package () {{ {register}, {register} }})\n");
    let _ = writeln!(text, "        Name (_PSS, Package () {{");
    for (number, state) in machine.pstate.iter().enumerate() {
        let comma = if number + 1 == machine.pstate.len() { "" } else { "," };
        // Control and status are the MHz themselves, so that a dump of the port reads well.
        let _ = writeln!(
            text,
            "            Package () {{ {mhz}, {mw}, {us}, {us}, {mhz}, {mhz} }}{comma}",
            mhz = state.mhz,
            mw = state.mw,
            us = state.latency_us
        );
    }
    text + "        })\n"
}

fn borrowed(machine: &Machine) -> String {
    let names = [
        ("_CST", machine.idle.is_empty()),
        ("_PPC", machine.pstate.is_empty()),
        ("_PCT", machine.pstate.is_empty()),
        ("_PSS", machine.pstate.is_empty()),
    ];
    let there = names.iter().filter(|(_, is_absent)| !is_absent);
    there.fold(String::new(), |text, (name, _)| {
        text + &format!("        Method ({name}, 0, NotSerialized) {{ Return (\\_SB.CPUS.C000.{name}) }}\n")
    })
}

/// Compiles the text; says where the table lies.
pub(super) fn compile(text: &str, work_dir: &Path) -> Result<PathBuf> {
    let source = work_dir.join("ssdt.asl");
    std::fs::write(&source, text).with_context(|| format!("{}: not writable", source.display()))?;
    let output = Command::new("iasl")
        .args(["-p", "ssdt", "ssdt.asl"])
        .current_dir(work_dir)
        .output()
        .context("iasl could not be run; install it: sudo apt-get install acpica-tools")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        bail!("iasl refused the generated table, which is a fault of this chore:\n{text}\n{said}");
    }
    Ok(work_dir.join("ssdt.aml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: &str = "summary='x'\narch='x86_64'\n\
        [[idle]]\nname='C1'\nexit_latency_us=2\n[[idle]]\nname='C2'\nexit_latency_us=40\ntarget_residency_us=80\n\
        [[pstate]]\nmhz=3000\nmw=90000\nlatency_us=10\n[[pstate]]\nmhz=1200\nmw=30000\nlatency_us=10\n";

    #[test]
    fn the_table_says_what_the_file_says() {
        let text = ssdt(&Machine::parse("m", BOTH).unwrap()).unwrap();
        assert!(
            text.contains("Package () { ResourceTemplate () { Register (FFixedHW, 0, 0, 0) }, 1, 2, 0 },"),
            "{text}"
        );
        assert!(text.contains("Register (SystemIO, 8, 0, 0xE2) }, 2, 40, 0 }\n"), "{text}");
        assert!(text.contains("Package () { 1200, 30000, 10, 10, 1200, 1200 }\n"), "{text}");
        assert!(text.contains("Method (_PSS, 0, NotSerialized) { Return (\\_SB.CPUS.C000._PSS) }"), "{text}");
        assert_eq!(text.matches("Scope (").count(), 2);
    }

    #[test]
    fn what_acpi_cannot_say_is_refused() {
        let refusal = |text: &str| format!("{:#}", Machine::parse("m", text).unwrap_err());
        assert!(refusal(&BOTH.replace("us=80", "us=81")).contains("80, or leave it out"));
        assert!(refusal(&BOTH.replace("'C2'", "'C6'")).contains("names it C2"));
        assert!(ssdt(&Machine::parse("m", "summary='x'\narch='x86_64'").unwrap()).is_none());
    }
}
