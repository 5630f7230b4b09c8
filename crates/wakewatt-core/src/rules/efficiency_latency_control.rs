//! Does the uncore clock of the compute dies fall to its efficiency floor on an idle box?
//!
//! Xeon 6 has efficiency latency control: below a utilisation (`elc_low_threshold_percent`) a die's uncore clock falls to
//! `elc_floor_freq_khz`, and above another it rises at once. An application that reads memory now and then on an
//! otherwise idle box finds it at the floor. Firmware has two modes, *optimized power* (floor 1.2 GHz on compute dies) and
//! *latency optimized*, where floor and thresholds are 0, every utilisation is above the threshold and the clock stays at
//! its top. I/O dies have settings of their own, but serve no core and no L3. Sources: intel/pcm,
//! "Latency Optimized Mode" and bhs-power-mode.sh; admin-guide/pm/intel_uncore_frequency_scaling.rst.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where, khz_word, percent};
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
        let is_high_always = self.domain.elc_high_threshold_ratio.get() == Some(&0.0)
            && self.domain.is_elc_high_threshold_on.get() == Some(&true);
        self.low == 0.0 && (is_high_always || self.floor >= self.max)
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
        &[Where::Intel, Where::BareMetal]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let uncore = &evidence.facts.uncore;
        let with: Vec<&UncoreDomain> = uncore.deciding().filter(|d| d.has_elc()).collect();
        if with.is_empty() {
            return match uncore.none_because.as_ref().or(uncore.domains.iter().find_map(|d| d.elc_floor_khz.gap())) {
                Some(gap) => Answer::gap(gap),
                None => Answer::no(word!("no uncore domain has efficiency latency control (Xeon 6 and later)")),
            };
        }
        let dies: Vec<Die> =
            with.iter().filter(|d| d.kind() == DomainKind::Compute).filter_map(|d| Die::of(d)).collect();
        let Some(first) = dies.first() else {
            return Answer::cannot_tell(
                word!("which of the uncore domains serve cores is not told (agent_types), or their thresholds are not"),
                word!("a kernel after 6.12 tells it; wakewatt inspect uncore"),
            );
        };
        if let Some(falls) = dies.iter().find(|die| !die.is_latency_optimised() && die.lowest() < die.max) {
            return self.may_fall(falls, &dies);
        }
        let title = say!(
            "The compute dies' uncore clock stays at {}: efficiency latency control is in latency-optimised mode",
            show_khz(first.max)
        );
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

impl EfficiencyLatencyControl {
    fn may_fall(&self, falls: &Die, dies: &[Die]) -> Answer {
        let package = falls.domain.package_id.get();
        let now = falls.domain.current_khz.get().map_or(String::new(), |now| say!("; {} now", show_khz(*now)));
        let title = say!(
            "The compute dies' uncore clock falls from {} to {} below {} utilisation{now}",
            show_khz(falls.max),
            show_khz(falls.lowest()),
            percent(falls.low)
        );
        let cost = Cost::unknown(word!("slower L3 and memory for rare requests on an idle box; not measured"));
        let mut finding = Finding::new(self, Weight::Note, Confidence::High, title, cost);
        for die in dies {
            finding = die.on(finding);
        }
        // One socket, to be compared with the others; dies without L3 are left as they are.
        for die in dies.iter().filter(|d| d.domain.package_id.get() == package && d.lowest() < d.max) {
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
            "yes note unknown: the compute dies' uncore clock falls from 2.2ghz to 1.2ghz below 11 % utilisation"
        );
        assert_eq!(
            plan(&EfficiencyLatencyControl, &host),
            "--set uncore.elc.floor@uncore01=max --set uncore.elc.floor@uncore02=max"
        );
        let latency = die(0, 0, COMPUTE, (0, 0, 0)) + &die(1, 0, "io", power);
        let said = ask(&EfficiencyLatencyControl, &latency);
        assert!(said.contains("stays at 2.2ghz: efficiency latency control is in latency-optimised mode"), "{said}");
        assert_eq!(plan(&EfficiencyLatencyControl, &latency), "");
    }

    #[test]
    fn nothing_is_said_of_dies_that_do_not_tell() {
        let silent = die(0, 0, "", (1_200_000, 11, 95));
        assert!(ask(&EfficiencyLatencyControl, &silent).starts_with("cannot tell: which of the uncore domains"));
        let old = format!("//- {ROOT}/package_00_die_00/min_freq_khz\n800000\n");
        assert!(!ask(&EfficiencyLatencyControl, &old).starts_with("yes"));
        assert!(ask(&EfficiencyLatencyControl, "").starts_with("cannot tell"));
    }
}
