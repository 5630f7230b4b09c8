//! An experiment with idle states, whatever is measured in it: arms from the facts, settings put back whatever happens.
//!
//! `doctor` measures wake-ups under these arms, and reads of a disk. A latency limit goes with the process that holds it, so
//! that without a setting to write no journal is kept and root is not needed, only a device that may be written.

use crate::context::Lab;
use crate::experiment::{self, Around, Design, Moment, Workload};
use crate::idle_plan;
use crate::setting_arms::{DeviceLimit, ReadyArm, SettingArms, resolve_arms};
use wakewatt_core::facts::Snapshot;
use wakewatt_core::samples::experiment::{Arm, ExperimentRun};
use wakewatt_core::samples::not_done::{NotDone, Step};
use wakewatt_core::samples::study::Skipped;
use wakewatt_core::stats::paired::median;
use wakewatt_core::units::rough_ns;
use wakewatt_tune::begin::{begin, check};
use wakewatt_tune::knob::Host;
use wakewatt_tune::knobs::qos_global;

/// Runs it, or says why not; with the arms that could not be had.
pub fn run(
    workload: &mut dyn Workload,
    design: &Design,
    facts: &Snapshot,
    lab: Lab<'_>,
) -> Result<(ExperimentRun, Vec<Skipped>), String> {
    let plan = idle_plan::arms(facts, &workload.cpus())?;
    check().map_err(|e| e.to_string())?;
    let _experiment = qos_global::Lock::take().map_err(|e| e.to_string())?;
    let host = Host::read(lab.src);
    let (ready, skipped) = resolve_arms(&host, &plan);
    if ready.len() < 2 {
        let why: Vec<String> = skipped.iter().map(|s| format!("{}: {}", s.what, s.why)).collect();
        return Err(format!("there is nothing to compare: {}", why.join("; ")));
    }
    let tuner;
    let session = match ready.iter().any(ReadyArm::is_written) {
        true => {
            tuner = begin("doctor: idle experiment").map_err(|e| e.to_string())?;
            Some(tuner.session(SettingArms::sets(&ready)).map_err(|e| e.to_string())?)
        }
        false => None,
    };
    let mut arms = SettingArms::new(ready, &host.facts, session, Box::new(DeviceLimit::default()));
    let progress = |moment: &Moment, run: &ExperimentRun| match so_far(run) {
        Some(known) => lab.tell.progress(moment.share, &format!("round {}: {known}", run.n_rounds())),
        None => lab.tell.progress(moment.share, &moment.words),
    };
    let around = Around { src: lab.src, clock: lab.clock, stop: lab.stop, progress: &progress };
    Ok((experiment::run(&mut arms, workload, design, around)?, skipped))
}

/// What is known already: `52 us current settings, 7.3 us idle states disabled (polling) so far`.
fn so_far(run: &ExperimentRun) -> Option<String> {
    let one = |arm: &Arm| {
        let values: Vec<f64> = run.values(&arm.id, 0).map(|(_, value)| value).collect();
        (values.len() >= 3).then(|| format!("{} {}", rough_ns(median(&values)), arm.title))
    };
    let all: Vec<String> = run.arms.iter().filter_map(one).collect();
    (all.len() == run.arms.len()).then(|| format!("{} so far", all.join(", ")))
}

/// The arms that could not be had, as steps that were not done.
pub fn not_done(step: Step, skipped: &[Skipped]) -> Vec<NotDone> {
    skipped.iter().map(|s| NotDone::new(step.clone(), format!("{}: {}", s.what, s.why))).collect()
}
