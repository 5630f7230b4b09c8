//! Does sleeping make disk reads slow here?
//!
//! The cause of case K3 (random reads 10 % slower under a new kernel, which reached C6 more often; gone with
//! `intel_idle.max_cstate=1`). At depth 1 the CPU sleeps in every read and the answer pays for waking it: 43 to 46 % of a
//! read on the development VM (docs/methods/disk.md). Only an experiment says how much; counters alone say that it slept. The
//! arms are read in their order (shallow sleep, no sleep): the first that was faster is the remedy.

use super::{Answer, Cost, Finding, Rule, Weight, Where, joined, measured};
use crate::budget;
use crate::evidence::Evidence;
use crate::samples::compared::Compared;
use crate::samples::experiment::{Effect, ExperimentRun, Metric, Verdict};
use crate::samples::titles;
use crate::units::{LatencyLimit, show_ns, three_digits};
use wakewatt_words::{say, word};

/// A CPU that slept in fewer reads than this was awake for other reasons.
const SLEPT_RATIO: f64 = 0.5;

fn try_this() -> &'static str {
    word!("sudo wakewatt measure disk --experiment: it reads with and without sleep and puts everything back")
}

pub(super) struct DiskSleep;

impl Rule for DiskSleep {
    fn id(&self) -> &'static str {
        "rule.disk-sleep"
    }
    fn question(&self) -> &'static str {
        word!("does sleeping make disk reads slow here?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::Sleep]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        if let Some(run) = &evidence.samples.disk_experiment {
            let primary = run.metrics.first().map(|m| m.id.as_str());
            let effects: Vec<&Effect> = run
                .effects
                .iter()
                .filter(|e| Some(e.metric.as_str()) == primary && e.compared() != Compared::LimitsLifted)
                .collect();
            if !effects.is_empty() {
                return self.by_experiment(evidence, run, &effects);
            }
        }
        by_counters(evidence)
    }
}

impl DiskSleep {
    fn by_experiment(&self, evidence: &Evidence, run: &ExperimentRun, effects: &[&Effect]) -> Answer {
        let title = |id: &str| run.arms.iter().find(|a| a.id == id).map_or(id.to_string(), |a| titles::shown(&a.title));
        let metric = run.metrics.first().map_or(word!("a disk read").into(), Metric::phrase);
        let said = |e: &Effect| say!("{metric} took {} as long as with {}", run.in_numbers(e), title(&e.arm));
        let Some(effect) = effects.iter().find(|e| e.verdict == Verdict::Higher) else {
            let all = effects.iter().map(|e| said(e)).collect::<Vec<_>>().join("; ");
            if effects.iter().any(|e| e.verdict == Verdict::Undecided) {
                return Answer::cannot_tell(say!("the disk experiment could not decide: {all}"), try_this());
            }
            if !run.is_sized() {
                let why = run.graded().reasons();
                return Answer::cannot_tell(
                    say!("the disk experiment found no effect, and may not say so: {why}"),
                    try_this(),
                );
            }
            return Answer::no(say!("measured here, reads do not pay for sleep: {all}"));
        };
        if let Some(awake) = measured::not_asleep(run, effect) {
            return Answer::cannot_tell(
                say!("{}, but {awake}, so what differs is not sleep", said(effect)),
                try_this(),
            );
        }
        let cost = Cost::stated_ns(
            run.stated_difference(effect),
            say!("{}, {} of it; {}", run.in_us(effect, word!("per read")), run.as_share(effect), said(effect)),
        );
        let idle = &evidence.facts.idle;
        let shallow = if effect.compared() == Compared::ShallowSleep { budget::shallowest(idle) } else { None };
        let limit = shallow.unwrap_or(LatencyLimit::Poll);
        let price = match limit {
            LatencyLimit::Poll => {
                say!("Every idle CPU spins: full power. In a guest: {}", measured::polling_and_steal(evidence))
            }
            _ => word!("More watts when idle. How many: measure before and after.").into(),
        };
        let title = run.slower(effect, word!("a disk read"));
        let finding = Finding::new(self, Weight::Problem, measured::confidence(run, effect), title, cost)
            .on(say!("disk experiment, seed {}", run.seed), say!("{} blocks in random order", run.blocks.len()));
        let set = say!(
            "If single reads matter, set a latency limit while they run: {}. Where many reads are under way the CPU hardly sleeps \
             and nothing is gained: look at --depth first.",
            budget::sentence_here(limit, &evidence.facts)
        );
        let (finding, what) = match measured::not_proposed(run) {
            None => (finding.budget(&evidence.facts, limit, word!("exclude the idle states reads wait for")), set),
            Some(why) => (finding, joined(&why, &set)),
        };
        finding.remedy(what, price, word!("wakewatt measure disk before and after")).yes()
    }
}

fn by_counters(evidence: &Evidence) -> Answer {
    let Some(sample) = evidence.samples.disk.iter().find(|s| s.depth == 1) else {
        return Answer::cannot_tell(word!("no disk read was measured"), try_this());
    };
    let slept = sample.cpus.first().and_then(|cpu| Some((*cpu, sample.sleeps_per_read(*cpu)?)));
    let median = sample.latency.p50_ns().map_or(String::new(), |ns| say!(" of {} (median)", show_ns(ns)));
    match slept {
        None => Answer::cannot_tell(word!("the reading CPU has no idle counters"), try_this()),
        Some((cpu, times)) if times < SLEPT_RATIO => Answer::no(say!(
            "CPU {cpu} slept {} times per read{median}: there was little to wake from",
            three_digits(times)
        )),
        Some((cpu, times)) => Answer::cannot_tell(
            say!(
                "CPU {cpu} slept {} times per read{median}; how much of that is waking only an experiment tells",
                three_digits(times)
            ),
            try_this(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Confidence;
    use super::super::testing::{ask, evidence, haltpoll, icx, line, slept};
    use super::*;
    use crate::distribution::Distribution;
    use crate::samples::disk::{DiskAccess, DiskEngine, DiskSample, DiskTarget, DiskTargetKind};
    use crate::samples::experiment::{Arm, Metric};
    use crate::samples::taken::Taken;
    use crate::samples::{IdleDelta, Scheduling, StateDelta, Window};

    fn run(arm: &str, verdict: Verdict) -> ExperimentRun {
        let title = |id: &str| Arm { id: id.into(), title: format!("arm {id}"), settings: Vec::new() };
        let metric = "disk.psync.p50".to_string();
        let effect = Effect {
            covers: crate::covers::Covers::Run,
            metric: metric.clone(),
            baseline: "found".into(),
            arm: arm.into(),
            ratio: 2.0,
            ratio_low: 1.8,
            ratio_high: 2.2,
            difference: 40_000.0,
            difference_low: 35_000.0,
            difference_high: 45_000.0,
            confidence: None,
            p_value: 0.008,
            at_look: None,
            n_pairs: 8,
            verdict,
        };
        ExperimentRun {
            arms: vec![title("found"), title(arm)],
            metrics: vec![Metric::latency(metric, "random read, median")],
            blocks: vec![slept("found")],
            effects: vec![effect],
            seed: 1,
            ..ExperimentRun::default()
        }
    }

    fn sample(n_usage: u64) -> DiskSample {
        let state = StateDelta { index: 1, name: "C1".into(), n_usage, time_ns: 1 };
        DiskSample {
            engine: DiskEngine::Psync,
            target: DiskTarget {
                path: ".".into(),
                kind: DiskTargetKind::Made,
                filesystem: None,
                device: None,
                size_bytes: 1,
                is_direct: true,
            },
            access: DiskAccess::Random,
            block_bytes: 4096,
            depth: 1,
            planned_per_s: None,
            cpus: vec![1],
            scheduling: Scheduling::Fifo(80),
            latency: Distribution::from_ns((0..100).map(|_| 80_000)),
            service: None,
            n_late_starts: 0,
            n_never_started: 0,
            reads_per_s: 1.0,
            bytes_per_s: 1.0,
            cpu_ns_per_read: 1.0,
            n_reads_with_warmup: 100,
            seed: 1,
            clock_read_ns: 20,
            window: Window::default(),
            idle: vec![IdleDelta { cpu: 1, states: vec![state] }],
            remarks: Vec::new(),
        }
    }

    #[test]
    fn the_experiment_decides_and_its_first_arm_is_the_remedy() {
        let mut host = evidence(&icx());
        host.samples.disk_experiment = Some(run("shallow", Verdict::Higher));
        assert_eq!(
            line(&DiskSleep, &host),
            "yes problem measured: cpus in deep sleep make a disk read 2.0 times slower: 40 us each",
            "with shallow sleep they sleep as well"
        );
        let to = |host: &Evidence| match DiskSleep.check(host) {
            Answer::Yes(finding) => (finding.plan.unwrap().steps()[0].to.clone(), finding.cost.text.clone()),
            _ => Default::default(),
        };
        assert_eq!(to(&host).0, "1us");
        assert!(to(&host).1.contains("50 % (95 % CI 44 to 55, holds for this run only) of it"), "{}", to(&host).1);
        host.samples.disk_experiment = Some(run("poll", Verdict::Higher));
        assert_eq!(to(&host).0, "poll");
        assert!(line(&DiskSleep, &host).starts_with("yes problem measured: sleeping cpus make a disk read"));
        host.samples.disk_experiment = Some(run("poll", Verdict::NoDifference));
        assert!(line(&DiskSleep, &host).starts_with("no: measured here"));
        let mut loaded = run("poll", Verdict::Higher);
        loaded.blocks[0].taken = Some(Taken { steal_ratio: 0.02, foreign_ratio: None });
        host.samples.disk_experiment = Some(loaded);
        let Answer::Yes(finding) = DiskSleep.check(&host) else { panic!() };
        assert_eq!((finding.confidence, finding.plan.is_some()), (Confidence::Medium, true), "beside other load");
        host.samples.disk_experiment = Some(run("poll", Verdict::Undecided));
        assert!(line(&DiskSleep, &host).starts_with("cannot tell: the disk experiment could not decide"));
    }

    #[test]
    fn counters_alone_say_only_that_it_slept() {
        assert!(ask(&DiskSleep, &haltpoll()).starts_with("cannot tell: no disk read was measured"));
        let mut host = evidence(&haltpoll());
        host.samples.disk = vec![sample(98)];
        assert!(line(&DiskSleep, &host).starts_with("cannot tell: CPU 1 slept 0.98 times per read of 80"));
        host.samples.disk = vec![sample(2)];
        assert!(line(&DiskSleep, &host).starts_with("no: CPU 1 slept 0.02 times per read"));
    }
}
