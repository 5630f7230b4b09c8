//! From the numbers of cgroups that the probe counted by to pods and containers.
//!
//! Names of pods and containers are read once, at the end. Nothing is asked of a kubelet or a runtime: its folders and the files of Docker
//! and Podman are read, where that is allowed. Who stays is told from who passes by folders that were there when the trace began and are when it ends; the
//! one that wakewatt itself runs in is marked, because nobody shall be told to mend it.

use super::folders::Folders;
use crate::refusal::Refusal;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use wakewatt_core::samples::payers::{PayerFolder, PayerKind, Payers, PodNames, container_of, pod_of};
use wakewatt_core::samples::traced::Presence;
use wakewatt_core::samples::wakes::WakeCounters;
use wakewatt_core::source::Source;

/// What is known of the cgroups of a trace.
#[derive(Debug)]
pub(super) struct Groups {
    by: PayerKind,
    folders: Folders,
    /// There when it began.
    first: BTreeSet<u64>,
    /// Did a person ask? Else nothing is said where nothing can be told apart.
    is_asked: bool,
}

impl Groups {
    /// Refuses where paths mean something else here.
    pub(super) fn start(by: PayerKind) -> Result<Groups, Refusal> {
        let folders = Folders::start().map_err(|why| Refusal::Unavailable(format!("--by {}: {why}", by.word())))?;
        Ok(Groups { is_asked: true, ..Groups::with(by, folders) })
    }

    /// By what this machine runs: pods, else containers, else cgroups. None where paths mean something else here.
    pub(super) fn of_this_machine() -> Option<Groups> {
        let folders = Folders::start().ok()?;
        let by = kind_of(folders.paths().map(|(_, path)| path));
        Some(Groups::with(by, folders))
    }

    fn with(by: PayerKind, folders: Folders) -> Groups {
        let first = folders.paths().map(|(id, _)| id).collect();
        Groups { by, folders, first, is_asked: false }
    }

    /// Looks for folders of numbers that came up.
    pub(super) fn learn(&mut self, counters: &WakeCounters) {
        self.folders.learn(counters.groups.iter().map(|group| group.cgroup));
    }

    /// Who pays, and what a reader must know of it; none where nobody asked and all are in one cgroup.
    pub(super) fn payers(
        &self,
        counters: &WakeCounters,
        state_of: &dyn Fn(u32) -> String,
        src: &dyn Source,
    ) -> Option<(Payers, Vec<String>)> {
        let names = RefCell::new(names(src));
        let own = own_path(src);
        let folder_of = |id: u64| {
            let path = self.folders.path(id)?;
            if let (PayerKind::Container, Some(id)) = (self.by, container_of(path)) {
                let mut names = names.borrow_mut();
                if let Some(name) = (!names.has_container(id)).then(|| docker_name(id, src)).flatten() {
                    names.container(id, &name);
                }
            }
            let stays = self.first.contains(&id) && self.folders.is_there(id);
            let presence = if stays { Presence::Throughout } else { Presence::Passing };
            Some(PayerFolder {
                path: path.into(),
                presence,
                is_own: own.as_deref().is_some_and(|own| is_same(self.by, own, path)),
            })
        };
        let found: BTreeMap<u64, Option<PayerFolder>> =
            counters.groups.iter().map(|g| (g.cgroup, folder_of(g.cgroup))).collect();
        let names = names.into_inner();
        let payers = Payers::of(self.by, &counters.groups, state_of, &|id| found.get(&id).cloned().flatten(), &names);
        let mut remarks = Vec::new();
        let paths: BTreeSet<&str> = found.values().flatten().map(|folder| folder.path.as_str()).collect();
        if paths.is_empty() && !self.is_asked {
            return None;
        }
        if paths.len() == 1 && paths.contains("/") {
            if !self.is_asked {
                return None;
            }
            remarks.push(
                "who pays: everything counted is in the root of the cgroup version 2 hierarchy; where a machine sorts its \
                 processes by version 1, that is not looked at"
                    .into(),
            );
        }
        // Unasked the numbers speak for themselves.
        if self.is_asked
            && self.by != PayerKind::Cgroup
            && names == PodNames::default()
            && payers.rows.iter().any(|r| r.cgroup.is_some())
        {
            remarks.push(
                "who pays: no names of pods or containers can be read (/var/log/pods, /var/log/containers, \
                 /var/lib/docker/containers, /var/lib/containers/storage), so numbers stand instead"
                    .into(),
            );
        }
        Some((payers, remarks))
    }
}

/// The same payer?
fn is_same(by: PayerKind, a: &str, b: &str) -> bool {
    let same = |one: Option<String>, other: Option<String>| one.is_some() && one == other;
    match by {
        PayerKind::Cgroup => a == b,
        PayerKind::Pod => same(pod_of(a), pod_of(b)),
        PayerKind::Container => same(container_of(a).map(String::from), container_of(b).map(String::from)),
    }
}

/// What people look for on a machine with such cgroups.
fn kind_of<'a>(paths: impl Iterator<Item = &'a str>) -> PayerKind {
    let mut kind = PayerKind::Cgroup;
    for path in paths {
        if pod_of(path).is_some() {
            return PayerKind::Pod;
        }
        if container_of(path).is_some() {
            kind = PayerKind::Container;
        }
    }
    kind
}

/// Of the cgroup that this process is in (cgroups(7): the line of version 2 begins with `0::`).
fn own_path(src: &dyn Source) -> Option<String> {
    let bytes = src.read("/proc/self/cgroup").ok()?;
    String::from_utf8_lossy(&bytes).lines().find_map(|line| Some(line.strip_prefix("0::")?.to_string()))
}

/// Names from kubelet's log folders.
pub(super) fn names(src: &dyn Source) -> PodNames {
    let list = |path: &str| src.list(path).unwrap_or_default();
    let mut names = PodNames::of(&list("/var/log/pods"), &list("/var/log/containers"));
    for (id, name) in podman_names(src) {
        if !names.has_container(&id) {
            names.container(&id, &name);
        }
    }
    names
}

/// Podman (and CRI-O, whose pods kubelet has told already) keeps one file for all of root's containers.
fn podman_names(src: &dyn Source) -> Vec<(String, String)> {
    let bytes = src.read("/var/lib/containers/storage/overlay-containers/containers.json").unwrap_or_default();
    let all = serde_json::from_slice::<serde_json::Value>(&bytes).unwrap_or_default();
    let one = |c: &serde_json::Value| Some((c["id"].as_str()?.to_string(), c["names"][0].as_str()?.to_string()));
    all.as_array().into_iter().flatten().filter_map(one).collect()
}

/// Docker keeps a container's name in a file of its own.
pub(super) fn docker_name(id: &str, src: &dyn Source) -> Option<String> {
    let bytes = src.read(&format!("/var/lib/docker/containers/{id}/config.v2.json")).ok()?;
    let config = serde_json::from_slice::<serde_json::Value>(&bytes).ok()?;
    config["Name"].as_str().map(|n| n.trim_start_matches('/').to_string()).filter(|n| !n.is_empty())
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
        let folders = Folders::below(root.path().into());
        let mut groups = Groups { is_asked: true, ..Groups::with(PayerKind::Container, folders) };
        let folder = root.path().join(format!("system.slice/docker-{ID}.scope"));
        std::fs::create_dir_all(&folder).unwrap();
        let group = |cgroup| GroupCounters { cgroup, state: Some(1), n: 3, sum_ns: 9 };
        let there = std::fs::metadata(&folder).unwrap().ino();
        let counters = WakeCounters { groups: vec![group(1), group(there)], ..WakeCounters::default() };
        groups.learn(&counters);
        let docker = format!("//- /var/lib/docker/containers/{ID}/config.v2.json\n{{\"Name\":\"/web\"}}\n");
        let (payers, remarks) = groups.payers(&counters, &|_| "C1".into(), &Tree::from_text(&docker)).unwrap();
        let mut names: Vec<&str> = payers.rows.iter().map(|r| r.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!((names, remarks.len()), (vec!["gone, or never seen (cgroup 1)", "web"], 0));
        let (payers, remarks) = groups.payers(&counters, &|_| "C1".into(), &Tree::from_text("")).unwrap();
        assert!(payers.rows.iter().any(|r| r.name == "container 0123456789ab"), "{payers:?}");
        let file = "/var/lib/containers/storage/overlay-containers/containers.json";
        let podman = format!("//- {file}\n[{{\"id\":\"{ID}\",\"names\":[\"shop\"]}},{{\"id\":7}},8]\n");
        let named = groups.payers(&counters, &|_| "C1".into(), &Tree::from_text(&podman)).unwrap().0;
        assert!(named.rows.iter().any(|r| r.name == "shop"), "{named:?}");
        assert_eq!(remarks.len(), 1, "{remarks:?}");
    }

    #[test]
    fn who_came_later_passes_and_ours_is_marked() {
        let root = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let folder = root.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            std::fs::metadata(folder).unwrap().ino()
        };
        let (early, ours, left) = (make("early"), make("ours"), make("left"));
        let mut groups = Groups::with(PayerKind::Cgroup, Folders::below(root.path().into()));
        let late = make("late");
        std::fs::remove_dir(root.path().join("left")).unwrap();
        let group = |cgroup| GroupCounters { cgroup, state: Some(1), n: 3, sum_ns: 9 };
        let counters =
            WakeCounters { groups: [early, ours, left, late].map(group).to_vec(), ..WakeCounters::default() };
        groups.learn(&counters);
        let src = Tree::from_text("//- /proc/self/cgroup\n12:cpu:/x\n0::/ours\n");
        let (payers, _) = groups.payers(&counters, &|_| "C1".into(), &src).unwrap();
        assert_eq!(payers.named("C1").map(|row| row.name.as_str()).collect::<Vec<_>>(), ["/early"]);
        assert_eq!((payers.rows.len(), payers.rows.iter().filter(|row| row.is_own).count()), (4, 1));
    }

    #[test]
    fn where_nothing_can_be_told_apart_nobody_hears_of_it_unasked() {
        let root = tempfile::tempdir().unwrap();
        let ino = std::fs::metadata(root.path()).unwrap().ino();
        let group = GroupCounters { cgroup: ino, state: Some(1), n: 3, sum_ns: 9 };
        let counters = WakeCounters { groups: vec![group], ..WakeCounters::default() };
        let groups = Groups::with(PayerKind::Cgroup, Folders::below(root.path().into()));
        let src = Tree::from_text("");
        assert_eq!(groups.payers(&counters, &|_| "C1".into(), &src), None);
        let asked = Groups { is_asked: true, ..groups };
        assert!(asked.payers(&counters, &|_| "C1".into(), &src).is_some_and(|(_, remarks)| remarks.len() == 1));
    }

    #[test]
    fn what_is_looked_for_is_what_the_machine_runs() {
        let (docker, pod) = (format!("/system.slice/docker-{ID}.scope"), format!("/kubepods/pod{ID}/x"));
        assert_eq!(kind_of(["/", "/user.slice"].into_iter()), PayerKind::Cgroup);
        assert_eq!(kind_of(["/", &docker].into_iter()), PayerKind::Container);
        assert_eq!(kind_of([docker.as_str(), &pod].into_iter()), PayerKind::Pod);
        assert!(is_same(PayerKind::Pod, &pod, &format!("/kubepods/pod{ID}/y")) && !is_same(PayerKind::Pod, "/a", "/a"));
    }
}
