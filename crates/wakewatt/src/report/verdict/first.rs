//! What a host that was only looked at is told first.
//!
//! A recording proves nothing, but the sentence need not be the same on every machine: something to mend comes first, and
//! on a healthy machine what whoever needs latency would change, which is a choice and no fault.

use wakewatt_core::rules::first::{self, Because};
use wakewatt_core::rules::{Answer, Ruling};
use wakewatt_words::{say, word};

/// What stands first, as core chooses it for all who name one: what is to mend, else what whoever needs latency would change,
/// else what is worth a look.
pub(super) fn first(rulings: &[Ruling]) -> String {
    match first::first(rulings) {
        Some((_, finding, Because::ToMend)) => say!(": first of all, {}", in_sentence(&finding.title)),
        Some((_, finding, Because::Choice)) => {
            say!(". Nothing to mend is seen; where latency rules, first of all: {}", in_sentence(&finding.title))
        }
        Some((_, finding, Because::Hint)) => {
            say!(". {}; worth a look: {}", nothing_to_mend(rulings), in_sentence(&finding.title))
        }
        None => say!(". {nothing}", nothing = nothing_to_mend(rulings)),
    }
}

/// Nothing is seen also where hardly anything could be looked at, so how much that was is said then.
fn nothing_to_mend(rulings: &[Ruling]) -> String {
    let n_open = rulings.iter().filter(|r| matches!(r.answer, Answer::CannotTell { .. })).count();
    let (n, of) = (rulings.len() - n_open, rulings.len());
    match 2 * n_open > of {
        true => say!("Nothing to mend is seen in the {n} of {of} questions that could be answered"),
        false => word!("Nothing to mend is seen").into(),
    }
}

/// A title in the middle of a sentence: without its capital, unless a name or a number follows it.
pub(in crate::report) fn in_sentence(title: &str) -> String {
    let mut letters = title.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if first.is_uppercase() && (second.is_lowercase() || second == ' ') => {
            first.to_lowercase().chain(title.chars().skip(1)).collect()
        }
        _ => title.to_string(),
    }
}
