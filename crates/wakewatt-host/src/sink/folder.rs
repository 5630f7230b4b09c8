//! `folder:PATH`: a folder that is there or not. In cgroupfs, making one makes a group and removing it dissolves it.

use super::{SinkError, refuse};
use std::io::ErrorKind;
use std::path::Path;

/// What reading one says.
const THERE: &str = "there";

fn in_words(path: &str, error: &std::io::Error) -> SinkError {
    SinkError { is_absent: error.kind() == ErrorKind::NotFound, ..refuse(path, error.to_string()) }
}

pub(super) fn read(folder: &Path, path: &str) -> Result<String, SinkError> {
    match std::fs::metadata(folder) {
        Ok(m) if m.is_dir() => Ok(THERE.into()),
        Ok(_) => Err(refuse(path, "is no folder")),
        Err(e) => Err(in_words(path, &e)),
    }
}

pub(super) fn write(folder: &Path, path: &str, value: &str) -> Result<(), SinkError> {
    if value != THERE {
        return Err(refuse(path, format!("a folder takes only the word {THERE:?}")));
    }
    match std::fs::create_dir(folder) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => Err(in_words(path, &e)),
        _ => Ok(()),
    }
}

pub(super) fn remove(folder: &Path, path: &str) -> Result<(), SinkError> {
    match std::fs::remove_dir(folder) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(in_words(path, &e)),
        _ => Ok(()),
    }
}
