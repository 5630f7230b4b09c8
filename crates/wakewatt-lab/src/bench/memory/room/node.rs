//! What may be taken of one memory node, or of all that this process may use.
//!
//! A node runs out long before the machine does, and then the kernel ends a process that has memory there
//! (CONSTRAINT_MEMORY_POLICY). Free is what the zones of the node hold above their high watermark and above what they keep
//! for allocations that can go nowhere else (`protection`, lowmem_reserve_ratio in Documentation/admin-guide/sysctl/vm.rst):
//! below it the kernel starts to reclaim, which others feel. Of the file cache half of what is inactive and clean
//! counts, without what is mapped, locked or in shared memory. Of the sum at most half is taken, and a floor is left.

use super::{Room, kib_of, text};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::numa::ROOT;
use wakewatt_core::source::Source;

/// Left on every node, however small.
const FLOOR_BYTES: u64 = 32 << 20;

/// The room on one node; none where nothing is known of it.
pub(super) fn of(src: &dyn Source, node: u32) -> Option<Room> {
    let zones = text(src, "/proc/zoneinfo");
    let bytes = bytes(src, node, zones.as_deref())?;
    Some(Room { bytes, limit: format!("half of what is free on node {node}") })
}

/// The room on all nodes that memory bound to none may come to lie on; none where there are none to ask.
pub(super) fn of_all(src: &dyn Source) -> Option<Room> {
    let nodes = allowed(src).or_else(|| {
        let online = text(src, &format!("{ROOT}/online"))?;
        CpuSet::parse(online.trim()).ok()
    })?;
    let zones = text(src, "/proc/zoneinfo");
    // Allowed are all nodes there could ever be; those that are not there have no file.
    let rooms: Vec<(u32, u64)> =
        nodes.iter().filter_map(|node| Some((node, bytes(src, node, zones.as_deref())?))).collect();
    let known: CpuSet = rooms.iter().map(|(node, _)| *node).collect();
    let sum = rooms.iter().fold(0u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
    (!rooms.is_empty()).then(|| Room {
        bytes: sum,
        limit: match rooms.len() {
            1 => format!("half of what is free on node {known}"),
            _ => format!("half of what is free on nodes {known}"),
        },
    })
}

/// Where this process may take memory: bound by whoever started it, or else by its cpuset.
fn allowed(src: &dyn Source) -> Option<CpuSet> {
    bound(src).or_else(|| {
        let status = text(src, "/proc/self/status")?;
        let list = status.lines().find_map(|line| line.strip_prefix("Mems_allowed_list:"))?;
        CpuSet::parse(list.trim()).ok()
    })
}

/// `bind:0-1` in the first mapping, which is the program itself and has no policy but the process's. Other policies prefer
/// nodes and go elsewhere when those are full.
fn bound(src: &dyn Source) -> Option<CpuSet> {
    let maps = text(src, "/proc/self/numa_maps")?;
    let policy = maps.lines().next()?.split_whitespace().nth(1)?;
    let (kind, nodes) = policy.split_once(':')?;
    let is_bound = kind.split('=').next() == Some("bind");
    is_bound.then(|| CpuSet::parse(nodes).ok()).flatten()
}

fn bytes(src: &dyn Source, node: u32, zones: Option<&str>) -> Option<u64> {
    let text = text(src, &format!("{ROOT}/node{node}/meminfo"))?;
    let of = |key: &str| kib_of(&text, key);
    let free = of("MemFree:")?;
    let kept = zones.and_then(|zones| kept_pages(zones, node)).unwrap_or(0).saturating_mul(page_bytes());
    let in_use = ["Shmem:", "Dirty:", "Writeback:", "Mapped:", "Unevictable:"];
    let clean =
        in_use.iter().fold(of("FilePages:").unwrap_or(0), |left, key| left.saturating_sub(of(key).unwrap_or(0)));
    let cache = clean.min(of("Inactive(file):").unwrap_or(clean)) / 2;
    let usable = free.saturating_sub(kept).saturating_add(cache);
    Some((usable / 2).min(usable.saturating_sub(FLOOR_BYTES)))
}

/// /proc/zoneinfo counts in these.
fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// Free pages that a program does not get, in all zones of a node.
fn kept_pages(zoneinfo: &str, node: u32) -> Option<u64> {
    let header = format!("Node {node}, zone");
    let (mut is_ours, mut sum) = (false, None);
    let (mut free, mut high) = (0u64, 0u64);
    for line in zoneinfo.lines() {
        let mut words = line.split_whitespace();
        if line.starts_with("Node ") {
            is_ours = line.starts_with(&header);
            (free, high) = (0, 0);
            continue;
        }
        let number = |word: Option<&str>| word.and_then(|w| w.parse::<u64>().ok()).unwrap_or(0);
        match (words.next(), is_ours) {
            (Some("pages"), true) if words.next() == Some("free") => free = number(words.next()),
            (Some("high"), true) => high = number(words.next()),
            // The last line of a zone's own numbers; per-CPU lists follow, which have a `high:`.
            (Some("protection:"), true) => {
                let numbers = line.split(|c: char| !c.is_ascii_digit());
                let reserve = numbers.filter_map(|n| n.parse::<u64>().ok()).max().unwrap_or(0);
                // A zone below its marks has nothing to give, and takes nothing from the others.
                let kept = high.saturating_add(reserve).min(free);
                sum = Some(sum.unwrap_or(0u64).saturating_add(kept));
            }
            _ => {}
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    fn meminfo(node: u32, total_mib: u64, free_mib: u64, more: &str) -> String {
        let line = |key: &str, mib: u64| format!("Node {node} {key}: {} kB\n", mib * 1024);
        format!(
            "//- /sys/devices/system/node/node{node}/meminfo\n{}{}{more}",
            line("MemTotal", total_mib),
            line("MemFree", free_mib)
        )
    }

    /// A zone whose watermark keeps `kept_mib`, in pages of this machine.
    fn zone(node: u32, name: &str, free_mib: u64, high_mib: u64, protection_mib: u64) -> String {
        let pages = |mib: u64| (mib << 20) / page_bytes();
        format!(
            "Node {node}, zone {name:>8}\n  per-node stats\n      nr_inactive_anon 7\n  pages free     {}\n        \
             boost    0\n        min      1\n        low      2\n        high     {}\n        spanned  9\n        \
             protection: (0, {}, {})\n      nr_free_pages 5\n  pagesets\n    cpu: 0\n              count: 100\n              \
             high:  99999999\n",
            pages(free_mib),
            pages(high_mib),
            pages(protection_mib / 2),
            pages(protection_mib)
        )
    }

    /// Four nodes of 256 MB, one of them full.
    fn four(status: &str) -> Tree {
        let nodes: String = (0..4).map(|n| meminfo(n, 256, if n == 3 { 20 } else { 220 }, "")).collect();
        let zones: String =
            (0..4).map(|n| zone(n, "Normal", if n == 3 { 20 } else { 220 }, if n == 3 { 30 } else { 20 }, 0)).collect();
        let meminfo = "//- /proc/meminfo\nMemTotal: 1048576 kB\nMemAvailable: 800000 kB\nSwapFree: 9000000 kB\n";
        Tree::from_text(&format!("{meminfo}{nodes}//- /proc/zoneinfo\n{zones}{status}"))
    }

    fn mib(room: Option<Room>) -> Option<u64> {
        room.map(|room| room.bytes >> 20)
    }

    #[test]
    fn a_full_node_has_no_room_while_the_machine_has() {
        let src = four("//- /proc/self/status\nMems_allowed_list:\t0-63\n");
        assert_eq!([0, 1, 2, 3, 4].map(|n| mib(of(&src, n))), [Some(100), Some(100), Some(100), Some(0), None]);
        let whole = Room::of(&src, None);
        assert_eq!((whole.bytes >> 20, whole.limit.as_str()), (300, "half of what is free on nodes 0-3"));
        let full = Room::of(&src, Some(3));
        assert_eq!((full.bytes, full.limit.as_str()), (0, "half of what is free on node 3"));
        assert!(full.refuse(1 << 20).unwrap().contains("node 3"));
    }

    #[test]
    fn a_cpuset_and_a_policy_narrow_memory_that_is_not_bound() {
        assert_eq!(mib(of_all(&four("//- /proc/self/status\nMems_allowed_list:\t2-3\n"))), Some(100));
        for policy in ["bind:3", "bind=static:3"] {
            let maps = format!("//- /proc/self/numa_maps\n00400000 {policy} file=/x mapped=3 N0=3\n70000 default\n");
            let src = four(&format!("//- /proc/self/status\nMems_allowed_list:\t0-3\n{maps}"));
            assert_eq!(mib(of_all(&src)), Some(0), "{policy}");
        }
        for policy in ["default", "prefer:3", "interleave:2-3"] {
            let maps = format!("//- /proc/self/numa_maps\n00400000 {policy} file=/x mapped=3 N0=3\n");
            let src = four(&format!("//- /proc/self/status\nMems_allowed_list:\t0-1\n{maps}"));
            assert_eq!(mib(of_all(&src)), Some(200), "{policy}");
        }
    }

    #[test]
    fn watermarks_reserves_and_a_floor_are_left() {
        let only = |text: &str| mib(of(&Tree::from_text(text), 0));
        let zones = |text: &str| format!("//- /proc/zoneinfo\n{text}");
        let node = meminfo(0, 1000, 500, "");
        assert_eq!(only(&node), Some(250), "no zones to be read: half");
        let two = zone(0, "DMA32", 100, 10, 400) + &zone(0, "Normal", 400, 40, 0) + &zone(1, "Normal", 9, 99, 0);
        // 100 MiB of DMA32 are all kept for others; 40 are the watermark.
        assert_eq!(only(&format!("{node}{}", zones(&two))), Some(180));
        assert_eq!(only(&meminfo(0, 256, 50, "")), Some(18), "the floor");
        assert_eq!(only(&meminfo(0, 0, 0, "")), Some(0), "a node without memory");
    }

    #[test]
    fn of_the_file_cache_half_of_the_clean_and_idle_counts() {
        let only = |more: &str| mib(of(&Tree::from_text(&meminfo(0, 4000, 100, more)), 0));
        let line = |key: &str, mib: u64| format!("Node 0 {key}: {} kB\n", mib * 1024);
        let cache = line("FilePages", 2000) + &line("Shmem", 300) + &line("Dirty", 200) + &line("Mapped", 500);
        assert_eq!(only(&cache), Some(300), "(100 + 1000 / 2) / 2");
        assert_eq!(only(&(cache + &line("Inactive(file)", 400))), Some(150));
        let all_shared = line("FilePages", 2000) + &line("Shmem", 2000);
        assert_eq!(only(&all_shared), Some(50), "tmpfs is no room");
        // 800 MiB of reserved huge pages: in MemTotal, not in MemFree.
        assert_eq!(only(&(line("HugePages_Total", 400) + &line("HugePages_Free", 400))), Some(50));
    }
}
