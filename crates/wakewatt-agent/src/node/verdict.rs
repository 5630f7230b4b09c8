//! What the facts say of a node, in one sentence: what is to mend first, else what is a matter of choice.
//!
//! Facts prove no cost, and the sentence claims none: `wakewatt doctor` measures.

use crate::families::Found;
use wakewatt_core::rules::Weight;

pub(super) fn sentence(findings: &[Found]) -> String {
    let heavy = |found: &&Found| found.weight != Weight::Note;
    let n_more = |first: &Found| match findings.iter().filter(heavy).filter(|found| *found != first).count() {
        0 => String::new(),
        1 => "; one more finding".to_string(),
        n => format!("; {n} more findings"),
    };
    let to_mend = findings.iter().find(|found| heavy(found) && !found.is_choice);
    let of_choice = findings.iter().find(heavy);
    match (to_mend, of_choice) {
        (Some(first), _) => format!("{}{}.", ended(&first.title), n_more(first)),
        (None, Some(first)) => format!(
            "Nothing to mend is seen. A choice between latency and watts: {}{}.",
            ended(&first.title),
            n_more(first)
        ),
        (None, None) => "Nothing to mend is seen.".into(),
    }
}

/// Without its full stop, so that the sentence can go on.
fn ended(title: &str) -> &str {
    title.trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(title: &str, weight: Weight, is_choice: bool) -> Found {
        let (rule, cost, remedy) = (format!("rule.{title}"), String::new(), String::new());
        Found { rule, title: title.into(), weight, is_choice, cost, remedy }
    }

    #[test]
    fn what_is_to_mend_comes_before_what_is_a_choice() {
        assert_eq!(sentence(&[found("a", Weight::Note, false)]), "Nothing to mend is seen.");
        let choice = found("C6 is allowed.", Weight::Risk, true);
        assert_eq!(
            sentence(std::slice::from_ref(&choice)),
            "Nothing to mend is seen. A choice between latency and watts: C6 is allowed."
        );
        let fault = found("The memory runs slow.", Weight::Problem, false);
        assert_eq!(sentence(&[choice.clone(), fault.clone()]), "The memory runs slow; one more finding.");
        let third = found("x", Weight::Risk, false);
        assert_eq!(sentence(&[choice, fault, third]), "The memory runs slow; 2 more findings.");
    }
}
