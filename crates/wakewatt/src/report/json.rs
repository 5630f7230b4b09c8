//! The JSON document of `doctor` and of `report`: the verdict, the answers and all that they were drawn from.
//!
//! The same for both, so that a saved run reads like a fresh one. It borrows from its report and computes nothing.
//! Published under docs/ref/schema; not here: the envelope (`output::json`).

use super::Report;
use crate::output;
use anyhow::Result;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::rules::Ruling;

/// The JSON document.
#[derive(serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Document<'a> {
    /// The one sentence.
    pub verdict: &'a str,
    /// Why to believe it.
    pub how_sure: &'a str,
    /// The machine was busy while it was measured: what that means, and what to do; none where it was quiet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy: Option<&'a str>,
    /// What must be known with it.
    pub warnings: &'a [String],
    /// What the measured watts cost, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub costs: Option<Vec<String>>,
    /// Every rule's answer, findings first.
    pub rulings: &'a [Ruling],
    /// Facts and samples.
    pub evidence: &'a Evidence,
}

/// The whole text, as the document of this command.
pub(super) fn render(report: &Report, command: &str) -> Result<String> {
    let verdict = report.verdict();
    let document = Document {
        verdict: &verdict.sentence,
        how_sure: &verdict.how_sure,
        busy: verdict.busy.as_deref(),
        warnings: &verdict.warnings,
        costs: report.rates.is_asked().then(|| report.rates.sentences(&report.evidence)),
        rulings: &report.rulings,
        evidence: &report.evidence,
    };
    output::json(command, &document)
}
