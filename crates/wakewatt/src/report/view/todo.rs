//! What to do: the one thing that a reader who stops after the first screen should have read.
//!
//! A setting that was left behind comes before all advice. Else it is the first finding, which core has put there for the verdict
//! as well (`rules::first`). The line that changes is shown with the one that takes it back, and nothing here is new: it stands
//! among the findings, with its evidence. Where no rule found anything it counts too how many could not look.

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
    let Some(chosen) = findings.first() else {
        // What could not be judged may hold what is to change.
        let is_little = 2 * n_cannot_tell > n_rules;
        let (n, more) = (n_rules - n_cannot_tell, if is_little { String::new() } else { unknown.trim().into() });
        let (about, remedy) = match is_little {
            true => (
                say!("Only {n} of {n_rules} questions could be answered, and none of these found anything to change"),
                word!(
                    "That is no advice to leave the settings as they are. Look at more of the machine: run doctor on it as root, or give more of its texts."
                ),
            ),
            false => (word!("No rule found anything to change").into(), word!("Leave the settings as they are.")),
        };
        return Some(Todo { about, remedy: remedy.into(), price: None, apply: None, undo: None, more });
    };
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
    use super::super::super::{chinese, verdict};
    use super::*;
    use wakewatt_words::{Language, within};

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
    fn the_first_finding_with_its_line_and_what_else_there_is() {
        let todo = of(&[finding("b", "problem", true), finding("c", "risk", true)], 60, 3, Some(true)).unwrap();
        assert_eq!((todo.about.as_str(), todo.apply.as_deref(), todo.undo.as_deref()), ("b", Some("a"), Some("u")));
        assert_eq!(todo.more, "There is one more finding. 3 of 60 questions could not be answered here.");
        assert_eq!(of(&[finding("a", "problem", false)], 60, 0, None).unwrap().apply, None);
    }

    #[test]
    fn where_little_could_be_judged_nothing_is_said_to_be_left_alone() {
        let of = |n_open| of(&[], 72, n_open, None).unwrap();
        let todo = of(68);
        assert!(todo.about.starts_with("Only 4 of 72 questions"), "{todo:?}");
        assert!(todo.remedy.starts_with("That is no advice to leave"), "{todo:?}");
        let todo = of(20);
        assert_eq!(todo.remedy, "Leave the settings as they are.");
        assert_eq!(todo.more, "20 of 72 questions could not be answered here.");
    }

    /// Whoever reads the first screen reads of one first thing, on every machine.
    #[test]
    fn verdict_list_and_what_to_do_name_the_same_finding_on_every_recorded_host() {
        let hosts = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/hosts");
        let mut n = 0;
        for path in std::fs::read_dir(hosts).unwrap().map(|entry| entry.unwrap().path()) {
            let report = chinese::recorded(&std::fs::read_to_string(&path).unwrap());
            for language in [Language::English, Language::Chinese] {
                let view = within(language, || super::super::of(&report.translated()));
                let todo = view.todo.unwrap();
                let about = verdict::in_sentence(&todo.about);
                assert!(view.sentence.contains(&about), "{}: {about}: {}", path.display(), view.sentence);
                assert_eq!(view.findings[0].title, todo.about, "{}", path.display());
                n += 1;
            }
        }
        assert!(n >= 32, "{n} looked at");
    }

    #[test]
    fn what_was_left_behind_comes_first_and_nothing_is_not_advice() {
        let todo = of(&[finding("a", "problem", true)], 60, 0, Some(false)).unwrap();
        assert_eq!(todo.apply.as_deref(), Some("sudo wakewatt recover"));
        assert_eq!(of(&[], 0, 0, None), None, "nobody asked");
        assert!(of(&[], 60, 60, None).unwrap().more.contains("60 of 60"));
    }
}
