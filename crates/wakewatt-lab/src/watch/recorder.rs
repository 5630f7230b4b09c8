//! Writes a recording: a line per moment, appended. A full disk ends the recording, not the watching; so does its own
//! limit, which comes first and leaves a whole recording with its end.
//!
//! A moment that could not be written whole is cut off again, so the file ends with a whole line; without its `end` line
//! it is known to be incomplete.

use crate::refusal::Refusal;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use wakewatt_core::units::show_bytes;
use wakewatt_core::watch::recording::{FILE, Line, MAGIC, seal};
use wakewatt_core::watch::{Counters, Layout};
use wakewatt_host::place::{Folder, PlaceError};

/// An open recording.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    file: File,
    n_bytes: u64,
    limit_bytes: u64,
    /// Is the limit reached, and the end written?
    is_ended: bool,
    /// Moments written.
    pub n_moments: u64,
    /// Why nothing more is written.
    pub trouble: Option<String>,
}

/// Room for the last line.
const END_BYTES: u64 = 200;

/// What a file says of the machine: nothing that people named.
fn shareable(layout: &Layout) -> Layout {
    Layout { hostname: None, ..layout.clone() }
}

impl Recorder {
    /// Starts one; a folder that already holds one is left alone.
    pub fn create(folder: &Path, layout: &Layout, limit_bytes: u64) -> Result<Recorder, Refusal> {
        let cannot = |why: &dyn std::fmt::Display| {
            Refusal::File(format!("{}: cannot record there; name another folder: {why}", folder.display()))
        };
        let bad = |why: PlaceError| match why {
            PlaceError::Exists { path } => {
                Refusal::File(format!("{path} exists already and is not overwritten; name another folder"))
            }
            other => Refusal::File(other.to_string()),
        };
        let place = Folder::make(folder).and_then(|folder| folder.place(FILE)).map_err(bad)?;
        let (file, path) = (place.create_new().map_err(bad)?, place.path().to_path_buf());
        let mut recorder =
            Recorder { path, file, n_bytes: 0, limit_bytes, is_ended: false, n_moments: 0, trouble: None };
        let first = serde_json::to_string(&Line::Layout(Box::new(shareable(layout)))).map_err(|e| cannot(&e))?;
        recorder.append(&format!("{MAGIC}\n{}", seal(&first))).map_err(|e| cannot(&e))?;
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
        let line = serde_json::to_string(&Line::Counters(Box::new(moment.clone()))).map(|json| seal(&json));
        let length = line.as_ref().map_or(0, |line| line.len() as u64);
        if self.n_bytes.saturating_add(length).saturating_add(END_BYTES) > self.limit_bytes {
            return self.end_at_limit();
        }
        match line.map_err(std::io::Error::other).and_then(|line| self.append(&line)) {
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

    fn end_at_limit(&mut self) {
        let limit = show_bytes(self.limit_bytes);
        let why = format!("the limit of {limit} was reached (--record-limit)");
        let end = serde_json::to_string(&Line::End(why)).map_err(std::io::Error::other);
        let ended = end.and_then(|json| self.append(&seal(&json))).and_then(|()| self.file.sync_all());
        self.is_ended = ended.is_ok();
        if !self.is_ended {
            let _ = self.file.set_len(self.n_bytes);
        }
        self.trouble = Some(format!(
            "{}: the recording ends after {} moments, at its limit of {limit} (--record-limit); watching goes on",
            self.path.display(),
            self.n_moments
        ));
    }

    /// Writes the end; an error when the recording is not whole.
    pub fn finish(mut self, why: &str) -> Result<(), Refusal> {
        if self.is_ended {
            return Ok(());
        }
        if let Some(trouble) = self.trouble {
            return Err(Refusal::File(trouble));
        }
        let end = serde_json::to_string(&Line::End(why.into())).map_err(std::io::Error::other);
        let ended = end.and_then(|json| self.append(&seal(&json))).and_then(|()| self.file.sync_all());
        ended.map_err(|error| {
            let _ = self.file.set_len(self.n_bytes);
            let name = self.path.display();
            Refusal::File(format!("{name}: the end could not be written, so it will be taken for incomplete: {error}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::watch::recording::read;

    fn read_back(folder: &Path) -> (String, wakewatt_core::watch::recording::Recording) {
        let text = std::fs::read_to_string(folder.join(FILE)).unwrap();
        let found = read(&text, |json| serde_json::from_str(json).map_err(|e| e.to_string())).unwrap();
        (text, found)
    }

    #[test]
    fn the_limit_ends_it_whole_and_with_a_word() {
        for limit in [0, 1_500, 4_000, 20_000] {
            let dir = tempfile::tempdir().unwrap();
            let mut recorder = Recorder::create(dir.path(), &Layout::default(), limit).unwrap();
            for _ in 0..200 {
                recorder.write(&Counters::default());
            }
            let n = recorder.n_moments;
            assert!(n < 200 && recorder.trouble.as_ref().unwrap().contains("watching goes on"), "{limit}: {n}");
            recorder.finish("done").unwrap();
            let (text, found) = read_back(dir.path());
            assert_eq!((found.moments.len() as u64, &found.trouble), (n, &None));
            assert!(found.end.unwrap().contains("limit of"), "{limit}");
            assert!(n == 0 || text.len() as u64 <= limit, "{} of {limit}", text.len());
        }
    }

    #[test]
    fn a_recording_is_never_overwritten_and_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let mut recorder = Recorder::create(dir.path(), &Layout::default(), u64::MAX).unwrap();
        recorder.write(&Counters::default());
        assert!(
            Recorder::create(dir.path(), &Layout::default(), u64::MAX)
                .unwrap_err()
                .to_string()
                .contains("not overwritten")
        );
        recorder.finish("done").unwrap();
        let (_, found) = read_back(dir.path());
        assert_eq!((found.moments.len(), found.end.as_deref()), (1, Some("done")));
    }
}
