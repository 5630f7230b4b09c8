//! A folder of `.host` and run files, one per node, each called as its node.

use crate::exit::{Code, Failure};
use crate::output;
use crate::saved;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
#[cfg(feature = "parquet")]
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use wakewatt_core::evidence::Evidence;
use wakewatt_core::facts::Snapshot;
use wakewatt_fleet::compare::Facts;
use wakewatt_fleet::folder::Machine;
use wakewatt_host::recorded;

/// Files by the name of their node.
pub(super) struct Files {
    /// What hosts say of themselves, and runs.
    facts: BTreeMap<String, PathBuf>,
    /// Recordings of idle time.
    traces: BTreeMap<String, PathBuf>,
}

impl Files {
    /// Those of a folder; a run file goes before a `.host` file of the same name, because it has both.
    pub(super) fn of(folder: &Path) -> Result<Files> {
        let read = std::fs::read_dir(folder).with_context(|| format!("{}: cannot be listed", folder.display()))?;
        let mut paths: Vec<PathBuf> = read.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        let mut files = Files { facts: BTreeMap::new(), traces: BTreeMap::new() };
        for path in paths {
            let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
            let kind = match ending {
                "host" | "run" => &mut files.facts,
                "wtrace" => &mut files.traces,
                _ => continue,
            };
            if let Some(name) = path.file_stem().map(|s| s.to_string_lossy().into_owned()) {
                kind.insert(name, path);
            }
        }
        if files.facts.is_empty() && files.traces.is_empty() {
            let why = "holds no .host and no .run file; make one on each node with: wakewatt capture -o NODE.host";
            return Err(Failure::error(Code::BadFile, format!("{}: {why}", folder.display())));
        }
        Ok(files)
    }

    /// The names of all nodes that have a file.
    #[cfg(feature = "parquet")]
    pub(super) fn names(&self) -> BTreeSet<&str> {
        self.facts.keys().chain(self.traces.keys()).map(String::as_str).collect()
    }

    /// A node's run, as a file, where it is one.
    #[cfg(feature = "parquet")]
    pub(super) fn run(&self, node: &str) -> Option<&Path> {
        self.facts.get(node).filter(|path| saved::is_run(path)).map(PathBuf::as_path)
    }

    /// A node's recording of idle time.
    pub(super) fn trace(&self, node: &str) -> Option<&Path> {
        named(&self.traces, node).map(PathBuf::as_path)
    }
}

/// A node's file by any of its names: with or without port and domain.
fn named<'a>(files: &'a BTreeMap<String, PathBuf>, node: &str) -> Option<&'a PathBuf> {
    let host = node.rsplit_once(':').map_or(node, |(host, _)| host);
    let first = host.split('.').next().unwrap_or(host);
    [node, host, first].into_iter().find_map(|name| files.get(name))
}

impl Facts for Files {
    fn of(&self, node: &str) -> Option<Snapshot> {
        let path = named(&self.facts, node)?;
        match evidence(path) {
            Ok(evidence) => Some(evidence.facts),
            Err(why) => {
                output::remark(&format!("{why:#}"));
                None
            }
        }
    }
}

/// All of them; a file that cannot be read is told and left out.
pub(super) fn machines(files: &Files) -> Result<Vec<Machine>> {
    let mut all = Vec::new();
    for (name, path) in &files.facts {
        match evidence(path) {
            Ok(evidence) => all.push(Machine { name: name.clone(), evidence }),
            Err(why) => output::remark(&format!("left out: {why:#}")),
        }
    }
    if all.is_empty() {
        return Err(Failure::error(Code::BadFile, "none of the files could be read"));
    }
    Ok(all)
}

fn evidence(path: &Path) -> Result<Evidence> {
    if saved::is_run(path) {
        return Ok(saved::open(path)?.1);
    }
    let facts = Snapshot::read(&recorded::open(path)?, |_| true);
    Ok(Evidence { facts, ..Evidence::default() })
}
