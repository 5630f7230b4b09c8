//! `wakewatt experiment PLAN`: settings compared on this machine, with a verdict in one sentence per arm.
//!
//! A plan names arms and workloads. Arms this host cannot have are left out with the reason, or refuse the plan with
//! `--strict`. Every finished block is kept in a folder, so a run that was killed goes on with `experiment resume`; the
//! settings themselves are put back by the guard at once, or by `wakewatt recover`.

mod dry_run;
mod plans;
mod replicate;
mod text;

use crate::cli::experiment::{ExperimentArgs, ExperimentVerb, ResumeArgs, ShowArgs};
use crate::cli::meter::MeterArgs;
use crate::commands;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use crate::meters;
use crate::output::{self, Colour, Outlet};
use crate::progress::Progress;
use crate::report::{Report, study_sentences};
use crate::saved::{self, Masking, Saving};
use crate::trusted::Use;
use crate::view::Style;
use crate::watching;
use anyhow::Result;
use plans::{parse, read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::kept_words;
use wakewatt_core::samples::Samples;
use wakewatt_core::samples::ended::How;
use wakewatt_core::samples::experiment::ExperimentRun;
use wakewatt_core::samples::study::Study;
use wakewatt_host::live::Live;
use wakewatt_host::place::Folder;
use wakewatt_host::trust::Caller;
use wakewatt_lab::conduct::{self, Conduct, Conducted, Keeping};
use wakewatt_lab::experiment::Moment;
use wakewatt_lab::meters::Meters;
use wakewatt_lab::pick;
use wakewatt_lab::plan::{self, Plan, PlanKind};
use wakewatt_lab::refusal::Refusal;
use wakewatt_lab::run_folder::RunFolder;
use wakewatt_words::{say, spoken, word};

/// Runs it.
pub fn run(args: &ExperimentArgs, colour: Colour) -> Result<Code> {
    match (&args.verb, &args.plan) {
        (Some(ExperimentVerb::List), _) => list(),
        (Some(ExperimentVerb::Resume(args)), _) => resume(args, colour),
        (Some(ExperimentVerb::Replicate(args)), _) => replicate::run(args, colour),
        (None, Some(name)) => one(args, name, colour),
        (None, None) => Err(Failure::error(
            Code::Usage,
            spoken(|| word!("name a plan; wakewatt experiment list shows the shipped ones")),
        )),
    }
}

fn list() -> Result<Code> {
    let width = plan::SHIPPED.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, text) in plan::SHIPPED {
        let plan = parse(name, text, Code::Usage, Use::Looking)?;
        let (question, n_arms) = (&plan.question, plan.arms.len());
        let said = spoken(|| say!("{question} ({n_arms} arms)", question = kept_words::shown(question)));
        output::print(&format!("{name:<width$}  {said}\n"))?;
    }
    Ok(Code::Fine)
}

fn one(args: &ExperimentArgs, name: &str, colour: Colour) -> Result<Code> {
    let (mut plan, text) = read(name, &args.agent, if args.dry_run { Use::Looking } else { Use::Acting })?;
    plan.is_strict |= args.strict;
    plan.budget_ns = args.budget.unwrap_or(plan.budget_ns);
    if args.dry_run {
        return dry_run::run(&plan, &*super::open(&args.from)?, args.show.json);
    }
    if !args.from.is_here() {
        let why = word!("--host, --sysroot and --from go with --dry-run: settings are turned on this machine only");
        return Err(Failure::error(Code::Usage, spoken(|| why)));
    }
    let page = args.show.output.as_deref().map(|file| Outlet::open(file, "-o")).transpose()?;
    let folder = args.run_dir.clone().unwrap_or_else(|| default_folder(&plan.name));
    Folder::check(&folder)
        .map_err(|why| Failure::error(Code::BadFile, spoken(|| say!("--run-dir {why}; nothing was run"))))?;
    if folder.exists() {
        // Now, and not when all is calibrated.
        let ours = Caller::this_process().or_behind_sudo().open_folder(&folder).map(drop);
        ours.map_err(|why| Failure::error(Code::Refused, spoken(|| say!("--run-dir {why}; nothing was run"))))?;
    }
    announce(&plan);
    let saving = saved::start(args.show.save.as_deref(), "experiment", &Live::this_machine())?;
    let interrupt = Interrupt::listen()?;
    let seed = args.seed.or(plan.seed).unwrap_or_else(pick::seed_of_now);
    let meters = meters::meters(&args.meters)?;
    let keeping = Keeping { folder: &folder, text: &text, earlier: None };
    let conducted = conducted(&plan, seed, meters, keeping, &interrupt)?;
    show(conducted, (&args.show, &args.meters), (saving.as_ref(), page.as_ref()), colour)
}

fn resume(args: &ResumeArgs, colour: Colour) -> Result<Code> {
    let (folder, head, done) = RunFolder::open(&args.run_dir).map_err(Refusal::from)?;
    let name = args.run_dir.join("plan.toml").display().to_string();
    let mut plan = parse(&name, &head.plan, Code::BadFile, Use::Acting)?;
    announce(&plan);
    // These may have been given on the command line.
    plan.budget_ns = head.budget_ns;
    let page = args.show.output.as_deref().map(|file| Outlet::open(file, "-o")).transpose()?;
    let saving = saved::start(args.show.save.as_deref(), "experiment", &Live::this_machine())?;
    plan.is_strict |= head.is_strict;
    let interrupt = Interrupt::listen()?;
    output::remark(&spoken(|| say!("Going on after {n} kept blocks.", n = done.len())));
    let (text, seed) = (head.plan.clone(), head.seed);
    let meters = meters::meters(&args.meters)?;
    let keeping = Keeping { folder: &args.run_dir, text: &text, earlier: Some((folder, head, done)) };
    let conducted = conducted(&plan, seed, meters, keeping, &interrupt)?;
    show(conducted, (&args.show, &args.meters), (saving.as_ref(), page.as_ref()), colour)
}

/// Runs it, watched, and says what came of it.
fn conducted(plan: &Plan, seed: u64, meters: Meters, keeping: Keeping<'_>, interrupt: &Interrupt) -> Result<Conducted> {
    let bar = Progress::start(&plan.name);
    let watch = |moment: &Moment, run: &ExperimentRun| bar.set(moment.share, &spoken(|| watching::words(moment, run)));
    let conduct = Conduct { plan, seed, meters, keeping: Some(keeping), watch: &watch };
    let mut conducted = conduct::run(conduct, interrupt.lab(&Live::this_machine(), &bar))?;
    conducted.study.conclusions.sentences = study_sentences::of(&conducted.study);
    Ok(conducted)
}

/// The commands of a plan, before any of them runs: who starts a plan of somebody else's can still stop it.
fn announce(plan: &Plan) {
    for arm in &plan.arms {
        if let Some((enter, leave)) = &arm.command {
            commands::announce(&spoken(|| say!("arm {arm}, to enter it", arm = arm.name)), enter);
            commands::announce(&spoken(|| say!("arm {arm}, to leave it", arm = arm.name)), leave);
        }
        if let Some(argv) = &arm.beside {
            commands::announce(&spoken(|| say!("arm {arm}, beside it", arm = arm.name)), argv);
        }
    }
    for workload in &plan.workloads {
        if let PlanKind::Command { argv, .. } = &workload.kind {
            commands::announce(spoken(|| word!("the workload of each block")), argv);
        }
    }
}

fn default_folder(name: &str) -> PathBuf {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string().replace(':', "-");
    Path::new("wakewatt-runs").join(format!("{name}-{now}"))
}

fn show(
    conducted: Conducted,
    (args, meters): (&ShowArgs, &MeterArgs),
    (saving, page): (Option<&Saving>, Option<&Outlet>),
    colour: Colour,
) -> Result<Code> {
    let Conducted { study, facts, is_interrupted } = conducted;
    let shown = match args.json {
        true => output::json("experiment", &study).and_then(|text| output::print(&text)),
        false => output::print(&spoken(|| text::text(&study, Style { is_on: colour.is_on() }, output::width()))),
    };
    let own = output::settled(shown, code(&study, is_interrupted));
    let title = format!("{}: {}", study.conclusions.name, study.conclusions.question);
    let Study { conclusions, run, loads } = study;
    let (experiment, conclusions) = (Some(run), Some(conclusions));
    let evidence = Evidence {
        facts,
        samples: Samples { experiment, conclusions, load: loads, ..Samples::default() },
        ..Evidence::default()
    };
    let rates = meters.rates.rates();
    let own = if args.json { own } else { output::settled(output::costs(&rates, &evidence), own) };
    // Before the page, which may fail: the run file can make it again.
    let own = saving.map_or(own, |saving| saving.finish_with(&evidence, own));
    let Some(page) = page else { return Ok(own) };
    let masking = Masking::start("experiment", &Live::this_machine(), false);
    let written = masking
        .page(&evidence, Some(title))
        .and_then(|report| page.write(&Report { rates, rulings: Vec::new(), ..report }.to_html()?));
    if written.is_ok() {
        output::remark(&spoken(|| say!("Page: {path}", path = page.path().display())));
    }
    Ok(output::settled(written, own))
}

fn code(study: &Study, is_interrupted: bool) -> Code {
    if !study.run.is_restored() {
        Code::NotRestored
    } else if is_interrupted {
        Code::Interrupted
    } else if matches!(study.run.ended.how, How::Failed(_)) {
        Code::CouldNotMeasure
    } else {
        Code::Fine
    }
}
