//! Debian packages as a source of files: downloaded by apt, unpacked, never installed.
//!
//! apt checks the signatures, knows the mirrors and works for a normal user, for foreign architectures too. A package is
//! unpacked beside its place and renamed into it, so a cache holds whole packages only.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The unpacked `name` in the cache, which the caller has locked; else downloads and unpacks it. `name` may end in
/// `:arm64`.
pub(super) fn get(name: &str, cache: &Path) -> Result<PathBuf> {
    let place = cache.join(name.replace(':', "_"));
    if place.is_dir() {
        return Ok(place);
    }
    eprintln!("testbed: getting Debian package {name}");
    // What an interrupted run left: nobody else is getting anything now.
    for entry in std::fs::read_dir(cache)?.filter_map(Result::ok) {
        if entry.file_name().to_string_lossy().starts_with(".getting-") {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    let fresh = tempfile::Builder::new().prefix(".getting-").tempdir_in(cache)?;
    // Without the option apt warns that its own user may not write here.
    let output = Command::new("apt-get")
        .args(["-q", "-o", "APT::Sandbox::User=root", "download", name])
        .current_dir(fresh.path())
        .output()
        .context(
            "apt-get could not be run; the testbed takes its kernel from Debian packages, so it needs a Debian system",
        )?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("apt-get download {name}: {}\n{}", said.trim(), advice(name));
    }
    let files = std::fs::read_dir(fresh.path())?.filter_map(|e| Some(e.ok()?.path()));
    let deb = files.filter(|path| path.extension().is_some_and(|e| e == "deb")).last();
    let deb = deb.with_context(|| format!("apt-get download {name}: left no .deb"))?;
    let tree = fresh.path().join("tree");
    let status = Command::new("dpkg").arg("-x").arg(&deb).arg(&tree).status().context("dpkg could not be run")?;
    if !status.success() {
        bail!("dpkg -x {}: {status}; is the disk full?", deb.display());
    }
    std::fs::rename(&tree, &place).with_context(|| format!("{}: not writable", place.display()))?;
    Ok(place)
}

fn advice(name: &str) -> String {
    match name.rsplit_once(':') {
        Some((_, arch)) => format!("try: sudo dpkg --add-architecture {arch} && sudo apt-get update"),
        None => "try: sudo apt-get update".into(),
    }
}

/// Names of packages that begin so, as apt knows them.
pub(super) fn names(beginning: &str) -> Result<Vec<String>> {
    let output = Command::new("apt-cache").args(["pkgnames", beginning]).output().context(
        "apt-cache could not be run; the testbed takes its kernel from Debian packages, so it needs a Debian system",
    )?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(String::from).collect())
}

/// Whether packages of this architecture can be asked for: the host's own, or one added to dpkg.
pub(super) fn knows_arch(arch: &str) -> bool {
    let asked = |option: &str| {
        let output = Command::new("dpkg").arg(option).output();
        output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default()
    };
    let known = asked("--print-architecture") + &asked("--print-foreign-architectures");
    known.lines().any(|line| line == arch)
}
