//! One PATCH of the settings object, under the rules for ETags, and what the BMC shows afterwards.
//!
//! Vendors differ (BMCs that need `If-Match`, that take only the strong form of a weak tag, that have no tag). So: the settings
//! object is read just before, and its tag sent; after 412 it is read again, and if its content changed somebody else is at work
//! and nothing more is sent; else the strong form is tried once. Without a tag none is sent, until 428 or a message asks for one,
//! then `*`. The condition is never just dropped. Apply time is sent only where the BMC lists it.

use super::job::{self, Job};
use crate::service::{Answer, Change, NoDocument};
use crate::setting::Setting;
use crate::walk::{self, Bios};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use wakewatt_host::bmc::BmcError;

/// The messages of a Dell that holds a job already.
const COMMITTED: &[&str] = &["SYS011", "BIOS006", "BIOS007"];

/// Where and how to stage.
#[derive(Clone, Copy, Debug)]
pub struct Staging<'a> {
    /// The settings object.
    pub settings: &'a str,
    /// The BIOS it belongs to.
    pub bios: &'a Bios,
    /// Between two looks at a job.
    pub pause: Duration,
    /// What is to wait there now; staged only if it does.
    pub expected: Option<&'a BTreeMap<String, Setting>>,
}

/// What staging came to.
#[derive(Clone, Debug)]
pub struct Staged {
    /// The BMC's yes.
    pub answer: Answer,
    /// What the settings object holds now.
    pub read_back: BTreeMap<String, Setting>,
    /// Who applies it.
    pub job: Option<Job>,
    /// Nobody does: it takes a job, and none could be made.
    pub is_job_missing: bool,
    /// What to know.
    pub notes: Vec<String>,
}

/// Why nothing is staged, or not known to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StageError {
    /// The settings object could not be read.
    #[error("nothing is staged: {0}")]
    NotRead(NoDocument),
    /// Somebody else has staged something since the plan was made.
    #[error("nothing is staged: somebody else changed {0} meanwhile; make the plan again")]
    Changed(String),
    /// A job holds the settings.
    #[error(
        "nothing is staged: a BIOS job holds the settings already ({said}); let it run at the next boot, or delete it"
    )]
    Committed {
        /// The BMC's words.
        said: String,
    },
    /// A plain no.
    #[error("nothing is staged: {path}: HTTP status {status}{}", if said.is_empty() { String::new() } else { format!(": {said}") })]
    Refused {
        /// What was PATCHed.
        path: String,
        /// Its status.
        status: u16,
        /// The BMC's words.
        said: String,
    },
    /// It failed in a way that does not tell.
    #[error("whether it is staged is not known: {path}: HTTP status {status}{}", if said.is_empty() { String::new() } else { format!(": {said}") })]
    Unclear {
        /// What was PATCHed.
        path: String,
        /// Its status.
        status: u16,
        /// The BMC's words.
        said: String,
    },
    /// It could not be asked, or did not answer.
    #[error("whether it is staged is not known: {0}")]
    NoAnswer(BmcError),
}

impl StageError {
    /// Is it certain that nothing is staged?
    pub fn is_certain(&self) -> bool {
        !matches!(self, StageError::Unclear { .. } | StageError::NoAnswer(_))
    }
}

/// The body: changes in their order, and when to apply them.
pub fn body(bios: &Bios, changes: &[(String, Setting)]) -> String {
    let pair = |(name, value): &(String, Setting)| format!("{}:{}", Value::from(name.as_str()), value.to_json());
    let pairs = changes.iter().map(pair).collect::<Vec<_>>().join(",");
    if bios.is_flat {
        return format!("{{{pairs}}}");
    }
    let is_listed = bios.apply_times.iter().any(|time| time == "OnReset");
    let when = if is_listed { ",\"@Redfish.SettingsApplyTime\":{\"ApplyTime\":\"OnReset\"}" } else { "" };
    format!("{{\"Attributes\":{{{pairs}}}{when}}}")
}

/// Stages changes.
pub fn stage(
    service: &mut dyn Change,
    staging: &Staging<'_>,
    changes: &[(String, Setting)],
) -> Result<Staged, StageError> {
    let path = staging.settings;
    let (before, etag) = look(service, staging)?;
    if let Some(expected) = staging.expected
        && walk::differing(staging.bios, &before) != *expected
    {
        return Err(StageError::Changed(path.into()));
    }
    let body = body(staging.bios, changes);
    let mut answer = service.patch(path, &body, etag.as_deref()).map_err(StageError::NoAnswer)?;
    if answer.status == 412 {
        let (now, new) = look(service, staging)?;
        if now != before {
            return Err(StageError::Changed(path.into()));
        }
        if let Some(strong) = new.as_deref().map(|tag| tag.strip_prefix("W/").unwrap_or(tag)) {
            answer = service.patch(path, &body, Some(strong)).map_err(StageError::NoAnswer)?;
        }
    }
    let wants_tag = |answer: &Answer| answer.status == 428 || answer.has_message("PreconditionHeaderMissing");
    if wants_tag(&answer) && etag.is_none() {
        answer = service.patch(path, &body, Some("*")).map_err(StageError::NoAnswer)?;
    }
    if !answer.is_yes() {
        return Err(refusal(path, &answer));
    }
    let mut notes = Vec::new();
    let (job, is_job_missing) = match job::of(service, path, staging.pause, &answer, &mut notes) {
        Ok(job) => (job, false),
        Err(why) => {
            notes.push(why.to_string());
            (None, true)
        }
    };
    let read_back = match look(service, staging) {
        Ok((now, _)) => now,
        Err(why) => {
            notes.push(format!("what the BMC made of it cannot be read: {why}"));
            BTreeMap::new()
        }
    };
    Ok(Staged { answer, read_back, job, is_job_missing, notes })
}

fn look(
    service: &mut dyn Change,
    staging: &Staging<'_>,
) -> Result<(BTreeMap<String, Setting>, Option<String>), StageError> {
    match service.get(staging.settings) {
        Ok(document) => Ok((walk::values(&document.json, staging.bios.is_flat), document.etag)),
        // Nothing staged yet: then the BIOS's own tag is the one that counts.
        Err(NoDocument::Absent(_)) => {
            let etag = service.get(&staging.bios.path).ok().and_then(|document| document.etag);
            Ok((BTreeMap::new(), etag))
        }
        Err(why) => Err(StageError::NotRead(why)),
    }
}

fn refusal(path: &str, answer: &Answer) -> StageError {
    let (path, status, said) = (path.to_string(), answer.status, answer.said.clone());
    let is_committed = answer.message_ids.iter().any(|id| COMMITTED.contains(&id.rsplit('.').next().unwrap_or(id)));
    match status {
        400..500 if is_committed => StageError::Committed { said },
        300..500 => StageError::Refused { path, status, said },
        _ => StageError::Unclear { path, status, said },
    }
}
