//! A dump of everything that can be set: taken inside by a shell function, compared here attribute by attribute.
//!
//! Every regular file of sysfs, /proc/sys and the root cgroup that has a write bit and a read bit, with its content as it
//! is. A file that cannot be read (EIO, EBUSY) or is empty is listed without content, so its coming and going is seen.
//! About 2900 attributes take 4 s inside an emulated machine; almost all of that is opening them.

use super::Inside;
use std::collections::{BTreeMap, BTreeSet};

/// `dump NAME` for all, `dump_cpu NAME` for what lies below the CPUs, and who holds /dev/cpu_dma_latency.
pub(super) const SHELL: &str = r#"
contents() { sort >"$1.list"; tr '\n' '\0' <"$1.list" | xargs -0 grep -H '' >"$1.dump" 2>/dev/null; }
dump() {
  { find /sys -xdev -type f -perm -400 \( -perm -200 -o -perm -020 -o -perm -002 \)
    find /proc/sys /sys/fs/cgroup -type f -perm -400 -perm -200; } 2>/dev/null | contents "$1"
}
dump_cpu() {
  { find /sys/devices/system/cpu -type f -perm -400 -perm -200; echo /proc/sys/kernel/numa_balancing; } | contents "$1"
  ls -l /proc/[0-9]*/fd 2>/dev/null | grep -c cpu_dma_latency >>"$1.dump"
}
"#;

/// What changes without anybody's doing, and why. Whatever else differs between two dumps of a quiet machine is a fault
/// of the proof.
pub(super) const BY_ITSELF: &[(&str, &str)] = &[
    ("/proc/sys/kernel/ns_last_pid", "the last process number"),
    ("/sys/fs/cgroup/cgroup.procs", "the processes"),
    ("/sys/fs/cgroup/cgroup.threads", "the threads"),
    (".pressure", "stall times of the cgroup"),
];

/// Attributes with their contents.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Dump(BTreeMap<String, Vec<Vec<u8>>>);

impl Dump {
    pub(super) fn read(inside: &Inside, name: &str) -> Dump {
        parse(&inside.text(&format!("{name}.list")), &inside.bytes(&format!("{name}.dump")))
    }

    /// How many attributes, and how many of them with a content.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.0.len(), self.0.values().filter(|lines| !lines.is_empty()).count())
    }

    /// The attributes that differ, those that change by themselves left out.
    pub(super) fn differences(&self, other: &Dump) -> Vec<String> {
        let paths: BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        let changes = |path: &str| BY_ITSELF.iter().any(|(known, _)| path.ends_with(known));
        let differ = paths.into_iter().filter(|path| self.0.get(*path) != other.0.get(*path) && !changes(path));
        differ.map(|path| format!("{path}: {} / {}", shown(self.0.get(path)), shown(other.0.get(path)))).collect()
    }
}

fn parse(list: &str, contents: &[u8]) -> Dump {
    let mut found: BTreeMap<String, Vec<Vec<u8>>> = list.lines().map(|path| (path.to_string(), Vec::new())).collect();
    for line in contents.split(|byte| *byte == b'\n') {
        // A path may hold colons itself.
        let colons = line.iter().enumerate().filter(|(_, byte)| **byte == b':').map(|(at, _)| at);
        for at in colons {
            let Some(lines) = std::str::from_utf8(&line[..at]).ok().and_then(|path| found.get_mut(path)) else {
                continue;
            };
            lines.push(line[at + 1..].to_vec());
            break;
        }
    }
    Dump(found)
}

fn shown(lines: Option<&Vec<Vec<u8>>>) -> String {
    lines.map_or_else(|| "not there".into(), |l| format!("{:?}", String::from_utf8_lossy(&l.join(&b'\n'))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_belong_to_their_paths_and_every_difference_is_seen() {
        let list = "/sys/a\n/sys/pci:0/b\n/sys/io\n/proc/sys/kernel/ns_last_pid\n";
        let before = parse(list, b"/sys/a:1:2\n/sys/a:3\n/sys/pci:0/b:\xff\n/proc/sys/kernel/ns_last_pid:7\n");
        assert_eq!(before.counts(), (4, 3));
        assert_eq!(before.0["/sys/a"], [b"1:2".to_vec(), b"3".to_vec()]);
        let after = parse("/sys/a\n/sys/pci:0/b\n/proc/sys/kernel/ns_last_pid\n", b"/sys/a:1:2\n/sys/pci:0/b:\xff\n");
        assert_eq!(before.differences(&after), ["/sys/a: \"1:2\\n3\" / \"1:2\"", "/sys/io: \"\" / not there"]);
    }
}
