//! Where a process's own pages lie: `/proc/PID/numa_maps` (Documentation/filesystems/proc.rst).
//!
//! One line per mapping: address, policy, and words such as `anon=5`, `N0=3`, `N1=2`, `kernelpagesize_kB=4`. Only mappings
//! all of whose pages are anonymous count: pages of files lie in the page cache, wherever whoever read them first left them.
//! In a program's data segment both kinds are mixed, and the counts per node are of both, so it is left out.

use std::collections::BTreeMap;

/// What one process's map says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumaMap {
    /// Bytes in mappings of anonymous pages, by node.
    pub bytes: BTreeMap<u32, u64>,
    /// The policy of most of these mappings: `default`, `bind:1`.
    pub policy: Option<String>,
}

impl NumaMap {
    /// Reads the file's text; lines it does not understand are left out.
    pub fn parse(text: &str) -> NumaMap {
        let mut map = NumaMap::default();
        let mut policies: BTreeMap<&str, usize> = BTreeMap::new();
        for line in text.lines() {
            let mut words = line.split_whitespace().skip(1);
            let Some(policy) = words.next() else { continue };
            let pairs: Vec<(&str, u64)> =
                words.filter_map(|w| w.split_once('=')).filter_map(|(k, v)| Some((k, v.parse().ok()?))).collect();
            let value = |key: &str| pairs.iter().find(|(k, _)| *k == key).map(|(_, v)| *v);
            let n_pages: u64 =
                pairs.iter().filter(|(k, _)| node_of(k).is_some()).map(|(_, n)| *n).fold(0, u64::saturating_add);
            if value("anon").is_none_or(|anon| anon < n_pages) {
                continue;
            }
            *policies.entry(policy).or_default() += 1;
            let page_bytes = value("kernelpagesize_kB").unwrap_or(4).saturating_mul(1024);
            for (key, n) in &pairs {
                if let Some(node) = node_of(key) {
                    let sum = map.bytes.entry(node).or_default();
                    *sum = sum.saturating_add(n.saturating_mul(page_bytes));
                }
            }
        }
        map.policy = policies.into_iter().max_by_key(|(_, n)| *n).map(|(policy, _)| policy.to_string());
        map
    }

    /// All bytes.
    pub fn total_bytes(&self) -> u64 {
        self.bytes.values().fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// The share on one node; none where there are no pages.
    pub fn ratio_on(&self, node: u32) -> Option<f64> {
        let total = self.total_bytes();
        (total > 0).then(|| self.bytes.get(&node).copied().unwrap_or(0) as f64 / total as f64)
    }

    /// Adds another process's pages.
    pub fn add(&mut self, other: NumaMap) {
        for (node, n) in other.bytes {
            let sum = self.bytes.entry(node).or_default();
            *sum = sum.saturating_add(n);
        }
        self.policy = self.policy.take().or(other.policy);
    }
}

/// `N1` is node 1.
fn node_of(key: &str) -> Option<u32> {
    key.strip_prefix('N')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anonymous_pages_are_summed_by_node() {
        let text = "00400000 bind:1 file=/bin/x mapped=9 N0=9 kernelpagesize_kB=4\n\
                    0060 bind:1 file=/bin/x anon=1 dirty=1 mapped=5 N0=4 N1=1 kernelpagesize_kB=4\n\
                    7f00 bind:1 anon=6 dirty=6 active=0 N0=1 N1=5 kernelpagesize_kB=4\n\
                    7f11 default anon=1 dirty=1 N1=1 kernelpagesize_kB=2048\n7f22 bind:1 heap anon=2 N1=2\njunk\n";
        let mut map = NumaMap::parse(text);
        assert_eq!(map.bytes, BTreeMap::from([(0, 4096), (1, 5 * 4096 + (2 << 20) + 8192)]));
        assert_eq!(map.policy.as_deref(), Some("bind:1"));
        assert!(map.ratio_on(1).unwrap() > 0.99 && map.ratio_on(7) == Some(0.0));
        map.add(NumaMap::parse(text));
        assert_eq!(map.bytes[&0], 8192);
        assert_eq!(NumaMap::parse("").ratio_on(0), None);
    }
}
