//! Where a run is kept, so that one that was killed goes on: the plan as it was, the head, and every finished block.
//!
//! `plan.toml` is a copy of the plan's text, `head.json` says what must be the same to go on (host, kernel, plan, arms,
//! metrics, seed), `blocks.jsonl` has a line per finished measurement, made durable at most once a second. A line that a
//! kill cut short is cut off when the run is resumed; a full disk leaves the whole lines before it.
//!
//! A kept plan names commands, and going on runs them. So a folder that is continued must be the caller's, in nobody
//! else's reach, and its files are read through the folder that was looked at.

use crate::experiment::{Calibrated, KeptBlock};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use wakewatt_core::samples::experiment::{Arm, Metric};
use wakewatt_core::samples::study::{Skipped, StudyHost};
use wakewatt_host::input;
use wakewatt_host::place::Folder;
use wakewatt_host::trust::{Caller, Distrust, Fault, TrustedFolder};

const FORMAT: u32 = 2;
const PLAN: &str = "plan.toml";
pub(crate) const HEAD: &str = "head.json";
pub(crate) const BLOCKS: &str = "blocks.jsonl";

/// What must not change within a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    format: u32,
    /// Where it runs.
    pub host: StudyHost,
    /// Of the order.
    pub seed: u64,
    /// The text of the plan.
    pub plan: String,
    /// What is compared, with what is written.
    pub arms: Vec<Arm>,
    /// What did not take part.
    pub skipped: Vec<Skipped>,
    /// What is measured.
    pub metrics: Vec<Metric>,
    /// Wall time for everything.
    pub budget_ns: u64,
    /// Is an arm that cannot be set an error? It may have been said on the command line.
    #[serde(default)]
    pub is_strict: bool,
    /// What was calibrated, per workload.
    #[serde(default)]
    pub calibrated: Vec<Option<Calibrated>>,
}

impl Head {
    /// Of a run that begins.
    pub fn new(host: StudyHost, seed: u64, plan: &str, (arms, skipped): (Vec<Arm>, Vec<Skipped>)) -> Head {
        let (metrics, calibrated) = (Vec::new(), Vec::new());
        let (plan, is_strict) = (plan.into(), false);
        Head { format: FORMAT, host, seed, plan, arms, skipped, metrics, budget_ns: 0, is_strict, calibrated }
    }

    /// Why a run with this head cannot be continued by one with that.
    pub fn differs(&self, now: &Head) -> Option<String> {
        let differ = |what: &str, then: &str, now: &str| {
            (then != now).then(|| format!("{what} was {then} when the run began and is {now} now"))
        };
        let names = |arms: &[Arm]| arms.iter().map(|a| a.id.clone()).collect::<Vec<_>>().join(", ");
        let ids = |metrics: &[Metric]| metrics.iter().map(|m| m.id.clone()).collect::<Vec<_>>().join(", ");
        differ("the host", &self.host.name, &now.host.name)
            .or_else(|| differ("the kernel", &self.host.kernel, &now.host.kernel))
            .or_else(|| differ("the CPUs", &self.host.cpus, &now.host.cpus))
            .or_else(|| (self.plan != now.plan).then(|| "the plan has been edited since the run began".to_string()))
            .or_else(|| differ("the list of arms", &names(&self.arms), &names(&now.arms)))
            .or_else(|| {
                let (then, now) = self.arms.iter().zip(&now.arms).find(|(a, b)| a.settings != b.settings)?;
                differ(&format!("what arm {} writes", then.id), &then.settings.join("; "), &now.settings.join("; "))
            })
            .or_else(|| differ("the list of metrics", &ids(&self.metrics), &ids(&now.metrics)))
    }
}

/// A folder that cannot be continued, or begun.
#[derive(Debug, thiserror::Error)]
pub enum RunFolderError {
    /// Somebody else may have written the plan in it.
    #[error(
        "{0}; a kept plan runs commands, so only a folder of your own, with files of your own, can be continued: begin a new run"
    )]
    NotOurs(Distrust),
    /// It is not whole, or cannot be read or written.
    #[error("{0}")]
    Bad(String),
}

impl From<String> for RunFolderError {
    fn from(why: String) -> RunFolderError {
        RunFolderError::Bad(why)
    }
}

/// A run on disk.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// The folder as it was looked at.
    trusted: TrustedFolder,
    blocks: Option<(File, u64)>,
    synced_at: Option<Instant>,
}

/// Measurements are made durable this often.
const SYNC_EVERY: Duration = Duration::from_secs(1);

fn fail(path: &Path, doing: &str, e: &dyn std::fmt::Display) -> String {
    format!("{}: cannot {doing}: {e}", path.display())
}

/// Read as text, as all else is: each other way to read a type is more code in the binary.
fn document<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let text = std::str::from_utf8(bytes).map_err(|e| e.to_string())?;
    serde_json::from_str(text).map_err(|e| e.to_string())
}

/// The head of the run in this folder.
pub(crate) fn head_of(path: &Path, bytes: &[u8]) -> Result<Head, RunFolderError> {
    let shown = path.join(HEAD);
    let head: Head = document(bytes).map_err(|e| fail(&shown, "read", &e))?;
    if head.format != FORMAT {
        let why = format!("{}: format {}, this wakewatt knows {FORMAT}", shown.display(), head.format);
        return Err(RunFolderError::Bad(why));
    }
    Ok(head)
}

/// The blocks of the run in this folder, and how many bytes of whole lines they are.
pub(crate) fn blocks_of(path: &Path, bytes: &[u8]) -> Result<(Vec<KeptBlock>, usize), RunFolderError> {
    let (mut blocks, mut n_good) = (Vec::new(), 0);
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        let block = document(line);
        match block {
            Ok(block) if line.ends_with(b"\n") => blocks.push(block),
            // Cut short by a kill, or never made durable: the last one may be.
            _ if n_good + line.len() == bytes.len() => break,
            Ok(_) => break,
            Err(e) => {
                let (shown, line) = (path.join(BLOCKS), blocks.len() + 1);
                return Err(RunFolderError::Bad(format!("{}: line {line}: {e}", shown.display())));
            }
        }
        n_good += line.len();
    }
    Ok((blocks, n_good))
}

impl RunFolder {
    /// Makes the folder; one that holds a run already is refused.
    pub fn create(path: &Path, head: &Head) -> Result<RunFolder, RunFolderError> {
        if path.join(HEAD).exists() {
            let shown = path.display();
            let advice = format!("go on with it (wakewatt experiment resume {shown}) or name another --run-dir");
            return Err(RunFolderError::Bad(format!("{shown}: holds a run already; {advice}")));
        }
        let folder = Folder::make(path).map_err(|e| e.to_string())?;
        // One that somebody else has laid out could not be continued.
        let trusted = Caller::this_process().or_behind_sudo().open_folder(path).map_err(RunFolderError::NotOurs)?;
        let write = |name: &str, bytes: &[u8]| {
            folder.place(name).and_then(|place| place.write(bytes)).map_err(|e| e.to_string())
        };
        let bytes = serde_json::to_vec_pretty(head).map_err(|e| fail(&path.join(HEAD), "write", &e))?;
        write(PLAN, head.plan.as_bytes())?;
        write(BLOCKS, b"")?;
        // Last: a folder with a head is whole.
        write(HEAD, &bytes)?;
        Ok(RunFolder { path: path.into(), trusted, blocks: None, synced_at: None })
    }

    /// Opens one to go on, or to read: its head and its blocks.
    pub fn open(path: &Path) -> Result<(RunFolder, Head, Vec<KeptBlock>), RunFolderError> {
        let missing = |at: &Path| format!("{}: not there; is {} the folder of a run?", at.display(), path.display());
        let distrusted = |distrust: Distrust| match &distrust.fault {
            Fault::Unopened(rustix::io::Errno::NOENT) => RunFolderError::Bad(missing(&distrust.path)),
            Fault::Unopened(_) => RunFolderError::Bad(distrust.to_string()),
            _ => RunFolderError::NotOurs(distrust),
        };
        let trusted = Caller::this_process().or_behind_sudo().open_folder(path).map_err(distrusted)?;
        let read = |name: &str| -> Result<Vec<u8>, RunFolderError> {
            let file = trusted.open(name, OFlags::RDONLY).map_err(distrusted)?;
            input::look_and_read(file, &path.join(name), input::KEPT).map_err(|e| RunFolderError::Bad(e.to_string()))
        };
        let head = head_of(path, &read(HEAD)?)?;
        if read(PLAN)? != head.plan.as_bytes() {
            let advice = "has been edited since the run began; begin a new run with the new plan";
            return Err(RunFolderError::Bad(format!("{}: {advice}", path.join(PLAN).display())));
        }
        let bytes = read(BLOCKS)?;
        let (blocks, n_good) = blocks_of(path, &bytes)?;
        let mut folder = RunFolder { path: path.into(), trusted, blocks: None, synced_at: None };
        if n_good < bytes.len() {
            folder
                .file()?
                .0
                .set_len(n_good as u64)
                .map_err(|e| fail(&path.join(BLOCKS), "cut the last line of", &e))?;
            folder.blocks = None;
        }
        Ok((folder, head, blocks))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn file(&mut self) -> Result<&mut (File, u64), String> {
        if self.blocks.is_none() {
            let path = self.path.join(BLOCKS);
            let file = self.trusted.open(BLOCKS, OFlags::WRONLY | OFlags::APPEND).map_err(|e| e.to_string())?;
            let length = file.metadata().map_err(|e| fail(&path, "look at", &e))?.len();
            self.blocks = Some((file, length));
        }
        self.blocks.as_mut().ok_or_else(|| "no file".into())
    }

    /// Appends a measurement; where that fails, what was there before is still whole. It is made durable once a second: a
    /// power failure costs a second of short measurements, and a sync between them would disturb what they measure.
    pub fn keep(&mut self, block: &KeptBlock) -> Result<(), String> {
        let path = self.path.join(BLOCKS);
        let mut line = serde_json::to_vec(block).map_err(|e| fail(&path, "write", &e))?;
        line.push(b'\n');
        let is_due = self.synced_at.is_none_or(|at| at.elapsed() >= SYNC_EVERY);
        let (file, length) = self.file()?;
        let written = file.write_all(&line).and_then(|()| if is_due { file.sync_data() } else { Ok(()) });
        match written {
            Ok(()) => {
                *length += line.len() as u64;
                if is_due {
                    self.synced_at = Some(Instant::now());
                }
                Ok(())
            }
            Err(e) => {
                let _ = file.set_len(*length);
                Err(format!(
                    "{}: this block could not be kept: {e}; the earlier ones are whole: make room, then wakewatt experiment resume {}",
                    path.display(),
                    self.path.display()
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::samples::Window;
    use wakewatt_core::samples::experiment::Block;

    fn block(round: usize) -> KeptBlock {
        let block = Block {
            round,
            arm: "found".into(),
            window: Window::default(),
            values: vec![Some(0.1 + 0.2), None],
            ..Block::default()
        };
        KeptBlock { block, latencies: vec![("w".into(), "w".into(), vec![(5, 2)])], levels: vec![], spent_ns: 7 }
    }

    fn head() -> Head {
        let arm = Arm { id: "found".into(), title: "current settings".into(), settings: vec!["nothing".into()] };
        let host = StudyHost { name: "a".into(), kernel: "6.1".into(), cpus: "2".into() };
        Head::new(host, 3, "format = 1\n", (vec![arm], vec![]))
    }

    #[test]
    fn what_was_kept_comes_back_and_a_cut_line_is_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        let mut folder = RunFolder::create(&path, &head()).unwrap();
        folder.keep(&block(0)).unwrap();
        folder.keep(&block(1)).unwrap();
        assert!(RunFolder::create(&path, &head()).unwrap_err().to_string().contains("resume"));
        let mut text = std::fs::read(path.join(BLOCKS)).unwrap();
        text.extend_from_slice(b"{\"block\":{\"rou");
        std::fs::write(path.join(BLOCKS), &text).unwrap();
        let (mut folder, again, blocks) = RunFolder::open(&path).unwrap();
        assert_eq!((again, blocks), (head(), vec![block(0), block(1)]));
        folder.keep(&block(2)).unwrap();
        assert_eq!(RunFolder::open(&path).unwrap().2.len(), 3);
        text.splice(0..5, *b"rubbish");
        std::fs::write(path.join(BLOCKS), &text).unwrap();
        assert!(RunFolder::open(&path).unwrap_err().to_string().contains("line 1"));
        assert!(RunFolder::open(dir.path()).unwrap_err().to_string().contains("the folder of a run?"));
    }

    #[test]
    fn a_folder_in_somebody_elses_reach_is_not_gone_on_with() {
        use std::os::unix::fs::{PermissionsExt, chown, symlink};
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        RunFolder::create(&path, &head()).unwrap();
        let mode = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        let fault = |path: &Path| match RunFolder::open(path) {
            Err(RunFolderError::NotOurs(distrust)) => Some((distrust.path, distrust.fault)),
            Err(RunFolderError::Bad(why)) => panic!("{why}"),
            Ok(_) => None,
        };
        assert_eq!(fault(&path), None);
        for (name, good) in [("", 0o755), (HEAD, 0o644), (PLAN, 0o644), (BLOCKS, 0o644)] {
            let file = if name.is_empty() { path.clone() } else { path.join(name) };
            mode(&file, good | 0o002);
            assert_eq!(fault(&path), Some((file.clone(), Fault::Everybody)));
            mode(&file, good);
            if chown(&file, Some(1234), None).is_ok() {
                assert_eq!(fault(&path), Some((file.clone(), Fault::Owner(1234))));
                chown(&file, Some(rustix::process::geteuid().as_raw()), None).unwrap();
            }
        }
        symlink(&path, dir.path().join("link")).unwrap();
        assert_eq!(fault(&dir.path().join("link")).unwrap().1, Fault::Link);
        std::fs::rename(path.join(PLAN), dir.path().join("away")).unwrap();
        symlink(dir.path().join("away"), path.join(PLAN)).unwrap();
        assert_eq!(fault(&path), Some((path.join(PLAN), Fault::Link)));
        // Nor is a run begun in a folder that is everybody's.
        let open = dir.path().join("open");
        std::fs::create_dir(&open).unwrap();
        mode(&open, 0o777);
        assert!(matches!(RunFolder::create(&open, &head()), Err(RunFolderError::NotOurs(_))));
        assert_eq!(std::fs::read_dir(&open).unwrap().count(), 0);
    }

    #[test]
    fn a_full_disk_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        let mut folder = RunFolder::create(&path, &head()).unwrap();
        folder.blocks = Some((File::options().write(true).open("/dev/full").unwrap(), 0));
        let why = folder.keep(&block(0)).unwrap_err();
        assert!(why.contains("No space left") && why.contains("resume"), "{why}");
    }

    #[test]
    fn another_host_kernel_plan_or_arm_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(head().differs(&head()), None);
        let mut other = head();
        other.host.kernel = "6.2".into();
        assert!(head().differs(&other).unwrap().contains("the kernel was 6.1"));
        let mut other = head();
        other.arms[0].settings = vec!["more".into()];
        assert!(head().differs(&other).unwrap().contains("what arm found writes"));
        RunFolder::create(dir.path(), &head()).unwrap();
        std::fs::write(dir.path().join(PLAN), "format = 2").unwrap();
        assert!(RunFolder::open(dir.path()).unwrap_err().to_string().contains("edited"));
    }
}
