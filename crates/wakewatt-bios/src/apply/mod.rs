//! Stages a plan for the next boot: journal first, then one PATCH, then a look at what the BMC made of it.
//!
//! A BMC's yes proves little: HPE and Lenovo judge names and values only while the machine boots, and drop what they do not
//! like. So what is reported is what was asked, what the BMC answered, and what its settings object shows afterwards; whether
//! it holds is for `verify` after the boot. Refused before anything is sent: plans with refusals (unless told to leave them
//! out), plans without a registry (unless told), and a BIOS in which somebody else's changes wait. The machine is restarted
//! only if that was asked for.

pub mod job;
pub mod reboot;
pub mod stage;

use crate::journal::{Entry, Journal, JournalError, Phase};
use crate::plan::{Plan, Refused, Waiting};
use crate::service::Change;
use crate::setting::Setting;
use crate::walk::{Bios, Machine};
use job::Job;
use serde::Serialize;
use stage::{StageError, Staging};
use std::path::Path;
use std::time::Duration;

/// How a plan is to be applied.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// Where journals are kept.
    pub journals: &'a Path,
    /// What was asked for, for the journal.
    pub wishes: &'a [String],
    /// The time, in words, for the journal.
    pub made_at: &'a str,
    /// Leave out what is refused instead of doing nothing.
    pub is_keeping_going: bool,
    /// Do it although no registry says which names and values there are.
    pub is_unvalidated_allowed: bool,
    /// Do it although others' changes wait for the same boot.
    pub is_waiting_allowed: bool,
    /// Restart the machine afterwards, in this way.
    pub reboot: Option<Option<&'a str>>,
    /// Between two looks at a job.
    pub pause: Duration,
}

/// Why nothing was staged.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Wishes that are not met.
    #[error("nothing is staged: {}", refused.iter().map(|r| format!("{}: {}", r.asked, r.why)).collect::<Vec<_>>().join("; "))]
    Refused {
        /// Which, and why.
        refused: Vec<Refused>,
    },
    /// No registry.
    #[error(
        "nothing is staged: no registry says which names and values this BIOS takes; --unvalidated stages all the same"
    )]
    NotValidated,
    /// Somebody else's changes.
    #[error("nothing is staged: other changes wait for the next boot already ({}); boot first, cancel them, or add --with-waiting", waiting.iter().map(|w| format!("{}={}", w.attribute, w.pending)).collect::<Vec<_>>().join(", "))]
    Waiting {
        /// Which.
        waiting: Vec<Waiting>,
    },
    /// Nowhere to stage.
    #[error(
        "nothing is staged: this BIOS names no settings object (@Redfish.Settings), so it cannot be changed over Redfish"
    )]
    NoSettings,
    /// No journal, nothing staged.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The BMC refused, or did not answer.
    #[error(transparent)]
    Stage(#[from] StageError),
}

/// One attribute after staging.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StagedSetting {
    /// As the BMC spells it.
    pub attribute: String,
    /// What it held; none where the BIOS does not tell.
    pub before: Option<Setting>,
    /// What was sent.
    pub requested: Setting,
    /// What the settings object shows for the next boot; none where it shows nothing.
    pub read_back: Option<Setting>,
}

/// Does the settings object show what was sent?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadBack {
    /// It waits for the next boot.
    Same,
    /// It shows another value: an accepted request that changed nothing, or not to this.
    Other,
    /// It shows nothing, or could not be read: nobody knows.
    Unknown,
}

impl StagedSetting {
    /// Its answer.
    pub fn read_back(&self) -> ReadBack {
        match &self.read_back {
            Some(back) if back.is_same(&self.requested) => ReadBack::Same,
            Some(_) => ReadBack::Other,
            None => ReadBack::Unknown,
        }
    }
}

/// Those that the BMC accepted and does not show: such a change is no success, whatever its HTTP status.
pub fn unconfirmed(staged: &[StagedSetting]) -> Vec<&StagedSetting> {
    staged.iter().filter(|setting| setting.read_back() != ReadBack::Same).collect()
}

/// What an application came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Applied {
    /// The journal; none when there was nothing to stage.
    pub id: Option<String>,
    /// What was staged, in the order sent.
    pub staged: Vec<StagedSetting>,
    /// What was left out, with the reason of each.
    pub left_out: Vec<Refused>,
    /// The BMC's HTTP status; none when nothing was sent.
    pub status: Option<u16>,
    /// The BMC's own words to it; empty where it says nothing.
    pub said: String,
    /// The job or task that applies it at the next boot; none where the BMC names none.
    pub job: Option<Job>,
    /// How the machine was restarted; none where it was not.
    pub restarted: Option<String>,
    /// Why it was not restarted although that was asked for; none otherwise.
    pub not_restarted: Option<String>,
    /// What to know besides.
    pub notes: Vec<String>,
}

/// Stages a plan.
pub fn apply(
    service: &mut dyn Change,
    machine: &Machine,
    bios: &Bios,
    plan: &Plan,
    order: Order<'_>,
) -> Result<Applied, ApplyError> {
    check(bios, plan, order)?;
    let settings = bios.settings_path.as_deref().ok_or(ApplyError::NoSettings)?;
    let mut out = Applied {
        id: None,
        staged: Vec::new(),
        left_out: plan.refused.clone(),
        status: None,
        said: String::new(),
        job: None,
        restarted: None,
        not_restarted: None,
        notes: Vec::new(),
    };
    let changes: Vec<(String, Setting)> = plan.changes().map(|s| (s.attribute.clone(), s.wished.clone())).collect();
    if changes.is_empty() {
        out.notes.push("nothing has to be staged".into());
        // What waits already may be wanted in force now; a machine that is as wished is left running.
        if plan.needs_reboot {
            restart(service, machine, order, false, &mut out);
        }
        return Ok(out);
    }
    let mut journal = Journal::create(order.journals, draft(machine, plan, order))?;
    let staging = Staging { settings, bios, pause: order.pause, expected: Some(&bios.pending) };
    let staged = match stage::stage(service, &staging, &changes) {
        Ok(staged) => staged,
        Err(why) => {
            // A plain no changed nothing; without an answer nobody knows, and the journal stays.
            if why.is_certain() {
                journal.finish()?;
            }
            return Err(why.into());
        }
    };
    journal.phase = Phase::Staged;
    journal.job = staged.job.as_ref().map(|job| job.path.clone());
    // The BMC has it: what it came to must be told, and the journal as it was before is enough for an undo.
    if let Err(why) = journal.save() {
        out.notes.push(format!("staged, but its journal could not be brought up to date: {why}"));
    }
    out.id = Some(journal.id());
    out.status = Some(staged.answer.status);
    out.said = staged.answer.said;
    out.notes.extend(staged.notes);
    out.job = staged.job;
    for (attribute, requested) in changes {
        let before = bios.current.get(&attribute).cloned();
        let read_back = staged.read_back.get(&attribute).cloned();
        out.staged.push(StagedSetting { attribute, before, requested, read_back });
    }
    restart(service, machine, order, staged.is_job_missing, &mut out);
    Ok(out)
}

fn check(bios: &Bios, plan: &Plan, order: Order<'_>) -> Result<(), ApplyError> {
    if !plan.refused.is_empty() && !order.is_keeping_going {
        return Err(ApplyError::Refused { refused: plan.refused.clone() });
    }
    if bios.registry.is_err() && !order.is_unvalidated_allowed {
        return Err(ApplyError::NotValidated);
    }
    if !plan.waiting.is_empty() && !order.is_waiting_allowed {
        return Err(ApplyError::Waiting { waiting: plan.waiting.clone() });
    }
    Ok(())
}

fn draft(machine: &Machine, plan: &Plan, order: Order<'_>) -> Journal {
    let name = format!("{} {}", machine.vendor, machine.model).trim().to_string();
    let changes = plan.changes().map(|step| Entry {
        attribute: step.attribute.clone(),
        before: step.current.clone(),
        ours: step.wished.clone(),
        is_moved: false,
    });
    let follows = plan.steps.iter().filter(|s| s.state == crate::plan::StepState::Follows).map(|step| Entry {
        attribute: step.attribute.clone(),
        before: step.current.clone(),
        ours: step.wished.clone(),
        is_moved: true,
    });
    let moved = plan.moved.iter().map(|moved| Entry {
        attribute: moved.attribute.clone(),
        before: moved.current.clone(),
        ours: moved.becomes.clone(),
        is_moved: true,
    });
    let mut draft = Journal::draft(&machine.origin, &machine.id, name, order.made_at.into());
    draft.wishes = order.wishes.to_vec();
    draft.entries = changes.chain(follows).chain(moved).collect();
    draft
}

fn restart(service: &mut dyn Change, machine: &Machine, order: Order<'_>, is_job_missing: bool, out: &mut Applied) {
    let Some(kind) = order.reboot else { return };
    if out.job.as_ref().is_some_and(Job::is_failed) {
        out.not_restarted = Some("the job that would apply the changes has failed".into());
        return;
    }
    // A boot without a job would change nothing.
    if is_job_missing {
        out.not_restarted = Some("no job could be made that would apply the changes".into());
        return;
    }
    if !unconfirmed(&out.staged).is_empty() {
        out.not_restarted = Some("the BMC accepted the changes, but does not show them as waiting for a boot".into());
        return;
    }
    match reboot::restart(service, machine, kind) {
        Ok(kind) => out.restarted = Some(kind),
        Err(why) => out.not_restarted = Some(why.to_string()),
    }
}
