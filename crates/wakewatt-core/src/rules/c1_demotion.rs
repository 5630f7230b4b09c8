//! May the firmware turn a request for C6 into C1?
//!
//! `cpuidle/intel_c1_demotion` (kernels after 6.12, Sapphire Rapids and later). With demotion on, the
//! kernel's counters say C6 while the core was in C1: usage and time are what was asked, not what was reached. It
//! lowers latency and costs watts. Older kernels have no file; MSR 0xE2 bits 26 and 28 say the same there.

use super::exclusions::Assertion;
use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where, extent};
use crate::budget::DEEP_NS;
use crate::cpuset::CpuSet;
use crate::enterable::{self, Instead, State, WhenIdle};
use crate::evidence::Evidence;
use crate::facts::idle::IdleState;
use wakewatt_words::{say, word};

pub(super) struct C1Demotion;

impl Rule for C1Demotion {
    fn id(&self) -> &'static str {
        "rule.c1-demotion"
    }
    fn question(&self) -> &'static str {
        word!("may the firmware turn a request for C6 into C1?")
    }
    fn is_choice(&self) -> bool {
        true
    }
    fn costs_latency(&self) -> bool {
        false
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::Intel, Where::BareMetal]
    }
    fn takes_for_granted(&self, evidence: &Evidence) -> Vec<Assertion> {
        // From the switches themselves, by another way than the answer: CPUs on which a state that takes long to leave is on,
        // and no limit of the CPU's own leaves it out.
        let (idle, qos) = (&evidence.facts.idle, &evidence.facts.qos);
        let deep = |state: &&IdleState| state.exit_latency_ns.known().any(|(_, ns)| *ns >= DEEP_NS);
        let on = idle.states.iter().filter(deep).map(|state| state.is_disabled.cpus_where(|is_off| !is_off));
        let limited = qos.per_cpu.cpus_where(|limit| !limit.allows(DEEP_NS));
        vec![Assertion::EntersDeep(on.fold(CpuSet::new(), |all, cpus| all.union(&cpus)).minus(&limited))]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let demotion = &evidence.facts.idle.is_c1_demotion_on;
        let register = evidence.facts.msr.field("pkg_cst_config", "c1_demotion").filter(|bits| !bits.is_unknown());
        let set = register.as_ref().map(|bits| (bits, bits.cpus_where(|bit| *bit != 0)));
        // The file tells of one CPU; where the registers of others say otherwise, they count.
        let is_as_filed =
            |on: &bool| {
                set.as_ref().is_none_or(|(bits, cpus)| {
                    if *on { extent::read_on(bits).minus(cpus).is_empty() } else { cpus.is_empty() }
                })
            };
        let (path, says, on) = match (demotion.get().copied().filter(is_as_filed), set) {
            (Some(true), _) => ("/sys/devices/system/cpu/cpuidle/intel_c1_demotion", "1".to_string(), None),
            (Some(false), _) => return Answer::no(word!("intel_c1_demotion is off")),
            (None, Some((_, cpus))) if cpus.is_empty() => return Answer::no(word!("bit 26 of MSR 0xe2 is clear")),
            (None, Some((bits, cpus))) => {
                let reach = extent::of_register(&evidence.facts, bits, &cpus);
                let is_uneven = !extent::read_on(bits).minus(&cpus).is_empty();
                ("MSR 0xe2 bit 26", say!("set on {reach}"), Some((reach, is_uneven)))
            }
            (None, None) => {
                let because = demotion.gap().map_or(word!("nothing tells").to_string(), ToString::to_string);
                return Answer::cannot_tell(
                    because,
                    word!(
                        "the file needs a kernel after 6.12 and an Intel server; as root, MSR 0xe2 bit 26 tells on \
                        older ones"
                    ),
                );
            }
        };
        let all = enterable::of(&evidence.facts);
        // A state that the core cannot reach because of its other thread is not demoted.
        let is_demoted = |state: &&State| state.instead.contains(&Instead::C1) && !state.is_in_vain();
        let open = all.iter().flat_map(|group| group.open()).filter(is_demoted);
        let deep = open.max_by_key(|state| state.row.exit_latency_ns).map(|state| state.row.name.as_str());
        if all.iter().any(|group| group.when_idle != WhenIdle::Unknown) && deep.is_none() {
            return Answer::no(word!("C1 demotion is on, and no CPU can enter a state that it would demote"));
        }
        let cost = Cost::unknown(word!(
            "the counters of deep states overstate them: some of that sleep was in C1; watts not saved, latency not \
                paid"
        ));
        let deep = deep.unwrap_or(word!("a deep idle state"));
        let is_deep = |state: &State| state.row.exit_latency_ns.is_some_and(|ns| ns >= DEEP_NS);
        let asking = all.iter().filter(|group| group.open().any(|state| is_deep(state) && !state.is_in_vain()));
        let asking = asking.fold(CpuSet::new(), |cpus, group| cpus.union(&group.cpus));
        let n_others = evidence.facts.cpus.running().filter(|cpu| !asking.contains(*cpu)).count();
        let title = match &on {
            // One file for the whole machine.
            None => say!("C1 demotion is on: the hardware may turn a request for {deep} into C1"),
            Some((reach, _)) => {
                say!("C1 demotion is on for {reach}: the hardware may turn a request for {deep} into C1")
            }
        };
        let title = match n_others > 0 && !asking.is_empty() {
            true => say!("{title}; such requests come from {}", evidence.facts.cpus.extent(&asking)),
            false => title,
        };
        let weight = if on.is_some_and(|(_, is_uneven)| is_uneven) { Weight::Problem } else { Weight::Note };
        // Firmware's lock of the register covers its lower half only (SDM volume 4), not these bits.
        let knob = if demotion.get().is_some() { "idle.c1_demotion" } else { "msr.c1_demotion" };
        Finding::new(self, weight, Confidence::High, title, cost)
            .on(path, says)
            .step(knob, None, "off", path, word!("the state that the kernel asks for"))
            .remedy(
                word!("Nothing, if latency matters. To save power on a mostly idle machine, switch it off and measure watts."),
                word!("Switched off: deeper sleep, slower wake-ups."),
                word!("wakewatt measure wakeup with long and short pauses"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, icx};
    use super::*;

    #[test]
    fn on_off_unknown() {
        let file = "//- /sys/devices/system/cpu/cpuidle/intel_c1_demotion\n";
        assert!(ask(&C1Demotion, &format!("{file}1\n")).starts_with("yes note"));
        assert!(ask(&C1Demotion, &format!("{file}0\n")).starts_with("no"));
        let host =
            "//- /sys/devices/system/cpu/online\n0\n//- /sys/devices/system/cpu/cpu0/topology/physical_package_id\n0\n
             //- /sys/devices/system/cpu/modalias\ncpu:type:x86,ven0000fam0006mod0055:feature:\n";
        let sleeps = icx() + "//- /sys/devices/system/cpu/modalias\ncpu:type:x86,ven0000fam0006mod0055:feature:\n";
        let register = "//- msr 0xe2 cpu0 4000000\n//- msr 0xe2 cpu1 4000000\n";
        assert!(ask(&C1Demotion, &(sleeps.clone() + register)).starts_with("yes note"));
        let shallow: String =
            (0..2).map(|cpu| format!("//- /sys/devices/system/cpu/cpu{cpu}/cpuidle/state3/disable\n1\n")).collect();
        let said = ask(&C1Demotion, &(sleeps + register + &shallow));
        assert!(said.starts_with("no: C1 demotion is on, and no CPU can enter"), "{said}");
        assert!(ask(&C1Demotion, &format!("{host}//- msr 0xe2 cpu0 4000000\n")).starts_with("no"), "no idle driver");
        assert!(ask(&C1Demotion, "").starts_with("cannot tell"));
        let maker = |line: &str| ask(&C1Demotion, &format!("//- /proc/cpuinfo\nprocessor : 0\n{line}\n"));
        assert!(maker("CPU implementer : 0x41").starts_with("does not apply: not an Intel"));
        assert!(maker("vendor_id : AuthenticAMD").starts_with("does not apply"));
        assert!(maker("vendor_id : GenuineIntel").starts_with("cannot tell"));
    }
}
