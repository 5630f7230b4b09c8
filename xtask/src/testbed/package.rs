//! Debian packages as a source of files: downloaded by apt, unpacked, never installed.
//!
//! apt checks the signatures, knows the mirrors and works for a normal user, for foreign architectures too. What the host's own
//! sources do not have comes from Debian's backports or its next release, by lists of our own below the cache. A package is
//! unpacked beside its place and renamed into it, so a cache holds whole packages only.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where apt looks.
#[derive(Debug, Clone, Default)]
pub(super) struct Apt {
    options: Vec<String>,
}

/// The release that the machines run, its backports, and the one after it.
const NEWER: [&str; 2] = ["bookworm-backports", "trixie"];
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

impl Apt {
    /// Debian's newer suites for this architecture, listed anew.
    pub(super) fn newer(arch: &str, cache: &Path) -> Result<Apt> {
        let root = cache.join("apt").join(arch);
        for folder in ["lists/partial", "cache/archives/partial"] {
            std::fs::create_dir_all(root.join(folder)).with_context(|| format!("{}: not writable", root.display()))?;
        }
        let line =
            |suite: &&str| format!("deb [arch={arch} signed-by={KEYS}] http://deb.debian.org/debian {suite} main\n");
        std::fs::write(root.join("sources.list"), NEWER.iter().map(line).collect::<String>())?;
        std::fs::write(root.join("status"), "")?;
        let of = |key: &str, name: &str| format!("{key}={}", root.join(name).display());
        let options = vec![
            of("Dir::Etc::sourcelist", "sources.list"),
            "Dir::Etc::sourceparts=/dev/null".into(),
            of("Dir::State::lists", "lists"),
            of("Dir::State::status", "status"),
            of("Dir::Cache", "cache"),
            format!("APT::Architecture={arch}"),
            format!("APT::Architectures={arch}"),
        ];
        let apt = Apt { options };
        let output = apt.command("apt-get").args(["-q", "update"]).output().context("apt-get could not be run")?;
        if !output.status.success() {
            bail!("apt-get update of {}: {}", NEWER.join(" and "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(apt)
    }

    /// Without the first option apt warns that its own user may not write here.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.args(["-o", "APT::Sandbox::User=root"]);
        for option in &self.options {
            command.args(["-o", option]);
        }
        command
    }

    /// Names of packages that begin so.
    pub(super) fn names(&self, beginning: &str) -> Result<Vec<String>> {
        let output = self.command("apt-cache").args(["pkgnames", beginning]).output().context(
            "apt-cache could not be run; the testbed takes its kernel from Debian packages, so it needs a Debian system",
        )?;
        Ok(String::from_utf8_lossy(&output.stdout).lines().map(String::from).collect())
    }
}

/// The unpacked `name` in the cache, which the caller has locked; else downloads and unpacks it. `name` may end in
/// `:arm64`.
pub(super) fn get(apt: &Apt, name: &str, cache: &Path) -> Result<PathBuf> {
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
    let output = apt.command("apt-get").args(["-q", "download", name]).current_dir(fresh.path()).output().context(
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

/// Whether packages of this architecture can be asked for: the host's own, or one added to dpkg.
pub(super) fn knows_arch(arch: &str) -> bool {
    let asked = |option: &str| {
        let output = Command::new("dpkg").arg(option).output();
        output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default()
    };
    let known = asked("--print-architecture") + &asked("--print-foreign-architectures");
    known.lines().any(|line| line == arch)
}
