//! Were many pages allocated from a remote node?
//!
//! `node*/numastat` counts pages since boot; `other_node` were asked for by a process running elsewhere. It is about
//! allocation, not access, and a machine that boots and loads data on one node keeps a bad record for ever: a hint.

use super::{Answer, Confidence, Cost, Finding, Rule, Things, Weight, percent};
use crate::evidence::Evidence;
use wakewatt_words::{say, word};

const LIMIT: f64 = 0.2;
/// 1 GiB of 4 KiB pages: less is the noise of booting.
const MIN_PAGES: u64 = 1 << 18;

pub(super) struct NumaRemoteShare;

impl Rule for NumaRemoteShare {
    fn id(&self) -> &'static str {
        "rule.numa-remote-share"
    }
    fn question(&self) -> &'static str {
        word!("were many pages allocated from a remote node?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let numa = &evidence.facts.memory;
        if let Some(gap) = numa.online.gap().filter(|_| numa.nodes.is_empty()) {
            return Answer::gap(gap);
        }
        if numa.nodes.len() == 1 {
            return Answer::no(word!("one memory node: nothing is remote"));
        }
        let shares: Vec<_> = numa
            .nodes
            .iter()
            .filter_map(|n| {
                let pages = n.allocations.get()?;
                let total = pages.n_local?.saturating_add(pages.n_other?);
                (total >= MIN_PAGES).then_some((n.id, pages.remote_ratio()?))
            })
            .collect();
        let Some((_, ratio)) = shares.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)) else {
            return Answer::cannot_tell(
                word!("no node has counted enough allocations"),
                word!("wakewatt inspect memory after the machine has worked"),
            );
        };
        if ratio < LIMIT {
            return Answer::no(say!(
                "at most {} of a node's pages were allocated from elsewhere (since boot)",
                percent(ratio)
            ));
        }
        let over: Vec<String> =
            shares.iter().filter(|(_, ratio)| *ratio >= LIMIT).map(|(node, _)| say!("node {node}")).collect();
        let over: Vec<&str> = over.iter().map(String::as_str).collect();
        let title = say!(
            "Up to {} of the pages were allocated by processes on other nodes since boot, on {}",
            percent(ratio),
            Things::Nodes.extent(&over, shares.len())
        );
        let cost = Cost::unknown(word!("accesses to them cross the socket; how often they are accessed is not known"));
        let mut finding = Finding::new(self, Weight::Risk, Confidence::Low, title, cost);
        for (node, ratio) in shares {
            finding = finding
                .on(format!("/sys/devices/system/node/node{node}/numastat"), say!("{} from elsewhere", percent(ratio)));
        }
        if numa.balancing_mode.get() == Some(&0) {
            let path = "/proc/sys/kernel/numa_balancing";
            finding = finding.step(
                "memory.numa_balancing",
                None,
                "on",
                path,
                word!("let pages follow the tasks that use them"),
            );
        }
        finding
            .remedy(
                word!("Bind memory-bound processes and their memory to one node (numactl --cpunodebind=N --membind=N), or \
                    let each allocate where it will run. Where binding is not possible, automatic balancing moves pages."),
                word!("Less freedom for the scheduler; a node can run full while another has memory. Balancing costs page faults."),
                word!("wakewatt inspect memory twice while the work runs, and compare the counters"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    fn check(local: u64, other: u64) -> String {
        let root = "//- /sys/devices/system/node";
        ask(
            &NumaRemoteShare,
            &format!(
                "{root}/online\n0-1\n{root}/node0/numastat\nnuma_hit 5\nlocal_node {local}\nother_node \
                    {other}\n{root}/node1/numastat\nnuma_hit 1\n"
            ),
        )
    }

    #[test]
    fn shares() {
        assert!(
            check(600_000, 400_000)
                .starts_with("yes risk unknown: up to 40 % of the pages were allocated by processes on other nodes"),
            "{}",
            check(600_000, 400_000)
        );
        assert!(check(990_000, 10_000).starts_with("no"));
        assert!(check(5, 5).starts_with("cannot tell"));
        assert!(ask(&NumaRemoteShare, "").starts_with("cannot tell"));
        assert!(ask(&NumaRemoteShare, "//- /sys/devices/system/node/online\n0\n").starts_with("no"));
    }
}
