//! May the uncore clock fall, or is it held down?
//!
//! The mesh, the L3 and the memory path have a clock of their own (`intel_uncore_frequency`); on a mostly idle socket
//! it falls to the lower limit, and sparse requests find it there. A limit below what the firmware chose at boot was
//! set by somebody. On Xeon 6 the efficiency floor (`elc_floor_freq_khz`) is the knob for the idle case
//! (docs/knobs/power-and-uncore.md).

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, khz_word, percent};
use crate::evidence::Evidence;
use crate::facts::uncore::{Uncore, UncoreDomain};
use crate::units::show_khz;

const ROOT: &str = "/sys/devices/system/cpu/intel_uncore_frequency";

/// Where a package has clusters, its whole dies only fan out to them and are not written.
fn is_set_by_tune(uncore: &Uncore, domain: &UncoreDomain) -> bool {
    let is_cluster_here = |d: &UncoreDomain| !d.is_whole_die() && d.package_id.get() == domain.package_id.get();
    !domain.is_whole_die() || !uncore.domains.iter().any(is_cluster_here)
}

pub(super) struct UncoreWindow;

impl Rule for UncoreWindow {
    fn id(&self) -> &'static str {
        "rule.uncore-window"
    }
    fn question(&self) -> &'static str {
        "may the uncore clock fall, or is it held down?"
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let uncore = &evidence.facts.uncore;
        let known: Vec<_> =
            uncore.domains.iter().filter_map(|d| Some((d, *d.min_khz.get()?, *d.max_khz.get()?))).collect();
        if known.is_empty() {
            let gap = uncore.none_because.as_ref().or(uncore.domains.iter().find_map(|d| d.max_khz.gap()));
            return match gap {
                Some(gap) => Answer::gap(gap),
                None => Answer::cannot_tell(
                    "no uncore domain is listed",
                    "Intel servers with the module intel_uncore_frequency have it; wakewatt inspect uncore",
                ),
            };
        }
        let lowered = known
            .iter()
            .filter_map(|(d, _, max)| Some((d, *max, *d.initial_max_khz.get()?)))
            .find(|(_, max, initial)| max < initial);
        if let Some((domain, max, initial)) = lowered {
            let lost = 1.0 - max as f64 / initial as f64;
            let cost = Cost::predicted_ratio(
                lost,
                format!(
                    "up to {} of the uncore clock, computed from the limits: slower L3 and memory; not measured",
                    percent(lost)
                ),
            );
            let mut finding = Finding::new(
                self,
                Weight::Risk,
                Confidence::High,
                format!("{} is limited to {}, below the {} of the boot", domain.name, show_khz(max), show_khz(initial)),
                cost,
            )
            .on(format!("{ROOT}/{}/max_freq_khz", domain.name), show_khz(max))
            .on(format!("{ROOT}/{}/initial_max_freq_khz", domain.name), show_khz(initial));
            for (domain, _, max) in known
                .iter()
                .filter(|(d, _, max)| is_set_by_tune(uncore, d) && d.initial_max_khz.get().is_some_and(|i| max < i))
            {
                let why = format!("it is {} now", show_khz(*max));
                let path = format!("{ROOT}/{}/max_freq_khz", domain.name);
                finding = finding.step("uncore.max", Some(domain.name.clone()), "max", path, why);
            }
            return finding
                .remedy(
                    "Put the initial value back, unless power is capped on purpose.",
                    "Watts.",
                    "wakewatt inspect uncore",
                )
                .yes();
        }
        let Some((domain, min, max)) = known.iter().find(|(_, min, max)| min < max) else {
            return Answer::no("the uncore clock is fixed: lower and upper limit are equal");
        };
        let title = format!(
            "The uncore clock of {} may fall from {} to {} when the socket is mostly idle",
            domain.name,
            show_khz(*max),
            show_khz(*min)
        );
        let first = *domain;
        let mut finding = Finding::new(
            self,
            Weight::Note,
            Confidence::Medium,
            title,
            Cost::unknown("slower L3, memory and wake-up after pauses; not measured"),
        )
        .on(format!("{ROOT}/{}/min_freq_khz", domain.name), show_khz(*min))
        .on(format!("{ROOT}/{}/max_freq_khz", domain.name), show_khz(*max));
        if let Some(floor) = domain.elc_floor_khz.get() {
            finding = finding.on(format!("{ROOT}/{}/elc_floor_freq_khz", domain.name), show_khz(*floor));
        }
        // One socket, to be compared with the others: a plan for all of them would only cost watts.
        for (domain, _, max) in known.iter().filter(|(d, min, max)| {
            min < max && is_set_by_tune(uncore, d) && d.package_id.get() == first.package_id.get()
        }) {
            let knob = if domain.elc_floor_khz.is_known() { "uncore.elc.floor" } else { "uncore.min" };
            let file = if domain.elc_floor_khz.is_known() { "elc_floor_freq_khz" } else { "min_freq_khz" };
            let is_all = domain.initial_max_khz.get() == Some(max);
            let to = if is_all { "max".into() } else { khz_word(*max) };
            let path = format!("{ROOT}/{}/{file}", domain.name);
            finding = finding.step(knob, Some(domain.name.clone()), to, path, "the clock stays up while idle");
        }
        finding
            .remedy(
                "To try it: raise the lower limit to the upper one on one socket and compare. On Xeon 6 raise the \
                    efficiency floor instead.",
                "Several watts to some tens of watts per socket when idle.",
                "wakewatt inspect uncore; wakewatt measure wakeup before and after",
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
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
        assert!(
            check(800_000, 2_400_000, 2_400_000)
                .starts_with("yes note unknown: the uncore clock of package_00_die_00 may fall")
        );
        assert!(
            check(800_000, 1_200_000, 2_400_000)
                .starts_with("yes risk predicted: package_00_die_00 is limited to 1.2ghz")
        );
        assert!(check(2_400_000, 2_400_000, 2_400_000).starts_with("no"));
        assert!(ask(&UncoreWindow, "").starts_with("cannot tell"));
    }
}
