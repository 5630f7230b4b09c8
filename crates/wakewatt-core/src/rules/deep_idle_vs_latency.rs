//! Do deep idle states make wake-ups slow here?
//!
//! The cause of cases K0 (mean request time 191 ms against 85 ms with C1), K2 and K3. Looks at the deepest idle state
//! that is enabled and allowed by the limits in force. If the idle experiment ran, only its verdict counts: a claimed
//! latency is a worst case, an interval is a measurement, and "no difference" acquits. Without it the cost is
//! predicted from the claimed exit latency (`cpuidle/stateN/latency`). In a guest the claim says nothing:
//! halting costs what the hypervisor makes of it (claimed 1us, measured 10 to 30us), so without an
//! experiment the rule cannot tell. Where the CPUs were awake at most of their wake-ups, or others had a part in the effect, the
//! experiment says so and sells nothing (`measured`). The experiment's arms are read in their order (shallow sleep, no sleep): the first
//! that was faster is the remedy, and with limits lifted it says what the limits in force already save.

use super::exclusions::Assertion;
use super::{Answer, Confidence, Cost, Finding, Rule, Weight, joined, measured};
use crate::budget::{self, DEEP_NS};
use crate::cpuset::CpuSet;
use crate::enterable::{self, Barrier};
use crate::evidence::Evidence;
use crate::samples::compared::Compared;
use crate::samples::experiment::{Effect, ExperimentRun, Metric, Verdict};
use crate::samples::titles;
use crate::turbo;
use crate::units::{LatencyLimit, show_ns};
use std::collections::BTreeMap;
use wakewatt_words::{say, word};

/// More measured wake-ups than this are not repeated in the finding.
const MAX_SAMPLES: usize = 8;

pub(super) struct DeepIdleVsLatency;

/// What advice rests on.
enum Proof {
    /// The experiment.
    Shown,
    /// The experiment, whose size is not reported: why.
    Unstable(String),
    /// What the driver claims.
    Claimed,
}

impl Rule for DeepIdleVsLatency {
    fn id(&self) -> &'static str {
        "rule.deep-idle-vs-latency"
    }
    fn question(&self) -> &'static str {
        word!("do deep idle states make wake-ups slow here?")
    }
    fn is_choice(&self) -> bool {
        true
    }
    fn takes_for_granted(&self, evidence: &Evidence) -> Vec<Assertion> {
        vec![Assertion::Sleeps(enterable::sleeping(&enterable::of(&evidence.facts)))]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        if let Some(run) = evidence.idle_experiment() {
            let primary = run.metrics.first().map(|m| m.id.as_str());
            let effects: Vec<&Effect> = run.effects.iter().filter(|e| Some(e.metric.as_str()) == primary).collect();
            if !effects.is_empty() {
                return self.by_experiment(evidence, run, &effects);
            }
        }
        self.by_claims(evidence)
    }
}

impl DeepIdleVsLatency {
    /// The first arm that was faster names the remedy: shallow sleep before no sleep, as the arms are ordered.
    fn by_experiment(&self, evidence: &Evidence, run: &ExperimentRun, effects: &[&Effect]) -> Answer {
        let title = |id: &str| run.arms.iter().find(|a| a.id == id).map_or(id.to_string(), |a| titles::shown(&a.title));
        let metric =
            |e: &Effect| run.metrics.iter().find(|m| m.id == e.metric).map_or(e.metric.clone(), Metric::phrase);
        let (limits, lifted): (Vec<&Effect>, Vec<&Effect>) =
            effects.iter().copied().partition(|e| e.compared() != Compared::LimitsLifted);
        if let Some(effect) = limits.iter().find(|e| e.verdict == Verdict::Higher) {
            let said = say!(
                "{} took {} as long {} as with {}",
                metric(effect),
                run.in_numbers(effect),
                title(&effect.baseline),
                title(&effect.arm)
            );
            return match measured::not_asleep(run, effect) {
                Some(awake) => Answer::cannot_tell(
                    say!("{said}, but {awake}, so what differs is not sleep"),
                    word!("run wakewatt doctor again when nothing keeps the CPUs awake"),
                ),
                None => self.slower(evidence, run, effect, &metric(effect), &title(&effect.arm)),
            };
        }
        if let Some(effect) = lifted.iter().find(|e| e.verdict == Verdict::Lower) {
            return Answer::no(say!(
                "as found, limits already keep the CPUs from sleeping; with {} {} was {} as long",
                title(&effect.arm),
                metric(effect),
                run.in_numbers(&effect.inverted())
            ));
        }
        if let Some(effect) = effects.iter().find(|e| e.verdict == Verdict::Undecided) {
            return Answer::cannot_tell(
                say!(
                    "the experiment could not decide: {} took {} as long {} as with {}",
                    metric(effect),
                    run.in_numbers(effect),
                    title(&effect.baseline),
                    title(&effect.arm)
                ),
                word!("run wakewatt doctor again when the machine is quieter, or with more time"),
            );
        }
        if !run.is_sized() {
            return Answer::cannot_tell(
                say!(
                    "the experiment found no effect, and the machine was not steady enough to exclude one: {}",
                    run.graded().reasons()
                ),
                word!("run wakewatt doctor again when the machine is quieter"),
            );
        }
        let said = |e: &&Effect| {
            say!("{} took {} as long {} as with {}", metric(e), run.in_numbers(e), title(&e.baseline), title(&e.arm))
        };
        Answer::no(say!("measured here, no wake-up cost: {}", effects.iter().map(said).collect::<Vec<_>>().join("; ")))
    }

    fn slower(&self, evidence: &Evidence, run: &ExperimentRun, effect: &Effect, metric: &str, arm: &str) -> Answer {
        let per = run.in_us(effect, word!("per wake-up"));
        let numbers = run.in_numbers(effect);
        let text = say!("{per}; as found, {metric} takes {numbers} as long as with {arm}");
        let cost = Cost::stated_ns(run.stated_difference(effect), text);
        let what = if effect.metric.starts_with("wakeup.") { word!("a wake-up") } else { metric };
        let text = run.slower(effect, what);
        let finding = Finding::new(self, Weight::Problem, measured::confidence(run, effect), text, cost)
            .on(say!("experiment, seed {}", run.seed), say!("{} blocks in random order", run.blocks.len()));
        let limit =
            if effect.compared() == Compared::ShallowSleep { budget::shallowest(&evidence.facts.idle) } else { None };
        let proof = measured::not_proposed(run).map_or(Proof::Shown, Proof::Unstable);
        self.advise(evidence, finding, limit.unwrap_or(LatencyLimit::Poll), &proof)
    }

    fn by_claims(&self, evidence: &Evidence) -> Answer {
        let (idle, qos, cpus) = (&evidence.facts.idle, &evidence.facts.qos, &evidence.facts.cpus);
        let all = enterable::of(&evidence.facts);
        let Some(deepest) = enterable::deepest(&all) else {
            let spinning = enterable::spinning(&all);
            return match idle.driver.gap() {
                _ if !spinning.is_empty() => Answer::no(say!(
                    "no idle state can be entered, so idle CPUs spin on {}; see rule.polling-by-accident",
                    cpus.extent(&spinning)
                )),
                Some(gap) => Answer::gap(gap),
                None => Answer::cannot_tell(
                    word!("no idle state is listed, so what the CPUs do when idle is not known"),
                    word!("measure it: wakewatt measure wakeup"),
                ),
            };
        };
        let sleeping = all.iter().filter(|group| group.deepest_of_core().is_some_and(|row| row.name == deepest.name));
        let sleeping = sleeping.fold(CpuSet::new(), |set, group| set.union(&group.cpus));
        // Who has just done so needs another hour, not the same advice.
        let try_this = match evidence.samples.experiment {
            None => word!("run wakewatt doctor as root: it measures with and without sleep and puts everything back"),
            Some(_) => {
                word!("the experiment of this run came to nothing: wakewatt doctor --wait-quiet 10min, at a quiet hour")
            }
        };
        if evidence.facts.virt.is_guest() == Some(true) {
            let why = say!("in a guest the claim of {deepest} says nothing: the hypervisor decides what halting costs");
            return Answer::cannot_tell(why, try_this);
        }
        if deepest.exit_latency_ns < DEEP_NS {
            return Answer::no(say!("the deepest state that may be entered is {deepest}, under {}", show_ns(DEEP_NS)));
        }
        let title = say!(
            "{} claims {} to wake from and can be entered on {}",
            deepest.name,
            show_ns(deepest.exit_latency_ns),
            cpus.extent(&sleeping)
        );
        let cost = Cost::predicted_ns(
            deepest.exit_latency_ns as f64,
            say!("up to {} per wake-up, as the driver claims; not measured", show_ns(deepest.exit_latency_ns)),
        );
        // What was measured here stands before the claim; a placeholder may be eight times off either way, so alone it makes
        // no more than a hint.
        let measured = evidence.measured_exit(&deepest.name);
        let placeholder = idle.source.as_ref().filter(|source| !source.is_believable());
        let (title, cost, confidence) = match &measured {
            Some(exit) => (
                say!("{title}, and {} as measured here", words(exit.extra.median_ns)),
                Cost::measured_ns(exit.extra.median_ns, say!("{exit} per wake-up out of {}", deepest.name)),
                Confidence::Medium,
            ),
            None if placeholder.is_some() => (say!("{title} (a placeholder)"), cost, Confidence::Low),
            None => (title, cost, Confidence::Medium),
        };
        let mut finding = Finding::new(self, Weight::Risk, confidence, title, cost)
            .on("/sys/devices/system/cpu/cpu*/cpuidle/state*/latency", &deepest);
        if let Some(exit) = &measured {
            finding = finding
                .on(word!("measured here: one idle state allowed at a time"), format!("{} {exit}", deepest.name));
        } else if let Some(source) = placeholder {
            let says = say!("{}: a placeholder until measured (wakewatt measure idle)", source.words());
            finding = finding.on(word!("source of the idle table"), says);
        }
        if let Some(run) = evidence.idle_experiment() {
            let text = say!("it ran and gave no effect: {}", run.ended);
            finding = finding.on(word!("experiment"), text);
        }
        if qos.global.get().is_none() {
            finding =
                finding.on("/dev/cpu_dma_latency", word!("could not be read: a global limit may already exclude it"));
        }
        self.advise(evidence, finding, budget::shallow(idle).unwrap_or(LatencyLimit::Poll), &Proof::Claimed)
    }

    /// The budget that keeps shallow sleep, or polling where there is only one kind of sleep.
    fn advise(&self, evidence: &Evidence, mut finding: Finding, limit: LatencyLimit, proof: &Proof) -> Answer {
        for sample in evidence.samples.wakeups.iter().take(MAX_SAMPLES) {
            if let Some(median) = sample.latency.p50_ns() {
                let what = say!("measured wake-up by {} on CPU {}", sample.kind.word(), sample.cpu);
                finding = finding.on(what, say!("median {} of {}", show_ns(median), sample.latency.n));
            }
        }
        // A table without POLL sleeps in its first state whatever the limit.
        let spins = budget::resolve(limit, &evidence.facts.idle).iter().any(|r| r.is_polling);
        let resolution = budget::sentence_here(limit, &evidence.facts);
        let is_guest = evidence.facts.virt.is_guest() == Some(true);
        // To poll on every CPU is proposed as a plan only where the experiment has shown the gain.
        let is_planned = match proof {
            Proof::Unstable(_) => false,
            Proof::Claimed => limit != LatencyLimit::Poll,
            Proof::Shown => true,
        };
        if is_planned {
            finding = finding.budget(&evidence.facts, limit, word!("exclude the idle states that are slow to leave"));
        }
        // The line to paste reaches what the sentence names, for as long.
        let reach = finding.plan.as_ref().map(|plan| plan.reach(&evidence.facts.cpus));
        let mut what = match (reach, limit == LatencyLimit::Poll && spins) {
            (Some(cpus), false) => say!("Set a latency limit on {cpus}, until it is undone: {resolution}."),
            (None, false) => say!("Set a latency limit while the latency-sensitive work runs: {resolution}."),
            (Some(cpus), true) => say!(
                "No sleeping state here is known to be cheap, so the limit is not to sleep, on {cpus} until it is undone: \
                 {resolution}. To spare the other CPUs, name those of the work: --cpus LIST."
            ),
            (None, true) => say!(
                "No sleeping state here is known to be cheap, so the limit is not to sleep: {resolution}. \
                Give it only to the CPUs that need it."
            ),
        };
        // Enabling shallow states that were disabled is better than polling.
        let cheap = enterable::of(&evidence.facts).into_iter().flat_map(|group| group.states);
        let cheap: BTreeMap<u64, String> = cheap
            .filter(|state| state.barriers == [Barrier::Disabled] && !state.row.is_polling())
            .filter_map(|state| Some((state.row.exit_latency_ns.filter(|ns| *ns < DEEP_NS)?, state.row.name)))
            .collect();
        let is_claimed = limit == LatencyLimit::Poll && spins && matches!(proof, Proof::Claimed);
        let cheapest = cheap.last_key_value().filter(|_| is_claimed);
        if let Some((ns, _)) = cheapest {
            what = say!(
                "Enable {states} again (rule.idle-disabled-by-user), then set a latency limit of {limit} while the \
                 latency-sensitive work runs.",
                states = cheap.values().cloned().collect::<Vec<_>>().join(", "),
                limit = LatencyLimit::AtMostNs(*ns)
            );
        }
        if is_guest {
            let host = word!(
                "Part of the wake-up is the hypervisor's: its own idle states and halt polling are set on the host."
            );
            what = joined(&what, host);
        }
        let mut price = match limit {
            LatencyLimit::Poll if spins && cheapest.is_none() => match is_guest {
                true => word!("Every idle CPU spins: the host pays with CPU time.").to_string(),
                false => word!("Every idle CPU spins: full power, no turbo headroom for its neighbours.").to_string(),
            },
            _ if !turbo::has_headroom(&evidence.facts) => {
                word!("More watts when idle. How many: measure before and after.").to_string()
            }
            _ => word!(
                "More watts when idle; less turbo headroom for a single busy core. How many watts: measure before and \
                after."
            )
            .to_string(),
        };
        if limit == LatencyLimit::Poll && is_guest {
            price = joined(&price, &measured::polling_and_steal(evidence));
        }
        if let Proof::Unstable(why) = proof {
            what = joined(why, &what);
        }
        finding
            .remedy(
                what,
                price,
                word!("wakewatt measure wakeup before and after; wakewatt doctor repeats the experiment"),
            )
            .yes()
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // rounded, not negative, far below 2^64
fn words(ns: f64) -> String {
    show_ns(ns.max(0.0).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, evidence, haltpoll, icx, idle, line, slept};
    use super::*;
    use crate::samples::StateDelta;
    use crate::samples::ended::Ended;
    use crate::samples::experiment::{Arm, Metric};
    use crate::samples::grade::{Flaw, Grade, Graded};
    use crate::samples::study::Conclusions;
    use crate::samples::taken::Taken;
    use crate::samples::woken::Woken;

    pub(crate) fn run(verdict: Verdict) -> ExperimentRun {
        let arm = |id: &str, title: &str| Arm { id: id.into(), title: title.into(), settings: Vec::new() };
        let metric = "wakeup.eventfd.p50".to_string();
        ExperimentRun {
            arms: vec![arm("default", "idle states as found"), arm("poll", "no sleep")],
            metrics: vec![Metric::latency(metric.clone(), "cross-CPU wake-up, median")],
            effects: vec![Effect {
                covers: crate::covers::Covers::Run,
                metric,
                baseline: "default".into(),
                arm: "poll".into(),
                ratio: 2.1,
                ratio_low: 1.8,
                ratio_high: 2.4,
                difference: 26_000.0,
                difference_low: 22_000.0,
                difference_high: 31_000.0,
                confidence: None,
                p_value: 0.008,
                at_look: None,
                n_pairs: 8,
                verdict,
            }],
            blocks: vec![slept("default")],
            seed: 1,
            ended: Ended::enough("narrow"),
            ..ExperimentRun::default()
        }
    }

    #[test]
    fn claims_predict() {
        assert_eq!(
            ask(&DeepIdleVsLatency, &icx()),
            "yes risk predicted: c6 claims 170us to wake from and can be entered on all 2 cpus"
        );
        let shallow = idle("acpi_idle", &[("POLL", 0, 0), ("C1", 1, 2)]);
        assert!(ask(&DeepIdleVsLatency, &shallow).starts_with("no: the deepest state that may be entered is C1"));
        let held_at = |limit: &str| -> String {
            let root = "//- /sys/devices/system/cpu/cpu";
            (0..2).map(|cpu| format!("{root}{cpu}/power/pm_qos_resume_latency_us\n{limit}\n")).collect()
        };
        let held = icx() + &held_at("50");
        assert!(ask(&DeepIdleVsLatency, &held).starts_with("no: the deepest state that may be entered is C1E (4us)"));
        let of_one = "//- /sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us\n50\n";
        assert_eq!(
            ask(&DeepIdleVsLatency, &(icx() + of_one)),
            "yes risk predicted: c6 claims 170us to wake from and can be entered on cpu 0 only"
        );
        assert!(ask(&DeepIdleVsLatency, &haltpoll()).starts_with("cannot tell: in a guest"));
        let polled = icx() + &held_at("n/a");
        assert!(
            ask(&DeepIdleVsLatency, &polled)
                .starts_with("no: no idle state can be entered, so idle CPUs spin on all 2 CPUs")
        );
        assert!(ask(&DeepIdleVsLatency, "").starts_with("cannot tell"));
    }

    #[test]
    fn the_experiment_overrules_the_claim() {
        let mut host = evidence(&icx());
        host.samples.experiment = Some(run(Verdict::Higher));
        assert_eq!(
            line(&DeepIdleVsLatency, &host),
            "yes problem measured: sleeping cpus make a wake-up 2.1 times slower: 26 us each"
        );
        host.samples.experiment = Some(run(Verdict::NoDifference));
        assert!(line(&DeepIdleVsLatency, &host).starts_with("no: measured here"));
        host.samples.experiment = Some(run(Verdict::Undecided));
        assert!(line(&DeepIdleVsLatency, &host).starts_with("cannot tell: the experiment could not decide"));
        host.samples.experiment = Some(run(Verdict::Higher));
        host.samples.conclusions = Some(Conclusions::default());
        let said = line(&DeepIdleVsLatency, &host);
        assert!(said.starts_with("yes risk predicted"), "a planned one may have turned anything: {said}");
    }

    #[test]
    fn other_load_leaves_size_and_fix_and_an_unstable_baseline_or_cpus_that_were_awake_prove_nothing() {
        let mut host = evidence(&icx());
        let mut loaded = run(Verdict::Higher);
        loaded.blocks[0].taken = Some(Taken { steal_ratio: 0.4, foreign_ratio: None });
        host.samples.experiment = Some(loaded.clone());
        let Answer::Yes(finding) = DeepIdleVsLatency.check(&host) else { panic!() };
        assert_eq!((finding.confidence, finding.plan.is_some()), (Confidence::Medium, true));
        assert!(finding.cost.text.contains("measured beside other load"), "{}", finding.cost.text);
        let unstable = Flaw::Unstable { ratio: 1.9, p_value: 0.001 };
        loaded.grade = Some(Graded { grade: Grade::Refused, because: vec![unstable] });
        host.samples.experiment = Some(loaded.clone());
        let said = line(&DeepIdleVsLatency, &host);
        assert_eq!(said, "yes problem measured: sleeping cpus make a wake-up slower", "no size");
        loaded.effects[0].verdict = Verdict::NoDifference;
        host.samples.experiment = Some(loaded);
        assert!(line(&DeepIdleVsLatency, &host).starts_with("cannot tell: the experiment found no effect, and"));
        let mut awake = run(Verdict::Higher);
        awake.blocks[0].woken = Some(Woken::new(0, 600));
        awake.blocks[0].idle[0].states.push(StateDelta { index: 0, name: "POLL".into(), n_usage: 600, time_ns: 1 });
        host.samples.experiment = Some(awake);
        let said = line(&DeepIdleVsLatency, &host);
        assert!(
            said.starts_with("cannot tell: ") && said.contains("before 1 % of the wake-ups, so what differs"),
            "{said}"
        );
        let Answer::Yes(finding) = DeepIdleVsLatency.check(&{
            host.samples.experiment = Some(run(Verdict::Higher));
            host
        }) else {
            panic!()
        };
        assert_eq!((finding.confidence, finding.plan.is_some()), (Confidence::High, true));
    }

    #[test]
    fn the_arm_that_helped_is_the_remedy() {
        let mut host = evidence(&icx());
        let mut both = run(Verdict::Higher);
        both.effects.insert(0, Effect { arm: "shallow".into(), ..both.effects[0].clone() });
        host.samples.experiment = Some(both.clone());
        let to = |host: &Evidence| match DeepIdleVsLatency.check(host) {
            Answer::Yes(finding) => finding.plan.unwrap().steps()[0].to.clone(),
            _ => String::new(),
        };
        assert_eq!(to(&host), "1us");
        both.effects[0].verdict = Verdict::NoDifference;
        host.samples.experiment = Some(both.clone());
        assert_eq!(to(&host), "poll", "deep states are not to blame, sleeping is");
        both.effects = vec![Effect {
            covers: crate::covers::Covers::Run,
            arm: "lifted".into(),
            verdict: Verdict::Lower,
            ratio: 0.5,
            ratio_low: 0.4,
            ratio_high: 0.6,
            ..both.effects[1].clone()
        }];
        host.samples.experiment = Some(both);
        let said = line(&DeepIdleVsLatency, &host);
        assert!(said.starts_with("no: as found, limits already keep the CPUs from sleeping"), "{said}");
        assert!(said.contains("2 times (1.67 to 2.5"), "{said}");
    }

    #[test]
    fn what_was_measured_here_stands_beside_the_claim() {
        let epyc = idle("acpi_idle", &[("POLL", 0, 0), ("C1", 1, 2), ("C6", 800, 1600)]);
        let mut host = evidence(&epyc);
        let Answer::Yes(claimed) = DeepIdleVsLatency.check(&host) else { panic!() };
        assert_eq!(claimed.title, "C6 claims 800us to wake from and can be entered on all 2 CPUs (a placeholder)");
        assert_eq!(claimed.confidence, Confidence::Low);
        host.samples.idle_states =
            super::super::exit_latency_claims::tests::host(800_000, 60_000.0, None).samples.idle_states;
        let Answer::Yes(finding) = DeepIdleVsLatency.check(&host) else { panic!() };
        assert_eq!(
            finding.title,
            "C6 claims 800us to wake from and can be entered on all 2 CPUs, and 60us as measured here"
        );
        assert_eq!((finding.confidence, finding.cost.latency_ns), (Confidence::Medium, Some(60_000.0)));
        assert!(
            finding.evidence.iter().any(|b| b.says == "C6 60us [54us, 66us] over POLL, by ipi on CPU 1, 6 rounds"),
            "{:?}",
            finding.evidence
        );
        host.samples.idle_states =
            super::super::exit_latency_claims::tests::host(800_000, 60_000.0, Some("refused")).samples.idle_states;
        assert_eq!(line(&DeepIdleVsLatency, &host), format!("yes risk predicted: {}", claimed.title.to_lowercase()));
    }

    #[test]
    fn advice_and_line_reach_the_same_cpus() {
        let mut host = evidence(&icx());
        let advice = |host: &Evidence| match DeepIdleVsLatency.check(host) {
            Answer::Yes(finding) => (finding.remedy.clone(), finding.plan.is_some()),
            _ => panic!("no finding"),
        };
        assert!(advice(&host).0.starts_with("Set a latency limit on all 2 CPUs, until it is undone: 4us -> "));
        host.samples.experiment = Some(run(Verdict::Higher));
        let (remedy, has_line) = advice(&host);
        assert!(
            has_line && remedy.contains("so the limit is not to sleep, on all 2 CPUs until it is undone"),
            "{remedy}"
        );
        assert!(!remedy.contains("only to the CPUs that need it"), "the line is for all of them: {remedy}");
        let mut shaky = run(Verdict::Higher);
        let flaw = Flaw::Unstable { ratio: 1.9, p_value: 0.001 };
        shaky.grade = Some(Graded { grade: Grade::Refused, because: vec![flaw] });
        host.samples.experiment = Some(shaky);
        let (remedy, has_line) = advice(&host);
        assert!(!has_line && remedy.contains("Give it only to the CPUs that need it."), "{remedy}");
    }

    #[test]
    fn the_remedy_is_resolved() {
        let Answer::Yes(finding) = DeepIdleVsLatency.check(&evidence(&icx())) else { panic!() };
        assert!(finding.remedy.contains("4us -> C1E (4us); C6 (170us) excluded; 5-169us would be the same"));
        assert_eq!(finding.plan.unwrap().steps()[0].to, "4us");
    }
}
