//! What a recorded machine has at a path, for whatever reads it.

/// What lies at a path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    /// Bytes.
    Bytes(Vec<u8>),
    /// There, but it gave an error (denied, unreadable).
    Error,
    /// Recorded as not there.
    Absent,
    /// A symbolic link.
    Link(String),
}
