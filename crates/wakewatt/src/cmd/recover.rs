//! `wakewatt recover` undoes what a killed run left behind; the hidden `wakewatt guard` does so at once when it can.

use crate::cli::{GuardArgs, RecoverArgs};
use crate::exit::{Code, Failure};
use crate::output;
use crate::telling::Telling;
use anyhow::Result;
use std::path::Path;
use wakewatt_host::kernel_log;
use wakewatt_host::store::{self, Disk};
use wakewatt_tune::journal::{Journal, JournalError, Phase, STATE_DIR};
use wakewatt_tune::lock::{Lock, LockError};
use wakewatt_tune::recovery::Manner;
use wakewatt_tune::sweep::SweepEnd;
use wakewatt_tune::{forget, here, watch};
use wakewatt_words::{say, spoken, word};

pub fn run(args: &RecoverArgs) -> Result<Code> {
    // Anybody may ask, and looking leaves no trace.
    let (journals, unreadable) = Journal::all(&Disk, Path::new(STATE_DIR));
    if let (Some(error), false) = (unreadable.first(), rustix::process::geteuid().is_root()) {
        return Err(Failure::error(Code::Refused, spoken(|| say!("{error}; journals are root's: use sudo"))));
    }
    if let Some(id) = &args.forget {
        return give_up(id, args.force, journals, &unreadable);
    }
    let is_cut_short = store::half_written(&Disk, Path::new(STATE_DIR)).is_ok_and(|names| !names.is_empty());
    if unreadable.is_empty() && !is_cut_short && journals.iter().all(|j| j.phase == Phase::Applied) {
        output::print(spoken(|| word!("Nothing to recover: no run left settings changed.\n")))?;
        return Ok(Code::Fine);
    }
    let lock = lock();
    let swept = here::sweep(Manner { has_lock: lock.is_some(), is_forced: args.force });
    swept.complaints.iter().for_each(|line| output::complain(line));
    let mut telling = Telling::default();
    if swept.lines.is_empty() && swept.end() == SweepEnd::Settled {
        telling.line(spoken(|| word!("Nothing to recover any more: it was undone meanwhile.")));
    }
    swept.lines.iter().for_each(|line| telling.line(line));
    let (code, outcome) = spoken(|| match swept.end() {
        SweepEnd::Settled => (Code::Fine, word!("all settings are put back")),
        SweepEnd::JournalLeft => (Code::BadFile, word!("all settings are put back; a journal is left")),
        SweepEnd::NotRestored => (Code::NotRestored, word!("not everything is put back")),
    });
    Ok(telling.end(code, outcome))
}

/// Waits for whoever changes settings now: it may be the one whose journal lies open. None where there can be no lock, which
/// must not keep settings changed; then only what nobody can be at work on is touched.
fn lock() -> Option<Lock> {
    let taken = match Lock::take_to_restore(Path::new(STATE_DIR)) {
        Err(busy @ LockError::Busy(_)) => {
            output::remark(&spoken(|| say!("{busy} (waiting)")));
            Lock::wait_to_restore(Path::new(STATE_DIR))
        }
        other => other,
    };
    taken.map_err(|error| output::complain(&spoken(|| say!("{error}; settings are put back without it")))).ok()
}

/// Gives a journal up: shows what that loses, and does it only when told so again.
fn give_up(id: &str, is_sure: bool, journals: Vec<Journal>, unreadable: &[JournalError]) -> Result<Code> {
    if let Some(error) = forget::unreadable(unreadable, id) {
        return give_up_unread(id, is_sure, error);
    }
    let Some(journal) = journals.iter().find(|j| j.id() == *id) else {
        let ids: Vec<String> = journals.iter().map(Journal::id).collect();
        let mut known = if ids.is_empty() { "there is none".into() } else { format!("there are {}", ids.join(", ")) };
        unreadable.iter().for_each(|error| known += &format!("; {error}"));
        return Err(Failure::error(Code::Usage, format!("{id}: no such journal; {known}")));
    };
    let _lock = lock_unless_busy()?;
    let lost = here::losses(journal)?;
    let mut telling = Telling::default();
    telling.line(&format!("{id}: {}", journal.purpose));
    lost.iter().for_each(|line| telling.line(&spoken(|| say!("  stays so: {line}"))));
    if lost.is_empty() {
        telling.line(spoken(|| word!("  everything it names is as before")));
    }
    if !is_sure {
        return Ok(not_yet(telling, id));
    }
    journal.finish(&Disk)?;
    telling.line(spoken(|| word!("  forgotten; nothing was written to the machine")));
    Ok(telling.end(Code::Fine, spoken(|| word!("the journal is forgotten"))))
}

/// The same for a file that cannot be read as a journal.
fn give_up_unread(id: &str, is_sure: bool, error: &JournalError) -> Result<Code> {
    let _lock = lock_unless_busy()?;
    let mut telling = Telling::default();
    telling.line(&error.to_string());
    telling.line(spoken(|| word!("  nothing can be shown of it: what it names may still be changed, and stays so")));
    if !is_sure {
        return Ok(not_yet(telling, id));
    }
    forget::remove(&Disk, error)
        .map_err(|e| Failure::error(Code::BadFile, format!("{}: {e}", error.file().display())))?;
    telling.line(spoken(|| word!("  forgotten; nothing was written to the machine")));
    Ok(telling.end(Code::Fine, spoken(|| word!("the journal is forgotten"))))
}

fn not_yet(mut telling: Telling, id: &str) -> Code {
    telling.line(&spoken(|| {
        say!("Nothing is forgotten yet. To give this up for good: wakewatt recover --forget {id} --force")
    }));
    telling.end(Code::Refused, spoken(|| word!("nothing is forgotten")))
}

/// None where there can be no lock.
fn lock_unless_busy() -> Result<Option<Lock>> {
    match Lock::take_to_restore(Path::new(STATE_DIR)) {
        Err(busy @ LockError::Busy(_)) => Err(Failure::error(Code::Busy, busy.to_string())),
        other => Ok(other.ok()),
    }
}

/// The guard process: see [`wakewatt_tune::guard`] and [`wakewatt_tune::watch`]. Often nobody hears it, so what is left is
/// said to the kernel's log as well.
pub fn guard(args: &GuardArgs) -> Result<Code> {
    let acted = if args.confirm { watch::await_confirmation(&args.journal)? } else { watch::guard(&args.journal)? };
    let Some(report) = acted else { return Ok(Code::Fine) };
    for line in report.remains() {
        output::complain(&line);
        kernel_log::say(&line);
    }
    Ok(match (report.is_complete(), &report.kept_journal) {
        (false, _) => Code::NotRestored,
        (true, Some(_)) => Code::BadFile,
        (true, None) => Code::Fine,
    })
}
