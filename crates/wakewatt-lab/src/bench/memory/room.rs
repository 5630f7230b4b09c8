//! How much memory may be taken without anybody being killed for it.
//!
//! Memory that is only asked for costs nothing; memory that is touched and not there ends a process, and not always the
//! one that asked. So the room is worked out first: MemAvailable (Documentation/filesystems/proc.rst), the limits of
//! every cgroup above this process, of both versions, and, for memory bound to a node, what is free or file cache there.
//! A fifth stays untouched, because others allocate meanwhile.

use wakewatt_core::source::Source;
use wakewatt_core::units::show_bytes;

/// What may be taken, and what sets the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes; four fifths of what is there.
    pub bytes: u64,
    /// "MemAvailable", "memory.max of /system.slice".
    pub limit: String,
}

impl Room {
    /// The tightest limit; everything where nothing can be read, since then nothing can be known.
    pub fn of(src: &dyn Source, node: Option<u32>) -> Room {
        let mut all = Vec::new();
        all.extend(meminfo(src).map(|bytes| (bytes, "MemAvailable of /proc/meminfo".to_string())));
        if let Some(node) = node {
            all.extend(node_free(src, node).map(|bytes| (bytes, format!("the free memory of node {node}"))));
        }
        all.extend(cgroups(src));
        let (bytes, limit) = all.into_iter().min().unwrap_or((u64::MAX, "nothing known".into()));
        Room { bytes: bytes / 5 * 4, limit }
    }

    /// A refusal, if this much is too much.
    pub fn refuse(&self, wanted_bytes: u64) -> Option<String> {
        (wanted_bytes > self.bytes).then(|| {
            format!(
                "{} of memory are needed, and only {} may be taken here (four fifths of {}): the kernel would end a \
                 process; choose a smaller --max-size or --array-size, or free memory",
                show_bytes(wanted_bytes),
                show_bytes(self.bytes),
                self.limit
            )
        })
    }
}

fn text(src: &dyn Source, path: &str) -> Option<String> {
    src.read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// `Key: 12 kB`, wherever the key stands in its line.
fn kib_of(text: &str, key: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.split_once(key))?.1;
    rest.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

fn meminfo(src: &dyn Source) -> Option<u64> {
    kib_of(&text(src, "/proc/meminfo")?, "MemAvailable:")
}

fn node_free(src: &dyn Source, node: u32) -> Option<u64> {
    let text = text(src, &format!("{}/node{node}/meminfo", wakewatt_core::facts::numa::ROOT))?;
    // Half of the file cache: the rest may be mapped or dirty.
    let cache = kib_of(&text, "FilePages:").unwrap_or(0) / 2;
    kib_of(&text, "MemFree:")?.checked_add(cache)
}

/// Every cgroup from this process's own to the root, with what it may still take.
fn cgroups(src: &dyn Source) -> Vec<(u64, String)> {
    let mut found = Vec::new();
    let mine = text(src, "/proc/self/cgroup").unwrap_or_default();
    for line in mine.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, limit, usage, statistics) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
            c if c.split(',').any(|c| c == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            }
            _ => continue,
        };
        let mut path = path.trim_end_matches('/');
        loop {
            let number = |file: &str| text(src, &format!("{root}{path}/{file}"))?.trim().parse::<u64>().ok();
            // "max" is no number, and neither is there a limit.
            if let (Some(limit_bytes), Some(used_bytes)) = (number(limit), number(usage)) {
                let statistic = text(src, &format!("{root}{path}/memory.stat")).unwrap_or_default();
                let mut words = statistic.lines().filter_map(|l| l.split_once(' '));
                let cache = words.find(|(key, _)| *key == statistics).and_then(|(_, n)| n.trim().parse::<u64>().ok());
                let free = limit_bytes.saturating_sub(used_bytes.saturating_sub(cache.unwrap_or(0)));
                found.push((free, format!("{limit} of cgroup {}", if path.is_empty() { "/" } else { path })));
            }
            match path.rsplit_once('/') {
                Some((parent, _)) => path = parent,
                None => break,
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn the_tightest_limit_counts_and_is_named() {
        let base = "//- /proc/meminfo\nMemTotal: 9000 kB\nMemAvailable:    5000 kB\n";
        let of = |text: &str, node| Room::of(&Tree::from_text(text), node);
        assert_eq!(of(base, None), Room { bytes: 4_096_000, limit: "MemAvailable of /proc/meminfo".into() });
        let node = format!(
            "{base}//- /sys/devices/system/node/node1/meminfo\nNode 1 MemFree:  1000 kB\nNode 1 FilePages: 500 kB\n"
        );
        assert_eq!(of(&node, Some(1)).bytes, 1250 * 1024 / 5 * 4);
        assert_eq!(of(&node, Some(0)).bytes, 4_096_000, "unknown node: no limit from it");
        let v2 = format!(
            "{base}//- /proc/self/cgroup\n0::/a/b\n//- /sys/fs/cgroup/a/b/memory.max\nmax\n//- \
             /sys/fs/cgroup/a/b/memory.current\n5\n//- /sys/fs/cgroup/a/memory.max\n1000000\n//- \
             /sys/fs/cgroup/a/memory.current\n600000\n//- /sys/fs/cgroup/a/memory.stat\nanon 7\ninactive_file 100000\n"
        );
        assert_eq!(of(&v2, None), Room { bytes: 400_000, limit: "memory.max of cgroup /a".into() });
        let v1 = format!(
            "{base}//- /proc/self/cgroup\n4:memory:/x\n0::/\n//- /sys/fs/cgroup/memory/x/memory.limit_in_bytes\n\
             1000\n//- /sys/fs/cgroup/memory/x/memory.usage_in_bytes\n2000\n"
        );
        let room = of(&v1, None);
        assert_eq!((room.bytes, room.refuse(0)), (0, None));
        let said = room.refuse(1 << 30).unwrap();
        assert!(said.contains("1GiB") && said.contains("memory.limit_in_bytes of cgroup /x") && said.contains("--max"));
        assert_eq!(of("", None).refuse(u64::MAX / 2), None, "nothing known");
    }
}
