//! How is a title that stands in a run file told in another language?
//!
//! Titles of metrics, arms and quantities are data: English in every run file, and rules of a gate look for parts of them. They
//! are put together with ", " ("cross-CPU wake-up, median"), so they are told part by part; a part that wakewatt does not write
//! itself, such as a person's own name for an arm, stays as it is.

use wakewatt_words::{Language, language, say, told};

/// The parts that wakewatt writes itself.
const PARTS: &[&str] = &[
    "cross-CPU wake-up",
    "timer wake-up",
    "UDP round trip over loopback",
    "UDP round trip",
    "TCP round trip",
    "random read",
    "sequential read",
    "median",
    "mean",
    "99th percentile",
    "latency p50",
    "latency p99",
    "work done",
    "rate",
    "power",
    "mean power",
    "figure",
    "work per joule",
    "work per energy",
    "CPU time per operation",
    "kernel time per operation",
    "wall time of the command",
    "context switches",
    "wake-ups from idle",
    "interrupts",
    "CPU time used in a second",
    "machine left alone",
    "lateness of the waker",
    "from its plan to its ring",
    "random",
    "ordinary thread",
    "service time",
    "through the page cache",
    "best",
    "current settings",
    "in the experiment's blocks",
    "memory latency",
    "memory bandwidth",
    "cache line hand-over",
    "active idle",
    "shallow",
    "idle states disabled (polling)",
    "per-CPU limits lifted",
    "governor as found",
    // Run files of earlier versions.
    "as found",
    "no sleep (polling)",
    "governor performance",
];

/// All of them.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    PARTS.iter().copied()
}

/// A title in the language in force.
pub fn shown(title: &str) -> String {
    match language() {
        Language::English => title.to_string(),
        Language::Chinese => title.split(", ").map(part).collect::<Vec<_>>().join("，"),
    }
}

fn part(english: &str) -> String {
    if let Some((what, gap)) = english.split_once(" wake-up after ") {
        return say!("{what} wake-up after {gap}");
    }
    if let Some((what, peer)) = english.split_once(" round trip to ") {
        return say!("{what} round trip to {peer}");
    }
    if let Some(depth) = english.strip_prefix("depth ") {
        return say!("depth {depth}");
    }
    if let Some(gap) = english.strip_prefix("every ") {
        return say!("every {gap}");
    }
    if PARTS.contains(&english) { told(english) } else { english }.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_words::within;

    #[test]
    fn a_title_is_its_english_and_a_person_s_own_name_stays() {
        let title = "cross-CPU wake-up, median";
        assert_eq!(shown(title), title);
        assert_eq!(within(Language::Chinese, || shown("my arm")), "my arm");
        assert_eq!(within(Language::Chinese, || shown("off")), "off");
    }

    #[test]
    fn a_title_is_told_part_by_part() {
        let chinese = |title| within(Language::Chinese, || shown(title));
        assert_eq!(chinese("cross-CPU wake-up, median"), "跨 CPU 唤醒，中位数");
        assert_eq!(chinese("timer wake-up after 1 ms, random"), "timer 唤醒（空闲 1 ms 后），随机");
    }
}
