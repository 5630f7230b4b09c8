//! Does firmware keep the packages from sleeping?
//!
//! The package C-state limit (MSR 0xE2, its code by model in [`crate::facts::msr::package_limit`]) is the firmware's; bit 15
//! locks it until reset. Below PC6 an idle package keeps its mesh, memory path and links awake: wake-ups and DMA never
//! wait for it, and an idle socket burns what they need. The limit is also the cause of a number that looks like a
//! measurement: intel_idle gives C6 of Skylake and Cascade Lake 92us where the package stays awake and 133us where it may
//! sleep, on Sapphire and Emerald Rapids 190 and 290us (docs/knobs/idle.md). Sources: Intel SDM volume 4;
//! intel/pepc, "Xeon C6P and C6SP".

use super::exclusions::Assertion;
use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where, extent};
use crate::evidence::Evidence;
use crate::facts::Snapshot;
use crate::units::show_ns;
use wakewatt_words::{say, word};

pub(super) struct PackageLimit;

/// Claims of C6 by model: with an awake package, with one that may sleep, in nanoseconds.
const CLAIMS: &[(&[u64], u64, u64)] = &[(&[0x55], 92_000, 133_000), (&[0x8f, 0xcf], 190_000, 290_000)];

/// Does intel_idle claim less for C6 on this model where the package stays awake?
pub(super) fn is_claim_lowered(model: u64) -> bool {
    CLAIMS.iter().any(|(models, ..)| models.contains(&model))
}

/// The claim that follows from an awake package, and what it would be else.
fn lowered_claim(facts: &Snapshot) -> Option<(u64, u64)> {
    let model = facts.topology.processor().filter(|p| p.is_intel() && p.family == Some(6))?.model?;
    let (_, awake, asleep) = CLAIMS.iter().find(|(models, ..)| models.contains(&model))?;
    let is_native = facts.idle.driver.get().is_some_and(|driver| driver == "intel_idle");
    let c6 = facts.idle.states.iter().find(|s| s.label() == "C6")?;
    (is_native && c6.exit_latency_ns.uniform() == Some(awake)).then_some((*awake, *asleep))
}

impl Rule for PackageLimit {
    fn id(&self) -> &'static str {
        "rule.package-limit"
    }
    fn question(&self) -> &'static str {
        word!("does firmware keep the packages from sleeping?")
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
        let limits = &evidence.facts.msr.package_limit;
        let is_kept = !limits.is_unknown() && limits.known().all(|(_, limit)| limit.allows_pc6() == Some(false));
        is_kept.then_some(Assertion::PackageStaysAwake).into_iter().collect()
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let facts = &evidence.facts;
        let limit = &facts.msr.package_limit;
        if limit.is_unknown() {
            return match facts.msr.value("pkg_cst_config") {
                Some(register) if !register.is_unknown() => Answer::cannot_tell(
                    word!("how this model codes the limit in MSR 0xe2 is not known here, or it has none"),
                    word!("Intel SDM volume 4, MSR_PKG_CST_CONFIG_CONTROL of this model"),
                ),
                _ => Answer::cannot_tell(
                    word!("MSR 0xe2 was not read"),
                    word!("as root with the module msr: wakewatt doctor"),
                ),
            };
        }
        let awake = limit.cpus_where(|l| l.allows_pc6() == Some(false));
        let words: Vec<String> = limit
            .known()
            .map(|(cpus, l)| say!("{l} on {cpus}", cpus = extent::of_register(facts, limit, cpus)))
            .collect();
        let locked = facts.msr.is_set("pkg_cst_config", "lock");
        if awake.is_empty() {
            if limit.known().any(|(_, l)| l.allows_pc6().is_none()) {
                return Answer::cannot_tell(
                    say!("the limit is {}", words.join(", ")),
                    word!("Intel SDM volume 4, MSR_PKG_CST_CONFIG_CONTROL of this model"),
                );
            }
            return Answer::no(say!("the limit is {}", words.join(", ")));
        }
        let how = match locked {
            Some(true) => word!(", and locks it until reset"),
            Some(false) => word!(", not locked: by firmware, or set since"),
            None => "",
        };
        let reach = extent::of_register(facts, limit, &awake);
        let (weight, title) = match limit.uniform() {
            Some(deepest) => (
                Weight::Note,
                say!(
                    "{}: the deepest package C-state is {deepest} on {reach}{how}",
                    match (deepest.is_awake(), locked) {
                        (true, Some(false)) => word!("The package limit keeps the packages awake"),
                        (false, Some(false)) => word!("The package limit keeps the packages from deep sleep"),
                        (true, _) => word!("Firmware keeps the packages awake"),
                        (false, _) => word!("Firmware keeps the packages from deep sleep"),
                    }
                ),
            ),
            None => (Weight::Problem, say!("The package C-state limit differs between CPUs: {}", words.join(", "))),
        };
        let title = match lowered_claim(facts) {
            Some((awake, _)) => say!("{title}; that is why C6 claims {}", show_ns(awake)),
            None => title,
        };
        let price = lowered_claim(facts).map_or(String::new(), |(awake, asleep)| {
            say!(
                " The driver then claims {} for C6 and not {}, so latency limits between the two leave C6 out.",
                show_ns(asleep),
                show_ns(awake)
            )
        });
        let price = say!("Allowed: slower wake-ups and slower DMA after pauses.{price}");
        let cost = Cost::unknown(word!(
            "no latency; an idle package keeps what its cores share (caches, memory path, links) awake: watts, not measured"
        ));
        let mut finding = Finding::new(self, weight, Confidence::High, title, cost).on("MSR 0xe2", words.join(", "));
        if let Some(is_locked) = locked {
            finding = finding.on("MSR 0xe2 bit 15", if is_locked { word!("locked") } else { word!("not locked") });
        }
        if let Some((awake, asleep)) = lowered_claim(facts) {
            let says = say!(
                "C6 claims {}: the driver's number for a package that stays awake ({} where it may sleep)",
                show_ns(awake),
                show_ns(asleep)
            );
            finding = finding.on("/sys/devices/system/cpu/cpu*/cpuidle/state*/latency", says);
        }
        finding
            .remedy(
                if locked == Some(true) {
                    word!("Nothing, if latency matters. To save power while idle, allow a deeper package C-state in the BIOS \
                        (Package C State: C6); the register refuses until then.")
                } else {
                    word!("Nothing, if latency matters. To save power while idle, allow a deeper package C-state in the BIOS \
                        (Package C State: C6), or until the next reset with the knob msr.package_limit.")
                },
                price,
                word!("wakewatt inspect msr idle power, and wakewatt measure network with pauses before and after"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, evidence, idle};
    use super::*;

    /// Two CPUs of this model with this register.
    fn host(model: u32, register: &str) -> String {
        let cpu = |n: u32| {
            format!("processor : {n}\nvendor_id : GenuineIntel\ncpu family : 6\nmodel : {model}\nphysical id : 0\n\n")
        };
        let (a, b) = (cpu(0), cpu(1));
        format!("//- /proc/cpuinfo\n{a}{b}//- msr 0xe2 cpu0 {register}\n//- msr 0xe2 cpu1 {register}\n")
    }

    #[test]
    fn a_locked_limit_is_the_cause_of_the_claim() {
        let states = [("POLL", 0, 0), ("C1", 2, 2), ("C1E", 10, 20), ("C6", 92, 276)];
        let cascade = idle("intel_idle", &states) + &host(85, "8400");
        assert_eq!(
            ask(&PackageLimit, &cascade),
            "yes note unknown: firmware keeps the packages awake: the deepest package c-state is pc0 on all 2 cpus, and locks it until reset; that is why c6 claims 92us"
        );
        let Answer::Yes(finding) = PackageLimit.check(&evidence(&cascade)) else { panic!() };
        assert!(finding.evidence.iter().any(|b| b.says.contains("C6 claims 92us") && b.says.contains("133us")));
        assert!(finding.remedy.contains("in the BIOS") && finding.plan.is_none());
        let acpi = idle("acpi_idle", &states) + &host(85, "400");
        let Answer::Yes(finding) = PackageLimit.check(&evidence(&acpi)) else { panic!() };
        assert!(finding.title.contains("not locked") && !finding.evidence.iter().any(|b| b.says.contains("92us")));
    }

    #[test]
    fn codes_differ_between_models_and_unknown_ones_are_not_guessed() {
        let online = idle("intel_idle", &[("POLL", 0, 0), ("C1", 2, 2)]);
        let check = |model, register| ask(&PackageLimit, &(online.clone() + &host(model, register)));
        assert!(check(0x55, "8403").starts_with("no: the limit is PC6R"));
        assert!(check(0x5f, "432").contains("the deepest package c-state is pc3"), "Denverton counts another way");
        assert!(check(0x5f, "430").starts_with("no: the limit is unlimited"));
        assert!(check(0xad, "22").starts_with("no: the limit is PC6"));
        assert!(check(0x86, "0").starts_with("cannot tell: how this model codes"));
        assert!(check(0x6a, "5").starts_with("cannot tell: the limit is code 5"));
        assert!(ask(&PackageLimit, "").starts_with("cannot tell"));
        assert!(
            ask(&PackageLimit, "//- /proc/cpuinfo\nprocessor : 0\nvendor_id : AuthenticAMD\n")
                .starts_with("does not apply")
        );
    }
}
