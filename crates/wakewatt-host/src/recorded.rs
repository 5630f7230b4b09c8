//! A `.host` file as a [`Source`](wakewatt_core::source::Source).

use std::path::Path;
use wakewatt_core::record::host_file;
use wakewatt_core::source::Tree;

/// A `.host` file is text of a few hundred kilobytes; beyond this it is something else.
const MAX_BYTES: u64 = 256 << 20;

/// What to try when the file is not what it should be.
const HINT: &str = "; make one with: wakewatt capture -o FILE";

/// Reads a `.host` file.
pub fn open(path: &Path) -> Result<Tree, RecordedError> {
    let fail = |what: String| RecordedError { path: path.display().to_string(), what };
    let meta = std::fs::metadata(path).map_err(|e| fail(format!("{e}{HINT}")))?;
    if !meta.is_file() {
        return Err(fail("not a file; a folder is given with --sysroot".into()));
    }
    if meta.len() > MAX_BYTES {
        return Err(fail(format!("{} MiB is more than any .host file{HINT}", meta.len() >> 20)));
    }
    let bytes = std::fs::read(path).map_err(|e| fail(e.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| fail(format!("not a .host file: it is not text{HINT}")))?;
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    host_file::read(&text, &format!("recorded host {name}")).map_err(|e| {
        // Another version says by itself what to do.
        let hint = if matches!(e, host_file::HostFileError::Version(_)) { "" } else { HINT };
        fail(format!("{e}{hint}"))
    })
}

/// A `.host` file that could not be read: which, and why.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {what}")]
pub struct RecordedError {
    path: String,
    what: String,
}
