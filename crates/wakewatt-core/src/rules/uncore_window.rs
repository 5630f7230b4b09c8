//! May the uncore clock fall, or is it held down, or up?
//!
//! The mesh, the L3 and the memory path have a clock of their own (`intel_uncore_frequency`); on a mostly idle socket
//! it falls to the lower limit, and sparse requests find it there. A limit below what the firmware chose at boot was
//! set by somebody; a lower limit as high as the upper one keeps the clock up and costs watts around the clock. Only dies
//! that serve cores count: an I/O die of Xeon 6 has a clock and limits of its own, and no L3. Where a die has efficiency
//! latency control, that decides how low the clock falls (docs/knobs/power-and-uncore.md), and
//! rule.efficiency-latency-control has the answer, also where it cannot tell. Ranges that differ between dies of one kind
//! were set by somebody and are a problem.

use super::efficiency_latency_control::EfficiencyLatencyControl;
use super::exclusions::Assertion;
use super::{Answer, Confidence, Cost, Finding, Rule, Things, Weight, Where, deferred, khz_word, percent};
use crate::cpuset::CpuSet;
use crate::enterable;
use crate::evidence::Evidence;
use crate::facts::uncore::{DomainKind, Uncore, UncoreDomain};
use crate::units::show_khz;
use wakewatt_words::{say, word};

const ROOT: &str = "/sys/devices/system/cpu/intel_uncore_frequency";

pub(super) struct UncoreWindow;

impl Rule for UncoreWindow {
    fn id(&self) -> &'static str {
        "rule.uncore-window"
    }
    fn question(&self) -> &'static str {
        word!("may the uncore clock fall, or is it held down or up?")
    }
    fn is_choice(&self) -> bool {
        true
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::Intel, Where::BareMetal, Where::UncoreFiles]
    }
    fn takes_for_granted(&self, evidence: &Evidence) -> Vec<Assertion> {
        let known = windows(&evidence.facts.uncore);
        match known.iter().chain(&io_dies(&evidence.facts.uncore)).any(|window| window.lowered_from().is_some()) {
            true => Vec::new(),
            false if known.iter().any(|window| window.min < window.max) => vec![Assertion::UncoreFalls],
            false => vec![Assertion::UncoreStaysUp],
        }
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let uncore = &evidence.facts.uncore;
        let known = windows(uncore);
        if known.is_empty() {
            let gap = uncore.none_because.as_ref().or(uncore.domains.iter().find_map(|d| d.max_khz.gap()));
            return match gap {
                Some(gap) => Answer::gap(gap),
                None => Answer::cannot_tell(
                    word!("no uncore domain that serves cores is listed with its limits"),
                    word!("Intel servers with the module intel_uncore_frequency have it; wakewatt inspect uncore"),
                ),
            };
        }
        // Dies that serve no cores carry links and devices: below the boot, they too are held down.
        let io = io_dies(uncore);
        let is_lowered = |w: &&Window| w.lowered_from().is_some();
        if io.iter().any(|w| is_lowered(&w)) && known.iter().any(|w| is_lowered(&w)) {
            let all: Vec<Window> = windows(uncore).into_iter().chain(io).collect();
            if let Some(lowered) = all.iter().filter(is_lowered).min_by_key(|w| w.max) {
                return self.held_down(lowered, &all);
            }
            return Answer::no(word!("no uncore domain"));
        }
        for some in [&known, &io] {
            if let Some(lowered) = some.iter().filter(is_lowered).min_by_key(|w| w.max) {
                return self.held_down(lowered, some);
            }
        }
        if let Some(open) = known.iter().find(|w| w.min < w.max) {
            let facts = &evidence.facts;
            let running: CpuSet = facts.cpus.running().collect();
            if !running.is_empty() && running.minus(&enterable::spinning(&enterable::of(facts))).is_empty() {
                return Answer::cannot_tell(
                    word!(
                        "every idle CPU spins, so no socket is ever idle, and what the uncore does then is not known here"
                    ),
                    word!("wakewatt inspect uncore, a few times: the clock now"),
                );
            }
            let by_elc = word!("efficiency latency control decides how low it falls: rule.efficiency-latency-control");
            let has_elc = known.iter().any(|window| window.domain.has_elc());
            let deferred = has_elc.then(|| deferred(&EfficiencyLatencyControl, evidence, by_elc));
            return deferred.flatten().unwrap_or_else(|| self.may_fall(open, &known));
        }
        self.held_up(&known)
    }
}

/// A domain with both limits.
struct Window<'a> {
    domain: &'a UncoreDomain,
    min: u64,
    max: u64,
}

impl Window<'_> {
    fn of(domain: &UncoreDomain) -> Option<Window<'_>> {
        Some(Window { domain, min: *domain.min_khz.get()?, max: *domain.max_khz.get()? })
    }
    fn lowered_from(&self) -> Option<u64> {
        self.domain.initial_max_khz.get().copied().filter(|initial| self.max < *initial)
    }
    /// Was the range moved apart from that of its like? The boot's ranges may differ between dies of one kind.
    fn differs(&self, other: &Window) -> bool {
        let boot = |w: &Window| (w.domain.initial_min_khz.get().copied(), w.domain.initial_max_khz.get().copied());
        let is_like = self.domain.kind() == other.domain.kind() && boot(self) == boot(other);
        is_like && (self.min, self.max) != (other.min, other.max)
    }
    fn path(&self, file: &str) -> String {
        format!("{ROOT}/{}/{file}", self.domain.name)
    }
}

/// The domains that serve cores, with the tighter of their own limits and those of the whole die.
fn windows(uncore: &Uncore) -> Vec<Window<'_>> {
    let die_of = |domain: &UncoreDomain| {
        let is_its = |die: &&UncoreDomain| {
            die.is_whole_die() && domain.package_id.is_known() && die.package_id.get() == domain.package_id.get()
        };
        let mut dies = uncore.domains.iter().filter(is_its);
        // Of several dies nothing tells which one a cluster belongs to.
        match (dies.next(), dies.next()) {
            (Some(die), None) if !domain.is_whole_die() => Window::of(die),
            _ => None,
        }
    };
    let own = uncore.serving_cores().filter_map(Window::of);
    own.map(|window| match die_of(window.domain) {
        Some(die) => Window { min: window.min.max(die.min).min(die.max), max: window.max.min(die.max), ..window },
        None => window,
    })
    .collect()
}

/// The dies that serve no cores.
fn io_dies(uncore: &Uncore) -> Vec<Window<'_>> {
    uncore.deciding().filter(|domain| domain.kind() == DomainKind::Io).filter_map(Window::of).collect()
}

/// Problem where the dies differ, else a matter of choice.
fn weight(all: &[Window]) -> Weight {
    let is_uneven = all.iter().any(|a| all.iter().any(|b| a.differs(b)));
    if is_uneven { Weight::Problem } else { Weight::Note }
}

fn extent(some: &[&Window], all: &[Window]) -> String {
    let names: Vec<&str> = some.iter().map(|w| w.domain.name.as_str()).collect();
    let is_all = |kind: DomainKind| all.iter().all(|w| w.domain.kind() == kind);
    let things = if is_all(DomainKind::Compute) {
        Things::ComputeDies
    } else if is_all(DomainKind::Io) {
        Things::IoDies
    } else {
        Things::UncoreDomains
    };
    things.extent(&names, all.len())
}

impl UncoreWindow {
    fn held_down(&self, lowered: &Window, known: &[Window]) -> Answer {
        let max = lowered.max;
        let initial = lowered.lowered_from().unwrap_or(max);
        let lost = 1.0 - max as f64 / initial as f64;
        let cost = Cost::predicted_ratio(
            lost,
            match lowered.domain.kind() == DomainKind::Io {
                true => say!(
                    "up to {} of the clock of the I/O dies, computed from the limits: slower devices and links between \
                     sockets; not measured",
                    percent(lost)
                ),
                false => say!(
                    "up to {} of the uncore clock, computed from the limits: slower L3 and memory; not measured",
                    percent(lost)
                ),
            },
        );
        let held: Vec<&Window> = known.iter().filter(|w| w.lowered_from().is_some()).collect();
        let title = say!(
            "The uncore clock is limited to {}, below the {} of the boot, on {}",
            show_khz(max),
            show_khz(initial),
            extent(&held, known)
        );
        let mut finding = Finding::new(self, Weight::Problem, Confidence::High, title, cost)
            .on(lowered.path("max_freq_khz"), show_khz(max))
            .on(lowered.path("initial_max_freq_khz"), show_khz(initial));
        for window in known.iter().filter(|w| w.lowered_from().is_some()) {
            let why = say!("it is {} now", show_khz(window.max));
            let on = Some(window.domain.name.clone());
            finding = finding.step("uncore.max", on, "max", window.path("max_freq_khz"), why);
        }
        finding
            .remedy(
                word!("Put the initial value back, unless power is capped on purpose."),
                word!("Watts."),
                word!("wakewatt inspect uncore"),
            )
            .yes()
    }

    fn may_fall(&self, open: &Window, known: &[Window]) -> Answer {
        let falling: Vec<&Window> = known.iter().filter(|w| w.min < w.max).collect();
        let title = say!(
            "The uncore clock may fall from {} to {} when the socket is mostly idle, on {}",
            show_khz(open.max),
            show_khz(open.min),
            extent(&falling, known)
        );
        let cost = Cost::unknown(word!("slower L3, memory and wake-up after pauses; not measured"));
        let mut finding = Finding::new(self, weight(known), Confidence::Medium, title, cost)
            .on(open.path("min_freq_khz"), show_khz(open.min))
            .on(open.path("max_freq_khz"), show_khz(open.max));
        // One socket, to be compared with the others: a plan for all of them would only cost watts.
        let is_same_package = |w: &&Window| w.domain.package_id.get() == open.domain.package_id.get();
        for window in known.iter().filter(is_same_package).filter(|w| w.min < w.max) {
            let is_all = window.domain.initial_max_khz.get() == Some(&window.max);
            let to = if is_all { "max".into() } else { khz_word(window.max) };
            let on = Some(window.domain.name.clone());
            finding =
                finding.step("uncore.min", on, to, window.path("min_freq_khz"), word!("the clock stays up while idle"));
        }
        finding
            .remedy(
                word!("To try it: raise the lower limit to the upper one on one socket and compare."),
                word!("Watts per socket while idle: how many is not known here, so measure them."),
                word!("wakewatt inspect uncore; wakewatt measure wakeup before and after"),
            )
            .yes()
    }

    /// Good for latency, so a note about watts.
    fn held_up(&self, known: &[Window]) -> Answer {
        let Some(first) = known.first() else { return Answer::no(word!("no uncore domain")) };
        let all: Vec<&Window> = known.iter().collect();
        let title =
            say!("The uncore clock is held at {}, idle or not, on {}", show_khz(first.max), extent(&all, known));
        let cost = Cost::unknown(word!("no latency; watts while idle, not measured"));
        let mut finding = Finding::new(self, weight(known), Confidence::High, title, cost)
            .on(first.path("min_freq_khz"), show_khz(first.min))
            .on(first.path("max_freq_khz"), show_khz(first.max));
        for window in known.iter().filter(|w| w.domain.initial_min_khz.get().is_some_and(|initial| *initial < w.min)) {
            let on = Some(window.domain.name.clone());
            finding = finding.step(
                "uncore.min",
                on,
                "min",
                window.path("min_freq_khz"),
                word!("the clock may fall while idle"),
            );
        }
        finding
            .remedy(
                word!("Nothing, if latency matters. To save power, give the lower limit back what it was at boot, or let the \
                    firmware choose a range (BIOS: uncore frequency scaling)."),
                word!("Slower L3 and memory after pauses."),
                word!("wakewatt inspect uncore power; wakewatt measure wakeup before and after"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, plan};
    use super::*;

    #[test]
    fn windows() {
        let check = |min: u64, max: u64, initial: u64| {
            let at = format!("//- {ROOT}/package_00_die_00");
            ask(
                &UncoreWindow,
                &format!("{at}/min_freq_khz\n{min}\n{at}/max_freq_khz\n{max}\n{at}/initial_max_freq_khz\n{initial}\n"),
            )
        };
        assert!(check(800_000, 2_400_000, 2_400_000).starts_with("yes note unknown: the uncore clock may fall"));
        assert!(
            check(800_000, 1_200_000, 2_400_000).starts_with(
                "yes problem predicted: the uncore clock is limited to 1.2ghz, below the 2.4ghz of the boot"
            )
        );
        assert!(
            check(2_400_000, 2_400_000, 2_400_000).starts_with("yes note unknown: the uncore clock is held at 2.4ghz")
        );
        assert!(ask(&UncoreWindow, "").starts_with("cannot tell"));
        // One of ten is said as one of ten, and is a fault.
        let domain = |n: u32, max: u64| {
            let at = format!("//- {ROOT}/package_{n:02}_die_00");
            format!("{at}/min_freq_khz\n800000\n{at}/max_freq_khz\n{max}\n{at}/initial_max_freq_khz\n2400000\n")
        };
        let ten: String = (0..10).map(|n| domain(n, if n == 3 { 1_200_000 } else { 2_400_000 })).collect();
        let said = ask(&UncoreWindow, &ten);
        assert!(
            said.starts_with("yes problem") && said.ends_with("on package_03_die_00 only, of 10 uncore domains"),
            "{said}"
        );
        let held = domain(0, 2_400_000) + &domain(1, 2_400_000).replace("_khz\n800000", "_khz\n2400000");
        let said = ask(&UncoreWindow, &held);
        assert!(
            said.starts_with("yes problem") && said.ends_with("on package_00_die_00 only, of 2 uncore domains"),
            "{said}"
        );
    }

    #[test]
    fn an_io_die_is_no_die_of_the_cores() {
        let cluster = |n: u32, agents: &str, max: u32, elc: &str| {
            let at = format!("//- {ROOT}/uncore{n:02}");
            format!(
                "{at}/package_id\n0\n{at}/agent_types\n{agents}\n{at}/min_freq_khz\n800000\n{at}/max_freq_khz\n{max}\n
                 {at}/initial_max_freq_khz\n2500000\n{elc}"
            )
        };
        let both = |io: u32| cluster(0, "io", io, "") + &cluster(1, "core cache memory", 2_500_000, "");
        assert!(ask(&UncoreWindow, &both(2_500_000)).ends_with("on uncore01"));
        assert_eq!(plan(&UncoreWindow, &both(2_500_000)), "--set uncore.min@uncore01=max");
        let lowered = ask(&UncoreWindow, &both(2_000_000));
        assert!(lowered.starts_with("yes problem") && lowered.ends_with("on uncore00"), "{lowered}");
        assert_eq!(plan(&UncoreWindow, &both(2_000_000)), "--set uncore.max@uncore00=max");
        let open = |elc: &str| cluster(1, "core cache memory", 2_500_000, elc);
        let elc = format!("//- {ROOT}/uncore01/elc_floor_freq_khz\n1200000\n");
        let all = format!("{elc}//- {ROOT}/uncore01/elc_low_threshold_percent\n10\n");
        assert!(ask(&UncoreWindow, &open(&all)).starts_with("no: efficiency latency control"));
        assert!(ask(&UncoreWindow, &open(&elc)).starts_with("cannot tell"), "as the rule that it defers to");
        assert!(ask(&UncoreWindow, &cluster(0, "io", 2_500_000, "")).starts_with("cannot tell"));
    }
}
