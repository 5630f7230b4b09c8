//! The loads of a run, level by level: how many requests came, how long they took, and what CPU time they cost.
//!
//! Where an experiment made them, a level's numbers are those of all rounds of its arm, put together as the experiment does (Hodges and Lehmann's middle of
//! logarithms, the signed rank's interval): rounds of one setting are a third apart, and one is easily disturbed. CPU time is what the idle
//! counters of the server's CPUs leave of the window, where they are there: they count microseconds, and everything that ran (interrupts too),
//! while process accounting of many kernels counts ticks, of which a second at fifty requests has one or two.

use super::{Doubt, Took};
use wakewatt_core::distribution::Distribution;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::IdleDelta;
use wakewatt_core::samples::experiment::{Arm, Block, ExperimentRun};
use wakewatt_core::samples::load::{Ask, Kind, Level, LoadRun};
use wakewatt_core::stats::paired::hodges_lehmann;
use wakewatt_core::stats::signed_rank::interval;

/// More levels than any run has.
const MOST_LEVELS: usize = 64;

/// A level that ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// What was asked, in words.
    pub name: String,
    /// Requests per second that came.
    pub per_s: f64,
    /// What they took.
    pub took: Took,
    /// Between which values that lies, by the rounds of its arm.
    pub doubt: Doubt,
    /// CPUs that served them.
    pub n_cpus: u32,
    /// From a request's real start to its end, where that was measured.
    pub service: Option<Distribution>,
    /// The first rule that it broke, in words; none of a level that counts.
    pub broken: Option<String>,
}

/// Loads of one kind under one setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Loads {
    /// What made them.
    pub kind: Kind,
    /// Id of the arm, where it was an experiment's.
    pub arm: Option<String>,
    /// Title of the run.
    pub title: String,
    /// Its levels.
    pub levels: Vec<Loaded>,
}

/// Loads of a run; those of an experiment know their arm by its title.
pub(super) fn all(run: &Evidence) -> Vec<Loads> {
    let experiments: Vec<&ExperimentRun> = run.samples.all_experiments().collect();
    let of = |load: &LoadRun| {
        let found = experiments.iter().find_map(|e| Some((*e, e.arms.iter().find(|arm| is_of(load, arm))?)));
        let rounds = found.map(|(experiment, arm)| Rounds::of(experiment, arm, &run.samples.load));
        let took = |(at, level): (usize, &Level)| {
            let rounds = rounds.as_ref().filter(|r| r.knows(load, at));
            loaded(level, rounds.map(|r| r.centres(load, at, level)))
        };
        let levels = load.levels.iter().enumerate().take(MOST_LEVELS).filter_map(took).collect::<Vec<_>>();
        let arm = found.map(|(_, arm)| arm.id.clone());
        (load.kind != Kind::Command && !levels.is_empty()).then(|| Loads {
            kind: load.kind,
            arm,
            title: load.title.clone(),
            levels,
        })
    };
    run.samples.load.iter().filter_map(of).collect()
}

/// Was it made under this arm? Its title begins with the arm's.
fn is_of(load: &LoadRun, arm: &Arm) -> bool {
    let rest = load.title.strip_prefix(&arm.title);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(", "))
}

/// A level with a load that had a steady state.
fn loaded(level: &Level, rounds: Option<Centres>) -> Option<Loaded> {
    let seconds = level.window.length_ns() as f64 / 1e9;
    let per_s = level.target_per_s.unwrap_or(level.per_s);
    let p50_ns = level.latency.as_ref().and_then(Distribution::p50_ns).map(|ns| ns as f64);
    let is_load = !matches!(level.ask, Ask::Idle | Ask::Run) && per_s > 0.0 && seconds > 0.0;
    let is_steady = !matches!(level.ask, Ask::Share(share) if share >= 1.0);
    if !is_load || !is_steady || p50_ns.is_none() {
        return None;
    }
    let n_cpus = level.cpus.len().max(1);
    let own = Took { p50_ns, cpu_ns: busy_ns(&level.idle, n_cpus, seconds, level.per_s).or(level.cpu_ns_per_op()) };
    let rounds = rounds.unwrap_or_default();
    Some(Loaded {
        name: level.ask.to_string(),
        per_s,
        took: Took {
            p50_ns: rounds.p50.map(|c| c.value).or(own.p50_ns),
            cpu_ns: rounds.cpu.map(|c| c.value).or(own.cpu_ns),
        },
        doubt: rounds.doubt(),
        n_cpus: u32::try_from(n_cpus).unwrap_or(1),
        service: level.service.clone(),
        broken: level.broken_rules.first().map(ToString::to_string),
    })
}

/// What rounds come to.
#[derive(Clone, Copy)]
struct Centre {
    value: f64,
    n_rounds: u32,
    /// 95 %; none of too few rounds.
    ends: Option<[f64; 2]>,
}

/// Error rate of an interval.
const LEVEL: f64 = 0.05;

impl Centre {
    fn of(rounds: impl Iterator<Item = f64>) -> Option<Centre> {
        let logs: Vec<f64> = rounds.filter(|value| *value > 0.0).map(f64::ln).collect();
        let within = interval(&logs, LEVEL);
        (!logs.is_empty()).then(|| Centre {
            value: hodges_lehmann(&logs).exp(),
            n_rounds: u32::try_from(logs.len()).unwrap_or(u32::MAX),
            ends: within.is_at(LEVEL).then(|| [within.low.exp(), within.high.exp()]),
        })
    }
}

/// Of an arm's rounds.
#[derive(Clone, Copy, Default)]
struct Centres {
    p50: Option<Centre>,
    cpu: Option<Centre>,
}

impl Centres {
    fn doubt(&self) -> Doubt {
        let ends = |centre: Option<Centre>| centre.and_then(|c| c.ends);
        let n_rounds = self.p50.into_iter().chain(self.cpu).map(|c| c.n_rounds).min().unwrap_or(0);
        Doubt { n_rounds, p50_ns: ends(self.p50), cpu_ns: ends(self.cpu) }
    }
}

/// Time out of idle states per request; none where not every CPU has counters, or they claim more than there was.
fn busy_ns(idle: &[IdleDelta], n_cpus: usize, seconds: f64, per_s: f64) -> Option<f64> {
    let idle_ns: f64 = idle.iter().flat_map(|d| &d.states).map(|s| s.time_ns as f64).sum();
    let busy_ns = n_cpus as f64 * seconds * 1e9 - idle_ns;
    (idle.len() == n_cpus && idle_ns > 0.0 && busy_ns > 0.0 && per_s > 0.0).then(|| busy_ns / (per_s * seconds))
}

/// The rounds of one arm, and where in a block each level's idle counters lie.
struct Rounds<'a> {
    experiment: &'a ExperimentRun,
    arm: &'a str,
    /// Kind of load, level, the first of its CPUs in a block, how many.
    places: Vec<(Kind, usize, usize, usize)>,
}

impl<'a> Rounds<'a> {
    fn of(experiment: &'a ExperimentRun, arm: &'a Arm, loads: &[LoadRun]) -> Rounds<'a> {
        let (mut places, mut next) = (Vec::new(), 0);
        for load in loads.iter().filter(|load| is_of(load, arm)) {
            for (at, level) in load.levels.iter().enumerate() {
                places.push((load.kind, at, next, level.idle.len()));
                next += level.idle.len();
            }
        }
        // Blocks that were put together otherwise say nothing level by level.
        if experiment.blocks.iter().any(|b| b.arm == arm.id && b.rejected.is_none() && b.idle.len() != next) {
            places.clear();
        }
        Rounds { experiment, arm: &arm.id, places }
    }

    fn place(&self, load: &LoadRun, at: usize) -> Option<(usize, usize)> {
        let found = self.places.iter().find(|(kind, level, ..)| *kind == load.kind && *level == at)?;
        Some((found.2, found.3))
    }

    fn knows(&self, load: &LoadRun, at: usize) -> bool {
        self.place(load, at).is_some()
    }

    /// Over the rounds that count.
    fn centres(&self, load: &LoadRun, at: usize, level: &Level) -> Centres {
        let Some((first, n)) = self.place(load, at) else { return Centres::default() };
        let metric = |what: &str| {
            let id = format!("{}.{what}", level_id(load.kind, &level.ask)?);
            self.experiment.metrics.iter().position(|m| m.id == id)
        };
        let (p50, rate) = (metric("p50"), metric("rate"));
        let seconds = level.window.length_ns() as f64 / 1e9;
        let blocks = || self.experiment.blocks.iter().filter(|b| b.arm == self.arm && b.rejected.is_none());
        let value = |b: &Block, i: Option<usize>| i.and_then(|i| b.values.get(i).copied().flatten());
        let cpu = blocks()
            .filter_map(|b| busy_ns(b.idle.get(first..first + n)?, level.cpus.len().max(1), seconds, value(b, rate)?));
        Centres { p50: Centre::of(blocks().filter_map(|b| value(b, p50))), cpu: Centre::of(cpu) }
    }
}

/// A level's name in the ids of metrics: `steps.50`, `shop.200`.
fn level_id(kind: Kind, ask: &Ask) -> Option<String> {
    let number = match ask {
        Ask::Share(share) => format!("{:.0}", share * 100.0),
        Ask::Clients(n) => n.to_string(),
        _ => return None,
    };
    Some(format!("{}.{number}", kind.word()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_come_to_their_middle_and_six_are_the_fewest_that_have_an_interval() {
        let of = |rounds: &[f64]| Centre::of(rounds.iter().copied());
        let six = of(&[100.0, 110.0, 121.0, 133.1, 146.41, 161.051]).unwrap();
        assert!((six.value / (121.0f64 * 133.1).sqrt() - 1.0).abs() < 1e-9, "{}", six.value);
        let [low, high] = six.ends.unwrap();
        assert!((low - 100.0).abs() < 1e-9 && (high - 161.051).abs() < 1e-9);
        assert_eq!(of(&[100.0, 110.0, 121.0, 133.1, 146.41]).unwrap().ends, None);
        // More rounds, less doubt; one that stalled moves nothing far.
        let twelve = of(&[100.0, 101.0, 102.0, 103.0, 104.0, 105.0, 106.0, 107.0, 108.0, 109.0, 110.0, 9e6]).unwrap();
        assert!((104.0..108.0).contains(&twelve.value) && twelve.ends.unwrap()[0] > 101.0, "{}", twelve.value);
        assert!(of(&[]).is_none() && of(&[0.0]).is_none());
    }
}
