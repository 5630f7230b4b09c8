//! The arm64 board: QEMU's `virt` with a device tree, the machine in which idle is real.
//!
//! Every state of the `idle` table sleeps until an interrupt (`device_tree`), chosen by the kernel's own governor and
//! counted by its own driver, psci_idle. Always emulated, on arm64 hosts too, so that it is the same machine everywhere.
//! Refused, because the board has no way to tell a kernel booted without firmware: performance states, memory modules
//! (SMBIOS needs UEFI), a management controller.

mod device_tree;

use super::board::Board;
use super::kernel::Kernel;
use super::machine::Machine;
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

    fn programs(&self) -> Vec<(&'static str, &'static str)> {
        let tree = "device-tree-compiler";
        vec![(self.program(), self.program_package()), ("fdtput", tree), ("fdtget", tree)]
    }

    fn debian_arch(&self) -> &'static str {
        "arm64"
    }

    fn triple(&self) -> &'static str {
        crate::aarch64::TARGET
    }

    fn command_line(&self) -> &'static str {
        "console=ttyAMA0"
    }

    fn modules(&self, _: &Machine) -> Vec<String> {
        Vec::new()
    }

    fn idle_driver(&self) -> Option<&'static str> {
        Some("psci_idle")
    }

    fn check(&self, machine: &Machine) -> Result<()> {
        let refused = [
            ("pstate", !machine.pstate.is_empty()),
            ("numa", !machine.numa.is_empty()),
            ("dimm", !machine.dimm.is_empty()),
            ("has_bmc", machine.has_bmc),
        ];
        if let Some((key, _)) = refused.iter().find(|(_, is_given)| *is_given) {
            bail!("{key}: the aarch64 board cannot show this to the kernel; leave it out or use arch = \"x86_64\"");
        }
        device_tree::check(&machine.idle)
    }

    fn qemu_args(&self, machine: &Machine, _: &Kernel, work_dir: &Path) -> Result<Vec<String>> {
        let cpu = machine.cpu_model.as_deref().unwrap_or("cortex-a57");
        let cut = machine.cpus;
        let smp = format!("{},sockets={},cores={},threads={}", machine.n_cpus(), cut.sockets, cut.cores, cut.threads);
        let memory = format!("{}M", machine.memory_mib);
        let mut args = machine.accelerator();
        args.extend(["-M", "virt", "-cpu", cpu, "-smp", &smp, "-m", &memory].map(String::from));
        if let Some(tree) = device_tree::write(machine, self.program(), &args, work_dir)? {
            args.extend(["-dtb".into(), tree.to_string_lossy().into_owned()]);
        }
        Ok(args)
    }
}
