//! `wakewatt load -- CMD`: arguments to a plan. The command's output passes through as it comes; its exit code is ours.

use super::publish;
use crate::cli::load::CommandArgs;
use crate::exit::{Code, End, Failure};
use crate::interrupt::Interrupt;
use crate::meters::meters;
use crate::output;
use crate::progress::Progress;
use crate::saved;
use anyhow::Result;
use wakewatt_host::live::Live;
use wakewatt_lab::figure::Figure;
use wakewatt_lab::load::runs::{RunsEnd, RunsPlan, runs};

/// Runs it.
pub(super) fn run(args: &CommandArgs) -> Result<End> {
    let usage = |text: &str| Failure::error(Code::Usage, text);
    if args.command.is_empty() {
        return Err(usage("say what to load: `load steps`, or a command after --, such as: load -- ./benchmark"));
    }
    if args.metric_better.is_some() && args.metric.is_none() && args.metric_json.is_none() {
        return Err(usage("--metric-better: of which figure? give --metric or --metric-json"));
    }
    let figure = Figure::parse(args.metric.as_deref(), args.metric_json.as_deref()).map_err(|why| usage(&why))?;
    let src = Live::this_machine();
    let saving = saved::start(args.save.as_deref(), "load", &src)?;
    // To standard error where standard output is for our document.
    let pass: Option<fn(&[u8])> = match (args.json, &figure) {
        (true, _) => Some(output::pass_on_error),
        (false, Some(_)) => Some(|line| drop(output::pass_on(line))),
        (false, None) => None,
    };
    let plan = RunsPlan {
        command: args.command.clone(),
        n_runs: args.repeat,
        figure,
        better: args.better(),
        meters: meters(&args.meters)?,
        pass,
    };
    let interrupt = Interrupt::listen()?;
    let (run, ended) = runs(interrupt.lab(&src, &Progress::start("load")), plan)?;
    if !run.levels.is_empty() {
        // The command's code is what was promised; a file that could not be written is told.
        publish(run, args.json, &args.meters, saving.as_ref())?;
    }
    Ok(match ended? {
        RunsEnd::Well => End::Command(0),
        RunsEnd::Failed(code) => End::Command(code),
        RunsEnd::Stopped => Code::Interrupted.into(),
    })
}
