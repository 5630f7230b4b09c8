//! What `fit --check` measures: what leaving each idle state costs, then the loads of the shipped plan `fit` under both settings.

use crate::cli::fit::FitArgs;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use crate::output;
use crate::progress::Progress;
use crate::report::study_sentences;
use crate::saved;
use crate::watching;
use anyhow::Result;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::Samples;
use wakewatt_core::samples::experiment::ExperimentRun;
use wakewatt_core::samples::study::Study;
use wakewatt_host::live::Live;
use wakewatt_host::power::MetersWanted;
use wakewatt_lab::experiment::Moment;
use wakewatt_lab::fit_runs::{self, FitRuns};
use wakewatt_lab::meters::{INTERVAL_NS, Meters};
use wakewatt_lab::pick;

/// Measures; settings are put back whatever happens.
pub(super) fn measured(args: &FitArgs) -> Result<Evidence> {
    let machine = Live::this_machine();
    let saving = saved::start(args.save.as_deref(), "fit", &machine)?;
    let interrupt = Interrupt::listen()?;
    let bar = Progress::start("fit");
    let watch = |moment: &Moment, run: &ExperimentRun| bar.set(moment.share, &watching::words(moment, run));
    let meters = Meters::new(MetersWanted::default(), &[], &[], INTERVAL_NS);
    let runs = fit_runs::measure(interrupt.lab(&machine, &bar), args.rounds, pick::seed_of_now(), meters, &watch)?;
    let FitRuns { costs, mut conducted, not_done } = runs;
    conducted.study.conclusions.sentences = study_sentences::of(&conducted.study);
    let Study { conclusions, run, loads } = conducted.study;
    let samples = Samples {
        experiment: Some(run),
        conclusions: Some(conclusions),
        load: loads,
        idle_states: costs.into_iter().collect(),
        ..Samples::default()
    };
    let evidence = Evidence { facts: conducted.facts, samples, not_done, ..Evidence::default() };
    let (is_cut, is_restored) =
        (conducted.is_interrupted, evidence.samples.all_experiments().all(ExperimentRun::is_restored));
    if let Some(saving) = &saving {
        saving.finish(&evidence)?;
    }
    if !is_restored {
        return Err(Failure::error(
            Code::NotRestored,
            "settings could not all be put back; wakewatt recover says which",
        ));
    }
    if is_cut {
        return Err(Failure::error(Code::Interrupted, "interrupted before all was measured; nothing is fitted"));
    }
    evidence.not_done.iter().for_each(|why| output::remark(&why.to_string()));
    Ok(evidence)
}
