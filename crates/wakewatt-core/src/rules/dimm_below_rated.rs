//! Do memory modules run below what they are rated for?
//!
//! Case K1: modules rated 2933 MT/s ran at 2100, and 196 busy cores waited. SMBIOS type 17, "Speed" against "Configured
//! Memory Speed" (`dmidecode -t memory`; root only). Exception: the rating may exceed what the processor or two modules
//! per channel allow, so this is a question to the machine's manual, not yet a fault.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where, percent};
use crate::evidence::Evidence;
use crate::facts::dmi::TABLE;
use wakewatt_words::{say, word};

pub(super) struct DimmBelowRated;

impl Rule for DimmBelowRated {
    fn id(&self) -> &'static str {
        "rule.dimm-below-rated"
    }
    fn question(&self) -> &'static str {
        word!("do memory modules run below what they are rated for?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::BareMetal]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let dmi = &evidence.facts.dimms;
        if let Some(gap) = dmi.dimms.gap() {
            return Answer::gap(gap);
        }
        let known = dmi.populated().filter(|d| d.is_below_rated().is_some()).count();
        if known == 0 {
            return Answer::cannot_tell(
                word!("the firmware does not say both speeds of any module"),
                word!("dmidecode -t memory, or the BMC"),
            );
        }
        let slow: Vec<_> = dmi.below_rated().collect();
        let speed = |d: &&&crate::facts::dmi::Dimm| {
            Some((d.configured_mts? as f64 / d.rated_mts? as f64, d.configured_mts?, d.rated_mts?))
        };
        let Some((share, configured, rated)) = slow.iter().filter_map(|d| speed(&d)).min_by(|a, b| a.0.total_cmp(&b.0))
        else {
            return Answer::no(say!("all {known} modules with known speeds run as rated"));
        };
        let title = say!(
            "{} of {known} memory modules run below their rating, the worst at {configured} of {rated} MT/s",
            slow.len()
        );
        let cost = Cost::predicted_ratio(
            1.0 - share,
            say!("up to {} of memory bandwidth, computed from the two speeds; not measured", percent(1.0 - share)),
        );
        let mut finding = Finding::new(self, Weight::Risk, Confidence::Medium, title, cost);
        for dimm in slow {
            let slot = dimm.slot.as_deref().unwrap_or(word!("a slot without a name"));
            let speeds = say!("{} MT/s, rated {}", dimm.configured_mts.unwrap_or(0), dimm.rated_mts.unwrap_or(0));
            finding = finding.on(format!("{TABLE} type 17, {slot}"), speeds);
        }
        finding
            .remedy(
                word!(
                    "Look up which speed this processor and this population allow. If it is more, set the memory \
                    frequency in the BIOS to automatic or maximum, and look for a power-saving profile or a \
                    slower module in the same channel."
                ),
                word!("A reboot; a little more power for the memory."),
                word!("wakewatt inspect dimms after the reboot; wakewatt compare with the capture from before"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, line};
    use super::*;
    use crate::fact::Fact;
    use crate::facts::dmi::Dimm;

    fn host(configured: Option<u64>) -> Evidence {
        let dimm = Dimm {
            slot: Some("A1".into()),
            size_bytes: Some(1 << 34),
            rated_mts: Some(2933),
            configured_mts: configured,
            ..Dimm::default()
        };
        let mut host = Evidence::default();
        host.facts.dimms.dimms = Fact::Known(vec![dimm]);
        host
    }

    #[test]
    fn case_k1() {
        let said = line(&DimmBelowRated, &host(Some(2100)));
        assert_eq!(
            said,
            "yes risk predicted: 1 of 1 memory modules run below their rating, the worst at 2100 of 2933 mt/s"
        );
        assert!(line(&DimmBelowRated, &host(Some(2933))).starts_with("no"));
        assert!(line(&DimmBelowRated, &host(None)).starts_with("cannot tell"));
        assert!(ask(&DimmBelowRated, "").starts_with("cannot tell"));
    }
}
