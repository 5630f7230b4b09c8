//! What somebody staged who died before noting so: the BMC is asked, and the journal brought up to date.

use super::job::{Holder, holder};
use crate::journal::{Journal, JournalError, Phase};
use crate::service::Change;
use crate::walk::Bios;

/// What an open journal turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adopted {
    /// There was nothing to bring up to date.
    AsNoted,
    /// The BMC has it, and the journal says so now.
    Staged,
    /// The values wait, but nobody made the job that would apply them.
    WithoutJob,
}

/// Looks whether what a journal calls open is staged.
pub fn adopt(service: &mut dyn Change, bios: &Bios, journal: &mut Journal) -> Result<Adopted, JournalError> {
    let is_waiting = journal.entries.iter().any(|entry| bios.pending.contains_key(&entry.attribute));
    let Some(settings) = bios.settings_path.as_deref().filter(|_| journal.phase == Phase::Open && is_waiting) else {
        return Ok(Adopted::AsNoted);
    };
    match holder(service, settings) {
        Holder::Nobody => return Ok(Adopted::WithoutJob),
        Holder::Job(job) => journal.job = Some(job.path),
        Holder::NotTold => {}
    }
    journal.phase = Phase::Staged;
    journal.save()?;
    Ok(Adopted::Staged)
}
