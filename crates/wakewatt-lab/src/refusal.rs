//! Why a verb of the lab gave nothing at all: the kind, which decides how the program ends, and a sentence, which is shown.
//!
//! A part that could not be had is no refusal: it is a line among the results, and the rest goes on.

/// What stood in the way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// What was asked for: another question would do.
    #[error("{0}")]
    Asked(String),
    /// This machine, or what this process may do on it.
    #[error("{0}")]
    Unavailable(String),
    /// Settings that cannot be turned here, or must not be; what was turned is put back.
    #[error("{0}")]
    Barred(String),
    /// A file that could not be read or written.
    #[error("{0}")]
    File(String),
    /// Another wakewatt that changes settings.
    #[error("{0}")]
    Busy(String),
    /// It was told to end before there was a result.
    #[error("{0}")]
    Stopped(String),
}
