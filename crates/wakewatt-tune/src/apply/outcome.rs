//! What an application came to, setting by setting: requested, read back, in force.

use crate::journal::JournalError;
use crate::resolve::{Change, Step};
use crate::undo::UndoReport;
use serde::Serialize;

/// What became of one setting at one place.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingOutcome {
    /// The setting's name: `freq.governor`.
    pub name: String,
    /// Which one of them: a CPU, a policy, a device.
    pub place: String,
    /// The file that was written.
    pub path: String,
    /// What it held before; none where it could not be read.
    pub before: Option<String>,
    /// The text that was written.
    pub requested: String,
    /// Both as people say it.
    pub before_shown: String,
    /// The same for the new one.
    pub requested_shown: String,
    /// What the kernel says now.
    pub read_back: Option<String>,
    /// What is in force, where that is known to differ.
    pub effective: Option<String>,
    /// How it went.
    pub result: SettingResult,
    /// It may be left out where it cannot be set.
    pub is_optional: bool,
}

/// How one write went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SettingResult {
    /// Written, and read back as written.
    Set,
    /// It was so already; nothing was written.
    WasSo,
    /// The kernel made something else of it that is legal.
    Clamped(String),
    /// Refused, or not kept.
    Refused(String),
}

/// The end of an application.
#[derive(Debug)]
pub struct Outcome {
    /// The journal's name; none when there was nothing to change or everything was taken back.
    pub id: Option<String>,
    /// Every setting.
    pub settings: Vec<SettingOutcome>,
    /// What could not be done and was left out: optional, or when keeping going.
    pub left_out: Vec<String>,
    /// How many of these were not optional.
    pub n_refused: usize,
    /// Everything was taken back, because of this.
    pub failed: Option<(String, UndoReport)>,
}

/// An application that did not begin.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Not possible on this host; nothing was changed.
    #[error("nothing is changed: {}", .0.join("; "))]
    Refused(Vec<String>),
    /// No journal, no change.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// No guard, no change.
    #[error("nothing is changed: {0}")]
    Guard(String),
}

/// A change before it is written.
pub(super) fn outcome(step: &Step, change: &Change) -> SettingOutcome {
    SettingOutcome {
        name: step.request.name.clone(),
        place: change.place.clone(),
        path: change.path.clone(),
        before: change.before.clone(),
        requested: change.to.clone(),
        before_shown: change.before_shown.clone(),
        requested_shown: change.to_shown.clone(),
        read_back: change.before.clone(),
        effective: None,
        result: SettingResult::WasSo,
        is_optional: step.request.is_optional,
    }
}
