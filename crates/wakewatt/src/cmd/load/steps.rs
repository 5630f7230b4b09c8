//! `wakewatt load steps`: what is run, in which order, and what must be said beside the numbers.
//!
//! Before anything is loaded the machine is looked at for a second: which meters work, and whether others use its CPUs. A level
//! that ended is kept, whatever happens after it: an interruption or a worker that was killed end the run, not what is known.

use super::{meters, publish};
use crate::cli::load::{StepsArgs, standard_levels};
use crate::cmd::measure::nodes_of;
use crate::cmd::saved;
use crate::exit::{Code, End, Failure};
use crate::interrupt::{Interrupt, Wait};
use crate::output;
use crate::progress::Progress;
use anyhow::{Context, Result};
use std::cell::Cell;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::load::{Ask, Length, Level, LoadRun};
use wakewatt_core::samples::repeated;
use wakewatt_core::source::Source;
use wakewatt_core::units::show_ns;
use wakewatt_host::affinity::allowed_cpus;
use wakewatt_host::clock::{monotonic_ns, own_cpu_ns};
use wakewatt_host::live::Live;
use wakewatt_lab::load::rules::FOREIGN_RATIO;
use wakewatt_lab::load::settings::Watch;
use wakewatt_lab::load::usage::{NO_LOAD_AVERAGE, Usage};
use wakewatt_lab::load::{Ended, Engine, Phases, Place, Spec, calibrate, level};
use wakewatt_lab::meters::Meters;

/// More are a mistake, or a week.
const MOST_LEVELS: usize = 100;
/// The same with --repeat.
const MOST_REPEATED: usize = 1000;
/// The first look.
const LOOK_NS: u64 = 1_100_000_000;
/// Fewer planned in a level: chance alone moves the rate by more than 1 %.
const FEW: f64 = 10_000.0;
/// A service time may be this part of what is recorded.
const FEWEST_IN_INTERVAL: u64 = 20;
/// What a CPU cannot do: no transaction is shorter than 10 us.
const MOST_PER_CPU_S: f64 = 1e5;

/// Runs it.
pub(super) fn run(args: &StepsArgs) -> Result<End> {
    let (length, phases) = phases(args);
    let levels = if args.levels.is_empty() { standard_levels() } else { args.levels.clone() };
    let src = Live::this_machine();
    let cpus = cpus(args)?;
    check(args, &phases, &levels, cpus.len())?;
    let levels = levels.repeat(args.repeat.max(1) as usize);
    let saving = saved::start(args.save.as_deref(), "load steps", &src)?;
    let mut meters = meters(&args.meters)?;
    let interrupt = Interrupt::listen()?;
    let mut watch = Watch::start(&src, monotonic_ns());
    let mut run = LoadRun {
        title: format!("steps, {} a transaction", show_ns(args.service)),
        length,
        seed: args.seed.unwrap_or_else(wakewatt_lab::pick::seed_of_now),
        settings: watch.settings(),
        service_ns: Some(args.service),
        ..LoadRun::default()
    };
    let spec = spec(&src, &cpus, args.service, args.work, run.seed, &mut run.remarks)?;
    first_look(&src, &cpus, &mut meters, &mut run.remarks, &interrupt)?;
    let ended = all(&mut run, &spec, &levels, &phases, &meters, (&src, &mut watch), &interrupt);
    run.changes.extend(watch.look(&src, monotonic_ns()));
    run.remarks.extend(repeated::told(&run));
    few(&mut run);
    if run.levels.iter().any(|l| l.load_average.is_none()) {
        run.remarks.push(NO_LOAD_AVERAGE.into());
    }
    let has_levels = !run.levels.is_empty();
    let is_shown = has_levels || ended.is_ok();
    let kept = if is_shown { publish(run, args.json, saving.as_ref())? } else { Code::Fine };
    match ended {
        Ok(()) => Ok(kept.into()),
        Err(Ended::Stopped) => {
            if !has_levels {
                output::remark("Interrupted before the first level ended; there is nothing to show.");
            }
            Ok(Code::Interrupted.into())
        }
        Err(Ended::Failed(why)) => Err(Failure::error(Code::CouldNotMeasure, why)),
    }
}

/// Calibration and all levels; what ended is in the run.
fn all(
    run: &mut LoadRun,
    spec: &Spec,
    levels: &[Ask],
    phases: &Phases,
    meters: &Meters,
    (src, watch): (&dyn Source, &mut Watch),
    interrupt: &Interrupt,
) -> Result<(), Ended> {
    let is_calibrated = levels.iter().any(|l| matches!(l, Ask::Share(_)));
    let n_calibrations = if is_calibrated { calibrate::FEWEST } else { 0 };
    let total_ns = phases.total_ns() * (levels.len() + n_calibrations) as u64;
    output::remark(&format!(
        "{} levels{}: {} or more.",
        levels.len(),
        if is_calibrated { " after a calibration" } else { "" },
        about(total_ns)
    ));
    let (bar, end_at_ns) = (Progress::start("load steps"), Cell::new(monotonic_ns() + total_ns));
    let tell = |what: &str| {
        let left_ns = end_at_ns.get().saturating_sub(monotonic_ns());
        bar.set(1.0 - left_ns as f64 / total_ns.max(1) as f64, &format!("{what}; {} left", about(left_ns)));
    };
    let stop = interrupt.flag();
    let mut engine = Engine::start(spec, stop, &tell)?;
    run.workers = engine.places();
    run.work_units = Some(engine.work_units());
    if is_calibrated {
        run.calibration = engine.calibrate(phases, stop, &tell)?;
        run.capacity_per_s = engine.capacity_per_s();
        run.remarks.extend(calibrate::remark(&run.calibration));
        run.changes.extend(watch.look(src, monotonic_ns()));
    }
    let mut overheads = Vec::new();
    for (index, ask) in levels.iter().enumerate() {
        end_at_ns.set(monotonic_ns() + phases.total_ns() * (levels.len() - index) as u64);
        let done = level(&mut engine, *ask, phases, meters, stop, src, &tell)?;
        run.levels.push(done.level);
        run.changes.extend(watch.look(src, monotonic_ns()));
        overheads.extend(done.overhead_ns);
        run.overhead_ns_per_op =
            Some(overheads.iter().sum::<f64>() / overheads.len().max(1) as f64).filter(|_| !overheads.is_empty());
    }
    Ok(())
}

fn phases(args: &StepsArgs) -> (Length, Phases) {
    match (args.interval, args.quick, args.spec_like) {
        (Some(ns), ..) => (Length::Custom, Phases::custom(ns)),
        (_, true, _) => (Length::Quick, Phases::of(Length::Quick)),
        (_, _, true) => (Length::SpecLike, Phases::of(Length::SpecLike)),
        _ => (Length::Standard, Phases::of(Length::Standard)),
    }
}

fn cpus(args: &StepsArgs) -> Result<CpuSet> {
    let allowed = allowed_cpus().context("cannot ask which CPUs this process may use")?;
    let Some(cpus) = &args.cpus else { return Ok(allowed) };
    let outside = cpus.minus(&allowed);
    if cpus.is_empty() || !outside.is_empty() {
        let why =
            format!("--cpus {cpus}: this process may use {allowed}; name some of those, or widen taskset or cpuset");
        return Err(Failure::error(Code::Usage, why));
    }
    Ok(cpus.clone())
}

/// What the command line's parser cannot see.
fn check(args: &StepsArgs, phases: &Phases, levels: &[Ask], n_cpus: usize) -> Result<()> {
    let usage = |text: String| Err(Failure::error(Code::Usage, text));
    if args.service.saturating_mul(FEWEST_IN_INTERVAL) > phases.record_ns {
        return usage(format!(
            "a transaction of {} in a recorded part of {}: give a --service of at most {}, or a longer --interval",
            show_ns(args.service),
            show_ns(phases.record_ns),
            show_ns(phases.record_ns / FEWEST_IN_INTERVAL)
        ));
    }
    if levels.len() > MOST_LEVELS {
        return usage(format!("{} levels: give at most {MOST_LEVELS}", levels.len()));
    }
    if levels.len() * args.repeat as usize > MOST_REPEATED {
        let most = MOST_REPEATED / levels.len();
        return usage(format!("{} levels {} times: --repeat at most {most}", levels.len(), args.repeat));
    }
    let most_per_s = MOST_PER_CPU_S * n_cpus as f64;
    if let Some(ask) = levels.iter().find(|ask| matches!(ask, Ask::Rate(per_s) if *per_s > most_per_s)) {
        return usage(format!("--levels {}: more than {most_per_s}/s is beyond {n_cpus} CPUs", ask));
    }
    let is_again = |(index, ask): (usize, &Ask)| levels.iter().take(index).any(|other| other == ask);
    if let Some(index) = levels.iter().enumerate().position(is_again) {
        let twice = levels.get(index).map(ToString::to_string).unwrap_or_default();
        return usage(format!("--levels names {twice} twice; each level is named once, --repeat runs the list again"));
    }
    Ok(())
}

/// What to start for a load of transactions on these CPUs; also for who runs levels as blocks of an experiment.
pub fn spec(
    src: &dyn Source,
    cpus: &CpuSet,
    service_ns: u64,
    work_units: Option<u64>,
    seed: u64,
    remarks: &mut Vec<String>,
) -> Result<Spec> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let program = vec![program.into(), "load-worker".into()];
    Ok(Spec { program, places: places(src, cpus, remarks), service_ns, work_units, seed })
}

/// One process per memory node.
fn places(src: &dyn Source, cpus: &CpuSet, remarks: &mut Vec<String>) -> Vec<Place> {
    let nodes = nodes_of(src, cpus);
    let is_one = nodes.with_cpus.len() == 1;
    let mut places: Vec<Place> = Vec::new();
    for (node, cpus) in &nodes.with_cpus {
        let has_memory = nodes.with_memory.contains(node);
        if !has_memory {
            remarks.push(format!("node {node} has no memory of its own, so its worker's memory lies elsewhere"));
        }
        places.push(Place { node: (has_memory && !is_one).then_some(*node), cpus: cpus.clone() });
    }
    let placed: CpuSet = places.iter().flat_map(|p| p.cpus.iter()).collect();
    let left = cpus.minus(&placed);
    if !left.is_empty() {
        places.push(Place { node: None, cpus: left });
    }
    if cpus.len() == 1 {
        remarks.push("one CPU: the load generator's coordinator shares it with the load".into());
    }
    places
}

/// Which meters work, and who else is there.
fn first_look(
    src: &dyn Source,
    cpus: &CpuSet,
    meters: &mut Meters,
    remarks: &mut Vec<String>,
    interrupt: &Interrupt,
) -> Result<()> {
    let wait = Wait::listen()?;
    let recorder = meters.look();
    let (start_ns, own_before_ns) = (monotonic_ns(), own_cpu_ns());
    let (before, until_ns) = (Usage::read(src, cpus, start_ns), start_ns + LOOK_NS);
    while monotonic_ns() < until_ns && !interrupt.is_set() {
        wait.wait(until_ns.saturating_sub(monotonic_ns()));
    }
    let now_ns = monotonic_ns();
    let used = Usage::read(src, cpus, now_ns).since(&before);
    let own_ns = own_cpu_ns().saturating_sub(own_before_ns);
    let window_ns = (now_ns.saturating_sub(start_ns).max(1) * cpus.len().max(1) as u64) as f64;
    let foreign = used.cpu_ns.saturating_sub(own_ns) as f64 / window_ns;
    if foreign > FOREIGN_RATIO {
        let percent = foreign * 100.0;
        remarks.push(format!(
            "other processes used {percent:.0} % of the CPUs before the load began; what they use is missing from it"
        ));
    }
    remarks.extend(meters.keep(&recorder.stop()));
    Ok(())
}

/// Says where chance alone moves the rate.
fn few(run: &mut LoadRun) {
    let planned = |level: &Level| level.target_per_s.map(|t| t * level.window.length_ns() as f64 / 1e9);
    let least = run.levels.iter().filter_map(|l| Some((planned(l)?, l.ask)));
    if let Some((n, ask)) = least.min_by(|a, b| a.0.total_cmp(&b.0)).filter(|(n, _)| *n < FEW && *n > 0.0) {
        run.remarks.push(format!(
            "{n:.0} transactions were to be expected at {}: by chance alone their number varies by {:.1} % (a longer --interval has more)",
            ask,
            100.0 / n.sqrt()
        ));
    }
}

/// For people: to the second, or the minute.
fn about(ns: u64) -> String {
    let s = ns.div_ceil(1_000_000_000);
    if s < 120 { format!("{s}s") } else { format!("{}min", s.div_ceil(60)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn bad_input_is_refused_with_a_way_out() {
        let args = |service| StepsArgs { service, ..StepsArgs::default() };
        let phases = Phases::custom(1_000_000_000);
        let why = |service, levels: &[Ask]| check(&args(service), &phases, levels, 2).unwrap_err().to_string();
        assert!(why(2_000_000_000, &[Ask::Idle]).contains("at most 50ms"));
        assert!(why(500_000, &[Ask::Idle, Ask::Share(0.5), Ask::Idle]).contains("active idle twice"));
        let many: Vec<Ask> = (1..=101).map(|n| Ask::Rate(f64::from(n))).collect();
        assert!(why(500_000, &[Ask::Rate(1e8)]).contains("more than 200000/s is beyond 2 CPUs"));
        assert!(why(500_000, &many).contains("at most 100"));
        let often = StepsArgs { service: 500_000, repeat: 101, ..StepsArgs::default() };
        let refused = check(&often, &phases, &many[..10], 2).unwrap_err().to_string();
        assert_eq!(refused, "10 levels 101 times: --repeat at most 100");
        assert!(check(&args(500_000), &phases, &standard_levels(), 2).is_ok());
        assert_eq!(
            (about(0), about(61_000_000_000), about(1_110_000_000_000)),
            ("0s".into(), "61s".into(), "19min".into())
        );
    }

    #[test]
    fn one_process_per_node_and_no_cpu_is_forgotten() {
        let node = "/sys/devices/system/node";
        let cpu = "/sys/devices/system/cpu";
        let two = Tree::from_text(&format!(
            "//- {cpu}/online\n0-7\n//- {cpu}/present\n0-7\n//- {node}/online\n0-1\n//- {node}/has_memory\n0\n\
             //- {node}/node0/cpulist\n0-3\n//- {node}/node1/cpulist\n4-6\n"
        ));
        let mut remarks = Vec::new();
        let places = places(&two, &CpuSet::parse("1-7").unwrap(), &mut remarks);
        let shown: Vec<(Option<u32>, String)> = places.iter().map(|p| (p.node, p.cpus.to_string())).collect();
        assert_eq!(shown, [(Some(0), "1-3".into()), (None, "4-6".into()), (None, "7".into())]);
        assert!(remarks.len() == 1 && remarks[0].contains("node 1 has no memory"), "{remarks:?}");
    }
}
