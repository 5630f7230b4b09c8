//! What a plan is in the model: which idle states may be chosen, within which latency, by whom, and how long a guest spins before.
//!
//! A fitted model knows nothing else of a machine, so a step that turns any other knob, or these on some CPUs only, is a step whose effect it
//! cannot tell. Steps that find everything as they want it change nothing and are passed over.

use std::collections::BTreeSet;
use std::path::PathBuf;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::units::LatencyLimit;
use wakewatt_sim::fit::MODELLED_GOVERNORS;
use wakewatt_tune::planning::{PlannedStep, TunePlan};

/// How CPUs sleep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asleep {
    off: BTreeSet<String>,
    for_all: LatencyLimit,
    per_cpu: LatencyLimit,
    governor: Option<String>,
    /// `guest_halt_poll_ns`, where the host has it.
    halt_poll_ns: Option<u64>,
}

/// How long haltpoll spins at most, as a knob.
const HALT_POLL: &str = "idle.haltpoll.guest_halt_poll_ns";

impl Asleep {
    /// As it was when these were read.
    pub(super) fn found(facts: &Snapshot) -> Result<Asleep, String> {
        let tables = facts.idle.tables();
        let [(_, rows)] = &tables[..] else {
            return Err(format!("its CPUs have {} tables of idle states, and a model has one", tables.len()));
        };
        let off = rows.iter().filter(|row| row.is_enabled == Some(false)).map(|row| row.name.clone()).collect();
        let limits: BTreeSet<LatencyLimit> = facts.qos.per_cpu.known().map(|(_, limit)| *limit).collect();
        if limits.len() > 1 {
            return Err("its CPUs had latency limits that differ, and a model has one".into());
        }
        Ok(Asleep {
            off,
            for_all: facts.qos.global.get().copied().unwrap_or(LatencyLimit::None),
            per_cpu: limits.first().copied().unwrap_or(LatencyLimit::None),
            halt_poll_ns: facts.idle.guest_halt_poll_ns.get().copied(),
            governor: facts.idle.governor.get().cloned(),
        })
    }

    /// What of it does something: only haltpoll spins by that number.
    pub(super) fn in_force(&self) -> Asleep {
        Asleep { halt_poll_ns: self.halt_poll_ns.filter(|_| self.is_haltpoll()), ..self.clone() }
    }

    fn is_haltpoll(&self) -> bool {
        self.governor.as_deref() == Some("haltpoll")
    }

    /// May a CPU spin before it halts, as far as is known?
    pub(super) fn spins(&self) -> bool {
        self.is_haltpoll() && self.halt_poll_ns != Some(0)
    }

    /// In the model of the runs. A governor, or a time to spin, that the host does not tell is theirs; another one than theirs has to be modelled.
    pub(super) fn in_model_of(mut self, runs: &Asleep) -> Result<Asleep, String> {
        if let Some(name) = self.governor.as_ref().filter(|name| Some(*name) != runs.governor.as_ref()) {
            if !MODELLED_GOVERNORS.contains(&name.as_str()) {
                return Err(unmodelled(name));
            }
        }
        self.governor = self.governor.or_else(|| runs.governor.clone());
        self.halt_poll_ns = self.halt_poll_ns.or(runs.halt_poll_ns);
        Ok(self)
    }

    /// After a plan; or why nobody can tell.
    pub(super) fn after(&self, plan: &TunePlan, online: &CpuSet) -> Result<Asleep, String> {
        if let Some(argument) = plan.boot.as_ref().and_then(|boot| boot.arguments.first()) {
            return Err(format!("{argument} acts at the next boot, and what a boot changes is not in the model"));
        }
        if let Some(why) = plan.refused.first().or(plan.no_boot_because.as_ref()) {
            return Err(format!("a part of the plan is not possible here: {why}"));
        }
        let mut after = self.clone();
        plan.steps.iter().try_for_each(|step| after.take(step, online))?;
        Ok(after)
    }

    fn take(&mut self, planned: &PlannedStep, online: &CpuSet) -> Result<(), String> {
        let (step, name) = (&planned.step, &planned.step.request.name);
        if let Some(later) = &step.later {
            return Err(format!("{name} is not there yet: {later}"));
        }
        let changes: Vec<_> = step.changes.iter().filter(|change| !change.is_so()).collect();
        let Some(first) = changes.first() else { return Ok(()) };
        let is_known = matches!(step.knob.as_str(), "qos.global" | "qos.cpu" | "idle.state" | "idle.governor");
        if !is_known && name != HALT_POLL {
            return Err(format!(
                "{name} is outside what the model knows; that is idle states, a latency limit, the idle governor and how long haltpoll spins"
            ));
        }
        // Where some CPUs are as wanted already, all are so after it.
        let reached = step.changes.iter().fold(CpuSet::new(), |all, change| all.union(&change.cpus));
        let is_everywhere =
            matches!(step.knob.as_str(), "idle.governor" | "idle.haltpoll") || online.minus(&reached).is_empty();
        if !is_everywhere || step.changes.iter().any(|change| change.to != first.to) {
            return Err(format!("{name} would be so on CPUs {reached} only, and in the model all CPUs are alike"));
        }
        let word = step.request.to.first().map_or(first.to_shown.as_str(), String::as_str);
        let limit = || LatencyLimit::parse(word).map_err(|why| format!("{name}: {why}"));
        match step.knob.as_str() {
            "qos.global" => {
                // What is before is what we hold; a smaller limit in force is another holder's, and stays.
                let ours = first.before.as_deref().and_then(|text| LatencyLimit::parse(text).ok());
                let is_others = ours.is_some_and(|ours| ours > self.for_all);
                self.for_all = limit()?.min(if is_others { self.for_all } else { LatencyLimit::None });
            }
            "qos.cpu" => self.per_cpu = limit()?,
            "idle.haltpoll" => self.halt_poll_ns = Some(first.to.parse().map_err(|why| format!("{name}: {why}"))?),
            "idle.governor" if MODELLED_GOVERNORS.contains(&first.to.as_str()) => {
                self.governor = Some(first.to.clone())
            }
            "idle.governor" => return Err(unmodelled(&first.to)),
            _ => {
                let state = name.trim_start_matches("idle.state.").to_string();
                // The kernel's word: 1 disables.
                let _ = if first.to == "1" { self.off.insert(state) } else { self.off.remove(&state) };
            }
        }
        Ok(())
    }

    /// As fields of a server file; the governor, and how long it spins, where that is not so in the runs, which the model has already.
    pub(super) fn fields(&self, runs: &Asleep) -> Vec<String> {
        let limit = match self.for_all.min(self.per_cpu) {
            LatencyLimit::None => None,
            LatencyLimit::Poll => Some("machine.idle.max_latency=0us".into()),
            LatencyLimit::AtMostNs(ns) => Some(format!("machine.idle.max_latency={ns}ns")),
        };
        let names: Vec<String> = self.off.iter().map(|name| format!("{name:?}")).collect();
        let off = (!names.is_empty()).then(|| format!("machine.idle.disable=[{}]", names.join(", ")));
        let other = self.governor.as_ref().filter(|name| Some(*name) != runs.governor.as_ref());
        let governor = other.map(|name| format!("machine.idle.governor={name}"));
        let other = self.in_force().halt_poll_ns.filter(|ns| Some(*ns) != runs.halt_poll_ns);
        let halt_poll = other.map(|ns| format!("machine.idle.halt_poll={ns}ns"));
        limit.into_iter().chain(off).chain(governor).chain(halt_poll).collect()
    }
}

fn unmodelled(governor: &str) -> String {
    format!("idle governor {governor} is not modelled; {} are", MODELLED_GOVERNORS.join(", "))
}

/// How the CPUs slept in all runs; or why these say nothing of a plan made here, by the run's name.
pub(super) fn of_runs(files: &[PathBuf], runs: &[Evidence], here: &Snapshot) -> Result<Asleep, String> {
    let mut first: Option<Asleep> = None;
    for (file, run) in files.iter().zip(runs) {
        let named = |why: String| format!("{}: {why}", file.display());
        if let Some(why) = other_machine(&run.facts, here) {
            return Err(named(why));
        }
        let found = Asleep::found(&run.facts).map_err(named)?;
        if first.as_ref().is_some_and(|first| first.in_force() != found.in_force()) {
            let why = "idle states, latency limits, the idle governor or how long it spins were not as in the first run, and a model has one of each";
            return Err(named(why.into()));
        }
        first = Some(found);
    }
    first.ok_or_else(|| "there is no run".into())
}

/// Why what was measured there says nothing of a plan made here; none where both sleep alike.
fn other_machine(run: &Snapshot, here: &Snapshot) -> Option<String> {
    let n_cpus = |facts: &Snapshot| facts.cpus.running().count();
    if n_cpus(run) != n_cpus(here) {
        return Some(format!(
            "the run is of another machine: it had {} CPUs, the plan's has {}",
            n_cpus(run),
            n_cpus(here)
        ));
    }
    let claims = |facts: &Snapshot| {
        let row = |r: &wakewatt_core::facts::idle::TableRow| (r.name.clone(), r.exit_latency_ns, r.target_residency_ns);
        facts.idle.tables().first().map(|(_, rows)| rows.iter().map(row).collect::<Vec<_>>()).unwrap_or_default()
    };
    let named = |facts: &Snapshot| {
        let names: Vec<String> = claims(facts).into_iter().map(|(name, ..)| name).collect();
        if names.is_empty() { "none".into() } else { names.join(", ") }
    };
    (claims(run) != claims(here)).then(|| {
        format!(
            "the run is of another machine: its idle states are {}, those of the plan's are {}{}",
            named(run),
            named(here),
            if named(run) == named(here) { ", with other claims" } else { "" }
        )
    })
}
