//! The wakewatt that goes inside: found among the builds, or given.

use super::boards;
use super::machine::Arch;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The given one, else the newer of the release and the debug build; none when neither is there.
pub(super) fn find(arch: Arch, given: Option<&Path>) -> Result<Option<PathBuf>> {
    if let Some(given) = given {
        if !given.is_file() {
            bail!("{}: no such file (--binary)", given.display());
        }
        return Ok(Some(given.to_path_buf()));
    }
    let triple = boards::of(arch).triple();
    let target = super::target();
    let built = ["dist", "release", "debug"].map(|profile| target.join(triple).join(profile).join("wakewatt"));
    let age = |path: &PathBuf| std::fs::metadata(path).and_then(|m| m.modified()).ok();
    Ok(built.into_iter().filter(|path| age(path).is_some()).max_by_key(age))
}

/// Can one be built here for that architecture? What is missing is an error; what does not compile is found by `made`.
pub(super) fn can_be_made(arch: Arch) -> Result<()> {
    match arch {
        Arch::Arm => crate::aarch64::need_tools(),
        Arch::X86 if std::env::consts::ARCH != "x86_64" => {
            bail!("there is no cross build for x86_64; build it elsewhere and give it with --binary")
        }
        Arch::X86 => Ok(()),
    }
}

/// The given one, else a debug build of these sources.
pub(super) fn made(arch: Arch, given: Option<&Path>) -> Result<PathBuf> {
    match (given, arch) {
        (Some(_), _) => find(arch, given)?.context("not there"),
        (None, Arch::Arm) => crate::aarch64::build(crate::binary::Profile::Dev, None),
        (None, Arch::X86) => crate::binary::build(crate::binary::Profile::Dev),
    }
}

/// Without its debug symbols, which are most of a debug build: less for the slow machine to unpack.
pub(super) fn stripped(binary: &Path, arch: Arch, work_dir: &Path) -> Result<PathBuf> {
    let place = work_dir.join("wakewatt");
    // Debian's names: x86_64-linux-gnu-strip, aarch64-linux-gnu-strip.
    let strip = format!("{}-strip", boards::of(arch).triple().replace("-unknown", ""));
    let status = Command::new(strip).arg("-o").arg(&place).arg(binary).stderr(Stdio::null()).status();
    // No strip for that architecture: the whole file does as well.
    if !status.is_ok_and(|status| status.success()) {
        std::fs::copy(binary, &place).with_context(|| format!("{}: not readable", binary.display()))?;
    }
    Ok(place)
}
