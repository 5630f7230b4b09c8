//! Beginning to change settings of this machine: one call that gives all it takes, or says why not.
//!
//! Whoever changes settings holds the lock; has made sure that no killed run left settings changed, which would be taken
//! for what was there before; knows the program that guards it; and has the only sinks there are outside tests. Nothing is
//! written here.

use crate::apply::{ApplyError, Order, Outcome, apply};
use crate::guard::GuardCommand;
use crate::hands::Hands;
use crate::journal::{Owner, STATE_DIR};
use crate::live::ThisMachine;
use crate::lock::{Lock, LockError};
use crate::recovery::Manner;
use crate::session::{Session, SettingSet};
use crate::sweep::{InTheWay, Sweep};
use crate::{forget, here, left};
use std::path::Path;
use wakewatt_host::store::Disk;

/// Who changes settings now. What it began must have ended before it is dropped, and the borrow checker sees to that.
pub struct Tuner {
    machine: ThisMachine,
    owner: Owner,
    guard: GuardCommand,
    purpose: String,
    /// Last, so that it is given back when all else is done.
    _lock: Lock,
}

/// Nothing was begun, and nothing is changed.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// Another wakewatt is at it.
    #[error("{0}")]
    Busy(String),
    /// Not this user, not here, or not before something else is put back.
    #[error("{0}")]
    Refused(String),
}

/// Takes the lock, looks for what was left behind, and knows the guard. `purpose` is what the journal will say.
pub fn begin(purpose: &str) -> Result<Tuner, BeginError> {
    root_only()?;
    let tuner = Tuner::with(purpose, Lock::take(Path::new(STATE_DIR)))?;
    let hands = tuner.hands();
    match left::in_the_way(hands.sink, hands.store, Path::new(STATE_DIR), &tuner.owner.boot_id, true) {
        Some(journal) => Err(BeginError::Refused(left::in_words(&journal))),
        None => Ok(tuner),
    }
}

/// Who begins what is to stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// A person, who hears that another wakewatt is at it.
    Asked,
    /// The machine, at boot or after a hotplug: somebody else may be at work, and is waited for. Settings of earlier boots
    /// went with them, so only files are left to remember of those.
    AtBoot,
}

/// Begun, with nothing of a killed run in the way.
pub struct Cleared {
    /// Who changes settings now.
    pub tuner: Tuner,
    /// What was undone before, and what is left that is in nobody's way.
    pub sweep: Sweep,
}

/// Nothing was begun.
#[derive(Debug, thiserror::Error)]
pub enum ClearError {
    /// It cannot be.
    #[error(transparent)]
    Begin(#[from] BeginError),
    /// A killed run left something that could not be undone.
    #[error("nothing is changed: {why}")]
    InTheWay {
        /// What was undone all the same, and what is left.
        sweep: Sweep,
        /// What it is.
        why: InTheWay,
    },
}

/// The same for settings that are to stay: what killed runs left behind is undone first, under the same lock.
pub fn clear_and_begin(purpose: &str, when: When) -> Result<Cleared, ClearError> {
    root_only()?;
    let state_dir = Path::new(STATE_DIR);
    let lock = match when {
        When::Asked => Lock::take(state_dir),
        When::AtBoot => Lock::wait(state_dir),
    };
    let tuner = Tuner::with(purpose, lock)?;
    let not_forgotten = match when {
        When::Asked => Vec::new(),
        When::AtBoot => forget::earlier_boots(&Disk, state_dir, &tuner.owner.boot_id),
    };
    let mut sweep = here::sweep(Manner { has_lock: true, is_forced: false });
    sweep.complaints.splice(0..0, not_forgotten.iter().map(ToString::to_string));
    match sweep.in_the_way() {
        Some(why) => Err(ClearError::InTheWay { sweep, why }),
        None => Ok(Cleared { tuner, sweep }),
    }
}

/// For what needs no lock, because it writes nothing that could outlive its process: is anything left behind?
pub fn check() -> Result<(), BeginError> {
    let machine = ThisMachine::new();
    match left::in_the_way(machine.hands().sink, &Disk, Path::new(STATE_DIR), &Owner::this_process().boot_id, false) {
        Some(journal) => Err(BeginError::Refused(left::in_words(&journal))),
        None => Ok(()),
    }
}

/// Another user's capabilities may reach the settings; root, who undoes at boot and after a crash, would not believe the journal.
/// Asked before the lock, whose folder that user would own.
fn root_only() -> Result<(), BeginError> {
    let user = rustix::process::geteuid();
    match user.is_root() {
        true => Ok(()),
        false => Err(BeginError::Refused(format!(
            "nothing is changed: root puts settings back after a crash or a boot, and does not believe a journal of user {}; use sudo",
            user.as_raw()
        ))),
    }
}

impl Tuner {
    fn with(purpose: &str, lock: Result<Lock, LockError>) -> Result<Tuner, BeginError> {
        let lock = lock.map_err(|error| match error {
            LockError::Busy(_) => BeginError::Busy(error.to_string()),
            other => BeginError::Refused(other.to_string()),
        })?;
        let guard = GuardCommand::this_program().map_err(|error| {
            BeginError::Refused(format!(
                "cannot find this program, which is its own guard: {error}; nothing is changed"
            ))
        })?;
        let (machine, owner) = (ThisMachine::new(), Owner::this_process());
        Ok(Tuner { machine, owner, guard, purpose: purpose.into(), _lock: lock })
    }

    /// What it works with.
    pub fn hands(&self) -> Hands<'_> {
        self.machine.hands()
    }

    /// Sets of settings to be taken in turn: journaled and guarded, not one of them entered.
    pub fn session(&self, sets: Vec<SettingSet>) -> Result<Session<'_>, ApplyError> {
        let (state_dir, guard) = (Path::new(STATE_DIR), Some(&self.guard));
        Session::begin(self.hands(), &self.owner, state_dir, &self.purpose, sets, guard, "")
    }

    /// Settings that stay.
    pub fn apply(&self, order: Order<'_>) -> Result<Outcome, ApplyError> {
        let order = Order { purpose: self.purpose.clone(), guard: Some(&self.guard), ..order };
        apply(self.hands(), &self.owner, Path::new(STATE_DIR), &order)
    }
}
