//! Automatic NUMA balancing: `/proc/sys/kernel/numa_balancing`.
//!
//! The kernel unmaps pages now and then to learn which node uses them, and moves pages and tasks together. The faults cost
//! processor time and single milliseconds of latency; without it memory may stay on the far node. `tiering` (kernel 5.18
//! and later) moves hot pages from slow to fast memory instead; the values are bits and may be combined. Pinned tasks gain
//! nothing. Source: admin-guide/sysctl/kernel.rst.

use super::one_file;
use crate::knob::{About, Host, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use crate::words::encode;
use wakewatt_words::word;

/// `memory.numa_balancing`.
pub struct NumaBalancing;

const FILE: &str = "/proc/sys/kernel/numa_balancing";
const WORDS: [&str; 4] = ["off", "on", "tiering", "on+tiering"];

const ABOUT: About = About {
    id: "memory.numa_balancing",
    title: "automatic NUMA balancing",
    unit: "off, on, tiering, on+tiering",
    scope: Scope::Machine,
    io_scope: Scope::Machine,
    stage: Stage::Placement,
    reversible: Reversible::Exactly,
    price: Price {
        up: "page faults on purpose, for memory that comes to its task",
        down: "no faults, far memory stays far",
    },
    risk: "pages that have moved do not move back",
    overlaps: &["NUMA placement", "sysctls"],
    moves: &[],
    source: "Documentation/admin-guide/sysctl/kernel.rst (numa_balancing)",
};

impl Knob for NumaBalancing {
    fn about(&self) -> &'static About {
        &ABOUT
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        let valid = Valid::Words(WORDS.map(str::to_string).to_vec());
        one_file::machine(host, ABOUT.id, FILE, valid, word!("a kernel without CONFIG_NUMA_BALANCING"))
    }
    fn encode(&self, _: &Host<'_>, site: &Site, word: &str) -> Result<String, String> {
        let word = encode(site, word)?;
        Ok(WORDS.iter().position(|w| *w == word).unwrap_or_default().to_string())
    }
    fn decode(&self, _: &Site, text: &str) -> String {
        let word = text.parse::<usize>().ok().and_then(|at| WORDS.get(at));
        word.map_or_else(|| text.to_string(), |word| (*word).to_string())
    }
    fn effective(&self, host: &Host<'_>, site: &Site) -> Option<String> {
        let is_on = site.now.as_deref() != Some("0");
        (is_on && host.facts.memory.nodes.len() == 1).then(|| "nothing to balance: one node".to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn words_are_bits() {
        let tree = Tree::from_text(&format!("//- {FILE}\n1\n"));
        let host = Host::read(&tree);
        let site = NumaBalancing.sites(&host).unwrap().remove(0);
        assert_eq!(WORDS.map(|w| NumaBalancing.encode(&host, &site, w).unwrap()), ["0", "1", "2", "3"]);
        assert_eq!(["0", "3", "9"].map(|t| NumaBalancing.decode(&site, t)), ["off", "on+tiering", "9"]);
        assert!(NumaBalancing.encode(&host, &site, "1").is_err());
    }
}
