//! `numactl -H` (nodes, sizes, distances) and `numastat` (who allocated where).
//!
//! Sizes are whole megabytes. `numastat` prints pages since boot; with options (`-m`, `-p`, `-c`) it prints other things, which
//! are not read.

use super::MAY_BE_CUT;
use crate::facts::Facts;
use crate::plain::whole;
use crate::reading::{Format, Reading, likely};
use crate::section::Section;
use std::collections::BTreeMap;

/// `numactl -H`.
pub(super) const FORMAT: Format = Format { id: "numactl", title: "numactl --hardware", detect, read };
/// `numastat`.
pub(super) const COUNTS: Format =
    Format { id: "numastat", title: "numastat", detect: detect_counts, read: read_counts };

const NODE: &str = "/sys/devices/system/node";
const COUNTERS: &[&str] = &["numa_hit", "numa_miss", "numa_foreign", "interleave_hit", "local_node", "other_node"];

fn detect(section: &Section<'_>) -> u32 {
    likely(section, "numactl", |line| parse(line).is_some_and(|said| !matches!(said, Said::Columns | Said::Row(..))))
}

enum Said<'a> {
    Available,
    Cpus(u32, &'a str),
    Size(u32, u64),
    Free(u32, u64),
    Title,
    Columns,
    Row(u32, Vec<u64>),
}

fn parse(line: &str) -> Option<Said<'_>> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("available:") {
        return rest.contains("node").then_some(Said::Available);
    }
    if line.starts_with("node distances") {
        return Some(Said::Title);
    }
    if let Some(rest) = line.strip_prefix("node ") {
        let rest = rest.trim_start();
        let Some((head, value)) = rest.split_once(':') else {
            return rest.split_whitespace().all(|w| w.parse::<u32>().is_ok()).then_some(Said::Columns);
        };
        let mut words = head.split_whitespace();
        let node = words.next()?.parse().ok().filter(|n| *n < 1024)?;
        let mb = || whole(value.split_whitespace().next()?);
        return match words.next()? {
            "cpus" => Some(Said::Cpus(node, value.trim())),
            "size" => Some(Said::Size(node, mb()?)),
            "free" => Some(Said::Free(node, mb()?)),
            _ => None,
        };
    }
    let (head, rest) = line.split_once(':')?;
    let node = head.trim().parse().ok().filter(|n| *n < 1024)?;
    let row: Option<Vec<u64>> = rest.split_whitespace().map(whole).collect();
    row.filter(|row| !row.is_empty() && row.len() <= 1024 && row.iter().all(|d| *d < 256))
        .map(|row| Said::Row(node, row))
}

fn read(reading: &mut Reading<'_>) {
    let (mut nodes, mut with_memory): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    let (mut sizes, mut free) = (Vec::new(), BTreeMap::new());
    let (mut first, mut is_distances) = (None, false);
    for (at, line) in reading.open_lines() {
        if line.text.trim().is_empty() {
            continue;
        }
        match parse(&line.text) {
            Some(Said::Available) => {
                first = Some(at);
                reading.take(at);
            }
            Some(Said::Cpus(node, list)) => {
                nodes.push(node);
                let path = format!("{NODE}/node{node}/cpulist");
                match Facts::cpus(list) {
                    _ if reading.section.may_be_cut(at) => reading.refuse(at, MAY_BE_CUT),
                    Some(set) => reading.put(at, &path, &set.to_string()),
                    None if list.is_empty() => reading.put(at, &path, ""),
                    None => reading.refuse(at, "no list of CPUs that a machine has"),
                }
            }
            Some(Said::Size(node, mb)) => {
                if mb > 0 {
                    with_memory.push(node);
                }
                sizes.push((at, node, mb));
                reading.take(at);
            }
            Some(Said::Free(node, mb)) => {
                free.insert(node, mb);
                reading.take(at);
            }
            Some(Said::Title) => {
                is_distances = true;
                reading.take(at);
            }
            Some(Said::Columns) if is_distances => reading.take(at),
            Some(Said::Row(node, row)) if is_distances => {
                let words: Vec<String> = row.iter().map(u64::to_string).collect();
                reading.put(at, &format!("{NODE}/node{node}/distance"), &words.join(" "));
            }
            _ => is_distances = false,
        }
    }
    for (at, node, mb) in sizes {
        let line = |key: &str, mb: u64| format!("Node {node} {key}: {} kB\n", mb.saturating_mul(1024));
        let free = free.get(&node).map_or(String::new(), |mb| line("MemFree", *mb));
        reading.put(at, &format!("{NODE}/node{node}/meminfo"), (line("MemTotal", mb) + &free).trim_end());
    }
    let list = |nodes: &[u32]| nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    if let (Some(at), false) = (first, nodes.is_empty()) {
        reading.conclude(at, &format!("{NODE}/online"), &list(&nodes));
        if !with_memory.is_empty() {
            reading.conclude(at, &format!("{NODE}/has_memory"), &list(&with_memory));
        }
    }
}

fn detect_counts(section: &Section<'_>) -> u32 {
    likely(section, "numastat", |line| COUNTERS.iter().any(|c| line.split_whitespace().next() == Some(c)))
}

fn read_counts(reading: &mut Reading<'_>) {
    let mut nodes: Vec<u32> = Vec::new();
    let mut rows: Vec<(usize, &str, Vec<u64>)> = Vec::new();
    for (at, line) in reading.open_lines() {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        if !words.is_empty()
            && words.iter().all(|w| w.strip_prefix("node").is_some_and(|n| n.parse::<u32>().is_ok_and(|n| n < 1024)))
        {
            nodes = words.iter().filter_map(|w| w.strip_prefix("node")?.parse().ok()).collect();
            reading.take(at);
        } else if let Some(name) = words.first().and_then(|w| COUNTERS.iter().find(|c| *c == w)) {
            let values: Option<Vec<u64>> = words[1..].iter().map(|w| whole(w)).collect();
            match values.filter(|v| v.len() == nodes.len() && !v.is_empty()) {
                Some(values) => rows.push((at, name, values)),
                None => reading.refuse(at, "not as many numbers as nodes"),
            }
        }
    }
    for (column, node) in nodes.iter().enumerate() {
        let lines: Vec<String> = rows.iter().map(|(_, name, values)| format!("{name} {}", values[column])).collect();
        // Evidence is about who allocated from elsewhere.
        let best = rows.iter().find(|(_, name, _)| *name == "other_node").or(rows.first());
        if let Some((at, ..)) = best {
            reading.put(*at, &format!("{NODE}/node{node}/numastat"), &lines.join("\n"));
        }
    }
    rows.iter().for_each(|(at, ..)| reading.take(*at));
}

#[cfg(test)]
mod tests {
    use crate::formats::testing::{formats, read, says};

    #[test]
    fn nodes_distances_and_allocations_pasted_together() {
        let text = "available: 2 nodes (0-1)\nnode 0 cpus: 0 1\nnode 0 size: 64215 MB\nnode 0 free: 100 MB\nnode 1 cpus: 2 3\nnode 1 size: 64504 MB\nnode 1 free: 5 MB\n\
            node distances:\nnode   0   1 \n  0:  10  21 \n  1:  21  10 \n                           node0           node1\nnuma_hit                     100             200\n\
            numa_miss                      0               0\nlocal_node                    60             200\nother_node                    40               0\n";
        let found = read(text);
        assert_eq!(formats(&found), ["numactl", "numastat"]);
        let at = |file: &str| says(&found, &format!("/sys/devices/system/node/{file}"));
        assert_eq!(at("node1/meminfo").as_deref(), Some("Node 1 MemTotal: 66052096 kB\nNode 1 MemFree: 5120 kB"));
        assert_eq!((at("online").as_deref(), at("node1/distance").as_deref()), (Some("0,1"), Some("21 10")));
        assert_eq!(at("node0/numastat").as_deref(), Some("numa_hit 100\nnuma_miss 0\nlocal_node 60\nother_node 40"));
        assert_eq!(found.document.files[0].n_not_understood, 0, "{:?}", found.document.files[0].not_understood);
    }
}
