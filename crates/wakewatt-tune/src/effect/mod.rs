//! What each step of a plan changes: something, or nothing and why.
//!
//! Steps are taken in their order on a machine in memory ([`Then`]), and what CPUs do is asked before and after each
//! (`Outlook`). Where a step leaves that as it was, it has no effect and no price; where a value is there already and
//! another setting decides, that is said instead of "already". A setting of which nobody can tell what it does counts as one
//! that changes something.

use crate::knob::Host;
use crate::knobs;
use crate::outlook::{Entered, Outlook};
use crate::price;
use crate::resolve::{Change, Step};
use crate::then::Then;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use wakewatt_core::budget;
use wakewatt_core::clock_window::{By, Window};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::enterable::{self, Barrier, Cause, Enterable, WhenIdle};
use wakewatt_core::facts::msr::package_limit;
use wakewatt_core::facts::power::{PackageLimit, Zone};
use wakewatt_core::facts::uncore::UncoreDomain;
use wakewatt_core::package_states::{self, Package};
use wakewatt_core::units::show_uw;
use wakewatt_words::{say, word};

/// Why a step changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NoEffect {
    /// Every value is so already, and in force.
    AlreadySo,
    /// An earlier step of the plan makes it so.
    ByEarlierStep(String),
    /// A later step of the plan sets it otherwise.
    SetAgain(String),
    /// Something else decides; what.
    Overruled(String),
}

impl NoEffect {
    /// In words, behind "No effect: ".
    pub fn words(&self) -> String {
        match self {
            NoEffect::AlreadySo => word!("it is so already").into(),
            NoEffect::ByEarlierStep(step) => say!("{step} makes it so"),
            NoEffect::SetAgain(step) => say!("{step} sets it otherwise, later in this plan"),
            NoEffect::Overruled(why) => why.clone(),
        }
    }
}

/// What a step comes to.
pub(crate) struct Effect {
    /// Why it changes nothing.
    pub(crate) none: Option<NoEffect>,
    /// What it costs; empty where it changes nothing, or is not resolved yet.
    pub(crate) price: String,
}

impl Effect {
    fn none(why: NoEffect) -> Effect {
        Effect { none: Some(why), price: String::new() }
    }
}

/// Each step's effect, in the order of the steps, and what CPUs do once all are made.
pub(crate) fn of(host: &Host<'_>, steps: &[Step]) -> (Vec<Effect>, Outlook) {
    // Who writes a file last.
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, step) in steps.iter().enumerate() {
        last.extend(step.changes.iter().map(|change| (change.path.as_str(), at)));
    }
    let mut then = Then::now(host.source);
    let mut was = Outlook::of(host.facts.clone());
    let mut makers: Vec<&Step> = Vec::new();
    let mut all = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let text = |change: &Change| {
            if then.is_written(&change.path) { then.text(&change.path) } else { change.before.clone() }
        };
        let moved: Vec<&Change> = step.changes.iter().filter(|c| text(c).as_deref() != Some(c.to.as_str())).collect();
        let overwritten = step.changes.iter().map(|change| last[change.path.as_str()]).min().filter(|last| *last > at);
        if let Some(later) = bias_follows(host, &steps[at..]) {
            all.push(Effect::none(NoEffect::Overruled(say!(
                "it is one register with the energy bias here (no hwp_epp), which {} sets later in this plan",
                later.request
            ))));
            continue;
        }
        let effect = match (step.changes.is_empty(), overwritten, moved.is_empty()) {
            (true, ..) if step.later.is_none() => Effect { none: None, price: String::new() },
            (true, ..) => Effect { none: None, price: in_general(step) },
            (_, Some(later), _) => Effect::none(NoEffect::SetAgain(steps[later].request.to_string())),
            (.., true) => so_already(host, step, &makers, &was),
            _ => {
                moved.iter().for_each(|change| then.write(&change.path, change.before.as_deref(), &change.to));
                let now = topics(&step.knob).map(|topics| Outlook::of(then.facts(topics, &was.facts)));
                let effect = effect(host, step, &moved, &then, &was, now.as_ref().unwrap_or(&was));
                was = now.unwrap_or(was);
                makers.push(step);
                effect
            }
        };
        all.push(effect);
    }
    // What another setting overrules may count once a later step has moved that one.
    let overruled = |effect: &Effect| matches!(effect.none, Some(NoEffect::Overruled(_)));
    for at in (0..steps.len()).filter(|at| overruled(&all[*at])).collect::<Vec<_>>() {
        if let Some(price) = in_the_end(host, steps, at, &was) {
            all[at] = Effect { none: None, price };
        }
    }
    // What the driver or another limit decides is asked of the machine as it is in the end.
    for (step, effect) in steps.iter().zip(&mut all) {
        let moved: Vec<&Change> = step.changes.iter().filter(|change| !change.is_so()).collect();
        if moved.is_empty() || matches!(effect.none, Some(NoEffect::SetAgain(_))) {
            continue;
        }
        match step.knob.as_str() {
            "net.coalescing" => match changed_by_driver(host, &moved, &then) {
                Some(why) => *effect = Effect::none(NoEffect::Overruled(why)),
                None if overruled(effect) => {
                    *effect = Effect { none: None, price: price::of(host, step, &moved, &was, &was) }
                }
                None => {}
            },
            "power.limit" => match of_power_limits(host, &moved, &then) {
                PowerEffect::None(why) => *effect = Effect::none(NoEffect::Overruled(why)),
                PowerEffect::Moved(way) => *effect = Effect { none: None, price: price::of_way(step, way) },
                PowerEffect::Unknown => {}
            },
            _ => {}
        }
    }
    // A register of idle states may have nothing left to decide once the whole plan is made.
    for (step, effect) in steps.iter().zip(&mut all).filter(|(_, effect)| effect.none.is_none()) {
        let moved: Vec<&Change> = step.changes.iter().filter(|change| !change.is_so()).collect();
        let cpus = moved.iter().fold(CpuSet::new(), |set, change| set.union(&change.cpus));
        if let Some(why) = register_without_effect(host, step, &cpus, &moved, &was) {
            *effect = Effect::none(NoEffect::Overruled(why));
        }
    }
    (all, was)
}

/// What a step is worth beside the others, whatever their order: the machine with all steps against that without this one.
/// None where that is the same, or is not known.
fn in_the_end(host: &Host<'_>, steps: &[Step], at: usize, end: &Outlook) -> Option<String> {
    let step = &steps[at];
    let topics = topics(&step.knob)?;
    let mut without = Then::now(host.source);
    for (_, other) in steps.iter().enumerate().filter(|(other, _)| *other != at) {
        other.changes.iter().for_each(|change| without.write(&change.path, change.before.as_deref(), &change.to));
    }
    let without = Outlook::of(without.facts(topics, &host.facts));
    let moved: Vec<&Change> = step.changes.iter().filter(|change| !change.is_so()).collect();
    let is_same = match step.knob.as_str() {
        knob if is_idle(knob) || knob == "idle.governor" => without.entered() == end.entered(),
        "freq.boost" => match (without.spans(), end.spans()) {
            (Some(a), Some(b)) => a == b && boost_out_of_reach(&moved, &without, end).is_some(),
            _ => true,
        },
        knob if is_limit(knob) => without.spans().is_none() || without.spans() == end.spans(),
        // A governor chooses nothing where the limits leave one clock in the end as well.
        "freq.governor" => {
            let cpus = step.changes.iter().fold(CpuSet::new(), |set, change| set.union(&change.cpus));
            one_clock(&cpus, &without, end).is_some() || without.clocks.is_empty()
        }
        _ => true,
    };
    (!is_same && !moved.is_empty()).then(|| price::of(host, step, &moved, &without, end))
}

/// Why a register of idle states decides nothing, as CPUs sleep then.
fn register_without_effect(
    host: &Host<'_>,
    step: &Step,
    cpus: &CpuSet,
    moved: &[&Change],
    now: &Outlook,
) -> Option<String> {
    match step.knob.as_str() {
        "msr.package_limit" => package_awake(host, cpus, moved, now),
        "msr.c1_demotion" | "msr.c1_undemotion" | "idle.c1_demotion" => nothing_demoted(cpus, now),
        "msr.c1e_promotion" => c1_not_entered(cpus, now),
        _ => None,
    }
}

/// The step on the energy bias that overwrites a preference, the first of these steps: without `hwp_epp` both are one register.
fn bias_follows<'a>(host: &Host<'_>, steps: &'a [Step]) -> Option<&'a Step> {
    let (first, rest) = steps.split_first().filter(|(first, _)| first.knob == "freq.epp")?;
    let is_one =
        host.facts.topology.has_flag("hwp_epp") == Some(false) && host.facts.topology.has_flag("hwp") == Some(true);
    let cpus = |step: &Step| step.changes.iter().fold(CpuSet::new(), |set, change| set.union(&change.cpus));
    let own = cpus(first);
    let covers = |step: &&Step| step.knob == "freq.epb" && own.minus(&cpus(step)).is_empty();
    rest.iter().find(covers).filter(|_| is_one && !own.is_empty())
}

/// The facts in which the outlook shows what this knob changes; none where it does not.
fn topics(knob: &str) -> Option<&'static [&'static str]> {
    match knob {
        knob if is_idle(knob) => Some(&["idle", "qos"]),
        "idle.governor" => Some(&["idle"]),
        knob if knob.starts_with("freq.") => Some(&["freq"]),
        _ => None,
    }
}

fn is_idle(knob: &str) -> bool {
    matches!(knob, "qos.global" | "qos.cpu" | "idle.state")
}

fn is_limit(knob: &str) -> bool {
    matches!(knob, "freq.max" | "freq.min" | "freq.perf.max" | "freq.perf.min")
}

/// What a step costs whose files, or their values, are not there yet.
fn in_general(step: &Step) -> String {
    knobs::find(&step.request.name).map_or_else(String::new, |knob| knob.about().price.in_general())
}

/// A step that finds every value as it wants it.
fn so_already(host: &Host<'_>, step: &Step, makers: &[&Step], was: &Outlook) -> Effect {
    let is_moved_by = |maker: &&&Step| {
        let about = knobs::find(&maker.knob).map(|knob| knob.about());
        maker.knob == step.knob || about.is_some_and(|about| about.moves.contains(&step.knob.as_str()))
    };
    let cpus = step.changes.iter().fold(CpuSet::new(), |set, change| set.union(&change.cpus));
    let maker = makers.iter().rev().find(is_moved_by);
    match (overruled(host, &step.knob, was, &cpus), maker) {
        (Some(why), _) => Effect::none(NoEffect::Overruled(why)),
        // A new mode of the driver resets every policy, to what only the driver knows.
        (None, Some(maker)) if maker.knob == "freq.driver" => Effect { none: None, price: in_general(step) },
        (None, Some(maker)) if !step.changes.iter().all(Change::is_so) => {
            Effect::none(NoEffect::ByEarlierStep(maker.request.to_string()))
        }
        _ => Effect::none(NoEffect::AlreadySo),
    }
}

/// What decides in place of a limit of the clock, and on how many of its CPUs.
fn overruled(host: &Host<'_>, knob: &str, now: &Outlook, cpus: &CpuSet) -> Option<String> {
    if !is_limit(knob) {
        return None;
    }
    let is_max = matches!(knob, "freq.max" | "freq.perf.max");
    let extent = |cpus: &CpuSet| host.facts.cpus.extent(cpus);
    let kept = if is_max { now.kept_low.and(cpus) } else { now.kept_high.and(cpus) };
    if !kept.is_empty() {
        return Some(match is_max {
            true => say!("governor powersave keeps the clock at its lower limit on {cpus}", cpus = extent(&kept)),
            false => say!("governor performance keeps the clock at its upper limit on {cpus}", cpus = extent(&kept)),
        });
    }
    let below_nominal = |window: &&Window| now.base_khz(window) > window.min().map(|bound| bound.khz);
    let nominal = now.clocks.iter().filter(below_nominal).fold(CpuSet::new(), |set, window| set.union(&window.cpus));
    let kept = now.kept_nominal.and(&nominal).and(cpus);
    if !is_max && !kept.is_empty() {
        return Some(say!(
            "governor performance keeps the clock at the nominal frequency or above on {cpus}",
            cpus = extent(&kept)
        ));
    }
    let in_force = now.clocks.iter().filter_map(|window| {
        let here = window.cpus.and(cpus);
        let bound = tighter(window, knob).filter(|_| !here.is_empty())?;
        Some(say!("{bound} is in force on {cpus}", cpus = extent(&here)))
    });
    let all: Vec<String> = in_force.collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// The limit of a window that is tighter than the one this knob sets, by more than rounding.
fn tighter(window: &Window, knob: &str) -> Option<wakewatt_core::clock_window::Bound> {
    let is_max = matches!(knob, "freq.max" | "freq.perf.max");
    let is_own = |by: By| match knob {
        "freq.max" | "freq.min" => by == By::Policy,
        _ => matches!(by, By::PerfPct(_)),
    };
    let (all, first) = if is_max { (&window.upper, window.max()?) } else { (&window.lower, window.min()?) };
    let own = all.iter().find(|bound| is_own(bound.by))?;
    // Percentages are rounded up to a level, of at most 100 MHz.
    let rounding = (window.top_khz.unwrap_or(own.khz) / 50).max(100_000);
    (first.khz.abs_diff(own.khz) > rounding && !is_own(first.by)).then_some(first)
}

/// A step that writes something.
fn effect(host: &Host<'_>, step: &Step, moved: &[&Change], then: &Then<'_>, was: &Outlook, now: &Outlook) -> Effect {
    let cpus = moved.iter().fold(CpuSet::new(), |set, change| set.union(&change.cpus));
    let none = match step.knob.as_str() {
        knob if is_idle(knob) => same_sleep(step, &cpus, was, now),
        knob if is_limit(knob) => match (was.spans(), now.spans()) {
            (Some(before), Some(after)) if before == after => {
                let same = || word!("the clocks keep the limits that they have").to_string();
                Some(overruled(host, knob, now, &cpus).unwrap_or_else(same))
            }
            _ => None,
        },
        "freq.governor" => one_clock(&cpus, was, now),
        "freq.boost" => boost_out_of_reach(moved, was, now),
        "freq.epp" | "freq.hwp_dynamic_boost" if has_one_clock(&cpus, now) => {
            Some(word!("the limits leave one clock, and nothing to choose").into())
        }
        "freq.hwp_dynamic_boost" if is_covered(&cpus, &now.kept_high) => {
            Some(word!("governor performance keeps the clock at its upper limit").into())
        }
        "idle.governor" => spin_anyway(&cpus, was).and_then(|_| spin_anyway(&cpus, now)),
        "idle.haltpoll" => match (spin_anyway(&cpus, now), now.facts.idle.governor.get().map(String::as_str)) {
            (Some(why), _) => Some(why),
            (None, Some(governor)) if governor != "haltpoll" => {
                Some(say!("only the idle governor haltpoll reads it, and {governor} is in charge"))
            }
            _ => None,
        },
        "memory.numa_balancing" if host.facts.memory.nodes.len() == 1 => {
            Some(word!("there is one memory node, so nothing to balance").into())
        }
        "net.coalescing" => changed_by_driver(host, moved, then),
        "power.limit" => match of_power_limits(host, moved, then) {
            PowerEffect::None(why) => Some(why),
            PowerEffect::Moved(way) => return Effect { none: None, price: price::of_way(step, way) },
            PowerEffect::Unknown => None,
        },
        "uncore.min" => uncore_stays(host, moved),
        "uncore.elc" if step.request.name.ends_with(".floor") => uncore_stays(host, moved),
        _ => None,
    };
    match none {
        Some(why) => Effect::none(NoEffect::Overruled(why)),
        None => Effect { none: None, price: price::of(host, step, moved, was, now) },
    }
}

fn is_covered(cpus: &CpuSet, by: &CpuSet) -> bool {
    !cpus.is_empty() && cpus.minus(by).is_empty()
}

/// Why all CPUs enter the same states as before; none where one does not, or nothing is known of it.
fn same_sleep(step: &Step, cpus: &CpuSet, was: &Outlook, now: &Outlook) -> Option<String> {
    let (before, after) = (was.entered(), now.entered());
    let is_known = cpus.iter().all(|cpu| after.get(&cpu).is_some_and(|e| !matches!(e.when_idle, WhenIdle::Unknown)));
    if !is_known || before != after {
        return None;
    }
    if let Some(why) = spin_anyway(cpus, now) {
        return Some(why);
    }
    let groups = || now.idle.iter().filter(|group| !group.cpus.and(cpus).is_empty());
    // The requests of threads change, and the states that cores enter do not.
    let asked = |of: &BTreeMap<u32, Entered<'_>>| -> Vec<Vec<u32>> {
        let states = |entered: &Entered<'_>| entered.states.iter().map(|state| state.row.index).collect();
        cpus.iter().filter_map(|cpu| of.get(&cpu)).map(states).collect()
    };
    if asked(&before) != asked(&after) {
        return Some(word!("the other thread of each core keeps the core as shallow").into());
    }
    if let Some(name) = step.request.name.strip_prefix("idle.state.") {
        if now.facts.idle.governor.get().is_some_and(|governor| governor == "haltpoll") {
            return Some(word!("the idle governor haltpoll does not ask whether a state is disabled").into());
        }
        let barriers = groups().filter_map(|group| group.state(name)).flat_map(|state| &state.barriers);
        // Its own switch is what the step sets.
        let other = barriers.copied().find(|b| !matches!(b, Barrier::Disabled | Barrier::OffByDefault));
        let why = other.map_or_else(|| word!("it is not entered now").into(), Barrier::words);
        return Some(say!("{name}: {why}"));
    }
    let is_limit = |barrier: &Barrier| matches!(barrier, Barrier::GlobalLimit(_) | Barrier::OwnLimit(_));
    let is_excluding = groups().flat_map(|g| &g.states).flat_map(|s| &s.barriers).any(is_limit);
    Some(match is_excluding {
        true => word!("it leaves out the idle states that are left out now").into(),
        false => word!("it excludes no idle state").into(),
    })
}

/// Why these CPUs enter no idle state.
fn spin_anyway(cpus: &CpuSet, now: &Outlook) -> Option<String> {
    let groups: Vec<_> = now.idle.iter().filter(|group| !group.cpus.and(cpus).is_empty()).collect();
    let causes: Option<Vec<&Cause>> = groups.iter().map(|group| group.spins()).collect();
    if let Some(cause) = causes.and_then(|all| all.first().copied().cloned()) {
        return Some(say!("idle CPUs spin: {cause}", cause = cause.words()));
    }
    let halts = !groups.is_empty() && groups.iter().all(|group| group.when_idle == WhenIdle::Halts);
    halts.then(|| word!("without an idle driver there is no idle state to enter").into())
}

/// Why a governor chooses nothing on these CPUs: the limits leave one clock, before and after.
fn one_clock(cpus: &CpuSet, was: &Outlook, now: &Outlook) -> Option<String> {
    let (before, after) = (was.spans()?, now.spans()?);
    let is_one = |window: &&Window| window.min().map(|low| low.khz) == window.max().map(|high| high.khz);
    let here = || now.clocks.iter().filter(|window| !window.cpus.and(cpus).is_empty());
    let bound = here().next()?.max()?;
    (before == after && here().all(|window| is_one(&window))).then(|| say!("the limits leave one clock: {bound}"))
}

/// Do the limits leave each of these CPUs one clock?
fn has_one_clock(cpus: &CpuSet, now: &Outlook) -> bool {
    let is_one = |window: &Window| window.min().map(|low| low.khz) == window.max().map(|high| high.khz);
    let here: Vec<&Window> = now.clocks.iter().filter(|window| !window.cpus.and(cpus).is_empty()).collect();
    !here.is_empty() && here.iter().all(|window| window.max().is_some() && is_one(window))
}

/// Why switching turbo changes nothing: switched off, the limits of before count; switched on, those of after.
fn boost_out_of_reach(moved: &[&Change], was: &Outlook, now: &Outlook) -> Option<String> {
    match moved.iter().all(|change| change.to_shown == "off") {
        true => turbo_out_of_reach(was, false),
        false => turbo_out_of_reach(now, true),
    }
}

/// Why turbo is not reached whether it is on or off.
fn turbo_out_of_reach(now: &Outlook, was_off: bool) -> Option<String> {
    let why = |window: &Window| {
        if is_covered(&window.cpus, &now.kept_low) {
            return Some(word!("governor powersave keeps the clock at its lower limit").to_string());
        }
        let bound = now.below_turbo(window, was_off)?;
        // Under acpi-cpufreq boost lies beyond the highest step.
        let is_below = match window.is_step_table(&now.facts) {
            true => bound.khz < window.top_khz?,
            false => bound.khz <= now.base_khz(window)?,
        };
        is_below.then(|| say!("turbo is out of reach: {bound} is in force"))
    };
    let all: Option<Vec<String>> = now.clocks.iter().map(why).collect();
    all.and_then(|all| all.into_iter().next())
}

/// Why delays of interrupts stay as they are: with the adaptive switch on, the driver chooses them.
fn changed_by_driver(host: &Host<'_>, moved: &[&Change], then: &Then<'_>) -> Option<String> {
    let switch = |change: &&Change| {
        let (interface, field) = change.path.rsplit_once('/')?;
        let name = format!("adaptive-{}", field.split('-').next()?);
        let path = format!("{interface}/{name}");
        let found = || host.text(&format!("{interface}/coalesce"));
        let is_on = match then.is_written(&path) {
            true => then.text(&path)?.trim() == "1",
            false => found()?.lines().any(|line| line.trim() == format!("{name} 1")),
        };
        (is_on && !field.starts_with("adaptive")).then_some(name)
    };
    let all: Option<Vec<String>> = moved.iter().map(switch).collect();
    all?.first().map(|name| say!("the driver changes it ({name} is on)"))
}

/// What becomes of the power limits of packages: the lowest of each decides, before and after.
enum PowerEffect {
    /// Nothing, and why.
    None(String),
    /// They go up, or down.
    Moved(std::cmp::Ordering),
    /// Packages move in different directions, or the limits are not known.
    Unknown,
}

fn of_power_limits(host: &Host<'_>, moved: &[&Change], then: &Then<'_>) -> PowerEffect {
    let power = &host.facts.power;
    let all = power.package_limits();
    let own = |path: &str| moved.iter().find(|change| change.path == path);
    let now = |limit: &PackageLimit<'_>| -> Option<u64> {
        let path = limit.path();
        let written = then.is_written(&path).then(|| then.text(&path)).flatten();
        written.map_or(Some(limit.limit_uw), |text| text.trim().parse().ok())
    };
    // Before these changes, which `then` has already made.
    let before = |limit: &PackageLimit<'_>| match own(&limit.path()) {
        Some(change) => change.before.as_deref()?.trim().parse().ok(),
        None => now(limit),
    };
    let is_here = |limit: &&PackageLimit<'_>| {
        all.iter().any(|other| other.package == limit.package && own(&other.path()).is_some())
    };
    let packages: BTreeSet<&str> = all.iter().filter(is_here).map(|limit| limit.package).collect();
    if packages.is_empty() {
        let is_off = |zone: &Zone| zone.is_enabled.get() == Some(&false);
        let zones = power.zones.iter().filter(|zone| moved.iter().any(|c| c.path.contains(&format!("/{}/", zone.id))));
        let zones: Vec<&Zone> = zones.collect();
        return match !zones.is_empty() && zones.iter().all(|zone| is_off(zone)) {
            true => PowerEffect::None(word!("the zone's limits are not in force (enabled is 0)").into()),
            false => PowerEffect::Unknown,
        };
    }
    let lowest = |of: &dyn Fn(&PackageLimit<'_>) -> Option<u64>, package: &str| {
        all.iter()
            .filter(|limit| limit.package == package)
            .filter_map(|limit| Some((of(limit)?, limit)))
            .min_by_key(|l| l.0)
    };
    let ends: Option<Vec<_>> =
        packages.iter().map(|package| Some((lowest(&before, package)?, lowest(&now, package)?))).collect();
    let Some(ends) = ends else { return PowerEffect::Unknown };
    let ways: Vec<_> = ends.iter().map(|(before, after)| after.0.cmp(&before.0)).collect();
    match ways[..] {
        [first, ..] if ways.iter().all(|way| *way == first) && first.is_ne() => PowerEffect::Moved(first),
        [first, ..] if ways.iter().all(|way| *way == first) => {
            let (uw, limit) = ends[0].1;
            let name = limit.constraint.name.get().map_or("", String::as_str);
            PowerEffect::None(say!("{} of {} ({name}) is in force", show_uw(uw), limit.zone.id))
        }
        _ => PowerEffect::Unknown,
    }
}

/// Why the uncore clock of idle dies stays as it is, whatever its lower limit or its floor becomes: the higher of the two
/// decides, and in latency-optimised mode neither.
fn uncore_stays(host: &Host<'_>, moved: &[&Change]) -> Option<String> {
    let domain = |change: &&Change| {
        let name = change.path.rsplit('/').nth(1)?;
        host.facts.uncore.domains.iter().find(|domain| domain.name == name)
    };
    let is_up = |change: &&Change| domain(change).and_then(UncoreDomain::is_latency_optimised) == Some(true);
    if !moved.is_empty() && moved.iter().all(is_up) {
        return Some(word!("efficiency latency control is in latency-optimised mode and keeps the clock up").into());
    }
    let is_same = |change: &&Change| {
        let domain = domain(change)?;
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let (before, to) = (number(change.before.as_deref()?)?, number(&change.to)?);
        let other = match change.path.ends_with("/min_freq_khz") {
            true => domain.elc_floor_khz.get().copied()?,
            false => domain.min_khz.get().copied()?,
        };
        Some(before.max(other) == to.max(other))
    };
    let is_min = moved.iter().all(|change| change.path.ends_with("/min_freq_khz"));
    let all = !moved.is_empty() && moved.iter().all(|change| is_same(change) == Some(true));
    all.then(|| match is_min {
        true => word!("the floor of efficiency latency control lies above it").into(),
        false => word!("the floor lies below the lowest uncore frequency").into(),
    })
}

/// Why the package limit changes nothing: by their idle settings CPUs keep every package shallower than both limits.
fn package_awake(host: &Host<'_>, cpus: &CpuSet, moved: &[&Change], now: &Outlook) -> Option<String> {
    if let Some(why) = spin_anyway(cpus, now) {
        return Some(why);
    }
    let codes = package_limit::codes_of(host.facts.topology.processor()?)?;
    let depth = |text: &str| {
        let code: u8 = text.trim().parse().ok()?;
        codes
            .limits()
            .find(|limit| codes.code(*limit) == Some(code))
            .map(|limit| package_states::rank(&limit.to_string()))
    };
    let limits: Option<Vec<u32>> =
        moved.iter().flat_map(|change| [change.before.as_deref().and_then(depth), depth(&change.to)]).collect();
    let shallowest = limits?.into_iter().min()?;
    let packages = package_states::read(&now.facts).packages;
    // The outlook reads no MSRs, so `allowed` follows from idle settings alone.
    // "Less than PC6" is the deepest state below it that this model has.
    let ranks = || codes.limits().map(|limit| package_states::rank(&limit.to_string()));
    let goes = |allowed: &str| ranks().filter(|rank| *rank <= package_states::rank(allowed)).max();
    let is_kept = |package: &Package| package.allowed.as_deref().and_then(goes).is_some_and(|rank| rank <= shallowest);
    let says = packages.iter().filter_map(|package| package.holds.first()).map(|hold| hold.what.clone()).next();
    (!packages.is_empty() && packages.iter().all(is_kept)).then(|| match says {
        Some(what) => say!("no package goes as deep by its idle settings: {what}"),
        None => word!("no package goes as deep by its idle settings").into(),
    })
}

/// Why nothing is demoted to C1 on these CPUs: no deeper state is asked for.
fn nothing_demoted(cpus: &CpuSet, now: &Outlook) -> Option<String> {
    if let Some(why) = spin_anyway(cpus, now) {
        return Some(why);
    }
    let here: Vec<Enterable> = now.idle.iter().filter(|group| !group.cpus.and(cpus).is_empty()).cloned().collect();
    let is_known = !here.is_empty() && here.iter().all(|group| group.deepest().is_some());
    (is_known && !enterable::has_deep_state(&here))
        .then(|| word!("no idle state that could be demoted is entered").into())
}

/// Why it does not matter on these CPUs what C1 is entered as.
fn c1_not_entered(cpus: &CpuSet, now: &Outlook) -> Option<String> {
    if let Some(why) = spin_anyway(cpus, now) {
        return Some(why);
    }
    let mut here = now.idle.iter().filter(|group| !group.cpus.and(cpus).is_empty()).peekable();
    here.peek()?;
    let enters = |group: &Enterable| group.open().any(|state| budget::is_plain_c1(&state.row.name));
    (!here.any(enters)).then(|| word!("C1 is not entered").into())
}

#[cfg(test)]
mod tests;
