//! How much memory may be taken without anybody being killed for it.
//!
//! Memory that is only asked for costs nothing; memory that is touched and not there ends a process, and not always the
//! one that asked. So the room is worked out directly before each region is touched, since others allocate meanwhile:
//! MemAvailable (Documentation/filesystems/proc.rst); what is free on the node that memory is bound to, or on all nodes
//! this process may use (`node`); and the limits of every cgroup above it, of both versions (`cgroup`). The tightest
//! counts. Swap is nowhere counted as room: what is measured must lie in memory, and what is swapped out for it is
//! somebody else's. Reserved huge pages are in none of these numbers: a region that they back takes nothing from here.
//! Left out: what others will have taken before the pages are touched. For that the measuring process goes first
//! (`apart`).

mod cgroup;
mod node;

use wakewatt_core::source::Source;
use wakewatt_core::units::show_bytes;

/// What may be taken, and what sets the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes: a share of what is there.
    pub bytes: u64,
    /// "four fifths of MemAvailable of /proc/meminfo", "half of what is free on node 3".
    pub limit: String,
}

impl Room {
    /// The tightest limit; everything where nothing can be read, since then nothing can be known. Without a node: memory
    /// that each thread touches first, on whichever node this process may use.
    pub fn of(src: &dyn Source, node: Option<u32>) -> Room {
        let mut all: Vec<Room> = Vec::new();
        all.extend(meminfo(src).map(|bytes| four_fifths(bytes, "MemAvailable of /proc/meminfo".into())));
        all.extend(match node {
            Some(node) => node::of(src, node),
            None => node::of_all(src),
        });
        all.extend(cgroup::limits(src).into_iter().map(|(bytes, limit)| four_fifths(bytes, limit)));
        let tightest = all.into_iter().min_by_key(|room| room.bytes);
        tightest.unwrap_or(Room { bytes: u64::MAX, limit: "nothing known".into() })
    }

    /// For a working set that is to lie on each of several nodes in turn: the least of those that hold `least_bytes`, or
    /// of all where none does. The others are refused when it is their turn.
    pub(super) fn on_each(rooms: Vec<Room>, least_bytes: u64) -> Option<Room> {
        let (fit, unfit): (Vec<Room>, Vec<Room>) = rooms.into_iter().partition(|room| room.bytes >= least_bytes);
        let largest = unfit.into_iter().max_by_key(|room| room.bytes);
        fit.into_iter().min_by_key(|room| room.bytes).or(largest)
    }

    /// A refusal, if this much is too much.
    pub fn refuse(&self, wanted_bytes: u64) -> Option<String> {
        (wanted_bytes > self.bytes).then(|| {
            format!(
                "{} of memory are needed, and only {} may be taken here ({}): the kernel would end a process; choose a \
                 smaller --max-size or --array-size of wakewatt measure memory, or free memory",
                show_bytes(wanted_bytes),
                show_bytes(self.bytes),
                self.limit
            )
        })
    }
}

/// A fifth stays untouched.
fn four_fifths(bytes: u64, of: String) -> Room {
    Room { bytes: bytes / 5 * 4, limit: format!("four fifths of {of}") }
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

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn the_tightest_limit_counts_and_is_named() {
        let base = "//- /proc/meminfo\nMemTotal: 9000 kB\nMemAvailable:    5000 kB\nSwapFree: 900000 kB\n";
        let of = |text: &str, node| Room::of(&Tree::from_text(text), node);
        let machine = Room { bytes: 4_096_000, limit: "four fifths of MemAvailable of /proc/meminfo".into() };
        assert_eq!(of(base, None), machine, "swap is no room");
        assert_eq!(of(base, Some(0)), machine, "unknown node: no limit from it");
        let v2 = format!(
            "{base}//- /proc/self/cgroup\n0::/a\n//- /sys/fs/cgroup/a/memory.max\n1000000\n//- \
             /sys/fs/cgroup/a/memory.current\n600000\n"
        );
        let room = of(&v2, None);
        assert_eq!(room, Room { bytes: 320_000, limit: "four fifths of memory.max of cgroup /a".into() });
        assert_eq!(room.refuse(320_000), None);
        let said = room.refuse(1 << 30).unwrap();
        assert!(said.contains("1GiB") && said.contains("memory.max of cgroup /a") && said.contains("--max"), "{said}");
        assert_eq!(of("", None).refuse(u64::MAX / 2), None, "nothing known");
    }

    #[test]
    fn a_full_node_does_not_shrink_the_working_set_of_the_others() {
        let rooms = |mib: &[u64]| mib.iter().map(|mib| Room { bytes: mib << 20, limit: format!("{mib}") }).collect();
        let chosen = |mib: &[u64]| Room::on_each(rooms(mib), 64 << 20).map(|room| room.bytes >> 20);
        assert_eq!(chosen(&[95, 90, 99, 0]), Some(90));
        assert_eq!(chosen(&[30, 3, 0]), Some(30), "none holds it: as much as one does");
        assert_eq!(chosen(&[]), None);
    }
}
