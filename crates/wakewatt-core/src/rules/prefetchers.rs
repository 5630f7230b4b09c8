//! Did firmware switch hardware prefetchers off?
//!
//! Bits of MSR 0x1A4 switch a core's prefetchers off one by one: the L2 streamer, its fetch of the adjacent line, the L1
//! (DCU) streamer and the L1 prefetcher by instruction address. BIOS profiles for low latency or for some databases do so.
//! Work that streams loses bandwidth; random work may gain some. Which bit is which differs: Xeon Phi has two, in the
//! other order, and Atom cores have the first and the third. On a model that is not listed nothing is claimed. Sources:
//! Intel SDM volume 4 (MSR_MISC_FEATURE_CONTROL); intel/pepc, `MiscFeatureControl.py`.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where, extent};
use crate::evidence::Evidence;
use wakewatt_words::{say, word};

pub(super) struct Prefetchers;

const L2: &str = "L2 streamer";
const ADJACENT: &str = "L2 adjacent line";
const DCU: &str = "L1 streamer";
const BY_ADDRESS: &str = "L1 by instruction address";

/// Models of family 6, and the bit and the prefetcher behind each.
type Bits = (&'static [u64], &'static [(u32, &'static str)]);

const MODELS: &[Bits] = &[
    (&[0x57, 0x85], &[(0, DCU), (1, L2)]),
    (&[0x5f, 0x86, 0xaf, 0xb6], &[(0, L2), (2, DCU)]),
    (
        &[
            0x2d, 0x3e, 0x3f, 0x4f, 0x56, 0x55, 0x6a, 0x6c, 0x8f, 0xcf, 0xad, 0xae, // servers
            0x3c, 0x45, 0x46, 0x3d, 0x47, 0x4e, 0x5e, 0x8e, 0x9e, 0xa5, 0xa6, 0x66, 0x7d, 0x7e, 0x8c, 0x8d, 0xa7,
        ],
        &[(0, L2), (1, ADJACENT), (2, DCU), (3, BY_ADDRESS)],
    ),
];

impl Rule for Prefetchers {
    fn id(&self) -> &'static str {
        "rule.prefetchers"
    }
    fn question(&self) -> &'static str {
        word!("did firmware switch hardware prefetchers off?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::Intel, Where::BareMetal]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let facts = &evidence.facts;
        let Some(register) = facts.msr.value("misc_feature_control").filter(|value| !value.is_unknown()) else {
            return Answer::cannot_tell(
                word!("MSR 0x1a4 was not read"),
                word!("as root with the module msr: wakewatt doctor"),
            );
        };
        let model = facts.topology.processor().filter(|p| p.is_intel() && p.family == Some(6)).and_then(|p| p.model);
        let Some((_, bits)) = MODELS.iter().find(|(models, _)| model.is_some_and(|model| models.contains(&model)))
        else {
            return Answer::cannot_tell(
                word!("what the bits of MSR 0x1a4 mean on this processor is not known here"),
                word!("Intel SDM volume 4, MSR_MISC_FEATURE_CONTROL of this model"),
            );
        };
        let read = extent::read_on(register);
        let mut is_uneven = false;
        let off: Vec<String> = bits
            .iter()
            .filter_map(|(bit, name)| {
                let cpus = register.cpus_where(|value| value >> bit & 1 == 1);
                is_uneven |= !cpus.is_empty() && !read.minus(&cpus).is_empty();
                let reach = extent::of_register(facts, register, &cpus);
                (!cpus.is_empty()).then(|| say!("{name} on {cpus}", cpus = reach))
            })
            .collect();
        if off.is_empty() {
            return Answer::no(word!("every prefetcher of MSR 0x1a4 is on"));
        }
        let cost = Cost::unknown(word!("less bandwidth for work that streams; random accesses may gain; not measured"));
        let weight = if is_uneven { Weight::Problem } else { Weight::Note };
        Finding::new(self, weight, Confidence::High, say!("Prefetchers are off: {}", off.join(", ")), cost)
            .on("MSR 0x1a4", off.join(", "))
            .remedy(
                word!("If nobody chose it, switch them on again in the BIOS (Hardware Prefetcher, Adjacent Cache Line Prefetch, \
                    DCU Streamer, DCU IP). If somebody did, measure the work both ways."),
                word!("A reboot; random accesses may get a little slower."),
                word!("wakewatt measure memory before and after"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn bits_by_model() {
        let check = |model: u32, value: &str| {
            let info = format!("processor : 0\nvendor_id : GenuineIntel\ncpu family : 6\nmodel : {model}\n");
            let online = "//- /sys/devices/system/cpu/online\n0\n";
            ask(&Prefetchers, &format!("{online}//- /proc/cpuinfo\n{info}//- msr 0x1a4 cpu0 {value}\n"))
        };
        assert!(check(0x55, "0").starts_with("no: every prefetcher"));
        assert_eq!(
            check(0x55, "3"),
            "yes note unknown: prefetchers are off: l2 streamer on cpu 0, l2 adjacent line on cpu 0"
        );
        let two = "//- /sys/devices/system/cpu/online\n0-1\n//- msr 0x1a4 cpu0 1\n//- msr 0x1a4 cpu1 0\n";
        let info = |n: u32| format!("processor : {n}\nvendor_id : GenuineIntel\ncpu family : 6\nmodel : 85\n\n");
        assert_eq!(
            ask(&Prefetchers, &format!("{two}//- /proc/cpuinfo\n{}{}", info(0), info(1))),
            "yes problem unknown: prefetchers are off: l2 streamer on cpu 0 only"
        );
        assert!(check(0x57, "1").contains("l1 streamer on cpu 0"), "the other order on Xeon Phi");
        assert!(check(0x5f, "2").starts_with("no"), "no prefetcher behind that bit");
        assert!(check(0xdd, "1").starts_with("cannot tell: what the bits"));
        assert!(ask(&Prefetchers, "").starts_with("cannot tell"));
    }
}
