//! Runs of several sessions, read and joined: for `experiment replicate` and for `doctor --sessions`.
//!
//! A run is a file (`--save`) or the folder in which an experiment keeps its blocks (`--run-dir`). A folder keeps the name of its host, a
//! file keeps none, so where both are given the caller has to say which are of one machine.

use crate::exit::{Code, Failure};
use crate::saved;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use wakewatt_core::compare::replication::{Replication, Session, replicate};
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::Samples;
use wakewatt_core::samples::study::Conclusions;
use wakewatt_lab::kept_session;
use wakewatt_lab::refusal::Refusal;

/// A run file, and its host where somebody named it.
pub(crate) struct Given {
    host: Option<String>,
    file: PathBuf,
}

impl Given {
    /// `HOST=FILE`, or a file. What is there under the whole name is a file.
    pub(crate) fn parse(text: &str) -> Given {
        let named = text.split_once('=').filter(|(host, _)| !host.is_empty() && !Path::new(text).exists());
        match named {
            Some((host, file)) => Given { host: Some(host.into()), file: file.into() },
            None => Given { host: None, file: text.into() },
        }
    }

    /// A run of this machine.
    pub(crate) fn ours(file: PathBuf) -> Given {
        Given { host: Some("this machine".into()), file }
    }
}

/// A run as it was read.
struct Found {
    /// Whose it is, where the caller or the folder names it.
    host: Option<String>,
    made_at_s: Option<u64>,
    evidence: Evidence,
}

impl Given {
    fn read(&self) -> Result<Found> {
        if self.file.is_dir() {
            return self.folder();
        }
        let (run, evidence) = saved::open(&self.file)?;
        let at = humantime::parse_rfc3339_weak(&run.made_at).ok();
        let made_at_s = at.and_then(|at| at.duration_since(UNIX_EPOCH).ok()).map(|since| since.as_secs());
        Ok(Found { host: self.host.clone(), made_at_s, evidence })
    }

    fn folder(&self) -> Result<Found> {
        let kept = kept_session::read(&self.file).map_err(Refusal::from)?;
        let conclusions = Conclusions { name: kept.plan, host: kept.host.clone(), ..Conclusions::default() };
        let samples = Samples { experiment: Some(kept.run), conclusions: Some(conclusions), ..Samples::default() };
        let host = self.host.clone().unwrap_or(kept.host.name);
        Ok(Found { host: Some(host), made_at_s: kept.ended_at_s, evidence: Evidence::of(samples) })
    }
}

/// What they say together.
pub(crate) fn joined(all: &[Given]) -> Result<Replication> {
    let found: Vec<Found> = all.iter().map(Given::read).collect::<Result<_>>()?;
    let is_folder = |given: &&Given| given.file.is_dir();
    let unnamed = all.iter().find(|given| given.host.is_none());
    let is_mixed = all.iter().any(|given| is_folder(&given)) && !all.iter().all(|given| is_folder(&given));
    if let Some(unnamed) = unnamed.filter(|_| is_mixed) {
        let why = format!(
            "a run folder keeps the name of its host and a run file keeps none, so which runs are of one machine is not known: name \
             the host of each, as in HOST={}",
            unnamed.file.display()
        );
        return Err(Failure::error(Code::Usage, why));
    }
    let sessions: Vec<Session<'_>> = all
        .iter()
        .zip(&found)
        .map(|(given, found)| Session {
            name: given.file.display().to_string(),
            host: found.host.clone(),
            made_at_s: found.made_at_s,
            evidence: &found.evidence,
        })
        .collect();
    replicate(&sessions).map_err(|why| Failure::error(Code::Refused, why.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_may_be_named_before_its_file() {
        let given = Given::parse("db7=a.run");
        assert_eq!((given.host.as_deref(), given.file.as_path()), (Some("db7"), Path::new("a.run")));
        assert_eq!(Given::parse("a.run").host, None);
        let folder = tempfile::tempdir().unwrap();
        let odd = folder.path().join("x=1.run");
        std::fs::write(&odd, "").unwrap();
        assert_eq!(Given::parse(odd.to_str().unwrap()).file, odd);
    }
}
