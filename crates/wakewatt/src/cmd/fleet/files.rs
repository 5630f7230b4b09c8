//! A folder of `.host` and run files, one per node, each called as its node; and `NODE.bios.json`, what `bios show --json` said of it.

use crate::exit::{Code, Failure};
use crate::output;
use crate::saved;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use wakewatt_core::evidence::Evidence;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::visible;
use wakewatt_fleet::compare::Facts;
use wakewatt_fleet::firmware::{Firmware, parse};
use wakewatt_fleet::folder::{Machine, told_by_bmc};
use wakewatt_fleet::table::Table;
use wakewatt_host::{input, recorded};

/// Files by the name of their node.
pub(super) struct Files {
    /// What hosts say of themselves, and runs.
    facts: BTreeMap<String, PathBuf>,
    /// Recordings of idle time.
    traces: BTreeMap<String, PathBuf>,
    /// What BMCs say of firmware.
    bios: BTreeMap<String, PathBuf>,
}

/// How the document of `bios show` is called, behind the node.
pub(super) const BIOS: &str = ".bios.json";

impl Files {
    /// Those of a folder; a run file goes before a `.host` file of the same name, because it has both.
    pub(super) fn of(folder: &Path) -> Result<Files> {
        let read = std::fs::read_dir(folder).with_context(|| format!("{}: cannot be listed", folder.display()))?;
        let mut paths: Vec<PathBuf> = read.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        let mut files = Files { facts: BTreeMap::new(), traces: BTreeMap::new(), bios: BTreeMap::new() };
        for path in paths {
            let file = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            if let Some(node) = file.strip_suffix(BIOS).filter(|node| !node.is_empty()) {
                files.bios.insert(node.into(), path);
                continue;
            }
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
        if files.facts.is_empty() && files.traces.is_empty() && files.bios.is_empty() {
            let why = "holds no .host, no .run and no .bios.json file; make one on each node with: wakewatt capture -o NODE.host";
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

    /// What BMCs say of nodes that a store knows.
    pub(super) fn tell_firmware(&self, table: &mut Table) {
        for node in &mut table.nodes {
            if let Some(firmware) = named(&self.bios, &node.name).and_then(|path| firmware(path)) {
                told_by_bmc(node, &firmware);
            }
        }
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
    let names: BTreeSet<&String> = files.facts.keys().chain(files.bios.keys()).collect();
    for name in names {
        let evidence = files.facts.get(name).map(|path| evidence(path)).transpose();
        let firmware = files.bios.get(name).and_then(|path| firmware(path));
        match evidence {
            Ok(None) if firmware.is_none() => {}
            Ok(evidence) => all.push(Machine { name: name.clone(), evidence: evidence.unwrap_or_default(), firmware }),
            Err(why) => output::remark(&format!("left out: {why:#}")),
        }
    }
    if all.is_empty() {
        return Err(Failure::error(Code::BadFile, "none of the files could be read"));
    }
    Ok(all)
}

/// What a document says of firmware; one that cannot be read is told and left out.
fn firmware(path: &Path) -> Option<Firmware> {
    let read = input::read(path, input::KEPT).map_err(|why| why.to_string());
    match read.and_then(|bytes| parse(&bytes).map_err(|why| format!("{}: {why}", path.display()))) {
        Ok(firmware) => {
            if let Some(why) = &firmware.unavailable {
                output::remark(&visible::line(&format!("{}: no settings of firmware: {why}", path.display())));
            }
            Some(firmware)
        }
        Err(why) => {
            output::remark(&visible::line(&format!("left out: {why}")));
            None
        }
    }
}

fn evidence(path: &Path) -> Result<Evidence> {
    if saved::is_run(path) {
        return Ok(saved::open(path)?.1);
    }
    let facts = Snapshot::read(&recorded::open(path)?, |_| true);
    Ok(Evidence { facts, ..Evidence::default() })
}
