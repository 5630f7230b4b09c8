//! A finding as the agent keeps it: what it is, what it costs, what to do.

use serde::Serialize;
use wakewatt_core::rules::Weight;

/// A finding that rests on facts alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Found {
    /// Id of the rule.
    pub rule: String,
    /// The finding in one sentence.
    pub title: String,
    /// Problem, risk or note.
    pub weight: Weight,
    /// Is it a matter of choice between latency and watts, and no fault?
    pub is_choice: bool,
    /// What it costs, in words.
    pub cost: String,
    /// What to do about it, in words.
    pub remedy: String,
}
