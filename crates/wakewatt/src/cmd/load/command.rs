//! `wakewatt load -- CMD`: any benchmark as a load, run so often, with its CPU time, its watts and the figure it prints.
//!
//! The command's output passes through as it comes; its exit code is ours, and a run that failed ends the rest, because a
//! figure of a failed benchmark is none. CPU time is the command's own and that of the children it waited for; what it
//! leaves running behind it is only in the busy time of the CPUs. Watts are the machine's, whoever else uses it.

use super::{meters, publish};
use crate::cli::load::CommandArgs;
use crate::cmd::saved;
use crate::exit::{Code, End, Failure};
use crate::interrupt::{Interrupt, Wait};
use crate::output;
use anyhow::{Context, Result};
use rustix::process::{Pid, PidfdFlags, Signal};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::experiment::Better;
use wakewatt_core::samples::load::{Ask, Kind, Length, Level, LoadRun};
use wakewatt_core::samples::{self, Window, repeated};
use wakewatt_core::source::Source;
use wakewatt_core::units::Cpu;
use wakewatt_host::affinity::allowed_cpus;
use wakewatt_host::clock::monotonic_ns;
use wakewatt_host::live::Live;
use wakewatt_host::reaped::{Reaped, reap};
use wakewatt_lab::bench::IdleBaseline;
use wakewatt_lab::figure::{Figure, Output};
use wakewatt_lab::load::settings::Watch;
use wakewatt_lab::load::usage::{NO_LOAD_AVERAGE, Usage, load_average};
use wakewatt_lab::meters::Meters;
use wakewatt_lab::noise::NoiseCounters;

/// The first look at the meters.
const LOOK_NS: u64 = 1_100_000_000;

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
    let cpus = allowed_cpus().context("cannot ask which CPUs this process may use")?;
    let src = Live::this_machine();
    let saving = saved::start(args.save.as_deref(), "load", &src)?;
    let mut meters = meters(&args.meters)?;
    let interrupt = Interrupt::listen()?;
    let wait = Wait::listen()?;
    let words: Vec<String> = args.command.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    let mut watch = Watch::start(&src, monotonic_ns());
    let mut run = LoadRun {
        kind: Kind::Command,
        title: words.join(" "),
        length: Length::Custom,
        settings: watch.settings(),
        ..LoadRun::default()
    };
    let recorder = meters.look();
    let until_ns = monotonic_ns() + LOOK_NS;
    while monotonic_ns() < until_ns && !interrupt.is_set() {
        wait.wait(until_ns.saturating_sub(monotonic_ns()));
    }
    run.remarks.extend(meters.keep(&recorder.stop()));
    match &figure {
        Some(figure) => {
            let way = if args.better() == Better::Lower { "lower" } else { "higher" };
            run.remarks.push(format!("the figure of a run is what it printed by {}; {way} is better", figure.name()));
        }
        None => run.remarks.push("without --metric the figure of a run is runs per second".into()),
    }
    let ended = all(args, figure.as_ref(), &mut run, &cpus, &meters, (&src, &mut watch), &interrupt, &wait);
    run.changes.extend(watch.look(&src, monotonic_ns()));
    run.remarks.extend(repeated::told(&run));
    if !run.levels.is_empty() {
        if run.levels.iter().any(|l| l.load_average.is_none()) {
            run.remarks.push(NO_LOAD_AVERAGE.into());
        }
        // The command's code is what was promised; a file that could not be written is told.
        publish(run, args.json, saving.as_ref())?;
    }
    ended
}

/// All runs; those that ended well are in the run.
#[allow(clippy::too_many_arguments)]
fn all(
    args: &CommandArgs,
    figure: Option<&Figure>,
    run: &mut LoadRun,
    cpus: &CpuSet,
    meters: &Meters,
    (src, watch): (&dyn Source, &mut Watch),
    interrupt: &Interrupt,
    wait: &Wait,
) -> Result<End> {
    for nth in 1..=args.repeat {
        if interrupt.is_set() {
            return Ok(Code::Interrupted.into());
        }
        let (mut level, code, output) = one(args, figure.is_some(), cpus, meters, src, interrupt, wait)?;
        if code != 0 {
            if args.repeat > 1 {
                output::complain(&format!("run {nth} of {} ended with code {code}; the rest is not run", args.repeat));
            }
            return Ok(End::Command(code));
        }
        if let Some(figure) = figure {
            let found = figure.find(&output).map_err(|why| {
                Failure::error(Code::CouldNotMeasure, format!("run {nth} of {} gave no figure: {why}", args.repeat))
            });
            level.figure = Some(samples::load::Figure { value: found?, better: args.better() });
        }
        run.levels.push(level);
        run.changes.extend(watch.look(src, monotonic_ns()));
    }
    Ok(End::Command(0))
}

/// One run: its level, exit code and output.
fn one(
    args: &CommandArgs,
    has_figure: bool,
    cpus: &CpuSet,
    meters: &Meters,
    src: &dyn Source,
    interrupt: &Interrupt,
    wait: &Wait,
) -> Result<(Level, u8, Output)> {
    let (program, arguments) = args.command.split_first().context("no command")?;
    let recorder = meters.start();
    let all: Vec<Cpu> = cpus.iter().collect();
    let (noise, idle) = (NoiseCounters::read(src, cpus, 0), IdleBaseline::read(src, &all));
    let cannot = |e: &dyn std::fmt::Display| {
        let name = program.to_string_lossy();
        Failure::error(Code::Usage, format!("{name}: could not be started: {e}; the command comes after --"))
    };
    let mut command = wakewatt_host::environment::users(program).map_err(|e| cannot(&e))?;
    command.args(arguments);
    if has_figure || args.json {
        command.stdout(Stdio::piped());
    }
    let start_at_ns = monotonic_ns();
    let usage = Usage::read(src, cpus, start_at_ns);
    let mut child = command.spawn().map_err(|e| cannot(&e))?;
    let is_json = args.json;
    // To standard error where standard output is for our document.
    let pass = move |line: &[u8]| match is_json {
        true => output::pass_on_error(line),
        false => drop(output::pass_on(line)),
    };
    let output = child.stdout.take().map(|from| Output::follow(from, pass)).transpose().map_err(anyhow::Error::msg)?;
    let ended = follow(child.id(), interrupt, wait)?;
    let end_at_ns = monotonic_ns();
    let used = Usage::read(src, cpus, end_at_ns).since(&usage);
    let window = Window { start_at_ns, end_at_ns };
    let energy = recorder.stop_within(window);
    let cpu_ns = ended.user_ns.saturating_add(ended.system_ns);
    let noise = NoiseCounters::read(src, cpus, cpu_ns).since(&noise, window.length_ns().max(1));
    let code = ended.status.code().or_else(|| Some(128 + ended.status.signal()?)).unwrap_or(255);
    let notes = [noise.notes, wakewatt_lab::load::rules::silences(Some(&energy))].concat();
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
        cpu_ns,
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
fn follow(pid: u32, interrupt: &Interrupt, wait: &Wait) -> Result<Reaped> {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw).context("process id out of range")?;
    let pidfd = rustix::process::pidfd_open(number, PidfdFlags::empty()).context("pidfd_open")?;
    let mut is_told = false;
    loop {
        if let Some(ended) = reap(pid).context("the command cannot be waited for")? {
            return Ok(ended);
        }
        if interrupt.is_set() && !is_told {
            is_told = true;
            let _ = rustix::process::pidfd_send_signal(&pidfd, Signal::TERM);
        }
        wait.wait_for(Some(pidfd.as_fd()), None, 1_000_000_000);
    }
}
