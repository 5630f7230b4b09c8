//! Core and package states together: which core states let the package follow, and what keeps this one from its deepest.
//!
//! Case K3 asks for it. A package rests at most as deeply as the shallowest of its cores, so one CPU with a limit keeps the
//! cache and the memory controller of its socket awake. Told apart are what surely keeps it (the firmware's limit, a CPU
//! that may not go deep) and what may (demotion, a link that never sleeps, a tick that never stops). What the package
//! really reached is in the hardware's residency counters, which `watch` reads where it is asked to. In a guest nothing is said: the
//! states there are the host's business. Sources: [`generations`].

pub mod generations;

use crate::cpuset::CpuSet;
use crate::enterable::{self, Barrier, Cause, Enterable};
use crate::facts::Snapshot;
use crate::facts::idle::IdleState;
use crate::facts::idle::absence::NoStates;
use crate::facts::msr::package_limit::PackageLimit;
use crate::sheet::{Cell, Sheet};
use generations::Generation;
use serde::Serialize;
use wakewatt_words::{say, word};

/// What core states and packages of a host come to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PackageStates {
    /// The generation of the processor, where it is known.
    pub generation: Option<String>,
    /// The idle states of this machine with the package state each allows, shallowest first.
    pub pairings: Vec<Pairing>,
    /// One per package.
    pub packages: Vec<Package>,
    /// What cannot be told, and why.
    pub cannot_tell: Vec<String>,
}

/// An idle state of this machine and what it allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pairing {
    /// As Linux calls it here.
    pub state: String,
    /// The hardware's name of the core state.
    pub core_state: String,
    /// The deepest package state while every core is at least here.
    pub package_state: String,
}

/// One package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Package {
    /// Number of the package.
    pub id: u32,
    /// The deepest state its generation has.
    pub deepest: String,
    /// The deepest state that firmware allows; none where the register was not read, or its meaning is not known.
    pub limit: Option<String>,
    /// The deepest state that idle states, latency limits and `limit` allow now, before devices and timers have their say;
    /// none where it cannot be told.
    pub allowed: Option<String>,
    /// What keeps it from its deepest.
    pub holds: Vec<Hold>,
}

/// Something that keeps a package shallow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hold {
    /// Surely, or perhaps.
    pub certainty: Certainty,
    /// Which setting it is.
    #[serde(skip)]
    pub by: KeptBy,
    /// What it is, one sentence part.
    pub what: String,
    /// Where that is seen: a path or a register.
    pub path: String,
}

/// What kind of setting keeps a package shallow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum KeptBy {
    /// The limit in MSR 0xE2.
    Limit,
    /// CPUs that may not enter a state that lets the package follow.
    Idle,
    /// The rest: no idle driver, a table without such a state, links, the tick.
    #[default]
    Other,
}

/// How sure a hold is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// While this is so, the package goes no deeper.
    Keeps,
    /// It does so on some platforms or at times.
    May,
}

/// Reads them off the facts; wants the topics idle, topology, qos, msr, boot, network and storage.
pub fn read(facts: &Snapshot) -> PackageStates {
    let mut all = PackageStates::default();
    if facts.topology.is_guest() == Some(true) || facts.virt.is_guest() == Some(true) {
        all.cannot_tell.push(word!("a guest: the package's states are its host's business").into());
        return all;
    }
    let Some(processor) = facts.topology.processor() else {
        all.cannot_tell.push(word!("the processor is not told, or the CPUs have several").into());
        return all;
    };
    let Some(generation) = generations::of(processor) else {
        all.cannot_tell.push(say!("no list of core and package states for {processor}"));
        return all;
    };
    all.generation = Some(generation.name.into());
    let Some(deepest) = generation.deepest() else {
        all.cannot_tell
            .push(say!("which core states let the package follow is not known here for {}", generation.name));
        return all;
    };
    all.pairings = pairings(facts, generation);
    let limits = &facts.msr.package_limit;
    let is_coded = |limit: &PackageLimit| matches!(limit, PackageLimit::Code(_));
    if limits.is_unknown() || limits.known().any(|(_, limit)| is_coded(limit)) {
        all.cannot_tell.push(match facts.msr.value("pkg_cst_config").is_some_and(|v| !v.is_unknown()) {
            true => say!("what the firmware's limit (MSR 0xE2) means is not known for {}", generation.name),
            false => {
                word!("the firmware's limit (MSR 0xE2) was not read; wakewatt inspect idle msr, as root, reads it")
                    .into()
            }
        });
    }
    for (id, cpus) in facts.topology.packages() {
        // Of several cores the shallowest holds the package.
        let own = limits.known().filter(|(on, limit)| !is_coded(limit) && !on.and(&cpus).is_empty());
        let limit = own.map(|(_, limit)| limit.to_string()).min_by_key(|name| rank(name));
        all.packages.push(package(facts, &all.pairings, id, &cpus, deepest, limit.as_deref()));
    }
    all
}

fn pairings(facts: &Snapshot, generation: &Generation) -> Vec<Pairing> {
    let of = |state: &IdleState| {
        let allows = state.description.known().find_map(|(_, text)| generation.pairing(text))?;
        Some(Pairing { state: state.label(), core_state: allows.core.into(), package_state: allows.package.into() })
    };
    facts.idle.states.iter().filter_map(of).collect()
}

fn package(
    facts: &Snapshot,
    pairings: &[Pairing],
    id: u32,
    cpus: &CpuSet,
    deepest: &str,
    limit: Option<&str>,
) -> Package {
    let mut package =
        Package { id, deepest: deepest.into(), limit: limit.map(str::to_string), allowed: None, holds: Vec::new() };
    let mut allowed = Some(deepest.to_string());
    if let Some(limit) = limit {
        if rank(limit) < rank(deepest) {
            package.keeps(KeptBy::Limit, say!("the firmware's limit is {limit}"), "msr 0xe2");
            allowed = Some(limit.into());
        }
    }
    let here = |set: &CpuSet| set.and(cpus);
    if facts.idle.driver.get().is_some_and(|d| d == "none") || !here(&facts.idle.cpus_without_states).is_empty() {
        let path = "/sys/devices/system/cpu/cpuidle/current_driver";
        match facts.idle.no_states_because() {
            Some(NoStates::NotRecorded) => {
                package.may(word!("CPUs have no idle driver, or the recording left it out").into(), path)
            }
            _ => package.keeps(KeptBy::Other, word!("CPUs have no idle driver").into(), path),
        }
        allowed = None;
    } else if facts.idle.states.is_empty() {
        allowed = None;
    }
    if !facts.idle.states.is_empty() && pairings.iter().all(|p| rank(&p.package_state) < rank(deepest)) {
        package.keeps(
            KeptBy::Other,
            say!("no idle state that is registered lets it go to {deepest}"),
            "/sys/devices/system/cpu/cpu*/cpuidle/state*/desc",
        );
    }
    for group in enterable::of(facts) {
        let on = here(&group.cpus);
        if on.is_empty() || (group.states.is_empty() && group.spins().is_none()) {
            continue;
        }
        let (name, lets) = match (group.spins(), group.deepest()) {
            (Some(_), _) => (word!("spinning"), "PC0"),
            (None, Some(row)) => match pairings.iter().find(|p| p.state == row.name) {
                Some(pairing) => (row.name.as_str(), pairing.package_state.as_str()),
                // A state that is not in the list: nothing can be said about these CPUs.
                None => {
                    allowed = None;
                    continue;
                }
            },
            (None, None) => continue,
        };
        let best = pairings.iter().map(|p| rank(&p.package_state)).max().unwrap_or(0);
        if rank(lets) < best {
            let (why, path) = kept_by(&group);
            let what = say!("{on} may go no deeper than {name} ({why})", on = on.named());
            package.keeps(KeptBy::Idle, what, path);
        }
        if allowed.as_deref().is_some_and(|a| rank(lets) < rank(a)) {
            allowed = Some(lets.into());
        }
    }
    package.allowed = allowed;
    package.perhaps(facts, cpus);
    package
}

/// What keeps CPUs from their deepest states, and where that is seen.
fn kept_by(group: &Enterable) -> (String, &'static str) {
    let is = |is: fn(&Barrier) -> bool| group.states.iter().any(|state| state.barriers.iter().any(is));
    if let Some(Cause::BootArgument(_)) = group.spins() {
        return (group.spins().map(Cause::words).unwrap_or_default(), "/proc/cmdline");
    }
    if is(|b| matches!(b, Barrier::GlobalLimit(_) | Barrier::OwnLimit(_))) {
        let path = "/sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us, /dev/cpu_dma_latency";
        return (say!("latency limit {}", group.limit), path);
    }
    (word!("deeper ones are disabled").to_string(), "/sys/devices/system/cpu/cpu*/cpuidle/state*/disable")
}

impl Package {
    fn keeps(&mut self, by: KeptBy, what: String, path: &str) {
        self.holds.push(Hold { certainty: Certainty::Keeps, by, what, path: path.into() });
    }
    fn may(&mut self, what: String, path: &str) {
        self.holds.push(Hold { certainty: Certainty::May, by: KeptBy::Other, what, path: path.into() });
    }

    /// What keeps a package shallow on some platforms, or at times.
    fn perhaps(&mut self, facts: &Snapshot, cpus: &CpuSet) {
        let all = enterable::of(facts).into_iter().filter(|group| !group.cpus.and(cpus).is_empty());
        let all: Vec<Enterable> = all.collect();
        if !enterable::has_deep_state(&all) {
            // Nothing deep is asked for, so nothing is demoted.
        } else if facts.idle.is_c1_demotion_on.get() == Some(&true) {
            self.may(
                word!("C1 demotion: a deep request may become C1").into(),
                "/sys/devices/system/cpu/cpuidle/intel_c1_demotion",
            );
        } else if facts.msr.is_set("pkg_cst_config", "c1_demotion") == Some(true) {
            self.may(word!("C1 demotion: a deep request may become C1").into(), "msr 0xe2, bit 26");
        }
        if facts.boot.is_nohz_off() {
            self.may(word!("nohz=off: the tick ends every sleep").into(), "/proc/cmdline");
        }
        let links = facts
            .network
            .interfaces
            .iter()
            .map(|n| (&n.name, &n.pcie))
            .chain(facts.storage.nvme.iter().map(|d| (&d.name, &d.pcie)));
        let awake: Vec<&str> = links
            .filter(|(_, link)| link.states_on().is_some_and(|on| on.is_empty()))
            .map(|(name, _)| name.as_str())
            .collect();
        if !awake.is_empty() {
            let what = say!("PCI Express links that never sleep: {}", awake.join(", "));
            self.may(what, "/sys/class/*/*/device/link/l1_aspm");
        }
    }
}

/// Depth of a package state by its name; "unlimited" is deeper than all.
pub fn rank(name: &str) -> u32 {
    let number =
        |rest: &str| rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|n| n.parse().ok()).unwrap_or(0u32);
    match (name.strip_prefix("less than PC"), name.strip_prefix("PC")) {
        (Some(rest), _) => number(rest).saturating_sub(1),
        // With or without retention, PC6 is PC6 to whoever asks whether it is reached.
        (None, Some(rest)) => number(rest),
        (None, None) => u32::MAX,
    }
}

impl PackageStates {
    /// As rows, for `inspect idle`.
    pub fn sheet(&self) -> Sheet {
        let mut sheet = Sheet::default();
        if let Some(generation) = &self.generation {
            sheet.say("idle.together.generation", word!("generation"), Cell::text(generation));
        }
        let words: Vec<String> =
            self.pairings.iter().map(|p| format!("{} -> {}", p.named(), p.package_state)).collect();
        if !words.is_empty() {
            sheet.say("idle.together.pairings", word!("core state -> package state"), Cell::Text(words.join(", ")));
        }
        for package in &self.packages {
            let id = format!("idle.together.package{}", package.id);
            let label = say!("package {}", package.id);
            let allowed = match &package.allowed {
                Some(allowed) if package.limit.is_none() => {
                    say!("idle settings allow {allowed} of {}; the firmware's limit is not known", package.deepest)
                }
                Some(allowed) if *allowed == package.deepest => say!("settings allow {allowed}, its deepest"),
                Some(allowed) => say!("settings allow {allowed} of {}", package.deepest),
                None => say!("cannot tell how deep settings let it go, up to {}", package.deepest),
            };
            sheet.say(&id, &label, Cell::Text(allowed));
            for hold in &package.holds {
                let word = if hold.certainty == Certainty::Keeps { word!("kept by") } else { word!("perhaps kept by") };
                sheet.say(format!("{id}.hold"), format!("{label} {word}"), Cell::text(&hold.what));
            }
        }
        for why in &self.cannot_tell {
            sheet.say("idle.together.cannot_tell", word!("cannot tell"), Cell::text(why));
        }
        sheet
    }
}

impl Pairing {
    /// "C6", or "C3_ACPI (C10)" where the driver's name is another.
    pub fn named(&self) -> String {
        if self.state == self.core_state { self.state.clone() } else { format!("{} ({})", self.state, self.core_state) }
    }
}

#[cfg(test)]
mod tests;
