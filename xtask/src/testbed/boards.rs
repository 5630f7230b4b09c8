//! Every board, by its architecture, and machine files read and checked with the board they are for.

use super::board::Board;
use super::machine::{Arch, Machine};
use super::{arm, x86};
use anyhow::{Context, Result};
use std::path::Path;

/// The board of an architecture.
pub(crate) fn of(arch: Arch) -> &'static dyn Board {
    match arch {
        Arch::X86 => &x86::Pc,
        Arch::Arm => &arm::Virt,
    }
}

impl Machine {
    /// Reads and checks a file.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| {
            format!("{}: not readable; `cargo xtask testbed list` names the machines", path.display())
        })?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Self::parse(&name, &text).with_context(|| format!("{}", path.display()))
    }

    /// The same from text.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self> {
        let mut machine: Self = toml::from_str(text)?;
        machine.name = name.to_string();
        machine.check()?;
        of(machine.arch).check(&machine)?;
        Ok(machine)
    }
}
