//! `wakewatt tune`: settings as a plan. One file per verb; this one gathers what the user wants from profile and options.

mod applied;
mod apply;
mod guard;
mod knobs;
mod plan;
mod predict;
mod status;
mod undo;
mod units;
mod verdicts;

pub use applied::Applied;
pub use knobs::Knobs;
pub use predict::Planned;
pub use status::Statuses;

use crate::cli::tune::{SettingsWanted, TuneArgs, Verb, WhichArgs};
use crate::exit::{Code, Failure};
use crate::output::Colour;
use crate::trusted::{self, Use};
use anyhow::Result;
use std::path::Path;
use wakewatt_host::input;
use wakewatt_host::store::Disk;
use wakewatt_tune::asked::Asked;
use wakewatt_tune::boot::{Argument, parameters};
use wakewatt_tune::journal::{Journal, STATE_DIR};
use wakewatt_tune::lock::{Lock, LockError};
use wakewatt_tune::profile::{self, Profile, budget};
use wakewatt_tune::request::{Place, Request};
use wakewatt_words::say;

/// Runs it.
pub fn run(args: &TuneArgs, colour: Colour) -> Result<Code> {
    match &args.verb {
        Verb::Knobs(args) => knobs::run(args, colour),
        Verb::Plan(args) => plan::run(args, colour),
        Verb::Apply(args) => apply::run(args, colour),
        Verb::Confirm(args) => undo::confirm(args),
        Verb::Status(args) => status::run(args, colour, false),
        Verb::Verify(args) => status::run(args, colour, true),
        Verb::Undo(args) => undo::run(args),
        Verb::Units(args) => units::run(args),
    }
}

/// What the user wants, gathered from profile and options.
fn gather(wanted: &SettingsWanted, used: Use) -> Result<Asked> {
    let usage = |why: String| Failure::error(Code::Usage, why);
    let scope = wanted.scope();
    let mut words = Vec::new();
    let mut requests = Vec::new();
    let mut texts = wanted.boot_arg.clone();
    if let Some(name) = &wanted.profile {
        let mut profile = read_profile(name, used)?;
        if scope != Place::Everywhere && profile.scope == Place::Everywhere {
            profile.scope = scope.clone();
            profile.requests.iter_mut().filter(|r| r.place == Place::Everywhere).for_each(|r| r.place = scope.clone());
        }
        if wanted.max_latency.is_some() {
            profile.max_latency = None;
        }
        words.push(say!("profile {name}", name = if profile.name.is_empty() { name } else { &profile.name }));
        requests.extend(profile.all_requests());
        texts.extend(profile.boot_arguments);
    }
    if let Some(limit) = wanted.max_latency {
        words.push(say!("latency budget {limit}"));
        requests.push(budget(limit, &scope));
    }
    for request in &wanted.set {
        let mut request = request.clone();
        if request.place == Place::Everywhere {
            request.place = scope.clone();
        }
        words.push(request.to_string());
        // What is said by hand overrules the profile.
        requests.retain(|r: &Request| r.name != request.name || r.place != request.place);
        requests.push(request);
    }
    let mut arguments = Vec::new();
    for text in &texts {
        arguments.push(Argument::parse(text).map_err(|e| usage(e.to_string()))?);
        words.push(text.clone());
    }
    parameters::allow(&arguments, wanted.any_boot_argument)
        .map_err(|e| Failure::error(Code::Refused, format!("nothing is changed: {e}")))?;
    for strange in parameters::unknown(&arguments) {
        crate::output::complain(&wakewatt_words::spoken(|| {
            say!(
                "WARNING: --any-boot-argument: {strange} is not a kernel parameter wakewatt knows; every next boot would have it"
            )
        }));
    }
    if requests.is_empty() && arguments.is_empty() {
        let names: Vec<&str> = profile::SHIPPED.iter().map(|(n, _)| *n).collect();
        return Err(usage(wakewatt_words::spoken(|| {
            say!(
                "say what is wanted: a profile ({names}), --max-latency, --set or --boot-arg",
                names = names.join(", ")
            )
        })));
    }
    Ok(Asked { purpose: words.join(", "), requests, arguments })
}

/// A shipped profile, or a file. What holds a slash or ends in .toml is a file.
fn read_profile(name: &str, used: Use) -> Result<Profile> {
    let is_file = name.contains('/') || name.ends_with(".toml");
    let text = if is_file {
        trusted::text(name, input::PROFILE, used)?
    } else {
        profile::shipped(name).map_err(|why| Failure::error(Code::Usage, why))?.to_string()
    };
    Profile::parse(&text)
        .map_err(|why| Failure::error(if is_file { Code::BadFile } else { Code::Usage }, format!("{name}: {why}")))
}

/// Nobody else changes settings meanwhile.
fn lock() -> Result<Lock> {
    Lock::take(Path::new(STATE_DIR)).map_err(|e| {
        let code = if matches!(e, LockError::Busy(_)) { Code::Busy } else { Code::Refused };
        Failure::error(code, e.to_string())
    })
}

/// The journals of tune, oldest first; the unreadable are said.
fn journals() -> (Vec<Journal>, bool) {
    let (mut journals, is_readable) = every_journal();
    journals.retain(|j| j.id().starts_with("tune-"));
    (journals, is_readable)
}

/// The same with those of experiments, which are open: under way, or cut short.
fn every_journal() -> (Vec<Journal>, bool) {
    let (journals, bad) = Journal::all(&Disk, Path::new(STATE_DIR));
    let hint = if rustix::process::geteuid().is_root() { "" } else { " (journals are root's: use sudo)" };
    bad.iter().for_each(|e| crate::output::complain(&format!("{e}{hint}")));
    (journals, bad.is_empty())
}

/// Kernel parameters of transactions that stand.
fn held_arguments() -> Vec<Argument> {
    journals().0.into_iter().flat_map(|j| j.arguments).collect()
}

/// The one the user named, or the latest.
fn pick(journals: Vec<Journal>, which: &WhichArgs) -> Result<Option<Journal>> {
    match &which.id {
        None => Ok(journals.into_iter().next_back()),
        Some(id) => {
            let ids: Vec<String> = journals.iter().map(Journal::id).collect();
            let found = journals.into_iter().find(|j| j.id() == *id);
            found.map(Some).ok_or_else(|| {
                let known =
                    if ids.is_empty() { "nothing is applied".into() } else { format!("there are {}", ids.join(", ")) };
                Failure::error(Code::Usage, format!("{id}: no such transaction; {known}"))
            })
        }
    }
}
