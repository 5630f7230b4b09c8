//! What turning the governor showed: the verdict of doctor's frequency experiment, which overrules what a driver's name
//! and limits let one suspect.
//!
//! Requests that come after a pause are measured from the planned start under the governor as found and under
//! `performance`. The interval is that of the look which ended the experiment, so it is wider than a plain one and right
//! over all looks together (`stats::sequential`). Watts stand beside it as the price where a meter worked, with their own
//! verdict; where none did, that is said.

use super::super::{Answer, Cost, Finding, Weight, joined, measured};
use super::{Governor, PATH, price_in_watts, remedy, verify};
use crate::choice::PERFORMANCE;
use crate::evidence::Evidence;
use crate::samples::experiment::{Effect, ExperimentRun, Metric, Unit, Verdict};
use crate::units::three_digits;
use wakewatt_words::{say, word};

/// What an experiment that could not decide says.
pub(super) fn undecided(evidence: &Evidence, run: &ExperimentRun) -> Option<String> {
    let effect = run.primary().filter(|e| e.arm == PERFORMANCE && e.verdict == Verdict::Undecided)?;
    let found = found(evidence);
    Some(say!(
        "the experiment on the governor could not decide: a request takes {} as long with the governor as found ({found}) as \
         with performance",
        run.in_numbers(effect)
    ))
}

/// The answer; none where the experiment yielded no effect or could not decide: then what the driver says stands.
pub(super) fn answer(rule: &Governor, evidence: &Evidence, run: &ExperimentRun) -> Option<Answer> {
    let effect = run.primary().filter(|e| e.arm == PERFORMANCE && e.ratio.is_finite() && e.ratio > 0.0)?;
    let metric = run.metrics.iter().find(|m| m.id == effect.metric).map_or(effect.metric.clone(), Metric::phrase);
    let found = found(evidence);
    let said = say!(
        "{metric} takes {} as long with the governor as found ({found}) as with performance",
        run.in_numbers(effect)
    );
    Some(match effect.verdict {
        Verdict::Higher => costs(rule, evidence, run, effect, &found, &said),
        Verdict::Undecided => return None,
        Verdict::NoDifference if !run.is_sized() => return None,
        Verdict::NoDifference => {
            Answer::no(say!("measured here, the governor costs such requests nothing that matters: {said}"))
        }
        Verdict::Lower => Answer::no(say!("measured here, performance makes such requests slower: {said}")),
    })
}

fn costs(
    rule: &Governor,
    evidence: &Evidence,
    run: &ExperimentRun,
    effect: &Effect,
    found: &str,
    said: &str,
) -> Answer {
    let text = format!("{}; {said}", run.in_us(effect, word!("per request that comes after a pause")));
    let cost = Cost::stated_ns(run.stated_difference(effect), text);
    let title = say!("The governor {found} makes requests after a pause {}", run.as_slower(effect));
    let finding = Finding::new(rule, Weight::Problem, measured::confidence(run, effect), title, cost)
        .on(say!("experiment, seed {}", run.seed), say!("{} blocks in random order", run.blocks.len()))
        .on(PATH, found);
    let finding = match cpu_time(run, effect) {
        Some(said) => finding.on(word!("experiment"), said),
        None => finding,
    };
    let (finding, what) = match measured::not_proposed(run) {
        None => (super::to_performance(finding, evidence), remedy().to_string()),
        Some(why) => (finding, joined(&why, remedy())),
    };
    finding.remedy(what, price(run, effect), verify()).yes()
}

/// Watts of the same experiment, where a meter worked.
fn price(run: &ExperimentRun, primary: &Effect) -> String {
    let is_watts = |e: &&Effect| {
        e.arm == primary.arm && run.metrics.iter().any(|m| m.id == e.metric && m.unit == Unit::Microwatts)
    };
    match run.effects.iter().find(is_watts) {
        None => joined(word!("Watts were not measured in this experiment."), price_in_watts()),
        Some(e) => {
            let watts = |uw: f64| three_digits(uw.abs() / 1e6);
            let draws = watts(e.difference);
            let draws = match e.difference < 0.0 {
                true => say!("performance draws {draws} W more at that load"),
                false => say!("performance draws {draws} W less at that load"),
            };
            let between = say!(
                "{draws} (found less performance: {} to {} W, {})",
                three_digits(e.difference_low / 1e6),
                three_digits(e.difference_high / 1e6),
                e.sureness()
            );
            match e.verdict {
                Verdict::NoDifference => say!("Measured: no difference in watts that matters; {between}."),
                Verdict::Undecided => say!("Measured, and undecided: {between}."),
                Verdict::Higher | Verdict::Lower => say!("Measured: {between}."),
            }
        }
    }
}

/// CPU time per request of the same experiment.
fn cpu_time(run: &ExperimentRun, primary: &Effect) -> Option<String> {
    let e = run.effects.iter().find(|e| e.arm == primary.arm && e.metric.ends_with(".cpu"))?;
    let word = match e.verdict {
        Verdict::NoDifference => word!("no difference that matters"),
        Verdict::Undecided => word!("undecided"),
        Verdict::Higher => word!("more as found"),
        Verdict::Lower => word!("less as found"),
    };
    Some(say!("CPU time per request: {} as much as found as with performance: {word}", run.in_numbers(e)))
}

/// `ondemand on CPUs 0-3`.
fn found(evidence: &Evidence) -> String {
    let governors = evidence.facts.freq.governors();
    let words: Vec<String> = match governors.uniform() {
        Some(one) => vec![one.clone()],
        None => governors.known().map(|(cpus, g)| say!("{g} on {cpus}", cpus = cpus.named())).collect(),
    };
    if words.is_empty() { word!("not read").into() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{evidence, line, policy};
    use super::super::super::{Confidence, Rule};
    use super::*;
    use crate::choice::testing::frequency_run;
    use crate::samples::Samples;
    use crate::samples::experiment::Block;
    use crate::samples::taken::Taken;

    fn host(run: ExperimentRun) -> Evidence {
        let policy = policy(&[
            ("scaling_driver", "acpi-cpufreq"),
            ("scaling_governor", "ondemand"),
            ("scaling_available_governors", "ondemand performance"),
        ]);
        Evidence { samples: Samples { experiments: vec![run], ..Samples::default() }, ..evidence(&policy) }
    }

    #[test]
    fn a_clear_effect_is_a_problem_with_a_line_for_tune_and_its_undo() {
        let host = host(frequency_run(Verdict::Higher));
        assert_eq!(
            line(&Governor, &host),
            "yes problem measured: the governor ondemand makes requests after a pause 1.40 times slower: 200 us each"
        );
        let Answer::Yes(finding) = Governor.check(&host) else { panic!() };
        assert_eq!(finding.cost.latency_ns, Some(200_000.0));
        let text = &finding.cost.text;
        assert!(text.starts_with("200us per request") && text.contains("1.4 times (1.3 to 1.5"), "{text}");
        let plan = finding.plan.unwrap();
        assert_eq!(plan.commands().look, "wakewatt tune plan --set freq.governor=performance");
        assert_eq!(plan.commands().undo, "sudo wakewatt tune undo");
        let mut run = frequency_run(Verdict::Higher);
        run.blocks.push(Block { taken: Some(Taken { steal_ratio: 0.02, foreign_ratio: None }), ..Block::default() });
        let Answer::Yes(loaded) = Governor.check(&self::host(run)) else { panic!() };
        assert_eq!((loaded.confidence, loaded.plan.is_some()), (Confidence::Medium, true), "beside other load");
        assert!(finding.price.starts_with("Watts were not measured"), "{}", finding.price);
    }

    #[test]
    fn watts_of_the_experiment_are_the_price() {
        let mut run = frequency_run(Verdict::Higher);
        run.metrics.push(Metric::power("steps.10.watts", "load at 10 %, mean power"));
        let watts = Effect {
            covers: crate::covers::Covers::Run,
            metric: "steps.10.watts".into(),
            verdict: Verdict::Lower,
            ratio: 0.9,
            ratio_low: 0.88,
            ratio_high: 0.92,
            difference: -3.1e6,
            difference_low: -3.6e6,
            difference_high: -2.5e6,
            ..run.effects[0].clone()
        };
        run.effects.push(watts);
        let cpu = Effect { metric: "steps.10.cpu".into(), ratio: 1.2, ..run.effects[0].clone() };
        run.effects.push(cpu);
        let Answer::Yes(finding) = Governor.check(&host(run)) else { panic!() };
        assert!(finding.price.starts_with("Measured: performance draws 3.1 W more at that load"), "{}", finding.price);
        let told = finding.evidence.iter().any(|e| e.says.starts_with("CPU time per request: 1.2 times"));
        assert!(told, "{:?}", finding.evidence);
    }

    #[test]
    fn what_could_not_be_decided_and_what_does_no_harm_say_so() {
        let said = line(&Governor, &host(frequency_run(Verdict::Undecided)));
        assert!(said.starts_with("yes risk unknown: governor ondemand"), "what the driver says stands: {said}");
        let run = frequency_run(Verdict::Undecided);
        let told = undecided(&host(run.clone()), &run).unwrap();
        assert!(told.starts_with("the experiment on the governor could not decide: a request takes"), "{told}");
        let said = line(&Governor, &host(frequency_run(Verdict::NoDifference)));
        assert!(said.starts_with("no: measured here, the governor costs such requests nothing"), "{said}");
        let said = line(&Governor, &host(frequency_run(Verdict::Lower)));
        assert!(said.starts_with("no: measured here, performance makes such requests slower"), "{said}");
    }

    #[test]
    fn a_run_without_an_effect_leaves_the_question_to_the_facts() {
        let mut run = frequency_run(Verdict::Higher);
        run.effects.clear();
        assert!(line(&Governor, &host(run)).starts_with("yes risk unknown: governor ondemand"));
        let mut other = frequency_run(Verdict::Higher);
        other.arms[1].id = "conservative".into();
        assert!(line(&Governor, &host(other)).starts_with("yes risk unknown"), "another experiment is not this one");
    }
}
