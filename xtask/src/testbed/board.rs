//! The border between the testbed and an architecture: what a board has to answer.
//!
//! One file or folder per architecture (`x86`, `arm`). Everything else, the kernel package, the initramfs, the results and
//! the running, is common. To add an architecture: a variant of `Arch`, an implementation of `Board`, a line in `of`.

use super::kernel::Kernel;
use super::machine::{Arch, Machine};
use anyhow::Result;
use std::path::Path;

/// What is particular to an architecture.
pub(crate) trait Board {
    /// QEMU's program.
    fn program(&self) -> &'static str;
    /// The Debian package that holds it.
    fn program_package(&self) -> &'static str;
    /// Debian's name of the architecture, as in package names.
    fn debian_arch(&self) -> &'static str;
    /// The target triple of a wakewatt binary for it.
    fn triple(&self) -> &'static str;
    /// Kernel words every machine of this board needs, the console above all.
    fn command_line(&self) -> &'static str;
    /// Modules this machine needs beside those it lists itself, in order.
    fn modules(&self, machine: &Machine) -> Vec<String>;
    /// Refuses what this board cannot build, naming the key.
    fn check(&self, machine: &Machine) -> Result<()>;
    /// The machine itself, as words for QEMU: accelerator, board, CPU, memory, firmware tables and devices. Kernel,
    /// initramfs, serial line and result ports are added by `run`. Files go into `work_dir`, which is removed after the run.
    fn qemu_args(&self, machine: &Machine, kernel: &Kernel, work_dir: &Path) -> Result<Vec<String>>;
}

/// The board of an architecture.
pub(crate) fn of(arch: Arch) -> &'static dyn Board {
    match arch {
        Arch::X86 => &super::x86::Pc,
        Arch::Arm => &super::arm::Virt,
    }
}
