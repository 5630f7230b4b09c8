//! What watches over an application: a command of the user's, the wake-up latency, or the want of a confirmation.
//!
//! The command must succeed before anything is changed; a watch that is red already tells nothing. Afterwards it is run
//! every second; its first failure takes everything back. The wake-up guard measures before and after on the same CPU
//! and only calls it a regression when the intervals of the two medians do not touch.

use crate::cli::tune::ApplyArgs;
use crate::cmd::measure::one_wakeup;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use crate::pick;
use anyhow::Result;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use wakewatt_core::distribution::Quantile;
use wakewatt_core::facts::{Cpus, Domain, topology::Topology};
use wakewatt_core::samples::wakeup::{WakeKind, WakeupSample};
use wakewatt_core::units::show_ns;
use wakewatt_host::affinity::allowed_cpus;
use wakewatt_host::detached;
use wakewatt_host::live::Live;
use wakewatt_tune::journal::STATE_DIR;

/// Gap between two wake-ups of the guard, and how long it measures.
const GAP_NS: u64 = 1_000_000;
const DURATION_NS: u64 = 2_000_000_000;
const PAUSE: Duration = Duration::from_secs(1);

/// What was seen before.
pub(super) struct Watchman {
    median: Option<Quantile>,
}

impl Watchman {
    /// Looks before anything is changed.
    pub(super) fn before(args: &ApplyArgs, interrupt: &Interrupt) -> Result<Watchman> {
        let refuse = |why: String| Failure::error(Code::Refused, format!("nothing is changed: {why}"));
        if let Some(command) = &args.guard {
            check(command).map_err(|why| refuse(format!("the guard fails before anything is changed: {why}")))?;
        }
        let median = match args.guard_wakeup {
            true => Some(wakeup_median(interrupt).map_err(|why| refuse(format!("--guard-wakeup: {why}")))?),
            false => None,
        };
        Ok(Watchman { median })
    }

    /// Watches afterwards; an error is why everything must go back.
    pub(super) fn after(self, args: &ApplyArgs, interrupt: &Interrupt) -> Result<Option<String>, String> {
        let mut said = Vec::new();
        if let Some(before) = self.median {
            let after = wakeup_median(interrupt).map_err(|why| format!("--guard-wakeup: {why}"))?;
            let words = format!(
                "wake-up median {} [{}, {}] before, {} [{}, {}] after",
                show_ns(before.value_ns),
                show_ns(before.low_ns),
                show_ns(before.high_ns),
                show_ns(after.value_ns),
                show_ns(after.low_ns),
                show_ns(after.high_ns)
            );
            if after.low_ns > before.high_ns {
                return Err(format!("{words}: longer beyond doubt"));
            }
            said.push(words);
        }
        if let Some(command) = &args.guard {
            let began = Instant::now();
            let mut n = 0;
            loop {
                check(command)
                    .map_err(|why| format!("the guard fails {} s after: {why}", began.elapsed().as_secs()))?;
                n += 1;
                if interrupt.is_set() {
                    return Err("interrupted while the guard watched".into());
                }
                if began.elapsed().as_nanos() >= u128::from(args.guard_for) {
                    break;
                }
                std::thread::sleep(PAUSE);
            }
            said.push(format!("{command}: succeeded {n} times"));
        }
        Ok((!said.is_empty()).then(|| said.join("; ")))
    }
}

/// Runs the user's command once.
fn check(command: &str) -> Result<(), String> {
    let mut child = Command::new("/bin/sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("/bin/sh cannot be run: {e}"))?;
    let mut words = String::new();
    let _ = child.stderr.take().map(|e| e.take(64 * 1024).read_to_string(&mut words));
    let status = child.wait().map_err(|e| e.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("{status} {}", words.trim().lines().last().unwrap_or(""))) }
}

fn wakeup_median(interrupt: &Interrupt) -> Result<Quantile, String> {
    wakeups(interrupt)?.latency.quantile(0.5).ok_or_else(|| "too few wake-ups for a median".into())
}

/// Some wake-ups of the first CPU, from another one where there is one.
pub(super) fn wakeups(interrupt: &Interrupt) -> Result<WakeupSample, String> {
    let src = Live::this_machine();
    let allowed = allowed_cpus().map_err(|e| e.to_string())?;
    let cpu = allowed.first().ok_or("no CPU to measure on")?;
    let from = pick::partner(&Topology::read(&src, &Cpus::read(&src)), &allowed, cpu);
    let kind = if from.is_some() { WakeKind::Futex } else { WakeKind::Timer };
    one_wakeup(kind, cpu, from, GAP_NS, DURATION_NS, &src, interrupt).map_err(|e| e.to_string())
}

/// Starts the process that undoes the transaction when nobody confirms it; it outlives this one.
pub(super) fn wait_for_confirmation(id: &str) -> Result<()> {
    let journal = Path::new(STATE_DIR).join(format!("{id}.json"));
    let program = super::units::binary()?;
    let argv = [program.as_str(), "guard", "--confirm", &journal.display().to_string()].map(str::to_string);
    let unit = format!("wakewatt-confirm-{id}");
    detached::start(&argv, &unit, "undoes settings that nobody confirms")
        .map_err(|why| Failure::error(Code::Refused, format!("{why}; {id} stays until wakewatt tune undo")))
}
