//! Run files of several sessions, read and joined: for `experiment replicate` and for `doctor --sessions`.

use crate::exit::{Code, Failure};
use crate::saved;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use wakewatt_core::compare::replication::{Replication, Session, replicate};
use wakewatt_core::evidence::Evidence;

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

/// What they say together.
pub(crate) fn joined(all: &[Given]) -> Result<Replication> {
    let read = |given: &Given| -> Result<(Option<u64>, Evidence)> {
        let (run, evidence) = saved::open(&given.file)?;
        let at = humantime::parse_rfc3339_weak(&run.made_at).ok();
        let made_at_s = at.and_then(|at| at.duration_since(UNIX_EPOCH).ok()).map(|since| since.as_secs());
        Ok((made_at_s, evidence))
    };
    let runs: Vec<(Option<u64>, Evidence)> = all.iter().map(read).collect::<Result<_>>()?;
    let sessions: Vec<Session<'_>> = all
        .iter()
        .zip(&runs)
        .map(|(given, (made_at_s, evidence))| Session {
            name: given.file.display().to_string(),
            host: given.host.clone(),
            made_at_s: *made_at_s,
            evidence,
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
