//! The job or task that will apply what was staged, where a BMC has one.
//!
//! A PATCH with an apply time makes a job on Dell and names it in `Location`; without, the job has to be made by a POST to the
//! list of jobs that the settings object names. Other BMCs answer 202 without any place, or need no job at all. A job is looked at until it
//! is settled (scheduled, running, done, failed) or a few looks are over; it runs at the next boot.

use crate::link::{link, members};
use crate::service::{Answer, Change};
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Duration;
use wakewatt_core::visible;

/// Looks at a new job until it is settled.
const LOOKS: u32 = 10;
/// Jobs of a list that are looked at: a BMC keeps old ones by the hundred, and the newest is the one that waits.
const NEWEST: usize = 30;

/// What a job says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Job {
    /// Its path on the BMC.
    pub path: String,
    /// Its state in the BMC's word; none where it cannot be read.
    pub state: Option<String>,
    /// The BMC's words about it; empty where it has none.
    pub said: String,
}

impl Job {
    /// Has it failed?
    pub fn is_failed(&self) -> bool {
        let words = ["Failed", "CompletedWithErrors", "Exception", "Cancelled", "Killed"];
        self.state.as_deref().is_some_and(|state| words.iter().any(|word| word.eq_ignore_ascii_case(state)))
    }
    /// Will it change nothing by itself without a boot, and may it be deleted?
    pub fn is_waiting(&self) -> bool {
        let words = ["Scheduled", "New", "Pending", "Starting", "Scheduling", "Downloaded"];
        self.state.as_deref().is_some_and(|state| words.iter().any(|word| word.eq_ignore_ascii_case(state)))
    }
    fn is_settled(&self) -> bool {
        let unsettled = ["New", "Scheduling", "Downloading"];
        self.state.as_deref().is_some_and(|state| !unsettled.iter().any(|word| word.eq_ignore_ascii_case(state)))
    }
}

/// Reads a job.
pub fn look(service: &mut dyn Change, path: &str) -> Option<Job> {
    let json = service.get(path).ok()?.json;
    let text = |value: &Value| value.as_str().map(|text| visible::line(text).into_owned());
    let state = text(&json["JobState"]).or_else(|| text(&json["TaskState"]));
    let said = text(&json["Message"]).or_else(|| text(&json["Messages"][0]["Message"])).unwrap_or_default();
    Some(Job { path: path.into(), state, said })
}

/// This BMC applies nothing without a job, and would make none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no job could be made, so nothing may happen at the next boot: {0}")]
pub(super) struct NotMade(String);

/// The job of what was just staged; none where none is named or needed.
pub(super) fn of(
    service: &mut dyn Change,
    settings: &str,
    pause: Duration,
    answer: &Answer,
    notes: &mut Vec<String>,
) -> Result<Option<Job>, NotMade> {
    let path = match answer.location.clone() {
        Some(path) => Some(path),
        None => make(service, settings)?,
    };
    let Some(path) = path else { return Ok(None) };
    let mut job = None;
    for n_looks in 0..LOOKS {
        if n_looks > 0 {
            std::thread::sleep(pause);
        }
        job = look(service, &path);
        if job.as_ref().is_none_or(Job::is_settled) {
            break;
        }
    }
    let job = job.unwrap_or(Job { path, state: None, said: String::new() });
    if job.is_failed() {
        notes.push(format!("its job failed: {}", job.said));
    }
    Ok(Some(job))
}

/// The job that holds what waits, where the settings object names a list: for those who died before they could note its path. Such a
/// BMC takes one change of its BIOS at a time, so the one that waits is that one.
pub(crate) fn holder(service: &mut dyn Change, settings: &str) -> Holder {
    let jobs = service.get(settings).ok().and_then(|document| jobs_of(&document.json));
    let listed = jobs.and_then(|jobs| service.get(&jobs).ok());
    let Some(listed) = listed else { return Holder::NotTold };
    let mut all = members(&listed.json);
    // Their ids grow with time; of two, the longer is the later.
    all.sort_by(|a, b| (b.len(), b).cmp(&(a.len(), a)));
    let waiting = all.iter().take(NEWEST).find_map(|path| {
        let is_of_bios = service.get(path).is_ok_and(|document| document.json["JobType"] == "BIOSConfiguration");
        look(service, path).filter(|job| is_of_bios && job.is_waiting())
    });
    waiting.map_or(Holder::Nobody, Holder::Job)
}

/// Who applies what waits.
pub(crate) enum Holder {
    /// This BMC lists no jobs, or does not tell.
    NotTold,
    /// It takes a job here, and there is none.
    Nobody,
    /// This one.
    Job(Job),
}

fn jobs_of(settings: &Value) -> Option<String> {
    link(&settings["Oem"]["Dell"]["Jobs"])
}

/// Where the settings object names a list of jobs, nothing is applied without one.
fn make(service: &mut dyn Change, settings: &str) -> Result<Option<String>, NotMade> {
    let jobs = service.get(settings).ok().and_then(|document| jobs_of(&document.json));
    let Some(jobs) = jobs else { return Ok(None) };
    let body = json!({ "TargetSettingsURI": settings }).to_string();
    let answer = service.post(&jobs, &body).map_err(|why| NotMade(why.to_string()))?;
    match answer.is_yes() {
        true => Ok(answer.location),
        false => Err(NotMade(format!("{jobs}: HTTP status {} {}", answer.status, answer.said))),
    }
}
