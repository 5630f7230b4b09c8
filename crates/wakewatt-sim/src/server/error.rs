//! Why a text is no server, or not under this setting.

use super::check::Refused;

/// Why a text is no server.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ServerError {
    /// No TOML.
    #[error("{0}")]
    Syntax(String),
    /// A key that nothing reads.
    #[error("{key}: there is no such field{}", near.as_ref().map_or(String::new(), |n| format!("; did you mean {n}?")))]
    Key {
        /// Where it stands.
        key: String,
        /// The nearest that there is.
        near: Option<String>,
    },
    /// A value of a wrong kind.
    #[error("{0}")]
    Value(String),
    /// A setting or sweep that cannot be put into the file.
    #[error("{text}: {why}; write FIELD=VALUE, such as machine.idle.max_latency=5us")]
    Set {
        /// As it was written.
        text: String,
        /// What is wrong.
        why: String,
    },
    /// What no machine could be.
    #[error(transparent)]
    Refused(#[from] Refused),
}
