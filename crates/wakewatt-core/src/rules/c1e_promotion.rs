//! Is C1 entered as C1E, so that its claim is too low?
//!
//! Bit 1 of MSR 0x1FC turns every request for C1 into C1E, which halves the clock and the voltage first. intel_idle clears
//! it where its own table has a C1E state; where the table comes from ACPI, or has no such state (Xeon Phi), the firmware's
//! bit stands, and the kernel still claims 1us or 2us for "C1". A budget that resolves to C1 then buys C1E. Sources: Intel SDM
//! volume 4, MSR_POWER_CTL; intel/pepc, "C-state Namespaces".

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where, extent, on_cpus};
use crate::budget::is_plain_c1;
use crate::enterable;
use crate::evidence::Evidence;
use crate::facts::idle::IdleState;
use crate::units::show_ns;
use wakewatt_words::{say, word};

pub(super) struct C1ePromotion;

impl Rule for C1ePromotion {
    fn id(&self) -> &'static str {
        "rule.c1e-promotion"
    }
    fn question(&self) -> &'static str {
        word!("is C1 entered as C1E, so that its claim is too low?")
    }
    fn is_choice(&self) -> bool {
        true
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::Intel, Where::BareMetal]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let facts = &evidence.facts;
        let Some(bit) = facts.msr.field("power_ctl", "c1e").filter(|bit| !bit.is_unknown()) else {
            return Answer::cannot_tell(
                word!("MSR 0x1fc was not read"),
                word!("as root with the module msr: wakewatt doctor"),
            );
        };
        let cpus = bit.cpus_where(|bit| *bit != 0);
        if cpus.is_empty() {
            return Answer::no(word!("bit 1 of MSR 0x1fc is clear: C1 is C1"));
        }
        let all = enterable::of(facts);
        let has_c1 = facts.idle.states.iter().any(|s| is_plain_c1(&s.label()));
        let is_open = |s: &&IdleState| is_plain_c1(&s.label()) && !enterable::cpus_that_enter(&all, s.index).is_empty();
        let Some(state) = facts.idle.states.iter().find(is_open) else {
            if has_c1 {
                return Answer::no(word!("bit 1 of MSR 0x1fc is set, and no CPU can enter C1"));
            }
            return Answer::cannot_tell(
                say!("bit 1 of MSR 0x1fc is set on {cpus}, and no idle state C1 is listed", cpus = cpus.named()),
                "wakewatt inspect idle",
            );
        };
        let claim = state.exit_latency_ns.known().map(|(_, ns)| *ns).min();
        let claims = claim.map_or(String::new(), |ns| say!(", which claims {}", show_ns(ns)));
        let reach = extent::of_register(facts, &bit, &cpus);
        let title = say!("{}{claims}, is entered as C1E on {cpus}", state.label(), cpus = reach);
        let is_uneven = !extent::read_on(&bit).minus(&cpus).is_empty();
        let weight = if is_uneven { Weight::Problem } else { Weight::Note };
        let cost = Cost::unknown(word!("leaving C1E takes longer than the claim of C1; by how much is not measured"));
        let on = on_cpus(facts, &cpus);
        Finding::new(self, weight, Confidence::High, title, cost)
            .on("MSR 0x1fc bit 1", say!("set on {cpus}", cpus = cpus.named()))
            .on(format!("/sys/devices/system/cpu/cpu*/cpuidle/state{}/latency", state.index), claim.map_or("?".into(), show_ns))
            .step("msr.c1e_promotion", on, "off", "MSR 0x1fc bit 1", word!("C1 where the kernel asks for C1"))
            .remedy(
                word!("Read every budget that ends in C1 as C1E. Where the last microseconds matter, switch the promotion off: in \
                    the BIOS (C1E, Enhanced Halt State), or with the register until the next reset."),
                word!("More watts on every idle CPU; how many is not known here."),
                word!("wakewatt measure idle, and wakewatt measure wakeup before and after"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, idle, plan};
    use super::*;

    #[test]
    fn the_bit_makes_c1_into_c1e() {
        let host = |states: &[(&str, u64, u64)], value: &str| {
            idle("intel_idle", states) + &format!("//- msr 0x1fc cpu0 {value}\n//- msr 0x1fc cpu1 {value}\n")
        };
        let phi = [("POLL", 0, 0), ("C1", 1, 2), ("C6", 120, 500)];
        assert_eq!(
            ask(&C1ePromotion, &host(&phi, "a24005f")),
            "yes note unknown: c1, which claims 1us, is entered as c1e on all 2 cpus"
        );
        assert_eq!(plan(&C1ePromotion, &host(&phi, "a24005f")), "--set msr.c1e_promotion=off");
        assert!(ask(&C1ePromotion, &host(&phi, "a24005d")).starts_with("no: bit 1"));
        let acpi = [("POLL", 0, 0), ("C1_ACPI", 1, 1), ("C2_ACPI", 127, 381)];
        assert!(ask(&C1ePromotion, &host(&acpi, "e4005b")).contains("c1_acpi, which claims 1us, is entered as c1e"));
        let only = [("POLL", 0, 0), ("C1E", 2, 4)];
        assert!(ask(&C1ePromotion, &host(&only, "5b")).starts_with("cannot tell: bit 1 of MSR 0x1fc is set"));
        assert!(ask(&C1ePromotion, "").starts_with("cannot tell"));
    }
}
