//! Conducting an experiment: lock, arms, rehearsal, run folder, blocks; settings put back whatever happens.
//!
//! A verb of the lab: the plan is data, the machine and whoever is told come with the [`Lab`], and what is returned is what
//! was found, without a sentence for people in it. `forecast` says beforehand what would be done, without doing it.

mod arms;
mod composed;
mod design;
mod forecast;
mod kept;
mod metered;
#[cfg(feature = "shop")]
mod shop_source;
mod steps_source;
mod watts;
mod workload;

pub use forecast::{DryRun, forecast};
pub use kept::Keeping;

use crate::context::Lab;
use crate::experiment::{self, Arms, Around, History, KeptBlock, Progress, Workload, loads};
use crate::meters::Meters;
use crate::plan::Plan;
use crate::refusal::Refusal;
use crate::setting_arms::{DeviceLimit, SettingArms, resolve_arms};
use crate::study::{StudySubject, study};
use crate::survey::allowed_cpus;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::samples::study::Study;
use wakewatt_tune::begin::begin;
use wakewatt_tune::knob::Host;
use workload::WorkloadContext;

/// What is to be run.
pub struct Conduct<'a> {
    /// Question, arms, workloads, looks.
    pub plan: &'a Plan,
    /// Of the order of arms, and of everything drawn.
    pub seed: u64,
    /// What gives watts; looked at once to see which work.
    pub meters: Meters,
    /// None where its result alone matters.
    pub keeping: Option<Keeping<'a>>,
    /// Told before and after each block.
    pub watch: Progress<'a>,
}

/// What came of it.
pub struct Conducted {
    /// Blocks, and what they allow to be said; its sentences are left to whoever talks to people.
    pub study: Study,
    /// The machine as it was found.
    pub facts: Snapshot,
    /// Was it told to end?
    pub is_interrupted: bool,
}

/// Runs it. An error means that not one block was run, and that what was set is put back.
pub fn run(conduct: Conduct<'_>, lab: Lab<'_>) -> Result<Conducted, Refusal> {
    let Conduct { plan, seed, mut meters, keeping, watch } = conduct;
    let tuner = begin(&format!("experiment {}", plan.name)).map_err(arms::not_begun)?;
    let _experiment = arms::lock_limit()?;
    let host = Host::read(lab.src);
    let facts = Snapshot::read(lab.src, |_| true);
    let (ready, mut skipped) = resolve_arms(&host, &plan.arms);
    let mut remarks = Vec::new();
    arms::check(plan, &ready, &skipped, &mut remarks)?;
    let session = tuner.session(SettingArms::sets(&ready)).map_err(|e| Refusal::Barred(e.to_string()))?;
    let mut arms = SettingArms::new(ready, &host.facts, Some(session), Box::new(DeviceLimit::default()));
    let failed = arms.rehearse().map_err(Refusal::Barred)?;
    arms::strict(plan, &failed)?;
    skipped.extend(failed);
    let n_others = arms.arms().len().saturating_sub(1);
    if n_others == 0 {
        return Err(arms::nothing_to_compare(&skipped));
    }
    let allowed = allowed_cpus()?;
    remarks.extend(meters.settle());
    let fitted = metered::fitted(plan, &meters, n_others + 1, &mut remarks);
    let plan = fitted.as_ref().unwrap_or(plan);
    let context = WorkloadContext { plan, src: lab.src, facts: &facts, allowed, seed, meters };
    let targets = workload::targets(plan, seed, lab.stop);
    let mut workload = composed::workload(&context, &targets, &mut skipped, &mut remarks)?;
    let design = design::design(plan, n_others, (seed, &context.meters), &mut remarks)?;
    let design = design.in_force(&arms, &mut workload);
    let known = keeping.as_ref().map(Keeping::calibrated).unwrap_or_default();
    let calibrated = workload.calibrate(&known, lab.stop).map_err(Refusal::Unavailable)?;
    let sources = workload.loads(&calibrated);
    let run_dir = keeping.as_ref().map(Keeping::shown);
    let (mut kept, done) = match keeping {
        None => (None, Vec::new()),
        Some(keeping) => {
            let mut head = keeping.head(kept::host_of(&facts), seed, (arms.arms(), skipped.clone()));
            head.metrics = workload.metrics();
            (head.budget_ns, head.is_strict, head.calibrated) = (plan.budget_ns, plan.is_strict, calibrated);
            let (folder, done) = keeping.open(&head)?;
            lab.tell.remark(&format!("Kept in {}", folder.path().display()));
            (Some(folder), done)
        }
    };
    let around = Around { src: lab.src, clock: lab.clock, stop: lab.stop, progress: watch };
    let mut blocks = done.clone();
    let mut keep = |block: &KeptBlock| {
        blocks.push(block.clone());
        kept.as_mut().map_or(Ok(()), |folder| folder.keep(block))
    };
    let history = History { done, keep: &mut keep };
    let run = experiment::run_on(&mut arms, &mut workload, &design, around, history).map_err(Refusal::Unavailable)?;
    let about = StudySubject { plan, host: kept::host_of(&facts), skipped, remarks, run_dir };
    let mut study = study(about, &design, run);
    study.loads = loads::of(&blocks, &study.run.arms, &sources, seed);
    drop(workload);
    Ok(Conducted { study, facts, is_interrupted: lab.is_stopped() })
}
