//! Where the pages of a copy really lie, by the numa_maps of its process and its children.

use wakewatt_core::samples::numa_maps::NumaMap;
use wakewatt_core::units::{show_bytes, show_ns};

/// At most this many processes of one copy are looked at.
const MAX_PROCESSES: usize = 64;

/// A process and its descendants; none where nothing could be read (no NUMA in the kernel, or another user's process).
pub(super) fn of_group(pid: u32) -> Option<NumaMap> {
    let mut map: Option<NumaMap> = None;
    let mut waiting = vec![pid];
    let mut n_seen = 0;
    while let Some(pid) = waiting.pop() {
        n_seen += 1;
        if n_seen > MAX_PROCESSES {
            break;
        }
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}"));
        let children = read(&format!("task/{pid}/children")).unwrap_or_default();
        waiting.extend(children.split_whitespace().filter_map(|c| c.parse::<u32>().ok()));
        if let Ok(text) = read("numa_maps") {
            map.get_or_insert_default().add(NumaMap::parse(&text));
        }
    }
    map.filter(|m| m.total_bytes() > 0)
}

/// In words: what was seen, how long after its start, and how long it ran. What it took after that look is not known.
pub(super) fn told(node: Option<u32>, seen: Option<(&NumaMap, u64, u64)>) -> String {
    let Some((map, seen_ns, wall_ns)) = seen else {
        return "where its pages lay is not known (it ended too soon, or the kernel has no numa_maps)".into();
    };
    let total = show_bytes(map.total_bytes());
    let policy = map.policy.as_deref().unwrap_or("unknown");
    let when = format!("last looked at {} after its start, of {}", show_ns(seen_ns), show_ns(wall_ns));
    match node.and_then(|node| map.ratio_on(node)) {
        Some(ratio) if ratio >= 0.995 => format!("all {total} of its own pages lay there (policy {policy}; {when})"),
        Some(ratio) => {
            format!("NOT placed: only {:.1} % of {total} lay there (policy {policy}; {when})", ratio * 100.0)
        }
        None => {
            let by_node: Vec<String> =
                map.bytes.iter().map(|(node, bytes)| format!("{} on node {node}", show_bytes(*bytes))).collect();
            format!("{} ({when})", by_node.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placement_is_told_with_its_numbers() {
        let map = |text: &str| NumaMap::parse(text);
        let all = map("0 bind:1 anon=2 N1=2 kernelpagesize_kB=4");
        let told = |node, map: Option<&NumaMap>| told(node, map.map(|m| (m, 3_000_000_000, 4_500_000_000)));
        let when = "last looked at 3s after its start, of 4.5s";
        let said = format!("all 8KiB of its own pages lay there (policy bind:1; {when})");
        assert_eq!(told(Some(1), Some(&all)), said);
        let half = map("0 default anon=2 N0=1 N1=1 kernelpagesize_kB=4");
        let said = format!("NOT placed: only 50.0 % of 8KiB lay there (policy default; {when})");
        assert_eq!(told(Some(1), Some(&half)), said);
        assert_eq!(told(None, Some(&half)), format!("4KiB on node 0, 4KiB on node 1 ({when})"));
        assert!(told(Some(0), None).contains("not known"));
    }
}
