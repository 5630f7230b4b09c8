//! The border between the testbed and an architecture: what a board has to answer.
//!
//! One file or folder per architecture (`x86`, `arm`). Everything else, the kernel package, the initramfs, the results and
//! the running, is common. To add an architecture: a variant of `Arch`, an implementation of `Board`, a line in `boards`.

use super::kernel::Kernel;
use super::machine::{Idle, Machine};
use anyhow::Result;
use std::path::Path;

/// What is particular to an architecture.
pub(crate) trait Board {
    /// QEMU's program.
    fn program(&self) -> &'static str;
    /// The Debian package that holds it.
    fn program_package(&self) -> &'static str;
    /// Every program a machine of this board needs, with its Debian package.
    fn programs(&self) -> Vec<(&'static str, &'static str)> {
        vec![(self.program(), self.program_package())]
    }
    /// Debian's name of the architecture, as in package names.
    fn debian_arch(&self) -> &'static str;
    /// The target triple of a wakewatt binary for it.
    fn triple(&self) -> &'static str;
    /// Kernel words every machine of this board needs, the console above all.
    fn command_line(&self) -> &'static str;
    /// Modules this machine needs beside those it lists itself, in order.
    fn modules(&self, machine: &Machine) -> Vec<String>;
    /// The cpuidle driver that reads the board's idle states; none: not checked.
    fn idle_driver(&self) -> Option<&'static str> {
        None
    }
    /// The cpufreq driver that reads its performance states; none: not checked.
    fn cpufreq_driver(&self) -> Option<&'static str> {
        None
    }
    /// What the kernel will show as a state's target residency; none: not checked.
    fn target_residency_us(&self, state: &Idle) -> Option<u32> {
        state.target_residency_us
    }
    /// Refuses what this board cannot build, naming the key.
    fn check(&self, machine: &Machine) -> Result<()>;
    /// The machine itself, as words for QEMU: accelerator, board, CPU, memory, firmware tables and devices. Kernel,
    /// initramfs, serial line and result ports are added by `run`. Files go into `work_dir`, which is removed after the run.
    fn qemu_args(&self, machine: &Machine, kernel: &Kernel, work_dir: &Path) -> Result<Vec<String>>;
}

/// A path inside a QEMU option, where a comma ends the value unless doubled.
pub(super) fn escaped(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}
