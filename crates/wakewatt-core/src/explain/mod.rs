//! What a word means, on this machine: a term of the glossary, a state of its idle table, a rule.
//!
//! Nothing is written twice. The meaning comes from the glossary, from the rule's own essay or from the driver's table; the
//! numbers come from the facts, and what they cannot tell is said. Knobs are `tune`'s to explain, in the same form. What
//! is not known is answered by none; whoever asks then shows the [`names`] that are nearest.

mod here;

use crate::evidence::Evidence;
use crate::glossary::{self, Family};
use crate::rules::{self, Answer, RULES};
use serde::Serialize;
use wakewatt_words::{say, told, word};

/// What a word names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A term of the field.
    Term,
    /// An idle state of this machine that the glossary does not have.
    IdleState,
    /// A rule of `doctor`.
    Rule,
    /// A setting of `tune`.
    Knob,
}

/// What it is on this machine, one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Here {
    /// The name of the fact, as people read it: "C6 exit latency (claimed)".
    pub what: String,
    /// What it says, with its unit.
    pub says: String,
}

/// A word explained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// The host it was explained on: this one, or a recording.
    pub origin: String,
    /// The word as it is written.
    pub name: String,
    /// What it names.
    pub kind: Kind,
    /// The kind of term, where it is one.
    pub family: Option<Family>,
    /// One line: the question of a rule, what a knob sets; none for a term.
    pub title: Option<String>,
    /// What it means on any machine; paragraphs.
    pub text: String,
    /// What it comes to on this one.
    pub here: Vec<Here>,
    /// What cannot be told here, and why.
    pub cannot_tell: Vec<String>,
    /// Where the meaning is written.
    pub source: Option<String>,
    /// Words to explain next.
    pub see_also: Vec<String>,
}

/// Explains a word; none where it is none of ours.
pub fn explain(word: &str, evidence: &Evidence) -> Option<Explanation> {
    term(word, evidence).or_else(|| state(word, evidence)).or_else(|| rule(word, evidence))
}

/// Every word there is on this machine, for suggestions.
pub fn names(evidence: &Evidence) -> Vec<String> {
    let spellings = glossary::terms().flat_map(|t| std::iter::once(t.name).chain(t.aliases.iter().copied()));
    let mut all: Vec<String> = spellings.map(str::to_string).collect();
    all.extend(evidence.facts.idle.states.iter().map(crate::facts::idle::IdleState::label));
    for rule in RULES {
        all.push(rule.id().to_string());
        all.extend(rule.id().strip_prefix("rule.").map(str::to_string));
    }
    all
}

fn term(word: &str, evidence: &Evidence) -> Option<Explanation> {
    let term = glossary::find(word)?;
    let found = here::of_term(term, word, &evidence.facts);
    Some(Explanation {
        origin: evidence.facts.origin.clone(),
        name: term.name.into(),
        kind: Kind::Term,
        family: Some(term.family),
        title: None,
        text: told(term.text).into(),
        here: found.here,
        cannot_tell: found.cannot_tell,
        source: Some(term.source.into()),
        see_also: term.see_also.iter().map(ToString::to_string).collect(),
    })
}

/// A state that only this machine's table has: C2_ACPI would be a term, LPI-2 is not.
fn state(word: &str, evidence: &Evidence) -> Option<Explanation> {
    let idle = &evidence.facts.idle;
    let state = idle.states.iter().find(|s| s.label().eq_ignore_ascii_case(word.trim()))?;
    let description = state.description.known().next().map_or(word!("none"), |(_, text)| text.as_str());
    Some(Explanation {
        origin: evidence.facts.origin.clone(),
        name: state.label(),
        kind: Kind::IdleState,
        family: None,
        title: None,
        text: say!("An idle state that the driver of this machine registered; its description is \"{description}\"."),
        here: here::of_state(state, &evidence.facts),
        cannot_tell: Vec::new(),
        source: Some("/sys/devices/system/cpu/cpu*/cpuidle".into()),
        see_also: vec!["Cx".into(), "exit latency".into(), "target residency".into()],
    })
}

fn rule(word: &str, evidence: &Evidence) -> Option<Explanation> {
    let word = word.trim().to_ascii_lowercase().replace('_', "-");
    let rule = RULES.iter().find(|r| r.id() == word || r.id().strip_prefix("rule.") == Some(&word))?;
    let mut explanation = Explanation {
        origin: evidence.facts.origin.clone(),
        name: rule.id().into(),
        kind: Kind::Rule,
        family: None,
        title: Some(rule.question().into()),
        text: rules::essays::of(rule.id()).unwrap_or_default(),
        here: Vec::new(),
        cannot_tell: Vec::new(),
        source: None,
        see_also: Vec::new(),
    };
    let mut add = |what: &str, says: String| explanation.here.push(Here { what: what.into(), says });
    match rule.answer(evidence) {
        Answer::Yes(finding) => {
            add(word!("answer"), say!("yes: {title}", title = finding.title));
            for basis in &finding.evidence {
                add(&basis.path, basis.says.clone());
            }
            add(word!("cost"), finding.cost.text.clone());
            add(word!("remedy"), finding.remedy.clone());
        }
        Answer::No { because } => add(word!("answer"), say!("no: {because}")),
        Answer::DoesNotApply { because } => add(word!("answer"), say!("does not apply: {because}")),
        Answer::CannotTell { because, try_this } => explanation.cannot_tell.push(say!("{because}; {try_this}")),
    }
    Some(explanation)
}
