//! `wakewatt trace`: what each wake-up costs, by the idle state the CPU was leaving. Arguments to a plan, and what it came to.

#[cfg(feature = "parquet")]
mod export;
mod file;
#[cfg(feature = "parquet")]
mod parquet;

pub use file::TraceInfo;

use crate::cli::trace::{By, TraceArgs, TraceFile};
use crate::exit::{Code, End, Failure};
use crate::interrupt::Interrupt;
use crate::output::{self, Colour, Outlet};
use crate::progress::Progress;
use crate::report::trace::TraceReport;
use crate::saved::Masking;
use anyhow::{Context, Result};
use std::path::Path;
use std::time::SystemTime;
use wakewatt_core::samples::Samples;
use wakewatt_core::samples::payers::PayerKind;
use wakewatt_core::samples::traced::Traced;
use wakewatt_core::units::show_ns;
use wakewatt_host::live::Live;
use wakewatt_lab::context::Unheard;
use wakewatt_lab::trace::{self, RecordPlan, Trace, TracePlan, Whose};

/// Runs it.
pub fn run(args: &TraceArgs, colour: Colour) -> Result<End> {
    match &args.file {
        Some(TraceFile::Info(args)) => return file::info(args).map(End::Own),
        Some(TraceFile::Export(args)) => return export(args).map(End::Own),
        None => {}
    }
    if args.recording.record.as_deref() == Some(Path::new("-")) {
        if !args.command.is_empty() || args.recording.resume {
            let why = "--record -: standard output is the command's, or there is nothing to go on with; name a file";
            return Err(Failure::error(Code::Usage, why));
        }
        output::leave_standard_output();
    }
    let interrupt = Interrupt::listen()?;
    let src = Live::this_machine();
    let page = args.output.as_deref().map(|file| Outlet::open(file, "-o")).transpose()?;
    let stacks = args.stacks.as_deref().map(|file| Outlet::open(file, "--stacks")).transpose()?;
    let masking = (page.is_some() || stacks.is_some()).then(|| Masking::start("trace", &src, args.unmasked));
    let done = {
        let progress = Progress::start("trace");
        trace::trace(interrupt.lab(&src, &progress), &plan(args))?
    };
    let Trace { traced, command, exit_code, is_record_refused } = done;
    let shown = show(args, &traced, command.is_some(), colour);
    let shown = shown.and_then(|()| masking.map_or(Ok(()), |masking| write(args, &masking, (page, stacks), &traced)));
    if let Some(mut command) = command {
        // The command's code is what was promised; ours would hide it.
        output::settled(shown, Code::Fine);
        // `--for` ended first: the command goes on, and so do we, no longer attached.
        let code = exit_code.unwrap_or_else(|| command.wait(interrupt.lab(&src, &Unheard)));
        return Ok(End::Command(code));
    }
    if is_record_refused && !interrupt.is_set() {
        return Ok(output::settled(shown, Code::BadFile).into());
    }
    let is_empty = traced.states.is_empty() && traced.rows.is_empty();
    let own = match (interrupt.is_set(), is_empty) {
        (true, _) => Code::Interrupted,
        (false, true) => Code::CouldNotMeasure,
        (false, false) => Code::Fine,
    };
    Ok(End::Own(output::settled(shown, own)))
}

#[cfg(feature = "parquet")]
use export::run as export;

#[cfg(not(feature = "parquet"))]
fn export(_: &crate::cli::trace::ExportArgs) -> Result<Code> {
    Err(crate::features::Feature::Parquet.lacking("trace export"))
}

fn plan(args: &TraceArgs) -> TracePlan {
    let whose = match args {
        _ if !args.pid.is_empty() => Whose::Processes(args.pid.clone()),
        TraceArgs { cgroup: Some(path), .. } => Whose::Cgroup(path.clone()),
        _ if !args.command.is_empty() => Whose::Command(args.command.clone()),
        _ => Whose::Machine,
    };
    let record = args.recording.record.as_ref().map(|path| RecordPlan {
        path: path.clone(),
        every: args.recording.record_every,
        max_mib: args.recording.record_mib,
        is_resumed: args.recording.resume,
        is_overwriting: args.recording.force,
        is_exact: args.recording.exact,
    });
    let (for_ns, window_ns) = (args.for_ns, args.window);
    let by = match args.by {
        By::Process => None,
        By::Cgroup => Some(PayerKind::Cgroup),
        By::Pod => Some(PayerKind::Pod),
        By::Container => Some(PayerKind::Container),
    };
    let has_chains = args.stacks.is_some();
    TracePlan { whose, for_ns, by, has_chains, window_ns, is_empty: args.empty, has_hardware: args.hardware, record }
}

/// The page and the folded stacks, where they were asked for, masked like every file.
fn write(
    args: &TraceArgs,
    masking: &Masking,
    (page, stacks): (Option<Outlet>, Option<Outlet>),
    traced: &Traced,
) -> Result<()> {
    let samples = masking.samples(Samples { trace: Some(traced.clone()), ..Samples::default() })?;
    let Some(traced) = &samples.trace else { return Ok(()) };
    if let Some(page) = page {
        page.write(&report(args, traced, masking.remark()).to_html().context("the HTML page")?)?;
        output::remark(&format!("Report: {}", page.path().display()));
    }
    if let Some((stacks, chains)) = stacks.zip(traced.chains.as_ref()) {
        stacks.write(&chains.folded())?;
        output::remark(&format!("Stacks, in nanoseconds lost: {}", stacks.path().display()));
    }
    Ok(())
}

fn report<'a>(args: &TraceArgs, traced: &'a Traced, remark: &str) -> TraceReport<'a> {
    let now = humantime::format_rfc3339_seconds(SystemTime::now());
    TraceReport {
        title: format!("wake-ups of {} over {}", traced.scope, show_ns(traced.window.length_ns())),
        generated_at: format!("{now}; {remark}"),
        traced,
        is_by_cpu: args.by_cpu,
    }
}

fn show(args: &TraceArgs, traced: &Traced, has_command: bool, colour: Colour) -> Result<()> {
    let report = report(args, traced, "");
    if args.json {
        return output::json("trace", traced).and_then(|text| output::print(&text));
    }
    let text = report.to_text(output::width(), colour.is_on());
    // The command's own output has standard output for itself.
    if has_command {
        output::remark(&text);
        return Ok(());
    }
    output::print(&text)
}
