//! Predicted effects: from two words of a setting, or from the facts of two machines with everything that `compare` knows.

use crate::document::{Differs, Fleet, Word};
use crate::table::{CLOCK_LIMIT, DEEPEST_IDLE};
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::compare::compare;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::units::{parse_ns, show_ns, three_digits};

/// More differences of facts are no explanation.
const MOST_FACTS: usize = 12;

/// Who has the facts of nodes by name.
pub trait Facts {
    /// The facts of a node; none where there is no file of it.
    fn of(&self, node: &str) -> Option<Snapshot>;
}

/// What a setting is predicted to do against the peers' value.
pub(super) fn predicted(what: &str, here: &str, peers: &str) -> Option<String> {
    match what {
        DEEPEST_IDLE => {
            let ns = |text: &str| if text == "none" { Some(0) } else { parse_ns(text.rsplit(", ").next()?).ok() };
            let (here, peers) = (ns(here)?, ns(peers)?);
            let word = if here > peers { "longer" } else { "shorter" };
            (here != peers).then(|| {
                format!(
                    "a wake-up may take up to {} {word} than on them (claimed exit latency)",
                    show_ns(here.abs_diff(peers))
                )
            })
        }
        CLOCK_LIMIT => {
            let mhz = |text: &str| text.strip_suffix(" MHz")?.parse::<f64>().ok().filter(|mhz| *mhz > 0.0);
            let (here, peers) = (mhz(here)?, mhz(peers)?);
            let percent = three_digits((peers / here - 1.0).abs() * 100.0);
            let word = if here < peers { "more" } else { "less" };
            ((here - peers).abs() > 0.5).then(|| {
                format!("work that waits for the core takes up to {percent} % {word} time than on them (limits of the clock)")
            })
        }
        _ => None,
    }
}

/// Adds what `compare` says of the facts of odd nodes, each against the peer nearest to the middle of which facts are known.
pub fn explain(fleet: &mut Fleet, facts: &dyn Facts) {
    let mut told: Vec<(usize, Vec<Differs>)> = Vec::new();
    for (at, node) in fleet.nodes.iter().enumerate().filter(|(_, n)| n.is_odd()) {
        let Some(own) = facts.of(&node.name) else { continue };
        let off = |n: &crate::document::Node| n.leading().map_or(f64::MAX, |m| m.ratio.ln().abs());
        let mut peers: Vec<_> = fleet.nodes.iter().filter(|n| n.class == node.class && n.word == Word::Like).collect();
        peers.arrange_by(|a, b| off(a).total_cmp(&off(b)));
        let Some((peer, of_peer)) = peers.iter().find_map(|p| Some((p, facts.of(&p.name)?))) else { continue };
        let found = compare(&[own, of_peer]);
        let differs = found.differences.into_iter().take(MOST_FACTS).map(|d| Differs {
            what: d.label,
            here: d.values.first().cloned().unwrap_or_default(),
            peers: format!("{} ({})", d.values.get(1).cloned().unwrap_or_default(), peer.name),
            n_like_here: 0,
            n_peers: 1,
            predicted: d.predicted.map(|p| p.text),
        });
        told.push((at, differs.collect()));
    }
    for (at, differs) in told {
        fleet.nodes[at].differs.extend(differs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_words_are_a_prediction_where_they_say_enough() {
        let idle = |here, peers| predicted(DEEPEST_IDLE, here, peers);
        assert!(idle("C6, 170us", "C1, 2us").unwrap().contains("up to 168us longer"));
        assert!(idle("none", "C1E, 10us").unwrap().contains("10us shorter"));
        assert_eq!(idle("C6", "C1"), None);
        let clock = predicted(CLOCK_LIMIT, "1000 MHz", "2100 MHz").unwrap();
        assert!(clock.contains("110 % more time"), "{clock}");
        assert_eq!(predicted(CLOCK_LIMIT, "fast", "2100 MHz"), None);
        assert_eq!(predicted("kernel", "6.1", "6.12"), None);
    }
}
