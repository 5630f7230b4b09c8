//! `wakewatt tune undo` and `tune confirm`.

use super::{every_journal, journals, lock, pick};
use crate::cli::tune::{UndoArgs, WhichArgs};
use crate::exit::{Code, Failure};
use crate::output;
use crate::telling::Telling;
use anyhow::Result;
use std::path::Path;
use wakewatt_host::clock;
use wakewatt_host::store::Disk;
use wakewatt_tune::here;
use wakewatt_tune::journal::{Journal, OwnerNow, Phase, STATE_DIR, boot_id};
use wakewatt_tune::lock::{Lock, LockError};
use wakewatt_tune::recovery::{self, Due};
use wakewatt_words::{say, spoken, word};

/// Puts one or all back.
pub(super) fn run(args: &UndoArgs) -> Result<Code> {
    let (found, is_readable) = every_journal();
    if found.is_empty() && is_readable {
        output::print(spoken(|| word!("Nothing to undo: no settings of wakewatt are applied.\n")))?;
        return Ok(Code::Fine);
    }
    let _lock = lock_to_restore(args.force)?;
    // Again, now that nobody changes them.
    let (mut all, is_readable) = every_journal();
    let chosen: Vec<Journal> = if args.all {
        all.reverse();
        all
    } else {
        all.retain(|j| j.id().starts_with("tune-") || args.which.id.is_some());
        pick(all, &args.which)?.into_iter().collect()
    };
    let boot_id = boot_id();
    let mut telling = Telling::default();
    let mut is_complete = is_readable;
    let mut kept: Vec<String> = Vec::new();
    if let (false, [journal], false) = (args.force, &chosen[..], args.all) {
        refuse_out_of_order(journal)?;
    }
    for mut journal in chosen {
        telling.line(&format!("{}: {}", journal.id(), journal.purpose));
        if journal.phase == Phase::Open && journal.owner_now() == OwnerNow::Alive {
            telling.line(spoken(|| word!("  its process still runs and will put it back itself; left alone")));
            is_complete = false;
            continue;
        }
        if !journal.is_of_boot(&boot_id) {
            telling.line(spoken(|| {
                word!("  the machine has booted since, which reset its settings; files are looked at")
            }));
        }
        let report = here::put_back(&mut journal, args.force)?;
        for (path, result) in &report.entries {
            telling.line(&format!("  {path}: {result}"));
        }
        is_complete &= report.is_complete();
        kept.extend(report.kept_journal.is_some().then(|| journal.id()));
        report.remains().iter().for_each(|line| output::complain(line));
    }
    let (left, _) = every_journal();
    for open in left.iter().filter(|j| j.phase == Phase::Open && j.owner_now() != OwnerNow::Alive) {
        let id = open.id();
        // What was just put back is no longer changed; that its journal stays has been said.
        if kept.contains(&id) {
            continue;
        }
        if open.is_of_boot(&boot_id) && here::is_waiting(open) {
            telling.line(&spoken(|| {
                say!("{id} waits for what is out of reach; wakewatt recover --forget {id} gives it up")
            }));
            continue;
        }
        let purpose = &open.purpose;
        output::complain(&spoken(|| say!("{id}: {purpose}: still open: wakewatt recover undoes it")));
        is_complete = false;
    }
    if let Some(left) = left.iter().find(|j| j.entries.iter().any(|e| e.path == BOOT_ENTRY)) {
        let id = left.id();
        telling
            .line(&spoken(|| say!("{id} sets its settings again at the next boot; wakewatt tune undo {id} ends that")));
    }
    let (code, outcome) = spoken(|| match (is_complete, !kept.is_empty()) {
        (false, _) => (Code::NotRestored, word!("not everything is put back")),
        (true, true) => (Code::BadFile, word!("all settings are put back; a journal is left")),
        (true, false) => (Code::Fine, word!("all settings are put back")),
    });
    Ok(telling.end(code, outcome))
}

/// The lock, which a read-only disk still gives. Where it cannot be had at all only `--force` goes on.
fn lock_to_restore(is_forced: bool) -> Result<Option<Lock>> {
    match Lock::take_to_restore(Path::new(STATE_DIR)) {
        Ok(lock) => Ok(Some(lock)),
        Err(busy @ LockError::Busy(_)) => Err(Failure::error(Code::Busy, busy.to_string())),
        Err(error) if is_forced => {
            output::complain(&spoken(|| say!("{error}; going on without it, as --force asks")));
            Ok(None)
        }
        Err(error) => {
            let why = spoken(|| {
                say!(
                    "{error}; nothing is undone. It needs root; if no other wakewatt is changing settings, --force undoes without the lock"
                )
            });
            Err(Failure::error(Code::Refused, why))
        }
    }
}

/// The journal's entry for the profile that is applied at boot.
const BOOT_ENTRY: &str = "file:/etc/wakewatt/boot.toml";

/// A later transaction on the same files found our values: undone before it, ours would come back with its undo.
fn refuse_out_of_order(journal: &Journal) -> Result<()> {
    let (all, _) = journals();
    let later = all.iter().skip_while(|j| j.file() != journal.file()).skip(1);
    for other in later {
        let shared = journal.entries.iter().find(|e| other.entries.iter().any(|o| o.path == e.path));
        if let Some(entry) = shared {
            let (id, later) = (journal.id(), other.id());
            return Err(Failure::error(
                Code::NotRestored,
                spoken(|| {
                    say!("{id}: {later} has set {path} since; undo {later} first, or use --force", path = entry.path)
                }),
            ));
        }
    }
    Ok(())
}

/// Keeps what waits for confirmation.
pub(super) fn confirm(args: &WhichArgs) -> Result<Code> {
    let _lock = lock()?;
    let (mut all, _) = journals();
    all.retain(|j| args.id.is_some() || matches!(j.phase, Phase::Unconfirmed { .. }));
    let Some(mut journal) = pick(all, args)? else {
        output::print(spoken(|| word!("Nothing waits for confirmation.\n")))?;
        return Ok(Code::Fine);
    };
    let id = journal.id();
    match journal.phase {
        Phase::Applied => {
            output::print(&spoken(|| say!("{id}: is confirmed already\n")))?;
            return Ok(Code::Fine);
        }
        Phase::Open => {
            return Err(Failure::error(
                Code::Refused,
                spoken(|| say!("{id}: is not complete; wakewatt recover undoes it")),
            ));
        }
        Phase::Unconfirmed { .. } => {}
    }
    if let Due::Now(why) = recovery::due(&journal, &boot_id(), clock::boottime_ns(), OwnerNow::Gone) {
        return Err(Failure::error(
            Code::Refused,
            spoken(|| say!("{id}: too late: {why}; wakewatt recover undoes it")),
        ));
    }
    journal.phase = Phase::Applied;
    if let Err(error) = journal.save(&Disk) {
        let why = spoken(|| match error.is_in_place {
            true => say!("{id} is kept, but a power loss may forget that, and then undo it: {error}"),
            false => say!("{id} is not confirmed and will be undone when its time is up: {error}"),
        });
        return Err(Failure::error(Code::BadFile, why));
    }
    let mut telling = Telling::default();
    telling.line(&spoken(|| say!("{id}: kept. wakewatt tune undo {id} takes it back.")));
    Ok(telling.end(Code::Fine, &spoken(|| say!("{id} is kept"))))
}
