//! From the numbers of cgroups that the probe counted by to paths, pods and containers.
//!
//! A cgroup's number is the inode number of its folder in the version 2 hierarchy. Folders are looked for at every window's end, and only
//! where a number is not known yet: a pod that ends within a window stays a number. Names of pods and containers are read once, at the end.
//! Nothing is asked of a kubelet or a runtime: its folders and Docker's own file are read, where that is allowed.

use super::scope;
use crate::refusal::Refusal;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};
use wakewatt_core::samples::payers::{PayerKind, Payers, PodNames, container_of};
use wakewatt_core::samples::wakes::WakeCounters;
use wakewatt_core::source::Source;
use wakewatt_probes::namespace;

/// No machine has more; a walk ends there.
const MOST_FOLDERS: usize = 200_000;
/// Deeper is nothing that a runtime makes.
const MOST_LEVELS: usize = 32;

/// What is known of the cgroups of a trace.
#[derive(Debug)]
pub(super) struct Groups {
    by: PayerKind,
    root: PathBuf,
    paths: BTreeMap<u64, String>,
    /// Looked for in vain: gone before anybody looked.
    gone: BTreeSet<u64>,
}

impl Groups {
    /// Refuses where paths mean something else here.
    pub(super) fn start(by: PayerKind) -> Result<Groups, Refusal> {
        let asked = format!("--by {}", by.word());
        let root = scope::cgroup_root().ok_or_else(|| {
            Refusal::Unavailable(format!("{asked}: no cgroup version 2 hierarchy is mounted under {}", scope::CGROUPS))
        })?;
        if !namespace::has_kernel_cgroup_paths() {
            return Err(Refusal::Unavailable(format!(
                "{asked}: /proc/self/ns/cgroup: inside a cgroup namespace other containers have no paths; run with the host's"
            )));
        }
        let mut groups = Groups { by, root, paths: BTreeMap::new(), gone: BTreeSet::new() };
        groups.walk();
        Ok(groups)
    }

    /// Looks for folders of numbers that came up.
    pub(super) fn learn(&mut self, counters: &WakeCounters) {
        let is_new = |id: &u64| !self.paths.contains_key(id) && !self.gone.contains(id);
        let new: Vec<u64> = counters.groups.iter().map(|g| g.cgroup).filter(is_new).collect();
        if !new.is_empty() {
            self.walk();
            self.gone.extend(new.into_iter().filter(|id| !self.paths.contains_key(id)));
        }
    }

    fn walk(&mut self) {
        if let Ok(ino) = std::fs::metadata(&self.root).map(|m| std::os::unix::fs::MetadataExt::ino(&m)) {
            self.paths.insert(ino, "/".into());
        }
        let mut left = vec![(self.root.clone(), 0)];
        let mut n_seen = 0;
        while let Some((folder, level)) = left.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                if !entry.file_type().is_ok_and(|t| t.is_dir()) {
                    continue;
                }
                n_seen += 1;
                if n_seen > MOST_FOLDERS {
                    return;
                }
                self.paths.insert(entry.ino(), below(&self.root, &entry.path()));
                if level < MOST_LEVELS {
                    left.push((entry.path(), level + 1));
                }
            }
        }
    }

    /// Who pays, and what a reader must know of it.
    pub(super) fn payers(
        &self,
        counters: &WakeCounters,
        state_of: &dyn Fn(u32) -> String,
        src: &dyn Source,
    ) -> (Payers, Vec<String>) {
        let names = RefCell::new(names(src));
        let path_of = |id: u64| {
            let path = self.paths.get(&id).cloned()?;
            if let (PayerKind::Container, Some(id)) = (self.by, container_of(&path)) {
                docker_name(id, &mut names.borrow_mut(), src);
            }
            Some(path)
        };
        let found: BTreeMap<u64, Option<String>> =
            counters.groups.iter().map(|g| (g.cgroup, path_of(g.cgroup))).collect();
        let names = names.into_inner();
        let payers = Payers::of(self.by, &counters.groups, state_of, &|id| found.get(&id).cloned().flatten(), &names);
        let mut remarks = Vec::new();
        let paths: BTreeSet<&str> = found.values().flatten().map(String::as_str).collect();
        if paths.len() == 1 && paths.contains("/") {
            remarks.push(
                "who pays: everything counted is in the root of the cgroup version 2 hierarchy; where a machine sorts its \
                 processes by version 1, that is not looked at"
                    .into(),
            );
        }
        if self.by != PayerKind::Cgroup
            && names == PodNames::default()
            && payers.rows.iter().any(|r| r.cgroup.is_some())
        {
            remarks.push(
                "who pays: no names of pods or containers can be read (/var/log/pods, /var/log/containers, \
                 /var/lib/docker/containers), so numbers stand instead"
                    .into(),
            );
        }
        (payers, remarks)
    }
}

fn below(root: &Path, folder: &Path) -> String {
    format!("/{}", folder.strip_prefix(root).unwrap_or(folder).display())
}

fn names(src: &dyn Source) -> PodNames {
    let list = |path: &str| src.list(path).unwrap_or_default();
    PodNames::of(&list("/var/log/pods"), &list("/var/log/containers"))
}

/// Docker keeps a container's name in a file of its own.
fn docker_name(id: &str, names: &mut PodNames, src: &dyn Source) {
    if names.has_container(id) {
        return;
    }
    let Ok(bytes) = src.read(&format!("/var/lib/docker/containers/{id}/config.v2.json")) else { return };
    let Ok(config) = serde_json::from_slice::<serde_json::Value>(&bytes) else { return };
    if let Some(name) = config["Name"].as_str().map(|n| n.trim_start_matches('/')).filter(|n| !n.is_empty()) {
        names.container(id, name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use wakewatt_core::samples::wakes::GroupCounters;
    use wakewatt_core::source::Tree;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    /// Folders stand in for cgroups: what counts is their inode number.
    #[test]
    fn a_group_that_comes_later_is_found_and_one_that_is_gone_stays_a_number() {
        let root = tempfile::tempdir().unwrap();
        let mut groups = Groups {
            by: PayerKind::Container,
            root: root.path().into(),
            paths: BTreeMap::new(),
            gone: BTreeSet::new(),
        };
        groups.walk();
        let folder = root.path().join(format!("system.slice/docker-{ID}.scope"));
        std::fs::create_dir_all(&folder).unwrap();
        let group = |cgroup| GroupCounters { cgroup, state: Some(1), n: 3, sum_ns: 9 };
        let there = std::fs::metadata(&folder).unwrap().ino();
        let counters = WakeCounters { groups: vec![group(1), group(there)], ..WakeCounters::default() };
        groups.learn(&counters);
        let docker = format!("//- /var/lib/docker/containers/{ID}/config.v2.json\n{{\"Name\":\"/web\"}}\n");
        let (payers, remarks) = groups.payers(&counters, &|_| "C1".into(), &Tree::from_text(&docker));
        let mut names: Vec<&str> = payers.rows.iter().map(|r| r.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!((names, remarks.len()), (vec!["gone, or never seen (cgroup 1)", "web"], 0));
        let (payers, remarks) = groups.payers(&counters, &|_| "C1".into(), &Tree::from_text(""));
        assert!(payers.rows.iter().any(|r| r.name == "container 0123456789ab"), "{payers:?}");
        assert_eq!(remarks.len(), 1, "{remarks:?}");
    }
}
