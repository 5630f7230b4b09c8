//! Run files on disk: `--save` writes one, `report` and `compare` read them.
//!
//! The facts are taken before anything is measured, because measuring moves counters and an experiment moves settings. Where
//! the file goes is tried then, too: five minutes of measuring must not end in "permission denied". What was written is
//! read again before it is written, so a saved run is one that can be opened.

use crate::exit::{Code, Failure};
use crate::output::{self, Outlet};
use crate::report::{self, Report};
use anyhow::Result;
use std::path::Path;
use std::time::SystemTime;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::record::cited::{self, Cited};
use wakewatt_core::record::run_file::RunFile;
use wakewatt_core::rules::judge;
use wakewatt_core::samples::Samples;
use wakewatt_core::source::Source;
use wakewatt_core::visible;
use wakewatt_host::input;
use wakewatt_lab::capture::{Captured, captured};
use wakewatt_words::{say, spoken, word};

/// What files may say of a machine: its facts, taken before anything is measured, and the names that are masked in them. One rule for
/// run files and pages, so that neither says what the other hides.
#[derive(Clone)]
pub struct Masking {
    command: String,
    host: Captured,
    cited: Vec<Cited>,
    is_unmasked: bool,
}

impl Masking {
    /// Takes the facts. `command` is the command without its options: `measure disk`.
    pub fn start(command: &str, src: &dyn Source, is_unmasked: bool) -> Masking {
        Masking { command: command.into(), host: captured(src, false), cited: Vec::new(), is_unmasked }
    }

    /// The facts as they were taken for it, with nothing masked: what the terminal shows agrees with the files.
    pub fn facts(&self) -> Snapshot {
        self.host.facts.clone()
    }

    /// Which imported lines its findings rest on.
    pub fn cite(&mut self, cited: Vec<Cited>) {
        self.cited = cited;
    }

    fn run(&self, evidence: &Evidence, made_at: String) -> Result<RunFile> {
        let (host, names) = (self.host.text.clone(), self.host.names.clone());
        Ok(RunFile::of_imported(evidence, host, names, &self.command, made_at, self.cited.clone())?)
    }

    /// The samples of a page that has no facts, masked like one.
    pub fn samples(&self, samples: Samples) -> Result<Samples> {
        if self.is_unmasked {
            return Ok(samples);
        }
        let evidence = Evidence { samples, ..Evidence::default() };
        Ok(self.run(&evidence, String::new())?.samples)
    }

    /// What the head of a page says of it.
    pub fn remark(&self) -> &'static str {
        match self.is_unmasked {
            true => word!("UNMASKED: holds addresses and names, do not share"),
            false => word!("serial numbers, addresses and names are masked"),
        }
    }

    /// A page of these facts and samples, masked as a run file of them is, unless asked otherwise; its head says which.
    pub fn page(&self, evidence: &Evidence, title: Option<String>) -> Result<Report> {
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let (evidence, cited) = if self.is_unmasked {
            (evidence.clone(), self.cited.clone())
        } else {
            let run = self.run(evidence, now.clone())?;
            (run.evidence(&evidence.facts.origin)?, run.cited)
        };
        let mut rulings = judge(&evidence);
        cited::cite(&mut rulings, &cited);
        let title = title.unwrap_or_else(|| report::title(&evidence.facts));
        Ok(Report::new(title, format!("{now}; {}", self.remark()), evidence, rulings))
    }
}

/// A run that will be saved.
pub struct Saving {
    outlet: Outlet,
    masking: Masking,
}

/// For commands that run none of the user's: `--save -` sends the run to standard output, and their results to standard error.
pub fn may_stream(file: Option<&Path>) {
    if file == Some(Path::new("-")) {
        output::leave_standard_output();
    }
}

/// Takes the facts, if a file was asked for. `command` is the command without its options: `measure disk`.
pub fn start(file: Option<&Path>, command: &str, src: &dyn Source) -> Result<Option<Saving>> {
    Ok(outlet(file)?.map(|outlet| Saving { outlet, masking: Masking::start(command, src, false) }))
}

/// The same with facts that are taken already, if a file was asked for.
pub fn with(file: Option<&Path>, masking: Option<&Masking>) -> Result<Option<Saving>> {
    Ok(outlet(file)?.zip(masking.cloned()).map(|(outlet, masking)| Saving { outlet, masking }))
}

fn outlet(file: Option<&Path>) -> Result<Option<Outlet>> {
    let Some(file) = file else { return Ok(None) };
    if file == Path::new("-") && !output::is_standard_output_left() {
        return Err(Failure::error(
            Code::Usage,
            spoken(|| word!("--save -: results go to standard output; name a file")),
        ));
    }
    let outlet = Outlet::open(file, "--save")
        .map_err(|why| Failure::error(Code::BadFile, spoken(|| say!("{why}; nothing was measured"))))?;
    Ok(Some(outlet))
}

/// The one line for a command that measures nothing before: facts and samples at once.
pub fn save(file: Option<&Path>, command: &str, src: &dyn Source, evidence: &Evidence) -> Result<()> {
    start(file, command, src)?.map_or(Ok(()), |saving| saving.finish(evidence))
}

impl Saving {
    /// What its facts and names are.
    pub fn masking(&self) -> &Masking {
        &self.masking
    }

    /// Which imported lines its findings rest on.
    pub fn cite(&mut self, cited: Vec<Cited>) {
        self.masking.cite(cited);
    }

    /// Writes the file.
    pub fn finish(&self, evidence: &Evidence) -> Result<()> {
        let made_at = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let run = self.masking.run(evidence, made_at)?;
        let text = output::json("run", &run)?;
        let name = self.outlet.path().display();
        RunFile::read(&text).map_err(|e| {
            Failure::error(
                Code::BadFile,
                spoken(|| say!("{name}: not written, because it could not be read again: {e}")),
            )
        })?;
        self.outlet.write(&text)?;
        if self.outlet.path() != Path::new("-") {
            output::remark(&spoken(|| say!("Run: {name}; read it with: wakewatt report {name}")));
        }
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
    RunFile::is_one(&String::from_utf8_lossy(&input::front(path, input::RUN).unwrap_or_default()))
}

/// Reads a run file and its facts.
pub fn open(path: &Path) -> Result<(RunFile, Evidence)> {
    let fail = |why: String| Failure::error(Code::BadFile, format!("{}: {why}", path.display()));
    let text = input::read_text(path, input::RUN)?;
    let run = RunFile::read(&text).map_err(|e| fail(e.to_string()))?;
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let title = clean(&format!("run {name} ({}, {})", run.command, run.made_at));
    let mut evidence = run.evidence(&title).map_err(|e| fail(e.to_string()))?;
    let made_at = humantime::parse_rfc3339_weak(&run.made_at).ok();
    evidence.made_at_s = made_at.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok()).map(|at| at.as_secs());
    Ok((run, evidence))
}

/// Foreign text without control characters, and not without end.
fn clean(text: &str) -> String {
    visible::line(text).chars().take(200).collect()
}
