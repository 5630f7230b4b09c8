//! A `.host` file as a [`Source`](wakewatt_core::source::Source).

use crate::input::{self, InputError};
use std::path::{Path, PathBuf};
use wakewatt_core::record::host_file::{self, HostFileError};
use wakewatt_core::source::Tree;

/// What to try when the file is not what it should be.
const HINT: &str = "; make one with: wakewatt capture -o FILE";

/// Reads a `.host` file. One without its end mark is read, and its name says so in every heading.
pub fn open(path: &Path) -> Result<Tree, RecordedError> {
    let text = input::read_text(path, input::HOST)?;
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let doubt = if host_file::has_end(&text) { "" } else { " (no end mark; may be cut)" };
    host_file::read(&text, &format!("recorded host {name}{doubt}"))
        .map_err(|error| RecordedError::Content { path: path.into(), error })
}

/// A `.host` file that could not be read: which, and why.
#[derive(Debug, thiserror::Error)]
pub enum RecordedError {
    /// Not a file that can be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Not what a `.host` file holds. Another version says by itself what to do.
    #[error("{}: {error}{}", path.display(), if matches!(error, HostFileError::Version(_)) { "" } else { HINT })]
    Content {
        path: PathBuf,
        /// What is wrong.
        error: HostFileError,
    },
}
