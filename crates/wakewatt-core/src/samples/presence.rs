//! Was somebody there over a whole trace, or only passing?

use serde::{Deserialize, Serialize};

/// Was a process, or a cgroup, there over a whole trace? Who pays for idle states is who stays; a job that passes is gone tomorrow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// It had started before the trace and ran when it ended.
    Throughout,
    /// It came or went meanwhile.
    Passing,
    /// Nobody looked whether there is one.
    #[default]
    Unknown,
}
