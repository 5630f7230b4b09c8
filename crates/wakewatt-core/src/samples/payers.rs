//! Who pays for sleeping CPUs: wake-ups out of idle summed by cgroup, by pod or by container.
//!
//! The probe sums by cgroup (version 2), of the task that was woken: whoever woke it pays nothing. A pod and a container are read
//! from the cgroup's path, whose shapes kubelet, containerd, CRI-O, Docker and Podman share; what people call them comes from the
//! names of kubelet's log folders (`/var/log/pods/NAMESPACE_POD_UID`, `/var/log/containers/POD_NAMESPACE_CONTAINER-ID.log`) and from
//! Docker's own file. Where those may not be read the number stays. What is in no pod, or no container, is one row for each state.

use super::Label;
use super::presence::Presence;
use super::wakes::GroupCounters;
use crate::arrange::Arrange as _;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Rows that are kept; the others are summed, so a document does not grow with the number of containers.
pub const MOST_ROWS: usize = 200;

/// What is added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PayerKind {
    /// Each cgroup by itself.
    Cgroup,
    /// All cgroups of a Kubernetes pod.
    Pod,
    /// All cgroups of a container.
    Container,
}

impl PayerKind {
    /// In a heading.
    pub fn word(self) -> &'static str {
        match self {
            PayerKind::Cgroup => "cgroup",
            PayerKind::Pod => "pod",
            PayerKind::Container => "container",
        }
    }
}

/// What kinds are called, looked up where they are shown.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    [PayerKind::Cgroup, PayerKind::Pod, PayerKind::Container].into_iter().map(PayerKind::word)
}

/// What one payer lost to one idle state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PayerRow {
    /// What people call it, or its number.
    pub name: String,
    /// The path of its cgroup below the root of version 2, one of them where there are several; none where it is gone or not of one cgroup.
    pub cgroup: Option<String>,
    /// Name of the idle state that the CPU was leaving.
    pub state: String,
    /// How many wake-ups left this state for it.
    pub n: u64,
    /// Latency of these wake-ups added up, in nanoseconds.
    pub total_ns: u64,
    /// What the numbers are worth.
    pub label: Label,
    /// Was one of its cgroups there over the whole trace?
    #[serde(default)]
    pub presence: Presence,
    /// Does wakewatt itself run in it?
    #[serde(default)]
    pub is_own: bool,
}

/// What is known of a cgroup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PayerFolder {
    /// Its path below the root of version 2.
    pub path: String,
    /// Was it there over the whole trace?
    pub presence: Presence,
    /// Does wakewatt itself run in it?
    pub is_own: bool,
}

/// Wake-ups out of idle added up by whoever was woken: cgroups, pods or containers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Payers {
    /// What the rows add up.
    pub by: PayerKind,
    /// Most time lost first, 200 at most.
    pub rows: Vec<PayerRow>,
    /// Rows that are left out, and only in the two sums below.
    pub n_more: u64,
    /// Wake-ups of what is left out.
    pub n_more_wakes: u64,
    /// Time lost of what is left out, in nanoseconds.
    pub more_total_ns: u64,
}

/// What is known of names on this host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodNames {
    /// `namespace/pod` by the pod's uid.
    pods: BTreeMap<String, String>,
    /// `namespace/pod/container` by the container's id.
    containers: BTreeMap<String, String>,
}

impl PodNames {
    /// From the names in /var/log/pods and /var/log/containers.
    pub fn of(pod_folders: &[String], container_logs: &[String]) -> PodNames {
        let mut names = PodNames::default();
        for folder in pod_folders {
            // Neither a namespace nor a pod may hold an underscore.
            if let [namespace, pod, uid] = folder.split('_').collect::<Vec<_>>()[..] {
                names.pods.insert(uid.into(), format!("{namespace}/{pod}"));
            }
        }
        for log in container_logs {
            let Some((front, id)) = log.strip_suffix(".log").and_then(|l| l.rsplit_once('-')) else { continue };
            if let [pod, namespace, container] = front.split('_').collect::<Vec<_>>()[..] {
                names.containers.insert(id.into(), format!("{namespace}/{pod}/{container}"));
            }
        }
        names
    }

    /// One that a container runtime's own file told.
    pub fn container(&mut self, id: &str, name: &str) {
        self.containers.insert(id.into(), name.into());
    }

    /// Is this container's name known?
    pub fn has_container(&self, id: &str) -> bool {
        self.containers.contains_key(id)
    }
}

/// The uid of the pod whose cgroup this is, with hyphens as Kubernetes writes it.
pub fn pod_of(path: &str) -> Option<String> {
    path.split('/').find_map(|part| {
        let part = part.strip_suffix(".slice").unwrap_or(part);
        // kubepods-burstable-pod<uid> with the systemd driver, pod<uid> with cgroupfs.
        let uid =
            part.strip_prefix("pod").or_else(|| part.strip_prefix("kubepods")?.split_once("-pod").map(|p| p.1))?;
        let uid = uid.replace('_', "-");
        (uid.len() >= 32 && uid.chars().all(|c| c.is_ascii_hexdigit() || c == '-')).then_some(uid)
    })
}

/// The id of the container whose cgroup this is: 64 hexadecimal digits. Of containers in containers the innermost; the monitor beside one (conmon)
/// is not in it.
pub fn container_of(path: &str) -> Option<&str> {
    path.rsplit('/').filter(|part| !part.contains("conmon-")).find_map(|part| {
        let part = part.strip_suffix(".scope").unwrap_or(part);
        let id = part.rsplit_once(['-', ':']).map_or(part, |(_, id)| id);
        (id.len() == 64 && id.bytes().all(|b| b.is_ascii_hexdigit())).then_some(id)
    })
}

impl Payers {
    /// Who pays for this state and can be named: one thing, there over the whole trace, and not ourselves; most time lost first.
    pub fn named<'a>(&'a self, state: &'a str) -> impl Iterator<Item = &'a PayerRow> {
        let is_one = |row: &&PayerRow| row.cgroup.as_ref().is_some_and(|path| path != "/");
        let stays = |row: &&PayerRow| row.presence == Presence::Throughout && !row.is_own;
        self.rows.iter().filter(move |row| row.state == state).filter(is_one).filter(stays)
    }

    /// Adds up. `folder_of` knows the folders of cgroups that are there, or were.
    pub fn of(
        by: PayerKind,
        groups: &[GroupCounters],
        state_of: &dyn Fn(u32) -> String,
        folder_of: &dyn Fn(u64) -> Option<PayerFolder>,
        names: &PodNames,
    ) -> Payers {
        let mut sums: BTreeMap<(String, String), PayerRow> = BTreeMap::new();
        for group in groups {
            let folder = folder_of(group.cgroup);
            let named = folder.as_ref().map(|folder| name(by, &folder.path, names));
            let (name, is_one) =
                named.unwrap_or_else(|| (format!("gone, or never seen (cgroup {})", group.cgroup), true));
            let PayerFolder { path, presence, is_own } = folder.clone().unwrap_or_default();
            let state = group.state.map_or("?".to_string(), state_of);
            let row = sums.entry((name.clone(), state.clone())).or_insert_with(|| PayerRow {
                name,
                cgroup: folder.filter(|_| is_one).map(|_| path),
                state,
                n: 0,
                total_ns: 0,
                label: Label::Measured,
                presence,
                is_own,
            });
            if presence == Presence::Throughout {
                row.presence = presence;
            }
            row.is_own |= is_own;
            row.n += group.n;
            row.total_ns += group.sum_ns;
        }
        let mut rows: Vec<PayerRow> = sums.into_values().collect();
        rows.arrange_by_key(|r| std::cmp::Reverse(r.total_ns));
        let more = rows.split_off(rows.len().min(MOST_ROWS));
        Payers {
            by,
            rows,
            n_more: more.len() as u64,
            n_more_wakes: more.iter().map(|r| r.n).sum(),
            more_total_ns: more.iter().map(|r| r.total_ns).sum(),
        }
    }
}

/// What to call whoever has this cgroup, and whether it is one thing.
pub fn name(by: PayerKind, path: &str, names: &PodNames) -> (String, bool) {
    match by {
        PayerKind::Cgroup => (path.into(), true),
        PayerKind::Pod => match pod_of(path) {
            Some(uid) => (names.pods.get(&uid).cloned().unwrap_or_else(|| format!("pod {uid}")), true),
            None => ("in no pod".into(), false),
        },
        PayerKind::Container => match container_of(path) {
            Some(id) => {
                let short = || format!("container {}", id.get(..12).unwrap_or(id));
                (names.containers.get(id).cloned().unwrap_or_else(short), true)
            }
            None => ("in no container".into(), false),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    const UID: &str = "2c48913c-b29f-11e7-9350-020968147796";

    #[test]
    fn pods_and_containers_are_read_from_the_paths_of_every_runtime() {
        let under = UID.replace('-', "_");
        let systemd = format!(
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{under}.slice/cri-containerd-{ID}.scope"
        );
        let guaranteed = format!("/kubepods.slice/kubepods-pod{under}.slice/crio-{ID}.scope/container");
        let cgroupfs = format!("/kubepods/besteffort/pod{UID}/{ID}");
        let nested = format!("/kubepods-besteffort-pod{under}.slice:cri-containerd:{ID}");
        for path in [systemd, guaranteed, cgroupfs] {
            assert_eq!((pod_of(&path).as_deref(), container_of(&path)), (Some(UID), Some(ID)), "{path}");
        }
        assert_eq!(container_of(&nested), Some(ID));
        // A static pod's uid is a hash without hyphens.
        assert_eq!(pod_of(&format!("/kubepods/pod{}", &ID[..32])).as_deref(), Some(&ID[..32]));
        for path in [format!("/system.slice/docker-{ID}.scope"), format!("/machine.slice/libpod-{ID}.scope")] {
            assert_eq!((pod_of(&path), container_of(&path)), (None, Some(ID)), "{path}");
        }
        let other = ID.replace('0', "f");
        assert_eq!(container_of(&format!("/docker/{other}/kubelet/kubepods/pod{UID}/{ID}")), Some(ID), "kind");
        assert_eq!(container_of(&format!("/machine.slice/libpod-conmon-{ID}.scope")), None);
        for path in ["/", "/system.slice/podman.service", "/user.slice/user-1000.slice", "/kubepods.slice", "/podzilla"]
        {
            assert_eq!((pod_of(path), container_of(path)), (None, None), "{path}");
        }
    }

    #[test]
    fn names_come_from_the_log_folders_and_a_number_stays_without() {
        let names =
            PodNames::of(&[format!("shop_web-0_{UID}"), "rubbish".into()], &[format!("web-0_shop_nginx-{ID}.log")]);
        let path = format!("/kubepods/pod{UID}/{ID}");
        let group = |cgroup, state, sum_ns| GroupCounters { cgroup, state: Some(state), n: 2, sum_ns };
        let groups = [group(7, 1, 500), group(8, 1, 100), group(9, 1, 50), group(9, 2, 900), group(10, 1, 1)];
        let folder = |path: String| PayerFolder { path, ..PayerFolder::default() };
        let path_of = |id| match id {
            7 | 8 => Some(folder(path.clone() + if id == 8 { "/init" } else { "" })),
            9 => Some(folder("/system.slice/sshd.service".into())),
            _ => None,
        };
        let told = |by| {
            let payers = Payers::of(by, &groups, &|s| format!("C{s}"), &path_of, &names);
            payers.rows.iter().map(|r| format!("{} {} {}", r.name, r.state, r.total_ns)).collect::<Vec<_>>()
        };
        let gone = "gone, or never seen (cgroup 10) C1 1";
        assert_eq!(told(PayerKind::Pod), ["in no pod C2 900", "shop/web-0 C1 600", "in no pod C1 50", gone]);
        assert_eq!(told(PayerKind::Container)[1], "shop/web-0/nginx C1 600");
        assert_eq!(told(PayerKind::Cgroup)[0], "/system.slice/sshd.service C2 900");
        let unnamed = Payers::of(PayerKind::Pod, &groups, &|_| "C1".into(), &path_of, &PodNames::default());
        assert!(unnamed.rows.iter().any(|r| r.name == format!("pod {UID}")), "{unnamed:?}");
    }

    #[test]
    fn named_is_who_stays_is_one_thing_and_not_ourselves() {
        let group = |cgroup, sum_ns| GroupCounters { cgroup, state: Some(1), n: 2, sum_ns };
        let groups = [group(1, 50), group(2, 40), group(3, 30), group(4, 20), group(5, 10)];
        let (stays, passes) = (Presence::Throughout, Presence::Passing);
        let folder = |path: &str, presence, is_own| Some(PayerFolder { path: path.into(), presence, is_own });
        let folder_of = |id| match id {
            1 => folder("/", stays, false),
            2 => folder("/job", passes, false),
            3 => folder("/ours", stays, true),
            4 => folder("/web", stays, false),
            _ => None,
        };
        let payers = Payers::of(PayerKind::Cgroup, &groups, &|_| "C1".into(), &folder_of, &PodNames::default());
        assert_eq!(payers.named("C1").map(|row| row.name.as_str()).collect::<Vec<_>>(), ["/web"]);
        assert_eq!(payers.named("C6").count(), 0);
        // A pod of several cgroups, of which one came later.
        let (path, uid) = (|at: u32| format!("/kubepods/pod{UID}/{at}"), UID);
        let folder_of =
            |id: u64| folder(&path(u32::try_from(id).unwrap()), if id == 2 { stays } else { passes }, id == 3);
        let pods = Payers::of(PayerKind::Pod, &groups[..2], &|_| "C1".into(), &folder_of, &PodNames::default());
        assert_eq!(pods.named("C1").map(|row| row.name.clone()).collect::<Vec<_>>(), [format!("pod {uid}")]);
        let ours = Payers::of(PayerKind::Pod, &groups[..3], &|_| "C1".into(), &folder_of, &PodNames::default());
        assert_eq!(ours.named("C1").count(), 0);
    }

    #[test]
    fn many_payers_end_in_a_sum_that_loses_none() {
        let groups: Vec<GroupCounters> =
            (0..1000u64).map(|cgroup| GroupCounters { cgroup, state: Some(1), n: 1, sum_ns: cgroup }).collect();
        let payers = Payers::of(
            PayerKind::Cgroup,
            &groups,
            &|_| "C1".into(),
            &|id| Some(PayerFolder { path: format!("/g{id}"), ..PayerFolder::default() }),
            &PodNames::default(),
        );
        assert_eq!((payers.rows.len(), payers.n_more, payers.n_more_wakes), (MOST_ROWS, 800, 800));
        let all: u64 = payers.rows.iter().map(|r| r.total_ns).sum::<u64>() + payers.more_total_ns;
        assert_eq!((all, payers.rows[0].total_ns), ((0..1000).sum(), 999));
    }
}
