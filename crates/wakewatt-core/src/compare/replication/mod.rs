//! The same experiment, run again and again: what its sessions, boots and hosts say together.
//!
//! One run is one session: its interval is over rounds and covers that run. Whether the machine does the same tomorrow only
//! another session tells, so here the session is the unit (the host, where there are several), and its rounds say how well
//! it is known ([`crate::stats::sessions`]). That interval alone may say "this machine". Beside it stands the one that joins
//! all rounds as if they were of one long run, which may be looked at at any time ([`crate::stats::any_time`]): it covers these
//! sessions, and is narrower where they agree.
//!
//! Runs are joined where they held the same plan with the same arms and the same primary metric; one that did not refuses the
//! whole, because a mean over different questions answers none. Run files hold no host names: runs whose processor and memory
//! are alike are taken for one machine, unless the caller says otherwise.

mod joined;
mod refusal;

use joined::Placed;
pub use joined::{JoinedEffect, SessionEffect};
pub use refusal::{LeftOut, NotReplicated, WhyLeftOut};

use crate::evidence::Evidence;
use crate::samples::Samples;
use crate::samples::experiment::ExperimentRun;
use crate::stats::sessions;
use serde::Serialize;

/// Boots are told apart by when they were, to this many seconds: saving a run takes time, and so does a boot.
const SAME_BOOT_S: u64 = 300;

/// One run, as it is given.
pub struct Session<'a> {
    /// Name of its run file.
    pub name: String,
    /// The host, where the caller names it.
    pub host: Option<String>,
    /// When the file was written, in seconds since 1970.
    pub made_at_s: Option<u64>,
    /// What was measured.
    pub evidence: &'a Evidence,
}

/// One run that takes part.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Part {
    /// Name of the run file.
    pub name: String,
    /// Number of its host among those given, from 1.
    pub host: usize,
    /// Number of the boot on that host, from 1; none where the file does not say when it was made.
    pub boot: Option<usize>,
}

/// What weakens a joined interval, or says what to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Caveat {
    /// Two units: the interval is 12.7 times the error, and still rests on one difference.
    OnlyTwo,
    /// All sessions are of one boot, so what a boot changes is not in the interval.
    OneBoot,
    /// Sessions follow each other within ten minutes, or nobody knows when they were: taken to resemble each other, which makes
    /// the interval wide.
    CloseTogether,
    /// Hosts are told apart by processor and memory, so two of a kind would pass for one.
    HostsByLooks,
    /// More than half of the scatter is between sessions in some metric: more sessions narrow the interval, longer ones do not.
    BetweenDominates,
}

/// The joined verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Replication {
    /// Name of the plan; none of an experiment without one.
    pub plan: Option<String>,
    /// Title of the baseline.
    pub baseline: String,
    /// The runs that take part, in the order given.
    pub sessions: Vec<Part>,
    /// How many boots they are of; none where that is not known.
    pub n_boots: Option<usize>,
    /// How many hosts they are of.
    pub n_hosts: usize,
    /// Runs that do not take part.
    pub left_out: Vec<LeftOut>,
    /// Every effect, primary metric first.
    pub effects: Vec<JoinedEffect>,
    /// What weakens them.
    pub caveats: Vec<Caveat>,
}

/// Which question an experiment asks: what must be equal for two of them to be one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    plan: Option<String>,
    arms: Vec<String>,
    primary: String,
}

/// Joins runs of the same experiment. The first run says which; where it holds several, the first that another has too.
pub fn replicate(sessions: &[Session<'_>]) -> Result<Replication, NotReplicated> {
    let all: Vec<(&Session<'_>, Vec<(Key, &ExperimentRun)>)> =
        sessions.iter().map(|s| (s, experiments(&s.evidence.samples))).collect();
    let mut left_out: Vec<LeftOut> = Vec::new();
    let mut leave = |name: &str, why| left_out.push(LeftOut { name: name.into(), why });
    let with: Vec<_> = all
        .into_iter()
        .filter(|(session, held)| {
            if held.is_empty() {
                leave(&session.name, WhyLeftOut::NoExperiment);
            }
            !held.is_empty()
        })
        .collect();
    let Some(((first, held), others)) = with.split_first() else { return Err(NotReplicated::NoExperiment) };
    let has = |held: &[(Key, &ExperimentRun)], key: &Key| held.iter().any(|(other, _)| other == key);
    let shared = held.iter().map(|(key, _)| key).find(|key| others.iter().any(|(_, held)| has(held, key)));
    let key = shared.or(held.first().map(|(key, _)| key)).ok_or(NotReplicated::NoExperiment)?;
    if let Some((session, held)) = others.iter().find(|(_, held)| !has(held, key)) {
        return Err(refusal::differs(&first.name, key, &session.name, held.first().map(|(key, _)| key)));
    }
    let mut taken: Vec<(&Session<'_>, &ExperimentRun)> = Vec::new();
    for (session, held) in &with {
        let Some((_, run)) = held.iter().find(|(other, _)| other == key) else { continue };
        if let Some((same, _)) = taken.iter().find(|(_, other)| other.blocks == run.blocks) {
            leave(&session.name, WhyLeftOut::SameAs { run: same.name.clone() });
        } else if !joined::has_rounds(run) {
            let rejected = run.blocks.iter().find_map(|b| b.rejected.clone());
            leave(&session.name, WhyLeftOut::NoRounds { rejected });
        } else {
            taken.push((session, run));
        }
    }
    if taken.len() < 2 {
        return Err(NotReplicated::OneSession { left_out });
    }
    Ok(joined(key, &taken, left_out))
}

fn joined(key: &Key, taken: &[(&Session<'_>, &ExperimentRun)], left_out: Vec<LeftOut>) -> Replication {
    let parts = parts(taken);
    let n_hosts = parts.iter().map(|p| p.host).max().unwrap_or(1);
    let mut boots: Vec<(usize, Option<usize>)> = parts.iter().map(|p| (p.host, p.boot)).collect();
    boots.sort_unstable();
    boots.dedup();
    let n_boots = boots.iter().all(|(_, boot)| boot.is_some()).then_some(boots.len());
    let at_ns = |session: &Session<'_>| session.made_at_s.map(|s| s.saturating_mul(1_000_000_000));
    let runs: Vec<Placed<'_>> = parts
        .iter()
        .zip(taken)
        .map(|(part, (session, run))| Placed { host: part.host, name: &session.name, at_ns: at_ns(session), run })
        .collect();
    let effects = joined::effects(&runs);
    let n_units = if n_hosts > 1 { n_hosts } else { parts.len() };
    let mut caveats = Vec::new();
    let mut add = |is_so: bool, caveat| caveats.extend(is_so.then_some(caveat));
    add(n_units == 2, Caveat::OnlyTwo);
    add(n_boots == Some(1), Caveat::OneBoot);
    let mut times: Vec<Option<u64>> = runs.iter().map(|run| run.at_ns).collect();
    times.sort_unstable();
    let is_close = |pair: &[Option<u64>]| pair[0].zip(pair[1]).is_none_or(|(a, b)| b - a < sessions::APART_NS);
    add(n_hosts == 1 && times.windows(2).any(is_close), Caveat::CloseTogether);
    add(taken.iter().any(|(session, _)| session.host.is_none()), Caveat::HostsByLooks);
    add(effects.iter().any(JoinedEffect::is_between_dominant), Caveat::BetweenDominates);
    let baseline = taken.first().and_then(|(_, run)| run.arms.first()).map_or(String::new(), |arm| arm.title.clone());
    Replication { plan: key.plan.clone(), baseline, sessions: parts, n_boots, n_hosts, left_out, effects, caveats }
}

/// Every experiment of a run, with its question.
fn experiments(samples: &Samples) -> Vec<(Key, &ExperimentRun)> {
    let plan = samples.conclusions.as_ref().map(|c| c.name.clone());
    let key = |run: &ExperimentRun, plan: Option<String>| Key {
        plan,
        arms: run.arms.iter().map(|arm| arm.id.clone()).collect(),
        primary: run.metrics.first().map_or(String::new(), |m| m.id.clone()),
    };
    let planned = samples.experiment.iter().map(|run| (key(run, plan.clone()), run));
    let others = samples.disk_experiment.iter().chain(&samples.experiments).map(|run| (key(run, None), run));
    planned.chain(others).collect()
}

/// Which host and which boot each session is of.
fn parts(taken: &[(&Session<'_>, &ExperimentRun)]) -> Vec<Part> {
    let looks = |s: &Session<'_>| {
        let facts = &s.evidence.facts;
        // Whole GiB: another kernel keeps some more for itself.
        let memory: u64 = facts.memory.nodes.iter().filter_map(|node| node.total_bytes.get()).sum();
        let gib = memory.div_ceil(1 << 30);
        s.host.clone().unwrap_or_else(|| {
            format!("{:?} {} {gib}", facts.topology.processor().map(ToString::to_string), facts.cpus.running().count())
        })
    };
    let mut hosts: Vec<String> = Vec::new();
    let mut boots: Vec<Vec<u64>> = Vec::new();
    let one = |(session, run): &(&Session<'_>, &ExperimentRun)| {
        let name = looks(session);
        let host = hosts.iter().position(|known| *known == name).unwrap_or_else(|| {
            hosts.push(name);
            boots.push(Vec::new());
            hosts.len() - 1
        });
        // The monotonic clock counts from the boot.
        let up_s = run.blocks.iter().map(|b| b.window.end_at_ns).max().unwrap_or(0) / 1_000_000_000;
        let boot = session.made_at_s.and_then(|made_at_s| made_at_s.checked_sub(up_s)).map(|booted_at_s| {
            let known = &mut boots[host];
            known.iter().position(|at| at.abs_diff(booted_at_s) <= SAME_BOOT_S).unwrap_or_else(|| {
                known.push(booted_at_s);
                known.len() - 1
            }) + 1
        });
        Part { name: session.name.clone(), host: host + 1, boot }
    };
    taken.iter().map(one).collect()
}

#[cfg(test)]
mod tests;
