//! `wakewatt trace`: what each wake-up costs, by the idle state the CPU was leaving.
//!
//! The probe counts in the kernel; this reads the counters at the start, at each window's end and at the end, and sleeps
//! in between. It wakes nobody unless `--hardware` asks for registers: its own CPU once per window (ten times a second while recording), and says how often.
//! When the process ends, however it ends, the kernel detaches the probe; there is nothing to put back.

pub(crate) mod command;
mod feed;
mod file;
mod hardware;
mod names;
mod parquet;
mod presence;
mod record;
mod scope;
mod watched;

pub(crate) use feed::WakeFeed;
pub use file::TraceInfo;

use crate::cli::trace::{TraceArgs, TraceFile};
use crate::exit::{Code, End, Failure};
use crate::interrupt::Interrupt;
use crate::output::{self, Colour, Outlet};
use crate::progress::Progress;
use crate::report::trace::{self as shown, TraceReport};
use anyhow::{Context, Result};
use names::Names;
use record::Recorder;
use std::time::SystemTime;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::samples::traced::{StateRow, TraceWindow, Traced, rows};
use wakewatt_core::samples::wakes::{CpuCounters, WakeCounters};
use wakewatt_core::samples::{IdleDelta, Window};
use wakewatt_core::source::Source;
use wakewatt_core::units::{LatencyLimit, show_ns};
use wakewatt_host::clock::{boottime_ns, monotonic_ns, own_cpu_ns};
use wakewatt_host::live::Live;
use wakewatt_lab::bench::IdleBaseline;
use wakewatt_probes::ProbeError;
use wakewatt_probes::wake::{Scope, Spec, WakeProbe};
use watched::Watched;

const DEFAULT_NS: u64 = 10_000_000_000;
const SHORTEST_WINDOW_NS: u64 = 100_000_000;
const MOST_WINDOWS: usize = 2_000;

/// What a session shall do beyond counting.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    /// Idle intervals go to the ring buffer.
    is_recording: bool,
    /// Programs that return at once.
    is_empty: bool,
    /// Residency registers are read.
    is_hardware: bool,
}

/// Runs it.
pub fn run(args: &TraceArgs, colour: Colour) -> Result<End> {
    match &args.file {
        Some(TraceFile::Info(args)) => return file::info(args).map(End::Own),
        Some(TraceFile::Export(args)) => return file::export(args).map(End::Own),
        None => {}
    }
    let interrupt = Interrupt::listen()?;
    let src = Live::this_machine();
    let page = args.output.as_deref().map(|file| Outlet::open(file, "-o")).transpose()?;
    let (scope, scope_name, mut watched) = scope::of(args)?;
    scope::same_process_ids(&scope)?;
    let wanted =
        Wanted { is_recording: args.recording.record.is_some(), is_empty: args.empty, is_hardware: args.hardware };
    let mut session = Session::start(&src, scope, wanted)?;
    let mut command = None;
    if !args.command.is_empty() {
        let started = command::Traced::start(&args.command)
            .map_err(|e| Failure::error(Code::Usage, format!("{e:#}; the command comes after --")))?;
        session.probe.follow(started.tgid()).map_err(refused)?;
        session.probe.unfollow(std::process::id()).map_err(refused)?;
        command = Some(started);
    }
    // After the command: one that cannot be started leaves no file behind.
    if let Err(why) = session.record(args) {
        if let Some(command) = &command {
            command.terminate();
        }
        return Err(why);
    }
    let end_at_ns = match args.for_ns {
        Some(ns) => Some(session.start_at_ns.saturating_add(ns)),
        None if command.is_some() => None,
        None => Some(session.start_at_ns + DEFAULT_NS),
    };
    let code = session.wait(&src, args, end_at_ns, command.as_mut(), &mut watched, &interrupt)?;
    let is_record_lost = session.recorder.as_ref().is_some_and(Recorder::is_refused);
    let traced = session.finish(&src, scope_name)?;
    let shown = show(args, page.as_ref(), &traced, command.is_some(), colour);
    if let Some(mut command) = command {
        // The command's code is what was promised; ours would hide it.
        output::settled(shown, Code::Fine);
        // `--for` ended first: the command goes on, and so do we, no longer attached.
        let code = code.unwrap_or_else(|| {
            loop {
                watched.sleep_until(u64::MAX, Some(command.fd()));
                if interrupt.is_set() {
                    command.terminate();
                }
                if let Some(code) = command.ended() {
                    return code;
                }
            }
        });
        return Ok(End::Command(code));
    }
    if is_record_lost && !interrupt.is_set() {
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

/// For `doctor`: the whole machine, as it is.
pub(crate) fn of_machine(src: &dyn Source, for_ns: u64, interrupt: &Interrupt) -> Result<Traced> {
    let session = Session::start(src, Scope::Machine, Wanted::default())?;
    while !interrupt.is_set() && monotonic_ns() < session.start_at_ns + for_ns {
        watched::sleep_until(session.start_at_ns + for_ns, &[]);
    }
    session.finish(src, "whole machine".into())
}

pub(crate) fn refused(why: ProbeError) -> anyhow::Error {
    Failure::error(Code::CouldNotMeasure, format!("cannot trace: {why}"))
}

/// The probe and what was read when it started.
pub(crate) struct Session {
    probe: WakeProbe,
    names: Names,
    start_at_ns: u64,
    start_cpu_ns: u64,
    start_boot_ns: u64,
    start: WakeCounters,
    entered: IdleBaseline,
    /// The same counters' growth, read when the last window closed.
    entered_in_all: Option<Vec<IdleDelta>>,
    hardware: hardware::Baseline,
    windows: Vec<TraceWindow>,
    last: WakeCounters,
    facts: Snapshot,
    recorder: Option<Recorder>,
    online: Vec<u32>,
    remarks: Vec<String>,
    ended_early: Option<String>,
}

impl Session {
    /// Attaches and takes the first reading.
    pub(crate) fn start(src: &dyn Source, scope: Scope, wanted: Wanted) -> Result<Session> {
        let mut facts = settings(src);
        if facts.qos.global.get().is_some_and(|limit| *limit != LatencyLimit::None) {
            // Who holds it is worth walking /proc for; otherwise not.
            facts.holders = Snapshot::read(src, |topic| topic == "holders").holders;
        }
        let names = Names::of(&facts);
        let cpus: Vec<u32> = facts.cpus.online.get().map(|c| c.iter().collect()).unwrap_or_default();
        let n_cpus = cpus.iter().max().map_or(1, |last| last + 1);
        let spec = Spec {
            scope,
            n_states: names.n_states(),
            polling_state: names.polling(),
            is_empty: wanted.is_empty,
            record_bytes: wanted.is_recording.then(|| record::ring_bytes(n_cpus)),
        };
        let hardware =
            if wanted.is_hardware { hardware::Baseline::read(src, &cpus) } else { hardware::Baseline::none() };
        let mut probe = WakeProbe::attach(&spec).map_err(refused)?;
        let entered = IdleBaseline::read(src, &cpus);
        let start_at_ns = monotonic_ns();
        let start = probe.read(start_at_ns).map_err(refused)?;
        let last = start.clone();
        let start_cpu_ns = own_cpu_ns();
        Ok(Session {
            probe,
            names,
            start_at_ns,
            start_cpu_ns,
            start_boot_ns: boottime_ns(),
            start,
            entered,
            entered_in_all: None,
            hardware,
            windows: Vec::new(),
            last,
            facts,
            recorder: None,
            online: cpus,
            remarks: Vec::new(),
            ended_early: None,
        })
    }

    /// Starts the recording that was asked for.
    fn record(&mut self, args: &TraceArgs) -> Result<()> {
        let Some(path) = &args.recording.record else { return Ok(()) };
        let n_cpus = n_cpus(&self.online, &self.last);
        let header = record::header(
            &self.facts,
            n_cpus,
            &args.recording,
            args.window.max(SHORTEST_WINDOW_NS),
            self.probe.gaps(),
        );
        let mut recorder = Recorder::start(&args.recording, path, header)?;
        recorder.open(&mut self.probe, self.start_at_ns)?;
        self.recorder = Some(recorder);
        Ok(())
    }

    /// Waits window by window; the command's code when it ended.
    fn wait(
        &mut self,
        src: &dyn Source,
        args: &TraceArgs,
        end_at_ns: Option<u64>,
        mut command: Option<&mut command::Traced>,
        watched: &mut Watched,
        interrupt: &Interrupt,
    ) -> Result<Option<u8>> {
        let progress = Progress::start("trace");
        let window_ns = args.window.max(SHORTEST_WINDOW_NS);
        let mut window_end_ns = self.start_at_ns.saturating_add(window_ns);
        loop {
            let mut until_ns = end_at_ns.map_or(window_end_ns, |end| end.min(window_end_ns));
            if self.recorder.is_some() {
                until_ns = until_ns.min(monotonic_ns() + record::DRAIN_NS);
            }
            watched.sleep_until(until_ns, command.as_deref().map(command::Traced::fd));
            let now_ns = monotonic_ns();
            if let Some(recorder) = &mut self.recorder {
                recorder.drain(&mut self.probe);
            }
            let code = command.as_deref_mut().and_then(command::Traced::ended);
            if let (Some(command), true) = (command.as_deref(), interrupt.is_set()) {
                command.terminate();
            }
            for tgid in watched.ended() {
                // The entry may be gone already: then there is nothing to forget.
                let _ = self.probe.unfollow(tgid);
            }
            if now_ns >= window_end_ns || end_at_ns.is_some_and(|end| now_ns >= end) {
                watched.look();
            }
            let (gone, is_nobody_left) = watched.gone();
            let is_over = end_at_ns.is_some_and(|end| now_ns >= end) || code.is_some();
            let is_stopped = (interrupt.is_set() && command.is_none()) || is_nobody_left;
            if is_stopped && !is_over {
                let why = if is_nobody_left { gone.join(", ") } else { "interrupted".into() };
                self.ended_early = Some(format!("{why} after {}", show_ns(now_ns - self.start_at_ns)));
            } else if is_over {
                self.remarks.extend_from_slice(gone);
            }
            if now_ns >= window_end_ns || is_over || is_stopped {
                self.close_window(src, now_ns, is_over || is_stopped)?;
                // Stopped for a while (SIGSTOP, suspend)? Then one long window, not many empty ones.
                let n_over = now_ns.saturating_sub(window_end_ns) / window_ns;
                window_end_ns = window_end_ns.saturating_add(window_ns.saturating_mul(n_over + 1));
            }
            if is_over || is_stopped {
                return Ok(code);
            }
            let name = command.as_deref().map_or("tracing", command::Traced::name);
            let share = end_at_ns.map_or(0.0, |end| {
                (now_ns - self.start_at_ns) as f64 / end.saturating_sub(self.start_at_ns).max(1) as f64
            });
            progress.set(share, name);
        }
    }

    fn close_window(&mut self, src: &dyn Source, now_ns: u64, is_last: bool) -> Result<()> {
        let now = self.probe.read(now_ns).map_err(refused)?;
        if is_last {
            // At once: what is done below sleeps and wakes CPUs, which the probe no longer counts.
            self.entered_in_all = Some(self.entered.since(src));
        }
        let name_of = |cpu, state| self.names.of_state(cpu, state);
        let window = Window { start_at_ns: self.last.at_ns, end_at_ns: now_ns };
        if let Some(recorder) = &mut self.recorder {
            let n_lost = now.cpus.iter().map(|c| c.n_lost).sum();
            recorder.close(&mut self.probe, now_ns, n_lost);
            recorder.settings(&settings(src), now_ns);
            if is_last {
                self.probe.record(false).map_err(refused)?;
            } else {
                recorder.open(&mut self.probe, now_ns)?;
            }
        }
        if self.windows.len() < MOST_WINDOWS {
            self.windows.push(TraceWindow { window, rows: rows(&now.since(&self.last), &name_of, None) });
        } else if self.windows.len() == MOST_WINDOWS && !self.remarks.iter().any(|r| r.contains("windows are shown")) {
            self.remarks.push(format!("only the first {MOST_WINDOWS} windows are shown one by one"));
        }
        self.last = now;
        Ok(())
    }

    /// The last reading, made sense of; detaches.
    pub(crate) fn finish(mut self, src: &dyn Source, scope_name: String) -> Result<Traced> {
        if self.windows.is_empty() {
            self.close_window(src, monotonic_ns(), true)?;
        }
        let entered = self.entered_in_all.take().unwrap_or_else(|| self.entered.since(src));
        let n_register_interrupts = 2 * self.hardware.n_reads;
        let hardware = self.hardware.since(src);
        let window = Window { start_at_ns: self.start_at_ns, end_at_ns: self.last.at_ns };
        let name_of = |cpu, state| self.names.of_state(cpu, state);
        let mut traced = Traced::of(&self.last.since(&self.start), &name_of, window, scope_name);
        presence::mark(&mut traced.processes, self.start_boot_ns, src);
        for state in &mut traced.states {
            entered_as(state, &entered);
            state.hardware = hardware.of(&state.state, state.n_requested);
        }
        // The kernel counts for every possible CPU; one that is not there is not idle.
        traced.n_cpus = n_cpus(&self.online, &self.last);
        traced.ended_early = self.ended_early;
        traced.own.n_register_interrupts = n_register_interrupts;
        traced.own.cpu_ns = own_cpu_ns() - self.start_cpu_ns;
        traced.own.programs_ns = self.probe.run_time_ns();
        traced.missed.n_recursion = self.probe.n_recursion();
        traced.remarks = self.probe.gaps().iter().map(|gap| format!("not traced: {gap}")).collect();
        traced.remarks.extend(self.names.remarks());
        traced.remarks.extend(self.remarks);
        traced.remarks.extend(shown::remarks(&traced));
        if let Some(recorder) = self.recorder.take() {
            traced.remarks.push(recorder.finish());
        }
        if self.windows.len() > 1 {
            traced.windows = self.windows;
        }
        Ok(traced)
    }
}

/// CPUs that are online, or were: something was counted there.
fn n_cpus(online: &[u32], counters: &WakeCounters) -> u32 {
    let is_there = |cpu: &&CpuCounters| online.contains(&cpu.cpu) || !cpu.cells.is_empty();
    u32::try_from(counters.cpus.iter().filter(is_there).count()).unwrap_or(u32::MAX)
}

/// What governors look at.
fn settings(src: &dyn Source) -> Snapshot {
    Snapshot::read(src, |topic| matches!(topic, "idle" | "qos"))
}

/// What sysfs counted for a state, over all CPUs.
fn entered_as(row: &mut StateRow, entered: &[IdleDelta]) {
    let states = || entered.iter().flat_map(|d| &d.states).filter(|s| s.name == row.state);
    if states().next().is_some() {
        row.n_entered = Some(states().map(|s| s.n_usage).sum());
        row.entered_time_ns = Some(states().map(|s| s.time_ns).sum());
    }
}

fn show(args: &TraceArgs, page: Option<&Outlet>, traced: &Traced, has_command: bool, colour: Colour) -> Result<()> {
    let report = TraceReport {
        title: format!("wake-ups of {} over {}", traced.scope, show_ns(traced.window.length_ns())),
        generated_at: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        traced,
        is_by_cpu: args.by_cpu,
    };
    let shown = if args.json {
        output::json("trace", traced).and_then(|text| output::print(&text))
    } else {
        let text = report.to_text(output::width(), colour.is_on());
        // The command's own output has standard output for itself.
        if has_command {
            output::remark(&text);
            Ok(())
        } else {
            output::print(&text)
        }
    };
    if let Some(page) = page {
        page.write(&report.to_html().context("the HTML page")?)?;
        output::remark(&format!("Report: {}", page.path().display()));
    }
    shown
}
