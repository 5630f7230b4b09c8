//! Is there no idle driver?
//!
//! `cpuidle/current_driver` says `none`, or the kernel has no cpuidle at all: it runs the architecture's own idle routine
//! (HLT or MWAIT C1 on x86), counts nothing, and ignores every latency limit (docs/events.md, docs/knobs/idle.md). Common in
//! guests; on metal a boot argument, a missing module, or a kernel built without it. A recording that has other files of
//! the CPUs and no idle file may also have been made without them, so there the finding is no more than a hint and says so
//! ([`crate::facts::idle::absence`]).

use super::exclusions::Assertion;
use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where, joined};
use crate::enterable::{self, Enterable, WhenIdle};
use crate::evidence::Evidence;
use crate::facts::idle::absence::NoStates;
use wakewatt_words::{say, word};

fn title() -> &'static str {
    word!("No idle driver: the CPUs halt uncounted, and latency limits have no effect")
}

pub(super) struct NoIdleDriver;

impl Rule for NoIdleDriver {
    fn id(&self) -> &'static str {
        "rule.no-idle-driver"
    }
    fn question(&self) -> &'static str {
        word!("is there no idle driver?")
    }
    fn takes_for_granted(&self, evidence: &Evidence) -> Vec<Assertion> {
        let halts = enterable::of(&evidence.facts).into_iter().filter(|group| group.when_idle == WhenIdle::Halts);
        halts.map(|group| Assertion::Halts(group.cpus)).collect()
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let (idle, virt) = (&evidence.facts.idle, &evidence.facts.virt);
        let Some(why) = idle.no_states_because().or_else(|| idle.no_limit_acts_because()) else {
            return match (idle.driver.get(), idle.driver.gap()) {
                (Some(driver), _) => Answer::no(say!("the idle driver is {driver}")),
                (None, Some(gap)) => Answer::gap(gap),
                (None, None) => Answer::no(word!("some CPU has idle states")),
            };
        };
        let all = enterable::of(&evidence.facts);
        if let Some(cause) = all.iter().filter(|group| group.states.is_empty()).find_map(Enterable::spins) {
            return Answer::no(say!("idle CPUs do not halt but spin: {}; see rule.polling-by-accident", cause.words()));
        }
        let is_metal = virt.is_guest() == Some(false);
        let is_intel = Where::Intel.holds(&evidence.facts) != Some(false);
        let is_x86 = Where::X86.holds(&evidence.facts) != Some(false);
        // The module is KVM's, for x86.
        let is_kvm = virt.is_guest() == Some(true) && is_x86 && virt.hypervisors.first().is_some_and(|h| h.is_kvm());
        let (weight, confidence, title) = match why {
            NoStates::NotRecorded => (
                Weight::Note,
                Confidence::Low,
                word!(
                    "No CPU of this recording has an idle state: no idle driver, or the recording left the folders out"
                ),
            ),
            _ if is_metal => (Weight::Risk, Confidence::High, title()),
            _ => (Weight::Note, Confidence::High, title()),
        };
        let path = match why {
            NoStates::NoDriver => "/sys/devices/system/cpu/cpuidle/current_driver",
            _ => "/sys/devices/system/cpu/cpu*/cpuidle",
        };
        let says = match why {
            NoStates::NoDriver => "none",
            NoStates::NoFolder => word!("no such folder, on any CPU"),
            NoStates::NotRecorded => word!("not recorded, of any CPU"),
        };
        let cost = Cost::unknown(word!(
            "idle states cannot be seen, limited or chosen; what halting costs is only known by measuring"
        ));
        Finding::new(self, weight, confidence, title, cost).on(path, says)
        .remedy(
            match off_by(evidence) {
                Some(argument) if why != NoStates::NotRecorded => {
                    say!("Booted with {argument}: take it off the command line and reboot, if nobody needs it.")
                }
                _ if why == NoStates::NotRecorded => joined(
                    word!("Look on the machine itself: wakewatt inspect idle, or capture it whole."),
                    what_to_look_for(is_intel, is_x86),
                ),
                _ if is_kvm => word!(
                    "In a guest this is common: the hypervisor decides. On KVM (x86) the guest module cpuidle-haltpoll gives \
                     a driver, and polling before halt; it stays out unless the host promises CPUs of the guest's own \
                     (KVM_HINTS_REALTIME) or it is told cpuidle_haltpoll.force=1."
                )
                .into(),
                _ if is_metal => joined(
                    what_to_look_for(is_intel, is_x86),
                    word!("A new processor may need a newer kernel."),
                ),
                _ if virt.is_guest() == Some(true) => {
                    word!("In a guest this is common: the hypervisor decides, and its own idle states are set on the host.")
                        .into()
                }
                _ => what_to_look_for(is_intel, is_x86).into(),
            },
            match is_kvm {
                true => word!("With cpuidle-haltpoll idle CPUs poll before they halt: faster wake-ups, and the host pays with CPU time."),
                false => word!("With a driver the CPUs may sleep deeper than HLT: fewer watts, slower wake-ups."),
            },
            word!("wakewatt inspect idle boot; wakewatt measure wakeup"),
        )
        .yes()
    }
}

/// What keeps an idle driver out on such a processor.
fn what_to_look_for(is_intel: bool, is_x86: bool) -> &'static str {
    match (is_intel, is_x86) {
        (true, _) => word!(
            "Look for idle=, cpuidle.off or intel_idle.max_cstate=0 on the command line, and for the modules intel_idle and \
             processor in the kernel log."
        ),
        (false, true) => {
            word!("Look for idle= or cpuidle.off on the command line, and for the module processor in the kernel log.")
        }
        (false, false) => word!(
            "Look for cpuidle.off on the command line; the states come from the device tree or from ACPI's _LPI, and the \
             kernel log says what it made of them."
        ),
    }
}

/// The boot argument that leaves the machine without an idle driver, if it is on the command line.
fn off_by(evidence: &Evidence) -> Option<&'static str> {
    let is = |name: &str, value: &str| evidence.facts.boot.argument(name) == Some(value);
    [("idle", "halt", "idle=halt"), ("cpuidle.off", "1", "cpuidle.off=1")]
        .into_iter()
        .find_map(|(name, value, word)| is(name, value).then_some(word))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, icx, recorded};
    use super::*;

    const CPUS: &str = "//- /sys/devices/system/cpu/online\n0-1\n//- /sys/devices/system/cpu/present\n0-1\n";

    #[test]
    fn none_is_said_by_the_kernel() {
        let none = "//- /sys/devices/system/cpu/cpuidle/current_driver\nnone\n";
        assert!(ask(&NoIdleDriver, none).starts_with("yes note unknown: no idle driver"));
        assert!(ask(&NoIdleDriver, &format!("{none}//- /proc/cpuinfo\nflags : fpu\n")).starts_with("yes risk"));
        assert!(ask(&NoIdleDriver, &icx()).starts_with("no"));
        assert!(ask(&NoIdleDriver, "").starts_with("cannot tell"));
    }

    #[test]
    fn a_kernel_without_cpuidle_and_a_folder_that_stays_closed() {
        let metal = format!("{CPUS}//- /proc/cpuinfo\nflags : fpu\n");
        assert!(ask(&NoIdleDriver, &metal).starts_with("yes risk unknown: no idle driver"));
        let closed = format!("{metal}//- /sys/devices/system/cpu/cpuidle/current_driver!denied\n");
        assert!(ask(&NoIdleDriver, &closed).starts_with("cannot tell"));
        let hidden = "//- /proc/cpuinfo\nprocessor\t: 0\nflags\t\t: fpu\n\n";
        assert!(ask(&NoIdleDriver, hidden).starts_with("cannot tell"), "a container without sysfs");
    }

    #[test]
    fn a_recording_without_it_is_a_hint_and_says_so() {
        let text = include_str!("../../../../fixtures/hosts/cwf0.host");
        let said = recorded(&NoIdleDriver, text);
        assert!(said.starts_with("yes note unknown: no cpu of this recording"), "{said}");
    }
}
