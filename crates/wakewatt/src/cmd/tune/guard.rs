//! What watches over an application: a command of the user's, the wake-up latency, or the want of a confirmation.
//!
//! The command must succeed before anything is changed; a watch that is red already tells nothing. Afterwards it is run
//! every second; its first failure takes everything back. The wake-up guard measures before and after on the same CPU
//! and only calls it a regression when the intervals of the two medians do not touch.

use crate::cli::tune::ApplyArgs;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use anyhow::Result;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use wakewatt_core::distribution::Quantile;
use wakewatt_core::facts::{Cpus, Domain, topology::Topology};
use wakewatt_core::samples::waker::Pauses;
use wakewatt_core::samples::wakeup::{WakeKind, WakeupSample};
use wakewatt_core::units::show_ns;
use wakewatt_host::affinity::allowed_cpus;
use wakewatt_host::live::Live;
use wakewatt_host::{clock, detached};
use wakewatt_lab::context::Unheard;
use wakewatt_lab::pick;
use wakewatt_lab::survey::{OneWakeup, Policy, one_wakeup};
use wakewatt_tune::systemd;

/// Gap between two wake-ups of the guard, and how long it measures.
const GAP_NS: u64 = 1_000_000;
const DURATION_NS: u64 = 2_000_000_000;
const PAUSE: Duration = Duration::from_secs(1);
/// The longest that one run of the guard may take, and how often it is looked at.
const DEADLINE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);

/// What was seen before.
pub(super) struct Watchman {
    median: Option<Quantile>,
}

impl Watchman {
    /// Looks before anything is changed.
    pub(super) fn before(args: &ApplyArgs, interrupt: &Interrupt) -> Result<Watchman> {
        let refuse = |why: String| Failure::error(Code::Refused, format!("nothing is changed: {why}"));
        if let Some(command) = &args.guard {
            check(command, interrupt)
                .map_err(|why| refuse(format!("the guard fails before anything is changed: {why}")))?;
        }
        let median = match args.guard_wakeup {
            true => Some(wakeup_median(interrupt).map_err(|why| refuse(format!("--guard-wakeup: {why}")))?),
            false => None,
        };
        Ok(Watchman { median })
    }

    /// Is there anything to watch?
    pub(super) fn is_needed(&self, args: &ApplyArgs) -> bool {
        args.guard.is_some() || self.median.is_some()
    }

    /// Watches afterwards; an error is why everything must go back.
    pub(super) fn after(&self, args: &ApplyArgs, interrupt: &Interrupt) -> Result<Option<String>, String> {
        let mut said = Vec::new();
        if let Some(before) = &self.median {
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
                check(command, interrupt)
                    .map_err(|why| format!("the guard fails {} s after: {why}", began.elapsed().as_secs()))?;
                n += 1;
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

/// Runs the user's command once, in a process group of its own, for at most [`DEADLINE`]: one that hangs because of the
/// change is a failure like any other.
fn check(command: &str, interrupt: &Interrupt) -> Result<(), String> {
    // A file in memory, not a pipe: what the command leaves running in the background may keep it open.
    let words = rustix::fs::memfd_create("guard", rustix::fs::MemfdFlags::CLOEXEC).map_err(|e| e.to_string())?;
    let copy = words.try_clone().map_err(|e| e.to_string())?;
    let mut child = wakewatt_host::environment::users("/bin/sh")
        .map_err(|e| e.to_string())?
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(copy)
        .process_group(0)
        .spawn()
        .map_err(|e| format!("/bin/sh cannot be run: {e}"))?;
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            break status;
        }
        let is_late = began.elapsed() > DEADLINE;
        if is_late || interrupt.is_set() {
            let group = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
            let _ = group.map(|g| rustix::process::kill_process_group(g, rustix::process::Signal::KILL));
            let _ = child.wait();
            let why = if is_late { "it did not end within 10 s" } else { "interrupted while the guard watched" };
            return Err(why.into());
        }
        std::thread::sleep(LOOK);
    };
    if status.success() {
        return Ok(());
    }
    let mut text = String::new();
    let mut file = std::fs::File::from(words);
    let _ = file.rewind().and_then(|()| file.take(64 * 1024).read_to_string(&mut text));
    Err(format!("{status} {}", text.trim().lines().last().unwrap_or("")))
}

fn wakeup_median(interrupt: &Interrupt) -> Result<Quantile, String> {
    wakeups(interrupt)?.latency.quantile(0.5).ok_or_else(|| "too few wake-ups for a median".into())
}

/// Some wake-ups of the first CPU, from another one where there is one.
pub(super) fn wakeups(interrupt: &Interrupt) -> Result<WakeupSample, String> {
    let src = Live::this_machine();
    let allowed = allowed_cpus().map_err(|e| e.to_string())?;
    let cpu = allowed.first().ok_or("no CPU to measure on")?;
    let from_cpu = pick::partner(&Topology::read(&src, &Cpus::read(&src)), &allowed, cpu);
    let kind = if from_cpu.is_some() { WakeKind::Futex } else { WakeKind::Timer };
    let pauses = Pauses::Exponential { seed: pick::seed_of_now() };
    let one = OneWakeup { kind, cpu, from_cpu, gap_ns: GAP_NS, pauses, policy: Policy::Fifo, duration_ns: DURATION_NS };
    one_wakeup(interrupt.lab(&src, &Unheard), &one).map_err(|e| e.to_string())
}

/// Starts the process that undoes this journal when nobody confirms it; it outlives this one.
pub(super) fn wait_for_confirmation(journal: &Path) -> Result<(), String> {
    let program = systemd::this_program().map_err(|e| e.to_string())?;
    let argv = [program.as_str(), "guard", "--confirm", &journal.display().to_string()].map(str::to_string);
    // One of an earlier transaction may still be asleep under its name.
    let unit = format!("wakewatt-confirm-{}-{}", std::process::id(), clock::boottime_ns());
    detached::start(&argv, &unit, "undoes settings that nobody confirms")
}
