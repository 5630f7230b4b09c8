//! Where a run is kept: a folder that is begun, or one that goes on if nothing that matters is different now.

use crate::experiment::{Calibrated, KeptBlock};
use crate::refusal::Refusal;
use crate::run_folder::{Head, RunFolder, RunFolderError};
use std::path::Path;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::samples::experiment::Arm;
use wakewatt_core::samples::study::{Skipped, StudyHost};
use wakewatt_host::pseudonym;

/// Where a run is kept.
pub struct Keeping<'a> {
    /// Made, where it is not there.
    pub folder: &'a Path,
    /// The plan as it was written.
    pub text: &'a str,
    /// What an earlier part of the run left there.
    pub earlier: Option<(RunFolder, Head, Vec<KeptBlock>)>,
}

/// Somebody else's folder is refused; everything else is a bad file.
impl From<RunFolderError> for Refusal {
    fn from(error: RunFolderError) -> Refusal {
        match error {
            RunFolderError::NotOurs(_) => Refusal::Barred(error.to_string()),
            RunFolderError::Bad(why) => Refusal::File(why),
        }
    }
}

impl Keeping<'_> {
    /// What an earlier part calibrated.
    pub(super) fn calibrated(&self) -> Vec<Option<Calibrated>> {
        self.earlier.as_ref().map(|(_, head, _)| head.calibrated.clone()).unwrap_or_default()
    }

    /// The folder's name.
    pub(super) fn shown(&self) -> String {
        self.folder.display().to_string()
    }

    /// What must be the same for as long as the run goes on; metrics, budget and calibration are still to be filled in.
    pub(super) fn head(&self, host: StudyHost, seed: u64, arms: (Vec<Arm>, Vec<Skipped>)) -> Head {
        Head::new(host, seed, self.text, arms)
    }

    /// The folder, and the blocks that are there already.
    pub(super) fn open(self, head: &Head) -> Result<(RunFolder, Vec<KeptBlock>), Refusal> {
        let Some((folder, then, done)) = self.earlier else {
            return Ok((RunFolder::create(self.folder, head)?, Vec::new()));
        };
        match then.differs(head) {
            Some(why) => Err(Refusal::Barred(format!("{}: cannot be continued: {why}", self.folder.display()))),
            None => Ok((folder, done)),
        }
    }
}

/// Where it runs, as its documents say it.
pub(super) fn host_of(facts: &Snapshot) -> StudyHost {
    // Not the host's own name: this goes into files that are shared.
    let name = pseudonym::of_this_machine();
    let kernel = facts.kernel.release.get().cloned().unwrap_or_else(|| "unknown".into());
    StudyHost { name, kernel, cpus: format!("CPUs {}", facts.cpus.all().collect::<CpuSet>()) }
}
