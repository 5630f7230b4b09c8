//! Writes a recording: a line per moment, appended. A full disk ends the recording, not the watching.
//!
//! A moment that could not be written whole is cut off again, so the file ends with a whole line; without its `end` line
//! it is known to be incomplete.

use crate::exit::{Code, Failure};
use anyhow::{Context, Result};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use wakewatt_core::watch::recording::{FILE, Line, MAGIC, seal};
use wakewatt_core::watch::{Counters, Layout};
use wakewatt_host::place::{Folder, PlaceError};

/// An open recording.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    file: File,
    n_bytes: u64,
    /// Moments written.
    pub n_moments: u64,
    /// Why nothing more is written.
    pub trouble: Option<String>,
}

impl Recorder {
    /// Starts one; a folder that already holds one is left alone.
    pub fn create(folder: &Path, layout: &Layout) -> Result<Recorder> {
        let hint = || format!("{}: cannot record there; name another folder", folder.display());
        let bad = |why: PlaceError| match why {
            PlaceError::Exists { path } => {
                let why = format!("{path} exists already and is not overwritten; name another folder");
                Failure::error(Code::BadFile, why)
            }
            other => Failure::error(Code::BadFile, other.to_string()),
        };
        let place = Folder::make(folder).and_then(|folder| folder.place(FILE)).map_err(bad)?;
        let (file, path) = (place.create_new().map_err(bad)?, place.path().to_path_buf());
        let mut recorder = Recorder { path, file, n_bytes: 0, n_moments: 0, trouble: None };
        let first = serde_json::to_string(&Line::Layout(Box::new(layout.clone())))?;
        recorder.append(&format!("{MAGIC}\n{}", seal(&first))).with_context(hint)?;
        Ok(recorder)
    }

    fn append(&mut self, text: &str) -> std::io::Result<()> {
        self.file.write_all(text.as_bytes())?;
        self.n_bytes += text.len() as u64;
        Ok(())
    }

    /// Writes a moment; after the first failure nothing.
    pub fn write(&mut self, moment: &Counters) {
        if self.trouble.is_some() {
            return;
        }
        let written = serde_json::to_string(&Line::Counters(Box::new(moment.clone())))
            .map_err(std::io::Error::other)
            .and_then(|json| self.append(&seal(&json)));
        match written {
            Ok(()) => self.n_moments += 1,
            Err(error) => {
                // The half line goes; what is whole stays.
                let _ = self.file.set_len(self.n_bytes);
                let n = self.n_moments;
                self.trouble =
                    Some(format!("{}: {error}; the recording ends after {n} moments, incomplete", self.path.display()));
            }
        }
    }

    /// Writes the end; an error when the recording is not whole.
    pub fn finish(mut self, why: &str) -> Result<()> {
        if let Some(trouble) = self.trouble {
            return Err(Failure::error(Code::BadFile, trouble));
        }
        let end = seal(&serde_json::to_string(&Line::End(why.into()))?);
        let ended = self.append(&end).and_then(|()| self.file.sync_all());
        ended.with_context(|| {
            let _ = self.file.set_len(self.n_bytes);
            format!("{}: the end could not be written, so it will be taken for incomplete", self.path.display())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::watch::recording::read;

    #[test]
    fn a_recording_is_never_overwritten_and_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let mut recorder = Recorder::create(dir.path(), &Layout::default()).unwrap();
        recorder.write(&Counters::default());
        assert!(Recorder::create(dir.path(), &Layout::default()).unwrap_err().to_string().contains("not overwritten"));
        recorder.finish("done").unwrap();
        let text = std::fs::read_to_string(dir.path().join(FILE)).unwrap();
        let found = read(&text, |json| serde_json::from_str(json).map_err(|e| e.to_string())).unwrap();
        assert_eq!((found.moments.len(), found.end.as_deref()), (1, Some("done")));
    }
}
