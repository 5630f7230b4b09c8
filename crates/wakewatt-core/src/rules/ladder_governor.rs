//! Is the ladder governor in charge?
//!
//! ladder climbs one state at a time and judges by the last sleep only; it was made for periodic ticks and outranks
//! menu only when the kernel was booted with nohz=off (docs/governors.md: a sleep shorter than the exit
//! latency even counts as a long one). On a tickless server it is nearly always a leftover.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight};
use crate::evidence::Evidence;
use crate::facts::kernel::KernelVersion;

const PATH: &str = "/sys/devices/system/cpu/cpuidle/current_governor";

pub(super) struct LadderGovernor;

impl Rule for LadderGovernor {
    fn id(&self) -> &'static str {
        "rule.ladder-governor"
    }
    fn question(&self) -> &'static str {
        "is the ladder idle governor in charge?"
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let idle = &evidence.facts.idle;
        let governor = match (idle.governor.get(), idle.governor.gap()) {
            (Some(governor), _) => governor,
            (None, Some(gap)) => return Answer::gap(gap),
            (None, None) => return Answer::no("no governor"),
        };
        if governor != "ladder" {
            return Answer::no(format!("the idle governor is {governor}"));
        }
        let others = idle.governors_available.get().cloned().unwrap_or_default();
        let better = ["menu", "teo"].into_iter().find(|g| others.iter().any(|o| o == g));
        let cost =
            Cost::unknown("ladder misjudges sleep lengths on a tickless kernel: late and wrong depths; not measured");
        let mut finding = Finding::new(
            self,
            Weight::Risk,
            Confidence::Medium,
            "The idle governor is ladder, made for kernels with a periodic tick",
            cost,
        )
        .on(PATH, governor);
        // Older kernels choose at boot only; they have the file under another name.
        let is_writable = evidence.facts.kernel.version.get().is_some_and(|v| *v >= KernelVersion::new(5, 8, 0));
        match better {
            Some(name) if is_writable => {
                finding = finding.step("idle.governor", None, name, PATH, "made for a tick that stops");
            }
            Some(name) => finding = finding.boot(format!("cpuidle.governor={name}"), "made for a tick that stops"),
            None => {}
        }
        let what = match better {
            Some(name) => format!(
                "Write {name} to {PATH} as root (kernel 5.8 and later); cpuidle.governor={name} at boot makes it last."
            ),
            None => {
                "The kernel offers no other governor here (see available_governors); boot without nohz=off.".to_string()
            }
        };
        finding
            .remedy(
                what,
                "Other depths are chosen on every CPU; watts and latency both move.",
                "wakewatt measure wakeup before and after",
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, icx};
    use super::*;

    #[test]
    fn which_governor() {
        let ladder =
            format!("//- {PATH}\nladder\n//- /sys/devices/system/cpu/cpuidle/available_governors\nladder menu\n");
        assert!(ask(&LadderGovernor, &(icx() + &ladder)).starts_with("yes risk"));
        assert_eq!(ask(&LadderGovernor, &icx()), "no: the idle governor is menu");
        assert!(ask(&LadderGovernor, "").starts_with("cannot tell"));
    }
}
