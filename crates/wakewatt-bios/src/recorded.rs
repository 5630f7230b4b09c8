//! A Redfish tree in a folder: `redfish/v1/…/index.json`, as the DMTF mockup server serves it.
//!
//! Both layouts of mockups are read: with `redfish/v1` in the folder, and the short form whose top is the service root. What
//! a folder does not hold was not recorded; for reading that is the same as absent. Nothing outside the folder is opened.

use crate::service::{Document, NoDocument, Service};
use serde_json::Value;
use std::path::Path;
use wakewatt_core::source::{ErrorKind, Source};
use wakewatt_host::live::Live;

/// The prefix that the short form leaves out.
const ROOT: &str = "/redfish/v1";

/// A recorded service.
pub struct Recorded {
    source: Box<dyn Source>,
    is_short: bool,
    name: String,
}

/// No recording.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {why}; --from wants a folder that holds redfish/v1/index.json (a mockup in the DMTF's layout)")]
pub struct NoRecording {
    path: String,
    why: String,
}

impl Recorded {
    /// Opens a folder.
    pub fn open(folder: &Path) -> Result<Recorded, NoRecording> {
        let path = folder.display().to_string();
        let live = Live::folder(folder).map_err(|e| NoRecording { path: path.clone(), why: e.to_string() })?;
        let recorded = Recorded::of(Box::new(live), &path);
        recorded.ok_or_else(|| NoRecording { path, why: "holds no service root".into() })
    }

    /// A tree from anywhere; none without a service root.
    pub fn of(source: Box<dyn Source>, name: &str) -> Option<Recorded> {
        let has = |path: &str| source.read(path).is_ok();
        let is_short = !has("/redfish/v1/index.json");
        if is_short && !has("/index.json") {
            return None;
        }
        Some(Recorded { source, is_short, name: name.into() })
    }
}

impl Service for Recorded {
    fn get(&mut self, path: &str) -> Result<Document, NoDocument> {
        let below = if self.is_short { path.strip_prefix(ROOT).unwrap_or(path) } else { path };
        let below = below.trim_end_matches('/');
        let bytes = match self.source.read(&format!("{below}/index.json")) {
            // Registries are kept under their file name by some.
            Err(_) if below.ends_with(".json") => self.source.read(below),
            other => other,
        };
        let bytes = bytes.map_err(|e| match e.kind {
            ErrorKind::Absent | ErrorKind::NotRecorded => NoDocument::Absent(path.into()),
            _ => NoDocument::Unreadable { path: path.into(), why: e.detail },
        })?;
        let json: Value = serde_json::from_slice(&bytes).map_err(|_| NoDocument::NotJson(path.into()))?;
        let etag = json["@odata.etag"].as_str().map(str::to_string);
        Ok(Document { json, etag })
    }

    fn origin(&self) -> String {
        self.name.clone()
    }
}
