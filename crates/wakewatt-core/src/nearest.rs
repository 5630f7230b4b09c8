//! "Did you mean …?": the nearest of some names, if any is near. Shared by everything that refuses an unknown word.

use crate::arrange::Arrange as _;

/// The candidate most like the word; none when nothing is alike.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|c| (strsim::jaro_winkler(word, c), c))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, c)| c)
}

/// The candidates most like the word, best first; letters may be small or large, and a candidate that holds the word counts.
pub fn most_like<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>, n: usize) -> Vec<&'a str> {
    let word = word.trim().to_lowercase();
    let likeness = |candidate: &str| {
        let candidate = candidate.to_lowercase();
        let is_part = word.len() > 2 && candidate.contains(&word);
        if is_part { 1.0 } else { strsim::jaro_winkler(&word, &candidate) }
    };
    let mut found: Vec<(f64, &str)> =
        candidates.into_iter().map(|c| (likeness(c), c)).filter(|(l, _)| *l > 0.7).collect();
    found.arrange_by(|a, b| b.0.total_cmp(&a.0).then(a.1.len().cmp(&b.1.len())));
    found.into_iter().take(n).map(|(_, c)| c).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_come_first() {
        let words = ["C6", "C6P", "PC6", "rule.epp", "target residency", "exit latency"];
        assert_eq!(most_like("residency", words, 1), ["target residency"]);
        assert_eq!(most_like("c6x", words, 2), ["C6", "C6P"]);
        assert!(most_like("zzzz", words, 4).is_empty());
    }
}
