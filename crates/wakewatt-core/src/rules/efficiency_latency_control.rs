//! Does the uncore clock of the compute dies fall to its efficiency floor on an idle box?
//!
//! Xeon 6 has efficiency latency control: below a utilisation (`elc_low_threshold_percent`) a die's uncore clock falls to
//! `elc_floor_freq_khz`, and above another it rises at once. An application that reads memory now and then on an
//! otherwise idle box finds it at the floor. Firmware has two modes, *optimized power* (floor 1.2 GHz on compute dies) and
//! *latency optimized*, where floor and thresholds are 0, every utilisation is above the threshold and the clock stays at
//! its top. I/O dies have settings of their own, but serve no core and no L3. Kernels up to 6.12 do not say what a domain
//! serves (`agent_types`): where the clock of any domain falls, that is said of the domains, and what they serve is left open.
//! Dies of one kind whose settings differ are a problem. Sources: intel/pcm, "Latency Optimized Mode" and
//! bhs-power-mode.sh; admin-guide/pm/intel_uncore_frequency_scaling.rst.

use super::exclusions::Assertion;
use super::{Answer, Confidence, Cost, Finding, Rule, Things, Weight, Where, khz_word, percent};
use crate::evidence::Evidence;
use crate::facts::uncore::{DomainKind, UncoreDomain};
use crate::units::show_khz;
use wakewatt_words::{say, word};

const ROOT: &str = "/sys/devices/system/cpu/intel_uncore_frequency";

pub(super) struct EfficiencyLatencyControl;

/// A compute die and what its control says.
struct Die<'a> {
    domain: &'a UncoreDomain,
    floor: u64,
    low: f64,
    max: u64,
}

impl Die<'_> {
    fn of(domain: &UncoreDomain) -> Option<Die<'_>> {
        let (floor, max) = (*domain.elc_floor_khz.get()?, *domain.max_khz.get()?);
        Some(Die { domain, floor, low: *domain.elc_low_threshold_ratio.get()?, max })
    }
    /// The clock is kept up: no floor, and no utilisation is low.
    fn is_latency_optimised(&self) -> bool {
        self.domain.is_latency_optimised() == Some(true)
    }
    /// Does the clock fall when the die is idle?
    fn falls(&self) -> bool {
        !self.is_latency_optimised() && self.lowest() < self.max
    }
    /// Are the settings of a die of the same kind others?
    fn differs(&self, other: &Die) -> bool {
        let set = |die: &Die| (die.falls(), die.falls().then(|| die.lowest()));
        let is_like = self.max == other.max && self.domain.initial_max_khz.get() == other.domain.initial_max_khz.get();
        is_like && set(self) != set(other)
    }
    /// Where the clock falls to: the floor counts for nothing below the lower limit.
    fn lowest(&self) -> u64 {
        self.floor.max(self.domain.min_khz.get().copied().unwrap_or(0)).min(self.max)
    }
    fn on(&self, finding: Finding) -> Finding {
        let (domain, at) = (self.domain, format!("{ROOT}/{}", self.domain.name));
        let mut says = say!("floor {} below {}", show_khz(self.floor), percent(self.low));
        if let (Some(high), Some(is_on)) =
            (domain.elc_high_threshold_ratio.get(), domain.is_elc_high_threshold_on.get())
        {
            says += &say!(", high threshold {} ({})", percent(*high), if *is_on { "on" } else { "off" });
        }
        let finding = finding.on(format!("{at}/elc_*"), says);
        match domain.current_khz.get() {
            Some(now) => finding.on(format!("{at}/current_freq_khz"), say!("{} now", show_khz(*now))),
            None => finding,
        }
    }
}

impl Rule for EfficiencyLatencyControl {
    fn id(&self) -> &'static str {
        "rule.efficiency-latency-control"
    }
    fn question(&self) -> &'static str {
        word!("does the uncore clock of the compute dies fall to its efficiency floor on an idle box?")
    }
    fn is_choice(&self) -> bool {
        true
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::Intel, Where::BareMetal, Where::UncoreFiles]
    }
    fn takes_for_granted(&self, evidence: &Evidence) -> Vec<Assertion> {
        let domains = evidence.facts.uncore.deciding().filter(|domain| domain.kind() != DomainKind::Io);
        let dies: Vec<Die> = domains.filter_map(Die::of).collect();
        vec![if dies.iter().any(Die::falls) { Assertion::UncoreFalls } else { Assertion::UncoreStaysUp }]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let uncore = &evidence.facts.uncore;
        let with: Vec<&UncoreDomain> = uncore.deciding().filter(|d| d.has_elc()).collect();
        if with.is_empty() {
            // Only processors whose dies have clusters have it.
            let clusters = uncore.domains.iter().filter(|d| !d.is_whole_die());
            return match uncore.none_because.as_ref().or(clusters.filter_map(|d| d.elc_floor_khz.gap()).next()) {
                Some(gap) => Answer::gap(gap),
                None => Answer::no(word!("no uncore domain has efficiency latency control (Xeon 6 and later)")),
            };
        }
        let serving = with.iter().filter(|d| matches!(d.kind(), DomainKind::Compute | DomainKind::WholeDie));
        let dies: Vec<Die> = serving.filter_map(|d| Die::of(d)).collect();
        // Without agent_types nothing tells which of them serve cores.
        let untold = with.iter().filter(|d| d.kind() == DomainKind::Unknown).filter_map(|d| Die::of(d));
        let (dies, things) = match dies.is_empty() {
            true => (untold.collect::<Vec<_>>(), Things::UncoreDomains),
            false => (dies, Things::ComputeDies),
        };
        // Of all of them, read or not.
        let is_serving = |d: &&UncoreDomain| matches!(d.kind(), DomainKind::Compute | DomainKind::WholeDie);
        let n_dies = match things {
            Things::ComputeDies => uncore.deciding().filter(is_serving).count(),
            _ => dies.len(),
        };
        let Some(first) = dies.first() else {
            return Answer::cannot_tell(
                word!("the thresholds of efficiency latency control are not readable"),
                word!("wakewatt inspect uncore, as root"),
            );
        };
        if dies.iter().any(Die::falls) {
            return self.may_fall(&dies, things, n_dies);
        }
        let names: Vec<&str> = dies.iter().map(|die| die.domain.name.as_str()).collect();
        let why = match dies.iter().all(Die::is_latency_optimised) {
            true => word!("efficiency latency control is in latency-optimised mode"),
            false if dies.iter().all(|die| die.floor >= die.max) => {
                word!("the efficiency floor is as high as the upper limit")
            }
            false => word!("the lower limit is as high as the upper one"),
        };
        let title =
            say!("The uncore clock stays at {} on {}: {why}", show_khz(first.max), things.extent(&names, n_dies));
        let cost = Cost::unknown(word!("no latency; watts while idle; how many is not known here"));
        let finding = Finding::new(self, Weight::Note, Confidence::High, title, cost);
        dies.iter()
            .fold(finding, |finding, die| die.on(finding))
            .remedy(
                word!("Nothing, if latency matters. To save power while idle, choose the optimized power mode in the BIOS \
                    (Latency Optimized Mode: Disabled) and measure both ways."),
                word!("Saving it: memory answers slower after pauses."),
                word!("wakewatt inspect uncore power; wakewatt measure memory before and after"),
            )
            .yes()
    }
}

/// How dies fall, those that fall alike together, the lowest first: "from 2.5GHz to 800MHz below 10 % utilisation, on 4 of
/// 10 uncore domains".
fn how_they_fall(falling: &[&Die], things: Things, of: usize) -> Vec<String> {
    let how = |die: &Die| (die.lowest(), die.max, die.low.to_bits());
    let mut groups: Vec<Vec<&Die>> = Vec::new();
    for die in falling {
        match groups.iter_mut().find(|group| group.first().is_some_and(|first| how(first) == how(die))) {
            Some(group) => group.push(die),
            None => groups.push(vec![die]),
        }
    }
    groups.sort_by_key(|group| group.first().map(|die| how(die)));
    let clocks: Vec<u64> = falling.iter().filter_map(|die| die.domain.current_khz.get().copied()).collect();
    let now = match (clocks.iter().min(), clocks.iter().max()) {
        (Some(low), Some(high)) if low == high => say!("; {} now", show_khz(*low)),
        (Some(low), Some(high)) => say!("; {} to {} now", show_khz(*low), show_khz(*high)),
        _ => String::new(),
    };
    let n_groups = groups.len();
    let said = |(at, group): (usize, Vec<&Die>)| {
        let first = group.first()?;
        let names: Vec<&str> = group.iter().map(|die| die.domain.name.as_str()).collect();
        let says = say!(
            "from {} to {} below {} utilisation, on {}",
            show_khz(first.max),
            show_khz(first.lowest()),
            percent(first.low),
            things.extent(&names, of)
        );
        Some(if at + 1 == n_groups { says + &now } else { says })
    };
    groups.into_iter().enumerate().filter_map(said).collect()
}

impl EfficiencyLatencyControl {
    fn may_fall(&self, dies: &[Die], things: Things, n_dies: usize) -> Answer {
        let falling: Vec<&Die> = dies.iter().filter(|die| die.falls()).collect();
        let lowest = falling.iter().min_by_key(|die| die.lowest()).or(falling.first());
        let Some(falls) = lowest else { return Answer::no(word!("no clock falls")) };
        let package = falls.domain.package_id.get();
        let title = say!("The uncore clock falls {}", how_they_fall(&falling, things, n_dies).join(", "));
        let is_uneven = dies.iter().any(|a| dies.iter().any(|b| a.differs(b)));
        let weight = if is_uneven { Weight::Problem } else { Weight::Note };
        let is_told = things == Things::ComputeDies;
        let confidence = if is_told { Confidence::High } else { Confidence::Medium };
        let cost = Cost::unknown(word!("slower L3 and memory for rare requests on an idle box; not measured"));
        let mut finding = Finding::new(self, weight, confidence, title, cost);
        for die in dies {
            finding = die.on(finding);
        }
        if !is_told {
            let says = word!("not there (kernels up to 6.12): which domains serve cores is not known");
            finding = finding.on(format!("{ROOT}/uncore*/agent_types"), says);
        }
        // One socket, to be compared with the others; dies without L3 are left as they are.
        for die in falling.iter().filter(|d| d.domain.package_id.get() == package && is_told) {
            let is_all = die.domain.initial_max_khz.get().or(Some(&die.max)) == Some(&die.max);
            let to = if is_all { "max".into() } else { khz_word(die.max) };
            let path = format!("{ROOT}/{}/elc_floor_freq_khz", die.domain.name);
            let on = Some(die.domain.name.clone());
            finding = finding.step("uncore.elc.floor", on, to, path, word!("the clock of the L3 stays up while idle"));
        }
        finding
            .remedy(
                word!("To try it: raise the efficiency floor of one socket's compute dies to their upper limit and compare. For \
                    good, the BIOS has Latency Optimized Mode, which does it for I/O dies as well."),
                word!("Watts per socket while idle: how many is not known here, so measure them."),
                word!("wakewatt inspect uncore; wakewatt measure memory before and after"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, plan};
    use super::*;

    /// Floor, low and high threshold of a die with these agents.
    fn die(n: u32, package: u32, agents: &str, elc: (u32, u32, u32)) -> String {
        let at = format!("//- {ROOT}/uncore{n:02}");
        format!(
            "{at}/package_id\n{package}\n{at}/agent_types\n{agents}\n{at}/min_freq_khz\n800000\n
             {at}/max_freq_khz\n2200000\n{at}/initial_max_freq_khz\n2200000\n{at}/elc_floor_freq_khz\n{}\n
             {at}/elc_low_threshold_percent\n{}\n{at}/elc_high_threshold_percent\n{}\n{at}/elc_high_threshold_enable\n1\n",
            elc.0, elc.1, elc.2
        )
    }

    #[test]
    fn power_mode_falls_and_the_plan_raises_compute_dies_of_one_socket() {
        const COMPUTE: &str = "core cache memory";
        let power = (1_200_000, 11, 95);
        let host = die(0, 0, "io", (800_000, 11, 95))
            + &die(1, 0, COMPUTE, power)
            + &die(2, 0, COMPUTE, power)
            + &die(3, 1, COMPUTE, power);
        assert_eq!(
            ask(&EfficiencyLatencyControl, &host),
            "yes note unknown: the uncore clock falls from 2.2ghz to 1.2ghz below 11 % utilisation, on all 3 compute dies"
        );
        assert_eq!(
            plan(&EfficiencyLatencyControl, &host),
            "--set uncore.elc.floor@uncore01=max --set uncore.elc.floor@uncore02=max"
        );
        let latency = die(0, 0, COMPUTE, (0, 0, 0)) + &die(1, 0, "io", power);
        let said = ask(&EfficiencyLatencyControl, &latency);
        assert!(
            said.contains("stays at 2.2ghz on uncore00: efficiency latency control is in latency-optimised mode"),
            "{said}"
        );
        assert_eq!(plan(&EfficiencyLatencyControl, &latency), "");
    }

    #[test]
    fn dies_that_fall_otherwise_are_said_apart() {
        let low = |n| die(n, 0, "core cache memory", (800_000, 11, 95));
        let high = |n| die(n, 0, "core cache", (1_200_000, 11, 95)).replace("freq_khz\n2200000", "freq_khz\n2000000");
        let said = ask(&EfficiencyLatencyControl, &(low(0) + &high(1) + &low(2)));
        assert!(
            said.ends_with(
                "falls from 2.2ghz to 800mhz below 11 % utilisation, on 2 of 3 compute dies, from 2ghz to 1.2ghz below \
                 11 % utilisation, on uncore01 only, of 3 compute dies"
            ),
            "{said}"
        );
    }

    #[test]
    fn dies_that_do_not_tell_and_dies_that_differ() {
        let silent =
            |n, floor| die(n, 0, "", (floor, 11, 95)).replace(&format!("//- {ROOT}/uncore0{n}/agent_types\n\n"), "");
        let said = ask(&EfficiencyLatencyControl, &(silent(0, 800_000) + &silent(1, 1_200_000)));
        assert!(
            said.starts_with("yes")
                && said.contains("to 800mhz below 11 % utilisation, on uncore00 only, of 2 uncore domains")
                && said.ends_with("to 1.2ghz below 11 % utilisation, on uncore01 only, of 2 uncore domains"),
            "{said}"
        );
        let uneven = die(0, 0, "core cache", (1_200_000, 11, 95)) + &die(1, 0, "core cache", (2_200_000, 0, 0));
        let said = ask(&EfficiencyLatencyControl, &uneven);
        assert!(said.starts_with("yes problem") && said.ends_with("on uncore00 only, of 2 compute dies"), "{said}");
        let old = format!("//- {ROOT}/package_00_die_00/min_freq_khz\n800000\n");
        assert!(!ask(&EfficiencyLatencyControl, &old).starts_with("yes"));
        assert!(ask(&EfficiencyLatencyControl, "").starts_with("cannot tell"));
    }
}
