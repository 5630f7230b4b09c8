//! `wakewatt doctor`: look, measure, experiment, explain, report. The main job.
//!
//! On a recorded host it only looks. On a live one it measures wake-ups, loopback round trips and disk reads as it finds
//! them, then, if it may, turns the setting that matters most here (`chosen`) back and forth in random order and measures
//! again. Every step that could not be done becomes a line with its reason; nothing stops the steps after it.

use crate::cli::DoctorArgs;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use crate::output::{self, Colour, Outlet};
use crate::progress::Progress;
use crate::report::{self, Report, text::Style, verdict};
use crate::saved;
use anyhow::Result;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::rules::{Answer, Ruling, Weight, judge};
use wakewatt_core::samples::experiment::ExperimentRun;
use wakewatt_core::samples::network::Transport;
use wakewatt_core::samples::not_done::{NotDone, Step, Why};
use wakewatt_core::samples::wakeup::WakeKind;
use wakewatt_core::source::Source;
use wakewatt_core::units::show_ns;
use wakewatt_host::affinity::allowed_cpus;
use wakewatt_host::clock::monotonic_ns;
use wakewatt_lab::bench::{self, NetworkSpec, RespondSpec, Responder};
use wakewatt_lab::pick;
use wakewatt_lab::survey::{OneWakeup, memory_as_found, nodes_of, one_wakeup};
use wakewatt_lab::trace::of_machine;

mod chosen;
mod disk;
mod experiment;
mod power;
mod quiet;
mod states;

/// The report's name when none is given.
const DEFAULT_REPORT: &str = "wakewatt-report.html";
const GAP_NS: u64 = 1_000_000;
/// Utilisation is counted in ticks of 10 ms.
const MIN_WORK_NS: u64 = 1_000_000_000;
/// Pairs of memory nodes that doctor measures, at about half a second each.
const MAX_CELLS: usize = 16;

/// How long each part may take.
#[derive(Clone, Copy, Debug)]
struct Times {
    trace_ns: u64,
    probe_ns: u64,
    block_ns: u64,
    warmup_ns: u64,
    /// From start to report.
    total_ns: u64,
    /// After the experiment: settings put back, rules, the report.
    reserve_ns: u64,
    /// For the experiment: what the parts before it left.
    experiment_ns: u64,
    is_quick: bool,
}

/// Below this no look at the data can be reached.
const MIN_EXPERIMENT_NS: u64 = 12_000_000_000;

const QUICK: Times = Times {
    trace_ns: 5_000_000_000,
    probe_ns: 1_000_000_000,
    block_ns: 1_800_000_000,
    warmup_ns: 100_000_000,
    total_ns: 60_000_000_000,
    reserve_ns: 3_000_000_000,
    experiment_ns: 0,
    is_quick: true,
};
const FULL: Times = Times {
    trace_ns: 15_000_000_000,
    probe_ns: 4_000_000_000,
    block_ns: 4_500_000_000,
    warmup_ns: 300_000_000,
    total_ns: 300_000_000_000,
    reserve_ns: 10_000_000_000,
    experiment_ns: 0,
    is_quick: false,
};

impl Times {
    /// The experiment gets what is left of the whole, or there is none.
    fn with_the_rest(self, spent_ns: u64) -> Result<Times, String> {
        let experiment_ns = self.total_ns.saturating_sub(spent_ns).saturating_sub(self.reserve_ns);
        match experiment_ns >= MIN_EXPERIMENT_NS {
            true => Ok(Times { experiment_ns, ..self }),
            false => Err(format!(
                "the measurements before it took {} of {}; wakewatt experiment does it alone",
                show_ns(spent_ns),
                show_ns(self.total_ns)
            )),
        }
    }
}

/// Runs it.
pub fn run(args: &DoctorArgs, colour: Colour) -> Result<Code> {
    let start_at_ns = monotonic_ns();
    let interrupt = Interrupt::listen()?;
    let report_file = report_file(args)?;
    let src = super::open(&args.from)?;
    let saving = saved::start(args.save.as_deref(), "doctor", &*src)?;
    // Read once: what the file says of the machine the page says too.
    let facts = saving.as_ref().map_or_else(|| Snapshot::read(&*src, |_| true), saved::Saving::facts);
    let mut evidence = Evidence { facts, ..Evidence::default() };
    if src.is_live() {
        measure(args, start_at_ns, &*src, &mut evidence, &interrupt);
    } else {
        evidence.not_done.push(NotDone::new(Step::Measurements, Why::RecordedHost));
        evidence.not_done.push(NotDone::new(Step::Experiment, Why::RecordedHost));
    }
    let rulings = judge(&evidence);
    let report = Report::new(
        report::title(&evidence.facts),
        humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        evidence,
        rulings,
    );
    // A result that nobody could read must not take the files, or the word that something was not restored, with it.
    let own = output::settled(show(args, &report, colour), code(args, &report, src.is_live(), &interrupt));
    let own = saving.map_or(own, |saving| saving.finish_with(&report.evidence, own));
    let written = report_file.map(|file| write_report(&report, &file)).transpose();
    if let Err(error) = written {
        output::complain(&format!("{error:#}"));
        return Ok(if own == Code::Fine { Code::BadFile } else { own });
    }
    Ok(own)
}

fn report_file(args: &DoctorArgs) -> Result<Option<Outlet>> {
    if args.no_report {
        return Ok(None);
    }
    let file: PathBuf = args.output.clone().unwrap_or_else(|| DEFAULT_REPORT.into());
    match Outlet::open(&file, "-o") {
        Ok(outlet) => Ok(Some(outlet)),
        Err(why) if args.output.is_some() => {
            Err(Failure::error(Code::BadFile, format!("{why}, or say --no-report; nothing was measured")))
        }
        Err(why) => {
            output::remark(&format!("No HTML report: {why}."));
            Ok(None)
        }
    }
}

fn measure(args: &DoctorArgs, start_at_ns: u64, src: &dyn Source, evidence: &mut Evidence, interrupt: &Interrupt) {
    let allowed = match allowed_cpus() {
        Ok(allowed) => allowed,
        Err(why) => {
            let why = format!("cannot ask which CPUs this process may use: {why}");
            return evidence.not_done.push(NotDone::new(Step::Measurements, why));
        }
    };
    // Its time is its own: what doctor measures gets all of what it was promised.
    let start_at_ns = start_at_ns + quiet::wait(args.wait_quiet, &allowed, src, evidence, interrupt);
    let times = if args.quick { QUICK } else { FULL };
    let Some(cpu) = pick::sleeper(&allowed) else {
        return evidence.not_done.push(NotDone::new(Step::Measurements, "this process may use no CPU"));
    };
    let work = bench::WorkWatch::start(src, &allowed);
    trace(args, times, src, evidence, interrupt);
    own_work(work, src, evidence);
    power::look(!args.read_only && !args.quick, evidence, interrupt);
    probes(cpu, &allowed, times, src, evidence, interrupt);
    memory(&allowed, src, evidence, interrupt);
    match (args.read_only, args.quick) {
        (true, _) => left_out(evidence, Step::Disk, Why::ReadOnly("writes no file to read from".into())),
        (_, true) => left_out(evidence, Step::Disk, Why::Quick("wakewatt measure disk does it alone".into())),
        _ if interrupt.is_set() => {}
        _ => disk::run(args.seed, cpu, src, evidence, interrupt),
    }
    if !interrupt.is_set() {
        states::speed_after_idle(cpu, evidence, interrupt);
    }
    if args.read_only {
        let why = "changes nothing; without it doctor proves or disproves the cost";
        left_out(evidence, Step::Experiment, Why::ReadOnly(why.into()));
    } else if !interrupt.is_set() {
        states::idle_states(cpu, &allowed, times.is_quick, src, evidence, interrupt);
        match times.with_the_rest(monotonic_ns().saturating_sub(start_at_ns)) {
            Ok(times) => chosen::run(args.seed, cpu, &allowed, times, src, evidence, interrupt),
            Err(why) => left_out(evidence, Step::Experiment, why.into()),
        }
    }
    if interrupt.is_set() {
        left_out(evidence, Step::Rest, Why::Interrupted);
    }
}

fn left_out(evidence: &mut Evidence, step: Step, why: Why) {
    evidence.not_done.push(NotDone { step, why });
}

/// The machine's own wake-ups, before any of ours.
fn trace(args: &DoctorArgs, times: Times, src: &dyn Source, evidence: &mut Evidence, interrupt: &Interrupt) {
    if args.read_only {
        return left_out(evidence, Step::Trace, Why::ReadOnly("loads no eBPF program".into()));
    }
    let progress = Progress::start("doctor");
    progress.set(0.0, "tracing the machine's own wake-ups");
    match of_machine(interrupt.lab(src, &progress), times.trace_ns) {
        Ok(traced) => evidence.samples.trace = Some(traced),
        Err(why) => left_out(evidence, Step::Trace, format!("{why:#}").into()),
    }
}

/// What the CPUs got done in the window of the trace, or in a second where that was not allowed.
fn own_work(work: Result<bench::WorkWatch, bench::BenchError>, src: &dyn Source, evidence: &mut Evidence) {
    match work {
        Ok(watch) => {
            std::thread::sleep(Duration::from_nanos(MIN_WORK_NS.saturating_sub(watch.length_ns())));
            evidence.samples.work = Some(watch.stop(src));
        }
        Err(why) => left_out(evidence, Step::OwnWork, why.to_string().into()),
    }
}

/// The machine as it was found.
fn probes(cpu: u32, allowed: &CpuSet, times: Times, src: &dyn Source, evidence: &mut Evidence, interrupt: &Interrupt) {
    let progress = Progress::start("doctor");
    let from_cpu = pick::partner(&evidence.facts.topology, allowed, cpu);
    for (at, kind) in [WakeKind::Timer, WakeKind::Futex, WakeKind::Eventfd, WakeKind::Ipi].into_iter().enumerate() {
        if interrupt.is_set() {
            return;
        }
        progress.set(at as f64 / 6.0, &format!("measuring as found: {} wake-up", kind.word()));
        let one = OneWakeup { kind, cpu, from_cpu, gap_ns: GAP_NS, duration_ns: times.probe_ns };
        match one_wakeup(interrupt.lab(src, &progress), &one) {
            Ok(sample) => evidence.samples.wakeups.push(sample),
            Err(why) => evidence.not_done.push(NotDone::named(format!("{} wake-up", kind.word()), why.to_string())),
        }
    }
    let Some(from_cpu) = from_cpu else {
        return left_out(evidence, Step::Network, "a round trip over loopback needs two CPUs".into());
    };
    let responder = match Responder::start(&RespondSpec::loopback(Some(cpu))) {
        Ok(responder) => responder,
        Err(why) => return left_out(evidence, Step::Network, why.to_string().into()),
    };
    for (at, transport) in [Transport::Udp, Transport::Tcp].into_iter().enumerate() {
        if interrupt.is_set() {
            return;
        }
        progress
            .set((at + 4) as f64 / 6.0, &format!("measuring as found: {} round trips over loopback", transport.word()));
        let spec = NetworkSpec {
            local_responder_cpu: Some(cpu),
            ..NetworkSpec::to(transport, responder.address(), from_cpu, times.probe_ns)
        };
        match bench::round_trip(&spec, interrupt.flag(), src) {
            Ok(mut slice) => {
                slice.sample.peer = "loopback".into();
                evidence.samples.network.push(slice.sample);
            }
            Err(why) => {
                evidence.not_done.push(NotDone::named(format!("{} round trip", transport.word()), why.to_string()));
            }
        }
    }
}

/// A short look at memory; it changes no setting. On many nodes it takes longer than the experiment may wait, so there it
/// is left to its own command.
fn memory(allowed: &CpuSet, src: &dyn Source, evidence: &mut Evidence, interrupt: &Interrupt) {
    if interrupt.is_set() {
        return;
    }
    let nodes = nodes_of(src, allowed);
    if nodes.with_cpus.len() * nodes.with_memory.len() > MAX_CELLS {
        return left_out(
            evidence,
            Step::Memory,
            "too many pairs of nodes for this run; wakewatt measure memory".into(),
        );
    }
    let progress = Progress::start("doctor");
    progress.set(0.9, "measuring as found: memory");
    match memory_as_found(interrupt.lab(src, &progress), allowed) {
        Ok(sample) => evidence.samples.memory = Some(sample),
        Err(why) => left_out(evidence, Step::Memory, why.to_string().into()),
    }
}

fn show(args: &DoctorArgs, report: &Report, colour: Colour) -> Result<()> {
    if args.json {
        output::print(&report.to_json("doctor")?)
    } else if args.markdown {
        output::print(&report.to_markdown())
    } else {
        output::print(&report.to_text(Style { width: output::width().min(100), is_coloured: colour.is_on() }))
    }
}

fn write_report(report: &Report, file: &Outlet) -> Result<()> {
    file.write(&report.to_html()?)?;
    output::remark(&format!("Report: {}", file.path().display()));
    Ok(())
}

fn code(args: &DoctorArgs, report: &Report, is_live: bool, interrupt: &Interrupt) -> Code {
    let evidence = &report.evidence;
    let is_restored = evidence.samples.all_experiments().all(ExperimentRun::is_restored)
        && evidence.samples.idle_states.iter().all(|costs| costs.not_restored.is_empty());
    let limit = match args.fail_on.as_deref() {
        Some("problem") => Some(Weight::Problem),
        Some("risk") => Some(Weight::Risk),
        Some(_) => Some(Weight::Note),
        None => None,
    };
    let is_heavy = |r: &Ruling| matches!(&r.answer, Answer::Yes(finding) if limit.is_some_and(|l| finding.weight <= l));
    if !is_restored {
        Code::NotRestored
    } else if interrupt.is_set() {
        Code::Interrupted
    } else if report.rulings.iter().any(is_heavy) {
        Code::Findings
    } else if report.verdict().kind == verdict::Kind::NoExperiment
        && !args.read_only
        && is_live
        && report.evidence.samples.wakeups.is_empty()
    {
        Code::CouldNotMeasure
    } else {
        Code::Fine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_experiment_gets_what_the_parts_before_it_left() {
        let left = |times: Times, spent_s: u64| times.with_the_rest(spent_s * 1_000_000_000).map(|t| t.experiment_ns);
        assert_eq!((left(QUICK, 20), left(FULL, 90)), (Ok(37_000_000_000), Ok(200_000_000_000)));
        for spent_s in [50, 500] {
            assert!(left(QUICK, spent_s).unwrap_err().contains("of 60s"));
        }
    }
}
