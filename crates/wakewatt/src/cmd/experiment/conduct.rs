//! Conducting an experiment: lock, arms, rehearsal, run folder, blocks; settings put back whatever happens.

use super::measured::{self, Watts, WorkloadContext};
use crate::cli::meter::MeterArgs;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use crate::meters;
use crate::progress::Progress;
use crate::report::study_sentences as sentences;
use anyhow::{Context, Result};
use std::cell::RefCell;
use std::io::IsTerminal;
use std::path::Path;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::samples::experiment::ExperimentRun;
use wakewatt_core::samples::study::{Skipped, Study, StudyHost};
use wakewatt_core::stats::paired::{Judge, log_ratios};
use wakewatt_core::stats::sequential::Looks;
use wakewatt_core::units::show_ns;
use wakewatt_host::affinity::allowed_cpus;
use wakewatt_lab::context::MachineClock;
use wakewatt_lab::experiment::{self, Arms, Around, Design, History, KeptBlock, Moment, Rule, Workload, loads};
use wakewatt_lab::plan::Plan;
use wakewatt_lab::run_folder::{Head, RunFolder};
use wakewatt_lab::setting_arms::{DeviceLimit, ReadyArm, SettingArms, resolve_arms};
use wakewatt_lab::study::{StudySubject, study};
use wakewatt_lab::workloads::{Composite, WattMeter};
use wakewatt_tune::begin::{BeginError, begin};
use wakewatt_tune::knob::Host;
use wakewatt_tune::knobs::qos_global;

/// What is to be run.
pub(super) struct Conduct<'a> {
    pub(super) plan: &'a Plan,
    pub(super) seed: u64,
    pub(super) meters: &'a MeterArgs,
    /// None where its result alone matters.
    pub(super) keeping: Option<Keeping<'a>>,
    pub(super) interrupt: &'a Interrupt,
}

/// Where a run is kept.
pub(super) struct Keeping<'a> {
    pub(super) folder: &'a Path,
    /// The plan as it was written.
    pub(super) text: &'a str,
    /// What an earlier part of the run left there.
    pub(super) earlier: Option<(RunFolder, Head, Vec<KeptBlock>)>,
}

/// What came of it.
pub(super) struct Conducted {
    pub(super) study: Study,
    pub(super) facts: Snapshot,
    pub(super) is_interrupted: bool,
}

fn refused(code: Code) -> impl Fn(String) -> anyhow::Error {
    move |why| Failure::error(code, why)
}

/// Runs it.
pub(super) fn run(conduct: Conduct<'_>) -> Result<Conducted> {
    let Conduct { plan, seed, meters, keeping, interrupt } = conduct;
    let tuner = begin(&format!("experiment {}", plan.name)).map_err(|e| {
        let code = if matches!(e, BeginError::Busy(_)) { Code::Busy } else { Code::Refused };
        Failure::error(code, e.to_string())
    })?;
    let _experiment = lock_limit()?;
    let hands = tuner.hands();
    let host = Host::read(hands.source);
    let facts = Snapshot::read(hands.source, |_| true);
    let (ready, mut skipped) = resolve_arms(&host, &plan.arms);
    let mut remarks = Vec::new();
    check_arms(plan, &ready, &skipped, &mut remarks)?;
    let session = tuner.session(SettingArms::sets(&ready)).map_err(|e| Failure::error(Code::Refused, e.to_string()))?;
    let mut arms = SettingArms::new(ready, &host.facts, Some(session), Box::new(DeviceLimit::default()));
    let failed = arms.rehearse().map_err(refused(Code::Refused))?;
    strict(plan, &failed)?;
    skipped.extend(failed);
    let n_others = arms.arms().len().saturating_sub(1);
    if n_others == 0 {
        return Err(nothing_to_compare(&skipped));
    }
    let allowed = allowed_cpus().context("cannot ask which CPUs this process may use")?;
    let mut meters = meters::meters(meters)?;
    remarks.extend(meters.settle());
    let (settle_ns, foreign_ratio, own_meters) = (plan.settle_ns, plan.limits.foreign_ratio, meters.clone());
    let context = WorkloadContext {
        src: hands.source,
        facts: &facts,
        allowed,
        seed,
        settle_ns,
        foreign_ratio,
        meters: own_meters,
    };
    let targets = measured::targets(plan, seed, interrupt.flag());
    let (parts, left_out) = measured::parts(plan, &context, &targets);
    strict(plan, &left_out)?;
    let is_all_there = left_out.is_empty();
    skipped.extend(left_out);
    if parts.is_empty() {
        let why: Vec<String> = skipped.iter().map(|s| format!("{}: {}", s.what, s.why)).collect();
        return Err(Failure::error(Code::CouldNotMeasure, format!("nothing can be measured here: {}", why.join("; "))));
    }
    let meter = meters.has_any().then(|| Box::new(Watts::by(&meters)) as Box<dyn WattMeter>);
    // A primary metric of a workload that is left out cannot be had; another one is declared before the first block.
    let primary = plan.primary.as_deref().filter(|id| {
        is_all_there || parts.iter().any(|p| p.workload.metrics().iter().any(|m| id.ends_with(m.id.as_str())))
    });
    let mut workload = Composite::new(parts, meter, plan.settle_ns, primary).map_err(refused(Code::Usage))?;
    if let (Some(wanted), None) = (&plan.primary, primary) {
        let first = workload.metrics().first().map_or(String::new(), |m| m.id.clone());
        remarks.push(format!("the plan's primary metric {wanted} cannot be had here; {first} takes its place"));
    }
    let (looks, dropped) = Looks::spread(&plan.looks, n_others).map_err(refused(Code::Usage))?;
    if !dropped.is_empty() {
        let dropped: Vec<String> = dropped.iter().map(ToString::to_string).collect();
        remarks.push(format!(
            "no look after {} rounds: among {n_others} arms nothing could be proven so early",
            dropped.join(", ")
        ));
    }
    let design = Design {
        warmup_ns: plan.settle_ns,
        budget_ns: plan.budget_ns,
        rule: Rule::AllArms { margin_ratio: plan.margin_ratio },
        again_every: plan.again_every,
        limits: plan.limits,
        ..Design::new(looks, seed)
    };
    let earlier = keeping.as_ref().and_then(|keeping| keeping.earlier.as_ref());
    let known = earlier.map(|(_, head, _)| head.calibrated.clone()).unwrap_or_default();
    let calibrated = workload.calibrate(&known, interrupt.flag()).map_err(refused(Code::CouldNotMeasure))?;
    let sources = workload.loads(&calibrated);
    let run_dir = keeping.as_ref().map(|keeping| keeping.folder.display().to_string());
    let (mut kept, done) = match keeping {
        None => (None, Vec::new()),
        Some(keeping) => {
            let mut head = Head::new(host_of(&facts), seed, keeping.text, (arms.arms(), skipped.clone()));
            head.metrics = workload.metrics();
            (head.budget_ns, head.is_strict, head.calibrated) = (plan.budget_ns, plan.is_strict, calibrated);
            let (folder, done) = open(keeping, &head)?;
            crate::output::remark(&format!("Kept in {}", folder.path().display()));
            (Some(folder), done)
        }
    };
    let bar = RefCell::new(Progress::start(&plan.name));
    let progress = |moment: &Moment, run: &ExperimentRun| bar.borrow().set(moment.share, &words(moment, run));
    let around =
        Around { src: hands.source, clock: &MachineClock::default(), stop: interrupt.flag(), progress: &progress };
    let mut blocks = done.clone();
    let mut keep = |block: &KeptBlock| {
        blocks.push(block.clone());
        kept.as_mut().map_or(Ok(()), |folder| folder.keep(block))
    };
    let history = History { done, keep: &mut keep };
    let result = experiment::run_on(&mut arms, &mut workload, &design, around, history);
    drop(bar);
    let run = result.map_err(refused(Code::CouldNotMeasure))?;
    let about = StudySubject { plan, host: host_of(&facts), skipped, remarks, run_dir };
    let mut study = study(about, &design, run);
    study.conclusions.sentences = sentences::of(&study);
    study.loads = loads::of(&blocks, &study.run.arms, &sources, seed);
    drop(workload);
    Ok(Conducted { study, facts, is_interrupted: interrupt.is_set() })
}

/// The folder, and the blocks that are there already.
fn open(keeping: Keeping<'_>, head: &Head) -> Result<(RunFolder, Vec<KeptBlock>)> {
    let Some((folder, then, done)) = keeping.earlier else {
        return Ok((RunFolder::create(keeping.folder, head).map_err(super::folder_error)?, Vec::new()));
    };
    match then.differs(head) {
        Some(why) => {
            let why = format!("{}: cannot be continued: {why}", keeping.folder.display());
            Err(Failure::error(Code::Refused, why))
        }
        None => Ok((folder, done)),
    }
}

/// One wakewatt at a time experiments with the latency limit.
fn lock_limit() -> Result<Option<qos_global::Lock>> {
    match qos_global::Lock::take() {
        Ok(held) => Ok(Some(held)),
        Err(why @ qos_global::HoldError::Busy) => Err(Failure::error(Code::Busy, why.to_string())),
        // Without the device nobody experiments with it.
        Err(_) => Ok(None),
    }
}

fn strict(plan: &Plan, skipped: &[Skipped]) -> Result<()> {
    if !plan.is_strict || skipped.is_empty() {
        return Ok(());
    }
    let why: Vec<String> = skipped.iter().map(|s| format!("{}: {}", s.what, s.why)).collect();
    Err(Failure::error(Code::Refused, format!("not possible here, and --strict was said: {}", why.join("; "))))
}

fn nothing_to_compare(skipped: &[Skipped]) -> anyhow::Error {
    let why: Vec<String> = skipped.iter().map(|s| format!("{}: {}", s.what, s.why)).collect();
    Failure::error(Code::Refused, format!("fewer than two arms can be set here: {}", why.join("; ")))
}

/// Enough arms, and which one is the baseline.
pub(super) fn check_arms(
    plan: &Plan,
    ready: &[ReadyArm],
    skipped: &[Skipped],
    remarks: &mut Vec<String>,
) -> Result<()> {
    strict(plan, skipped)?;
    if ready.len() < 2 {
        return Err(nothing_to_compare(skipped));
    }
    let (wanted, found) = (plan.arms.first().map(|a| &a.name), ready.first().map(|a| &a.arm.id));
    if let (Some(wanted), Some(found)) = (wanted, found) {
        if wanted != found {
            remarks.push(format!("the plan compares with {wanted}, which cannot be set here; {found} takes its place"));
        }
    }
    Ok(())
}

fn host_of(facts: &Snapshot) -> StudyHost {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let kernel = facts.kernel.release.get().cloned().unwrap_or_else(|| "unknown".into());
    StudyHost { name, kernel, cpus: format!("CPUs {}", facts.cpus.all().collect::<wakewatt_core::cpuset::CpuSet>()) }
}

/// So many blocks, none of which counted, are told.
const FEW_BLOCKS: usize = 4;

/// Arm, time left, and the primary estimate so far.
fn words(moment: &Moment, run: &ExperimentRun) -> String {
    let left = format!("{}, at most {} left", moment.words, show_ns(moment.left_ns / 1_000_000_000 * 1_000_000_000));
    let first_why = || run.blocks.iter().find_map(|b| b.rejected.as_ref());
    // Who waits for hours must hear of it early.
    let none_counts = run.blocks.len() >= FEW_BLOCKS && run.blocks.iter().all(|b| b.rejected.is_some());
    if let (true, Some(why)) = (none_counts, first_why()) {
        return format!("{left}; NO block counted so far: {why}");
    }
    if !std::io::stderr().is_terminal() {
        return left;
    }
    let judge = Judge { n_resamples: 300, ..Judge::new(run.seed) };
    let estimate = |arm: &wakewatt_core::samples::experiment::Arm| {
        let pairs = run.pairs(0, &arm.id);
        let is_enough = log_ratios(&pairs).len() >= 3;
        let effect = judge.effect("", "", &arm.id, &pairs).filter(|_| is_enough)?;
        Some(format!("{} x{:.2} ({:.2}-{:.2})", arm.id, effect.ratio, effect.ratio_low, effect.ratio_high))
    };
    // So far, and only to watch: verdicts wait for the looks.
    let all: Vec<String> = run.arms.iter().skip(1).filter_map(estimate).take(3).collect();
    if all.is_empty() { left } else { format!("{left}; so far {}", all.join(", ")) }
}
