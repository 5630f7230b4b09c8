//! A command of the user's as a workload: run to its end in each block, timed, and the numbers it prints.
//!
//! The wall time is always a metric; the first one the user names by an expression goes before it. A command that fails
//! makes the block not count, with its exit code and last words: a benchmark that broke is no benchmark. It runs in a
//! process group of its own, so that an interrupt ends all of it, and so does a limit of time, because a setting must not be
//! held for ever by a command that hangs. What it leaves running may hold its output open; that is not waited for.

use crate::experiment::{Workload, Yield};
use crate::figure::{Following, Output, plain};
use crate::plan::CommandMetric;
use regex_lite::Regex;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::experiment::{Better, Metric, Unit};
use wakewatt_core::units::show_ns;
use wakewatt_host::bound::signal_group;
use wakewatt_host::clock::monotonic_ns;

/// How often its end is looked for: also the precision of the wall time.
const TICK: Duration = Duration::from_millis(2);
/// No block lasts longer.
const LONGEST_NS: u64 = 4 * 3_600_000_000_000;
/// For the rest of its output, once it has ended.
const REST: Duration = Duration::from_secs(1);
/// After the first signal it gets this long.
const GRACE_NS: u64 = 3_000_000_000;

/// The workload.
pub struct CommandWorkload {
    argv: Vec<String>,
    metrics: Vec<(CommandMetric, Regex)>,
    cpus: CpuSet,
    longest_ns: u64,
}

impl CommandWorkload {
    /// `cpus` are those whose noise matters: all that may run it.
    pub fn new(argv: Vec<String>, metrics: &[CommandMetric], cpus: CpuSet) -> Result<CommandWorkload, String> {
        let compile = |m: &CommandMetric| {
            Regex::new(&m.regex).map(|r| (m.clone(), r)).map_err(|e| format!("metric {}: {e}", m.id))
        };
        let metrics = metrics.iter().map(compile).collect::<Result<_, _>>()?;
        Ok(CommandWorkload { argv, metrics, cpus, longest_ns: LONGEST_NS })
    }

    fn start(&self) -> Result<(Child, Readers), String> {
        let (program, arguments) = self.argv.split_first().ok_or("no command")?;
        let mut command =
            wakewatt_host::environment::users(program).map_err(|e| format!("{program}: could not be started: {e}"))?;
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().map_err(|e| format!("{program}: could not be started: {e}"))?;
        let readers = [child.stdout.take().map(gather), child.stderr.take().map(gather)];
        let [out, err] = readers.map(Option::transpose);
        Ok((child, [out?, err?]))
    }
}

/// Of standard output and standard error.
type Readers = [Option<Following>; 2];

/// Reads to the end, keeps the last part.
fn gather(from: impl Read + Send + 'static) -> Result<Following, String> {
    Output::follow(from, |_| {})
}

/// The last match's number.
fn number(regex: &Regex, text: &str) -> Option<f64> {
    plain(regex.captures_iter(text).last()?.get(1)?.as_str().trim()).parse().ok()
}

/// Its metrics, known before it runs: those the user names, then the wall time.
pub fn metrics_of<'m>(named: impl IntoIterator<Item = &'m CommandMetric>) -> Vec<Metric> {
    let named = named.into_iter().map(|m| Metric {
        clock_bound_ns: None,
        id: format!("command.{}", m.id),
        title: m.id.clone(),
        unit: Unit::Number,
        better: m.better,
    });
    let wall = Metric {
        clock_bound_ns: None,
        id: "command.wall".into(),
        title: "wall time of the command".into(),
        unit: Unit::Nanoseconds,
        better: Better::Lower,
    };
    named.chain([wall]).collect()
}

impl Workload for CommandWorkload {
    fn metrics(&self) -> Vec<Metric> {
        metrics_of(self.metrics.iter().map(|(m, _)| m))
    }

    fn cpus(&self) -> CpuSet {
        self.cpus.clone()
    }

    fn warm_up(&mut self, duration_ns: u64, stop: &AtomicBool) {
        let end_ns = monotonic_ns() + duration_ns;
        while monotonic_ns() < end_ns && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_nanos((end_ns.saturating_sub(monotonic_ns())).min(50_000_000)));
        }
    }

    fn measure(&mut self, stop: &AtomicBool) -> Result<Yield, String> {
        let start_ns = monotonic_ns();
        let (mut child, readers) = self.start()?;
        let mut stopped_ns = None;
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break Ok(status),
                Ok(None) => {}
                Err(e) => break Err(e.to_string()),
            }
            if stop.load(Ordering::Relaxed) || monotonic_ns() - start_ns > self.longest_ns {
                let since = *stopped_ns.get_or_insert_with(|| {
                    let _ = signal_group(child.id(), libc::SIGTERM);
                    monotonic_ns()
                });
                if monotonic_ns() - since > GRACE_NS {
                    let _ = signal_group(child.id(), libc::SIGKILL);
                }
            }
            std::thread::sleep(TICK);
        }?;
        let wall_ns = monotonic_ns() - start_ns;
        let texts = readers.map(|r| r.map(|r| r.finish(REST).text()).unwrap_or_default());
        let mut values: Vec<Option<f64>> = self
            .metrics
            .iter()
            .map(|(_, regex)| number(regex, &texts[0]).or_else(|| number(regex, &texts[1])))
            .collect();
        values.push(Some(wall_ns as f64));
        let mut result = Yield { values, ..Yield::default() };
        if stop.load(Ordering::Relaxed) {
            return Ok(result);
        }
        let missing = self.metrics.iter().zip(&result.values).find(|(_, value)| value.is_none());
        let mut named = self.metrics.iter().zip(&result.values);
        let not_above_0 = named.find_map(|((m, _), value)| Some((m.id.clone(), value.filter(|v| *v <= 0.0)?)));
        if wall_ns > self.longest_ns {
            let limit = show_ns(self.longest_ns);
            result.rejected = Some(format!("the command was ended after {limit}, longer than a block may take").into());
        } else if !status.success() {
            let last = texts[1].lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("").trim().to_string();
            result.rejected = Some(format!("the command ended with {status}: {last}").into());
        } else if let Some(((metric, _), _)) = missing {
            result.rejected = Some(format!("the command's output holds no {} ({})", metric.id, metric.regex).into());
        } else if let Some((id, value)) = not_above_0 {
            result.rejected =
                Some(format!("the command printed {id} {value}; only numbers above 0 have a ratio").into());
        }
        Ok(result)
    }

    fn is_busy(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Yield {
        let metric = CommandMetric { id: "score".into(), regex: "score: ([0-9.,]+)".into(), better: Better::Higher };
        let argv = ["sh", "-c", line].map(str::to_string).to_vec();
        CommandWorkload::new(argv, &[metric], CpuSet::new()).unwrap().measure(&AtomicBool::new(false)).unwrap()
    }

    #[test]
    fn the_last_number_counts_and_a_failure_makes_the_block_not_count() {
        let good = run("echo score: 3; echo score: 1,234.5; echo noise >&2");
        assert_eq!((good.values[0], good.rejected), (Some(1234.5), None));
        assert!(good.values[1].is_some_and(|ns| ns > 0.0));
        assert!(
            run("echo score: 3; echo broken >&2; exit 4")
                .rejected
                .unwrap()
                .to_string()
                .contains("exit status: 4: broken")
        );
        assert!(run("true").rejected.unwrap().to_string().contains("holds no score"));
        let missing =
            CommandWorkload::new(vec!["/no/such".into()], &[], CpuSet::new()).unwrap().measure(&AtomicBool::new(false));
        assert!(missing.unwrap_err().contains("could not be started"));
    }

    #[test]
    fn a_comma_for_a_point_and_a_zero_are_told() {
        assert!(run("echo score: 12,5").rejected.unwrap().to_string().contains("holds no score"), "not 125");
        assert!(run("echo score: 0").rejected.unwrap().to_string().contains("printed score 0"));
    }

    #[test]
    fn neither_what_it_leaves_behind_nor_a_command_that_hangs_is_waited_for() {
        let start_ns = monotonic_ns();
        let left = run("echo score: 3; sleep 60 &");
        assert_eq!((left.values[0], left.rejected), (Some(3.0), None));
        assert!(monotonic_ns() - start_ns < 50_000_000_000);
        let argv = ["sh", "-c", "sleep 600"].map(str::to_string).to_vec();
        let mut hangs = CommandWorkload::new(argv, &[], CpuSet::new()).unwrap();
        hangs.longest_ns = 100_000_000;
        assert!(
            hangs.measure(&AtomicBool::new(false)).unwrap().rejected.unwrap().to_string().contains("ended after 100")
        );
        assert!(monotonic_ns() - start_ns < 300_000_000_000);
    }

    #[test]
    fn an_interrupt_ends_it() {
        let argv = ["sh", "-c", "sleep 600"].map(str::to_string).to_vec();
        let start_ns = monotonic_ns();
        CommandWorkload::new(argv, &[], CpuSet::new()).unwrap().measure(&AtomicBool::new(true)).unwrap();
        assert!(monotonic_ns() - start_ns < 300_000_000_000);
    }
}
