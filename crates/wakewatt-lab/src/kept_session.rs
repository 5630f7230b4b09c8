//! The folder of a run, read as a session: its blocks and whose they are, for joining it with other sessions.
//!
//! Reading leaves the folder as it is: a last line that a kill cut short is passed over, where going on with the run would cut it
//! off. Nothing in it is carried out, so it may be anybody's. When it was made is when its last block was written.

use crate::run_folder::{BLOCKS, Head, RunFolderError, blocks_of, head_of};
use serde::Deserialize;
use std::path::Path;
use std::time::UNIX_EPOCH;
use wakewatt_core::samples::experiment::ExperimentRun;
use wakewatt_core::samples::study::StudyHost;
use wakewatt_host::input;

/// A run that was kept in a folder.
#[derive(Debug)]
pub struct KeptSession {
    /// Name of its plan.
    pub plan: String,
    /// The machine it ran on.
    pub host: StudyHost,
    /// Arms, metrics and blocks; what follows from them is computed by whoever joins them.
    pub run: ExperimentRun,
    /// When its last block was written, in seconds since 1970; none where the file system does not say.
    pub ended_at_s: Option<u64>,
}

/// Of a plan, only this is of interest here: its arms may name profiles that are not there any more.
#[derive(Deserialize)]
struct Named {
    name: String,
}

/// Reads it.
pub fn read(path: &Path) -> Result<KeptSession, RunFolderError> {
    let bytes = |name: &str| -> Result<Vec<u8>, RunFolderError> {
        let why = |e: input::InputError| {
            let hint = "is it the folder of a run (wakewatt-runs/NAME-TIME, or --run-dir)?";
            RunFolderError::Bad(format!("{e}; {hint}"))
        };
        input::read(&path.join(name), input::KEPT).map_err(why)
    };
    let head: Head = head_of(path, &bytes(crate::run_folder::HEAD)?)?;
    let (blocks, _) = blocks_of(path, &bytes(BLOCKS)?)?;
    let named: Named = toml::from_str(&head.plan)
        .map_err(|e| RunFolderError::Bad(format!("{}: its plan has no name: {e}", path.display())))?;
    let ended = std::fs::metadata(path.join(BLOCKS)).and_then(|meta| meta.modified()).ok();
    let run = ExperimentRun {
        arms: head.arms,
        metrics: head.metrics,
        blocks: blocks.into_iter().map(|kept| kept.block).collect(),
        seed: head.seed,
        ..ExperimentRun::default()
    };
    Ok(KeptSession {
        plan: named.name,
        host: head.host,
        run,
        ended_at_s: ended.and_then(|at| at.duration_since(UNIX_EPOCH).ok()).map(|since| since.as_secs()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::KeptBlock;
    use crate::run_folder::RunFolder;
    use wakewatt_core::samples::experiment::{Arm, Block, Metric};

    #[test]
    fn a_folder_is_a_session_and_stays_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        let arm = |id: &str| Arm { id: id.into(), title: id.into(), settings: vec![] };
        let host = StudyHost { name: "a".into(), kernel: "6.1".into(), cpus: "2".into() };
        let plan = "format = 1\nname = \"mine\"\nquestion = \"?\"\n";
        let mut head = Head::new(host, 3, plan, (vec![arm("found"), arm("poll")], vec![]));
        head.metrics = vec![Metric::latency("w.p50", "w")];
        let mut folder = RunFolder::create(&path, &head).unwrap();
        for (round, id) in [(0, "found"), (0, "poll")] {
            let block = Block { round, arm: id.into(), values: vec![Some(2.0)], ..Block::default() };
            folder.keep(&KeptBlock { block, latencies: vec![], levels: vec![], spent_ns: 1 }).unwrap();
        }
        let mut text = std::fs::read(path.join(BLOCKS)).unwrap();
        text.extend_from_slice(b"{\"block\":{\"rou");
        std::fs::write(path.join(BLOCKS), &text).unwrap();
        let session = read(&path).unwrap();
        assert_eq!((session.plan.as_str(), session.host.name.as_str(), session.run.blocks.len()), ("mine", "a", 2));
        assert_eq!(session.run.pairs(0, "poll"), [(2.0, 2.0)]);
        assert!(session.ended_at_s.is_some());
        assert_eq!(std::fs::read(path.join(BLOCKS)).unwrap(), text, "nothing was cut off");
        let why = read(dir.path()).unwrap_err().to_string();
        assert!(why.contains("is it the folder of a run"), "{why}");
    }
}
