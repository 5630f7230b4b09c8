//! Does this guest poll before it halts, and for how long?
//!
//! Driver haltpoll offers POLL and halt; only together with governor haltpoll does the guest spin up to
//! `guest_halt_poll_ns` before HLT, which saves the expensive exit to the hypervisor at the price of the host's CPU
//! time (kernel documentation virt/guest-halt-polling.rst). With another governor, or with 0, it halts at once.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where};
use crate::cpuset::CpuSet;
use crate::enterable;
use crate::evidence::Evidence;
use crate::units::show_ns;
use wakewatt_words::{say, word};

const PARAMETER: &str = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";

pub(super) struct HaltpollGuest;

impl Rule for HaltpollGuest {
    fn id(&self) -> &'static str {
        "rule.haltpoll-guest"
    }
    fn question(&self) -> &'static str {
        word!("does this guest poll before it halts, and for how long?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::Guest]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let idle = &evidence.facts.idle;
        match (idle.driver.get(), idle.driver.gap()) {
            (None, Some(gap)) => return Answer::gap(gap),
            (Some(driver), _) if driver != "haltpoll" => return Answer::no(say!("the idle driver is {driver}")),
            _ => {}
        }
        let running: CpuSet = evidence.facts.cpus.running().collect();
        let spinning = enterable::spinning(&enterable::of(&evidence.facts));
        if !running.is_empty() && running.minus(&spinning).is_empty() {
            return Answer::no(word!("every idle CPU spins, and none halts"));
        }
        let governor = idle.governor.get().map_or(word!("unknown"), String::as_str);
        let polls = idle.guest_halt_poll_ns.get().copied();
        let (weight, title, cost) = match polls {
            Some(ns) if ns > 0 && governor == "haltpoll" => (
                Weight::Note,
                say!("The guest polls up to {} before it halts", show_ns(ns)),
                Cost::unknown(word!("shorter wake-ups after short pauses; the host pays with CPU time")),
            ),
            Some(0) if governor == "haltpoll" => (
                Weight::Risk,
                word!("guest_halt_poll_ns is 0: the guest halts at once and every wake-up goes through the hypervisor")
                    .to_string(),
                Cost::unknown(word!(
                    "what a halt costs here is the hypervisor's; measured by the idle experiment, see \
                        rule.deep-idle-vs-latency"
                )),
            ),
            _ => (
                Weight::Risk,
                say!(
                    "Driver haltpoll runs under governor {governor}, so polling before halt is not bounded by \
                        guest_halt_poll_ns"
                ),
                Cost::unknown(word!(
                    "how long the guest polls is left to the other governor; measured by the idle experiment, see \
                        rule.deep-idle-vs-latency"
                )),
            ),
        };
        let mut finding = Finding::new(self, weight, Confidence::Medium, title, cost)
            .on("/sys/devices/system/cpu/cpuidle/current_driver", "haltpoll")
            .on("/sys/devices/system/cpu/cpuidle/current_governor", governor)
            .on(PARAMETER, polls.map_or(word!("not readable").to_string(), show_ns));
        let available = idle.governors_available.get();
        if governor != "haltpoll" && available.is_some_and(|all| all.iter().any(|g| g == "haltpoll")) {
            let path = "/sys/devices/system/cpu/cpuidle/current_governor";
            finding = finding.step("idle.governor", None, "haltpoll", path, word!("the one that bounds the polling"));
        }
        if polls == Some(0) {
            let knob = "idle.haltpoll.guest_halt_poll_ns";
            finding = finding.step(knob, None, "200000", PARAMETER, word!("poll for up to 200us before halting"));
        }
        finding
            .remedy(
                match polls {
                    Some(ns) if ns > 0 && governor == "haltpoll" => say!(
                        "Nothing, if short pauses are what counts. A larger value in {PARAMETER} covers longer ones; what a \
                         halt costs beyond is set on the host (its idle states)."
                    ),
                    _ => say!(
                        "To wake faster after short pauses: governor haltpoll and a value such as 200000 in {PARAMETER}. What \
                         a longer sleep costs is set on the host (its idle states)."
                    ),
                },
                word!("The host spends CPU time for each pause; on a shared host that may come back as steal."),
                word!("wakewatt measure wakeup with pauses below and above the polling time"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, haltpoll, icx};
    use super::*;

    #[test]
    fn polls_or_not() {
        let governor = "//- /sys/devices/system/cpu/cpuidle/current_governor\nhaltpoll\n";
        let check = |ns: &str| ask(&HaltpollGuest, &(haltpoll() + governor + &format!("//- {PARAMETER}\n{ns}\n")));
        assert_eq!(check("200000"), "yes note unknown: the guest polls up to 200us before it halts");
        assert!(check("0").starts_with("yes risk unknown: guest_halt_poll_ns is 0"));
        assert!(ask(&HaltpollGuest, &haltpoll()).contains("runs under governor menu"));
        assert!(ask(&HaltpollGuest, &icx()).starts_with("no"));
        assert!(ask(&HaltpollGuest, "").starts_with("cannot tell"));
    }
}
