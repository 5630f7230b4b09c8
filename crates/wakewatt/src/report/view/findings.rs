//! Findings and answers of the rules, in words.

use serde::Serialize;
use wakewatt_core::plan::Step;
use wakewatt_core::rules::try_this::TryThis;
use wakewatt_core::rules::{Answer, Confidence, CostBasis, Finding, Ruling, Weight};
use wakewatt_words::{say, word};

/// A finding, in words.
#[derive(Debug, Serialize)]
pub(in crate::report) struct FindingView {
    pub(in crate::report) id: String,
    pub(in crate::report) title: String,
    pub(in crate::report) weight: &'static str,
    pub(in crate::report) cost: String,
    pub(in crate::report) cost_label: &'static str,
    pub(in crate::report) confidence: &'static str,
    pub(in crate::report) evidence: Vec<(String, String)>,
    pub(in crate::report) remedy: String,
    /// Setting with its place, new value, why.
    pub(in crate::report) steps: Vec<(String, String, String)>,
    /// What the plan is to paste: label and line.
    pub(in crate::report) commands: Vec<(&'static str, String)>,
    pub(in crate::report) price: String,
    pub(in crate::report) verify: String,
}

/// A question answered no, or not answered.
#[derive(Debug, Serialize)]
pub(in crate::report) struct Ruled {
    pub(in crate::report) id: String,
    pub(in crate::report) question: String,
    pub(in crate::report) because: String,
    /// What would help.
    pub(in crate::report) try_this: Option<String>,
    /// Is there something to do here?
    pub(in crate::report) has_next_step: bool,
}

/// What the lines of a finding's plan do; said once, below the findings.
pub(in crate::report) fn how_to_apply() -> &'static str {
    word!(
        "The first line of each plan only shows what would change. Applied settings go back after 60 seconds unless confirmed: \
         sudo wakewatt tune confirm. Kernel parameters wait for the next boot."
    )
}

/// What the rules answered: findings, questions answered no, and those not answered.
pub(super) fn answers(rulings: &[Ruling]) -> (Vec<FindingView>, Vec<Ruled>, Vec<Ruled>) {
    let (mut findings, mut no, mut cannot_tell) = (Vec::new(), Vec::new(), Vec::new());
    for ruling in rulings {
        let ruled = |because: &str, try_this: Option<&TryThis>| Ruled {
            id: ruling.rule.clone(),
            question: ruling.question.clone(),
            because: because.into(),
            try_this: try_this.map(ToString::to_string),
            has_next_step: matches!(try_this, Some(TryThis::Do(what)) if !what.is_empty()),
        };
        match &ruling.answer {
            Answer::Yes(finding) => findings.push(finding_view(finding)),
            Answer::No { because } => no.push(ruled(because, None)),
            Answer::DoesNotApply { because } => no.push(ruled(&say!("does not apply: {because}"), None)),
            Answer::CannotTell { because, try_this } => cannot_tell.push(ruled(because, Some(try_this))),
        }
    }
    (findings, no, cannot_tell)
}

/// A step's setting and where; a kernel parameter is said by its value.
fn setting(step: &Step) -> String {
    match &step.on {
        _ if step.is_boot() => word!("kernel parameter").into(),
        Some(on) => say!("{} on {on}", step.knob),
        None => step.knob.clone(),
    }
}

/// A finding in words, with the lines of its plan.
fn finding_view(finding: &Finding) -> FindingView {
    let steps = finding.plan.iter().flat_map(|p| p.steps());
    let commands = finding
        .plan
        .iter()
        .map(|p| p.commands())
        .flat_map(|c| [("look", c.look.clone()), ("apply", c.apply.clone()), ("undo", c.undo.clone())]);
    FindingView {
        id: finding.id.clone(),
        title: finding.title.clone(),
        weight: match finding.weight {
            Weight::Problem => "problem",
            Weight::Risk => "risk",
            Weight::Note => "note",
        },
        cost: finding.cost.text.clone(),
        cost_label: match finding.cost.basis {
            CostBasis::Measured => "measured",
            CostBasis::Predicted => "modelled",
            CostBasis::Unknown => "unavailable",
        },
        confidence: match finding.confidence {
            Confidence::High => "high",
            Confidence::Medium => "medium",
            Confidence::Low => "low",
        },
        evidence: finding.evidence.iter().map(|b| (b.says.clone(), b.path.clone())).collect(),
        remedy: finding.remedy.clone(),
        steps: steps.map(|s| (setting(s), s.to.clone(), s.reason.clone())).collect(),
        commands: commands.collect(),
        price: finding.price.clone(),
        verify: finding.verify.clone(),
    }
}
