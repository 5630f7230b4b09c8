//! The x86 board: QEMU's q35 as a Skylake server, its firmware tables made from the machine file.
//!
//! Always emulated (TCG): a stock kernel does not come up under the KVM of the machines this is run on. Tables: `acpi`
//! (idle and performance states), `smbios` (memory modules), `numa`. The sleep and clock ports belong to `pc-testdev`.

mod acpi;
mod numa;
mod smbios;

use crate::testbed::board::{Board, escaped};
use crate::testbed::kernel::Kernel;
use crate::testbed::machine::{Idle, Machine};
use anyhow::{Context, Result};
use std::path::Path;

/// QEMU's q35.
pub(crate) struct Pc;

impl Board for Pc {
    fn program(&self) -> &'static str {
        "qemu-system-x86_64"
    }

    fn program_package(&self) -> &'static str {
        "qemu-system-x86"
    }

    fn programs(&self) -> Vec<(&'static str, &'static str)> {
        vec![(self.program(), self.program_package()), ("iasl", "acpica-tools")]
    }

    fn idle_driver(&self) -> Option<&'static str> {
        Some("acpi_idle")
    }

    fn cpufreq_driver(&self) -> Option<&'static str> {
        Some("acpi-cpufreq")
    }

    fn target_residency_us(&self, state: &Idle) -> Option<u32> {
        Some(acpi::target_residency_us(state))
    }

    fn debian_arch(&self) -> &'static str {
        "amd64"
    }

    fn triple(&self) -> &'static str {
        "x86_64-unknown-linux-gnu"
    }

    fn command_line(&self) -> &'static str {
        "console=ttyS0"
    }

    fn modules(&self, machine: &Machine) -> Vec<String> {
        let names: &[&str] = if machine.has_bmc { &["ipmi_si", "ipmi_devintf"] } else { &[] };
        names.iter().map(ToString::to_string).collect()
    }

    fn check(&self, machine: &Machine) -> Result<()> {
        acpi::check(machine)
    }

    fn qemu_args(&self, machine: &Machine, _: &Kernel, work_dir: &Path) -> Result<Vec<String>> {
        // The vendor is named because TCG otherwise passes the host's on, and drivers look at it.
        let cpu = machine.cpu_model.as_deref().unwrap_or("Skylake-Server,vendor=GenuineIntel");
        let cut = machine.cpus;
        let smp = format!("{},sockets={},cores={},threads={}", machine.n_cpus(), cut.sockets, cut.cores, cut.threads);
        let memory = format!("{}M", machine.memory_mib);
        let mut args = machine.accelerator();
        args.extend(["-M", "q35", "-cpu", cpu, "-smp", &smp, "-m", &memory].map(String::from));
        if let Some(text) = acpi::ssdt(machine) {
            let table = acpi::compile(&text, work_dir)?;
            args.extend(["-device".into(), "pc-testdev".into()]);
            args.extend(["-acpitable".into(), format!("file={}", escaped(&table))]);
        }
        // One file each: QEMU counts a file as one record, and the kernel drops what lies beyond the count.
        for (number, record) in smbios::records(&machine.dimm).iter().enumerate() {
            let file = work_dir.join(format!("dimm{number}.bin"));
            std::fs::write(&file, record).with_context(|| format!("{}: not writable", file.display()))?;
            args.extend(["-smbios".into(), format!("file={}", escaped(&file))]);
        }
        args.extend(numa::args(machine));
        if machine.has_bmc {
            let words = ["-device", "ipmi-bmc-sim,id=bmc0", "-device", "isa-ipmi-kcs,bmc=bmc0"];
            args.extend(words.map(String::from));
        }
        Ok(args)
    }
}
