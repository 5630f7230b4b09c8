//! The job or task that will apply what was staged, where a BMC has one.
//!
//! A PATCH with an apply time makes a job on Dell and names it in `Location`; without, the job has to be made by a POST to the
//! list of jobs that the settings object names. Other BMCs answer 202 without any place, or need no job at all. A job is looked at until it
//! is settled (scheduled, running, done, failed) or a few looks are over; it runs at the next boot.

use crate::link::{link, members};
use crate::service::{Answer, Change, NoDocument};
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
    fn is_done(&self) -> bool {
        self.state.as_deref().is_some_and(|state| state.eq_ignore_ascii_case("Completed"))
    }
    fn is_settled(&self) -> bool {
        let unsettled = ["New", "Scheduling", "Downloading"];
        self.state.as_deref().is_some_and(|state| !unsettled.iter().any(|word| word.eq_ignore_ascii_case(state)))
    }
}

/// Reads a job.
pub fn look(service: &mut dyn Change, path: &str) -> Option<Job> {
    Some(read(path, &service.get(path).ok()?.json))
}

fn read(path: &str, json: &Value) -> Job {
    let text = |value: &Value| value.as_str().map(|text| visible::line(text).into_owned());
    let state = text(&json["JobState"]).or_else(|| text(&json["TaskState"]));
    let said = text(&json["Message"]).or_else(|| text(&json["Messages"][0]["Message"])).unwrap_or_default();
    Job { path: path.into(), state, said }
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

/// Who applies what waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// This BMC lists no jobs: it needs none.
    NotListed,
    /// It takes a job here, and none is under way.
    Nobody,
    /// This one, which may have failed.
    Job(Job),
}

/// The job that holds what waits, for those who died before they could note its path: a BMC that lists jobs takes one change of its
/// BIOS at a time, so it is the newest. A list or a job that cannot be read is an error, never nobody.
pub fn holder(service: &mut dyn Change, settings: &str) -> Result<Holder, NoDocument> {
    let document = service.get(settings)?;
    let Some(jobs) = jobs_of(&document.json) else { return Ok(Holder::NotListed) };
    let mut all = members(&service.get(&jobs)?.json);
    // Restarts are listed too, under names of their own. Numbers grow with time; of two, the longer is the later.
    all.retain(|path| path.rsplit('/').next().is_some_and(|id| id.starts_with("JID_")));
    all.sort_by(|a, b| (b.len(), b).cmp(&(a.len(), a)));
    for path in all.into_iter().take(NEWEST) {
        let json = service.get(&path)?.json;
        if json["JobType"] == "BIOSConfiguration" {
            let job = read(&path, &json);
            return Ok(if job.is_done() { Holder::Nobody } else { Holder::Job(job) });
        }
    }
    Ok(Holder::Nobody)
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
