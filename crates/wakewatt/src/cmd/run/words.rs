//! Copies in words: where the pages of each lay, and what all of them came to against one that was not bound.

use wakewatt_core::samples::numa_maps::NumaMap;
use wakewatt_core::units::{show_bytes, show_ns, three_digits};
use wakewatt_lab::per_node::{EndedCopy, Scaling};

/// One copy in a line.
pub(super) fn told(copy: &EndedCopy) -> String {
    let place = copy.place.node.map_or("unbound".to_string(), |n| format!("node {n}"));
    let wall_ns = copy.end_at_ns.saturating_sub(copy.start_at_ns);
    let seen = copy.looked_at_ns.zip(copy.map.as_ref());
    let seen = seen.map(|(at_ns, map)| (map, at_ns.saturating_sub(copy.start_at_ns), wall_ns));
    let placed = placed(copy.place.node, seen);
    format!("{place}, CPUs {}: exit code {}, {}; {placed}", copy.place.cpus, copy.code, show_ns(wall_ns))
}

/// n bound copies against one that is not; with the unbound copy's metric where one was asked for.
pub(super) fn told_scaling(scaling: &Scaling, metric: Option<Option<f64>>) -> String {
    let n = scaling.n_copies;
    let mut said = format!(
        "{n} bound {} took {}, one unbound copy {}: {}x the work per time, if a copy's work is the same",
        if n == 1 { "copy" } else { "copies" },
        show_ns(scaling.bound_wall_ns),
        show_ns(scaling.unbound_wall_ns),
        three_digits(scaling.work_ratio)
    );
    if let Some(one) = metric {
        said += &match (one, scaling.metric_sum, scaling.metric_ratio) {
            (Some(one), Some(sum), Some(ratio)) => {
                let [sum, one, ratio] = [sum, one, ratio].map(three_digits);
                format!("\n--metric: {sum} in all against {one}: {ratio}x")
            }
            _ => "\n--metric: not found in the output of every copy, so there is no ratio".into(),
        };
    }
    said
}

/// Where its pages lay: what was seen, how long after its start, and how long it ran. What it took after that look is not known.
fn placed(node: Option<u32>, seen: Option<(&NumaMap, u64, u64)>) -> String {
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
    use wakewatt_core::cpuset::CpuSet;
    use wakewatt_lab::per_node::Where;

    fn ended(node: u32, ms: u64, code: u8, metric: Option<f64>) -> EndedCopy {
        let place = Where { node: Some(node), cpus: CpuSet::parse("0-1").unwrap() };
        EndedCopy { place, code, start_at_ns: 0, end_at_ns: ms * 1_000_000, metric, map: None, looked_at_ns: None }
    }

    #[test]
    fn scaling_counts_the_work_of_all_copies() {
        let alone = ended(0, 1000, 0, Some(50.0));
        let four = [900, 1000, 1100, 1111].map(|ms| ended(0, ms, 0, Some(45.0)));
        let said = told_scaling(&Scaling::of(&alone, &four), Some(alone.metric));
        assert!(said.contains("4 bound copies took 1.11s, one unbound copy 1s: 3.6x the work per time"), "{said}");
        assert!(said.ends_with("--metric: 180 in all against 50: 3.6x"), "{said}");
        let silent = told_scaling(&Scaling::of(&alone, &[ended(0, 5, 0, None)]), Some(alone.metric));
        assert!(silent.ends_with("so there is no ratio"), "{silent}");
        assert!(told(&ended(1, 20, 0, None)).starts_with("node 1, CPUs 0-1: exit code 0, 20ms; "));
    }

    #[test]
    fn placement_is_told_with_its_numbers() {
        let map = |text: &str| NumaMap::parse(text);
        let all = map("0 bind:1 anon=2 N1=2 kernelpagesize_kB=4");
        let told = |node, map: Option<&NumaMap>| placed(node, map.map(|m| (m, 3_000_000_000, 4_500_000_000)));
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
