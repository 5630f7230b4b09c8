//! What to do: the one thing that a reader who stops after the first screen should have read.
//!
//! A setting that was left behind comes before all advice. Else it is the first finding, as they are ranked; where that has no line
//! to paste and another of the same weight has, that one, because something can be done about it now. The line that changes is
//! shown with the one that takes it back, and nothing here is new: it stands among the findings, with its evidence.

use super::findings::FindingView;
use serde::Serialize;
use wakewatt_words::{say, word};

/// The one thing.
#[derive(Debug, PartialEq, Serialize)]
pub(in crate::report) struct Todo {
    /// What it is about: the finding's title.
    pub(in crate::report) about: String,
    /// What to do.
    pub(in crate::report) remedy: String,
    /// What that costs.
    pub(in crate::report) price: Option<String>,
    /// The line to paste.
    pub(in crate::report) apply: Option<String>,
    /// How to take it back.
    pub(in crate::report) undo: Option<String>,
    /// What else there is.
    pub(in crate::report) more: String,
}

/// Of these findings; none where no rule was asked.
pub(super) fn of(
    findings: &[FindingView],
    n_rules: usize,
    n_cannot_tell: usize,
    is_restored: Option<bool>,
) -> Option<Todo> {
    if is_restored == Some(false) {
        return Some(Todo {
            about: word!("A setting was not put back").into(),
            remedy: word!("Put it back before anything else.").into(),
            price: None,
            apply: Some("sudo wakewatt recover".into()),
            undo: None,
            more: word!("The lines marked NO below say which.").into(),
        });
    }
    if n_rules == 0 {
        return None;
    }
    let unknown = match n_cannot_tell {
        0 => String::new(),
        n => say!(" {n} of {n_rules} questions could not be answered here."),
    };
    if findings.is_empty() && n_cannot_tell >= n_rules {
        return Some(Todo {
            about: word!("Nothing could be judged").into(),
            remedy: word!("Look at more of the machine: run doctor on it as root, or give more of its texts.").into(),
            price: None,
            apply: None,
            undo: None,
            more: unknown.trim().into(),
        });
    }
    let Some(first) = findings.first() else {
        return Some(Todo {
            about: word!("No rule found anything to change").into(),
            remedy: word!("Leave the settings as they are.").into(),
            price: None,
            apply: None,
            undo: None,
            more: unknown.trim().into(),
        });
    };
    let is_doable = |f: &&FindingView| f.weight == first.weight && !f.commands.is_empty();
    let chosen = findings.iter().find(is_doable).unwrap_or(first);
    let line = |label: &str| chosen.commands.iter().find(|(l, _)| *l == label).map(|(_, line)| line.clone());
    let more = match findings.len() - 1 {
        0 => word!("There is no other finding.").to_string(),
        1 => word!("There is one more finding.").to_string(),
        n => say!("There are {n} more findings."),
    };
    Some(Todo {
        about: chosen.title.clone(),
        remedy: chosen.remedy.clone(),
        price: Some(chosen.price.clone()),
        apply: line("apply"),
        undo: line("undo"),
        more: more + &unknown,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(title: &str, weight: &'static str, has_line: bool) -> FindingView {
        let commands = match has_line {
            true => vec![("look", "l".to_string()), ("apply", "a".into()), ("undo", "u".into())],
            false => vec![],
        };
        FindingView {
            id: "rule.x".into(),
            title: title.into(),
            weight,
            cost: String::new(),
            cost_label: "measured",
            confidence: "high",
            evidence: vec![],
            remedy: format!("{title} remedy"),
            steps: vec![],
            commands,
            price: "watts".into(),
            verify: String::new(),
        }
    }

    #[test]
    fn the_first_that_can_be_done_among_the_heaviest() {
        let all = [finding("a", "problem", false), finding("b", "problem", true), finding("c", "risk", true)];
        let todo = of(&all, 60, 3, Some(true)).unwrap();
        assert_eq!((todo.about.as_str(), todo.apply.as_deref(), todo.undo.as_deref()), ("b", Some("a"), Some("u")));
        assert_eq!(todo.more, "There are 2 more findings. 3 of 60 questions could not be answered here.");
        let todo = of(&[finding("a", "problem", false), finding("c", "risk", true)], 60, 0, None).unwrap();
        assert_eq!((todo.about.as_str(), todo.apply), ("a", None), "a risk does not stand before a problem");
    }

    #[test]
    fn what_was_left_behind_comes_first_and_nothing_is_not_advice() {
        let todo = of(&[finding("a", "problem", true)], 60, 0, Some(false)).unwrap();
        assert_eq!(todo.apply.as_deref(), Some("sudo wakewatt recover"));
        assert_eq!(of(&[], 0, 0, None), None, "nobody asked");
        assert!(of(&[], 60, 60, None).unwrap().more.contains("60 of 60"));
    }
}
