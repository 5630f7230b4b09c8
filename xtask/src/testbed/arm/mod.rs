//! The arm64 board: QEMU's `virt` with a device tree. A place holder so far: it boots, and idle states are refused.
//!
//! Idle states come to this board through an `idle-states` node in the tree that `-M virt,dumpdtb=` writes.

use crate::testbed::board::Board;
use crate::testbed::kernel::Kernel;
use crate::testbed::machine::Machine;
use anyhow::{Result, bail};
use std::path::Path;

/// QEMU's virt board.
pub(crate) struct Virt;

impl Board for Virt {
    fn program(&self) -> &'static str {
        "qemu-system-aarch64"
    }

    fn program_package(&self) -> &'static str {
        "qemu-system-arm"
    }

    fn debian_arch(&self) -> &'static str {
        "arm64"
    }

    fn triple(&self) -> &'static str {
        "aarch64-unknown-linux-gnu"
    }

    fn command_line(&self) -> &'static str {
        "console=ttyAMA0"
    }

    fn modules(&self, _: &Machine) -> Vec<String> {
        Vec::new()
    }

    fn check(&self, machine: &Machine) -> Result<()> {
        if !machine.idle.is_empty() {
            bail!("idle: the aarch64 board has no idle states yet; leave the table out");
        }
        Ok(())
    }

    fn qemu_args(&self, machine: &Machine, _: &Kernel, _: &Path) -> Result<Vec<String>> {
        let cpu = machine.cpu_model.as_deref().unwrap_or("cortex-a57");
        let smp = machine.n_cpus().to_string();
        let memory = format!("{}M", machine.memory_mib);
        let words = ["-accel", "tcg,thread=multi", "-M", "virt", "-cpu", cpu, "-smp", &smp, "-m", &memory];
        Ok(words.map(String::from).to_vec())
    }
}
