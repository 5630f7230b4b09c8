//! Status: what was applied against what is there now, setting by setting; and who may have changed it.
//!
//! Every setting is looked at, also after a reboot (which resets what is not in a file) and on CPUs that came online
//! later: the requests are resolved again, and a place that the journal does not know is reported as not set.

use crate::boot::check::{BootVerdict, BootWanted, Check, check};
use crate::hands::Hands;
use crate::journal::{Entry, Journal, OwnerNow, Phase};
use crate::knob::{Host, Kept};
use crate::planning::also_set_by;
use crate::sites::SitesByPath;
use crate::{knobs, resolve};
use serde::Serialize;
use std::collections::BTreeSet;

/// One setting now.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingState {
    /// The setting's name: `freq.governor`.
    pub name: String,
    /// The file it lives in.
    pub path: String,
    /// What was asked for.
    pub requested: Option<String>,
    /// What it says now.
    pub now: Option<String>,
    /// Both as people say it.
    pub requested_shown: Option<String>,
    /// The same for the value now.
    pub now_shown: Option<String>,
    /// What is in force, where that differs from the file.
    pub effective: Option<String>,
    /// Does the setting hold?
    pub verdict: SettingVerdict,
}

/// Does a setting hold?
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SettingVerdict {
    /// It is as asked.
    Holds,
    /// The kernel made something legal of it.
    Clamped(String),
    /// Somebody changed it; who that may have been.
    Drifted {
        /// Candidates, most likely first; empty when nobody is known.
        by: Vec<String>,
    },
    /// It cannot be read by this user, so nobody can tell.
    Unknown(String),
    /// The file is gone: an offline CPU, an unloaded driver.
    Gone(String),
    /// The machine has booted since, and nothing has set it again.
    ResetByReboot,
    /// A place that appeared after the settings were applied.
    NeverSet,
    /// A run that has not ended, or was cut short, has changed it.
    LeftChanged {
        /// What it held before.
        before: Option<String>,
    },
}

/// Of an open journal: what is known of the run that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Run {
    /// It is under way.
    GoesOn,
    /// It has ended without putting everything back.
    Ended,
    /// Its process is of another PID namespace: nobody can tell from here.
    Unseen,
}

impl SettingVerdict {
    /// Is it as asked, as far as can be told?
    pub fn is_good(&self) -> bool {
        matches!(self, SettingVerdict::Holds | SettingVerdict::Clamped(_) | SettingVerdict::Unknown(_))
    }
}

/// One transaction now.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransactionState {
    /// Name of the transaction: `tune-1`.
    pub id: String,
    /// What the settings are for.
    pub purpose: String,
    /// How far it has come: `open`, `unconfirmed` or `applied`.
    pub phase: String,
    /// Seconds until it undoes itself.
    pub undone_in_s: Option<u64>,
    /// Did the machine boot since?
    pub is_of_this_boot: bool,
    /// Of an open one: is its run under way?
    pub run: Option<Run>,
    /// Commands of an open one that may have been run, and were not taken back.
    pub commands_left: Vec<String>,
    /// The settings as they were asked for.
    pub requests: Vec<String>,
    /// Each setting with what is there now.
    pub settings: Vec<SettingState>,
    /// Kernel parameters that wait for the next boot; empty once it came.
    pub waits_for_boot: Vec<String>,
    /// What that boot brought about.
    pub boot_checks: Vec<Check>,
}

impl TransactionState {
    /// Is everything as asked?
    pub fn is_good(&self) -> bool {
        if let Some(run) = self.run {
            return run != Run::Ended;
        }
        let is_booted_well = self.boot_checks.iter().all(|c| c.verdict != BootVerdict::Broken);
        is_booted_well && self.settings.iter().all(|s| s.verdict.is_good())
    }
}

/// The state of every journal; `all` are those of the state folder, `boottime_ns` the boot clock now, `kernel_log` this
/// boot's, where it could be read.
pub fn status(
    hands: Hands<'_>,
    all: &[Journal],
    boot_id: &str,
    boottime_ns: u64,
    kernel_log: Option<&str>,
) -> Vec<TransactionState> {
    let host = Host::read(hands.source);
    let state = |journal: &Journal| {
        if journal.phase == Phase::Open {
            return open(hands, journal, boot_id);
        }
        let mut state = one(hands, &host, journal, all, boot_id, boottime_ns);
        boot(hands, journal, boot_id, kernel_log, &mut state);
        state
    };
    all.iter().map(state).collect()
}

/// One that has not come to its end: what of it stands now. Nothing of it is meant to stay, so nothing is missed.
fn open(hands: Hands<'_>, journal: &Journal, boot_id: &str) -> TransactionState {
    let is_of_this_boot = journal.is_of_boot(boot_id);
    let changed = |entry: &Entry| {
        let read = hands.sink.read(&entry.path);
        let is_absent = read.as_ref().is_err_and(|e| e.is_absent);
        let now = read.as_ref().ok().cloned();
        if (read.is_ok() || is_absent) && entry.is_before(&now) {
            return None;
        }
        let verdict = match read {
            Err(error) if error.is_absent => SettingVerdict::Gone(error.what),
            Err(error) => SettingVerdict::Unknown(error.what),
            Ok(_) => SettingVerdict::LeftChanged { before: entry.before.clone() },
        };
        Some(SettingState {
            name: entry.name.clone(),
            path: entry.path.clone(),
            requested: None,
            now: now.clone(),
            requested_shown: None,
            now_shown: now,
            effective: None,
            verdict,
        })
    };
    let run = match journal.owner_now() {
        _ if !is_of_this_boot => Run::Ended,
        OwnerNow::Alive => Run::GoesOn,
        OwnerNow::Gone => Run::Ended,
        OwnerNow::Unseen => Run::Unseen,
    };
    let stands = |e: &&Entry| is_of_this_boot || e.is_durable();
    let started = journal.commands.iter().filter(|c| c.is_started && !c.undo.is_empty());
    TransactionState {
        id: journal.id(),
        purpose: journal.purpose.clone(),
        phase: "open".into(),
        undone_in_s: None,
        is_of_this_boot,
        run: Some(run),
        commands_left: started.map(|c| c.run.join(" ")).collect(),
        requests: journal.requests.iter().map(ToString::to_string).collect(),
        settings: journal.entries.iter().filter(stands).filter_map(changed).collect(),
        waits_for_boot: Vec::new(),
        boot_checks: Vec::new(),
    }
}

/// Kernel parameters: waited for in the boot that planned them, checked in every later one.
fn boot(hands: Hands<'_>, journal: &Journal, boot_id: &str, kernel_log: Option<&str>, state: &mut TransactionState) {
    if journal.arguments.is_empty() {
        return;
    }
    if journal.is_of_boot(boot_id) {
        state.waits_for_boot = journal.arguments.iter().map(ToString::to_string).collect();
        return;
    }
    let wanted = BootWanted { arguments: journal.arguments.clone(), planned_in_boot: Some(journal.boot_id.clone()) };
    state.boot_checks = check(hands.source, kernel_log, &wanted);
}

fn one(
    hands: Hands<'_>,
    host: &Host<'_>,
    journal: &Journal,
    all: &[Journal],
    boot_id: &str,
    boottime_ns: u64,
) -> TransactionState {
    let is_of_this_boot = journal.is_of_boot(boot_id);
    let mut sites = SitesByPath::default();
    let known: BTreeSet<&str> = journal.entries.iter().filter(|e| !e.is_collateral).map(|e| e.path.as_str()).collect();
    let asked = journal.entries.iter().filter(|e| !e.is_collateral);
    let mut settings: Vec<SettingState> =
        asked.map(|entry| setting(hands, host, journal, entry, all, is_of_this_boot, &mut sites)).collect();
    for request in &journal.requests {
        let Ok(step) = resolve::step(host, request, &[]) else { continue };
        for change in step.changes.into_iter().filter(|c| !c.is_so()) {
            if !known.contains(change.path.as_str()) {
                settings.push(SettingState {
                    name: request.name.clone(),
                    path: change.path,
                    requested: Some(change.to),
                    now: change.before,
                    requested_shown: Some(change.to_shown),
                    now_shown: Some(change.before_shown),
                    effective: None,
                    verdict: SettingVerdict::NeverSet,
                });
            }
        }
    }
    let (phase, undone_in_s) = match journal.phase {
        Phase::Open => ("open", None),
        Phase::Applied => ("applied", None),
        Phase::Unconfirmed { until_boottime_ns } => {
            ("unconfirmed", Some(until_boottime_ns.saturating_sub(boottime_ns) / 1_000_000_000))
        }
    };
    TransactionState {
        id: journal.id(),
        purpose: journal.purpose.clone(),
        phase: phase.into(),
        undone_in_s,
        is_of_this_boot,
        run: None,
        commands_left: Vec::new(),
        requests: journal.requests.iter().map(ToString::to_string).collect(),
        settings,
        waits_for_boot: Vec::new(),
        boot_checks: Vec::new(),
    }
}

fn setting(
    hands: Hands<'_>,
    host: &Host<'_>,
    journal: &Journal,
    entry: &Entry,
    all: &[Journal],
    is_of_this_boot: bool,
    sites: &mut SitesByPath,
) -> SettingState {
    let requested = entry.ours.first().cloned().flatten();
    let read = hands.sink.read(&entry.path);
    let now = read.as_ref().ok().cloned();
    let knob = knobs::find(&entry.name);
    let kept = match (&requested, &now, knob) {
        (Some(requested), Some(now), Some(knob)) => knob.kept(requested, now),
        (requested, now, _) if requested == now => Kept::Exactly,
        _ => Kept::Not,
    };
    // What the kernel made of it when it was applied is no drift; any other value is, however legal.
    let was_so = now.as_ref().is_some_and(|now| entry.ours.iter().flatten().any(|o| o == now));
    let verdict = match (kept, &read) {
        (Kept::Exactly, _) => SettingVerdict::Holds,
        (Kept::Legally(how), _) if was_so || !is_of_this_boot => SettingVerdict::Clamped(how),
        (Kept::Not, _) if was_so => SettingVerdict::Clamped("the kernel made it so when it was applied".into()),
        (_, Err(error)) if !error.is_absent => SettingVerdict::Unknown(error.what.clone()),
        (_, _) if !is_of_this_boot && !entry.is_durable() => SettingVerdict::ResetByReboot,
        (_, Err(error)) => SettingVerdict::Gone(error.what.clone()),
        (_, Ok(now)) => SettingVerdict::Drifted { by: suspects(host, journal, entry, now, all) },
    };
    let site = sites.find(host, &entry.name, &entry.path).map(|(_, site)| site.clone());
    let shown = |text: &Option<String>| match (knob, &site, text) {
        (Some(knob), Some(site), Some(text)) => Some(knob.decode(site, text)),
        // A file is shown by its first line.
        (_, _, text) => text.as_ref().map(|t| t.lines().next().unwrap_or("(empty)").to_string()),
    };
    let (requested_shown, now_shown) = (shown(&requested), shown(&now));
    let effective = knob.zip(site).and_then(|(k, s)| k.effective(host, &s));
    SettingState {
        name: entry.name.clone(),
        path: entry.path.clone(),
        requested,
        now,
        requested_shown,
        now_shown,
        effective,
        verdict,
    }
}

/// Who may have written a value: a later transaction of ours, a daemon that turns this knob, or a return to the start.
fn suspects(host: &Host<'_>, journal: &Journal, entry: &Entry, now: &str, all: &[Journal]) -> Vec<String> {
    let wrote = |j: &&Journal| {
        let same = |e: &Entry| e.path == entry.path && e.ours.iter().flatten().any(|o| o == now);
        j.file() != journal.file() && j.entries.iter().any(same)
    };
    let mut by: Vec<String> = all.iter().filter(wrote).map(|j| format!("wakewatt itself: {}", j.id())).collect();
    if let Some(knob) = knobs::find(&entry.name) {
        by.extend(also_set_by(host, knob.about()));
    }
    if entry.before.as_deref() == Some(now) {
        by.push(
            "back at its value from before: a CPU that was offline, a driver reload, a resume, or somebody's undo"
                .into(),
        );
    }
    by
}
