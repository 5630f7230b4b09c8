//! The limits of every memory cgroup from this process's own to the one on top that can be seen, of both versions.
//!
//! /proc/self/cgroup names the group, /proc/self/mountinfo where its hierarchy is mounted and from which group on
//! (cgroups(7)): a container sees its own group mounted as the root, with the host's path or `/` in the first file. A path
//! that leads out of the namespace (`/../x`) cannot be followed; then the mounted root is all there is to ask. memory.high
//! counts like memory.max: above it a process is throttled until it hardly runs. Half of the inactive file cache can be
//! had back (Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst). Limits of swap are left out, because swap is
//! no room; the sum of both in version 1 is a limit on memory too.

use super::text;
use wakewatt_core::source::Source;

/// What differs between the two.
struct Version {
    filesystem: &'static str,
    /// A limit, and what has been used of it.
    limits: [(&'static str, &'static str); 2],
    cache: &'static str,
    /// Where it stands if the list of mounts cannot be read.
    usual: &'static str,
}

const V2: Version = Version {
    filesystem: "cgroup2",
    limits: [("memory.max", "memory.current"), ("memory.high", "memory.current")],
    cache: "inactive_file",
    usual: "/sys/fs/cgroup",
};
const V1: Version = Version {
    filesystem: "cgroup",
    limits: [
        ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ("memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes"),
    ],
    cache: "total_inactive_file",
    usual: "/sys/fs/cgroup/memory",
};

/// What each limit still leaves, and its name.
pub(super) fn limits(src: &dyn Source) -> Vec<(u64, String)> {
    let mine = text(src, "/proc/self/cgroup").unwrap_or_default();
    let mounts = text(src, "/proc/self/mountinfo").unwrap_or_default();
    let mut found = Vec::new();
    for line in mine.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let version = match controllers {
            "" => &V2,
            c if c.split(',').any(|c| c == "memory") => &V1,
            _ => continue,
        };
        let (point, below) = place(version, &mounts, path);
        let mut below = below.trim_end_matches('/');
        loop {
            let folder = format!("{point}{below}");
            found.extend(version.limits.iter().filter_map(|files| {
                let name = if below.is_empty() { "/" } else { below };
                Some((left(src, &folder, version, *files)?, format!("{} of cgroup {name}", files.0)))
            }));
            match below.rsplit_once('/') {
                Some((parent, _)) => below = parent,
                None => break,
            }
        }
    }
    found
}

/// The mount point, and the group's path below it; empty where that cannot be told.
fn place<'a>(version: &Version, mounts: &'a str, path: &'a str) -> (&'a str, &'a str) {
    let mut all = mounts.lines().filter_map(|line| {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut words = filesystem.split(' ');
        let is_kind = words.next() == Some(version.filesystem);
        let options = words.next_back().unwrap_or_default();
        let is_memory = version.filesystem == V2.filesystem || options.split(',').any(|option| option == "memory");
        let mut words = mount.split(' ').skip(3);
        (is_kind && is_memory).then_some((words.next()?, words.next()?))
    });
    let mut first = None;
    let followed = all.find_map(|(root, point)| {
        first.get_or_insert(point);
        Some((point, relative(root, path)?))
    });
    match (followed, first) {
        (Some(place), _) => place,
        (None, Some(point)) => (point, ""),
        (None, None) => (version.usual, relative("/", path).unwrap_or_default()),
    }
}

/// A group's path seen from a mounted one; none where it does not lie below, or leads out of the namespace.
fn relative<'a>(root: &str, path: &'a str) -> Option<&'a str> {
    if path.split('/').chain(root.split('/')).any(|part| part == "..") {
        return None;
    }
    let rest = path.strip_prefix(root.trim_end_matches('/'))?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// "max" is no number, and neither is there a limit.
fn left(src: &dyn Source, folder: &str, version: &Version, (limit, used): (&str, &str)) -> Option<u64> {
    let number = |file: &str| text(src, &format!("{folder}/{file}"))?.trim().parse::<u64>().ok();
    let (limit_bytes, used_bytes) = (number(limit)?, number(used)?);
    let statistic = text(src, &format!("{folder}/memory.stat")).unwrap_or_default();
    let mut words = statistic.lines().filter_map(|line| line.split_once(' '));
    let cache = words.find(|(key, _)| *key == version.cache).and_then(|(_, n)| n.trim().parse::<u64>().ok());
    Some(limit_bytes.saturating_sub(used_bytes.saturating_sub(cache.unwrap_or(0) / 2)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    const V2_MOUNT: &str = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

    fn group(folder: &str, files: &[(&str, u64)]) -> String {
        files.iter().map(|(file, n)| format!("//- {folder}/{file}\n{n}\n")).collect()
    }

    fn least(mine: &str, mounts: &str, files: &str) -> Option<(u64, String)> {
        let text = format!("//- /proc/self/cgroup\n{mine}\n//- /proc/self/mountinfo\n{mounts}{files}");
        limits(&Tree::from_text(&text)).into_iter().min()
    }

    #[test]
    fn every_group_above_counts_and_half_of_its_cache() {
        let inner = group("/sys/fs/cgroup/a/b", &[("memory.current", 5)]) + "//- /sys/fs/cgroup/a/b/memory.max\nmax\n";
        let outer = group("/sys/fs/cgroup/a", &[("memory.max", 1_000_000), ("memory.current", 600_000)])
            + "//- /sys/fs/cgroup/a/memory.stat\nanon 7\ninactive_file 100000\n";
        let expected = Some((450_000, "memory.max of cgroup /a".to_string()));
        assert_eq!(least("0::/a/b", V2_MOUNT, &format!("{inner}{outer}")), expected);
        assert_eq!(least("0::/a/b", "", &format!("{inner}{outer}")), expected, "no list of mounts");
        let high = group("/sys/fs/cgroup/a/b", &[("memory.high", 700)]);
        let told = least("0::/a/b", V2_MOUNT, &format!("{inner}{outer}{high}")).unwrap();
        assert_eq!(told, (695, "memory.high of cgroup /a/b".into()));
    }

    #[test]
    fn version_one_and_the_sum_with_swap() {
        let mounts =
            "35 30 0:30 / /mnt/m rw - cgroup cgroup rw,memory\n36 30 0:31 / /mnt/c rw - cgroup cgroup rw,cpu\n";
        let files = group("/mnt/m/x", &[("memory.limit_in_bytes", 1000), ("memory.usage_in_bytes", 2000)]);
        let told = least("9:cpu:/y\n4:memory:/x\n0::/", mounts, &files);
        assert_eq!(told, Some((0, "memory.limit_in_bytes of cgroup /x".into())));
        let sums = group("/mnt/m/x", &[("memory.memsw.limit_in_bytes", 900), ("memory.memsw.usage_in_bytes", 200)]);
        assert_eq!(least("4:memory:/x", mounts, &sums), Some((700, "memory.memsw.limit_in_bytes of cgroup /x".into())));
    }

    #[test]
    fn from_within_a_container_the_mounted_group_is_asked() {
        let files = group("/sys/fs/cgroup", &[("memory.max", 900), ("memory.current", 100)]);
        let expected = Some((800, "memory.max of cgroup /".to_string()));
        // A namespace of its own; a path out of it; the host's path with only that group mounted; a mount from outside.
        let own_root = "30 24 0:26 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        let outside = "30 24 0:26 /../.. /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        for (mine, mounts) in [
            ("0::/", V2_MOUNT),
            ("0::/../..", V2_MOUNT),
            ("0::/../x", V2_MOUNT),
            ("0::/docker/1", own_root),
            ("0::/", outside),
        ] {
            assert_eq!(least(mine, mounts, &files), expected, "{mine} {mounts}");
        }
        let nested = group("/sys/fs/cgroup/s", &[("memory.max", 50), ("memory.current", 10)]);
        let told = least("0::/docker/1/s", own_root, &format!("{files}{nested}"));
        assert_eq!(told, Some((40, "memory.max of cgroup /s".into())));
        assert_eq!(relative("/docker/1", "/docker/12"), None, "another group");
    }
}
