//! What is linked into the binary: crates with their licences, and what is no crate (SQLite, the C library, Rust's own).
//!
//! `cargo tree` says which crates a build of the package `wakewatt` links for a target (no build scripts, no macros that run in the
//! compiler), `cargo metadata` where they lie, `Cargo.lock` their checksums. Licence texts are the files that came with each crate.
//! A crate without one is an error: its terms ask for the notice in every copy.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One crate.
#[derive(Clone, Debug, Default)]
pub(super) struct Crate {
    pub name: String,
    pub version: String,
    /// SPDX, as its author states it.
    pub licence: String,
    pub about: String,
    pub repository: String,
    /// Of this repository: no checksum, no registry.
    pub is_ours: bool,
    /// SHA-256 of what the registry gave.
    pub checksum: Option<String>,
    folder: PathBuf,
    /// Names of crates that it uses, as keys of `Linked::crates`.
    pub uses: BTreeSet<String>,
}

/// Everything, by `name version`.
pub(super) struct Linked {
    pub crates: BTreeMap<String, Crate>,
}

/// What is no crate but in the file: name, what tells its version in the binary, licence, what it is.
pub(super) const BESIDE: [(&str, &str, &str, &str); 3] = [
    ("glibc", "GNU C Library ", "LGPL-2.1-or-later", "the C library, linked statically"),
    ("rust-std", "rustc version ", "MIT OR Apache-2.0", "Rust's standard library"),
    ("libgcc", "GCC: ", "GPL-3.0-or-later WITH GCC-exception-3.1", "start files and unwinding"),
];

impl Linked {
    /// Asks cargo.
    pub(super) fn of(target: &str) -> Result<Linked> {
        let mut tree = cargo();
        tree.args(["tree", "--locked", "--package", "wakewatt", "--edges", "normal,no-proc-macro", "--target", target]);
        tree.args(["--prefix", "depth", "--format", " {p}"]);
        let tree = said(tree)?;
        let mut metadata = cargo();
        metadata.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", target]);
        let metadata: Value = serde_json::from_str(&said(metadata)?).context("cargo metadata: no JSON")?;
        let lock = std::fs::read_to_string(crate::repository().join("Cargo.lock")).context("Cargo.lock")?;
        let uses = uses(&tree);
        let mut crates = BTreeMap::new();
        for package in metadata["packages"].as_array().into_iter().flatten() {
            let text = |key: &str| package[key].as_str().unwrap_or_default().trim().to_string();
            let key = format!("{} {}", text("name"), text("version"));
            let Some(uses) = uses.get(&key) else { continue };
            let manifest = PathBuf::from(text("manifest_path"));
            let linked = Crate {
                name: text("name"),
                version: text("version"),
                licence: text("license").replace('/', " OR "),
                about: text("description").lines().next().unwrap_or_default().to_string(),
                repository: text("repository"),
                is_ours: package["source"].is_null(),
                checksum: checksum(&lock, &text("name"), &text("version")),
                folder: manifest.parent().map(Path::to_path_buf).unwrap_or_default(),
                uses: uses.clone(),
            };
            crates.insert(key, linked);
        }
        if let Some(missing) = uses.keys().find(|key| !crates.contains_key(*key)) {
            bail!("{missing}: linked, but not in cargo metadata");
        }
        Ok(Linked { crates })
    }

    /// The version of the SQLite that is compiled in, from its header.
    pub(super) fn sqlite(&self) -> Option<String> {
        let holder = self.crates.values().find(|linked| linked.name == "libsqlite3-sys")?;
        let header = std::fs::read_to_string(holder.folder.join("sqlite3/sqlite3.h")).ok()?;
        let line = header.lines().find(|line| line.starts_with("#define SQLITE_VERSION "))?;
        line.split('"').nth(1).map(str::to_string)
    }

    /// The notices of everything that others wrote: a list, then every text once, with whom it came from.
    pub(super) fn notices(&self) -> Result<String> {
        let mut out = String::from(
            "wakewatt is one static binary: what others wrote is part of it. This file lists it, and then holds every licence text that\n\
             came with it. wakewatt itself is under MIT or Apache-2.0, at your option; its sources, from which the binary can be\n\
             linked again with another C library, are those of the version it names.\n\nNot from the registry of crates:\n",
        );
        for (name, _, licence, what) in BESIDE {
            let _ = writeln!(out, "  {name} ({licence}): {what}");
        }
        out += "  SQLite (public domain), inside libsqlite3-sys\n\nCrates:\n";
        let mut texts: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for (key, linked) in self.crates.iter().filter(|(_, linked)| !linked.is_ours) {
            let _ = writeln!(out, "  {key} ({}) {}", linked.licence, linked.repository);
            let found = licence_texts(&linked.folder)?;
            if found.is_empty() {
                bail!("{key}: no licence file in {}", linked.folder.display());
            }
            for text in found {
                texts.entry(text).or_default().insert(key);
            }
        }
        let mut texts: Vec<_> = texts.into_iter().collect();
        texts.sort_by(|a, b| (a.1.first(), &a.0).cmp(&(b.1.first(), &b.0)));
        for (text, owners) in texts {
            let owners: Vec<&str> = owners.into_iter().collect();
            let _ = write!(out, "\n{}\n{}\n\n{}\n", "-".repeat(78), owners.join(", "), text.trim_end());
        }
        Ok(out)
    }
}

fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(crate::repository());
    cargo
}

fn said(mut cargo: Command) -> Result<String> {
    let output = cargo.output().context("cargo could not be run")?;
    if !output.status.success() {
        bail!("cargo: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Who uses what, from lines `2 clap_builder v4.6.7 (*)`; the number is how deep it stands.
fn uses(tree: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut above: Vec<String> = Vec::new();
    for line in tree.lines() {
        let mut words = line.split_whitespace();
        let (Some(depth), Some(name), Some(version)) = (words.next(), words.next(), words.next()) else { continue };
        let Ok(depth) = depth.parse::<usize>() else { continue };
        let key = format!("{name} {}", version.trim_start_matches('v'));
        above.truncate(depth);
        if let Some(user) = above.last() {
            uses.entry(user.clone()).or_default().insert(key.clone());
        }
        uses.entry(key.clone()).or_default();
        above.push(key);
    }
    uses
}

fn checksum(lock: &str, name: &str, version: &str) -> Option<String> {
    let head = format!("name = \"{name}\"\nversion = \"{version}\"\n");
    let entry = lock.split("[[package]]\n").find(|entry| entry.starts_with(&head))?;
    Some(entry.split_once("checksum = \"")?.1.split_once('"')?.0.to_string())
}

/// The licence files of one crate, also those a folder further down (licences of parts).
fn licence_texts(folder: &Path) -> Result<BTreeSet<String>> {
    let is_licence = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["license", "licence", "copying", "copyright", "notice", "unlicense"].iter().any(|word| name.starts_with(word))
    };
    let mut texts = BTreeSet::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("{}: not readable", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !is_licence(&name) {
            continue;
        }
        if path.is_dir() {
            for inner in std::fs::read_dir(&path)? {
                texts.insert(String::from_utf8_lossy(&std::fs::read(inner?.path())?).replace('\r', ""));
            }
        } else {
            texts.insert(String::from_utf8_lossy(&std::fs::read(&path)?).replace('\r', ""));
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_become_edges_and_repeated_lines_add_none_twice() {
        let uses = uses("0 a v1.0.0 (/here)\n1 b v2.0.0\n2 c v3.0.0\n1 c v3.0.0 (*)\n1 d v4.0.0\n");
        let of = |key: &str| uses[key].iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(of("a 1.0.0"), ["b 2.0.0", "c 3.0.0", "d 4.0.0"]);
        assert_eq!(of("b 2.0.0"), ["c 3.0.0"]);
        assert!(of("c 3.0.0").is_empty() && of("d 4.0.0").is_empty());
    }

    #[test]
    fn checksums_are_of_the_version_asked_for() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"1\"\nchecksum = \"aa\"\n\n[[package]]\nname = \"a\"\nversion = \"2\"\nchecksum = \"bb\"\n\n\
                    [[package]]\nname = \"ours\"\nversion = \"1\"\n";
        assert_eq!(checksum(lock, "a", "2").as_deref(), Some("bb"));
        assert_eq!(checksum(lock, "ours", "1"), None);
    }
}
