//! Any benchmark as a load: run so often, with its CPU time, its watts and the figure it prints.
//!
//! A run that failed ends the rest, because a figure of a failed benchmark is none. CPU time is the command's own and that of
//! the children it waited for; what it leaves running behind it is only in the busy time of the CPUs. Watts are the
//! machine's, whoever else uses it.

use super::rules::silences;
use super::settings::Watch;
use super::usage::{NO_LOAD_AVERAGE, Usage, load_average};
use crate::bench::IdleBaseline;
use crate::context::Lab;
use crate::figure::{Figure, Output};
use crate::meters::Meters;
use crate::noise::NoiseCounters;
use crate::refusal::Refusal;
use crate::survey::allowed_cpus;
use rustix::process::{Pid, PidfdFlags, Signal};
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::experiment::Better;
use wakewatt_core::samples::load::{Ask, CpuBy, Kind, Length, Level, LoadRun};
use wakewatt_core::samples::{self, Window, repeated};
use wakewatt_core::units::Cpu;
use wakewatt_host::reaped::{Reaped, reap};

/// The first look at the meters.
const LOOK_NS: u64 = 1_100_000_000;

/// What is to be run.
pub struct RunsPlan {
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// So often.
    pub n_runs: u32,
    /// What it achieves; runs per second when none.
    pub figure: Option<Figure>,
    /// Which way that is better.
    pub better: Better,
    /// What is read meanwhile.
    pub meters: Meters,
    /// Gets the lines of its output; when none it goes where ours goes. A figure needs one.
    pub pass: Option<fn(&[u8])>,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunsEnd {
    /// Every run with code 0.
    Well,
    /// One failed, with this code; the rest was not run.
    Failed(u8),
    /// It was told to end.
    Stopped,
}

/// Runs it; the load holds the runs that ended well, also where one gave no figure.
pub fn runs(lab: Lab<'_>, mut plan: RunsPlan) -> Result<(LoadRun, Result<RunsEnd, Refusal>), Refusal> {
    let Lab { src, clock, .. } = lab;
    let cpus = allowed_cpus()?;
    let words: Vec<String> = plan.command.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    let mut watch = Watch::start(src, clock.now_ns());
    let mut run = LoadRun {
        kind: Kind::Command,
        title: words.join(" "),
        command_hash: Some(samples::load::command_hash(&words)),
        length: Length::Custom,
        settings: watch.settings(),
        ..LoadRun::default()
    };
    let recorder = plan.meters.look();
    lab.wait_until(clock.now_ns() + LOOK_NS);
    run.remarks.extend(plan.meters.keep(&recorder.stop()));
    match &plan.figure {
        Some(figure) => {
            let way = if plan.better == Better::Lower { "lower" } else { "higher" };
            let option = figure.option();
            run.remarks
                .push(format!("the figure of a run is the number that {option} finds in its output; {way} is better"));
        }
        None => run.remarks.push("without --metric the figure of a run is runs per second".into()),
    }
    let ended = all(lab, &plan, &mut run, &cpus, &mut watch);
    run.changes.extend(watch.look(src, clock.now_ns()));
    run.remarks.extend(repeated::told(&run));
    if run.levels.iter().any(|l| l.load_average.is_none()) {
        run.remarks.push(NO_LOAD_AVERAGE.into());
    }
    Ok((run, ended))
}

/// All runs; those that ended well are in the run.
fn all(lab: Lab<'_>, plan: &RunsPlan, run: &mut LoadRun, cpus: &CpuSet, watch: &mut Watch) -> Result<RunsEnd, Refusal> {
    let n = plan.n_runs;
    for nth in 1..=n {
        if lab.is_stopped() {
            return Ok(RunsEnd::Stopped);
        }
        let (mut level, code, output) = one(lab, plan, cpus)?;
        if code != 0 {
            if n > 1 {
                lab.tell.complain(&format!("run {nth} of {n} ended with code {code}; the rest is not run"));
            }
            return Ok(RunsEnd::Failed(code));
        }
        if let Some(figure) = &plan.figure {
            let found = figure.find(&output);
            let value = found.map_err(|why| Refusal::Unavailable(format!("run {nth} of {n} gave no figure: {why}")))?;
            level.figure = Some(samples::load::Figure { value, better: plan.better });
        }
        run.levels.push(level);
        run.changes.extend(watch.look(lab.src, lab.clock.now_ns()));
    }
    Ok(RunsEnd::Well)
}

/// One run: its level, exit code and output.
fn one(lab: Lab<'_>, plan: &RunsPlan, cpus: &CpuSet) -> Result<(Level, u8, Output), Refusal> {
    let Lab { src, clock, .. } = lab;
    let meters = &plan.meters;
    let (program, arguments) = plan.command.split_first().ok_or_else(|| Refusal::Asked("no command".into()))?;
    let recorder = meters.start();
    let all: Vec<Cpu> = cpus.iter().collect();
    let (noise, idle) = (NoiseCounters::read(src, cpus, 0), IdleBaseline::read(src, &all));
    let cannot = |e: &dyn std::fmt::Display| {
        let name = program.to_string_lossy();
        Refusal::Asked(format!("{name}: could not be started: {e}; the command comes after --"))
    };
    let mut command = wakewatt_host::environment::users(program).map_err(|e| cannot(&e))?;
    command.args(arguments);
    if plan.pass.is_some() {
        command.stdout(Stdio::piped());
    }
    let start_at_ns = clock.now_ns();
    let usage = Usage::read(src, cpus, start_at_ns);
    let mut child = command.spawn().map_err(|e| cannot(&e))?;
    let lines = child.stdout.take().zip(plan.pass);
    let output = lines.map(|(from, pass)| Output::follow(from, pass)).transpose().map_err(Refusal::Unavailable)?;
    let ended = follow(lab, child.id())?;
    let end_at_ns = clock.now_ns();
    let used = Usage::read(src, cpus, end_at_ns).since(&usage);
    let window = Window { start_at_ns, end_at_ns };
    let energy = recorder.stop_within(window);
    let cpu_ns = ended.user_ns.saturating_add(ended.system_ns);
    let noise = NoiseCounters::read(src, cpus, cpu_ns).since(&noise, window.length_ns().max(1));
    let code = ended.status.code().or_else(|| Some(128 + ended.status.signal()?)).unwrap_or(255);
    let notes = [noise.notes(), silences(Some(&energy))].concat();
    let level = Level {
        ask: Ask::Run,
        phases_ns: [0, 0, window.length_ns(), 0],
        window,
        target_per_s: None,
        n_planned: 1,
        n_done: 1,
        n_failed: 0,
        per_s: 1e9 / window.length_ns().max(1) as f64,
        figure: None,
        latency: None,
        service: None,
        parts: Vec::new(),
        cpu_per_op: None,
        cpu_ns,
        cpu_by: Some(CpuBy::Command),
        system_ns: ended.system_ns,
        cpus: used.cpus,
        // What the command left running, or had running elsewhere, is in nobody's sum.
        foreign_ratio: None,
        load_average: load_average(src, window.length_ns()),
        idle: idle.since(src),
        energy: (energy.chosen.is_some() || !energy.witnesses.is_empty()).then_some(energy),
        disturbances: notes,
        broken_rules: Vec::new(),
    };
    let output = output.map(|o| o.finish(Duration::from_secs(1))).unwrap_or_default();
    Ok((level, u8::try_from(code & 0xff).unwrap_or(255), output))
}

/// Waits for its end without ticking; hands an interruption on, once.
fn follow(lab: Lab<'_>, pid: u32) -> Result<Reaped, Refusal> {
    let cannot = |e: &dyn std::fmt::Display| Refusal::File(format!("the command cannot be waited for: {e}"));
    let number =
        i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(|| cannot(&"its process id is out of range"))?;
    let pidfd = rustix::process::pidfd_open(number, PidfdFlags::empty()).map_err(|e| cannot(&e))?;
    let mut is_told = false;
    loop {
        if let Some(ended) = reap(pid).map_err(|e| cannot(&e))? {
            return Ok(ended);
        }
        if lab.is_stopped() && !is_told {
            is_told = true;
            let _ = rustix::process::pidfd_send_signal(&pidfd, Signal::TERM);
        }
        lab.clock.sleep_until(u64::MAX, &[pidfd.as_fd()]);
    }
}
