//! `wakewatt doctor`: look, measure, experiment, explain, report. The main job.
//!
//! On a recorded host it only looks. On a live one it measures wake-ups, loopback round trips and disk reads as it finds
//! them, then, if it may, turns the setting that matters most here back and forth in random order and measures again. The
//! steps are the lab's (`lab::doctor`); what they came to is judged, shown and kept here.

use crate::cli::DoctorArgs;
use crate::cli::from::Machine;
use crate::exit::{Code, Failure};
use crate::importing;
use crate::interrupt::Interrupt;
use crate::output::{self, Colour, Outlet};
use crate::progress::Progress;
use crate::report::{self, Report, text::Style, verdict};
use crate::saved::{self, Masking};
use anyhow::Result;
use std::path::PathBuf;
use std::time::SystemTime;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::rules::{Answer, Ruling, Weight, judge};
use wakewatt_core::samples::experiment::ExperimentRun;
use wakewatt_core::samples::not_done::{NotDone, Step, Why};
use wakewatt_core::source::Source;
use wakewatt_host::clock::monotonic_ns;
use wakewatt_lab::doctor::{self, DoctorPlan};
use wakewatt_words::{say, spoken};
use watching::Shown;

mod preflight;
mod sessions;
mod watching;

pub use preflight::Document as PreflightDocument;

/// The report's name when none is given.
const DEFAULT_REPORT: &str = "wakewatt-report.html";

/// Runs it.
pub fn run(args: &DoctorArgs, colour: Colour) -> Result<Code> {
    if args.preflight {
        return preflight::run(args, colour);
    }
    if let Some(n) = args.sessions {
        return sessions::run(args, n, colour);
    }
    let start_at_ns = monotonic_ns();
    let interrupt = Interrupt::listen()?;
    let report_file = report_file(args)?;
    let imported = match args.from.machine() {
        Machine::Texts { files, host } => Some(importing::read(files, host)?),
        Machine::Here | Machine::Recorded(_) | Machine::Tree(_) => None,
    };
    if let Some(imported) =
        imported.as_ref().filter(|imported| !imported.document.files.is_empty() && imported.is_empty())
    {
        let n: usize = imported.document.files.iter().map(|file| file.n_lines).sum();
        return Err(Failure::error(
            Code::BadFile,
            spoken(|| say!("nothing was understood of {n} lines; wakewatt import names them")),
        ));
    }
    let src: Box<dyn Source> = match &imported {
        Some(imported) => Box::new(imported.facts.tree.clone()),
        None => super::open(&args.from)?,
    };
    saved::may_stream(args.save.as_deref());
    let has_file = args.save.is_some() || report_file.is_some();
    let mut masking = has_file.then(|| Masking::start("doctor", &*src, args.unmasked));
    let mut saving = saved::with(args.save.as_deref(), masking.as_ref())?;
    // Read once: what the file says of the machine the page says too.
    let facts = masking.as_ref().map_or_else(|| Snapshot::read(&*src, |_| true), Masking::facts);
    let mut evidence = Evidence { facts, ..Evidence::default() };
    if src.is_live() {
        measure(args, start_at_ns, &*src, &mut evidence, &interrupt);
    } else {
        evidence.not_done.push(NotDone::new(Step::Measurements, Why::RecordedHost));
        evidence.not_done.push(NotDone::new(Step::Experiment, Why::RecordedHost));
    }
    if let Some(imported) = &imported {
        evidence.samples = imported.samples.clone();
        evidence.not_done.extend(imported.not_done());
    }
    let mut rulings = judge(&evidence);
    if let Some(imported) = &imported {
        let cited = imported.facts.cite(&mut rulings);
        masking.iter_mut().for_each(|masking| masking.cite(cited.clone()));
        saving.iter_mut().for_each(|saving| saving.cite(cited.clone()));
    }
    let report = Report::new(
        report::title(&evidence.facts),
        humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        evidence,
        rulings,
    );
    // A result that nobody could read must not take the files, or the word that something was not restored, with it.
    let own = output::settled(
        show(args, &report, interrupt.is_set(), colour),
        code(args, &report, src.is_live(), &interrupt),
    );
    let own = saving.map_or(own, |saving| saving.finish_with(&report.evidence, own));
    let page = report_file.zip(masking);
    let written = page.map(|(file, masking)| write_report(&masking.page(&report.evidence, None)?, &file)).transpose();
    if let Err(error) = written {
        output::complain(&format!("{error:#}"));
        return Ok(if own == Code::Fine { Code::BadFile } else { own });
    }
    Ok(own)
}

fn report_file(args: &DoctorArgs) -> Result<Option<Outlet>> {
    if args.no_report {
        return Ok(None);
    }
    let file: PathBuf = args.output.clone().unwrap_or_else(|| DEFAULT_REPORT.into());
    match Outlet::open(&file, "-o") {
        Ok(outlet) => Ok(Some(outlet)),
        Err(why) if args.output.is_some() => {
            Err(Failure::error(Code::BadFile, spoken(|| say!("{why}, or say --no-report; nothing was measured"))))
        }
        Err(why) => {
            output::remark(&spoken(|| say!("No HTML report: {why}.")));
            Ok(None)
        }
    }
}

fn measure(args: &DoctorArgs, start_at_ns: u64, src: &dyn Source, evidence: &mut Evidence, interrupt: &Interrupt) {
    let plan = DoctorPlan {
        is_read_only: args.read_only,
        is_quick: args.quick,
        seed: args.seed,
        wait_quiet_ns: args.wait_quiet,
        start_at_ns,
    };
    let bar = Progress::start("doctor");
    doctor::measure(&plan, interrupt.lab(src, &bar), &Shown(&bar), evidence);
}

fn show(args: &DoctorArgs, report: &Report, is_interrupted: bool, colour: Colour) -> Result<()> {
    let style = Style { width: output::width().min(100), is_coloured: colour.is_on() };
    output::print(&match args {
        DoctorArgs { json: true, .. } => report.to_json("doctor")?,
        DoctorArgs { markdown: true, .. } => report.to_markdown(),
        _ if is_interrupted => report::text::interrupted(report, style),
        DoctorArgs { brief: true, .. } => report::text::brief(report, style),
        _ => report.to_text(style),
    })
}

fn write_report(report: &Report, file: &Outlet) -> Result<()> {
    file.write(&report.to_html()?)?;
    output::remark(&spoken(|| say!("Report: {path}", path = file.path().display())));
    Ok(())
}

fn code(args: &DoctorArgs, report: &Report, is_live: bool, interrupt: &Interrupt) -> Code {
    let evidence = &report.evidence;
    let is_restored = evidence.samples.all_experiments().all(ExperimentRun::is_restored)
        && evidence.samples.idle_states.iter().all(|costs| costs.not_restored.is_empty());
    let limit = match args.fail_on.as_deref() {
        Some("problem") => Some(Weight::Problem),
        Some("risk") => Some(Weight::Risk),
        Some(_) => Some(Weight::Note),
        None => None,
    };
    let is_heavy = |r: &Ruling| matches!(&r.answer, Answer::Yes(finding) if limit.is_some_and(|l| finding.weight <= l));
    if !is_restored {
        Code::NotRestored
    } else if interrupt.is_set() {
        Code::Interrupted
    } else if report.rulings.iter().any(is_heavy) {
        Code::Findings
    } else if report.verdict().kind == verdict::Kind::NoExperiment
        && !args.read_only
        && is_live
        && report.evidence.samples.wakeups.is_empty()
    {
        Code::CouldNotMeasure
    } else {
        Code::Fine
    }
}
