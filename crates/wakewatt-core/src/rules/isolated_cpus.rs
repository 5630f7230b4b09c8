//! Are CPUs kept from the scheduler, or without a tick?
//!
//! `isolcpus` CPUs are not load-balanced: work does not move there by itself, and work put there does not move away.
//! `nohz_full` stops the tick for a single task and makes every entry to the kernel dearer (kernel documentation
//! timers/no_hz.rst). Worth knowing when some CPUs idle and others queue.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight};
use crate::evidence::Evidence;
use wakewatt_words::{say, word};

pub(super) struct IsolatedCpus;

impl Rule for IsolatedCpus {
    fn id(&self) -> &'static str {
        "rule.isolated-cpus"
    }
    fn question(&self) -> &'static str {
        word!("are CPUs kept from the scheduler, or without a tick?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let boot = &evidence.facts.boot;
        let all = [("isolated", &boot.isolated), ("nohz_full", &boot.nohz_full)];
        let set: Vec<_> =
            all.iter().filter_map(|(name, f)| Some((*name, f.get()?))).filter(|(_, s)| !s.is_empty()).collect();
        if set.is_empty() {
            return match boot.isolated.gap() {
                Some(gap) => Answer::gap(gap),
                None => Answer::no(word!("no CPU is isolated or tickless")),
            };
        }
        let words: Vec<String> =
            set.iter().map(|(name, cpus)| say!("{name} on {cpus}", cpus = evidence.facts.cpus.extent(cpus))).collect();
        let cost = Cost::unknown(word!(
            "work does not spread to isolated CPUs; entries to the kernel are dearer on tickless ones"
        ));
        let mut finding =
            Finding::new(self, Weight::Note, Confidence::High, say!("Set aside at boot: {}", words.join(", ")), cost);
        for (name, cpus) in set {
            finding = finding.on(format!("/sys/devices/system/cpu/{name}"), cpus);
        }
        finding
            .remedy(
                word!(
                    "Keep it if work is pinned there. If nothing is, those CPUs are lost to everything else: take \
                    isolcpus and nohz_full off the command line."
                ),
                word!("A reboot; pinned work is disturbed more."),
                word!("wakewatt inspect boot load; wakewatt measure wakeup on such a CPU and on another"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn set_aside() {
        let check = |isolated: &str, full: &str| {
            ask(
                &IsolatedCpus,
                &format!(
                    "//- /sys/devices/system/cpu/isolated\n{isolated}\n//- /sys/devices/system/cpu/nohz_full\n{full}\n"
                ),
            )
        };
        assert_eq!(check("2-3", "(null)"), "yes note unknown: set aside at boot: isolated on cpus 2-3");
        assert!(check("", "(null)").starts_with("no"));
        assert!(ask(&IsolatedCpus, "").starts_with("cannot tell"));
    }
}
