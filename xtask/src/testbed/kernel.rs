//! The kernel of a machine: a stock Debian package in target/testbed/, with the busybox that serves as user space.
//!
//! The newest package in the cache that fits is taken, so a second run needs no network; remove target/testbed/packages
//! for a newer one. Signed and unsigned packages hold the same kernel; the signed one is preferred because every Debian
//! mirror has it. Cloud and real-time flavours are left out: they lack drivers the machines need.

use super::package::{self, Apt};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// What to boot.
#[derive(Debug, Clone)]
pub(crate) struct Kernel {
    /// `6.1.0-56-amd64`, as uname says.
    pub release: String,
    /// The image, for QEMU's `-kernel`.
    pub image: PathBuf,
    /// The folder of its modules.
    pub modules: PathBuf,
    /// A static busybox for it.
    pub busybox: PathBuf,
}

/// Gets the kernel of a series or version for an architecture, as Debian names that.
pub(crate) fn get(arch: &str, wanted: &str) -> Result<Kernel> {
    let cache = super::cache()?.join("packages");
    std::fs::create_dir_all(&cache).with_context(|| format!("{}: not writable", cache.display()))?;
    // One at a time, or two runs would fetch the same package.
    let lock = std::fs::File::create(cache.join(".lock"))?;
    lock.lock().context("target/testbed/packages/.lock: cannot be locked")?;
    let suffix = if arch == host_arch() { String::new() } else { format!(":{arch}") };
    let tree = kernel_tree(wanted, arch, &suffix, &cache)?;
    let busybox = package::get(&Apt::default(), &format!("busybox-static{suffix}"), &cache)?.join("bin/busybox");
    // Debian 13 packs below /usr.
    let modules = ["lib/modules", "usr/lib/modules"].map(|path| tree.join(path));
    let folder = only_entry(modules.iter().find(|path| path.is_dir()).unwrap_or(&modules[0]))?;
    let release = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let image = tree.join(format!("boot/vmlinuz-{release}"));
    for path in [&image, &busybox] {
        if !path.is_file() {
            bail!("{}: not in the package; remove target/testbed/packages and try again", path.display());
        }
    }
    Ok(Kernel { release, image, modules: folder, busybox })
}

fn kernel_tree(wanted: &str, arch: &str, suffix: &str, cache: &Path) -> Result<PathBuf> {
    let entries = std::fs::read_dir(cache)?.filter_map(|e| e.ok()?.file_name().into_string().ok());
    let cached: Vec<String> = entries.map(|name| name.split('_').next().unwrap_or_default().to_string()).collect();
    if let Some(name) = fitting(&cached, wanted, arch).first() {
        return package::get(&Apt::default(), &format!("{name}{suffix}"), cache);
    }
    // What this host's own sources have, else Debian's newer suites.
    let mut apt = Apt::default();
    let beginning = format!("linux-image-{wanted}");
    let mut offered = apt.names(&beginning)?;
    if fitting(&offered, wanted, arch).is_empty() {
        apt = Apt::newer(arch, cache)?;
        offered = apt.names(&beginning)?;
    }
    let names = fitting(&offered, wanted, arch);
    if names.is_empty() {
        bail!(
            "kernel {wanted:?}: apt knows no linux-image-{wanted}*-{arch}; try: sudo apt-get update, or another version"
        );
    }
    // apt names packages it no longer offers, so the newest may fail; one of the next does not.
    let mut last = None;
    for name in names.iter().take(4) {
        match package::get(&apt, &format!("{name}{suffix}"), cache) {
            Ok(tree) => return Ok(tree),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| anyhow::anyhow!("kernel {wanted:?}: nothing was tried")))
}

/// Packages of the wanted series or version, newest first, signed before unsigned.
fn fitting<'a>(names: &'a [String], wanted: &str, arch: &str) -> Vec<&'a String> {
    let fits = |name: &&String| {
        let Some(rest) = name.strip_prefix("linux-image-") else { return false };
        let rest = rest.strip_suffix("-unsigned").unwrap_or(rest);
        let Some(version) = rest.strip_suffix(&format!("-{arch}")) else { return false };
        let is_flavoured = version.contains("cloud") || version.ends_with("-rt");
        let is_series = version.strip_prefix(wanted).is_some_and(|r| r.is_empty() || r.starts_with(['.', '-', '+']));
        is_series && !is_flavoured
    };
    let mut found: Vec<&String> = names.iter().filter(fits).collect();
    found.sort_by_key(|name| (std::cmp::Reverse(numbers(name)), name.ends_with("-unsigned")));
    found
}

/// The numbers in a name, so that 6.1.0-9 stands before 6.1.0-10.
fn numbers(name: &str) -> Vec<u64> {
    let name = name.split("-amd64").next().unwrap_or(name).split("-arm64").next().unwrap_or(name);
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

fn only_entry(folder: &Path) -> Result<PathBuf> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("{}: not readable", folder.display()))?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.next().with_context(|| format!("{}: empty", folder.display()))
}

/// Debian's name of the architecture this runs on.
pub(super) fn host_arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_newest_signed_one_is_first() {
        let names = [
            "linux-image-6.1.0-9-amd64",
            "linux-image-6.1.0-56-amd64-unsigned",
            "linux-image-6.1.0-56-amd64",
            "linux-image-6.1.0-56-amd64-dbg",
            "linux-image-6.1.0-57-cloud-amd64",
            "linux-image-6.1.0-57-rt-amd64",
            "linux-image-6.1.0-57-arm64",
            "linux-image-6.12.107+deb12-amd64",
            "linux-image-6.12-amd64-dbg",
        ]
        .map(String::from);
        let found = super::fitting(&names, "6.1", "amd64");
        let expected =
            ["linux-image-6.1.0-56-amd64", "linux-image-6.1.0-56-amd64-unsigned", "linux-image-6.1.0-9-amd64"];
        assert_eq!(found, expected.each_ref());
        assert_eq!(super::fitting(&names, "6.1.0-9", "amd64"), ["linux-image-6.1.0-9-amd64"]);
        assert_eq!(super::fitting(&names, "6.1", "arm64"), ["linux-image-6.1.0-57-arm64"]);
        assert_eq!(super::fitting(&names, "6.12", "amd64"), ["linux-image-6.12.107+deb12-amd64"]);
    }
}
