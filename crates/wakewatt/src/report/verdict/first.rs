//! What a host that was only looked at is told first.
//!
//! A recording proves nothing, but the sentence need not be the same on every machine: something to mend comes first, and
//! on a healthy machine what whoever needs latency would change, which is a choice and no fault.

use wakewatt_core::rules::{self, Answer, Confidence, Finding, Ruling, Weight};
use wakewatt_words::{say, word};

/// What stands first: what is to mend, else what whoever needs latency would change.
pub(super) fn first(rulings: &[Ruling]) -> String {
    let found = || {
        rulings.iter().filter_map(|r| match &r.answer {
            Answer::Yes(finding) => Some((r.rule.as_str(), finding)),
            _ => None,
        })
    };
    // A hint is no fault yet.
    let is_heavy = |finding: &Finding| finding.weight != Weight::Note && finding.confidence != Confidence::Low;
    if let Some((_, finding)) = found().find(|(rule, finding)| !rules::is_choice(rule) && is_heavy(finding)) {
        return say!(": first of all, {}", in_sentence(&finding.title));
    }
    // Only what there is to change, and what latency is paid for with.
    let is_asked =
        |rule: &str, finding: &Finding| rules::is_choice(rule) && rules::costs_latency(rule) && finding.plan.is_some();
    match found().find(|(rule, finding)| is_asked(rule, finding) || is_heavy(finding)) {
        Some((_, finding)) => {
            say!(". Nothing to mend is seen; where latency rules, first of all: {}", in_sentence(&finding.title))
        }
        None => word!(". Nothing to mend is seen").into(),
    }
}

/// A title in the middle of a sentence: without its capital, unless a name or a number follows it.
fn in_sentence(title: &str) -> String {
    let mut letters = title.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if first.is_uppercase() && (second.is_lowercase() || second == ' ') => {
            first.to_lowercase().chain(title.chars().skip(1)).collect()
        }
        _ => title.to_string(),
    }
}
