//! The verdict: one sentence that answers the question, with both medians, the ratio and its interval.
//!
//! It says only what the primary comparison, declared before the run, allows. "No difference larger than" is claimed only
//! where the interval lies within ±5 %; where it is too wide the sentence says "Not decided", and what would decide. On a
//! machine that was never idle it says that first. When another metric of the same comparison points the other way (in
//! virtual machines a polling CPU is often preempted, so its tail is worse), the same sentence says so: a faster median with
//! a slower p99 is not a win. Where doctor tested two settings the one with more at stake comes first. A host that was
//! only looked at gets its top finding named (`first.rs`).

use super::busy::{self, RETRY};
use super::words::{count, ns_rough, percent, plural};
use std::collections::BTreeSet;
use wakewatt_core::choice::{self, Subject};
use wakewatt_core::evidence::Evidence;
use wakewatt_core::rules::Ruling;
use wakewatt_core::samples::busy as load;
use wakewatt_core::samples::compared::Compared;
use wakewatt_core::samples::ended::How;
use wakewatt_core::samples::experiment::{ExperimentRun, Metric, Verdict as Word};
use wakewatt_core::samples::not_done::{Step, TooBusy, Why};
use wakewatt_words::{say, told, word};

mod first;
mod sentence;
mod study;

pub(super) use first::in_sentence;

/// Within this of 1 an effect is not worth a change; the same bound as `samples::experiment::Verdict`.
const NO_DIFFERENCE: f64 = 1.05;

/// What kind of answer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The machine as it was found is slower than the other arm.
    Slower,
    /// The machine as it was found is faster.
    Faster,
    /// No difference worth a change.
    NoDifference,
    /// The experiment could not decide.
    Undecided,
    /// An experiment over several settings shows that some of them differ.
    Shown,
    /// No experiment ran.
    NoExperiment,
}

impl Kind {
    /// One or two words, for a label.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Slower => word!("costs latency"),
            Kind::Faster => word!("does not cost latency"),
            Kind::NoDifference => word!("no difference"),
            Kind::Undecided => word!("not decided"),
            Kind::Shown => word!("a difference is shown"),
            Kind::NoExperiment => word!("not proved"),
        }
    }
}

/// The sentence and what stands beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What kind of answer.
    pub kind: Kind,
    /// One sentence.
    pub sentence: String,
    /// Why to believe it, or what would decide.
    pub how_sure: String,
    /// The hour was not clean: what is to be thought of the numbers, and what to do.
    pub busy: Option<String>,
    /// What must be known with it: settings not put back, measurements discarded.
    pub warnings: Vec<String>,
}

/// "Not decided: this machine was too busy to measure (…)", and what to type.
pub(crate) fn too_busy(busy: TooBusy) -> String {
    let why = Why::TooBusy(busy);
    say!("Not decided: {why}. Retry when idle: {RETRY}")
}

/// Why there is no comparison: no round in which all was measured, rounds whose values were discarded, or too few with a value.
fn no_comparison(run: &ExperimentRun) -> String {
    let is_there = |round: usize, arm: &str| run.blocks.iter().any(|b| b.round == round && b.arm == arm);
    let rounds: BTreeSet<usize> = run.blocks.iter().map(|b| b.round).collect();
    let n_complete = rounds.iter().filter(|round| run.arms.iter().all(|arm| is_there(**round, &arm.id))).count();
    if n_complete == 0 {
        return match run.ended.how {
            How::Interrupted => {
                word!("Not decided: interrupted before the first round was complete. Run it again and let it end.")
                    .into()
            }
            _ => say!("Not decided: no round was complete ({}).", run.ended),
        };
    }
    let n_paired = run.arms.iter().skip(1).map(|arm| run.pairs(0, &arm.id).len()).max().unwrap_or(0);
    let of = plural(n_complete, "round");
    let is_hit = |round: &usize| run.blocks.iter().any(|b| b.round == *round && b.rejected.is_some());
    match run.blocks.iter().find_map(|b| b.rejected.as_ref()) {
        Some(why) if rounds.iter().all(is_hit) => {
            say!("Not decided: every round had a measurement that was discarded ({why}).")
        }
        _ => {
            let name = run.metrics.first().map_or(String::new(), Metric::named);
            say!(
                "Not decided: {n_paired} of {of} gave {name} under both variants, and a comparison needs two ({}).",
                run.ended
            )
        }
    }
}

/// What doctor tested: idle states, the governor, or both, and then first what has most at stake.
pub(super) fn turned(evidence: &Evidence) -> Vec<&ExperimentRun> {
    let (idle, frequency) = (evidence.samples.experiment.as_ref(), choice::frequency_run(evidence));
    let is_frequency_first = || choice::experiments(evidence).first().is_some_and(|c| c.subject == Subject::Frequency);
    let both = if frequency.is_some() && is_frequency_first() { [frequency, idle] } else { [idle, frequency] };
    both.into_iter().flatten().collect()
}

/// The verdict on this evidence and what the rules make of it, findings first.
pub fn of(evidence: &Evidence, rulings: &[Ruling]) -> Verdict {
    let mut verdict = of_turned(evidence, rulings);
    verdict.busy = busy::line(evidence, &turned(evidence));
    verdict
}

fn of_turned(evidence: &Evidence, rulings: &[Ruling]) -> Verdict {
    let runs = turned(evidence);
    let Some((run, others)) = runs.split_first() else {
        return without_experiment(evidence, rulings);
    };
    if let (Some(conclusions), Some(planned)) = (&evidence.samples.conclusions, &evidence.samples.experiment) {
        return study::of(planned, conclusions, warnings(planned));
    }
    let is_guest = evidence.facts.virt.is_guest() == Some(true);
    let mut verdict = of_run(run, is_guest);
    for other in others.iter().map(|run| of_run(run, is_guest)) {
        verdict.sentence += &say!(" Also tested: {}", other.sentence);
        verdict.warnings.extend(other.warnings);
    }
    verdict
}

fn of_run(run: &ExperimentRun, is_guest: bool) -> Verdict {
    let warnings = warnings(run);
    let undecided = |sentence, warnings| Verdict {
        kind: Kind::Undecided,
        sentence,
        how_sure: say!("{} of {} measurements discarded.", run.n_rejected(), run.blocks.len()),
        busy: None,
        warnings,
    };
    if let Some(busy) = load::lost_to_others(run) {
        return undecided(too_busy(busy), warnings);
    }
    let Some(effect) = run.primary().filter(|e| e.n_pairs > 0 && e.ratio.is_finite() && e.ratio > 0.0) else {
        return undecided(no_comparison(run), warnings);
    };
    let (kind, core) = match effect.verdict {
        Word::Higher => (Kind::Slower, sentence::slower(run, effect)),
        Word::Lower => (Kind::Faster, sentence::faster(run, effect)),
        // That there is none worth a change is a size as well.
        Word::NoDifference if !run.is_sized() => (Kind::Undecided, sentence::not_told(run, effect)),
        Word::NoDifference => (Kind::NoDifference, sentence::no_difference(run, effect)),
        Word::Undecided => (Kind::Undecided, sentence::undecided(run, effect)),
    };
    let mut sentence = match sentence::reversal(run, effect) {
        Some(but) => say!("{core}; but {but}."),
        None => super::words::ended(&core),
    };
    let is_of_idle = effect.compared() == Compared::NoSleep && run.is_asleep_in(&effect.baseline);
    if is_guest && kind == Kind::Slower && is_of_idle {
        sentence = format!("{sentence} {}", sentence::in_guest(run, effect));
    }
    Verdict { kind, sentence, how_sure: sentence::how_sure(run, effect), busy: None, warnings }
}

fn warnings(run: &ExperimentRun) -> Vec<String> {
    let mut warnings = Vec::new();
    if !run.is_restored() {
        warnings.push(
            word!("Not everything was restored: the settings after the experiment differ from those before it; see “What was changed”.")
                .to_string(),
        );
    }
    if let Some(why) = wakewatt_lab::study::differs_from_itself(run, &wakewatt_lab::study::noise(run)) {
        warnings.push(super::words::ended(&super::words::sentence_case(&why)));
    }
    let rejected = run.n_rejected();
    if rejected * 4 > run.blocks.len() {
        let share = percent(rejected as f64 / run.blocks.len() as f64);
        warnings
            .push(say!("{share} of the measurements were discarded; see the table of measurements for the reasons."));
    }
    warnings
}

fn without_experiment(evidence: &Evidence, rulings: &[Ruling]) -> Verdict {
    let not_done = evidence.not_done.iter().find(|n| n.step == Step::Experiment);
    if let Some(Why::TooBusy(busy)) = not_done.map(|n| &n.why) {
        return Verdict {
            kind: Kind::Undecided,
            sentence: too_busy(*busy),
            how_sure: word!("Nothing was measured: every CPU was idle for less than 5 % of two seconds.").into(),
            busy: None,
            warnings: Vec::new(),
        };
    }
    let why = not_done.map_or(word!("it was not asked for").to_string(), |n| n.why.to_string());
    let as_found = evidence.samples.wakeups.iter().find_map(|s| Some((s, s.latency.p50_ns()?)));
    let sentence = match as_found {
        Some((sample, p50_ns)) => say!(
            "Nothing was proved: no experiment ran ({why}); as found, a {} wake-up takes {} at the median ({} samples), and how much of that is due to idle states this run cannot say.",
            told(sample.kind.word()),
            ns_rough(p50_ns as f64),
            count(sample.latency.n)
        ),
        None => say!(
            "Nothing was proved: no experiment ran ({why}), so what follows rests on what the machine says about itself{}.",
            first::first(rulings)
        ),
    };
    Verdict {
        kind: Kind::NoExperiment,
        sentence,
        how_sure: word!(
            "Only an experiment that changes the setting and puts it back can tell what the setting costs."
        )
        .into(),
        busy: None,
        warnings: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
