//! Graduated load, whole: a first look, calibration, the levels in order, and what must be said beside the numbers.
//!
//! Before anything is loaded the machine is looked at for a second: which meters work, and whether others use its CPUs. A level
//! that ended is kept, whatever happens after it: an interruption or a worker that was killed end the run, not what is known.

use super::level::level;
use super::places::spec;
use super::rules::FOREIGN_RATIO;
use super::settings::Watch;
use super::usage::{NO_LOAD_AVERAGE, Usage};
use super::{Engine, LoadError, Phases, Spec, calibrate};
use crate::context::Lab;
use crate::meters::Meters;
use crate::refusal::Refusal;
use std::cell::Cell;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::load::{Ask, Length, Level, LoadRun};
use wakewatt_core::samples::repeated;
use wakewatt_core::units::show_ns;

/// The first look.
const LOOK_NS: u64 = 1_100_000_000;
/// Fewer planned in a level: chance alone moves the rate by more than 1 %.
const FEW: f64 = 10_000.0;

/// What is to be run.
#[derive(Clone)]
pub struct StepsPlan {
    /// The CPUs that work.
    pub cpus: CpuSet,
    /// What a transaction takes at full speed.
    pub service_ns: u64,
    /// Units of work in it, instead of finding out.
    pub work_units: Option<u64>,
    /// In order.
    pub levels: Vec<Ask>,
    /// What the lengths are called.
    pub length: Length,
    /// How long each part of a level is.
    pub phases: Phases,
    /// Of the arrivals.
    pub seed: u64,
    /// What is read meanwhile.
    pub meters: Meters,
}

/// What came of it.
#[derive(Debug)]
pub struct Steps {
    /// The levels that ended, and everything about them.
    pub run: LoadRun,
    /// Did all of them?
    pub ended: Result<(), LoadError>,
}

/// Runs it.
pub fn steps(lab: Lab<'_>, plan: StepsPlan) -> Result<Steps, Refusal> {
    let Lab { src, clock, .. } = lab;
    let StepsPlan { cpus, service_ns, work_units, levels, length, phases, seed, mut meters } = plan;
    let mut watch = Watch::start(src, clock.now_ns());
    let mut run = LoadRun {
        // With work of a given size nobody knows what it takes here.
        title: match work_units {
            Some(units) => format!("steps, {units} units of work a transaction"),
            None => format!("steps, {} a transaction", show_ns(service_ns)),
        },
        length,
        seed,
        settings: watch.settings(),
        service_ns: work_units.is_none().then_some(service_ns),
        ..LoadRun::default()
    };
    let spec = spec(src, &cpus, service_ns, work_units, seed, &mut run.remarks)?;
    first_look(lab, &cpus, &mut meters, &mut run.remarks);
    let ended = all(lab, &mut run, &spec, &levels, &phases, &meters, &mut watch);
    run.changes.extend(watch.look(src, clock.now_ns()));
    run.remarks.extend(repeated::told(&run));
    few(&mut run);
    if run.levels.iter().any(|l| l.load_average.is_none()) {
        run.remarks.push(NO_LOAD_AVERAGE.into());
    }
    Ok(Steps { run, ended })
}

/// Calibration and all levels; what ended is in the run.
fn all(
    lab: Lab<'_>,
    run: &mut LoadRun,
    spec: &Spec,
    levels: &[Ask],
    phases: &Phases,
    meters: &Meters,
    watch: &mut Watch,
) -> Result<(), LoadError> {
    let Lab { src, stop, clock, .. } = lab;
    let is_calibrated = levels.iter().any(|l| matches!(l, Ask::Share(_)));
    let n_calibrations = if is_calibrated { calibrate::FEWEST } else { 0 };
    let total_ns = phases.total_ns() * (levels.len() + n_calibrations) as u64;
    lab.tell.remark(&format!(
        "{} levels{}: {} or more.",
        levels.len(),
        if is_calibrated { " after a calibration" } else { "" },
        about(total_ns)
    ));
    let end_at_ns = Cell::new(clock.now_ns() + total_ns);
    let tell = |what: &str| {
        let left_ns = end_at_ns.get().saturating_sub(clock.now_ns());
        lab.tell.progress(1.0 - left_ns as f64 / total_ns.max(1) as f64, &format!("{what}; {} left", about(left_ns)));
    };
    let mut engine = Engine::start(spec, stop, &tell)?;
    run.workers = engine.places();
    run.work_units = Some(engine.work_units());
    if is_calibrated {
        run.calibration = engine.calibrate(phases, stop, &tell)?;
        run.capacity_per_s = engine.capacity_per_s();
        run.remarks.extend(calibrate::remark(&run.calibration));
        run.changes.extend(watch.look(src, clock.now_ns()));
    }
    let mut overheads = Vec::new();
    for (index, ask) in levels.iter().enumerate() {
        end_at_ns.set(clock.now_ns() + phases.total_ns() * (levels.len() - index) as u64);
        let done = level(&mut engine, *ask, phases, meters, stop, src, &tell)?;
        run.levels.push(done.level);
        run.changes.extend(watch.look(src, clock.now_ns()));
        overheads.extend(done.overhead_ns);
        run.overhead_ns_per_op =
            Some(overheads.iter().sum::<f64>() / overheads.len().max(1) as f64).filter(|_| !overheads.is_empty());
    }
    Ok(())
}

/// Which meters work, and who else is there.
fn first_look(lab: Lab<'_>, cpus: &CpuSet, meters: &mut Meters, remarks: &mut Vec<String>) {
    let Lab { src, clock, .. } = lab;
    let recorder = meters.look();
    let (start_ns, own_before_ns) = (clock.now_ns(), clock.own_cpu_ns());
    let (before, until_ns) = (Usage::read(src, cpus, start_ns), start_ns + LOOK_NS);
    lab.wait_until(until_ns);
    let now_ns = clock.now_ns();
    let used = Usage::read(src, cpus, now_ns).since(&before);
    let own_ns = clock.own_cpu_ns().saturating_sub(own_before_ns);
    let window_ns = (now_ns.saturating_sub(start_ns).max(1) * cpus.len().max(1) as u64) as f64;
    let foreign = used.cpu_ns.saturating_sub(own_ns) as f64 / window_ns;
    if foreign > FOREIGN_RATIO {
        let percent = foreign * 100.0;
        remarks.push(format!(
            "other processes used {percent:.0} % of the CPUs before the load began; what they use is missing from it"
        ));
    }
    remarks.extend(meters.keep(&recorder.stop()));
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

    #[test]
    fn the_time_left_is_told_to_the_second_or_the_minute() {
        let said = [0, 61_000_000_000, 1_110_000_000_000].map(about);
        assert_eq!(said, ["0s", "61s", "19min"]);
    }
}
