//! Is this a guest, and what can only its host change?
//!
//! In a guest the cost of a halt is an exit to the hypervisor and back; clock speed, the host's idle states and which
//! physical CPU runs are not the guest's to set (docs/events.md). Some clouds do give C-state control, so
//! nothing is concluded about idle states: reading them does that.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where};
use crate::evidence::Evidence;
use crate::facts::virt::Clue;
use wakewatt_words::{say, word};

pub(super) struct GuestHypervisor;

impl Rule for GuestHypervisor {
    fn id(&self) -> &'static str {
        "rule.guest-hypervisor"
    }
    fn question(&self) -> &'static str {
        word!("is this a guest, and what can only its host change?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::Guest]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let virt = &evidence.facts.virt;
        match virt.is_guest() {
            None => virt.has_hypervisor_flag.gap().map_or_else(|| Answer::no(word!("no hypervisor")), Answer::gap),
            Some(_) => {
                let clue = virt.hypervisors.first();
                if let Some(clue) = clue.filter(|clue| clue.is_control_domain()) {
                    return self.control_domain(clue);
                }
                let name = clue.map_or(word!("an unknown hypervisor"), |c| c.name.as_str());
                let cost = Cost::unknown(word!(
                    "part of every wake-up is the hypervisor's; the idle experiment measures the whole"
                ));
                // A limit is read by cpuidle's governors only.
                let inside = match evidence.facts.idle.no_limit_acts_because() {
                    None => word!("In the guest: a latency limit, polling before halt, interrupts and quotas."),
                    Some(_) => word!(
                        "In the guest: an idle driver where there is one (rule.no-idle-driver), interrupts and quotas."
                    ),
                };
                let mut finding = Finding::new(
                    self,
                    Weight::Note,
                    Confidence::High,
                    say!("This is a guest of {name}: part of every wake-up is the hypervisor's"),
                    cost,
                );
                // Arm's processors have no such flag: there the clue alone tells.
                if virt.has_hypervisor_flag.get() == Some(&true) {
                    finding = finding.on("/proc/cpuinfo", "flag hypervisor");
                }
                if let Some(clue) = clue {
                    finding = finding.on(clue.path.clone(), clue.shown());
                }
                finding
                    .remedy(
                        say!(
                            "Only the host can change: its idle states and latency limits, {}which physical CPU a virtual one \
                             runs on, the clock speed, and steal. {}",
                            if clue.is_some_and(Clue::is_kvm) { word!("halt polling (kvm.halt_poll_ns), ") } else { "" },
                            inside
                        ),
                        word!("What a guest gets for itself, CPUs or polling, costs the host CPU time."),
                        word!("wakewatt measure wakeup in the guest, before and after a change on the host"),
                    )
                    .yes()
            }
        }
    }
}

impl GuestHypervisor {
    /// Xen's dom0: idle states and clocks are Xen's, and are set from here, by other tools.
    fn control_domain(&self, clue: &Clue) -> Answer {
        let title = word!("This is Xen's control domain (dom0): Xen decides about idle states and clocks").to_string();
        let cost =
            Cost::unknown(word!("what Linux shows of idle states and clocks here is not what the hardware does"));
        Finding::new(self, Weight::Note, Confidence::High, title, cost)
            .on(clue.path.clone(), clue.shown())
            .remedy(
                word!(
                    "Look and set with Xen's tools: xenpm get-cpuidle-states, xenpm get-cpufreq-para, xenpm set-max-cstate, xenpm \
                     set-scaling-governor; cpuidle= and cpufreq= on Xen's own command line."
                ),
                word!("More watts when idle, for all domains."),
                word!("xenpm start 10, which counts idle states and clocks; wakewatt measure wakeup before and after"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn guests() {
        let check = |flags: &str| {
            ask(
                &GuestHypervisor,
                &format!("//- /proc/cpuinfo\nflags : {flags}\n//- /sys/class/dmi/id/sys_vendor\nQEMU\n"),
            )
        };
        assert!(check("fpu hypervisor").starts_with("yes note unknown: this is a guest of kvm/qemu"));
        assert!(check("fpu").starts_with("does not apply"));
        let dom0 = "//- /proc/cpuinfo\nflags : fpu hypervisor\n//- /sys/hypervisor/type\nxen\n
                    //- /proc/xen/capabilities\ncontrol_d\n";
        assert!(ask(&GuestHypervisor, dom0).contains("xen's control domain (dom0)"));
        assert!(ask(&GuestHypervisor, "").starts_with("cannot tell"));
        let arm = "//- /proc/cpuinfo\nFeatures : fp\n//- /sys/class/dmi/id/sys_vendor\nQEMU\n";
        let Answer::Yes(finding) = GuestHypervisor.check(&super::super::testing::evidence(arm)) else {
            panic!("a guest by its firmware alone");
        };
        assert!(finding.evidence.iter().all(|basis| basis.path != "/proc/cpuinfo"), "there is no flag to rest on");
        assert!(finding.remedy.contains("a latency limit, polling"), "{}", finding.remedy);
        let idle_none =
            "//- /sys/devices/system/cpu/online\n0\n//- /sys/devices/system/cpu/cpuidle/current_driver\nnone\n";
        let Answer::Yes(finding) =
            GuestHypervisor.check(&super::super::testing::evidence(&format!("{arm}{idle_none}")))
        else {
            panic!("still a guest");
        };
        assert!(
            finding.remedy.ends_with("an idle driver where there is one (rule.no-idle-driver), interrupts and quotas."),
            "no limit is read"
        );
    }
}
