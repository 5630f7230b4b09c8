//! Run files on disk: `--save` writes one, `report` and `compare` read them.
//!
//! The facts are taken before anything is measured, because measuring moves counters and an experiment moves settings. Where
//! the file goes is tried then, too: five minutes of measuring must not end in "permission denied". What was written is
//! read again before it is written, so a saved run is one that can be opened.

use super::capture;
use crate::exit::{Code, Failure};
use crate::output;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::record::run_file::{MAX_BYTES, RunFile};
use wakewatt_core::source::Source;

/// A run that will be saved.
pub struct Saving {
    file: PathBuf,
    command: String,
    host: capture::Made,
}

/// Takes the facts, if a file was asked for. `command` is the command without its options: `measure disk`.
pub fn start(file: Option<&Path>, command: &str, src: &dyn Source) -> Result<Option<Saving>> {
    let Some(file) = file else { return Ok(None) };
    if file == Path::new("-") {
        return Err(Failure::error(Code::Usage, "--save -: results go to standard output; name a file"));
    }
    let folder = file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let meta = std::fs::metadata(file).ok();
    // What exists and is no plain file (a pipe, /dev/null) is written to as it is; a folder cannot be.
    let checked = if meta.as_ref().is_some_and(|m| !m.is_file()) { file } else { folder };
    let refused = rustix::fs::access(checked, rustix::fs::Access::WRITE_OK).err().map(|e| e.to_string());
    if let Some(why) = refused.or(meta.is_some_and(|m| m.is_dir()).then(|| "it is a folder".into())) {
        let text = format!("--save {}: {why}; nothing was measured, name another file", file.display());
        return Err(Failure::error(Code::BadFile, text));
    }
    Ok(Some(Saving { file: file.into(), command: command.into(), host: capture::made(src, false) }))
}

/// The one line for a command that measures nothing before: facts and samples at once.
pub fn save(file: Option<&Path>, command: &str, src: &dyn Source, evidence: &Evidence) -> Result<()> {
    start(file, command, src)?.map_or(Ok(()), |saving| saving.finish(evidence))
}

impl Saving {
    /// Writes the file.
    pub fn finish(&self, evidence: &Evidence) -> Result<()> {
        let made_at = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let run = RunFile::of(evidence, self.host.text.clone(), self.host.names.clone(), &self.command, made_at)?;
        let text = output::json("run", &run)?;
        let name = self.file.display();
        RunFile::read(&text).map_err(|e| {
            Failure::error(Code::BadFile, format!("{name}: not written, because it could not be read again: {e}"))
        })?;
        output::write_file(&self.file, &text)
            .map_err(|e| Failure::error(Code::BadFile, format!("--save {name}: {:#}", e.root_cause())))?;
        output::remark(&format!("Run: {name}; read it with: wakewatt report {name}"));
        Ok(())
    }

    /// Writes the file at the end of a command that has a code of its own to return: a failure is told and takes the
    /// place of `Fine` only.
    pub fn finish_with(&self, evidence: &Evidence, code: Code) -> Code {
        match self.finish(evidence) {
            Ok(()) => code,
            Err(error) => {
                output::complain(&format!("{error:#}"));
                if code == Code::Fine { Code::BadFile } else { code }
            }
        }
    }
}

/// Is this path a run file, as far as its first character tells? False where it cannot be read; opening it will say why.
pub fn is_run(path: &Path) -> bool {
    use std::io::Read;
    if !std::fs::metadata(path).is_ok_and(|m| m.is_file()) {
        return false;
    }
    let mut front = [0; 64];
    let n = std::fs::File::open(path).and_then(|mut f| f.read(&mut front)).unwrap_or(0);
    RunFile::is_one(&String::from_utf8_lossy(&front[..n]))
}

/// Reads a run file and its facts.
pub fn open(path: &Path) -> Result<(RunFile, Evidence)> {
    let fail = |why: String| Failure::error(Code::BadFile, format!("{}: {why}", path.display()));
    let meta = std::fs::metadata(path)
        .map_err(|e| fail(format!("{e}; make one with --save FILE of doctor, measure or load")))?;
    if !meta.is_file() {
        return Err(fail("not a file; give the FILE of --save".into()));
    }
    if meta.len() > MAX_BYTES as u64 {
        return Err(fail(format!("{} MiB is more than any run file", meta.len() >> 20)));
    }
    let bytes = std::fs::read(path).map_err(|e| fail(e.to_string()))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| fail("not a run file: it is not text; make one with --save FILE".into()))?;
    let run = RunFile::read(&text).map_err(|e| fail(e.to_string()))?;
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let title = clean(&format!("run {name} ({}, {})", run.command, run.made_at));
    let evidence = run.evidence(&title).map_err(|e| fail(e.to_string()))?;
    Ok((run, evidence))
}

/// Foreign text without control characters, and not without end.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).take(200).collect()
}
