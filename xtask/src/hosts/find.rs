//! The recorded machines of a folder: trees, archives of them (unpacked to a temporary folder), `.host` files.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A recorded machine.
pub(crate) struct Host {
    /// For tables.
    pub name: String,
    /// A folder that holds sys/, or a `.host` file.
    pub path: PathBuf,
}

/// Finds them, in order of name. `scratch` receives what archives hold.
pub(crate) fn hosts(folder: &Path, scratch: &Path) -> Result<Vec<Host>> {
    if let Some(tree) = tree_in(folder, 0) {
        return Ok(vec![Host { name: name(folder), path: tree }]);
    }
    if is_host_file(folder) {
        return Ok(vec![Host { name: name(folder), path: folder.into() }]);
    }
    let entries = std::fs::read_dir(folder).with_context(|| format!("{}: cannot be listed", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    paths.sort();
    let mut hosts = Vec::new();
    for path in paths {
        let found = if path.to_string_lossy().ends_with(".tar.xz") {
            let into = scratch.join(name(&path));
            unpack(&path, &into)?;
            Some(tree_in(&into, 2).with_context(|| format!("{}: holds no sys/ or proc/", path.display()))?)
        } else if is_host_file(&path) {
            Some(path.clone())
        } else {
            tree_in(&path, 2)
        };
        hosts.extend(found.map(|found| Host { name: name(&path), path: found }));
    }
    if hosts.is_empty() {
        bail!(
            "{}: no recorded host here; expected folders that hold sys/, .tar.xz of them, or .host files",
            folder.display()
        );
    }
    Ok(hosts)
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    name.trim_end_matches(".tar.xz").trim_end_matches(".host").to_string()
}

fn is_host_file(path: &Path) -> bool {
    path.is_file() && path.extension().is_some_and(|e| e == "host")
}

/// The tree itself, or the only one a few folders down (archives often hold NAME/sys).
fn tree_in(path: &Path, depth: u32) -> Option<PathBuf> {
    if path.join("sys").is_dir() || path.join("proc").is_dir() {
        return Some(path.into());
    }
    if depth == 0 {
        return None;
    }
    let mut inside: Vec<PathBuf> = std::fs::read_dir(path).ok()?.flatten().map(|e| e.path()).collect();
    inside.sort();
    inside.iter().filter(|p| p.is_dir()).find_map(|p| tree_in(p, depth - 1))
}

fn unpack(archive: &Path, into: &Path) -> Result<()> {
    std::fs::create_dir_all(into)?;
    let mut tar = Command::new("tar");
    tar.arg("--extract").arg("--xz").arg("--no-same-owner").arg("--file").arg(archive).arg("--directory").arg(into);
    let output =
        tar.output().context("tar could not be run; install tar and xz-utils, or unpack the archives yourself")?;
    if !output.status.success() {
        bail!(
            "{}: tar: {}; is xz-utils installed?",
            archive.display(),
            String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("failed")
        );
    }
    Ok(())
}
