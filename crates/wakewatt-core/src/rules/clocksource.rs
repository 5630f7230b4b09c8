//! Is the clock read from a slow device?
//!
//! With hpet or acpi_pm every reading of the clock is a system call and a device access of about a microsecond, instead
//! of some 20 ns; the kernel falls back to them when it distrusts the TSC. kvm-clock, the Hyper-V page and Arm's
//! counter are read in user space and are fine. Kernel documentation timers/timekeeping.rst.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight};
use crate::evidence::Evidence;
use wakewatt_words::{say, word};

const PATH: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

pub(super) struct Clocksource;

impl Rule for Clocksource {
    fn id(&self) -> &'static str {
        "rule.clocksource"
    }
    fn question(&self) -> &'static str {
        word!("is the clock read from a slow device?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let clock = match (evidence.facts.kernel.clocksource.get(), evidence.facts.kernel.clocksource.gap()) {
            (Some(clock), _) => clock.as_str(),
            (None, Some(gap)) => return Answer::gap(gap),
            (None, None) => return Answer::no(word!("not known")),
        };
        let (weight, why) = match clock {
            "hpet" | "acpi_pm" | "pit" => {
                (Weight::Problem, word!("every clock reading is a system call and a device access"))
            }
            "jiffies" | "refined-jiffies" => (Weight::Problem, word!("the clock only moves with the tick")),
            "xen" => (Weight::Risk, word!("on many kernels every clock reading is a system call")),
            _ => return Answer::no(say!("the clocksource is {clock}")),
        };
        let cost = Cost::unknown(say!(
            "{why}: about a microsecond each instead of tens of nanoseconds, as a rule; not measured"
        ));
        let mut finding = Finding::new(self, weight, Confidence::High, say!("The clocksource is {clock}: {why}"), cost)
            .on(PATH, clock);
        if let Some(all) = evidence.facts.kernel.clocksources_available.get() {
            finding = finding.on(PATH.replace("current", "available"), all.join(" "));
        }
        finding
            .remedy(
                word!(
                    "Look in the kernel log for \"Marking clocksource 'tsc' as unstable\" and why. If tsc is listed as \
                    available, it can be written to current_clocksource; if the TSC really is unsynchronised, \
                    update the firmware instead of forcing it."
                ),
                word!("A TSC that is forced against the kernel's doubt can run backwards."),
                word!("wakewatt inspect kernel; wakewatt measure wakeup prints the cost of a clock reading"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn clocks() {
        let check = |clock: &str| ask(&Clocksource, &format!("//- {PATH}\n{clock}\n"));
        assert!(check("hpet").starts_with("yes problem unknown: the clocksource is hpet"));
        assert_eq!(check("kvm-clock"), "no: the clocksource is kvm-clock");
        assert!(ask(&Clocksource, "").starts_with("cannot tell"));
    }
}
