//! Was the processor throttled from outside (PROCHOT)?
//!
//! A board or power supply can pull PROCHOT and hold the clock at its minimum, while temperatures look fine; a stuck
//! signal is a classic. MSR 0x1b1 bits 2 (now) and 3 (since the log was cleared), 0x64f bits 0 and 16 on servers (Intel
//! SDM volume 4). Registers need root; the log bits are sticky and may be old.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where, extent};
use crate::evidence::Evidence;
use wakewatt_words::{say, word};

/// (register, field, address and bit, in force now)
const BITS: &[(&str, &str, &str, bool)] = &[
    ("package_therm_status", "prochot", "MSR 0x1b1 bit 2", true),
    ("core_limit_reasons", "prochot", "MSR 0x64f bit 0", true),
    ("core_limit_reasons_old", "prochot", "MSR 0x690 bit 0", true),
    ("package_therm_status", "prochot_log", "MSR 0x1b1 bit 3", false),
    ("core_limit_reasons", "prochot_log", "MSR 0x64f bit 16", false),
    ("core_limit_reasons_old", "prochot_log", "MSR 0x690 bit 16", false),
];

pub(super) struct Prochot;

impl Rule for Prochot {
    fn id(&self) -> &'static str {
        "rule.prochot"
    }
    fn question(&self) -> &'static str {
        word!("was the processor throttled by heat or from outside (PROCHOT)?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::Intel, Where::BareMetal]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let msr = &evidence.facts.msr;
        let read: Vec<_> =
            BITS.iter().filter_map(|b| Some((b, msr.field(b.0, b.1)?))).filter(|(_, f)| !f.is_unknown()).collect();
        if read.is_empty() {
            let gap = BITS.iter().filter_map(|b| msr.value(b.0)).find_map(|v| v.gaps().next());
            return match gap {
                Some((_, gap)) => Answer::gap(gap),
                None => Answer::cannot_tell(
                    word!("the registers were not read"),
                    word!("run wakewatt doctor as root on an Intel machine; elsewhere read the BMC's log"),
                ),
            };
        }
        let Some((bit, field)) = read.iter().find(|(_, f)| !f.cpus_where(|v| *v != 0).is_empty()) else {
            return Answer::no(word!("no PROCHOT bit is set, now or in the log"));
        };
        let reach = extent::of_register(&evidence.facts, field, &field.cpus_where(|v| *v != 0));
        let (_, _, address, is_now) = **bit;
        let (weight, when) = if is_now {
            (Weight::Problem, word!("is active now"))
        } else {
            (Weight::Risk, word!("was active since its log was last cleared"))
        };
        let cost = Cost::unknown(word!("while it is active the clock is held far down, often at its minimum"));
        Finding::new(self, weight, Confidence::High, say!("PROCHOT {when}, seen on {reach}"), cost)
            .on(address, say!("set on {reach}"))
            .remedy(
                word!(
                    "If temperatures are fine, something outside pulls it: power supply, voltage regulator, BMC power \
                    cap. Read the BMC's event log."
                ),
                word!("Perhaps hardware."),
                word!("wakewatt inspect msr thermal under load"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn bits() {
        let host =
            "//- /sys/devices/system/cpu/online\n0\n//- /sys/devices/system/cpu/cpu0/topology/physical_package_id\n0\n
            //- /sys/devices/system/cpu/modalias\ncpu:type:x86,ven0000fam0006mod0055:feature:\n";
        let check = |value: &str| ask(&Prochot, &format!("{host}//- msr 0x1b1 cpu0 {value}\n"));
        assert!(check("4").starts_with("yes problem unknown: prochot is active now"), "{}", check("4"));
        assert!(check("8").starts_with("yes risk"));
        assert!(check("0").starts_with("no"));
        assert!(ask(&Prochot, "").starts_with("cannot tell"));
    }
}
