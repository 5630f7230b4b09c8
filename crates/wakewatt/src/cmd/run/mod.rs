//! `wakewatt run --per-node -- CMD`: one copy per memory node, its CPUs and its memory bound there.
//!
//! Case K1: on four sockets one process over all CPUs did no more work than on one socket; four bound ones did 3.6 times as
//! much. Here a command is started that way without numactl. `--compare` runs one unbound copy first: its wall time (or the
//! sum of `--metric`, if the command prints what it achieved) is what the bound ones are held against. The worst copy's
//! exit code is ours.

mod words;

use crate::cli::run::RunArgs;
use crate::exit::{Code, End, Failure};
use crate::output;
use anyhow::{Context, Result};
use regex_lite::Regex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use wakewatt_host::live::Live;
use wakewatt_lab::per_node::{CopyRun, EndedCopy, Pass, PerNodePlan, Ran, Scaling, Where, copies, places};
use wakewatt_lab::survey::allowed_cpus;
use wakewatt_words::{spoken, word};
use words::{told, told_scaling};

/// Runs it.
pub fn run(args: &RunArgs) -> Result<End> {
    let plan = plan(args)?;
    let allowed = allowed_cpus()?;
    let bound = places(&Live::this_machine(), &allowed)?;
    if bound.len() == 1 {
        output::remark(spoken(|| word!("One memory node: one copy, bound to it; there is nothing to spread.")));
    }
    let signals = Signals::listen()?;
    let signal = || signals.take();
    let mut alone = None;
    if args.compare {
        output::remark(spoken(|| word!("First one copy, not bound.")));
        let (ended, is_interrupted) = copies(&plan, &[Where { node: None, cpus: allowed }], &signal)?;
        if let Some(code) = worst(&ended).filter(|code| *code != 0) {
            output::complain(spoken(|| word!("The unbound copy failed, so there is nothing to compare with.")));
            document(args, &[], ended.first(), None, is_interrupted)?;
            return Ok(End::Command(code));
        }
        alone = ended.into_iter().next();
        if is_interrupted {
            document(args, &[], alone.as_ref(), None, is_interrupted)?;
            return Ok(Code::Interrupted.into());
        }
    }
    let (ended, is_interrupted) = copies(&plan, &bound, &signal)?;
    ended.iter().for_each(|copy| output::remark(&told(copy)));
    let scaling = alone.as_ref().map(|alone| Scaling::of(alone, &ended));
    if let (Some(scaling), Some(alone)) = (&scaling, &alone) {
        output::remark(&told_scaling(scaling, plan.metric.is_some().then_some(alone.metric)));
    }
    document(args, &ended, alone.as_ref(), scaling, is_interrupted)?;
    Ok(End::Command(worst(&ended).unwrap_or(255)))
}

fn plan(args: &RunArgs) -> Result<PerNodePlan> {
    let usage = |text: String| Failure::error(Code::Usage, text);
    let metric = args.metric.as_deref().map(Regex::new).transpose();
    let metric = metric.map_err(|e| usage(format!("--metric: {e}")))?;
    if metric.as_ref().is_some_and(|m| m.captures_len() < 2) {
        return Err(usage("--metric: put the number into a group, such as 'score: ([0-9.]+)'".into()));
    }
    // With a document to come on standard output, everything goes to standard error.
    let pass: fn(&[u8]) = if args.json { output::pass_on_error } else { |line| drop(output::pass_on(line)) };
    let pass = Pass { output: pass, error: output::pass_on_error };
    Ok(PerNodePlan { command: args.command.clone(), metric, folder: args.output.clone(), pass })
}

/// Prints it, if it was asked for.
fn document(
    args: &RunArgs,
    ended: &[EndedCopy],
    alone: Option<&EndedCopy>,
    scaling: Option<Scaling>,
    is_interrupted: bool,
) -> Result<()> {
    if !args.json {
        return Ok(());
    }
    let copies = ended.iter().map(CopyRun::of).collect();
    let ran = Ran { copies, unbound: alone.map(CopyRun::of), scaling, is_interrupted };
    output::print(&output::json("per-node", &ran)?)
}

/// The exit code to end with: the greatest, so that any failure shows.
fn worst(ended: &[EndedCopy]) -> Option<u8> {
    ended.iter().map(|c| c.code).max()
}

/// The signals to hand on.
struct Signals(Arc<AtomicUsize>);

impl Signals {
    fn listen() -> Result<Signals> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let last = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let number = usize::try_from(signal).unwrap_or(0);
            signal_hook::flag::register_usize(signal, Arc::clone(&last), number).context("cannot catch signals")?;
        }
        Ok(Signals(last))
    }

    /// The one that came since the last call.
    fn take(&self) -> Option<i32> {
        i32::try_from(self.0.swap(0, Ordering::Relaxed)).ok().filter(|signal| *signal != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::cpuset::CpuSet;

    #[test]
    fn any_failure_shows() {
        let place = Where { node: Some(0), cpus: CpuSet::default() };
        let ended = |code| EndedCopy {
            place: place.clone(),
            code,
            start_at_ns: 0,
            end_at_ns: 1,
            metric: None,
            map: None,
            looked_at_ns: None,
        };
        assert_eq!(worst(&[ended(3), ended(137), ended(0)]), Some(137));
    }
}
