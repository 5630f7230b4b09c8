//! `wakewatt run --per-node -- CMD`: one copy per memory node, its CPUs and its memory bound there.
//!
//! Case K1: on four sockets one process over all CPUs did no more work than on one socket; four bound ones did 3.6 times as
//! much. Here a command is started that way without numactl, and whether it was really placed so is looked up in each
//! copy's numa_maps while it runs, not believed. `--compare` runs one unbound copy first: n bound copies do n times the
//! work of one, so n times the unbound wall time over the bound one is the scaling (or the sum of `--metric`, if the
//! command prints what it achieved). The worst copy's exit code is ours.

mod copy;
mod document;
mod placement;

pub use document::{CopyRun, Pages, Ran, Scaling};

use crate::cli::run::RunArgs;
use crate::exit::{Code, End, Failure};
use crate::output;
use anyhow::{Context, Result};
use copy::{Copy, Ended, Where};
use regex::Regex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use wakewatt_core::units::{show_ns, three_digits};
use wakewatt_host::affinity::allowed_cpus;
use wakewatt_host::bound::signal_group;
use wakewatt_host::clock::monotonic_ns;
use wakewatt_host::live::Live;

/// How often it is looked whether a copy has ended: also the precision of the wall times.
const TICK: Duration = Duration::from_millis(2);
/// When the pages are first looked at: soon, and again when the command has had time to take memory.
const LOOKS_NS: [u64; 3] = [50_000_000, 500_000_000, 3_000_000_000];
/// And then always after so long, since memory is taken at any time. A look walks the page tables, so the pause is also so
/// many times what the last look took.
const LOOK_AGAIN_NS: u64 = 3_000_000_000;
const LOOK_SHARE: u64 = 100;

/// Runs it.
pub fn run(args: &RunArgs) -> Result<End> {
    let usage = |text: String| Failure::error(Code::Usage, text);
    let metric = args.metric.as_deref().map(Regex::new).transpose();
    let metric = metric.map_err(|e| usage(format!("--metric: {e}")))?;
    if metric.as_ref().is_some_and(|m| m.captures_len() < 2) {
        return Err(usage("--metric: put the number into a group, such as 'score: ([0-9.]+)'".into()));
    }
    let allowed = allowed_cpus().context("cannot ask which CPUs this process may use")?;
    let nodes = super::measure::nodes_of(&Live::this_machine(), &allowed);
    let is_local = |node: &u32| nodes.with_memory.contains(node);
    let bound: Vec<Where> = nodes
        .with_cpus
        .iter()
        .filter(|(node, _)| is_local(node))
        .map(|(node, cpus)| Where { node: Some(*node), cpus: cpus.clone() })
        .collect();
    if bound.is_empty() {
        let why = format!("no memory node has CPUs that this process may use ({allowed}); widen taskset or cpuset");
        return Err(Failure::error(Code::CouldNotMeasure, why));
    }
    if bound.len() == 1 {
        output::remark("One memory node: one copy, bound to it; there is nothing to spread.");
    }
    let signals = Signals::listen()?;
    let mut alone = None;
    if args.compare {
        output::remark("First one copy, not bound.");
        let (ended, is_interrupted) = all(args, &[Where { node: None, cpus: allowed }], metric.as_ref(), &signals)?;
        if let Some(code) = worst(&ended).filter(|code| *code != 0) {
            output::complain("The unbound copy failed, so there is nothing to compare with.");
            document(args, &[], ended.first(), None, is_interrupted)?;
            return Ok(End::Command(code));
        }
        alone = ended.into_iter().next();
        if is_interrupted {
            document(args, &[], alone.as_ref(), None, is_interrupted)?;
            return Ok(Code::Interrupted.into());
        }
    }
    let (ended, is_interrupted) = all(args, &bound, metric.as_ref(), &signals)?;
    ended.iter().for_each(|copy| output::remark(&told(copy)));
    let scaling = alone.as_ref().map(|alone| Scaling::of(alone, &ended));
    if let (Some(scaling), Some(alone)) = (&scaling, &alone) {
        output::remark(&told_scaling(scaling, metric.is_some().then_some(alone.metric)));
    }
    document(args, &ended, alone.as_ref(), scaling, is_interrupted)?;
    Ok(End::Command(worst(&ended).unwrap_or(255)))
}

/// Prints it, if it was asked for.
fn document(
    args: &RunArgs,
    ended: &[Ended],
    alone: Option<&Ended>,
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

/// Starts one copy per place and waits for all; also says whether a signal came.
fn all(args: &RunArgs, places: &[Where], metric: Option<&Regex>, signals: &Signals) -> Result<(Vec<Ended>, bool)> {
    let mut copies: Vec<Copy> = Vec::with_capacity(places.len());
    for place in places {
        match Copy::start(args, place, places.len(), metric) {
            Ok(copy) => copies.push(copy),
            Err(why) => {
                // All or none: half a run is no result.
                copies.iter().for_each(|c| _ = signal_group(c.pid(), signal_hook::consts::SIGTERM));
                copies.into_iter().for_each(|c| _ = c.finish());
                return Err(why);
            }
        }
    }
    let (start_at_ns, mut looks, mut is_interrupted) = (monotonic_ns(), Looks::default(), false);
    while copies.iter_mut().any(|c| !c.is_over()) {
        if let Some(signal) = signals.take() {
            is_interrupted = true;
            copies.iter_mut().filter(|c| !c.is_known_over()).for_each(|c| _ = signal_group(c.pid(), signal));
        }
        let spent_ns = monotonic_ns() - start_at_ns;
        if looks.is_due(spent_ns) {
            copies.iter_mut().for_each(Copy::look);
            looks.done(spent_ns, monotonic_ns() - start_at_ns);
        }
        std::thread::sleep(TICK);
    }
    Ok((copies.into_iter().map(Copy::finish).collect(), is_interrupted))
}

/// The looks made at the pages.
#[derive(Default)]
struct Looks {
    n: usize,
    next_at_ns: u64,
}

impl Looks {
    fn is_due(&self, spent_ns: u64) -> bool {
        spent_ns >= LOOKS_NS.get(self.n).copied().unwrap_or(0).max(self.next_at_ns)
    }

    /// One more, from then to then.
    fn done(&mut self, from_ns: u64, to_ns: u64) {
        self.n += 1;
        let pause_ns = to_ns.saturating_sub(from_ns).saturating_mul(LOOK_SHARE);
        self.next_at_ns =
            // The first few are made whatever they cost: without them nothing is proved.
            if self.n < LOOKS_NS.len() { 0 } else { to_ns.saturating_add(pause_ns.max(LOOK_AGAIN_NS)) };
    }
}

/// The exit code to end with: the greatest, so that any failure shows.
fn worst(ended: &[Ended]) -> Option<u8> {
    ended.iter().map(|c| c.code).max()
}

/// One copy in a line.
fn told(copy: &Ended) -> String {
    let place = copy.place.node.map_or("unbound".to_string(), |n| format!("node {n}"));
    let wall_ns = copy.end_at_ns.saturating_sub(copy.start_at_ns);
    let seen = copy.looked_at_ns.zip(copy.map.as_ref());
    let seen = seen.map(|(at_ns, map)| (map, at_ns.saturating_sub(copy.start_at_ns), wall_ns));
    let placed = placement::told(copy.place.node, seen);
    format!("{place}, CPUs {}: exit code {}, {}; {placed}", copy.place.cpus, copy.code, show_ns(wall_ns))
}

/// n bound copies against one that is not; with the unbound copy's metric where one was asked for.
fn told_scaling(scaling: &Scaling, metric: Option<Option<f64>>) -> String {
    let n = scaling.n_copies;
    let mut said = format!(
        "{n} bound {} took {}, one unbound copy {}: {}x the work per time, if a copy's work is the same",
        if n == 1 { "copy" } else { "copies" },
        show_ns(scaling.bound_wall_ns),
        show_ns(scaling.unbound_wall_ns),
        three_digits(scaling.work_ratio)
    );
    if let Some(one) = metric {
        said += &match (one, scaling.metric_sum, scaling.metric_ratio) {
            (Some(one), Some(sum), Some(ratio)) => {
                let [sum, one, ratio] = [sum, one, ratio].map(three_digits);
                format!("\n--metric: {sum} in all against {one}: {ratio}x")
            }
            _ => "\n--metric: not found in the output of every copy, so there is no ratio".into(),
        };
    }
    said
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

    fn ended(node: u32, ms: u64, code: u8, metric: Option<f64>) -> Ended {
        let place = Where { node: Some(node), cpus: CpuSet::parse("0-1").unwrap() };
        Ended { place, code, start_at_ns: 0, end_at_ns: ms * 1_000_000, metric, map: None, looked_at_ns: None }
    }

    #[test]
    fn pages_are_looked_at_until_the_end() {
        let (mut looks, mut at_ms) = (Looks::default(), Vec::new());
        for ms in 0..13_000_u64 {
            if looks.is_due(ms * 1_000_000) {
                at_ms.push(ms);
                looks.done(ms * 1_000_000, ms * 1_000_000);
            }
        }
        assert_eq!(at_ms, [50, 500, 3000, 6000, 9000, 12_000]);
        // A look that takes 0.1 s is made every 10 s.
        looks.done(15_000_000_000, 15_100_000_000);
        assert!(!looks.is_due(25_000_000_000) && looks.is_due(25_100_000_000));
    }

    #[test]
    fn scaling_counts_the_work_of_all_copies() {
        let alone = ended(0, 1000, 0, Some(50.0));
        let four = [900, 1000, 1100, 1111].map(|ms| ended(0, ms, 0, Some(45.0)));
        let said = told_scaling(&Scaling::of(&alone, &four), Some(alone.metric));
        assert!(said.contains("4 bound copies took 1.11s, one unbound copy 1s: 3.6x the work per time"), "{said}");
        assert!(said.ends_with("--metric: 180 in all against 50: 3.6x"), "{said}");
        let silent = told_scaling(&Scaling::of(&alone, &[ended(0, 5, 0, None)]), Some(alone.metric));
        assert!(silent.ends_with("so there is no ratio"), "{silent}");
        assert_eq!(worst(&[ended(0, 1, 3, None), ended(1, 1, 137, None)]), Some(137));
        assert!(told(&ended(1, 20, 0, None)).starts_with("node 1, CPUs 0-1: exit code 0, 20ms; "));
    }
}
