//! A plan: ordered knob changes with reason and risk. Pure data; wakewatt-tune carries it out.

use serde::{Deserialize, Serialize};

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Step {
    /// The knob's id, e.g. `qos.global`, `freq.governor`, `boot.cmdline`.
    pub knob: String,
    /// The file or parameter it writes.
    pub path: String,
    /// The new value, as a user would say it.
    pub to: String,
    /// Why.
    pub reason: String,
}

/// Changes in the order they must be made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Plan {
    /// In order.
    pub steps: Vec<Step>,
}
