//! What a step costs: for the value that is asked for, from the machine's own figures where it has them.
//!
//! Idle states and latency limits by the states that are no longer entered, and on how many CPUs; limits of the clock by the
//! clocks; turbo by the processor's own ratios. Elsewhere by the direction: what is switched on or raised, and what is
//! switched off or lowered (`About::price`).

use crate::knob::{Host, Price};
use crate::knobs;
use crate::outlook::{Entered, EnteredState, Outlook, Span};
use crate::resolve::{Change, Step};
use std::cmp::Ordering;
use wakewatt_core::clock_window::Window;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::virt::Virt;
use wakewatt_core::turbo;
use wakewatt_core::units::{exact_ns, show_khz};
use wakewatt_words::{say, told, word};

/// Of a step that changes something.
pub(crate) fn of(host: &Host<'_>, step: &Step, moved: &[&Change], was: &Outlook, now: &Outlook) -> String {
    let own = match step.knob.as_str() {
        "qos.global" | "qos.cpu" | "idle.state" | "idle.governor" => sleep(host, was, now),
        "freq.governor" => moved.first().and_then(|change| governor(change, was, now)),
        "freq.max" | "freq.perf.max" => highest(host, was, now),
        "freq.min" | "freq.perf.min" if moved.iter().all(|change| change.cpus.minus(&now.kept_low).is_empty()) => {
            only_clock(host, was, now)
        }
        "freq.min" | "freq.perf.min" => lowest(host, was, now),
        "freq.epb" => moved.first().and_then(|change| bias_of_uncore(step, change, moved, now)),
        "freq.boost" if moved.iter().all(|change| change.to_shown == "off") => without_turbo(host, was),
        _ => None,
    };
    own.unwrap_or_else(|| by_direction(step, moved))
}

/// The price of a step that raises or lowers the limit in force.
pub(crate) fn of_way(step: &Step, way: Ordering) -> String {
    let price = knobs::find(&step.request.name).map(|knob| knob.about().price);
    price.map_or_else(String::new, |price| told(if way.is_gt() { price.up } else { price.down }).into())
}

/// Of an energy bias where the governor keeps the clocks up: only the uncore may follow it.
fn bias_of_uncore(step: &Step, change: &Change, moved: &[&Change], now: &Outlook) -> Option<String> {
    let cpus = moved.iter().fold(CpuSet::new(), |set, change| set.union(&change.cpus));
    let knob = knobs::find(&step.request.name).filter(|_| cpus.minus(&now.kept_high).is_empty())?;
    let rank = |text: &str, shown: &str| knob.rank(&step.request.name, text, shown);
    let is_up = rank(&change.to, &change.to_shown)? > rank(change.before.as_deref()?, &change.before_shown)?;
    Some(
        match is_up {
            true => {
                word!("the clocks stay up under governor performance; the uncore may react slower, with fewer watts")
            }
            false => {
                word!("the clocks stay up under governor performance; the uncore may react faster, with more watts")
            }
        }
        .into(),
    )
}

/// By where the values go: up, down, or nobody can say.
fn by_direction(step: &Step, moved: &[&Change]) -> String {
    let Some(knob) = knobs::find(&step.request.name) else { return String::new() };
    let price: Price = knob.about().price;
    let direction = |change: &&Change| {
        let rank = |text: &str, shown: &str| knob.rank(&step.request.name, text, shown);
        let before = rank(change.before.as_deref()?, &change.before_shown)?;
        Some(rank(&change.to, &change.to_shown)?.cmp(&before))
    };
    let all: Vec<Option<Ordering>> = moved.iter().map(direction).collect();
    match all.iter().all(|one| *one == all[0]).then(|| all[0]).flatten() {
        Some(Ordering::Greater) => told(price.up).into(),
        Some(Ordering::Less) => told(price.down).into(),
        _ => price.in_general(),
    }
}

/// States that are entered again, or no longer; CPUs that spin, or no longer.
fn sleep(host: &Host<'_>, was: &Outlook, now: &Outlook) -> Option<String> {
    let (before, after) = (was.entered(), now.entered());
    let mut spins = CpuSet::new();
    let mut awake_no_more = CpuSet::new();
    // States by the CPUs, so that those which go together are said together.
    let (mut closed, mut opened, mut in_vain) = (States::default(), States::default(), States::default());
    for (cpu, then) in &after {
        let Some(first) = before.get(cpu) else { continue };
        match (first.spins(), then.spins()) {
            (false, true) => {
                spins.insert(*cpu);
                continue;
            }
            (true, false) => {
                awake_no_more.insert(*cpu);
            }
            _ => {}
        }
        for state in first.states.iter().filter(|state| !state.is_in_vain) {
            match then.state(&state.row.name) {
                None => closed.note(*cpu, state, then),
                Some(now) if now.is_in_vain => in_vain.note(*cpu, state, then),
                Some(_) => {}
            }
        }
        for state in then.states.iter().filter(|state| !state.is_in_vain) {
            match first.state(&state.row.name) {
                None => opened.note(*cpu, state, first),
                Some(before) if before.is_in_vain => opened.note(*cpu, state, first),
                Some(_) => {}
            }
        }
    }
    let extent = |cpus: &CpuSet| host.facts.cpus.extent(cpus);
    let is_guest = Virt::is_guest(&host.facts.virt) == Some(true);
    let mut all = Vec::new();
    if !spins.is_empty() {
        all.push(match is_guest {
            true => say!("idle CPUs spin on {cpus}: the host pays with CPU time", cpus = extent(&spins)),
            false => {
                say!(
                    "idle CPUs spin on {cpus}: full power, no turbo headroom for their neighbours",
                    cpus = extent(&spins)
                )
            }
        });
    }
    if !awake_no_more.is_empty() {
        all.push(say!("idle CPUs sleep again on {cpus}: fewer watts, slower wake-ups", cpus = extent(&awake_no_more)));
    }
    for (states, cpus, kind) in closed.groups() {
        let cpus = extent(&cpus);
        all.push(match kind {
            _ if is_guest => {
                say!("{states} no longer entered on {cpus}; what that costs is the hypervisor's to decide")
            }
            Kind::Deep(_) if !turbo::has_headroom(&host.facts) => {
                say!("{states} no longer entered on {cpus}: more watts when idle")
            }
            Kind::Deep(_) => say!(
                "{states} no longer entered on {cpus}: more watts when idle, less turbo headroom for busy cores"
            ),
            Kind::Shallow => say!(
                "{states} no longer entered on {cpus}: short pauses end in a deeper state, slower wake-ups and fewer watts"
            ),
        });
    }
    for (states, cpus, _) in in_vain.groups() {
        let cpus = extent(&cpus);
        all.push(say!("{states} asked for in vain on {cpus}: the other thread of the core may not enter it"));
    }
    for (states, cpus, kind) in opened.groups() {
        let cpus = extent(&cpus);
        all.push(match kind {
            Kind::Deep(ns) => say!(
                "{states} entered again on {cpus}: fewer watts when idle, wake-ups of up to {exit} as the driver claims",
                exit = exact_ns(ns)
            ),
            Kind::Shallow => {
                say!("{states} entered again on {cpus}: faster wake-ups after short pauses, more watts in them")
            }
        });
    }
    (!all.is_empty()).then(|| all.join("; "))
}

/// What a state is beside those that are entered with and without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Another state is shallower, and takes its pauses over; this is its exit latency.
    Deep(u64),
    /// None is shallower: a deeper state takes its pauses over.
    Shallow,
}

/// States with the CPUs they concern, in the order of the table.
#[derive(Default)]
struct States(Vec<(String, Kind, CpuSet)>);

impl States {
    /// A state that a CPU enters, beside those that it enters without it.
    fn note(&mut self, cpu: u32, state: &EnteredState<'_>, without: &Entered<'_>) {
        let row = state.row;
        let label =
            row.exit_latency_ns.map_or_else(|| row.name.clone(), |ns| format!("{} ({})", row.name, exact_ns(ns)));
        // A state that spins takes over none but the shortest pauses, where a sleeping state is left beside it.
        let mut takers = without.states.iter().map(|other| other.row).filter(|other| !other.is_polling()).peekable();
        let is_shallowest = takers.peek().is_some() && takers.all(|other| other.index > row.index);
        let kind = if is_shallowest { Kind::Shallow } else { Kind::Deep(row.exit_latency_ns.unwrap_or(0)) };
        match self.0.iter_mut().find(|(known, was, _)| *known == label && *was == kind) {
            Some((.., cpus)) => cpus.insert(cpu),
            None => self.0.push((label, kind, [cpu].into_iter().collect())),
        }
    }

    /// Names, CPUs, and what they are, with the slowest exit: one for each set of CPUs and each kind.
    fn groups(self) -> Vec<(String, CpuSet, Kind)> {
        let mut groups: Vec<(Vec<String>, CpuSet, Kind)> = Vec::new();
        for (label, kind, cpus) in self.0 {
            let is_alike = |known: Kind| (known == Kind::Shallow) == (kind == Kind::Shallow);
            match groups.iter_mut().find(|(_, set, known)| *set == cpus && is_alike(*known)) {
                Some((labels, _, slowest)) => {
                    labels.push(label);
                    *slowest = (*slowest).max(kind);
                }
                None => groups.push((vec![label], cpus, kind)),
            }
        }
        groups.into_iter().map(|(labels, cpus, kind)| (labels.join(", "), cpus, kind)).collect()
    }
}

fn governor(change: &Change, was: &Outlook, now: &Outlook) -> Option<String> {
    let cpu = change.cpus.first()?;
    Some(match change.to.as_str() {
        "performance" => word!("more watts at low load, no ramp before full speed").into(),
        "powersave" if now.kept_low.contains(cpu) => {
            let low = now.spans()?.iter().find(|span| span.cpus.contains(cpu))?.low_khz;
            let high = was.spans()?.iter().find(|span| span.cpus.contains(cpu))?.high_khz;
            say!("the lowest clock always: {} instead of up to {}", show_khz(low), with_turbo(was, high))
        }
        "powersave" => {
            word!("the driver's own algorithm follows the load: fewer watts at low load, a ramp before full speed")
                .into()
        }
        "schedutil" | "ondemand" | "conservative" if was.kept_high.contains(cpu) => {
            word!("the clock follows the load: fewer watts at low load, a ramp before full speed").into()
        }
        "schedutil" | "ondemand" | "conservative" if was.kept_low.contains(cpu) => {
            word!("the clock follows the load: more speed and more watts under load").into()
        }
        "userspace" => word!("the clock stays where a program sets it, whatever the load").into(),
        _ => return None,
    })
}

/// What CPUs may run at most or at least before and after, where it changes, with the CPUs; none where a limit is not known.
fn ends(was: &Outlook, now: &Outlook, of: impl Fn(&Span) -> u64) -> Option<Vec<(u64, u64, CpuSet)>> {
    let mut all: Vec<(u64, u64, CpuSet)> = Vec::new();
    let after = now.spans()?;
    for span in was.spans()? {
        for then in &after {
            let cpus = span.cpus.and(&then.cpus);
            let (before, after) = (of(&span), of(then));
            match all.iter_mut().find(|(known, to, _)| (*known, *to) == (before, after)) {
                _ if cpus.is_empty() || before == after => {}
                Some((.., set)) => *set = set.union(&cpus),
                None => all.push((before, after, cpus)),
            }
        }
    }
    Some(all).filter(|all| !all.is_empty())
}

/// Each change with its CPUs, where it is not the same on all.
fn by_cpus(host: &Host<'_>, changes: Vec<(u64, u64, CpuSet)>, say_one: impl Fn(u64, u64) -> String) -> String {
    let cpus = &host.facts.cpus;
    let is_all = changes.len() == 1 && changes.iter().all(|(.., set)| cpus.running().all(|cpu| set.contains(cpu)));
    let one = |(before, after, set): (u64, u64, CpuSet)| {
        let says = say_one(before, after);
        if is_all { says } else { say!("{says} on {}", cpus.extent(&set)) }
    };
    changes.into_iter().map(one).collect::<Vec<_>>().join("; ")
}

/// An upper limit as people read it: under acpi-cpufreq turbo lies beyond the highest step, and is had by asking for that.
fn with_turbo(outlook: &Outlook, khz: u64) -> String {
    let here = |window: &&Window| window.max().is_some_and(|bound| bound.khz == khz);
    let mut windows = outlook.clocks.iter().filter(here).peekable();
    let has_turbo = windows.peek().is_some() && windows.all(|window| window.has_turbo_beyond(&outlook.facts));
    if has_turbo { say!("{} and turbo", show_khz(khz)) } else { show_khz(khz) }
}

/// The upper end of what CPUs may run at.
fn highest(host: &Host<'_>, was: &Outlook, now: &Outlook) -> Option<String> {
    let changes = ends(was, now, |span| span.high_khz)?;
    Some(by_cpus(host, changes, |before, after| {
        let (to, from) = (with_turbo(now, after), with_turbo(was, before));
        match after < before {
            true => say!("at most {to} instead of {from}: less speed, fewer watts"),
            false => say!("up to {to} instead of {from}: more watts under load"),
        }
    }))
}

fn lowest(host: &Host<'_>, was: &Outlook, now: &Outlook) -> Option<String> {
    let changes = ends(was, now, |span| span.low_khz)?;
    Some(by_cpus(host, changes, |before, after| {
        let (to, from) = (show_khz(after), show_khz(before));
        match after < before {
            true => say!("down to {to} instead of {from}: fewer watts at low load, a slow start"),
            false => say!("never below {to} instead of {from}: more watts at low load, no slow start"),
        }
    }))
}

/// The lower limit where a governor keeps the clock there: it is the clock, whatever the load.
fn only_clock(host: &Host<'_>, was: &Outlook, now: &Outlook) -> Option<String> {
    let changes = ends(was, now, |span| span.low_khz)?;
    Some(by_cpus(host, changes, |before, after| {
        let (to, from) = (show_khz(after), show_khz(before));
        match after < before {
            true => say!("the clock is {to} instead of {from}, whatever the load: less speed, fewer watts"),
            false => say!("the clock is {to} instead of {from}, whatever the load: more speed, more watts"),
        }
    }))
}

/// The clock that is lost, from the processor's registers, of one CPU, which asking wakes.
fn without_turbo(host: &Host<'_>, was: &Outlook) -> Option<String> {
    let facts = &host.facts;
    let cpu = facts.cpus.running().next()?;
    let register = |address: u32| host.source.msr(cpu, address).ok();
    // Where a limit lies below the turbo frequencies, the loss is counted from that limit.
    let lowered = |window: &Window| {
        was.below_turbo(window, false).map(|bound| bound.khz).filter(|khz| Some(*khz) < window.top_khz)
    };
    let is_lowered = was.clocks.iter().any(|window| lowered(window).is_some());
    if let Some(turbo) = turbo::of(facts, register).filter(|_| !is_lowered) {
        return Some(turbo.lost());
    }
    // Kinds of core have clocks of their own, and with SST-BF cores of one kind. How many may be busy at the highest clock is
    // not known here.
    let policies = &facts.freq.policies;
    let tops = policies.by_cpu(&policies.hardware_max_khz);
    let mut all: Vec<(u64, u64, CpuSet)> = Vec::new();
    for (cpu, most) in was.clocks.iter().flat_map(|window| window.cpus.iter().map(|cpu| (cpu, lowered(window)))) {
        let (top, base) = (tops.of(cpu)?.get().copied()?, was.base_khz_of(cpu)?);
        let top = most.map_or(top, |khz| khz.min(top));
        match all.iter_mut().find(|(known, low, _)| (*known, *low) == (top, base)) {
            _ if top <= base => {}
            Some((.., cpus)) => cpus.insert(cpu),
            None => all.push((top, base, [cpu].into_iter().collect())),
        }
    }
    let is_one = all.len() == 1;
    let one = |(top, base, cpus): (u64, u64, CpuSet)| {
        let says = say!("up to {} -> {}", show_khz(top), show_khz(base));
        if is_one { says } else { say!("{says} on {}", facts.cpus.extent(&cpus)) }
    };
    let lowest = all.iter().map(|(_, base, _)| *base).min().unwrap_or(0);
    let mut lost: Vec<String> = all.into_iter().map(one).collect();
    let all_busy = turbo::ratios(facts, register).and_then(|(_, all)| all);
    if let Some(khz) = all_busy.filter(|khz| *khz > lowest && !is_lowered) {
        lost.push(say!("from {} with all cores busy (MSR 0x1ad)", show_khz(khz)));
    }
    (!lost.is_empty()).then(|| say!("{}; fewer watts, steadier clocks", lost.join(", ")))
}
