//! CPU quotas: which groups of processes are stopped before their time slice is up, and how often.
//!
//! A quota looks like slow hardware: the tasks of a group that has used its share of a period (usually 100 ms) stand
//! still until the next one, while CPUs idle. Version 2: `cpu.max`, `cpu.stat` (Documentation/admin-guide/cgroup-v2.rst);
//! version 1: `cpu.cfs_quota_us`, `cpu.cfs_period_us`, `cpu.stat`. Both may be mounted at once. Only groups with a quota
//! or with throttling are kept. In a container the walk starts at the container's own group: limits above it, and
//! those of neighbours, are not visible. The walk is bounded and says when it was cut short.

use super::{Cpus, Domain};
use crate::arrange::Arrange as _;
use crate::fact::{Fact, Gap, fact, parse};
use crate::sheet::{Cell, Sheet};
use crate::source::Source;
use serde::Serialize;
use wakewatt_words::{say, word};

const ROOT: &str = "/sys/fs/cgroup";
const MAX_DEPTH: usize = 6;
const MAX_GROUPS: usize = 2000;
/// Rows shown; all are in the data.
const MAX_SHOWN: usize = 20;

/// Groups with a CPU quota or with throttling.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cgroups {
    /// v1, v2, or both (hybrid).
    pub versions: Vec<String>,
    /// Why the mount point could not be listed.
    pub unlisted_because: Option<Gap>,
    /// In order of their path.
    pub limited: Vec<CgroupLimit>,
    /// How many groups were looked at.
    pub n_groups: u64,
    /// The walk ended before the end: what was left out.
    pub cut: Option<Gap>,
}

/// CPU time that a control group may use, and how often it was stopped.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CgroupLimit {
    /// Folder of the control group.
    pub path: String,
    /// CPU time per period; none inside means no quota.
    pub quota_ns: Fact<Option<u64>>,
    /// Length of a period, in nanoseconds.
    pub period_ns: Fact<u64>,
    /// Periods in which it wanted to run.
    pub n_periods: Fact<u64>,
    /// Of which it was stopped.
    pub n_throttled: Fact<u64>,
    /// Time it stood still, summed over CPUs.
    pub throttled_ns: Fact<u64>,
}

impl CgroupLimit {
    /// The quota in CPUs: 1.5 is one and a half.
    pub fn quota_cpus(&self) -> Option<f64> {
        let (quota, period) = ((*self.quota_ns.get()?)?, *self.period_ns.get()?);
        (period > 0).then(|| quota as f64 / period as f64)
    }

    /// The share of its periods in which it was stopped.
    pub fn throttled_ratio(&self) -> Option<f64> {
        let (throttled, periods) = (*self.n_throttled.get()?, *self.n_periods.get()?);
        (periods > 0).then(|| throttled as f64 / periods as f64)
    }

    fn is_worth_keeping(&self) -> bool {
        self.quota_ns.get().is_some_and(Option::is_some) || self.n_throttled.get().is_some_and(|n| *n > 0)
    }
}

impl Cgroups {
    /// The group that was stopped in the largest share of its periods.
    pub fn worst(&self) -> Option<&CgroupLimit> {
        let ratio = |l: &CgroupLimit| l.throttled_ratio().unwrap_or(0.0);
        self.limited.iter().filter(|l| ratio(l) > 0.0).max_by(|a, b| ratio(a).total_cmp(&ratio(b)))
    }
}

impl Domain for Cgroups {
    const TITLE: &'static str = "CPU quotas (cgroups)";
    const HELP: &'static str = "groups with a CPU quota, and how often they were throttled";

    fn read(src: &dyn Source, _: &Cpus) -> Cgroups {
        let mut found = Cgroups::default();
        let listing = src.list(ROOT);
        found.unlisted_because = Gap::of_closed_folder(ROOT, &listing);
        let names = listing.unwrap_or_default();
        let has = |name: &str| names.iter().any(|n| n == name);
        if has("cgroup.controllers") {
            found.versions.push("v2".into());
            found.walk(src, ROOT, read_v2);
        } else {
            // `cpu` is usually a link to the mount `cpu,cpuacct`; one of the two is enough.
            if let Some(mount) = ["cpu,cpuacct", "cpuacct,cpu", "cpu"].into_iter().find(|m| has(m)) {
                found.versions.push("v1".into());
                found.walk(src, &format!("{ROOT}/{mount}"), read_v1);
            }
            if has("unified") {
                found.versions.push("v2".into());
                found.walk(src, &format!("{ROOT}/unified"), read_v2);
            }
        }
        found.limited.arrange_by(|a, b| a.path.cmp(&b.path));
        found
    }

    fn show(&self, sheet: &mut Sheet) {
        if let Some(gap) = &self.unlisted_because {
            return sheet
                .fact("cgroup.version", word!("cgroup version"), &Fact::<u64>::Gap(gap.clone()), |n| Cell::Count(*n));
        }
        let versions = if self.versions.is_empty() { "none seen".into() } else { self.versions.join(" and ") };
        sheet.say("cgroup.version", word!("cgroup version"), Cell::Text(versions));
        sheet.say("cgroup.limited", word!("groups with a quota or throttled"), Cell::Count(self.limited.len() as u64));
        let mut worst_first: Vec<&CgroupLimit> = self.limited.iter().collect();
        let ratio = |l: &CgroupLimit| l.throttled_ratio().unwrap_or(0.0);
        worst_first.arrange_by(|a, b| ratio(b).total_cmp(&ratio(a)));
        for group in worst_first.into_iter().take(MAX_SHOWN) {
            let name = group.path.strip_prefix(ROOT).filter(|n| !n.is_empty()).unwrap_or("/");
            sheet.fact(format!("cgroup.{name}.quota"), say!("{name} quota"), &group.quota_ns, |_| {
                Cell::Text(group.quota_cpus().map_or("none".into(), |n| format!("{n:.2} CPUs")))
            });
            sheet.fact(format!("cgroup.{name}.throttled"), say!("{name} throttled"), &group.n_throttled, |n| {
                group.throttled_ratio().map_or(Cell::Count(*n), Cell::Ratio)
            });
        }
        if let Some(cut) = &self.cut {
            sheet
                .fact("cgroup.cut", word!("groups not looked at"), &Fact::<u64>::Gap(cut.clone()), |v| Cell::Count(*v));
        }
    }
}

impl Cgroups {
    fn walk(&mut self, src: &dyn Source, root: &str, read: impl Fn(&dyn Source, &str) -> CgroupLimit) {
        let mut open = vec![(root.to_string(), 0usize)];
        let mut n_seen = 0usize;
        while let Some((path, depth)) = open.pop() {
            // What cannot be listed is a file, or a group that ended meanwhile.
            let Ok(names) = src.list(&path) else { continue };
            if n_seen == MAX_GROUPS {
                return self.cut_at(&path, format!("stopped after {MAX_GROUPS} groups"));
            }
            n_seen += 1;
            self.n_groups += 1;
            let group = read(src, &path);
            if group.is_worth_keeping() {
                self.limited.push(group);
            }
            let mut below = names.iter().filter(|n| is_group_name(n)).rev().peekable();
            if depth < MAX_DEPTH {
                open.extend(below.map(|n| (format!("{path}/{n}"), depth + 1)));
            } else if below.peek().is_some() {
                self.cut_at(&path, format!("groups more than {MAX_DEPTH} levels deep were not looked at"));
            }
        }
    }

    fn cut_at(&mut self, path: &str, reason: String) {
        self.cut = Some(Gap { kind: crate::fact::GapKind::NotRead, path: path.into(), reason });
    }
}

/// Front words of the kernel's own files in a group.
pub(crate) const CONTROLLERS: &[&str] = &[
    "cgroup",
    "cpu",
    "cpuacct",
    "cpuset",
    "memory",
    "io",
    "pids",
    "hugetlb",
    "rdma",
    "misc",
    "irq",
    "devices",
    "freezer",
    "blkio",
    "net_cls",
    "net_prio",
    "perf_event",
    "dmem",
    "debug",
];

/// The kernel's own files in a group have a controller's name before the first dot.
fn is_group_name(name: &str) -> bool {
    if matches!(name, "tasks" | "notify_on_release" | "release_agent") {
        return false;
    }
    match name.split_once('.') {
        None => true,
        Some((_, "slice" | "service" | "scope")) => true,
        Some((front, _)) => !CONTROLLERS.contains(&front),
    }
}

fn stat(src: &dyn Source, path: &str, key: &'static str) -> Fact<u64> {
    fact(src, &format!("{path}/cpu.stat"), |text| {
        parse::counters(text)?.get(key).copied().ok_or_else(|| format!("no {key}: the CPU controller is off here"))
    })
}

fn read_v2(src: &dyn Source, path: &str) -> CgroupLimit {
    let max = fact(src, &format!("{path}/cpu.max"), |text| {
        let (quota, period) = text.trim().split_once(' ').unwrap_or((text.trim(), "100000"));
        let quota = if quota == "max" { None } else { Some(parse::us_to_ns(quota)?) };
        Ok((quota, parse::us_to_ns(period)?))
    });
    let microseconds = stat(src, path, "throttled_usec");
    CgroupLimit {
        path: path.into(),
        quota_ns: max.map(|m| m.0),
        period_ns: max.map(|m| m.1),
        n_periods: stat(src, path, "nr_periods"),
        n_throttled: stat(src, path, "nr_throttled"),
        throttled_ns: microseconds.map(|us| us.saturating_mul(1000)),
    }
}

fn read_v1(src: &dyn Source, path: &str) -> CgroupLimit {
    CgroupLimit {
        path: path.into(),
        quota_ns: fact(src, &format!("{path}/cpu.cfs_quota_us"), |text| {
            if text.trim() == "-1" { Ok(None) } else { parse::us_to_ns(text).map(Some) }
        }),
        period_ns: fact(src, &format!("{path}/cpu.cfs_period_us"), parse::us_to_ns),
        n_periods: stat(src, path, "nr_periods"),
        n_throttled: stat(src, path, "nr_throttled"),
        throttled_ns: stat(src, path, "throttled_time"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Tree;

    fn read(text: &str) -> Cgroups {
        Cgroups::read(&Tree::from_text(text), &Cpus::default())
    }

    #[test]
    fn keeps_only_groups_with_a_quota_or_throttling() {
        let found = read(
            "//- /sys/fs/cgroup/cgroup.controllers\ncpu\n//- /sys/fs/cgroup/cpu.stat\nusage_usec 5\n
             //- /sys/fs/cgroup/system.slice/a.service/cpu.max\nmax 100000\n
             //- /sys/fs/cgroup/kubepods.slice/pod1/cpu.max\n150000 100000\n
             //- /sys/fs/cgroup/kubepods.slice/pod1/cpu.stat\nusage_usec 9\nnr_periods 200\nnr_throttled 50\nthrottled_usec 7\n",
        );
        assert_eq!((found.versions.as_slice(), found.n_groups), (["v2".to_string()].as_slice(), 5));
        assert_eq!(found.limited.len(), 1);
        let pod = found.worst().unwrap();
        assert_eq!((pod.quota_cpus(), pod.throttled_ratio()), (Some(1.5), Some(0.25)));
        assert_eq!(pod.throttled_ns.get(), Some(&7000));
    }

    #[test]
    fn version_one_and_hybrid() {
        let found = read(
            "//- /sys/fs/cgroup/unified/cgroup.controllers\n\n//- /sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us\n50000\n
             //- /sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us\n100000\n
             //- /sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.stat!denied\n",
        );
        assert_eq!(found.versions, ["v1", "v2"]);
        assert_eq!(found.limited[0].quota_cpus(), Some(0.5));
        assert_eq!(found.limited[0].throttled_ratio(), None, "unreadable is not 0");
    }

    #[test]
    fn a_walk_cut_short_says_so() {
        let deep =
            format!("//- /sys/fs/cgroup/cgroup.controllers\n\n//- /sys/fs/cgroup{}/cpu.max\nmax 1\n", "/a".repeat(9));
        assert!(read(&deep).cut.unwrap().reason.contains("levels deep"));
        let mut wide = "//- /sys/fs/cgroup/cgroup.controllers\n\n".to_string();
        (0..2100).for_each(|i| wide += &format!("//- /sys/fs/cgroup/g{i}/cpu.max\nmax 1\n"));
        let wide = read(&wide);
        assert_eq!(wide.n_groups, 2000);
        assert!(wide.cut.unwrap().reason.contains("2000"));
        assert!(read("").versions.is_empty());
    }
}
