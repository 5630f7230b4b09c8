//! Where the pages of a copy really lie, by the numa_maps of its process and its children.

use wakewatt_core::samples::numa_maps::NumaMap;

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
