//! A verdict per node and measure: odd where chance is adjusted away and the effect matters, a rank where the class is small,
//! "cannot tell" where the model would have to guess.
//!
//! All p-values of an answer are adjusted together, whatever measure they belong to: seven questions about a node must not be
//! seven chances to accuse it. Small fleets have a scale that is itself uncertain, so distances are judged by Student's curve
//! with the freedom that a median deviation leaves; without that, a quarter of innocent fleets of 26 would have a culprit.

use super::score::{LEAST_NODES, Scores};
use wakewatt_core::stats::discoveries::adjusted;
use wakewatt_core::stats::normal::{below, student_tail};

/// Of what is called odd, this share may be so by chance.
pub const FALSE_DISCOVERY_RATE: f64 = 0.05;
/// Less than this is not worth anybody's night.
pub const LEAST_EFFECT_RATIO: f64 = 1.05;
/// With more freedom Student's curve is the normal one.
const MOST_FREEDOM: f64 = 200.0;

/// Why there is no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsure {
    /// The measure has too few windows of this node.
    FewWindows,
    /// Its load lies beyond what any peer had.
    LoadOfItsOwn,
    /// Fewer than eight of its class: there is a rank.
    FewPeers,
}

/// What may be said of a node's measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// More than its peers.
    Higher,
    /// Less than its peers.
    Lower,
    /// Not shown to differ by 5 % or more.
    Like,
    /// Nothing.
    CannotTell(Unsure),
}

/// A verdict with its number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// What may be said.
    pub verdict: Verdict,
    /// The smallest false discovery rate at which it would be called; none where it was not asked.
    pub q_value: Option<f64>,
}

/// Judges all measures together: for each its nodes, in the order given.
pub fn judge(measures: &[&Scores]) -> Vec<Vec<Judged>> {
    let mut p_values = Vec::new();
    for scores in measures {
        p_values.extend(scores.by_node.iter().filter_map(|s| p_value(scores, s.as_ref()?)));
    }
    let mut adjusted = adjusted(&p_values).into_iter();
    let mut of_measure = |scores: &Scores| -> Vec<Judged> {
        let of_node = |score: &Option<super::Score>| {
            let unsure = |why| Judged { verdict: Verdict::CannotTell(why), q_value: None };
            let Some(score) = score else { return unsure(Unsure::FewWindows) };
            if p_value(scores, score).is_none() {
                return unsure(if score.is_alone { Unsure::LoadOfItsOwn } else { Unsure::FewPeers });
            }
            let q = adjusted.next();
            let is_called = q.is_some_and(|q| q <= FALSE_DISCOVERY_RATE);
            let is_large = score.effect.median.abs() >= LEAST_EFFECT_RATIO.ln();
            let verdict = match (is_called && is_large, score.effect.median > 0.0) {
                (true, true) => Verdict::Higher,
                (true, false) => Verdict::Lower,
                _ => Verdict::Like,
            };
            Judged { verdict, q_value: q }
        };
        scores.by_node.iter().map(of_node).collect()
    };
    measures.iter().map(|scores| of_measure(scores)).collect()
}

/// Two-sided; none where nothing is asked of the node.
fn p_value(scores: &Scores, score: &super::Score) -> Option<f64> {
    scores.scale?;
    if score.n_class < LEAST_NODES || score.is_alone {
        return None;
    }
    let t = score.distance.abs();
    let tail = if scores.freedom > MOST_FREEDOM { below(-t) } else { student_tail(t, scores.freedom) };
    Some((2.0 * tail).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::super::simulated::{Fleet, accused};

    /// The promise: of a thousand fleets of innocent nodes at most 5 % have anybody accused, whatever the load of each.
    #[test]
    fn of_a_thousand_innocent_fleets_few_have_a_culprit() {
        for n_nodes in [26, 60] {
            let n = (0..1000).filter(|seed| !accused(&Fleet { n_nodes, ..Fleet::default() }, *seed).is_empty()).count();
            println!("{n_nodes} nodes: {n} of 1000 innocent fleets have a culprit");
            assert!(n <= 50, "{n_nodes} nodes: {n} of 1000 fleets have a culprit");
        }
    }

    /// Two measures are not two chances.
    #[test]
    fn the_busy_are_not_accused() {
        let fleet = Fleet { n_nodes: 26, busy_share: 0.15, busy_factor: 3.0, ..Fleet::default() };
        let n = (0..1000).filter(|seed| !accused(&fleet, *seed).is_empty()).count();
        assert!(n <= 50, "{n} of 1000 fleets with busy nodes have a culprit");
    }

    #[test]
    fn the_guilty_are_found() {
        let recall = |fleet: &Fleet| {
            let (mut n_found, mut n_bad, mut n_wrong) = (0, 0, 0);
            for seed in 0..200 {
                let found = accused(fleet, seed);
                let bad = fleet.bad(seed);
                n_bad += bad.iter().filter(|n| fleet.is_judged(**n)).count();
                n_found += found.iter().filter(|n| bad.contains(n)).count();
                n_wrong += found.iter().filter(|n| !bad.contains(n)).count();
            }
            let found = (n_found as f64 / n_bad.max(1) as f64, n_wrong as f64 / (200 * fleet.n_nodes) as f64);
            println!("{fleet:?}: {found:.4?} found, wrong");
            found
        };
        let (found, wrong) = recall(&Fleet { n_nodes: 26, bad_share: 0.08, bad_factor: 1.2, ..Fleet::default() });
        // Less than without Student's curve, which finds 87 % there and accuses somebody in one innocent fleet of seven.
        assert!(found > 0.35 && wrong < 0.0064, "26 nodes, +20 %: found {found:.2}, wrong {wrong:.4}");
        let (found, wrong) = recall(&Fleet { n_nodes: 26, bad_share: 0.25, bad_factor: 1.8, ..Fleet::default() });
        // Not more: chance makes half of the class of eight bad in every sixth fleet, and then nothing is usual there.
        assert!(found > 0.75 && wrong < 0.01, "a quarter bad, +80 %: found {found:.2}, wrong {wrong:.4}");
        let (found, wrong) = recall(&Fleet { n_nodes: 200, bad_share: 0.25, bad_factor: 1.8, ..Fleet::default() });
        assert!(found > 0.98 && wrong < 0.01, "200 nodes, a quarter bad: found {found:.2}, wrong {wrong:.4}");
        let (found, wrong) = recall(&Fleet { n_nodes: 200, bad_share: 0.08, bad_factor: 1.2, ..Fleet::default() });
        assert!(found > 0.85 && wrong < 0.005, "200 nodes, +20 %: found {found:.2}, wrong {wrong:.4}");
    }
}
