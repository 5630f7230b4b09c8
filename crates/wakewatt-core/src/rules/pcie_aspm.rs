//! May the PCI link of a network card or an NVMe disk sleep?
//!
//! ASPM L1 costs microseconds, L1.2 tens of microseconds to leave (`device/link/*_aspm`, `pcie_aspm/parameters/policy`;
//! docs/knobs/devices.md), a look-alike of a slow CPU. A recording may hold the PCI devices and not the folders that say
//! which of them is what: then their classes do, and one without a class is named by its address. `pcie_aspm=off` on the command line leaves the firmware's
//! setting as it is.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight};
use crate::evidence::Evidence;
use wakewatt_words::{say, word};

pub(super) struct PcieAspm;

impl Rule for PcieAspm {
    fn id(&self) -> &'static str {
        "rule.pcie-aspm"
    }
    fn question(&self) -> &'static str {
        word!("may the PCI link of a network card or an NVMe disk sleep?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let facts = &evidence.facts;
        let links = (facts
            .network
            .interfaces
            .iter()
            .filter(|i| i.is_physical)
            .map(|i| (format!("/sys/class/net/{}/device/link", i.name), &i.pcie)))
        .chain(facts.storage.nvme.iter().map(|n| (format!("/sys/class/nvme/{}/device/link", n.name), &n.pcie)))
        .chain(
            (facts.storage.links.iter().filter(|l| l.may_serve_requests()))
                .map(|l| (format!("/sys/bus/pci/devices/{}/link", l.address), &l.link)),
        );
        let known: Vec<_> = links.filter_map(|(path, link)| Some((path, link.states_on()?))).collect();
        let asleep: Vec<_> = known.iter().filter(|(_, on)| !on.is_empty()).collect();
        let policy = facts.storage.aspm_policy.get();
        if asleep.is_empty() {
            return match (known.is_empty(), facts.storage.aspm_policy.gap(), policy) {
                (false, _, _) => Answer::no(word!("no link state is on for any network card or NVMe disk")),
                (true, Some(gap), _) => Answer::gap(gap),
                (true, None, Some(policy)) => Answer::cannot_tell(
                    say!("policy {policy}, but no device tells its link states"),
                    word!("lspci -vv as root shows LnkCtl"),
                ),
                (true, None, None) => Answer::no(word!("no link")),
            };
        }
        let is_deep = asleep.iter().any(|(_, on)| on.contains(&"L1.2"));
        let weight = if is_deep { Weight::Risk } else { Weight::Note };
        let words: Vec<String> = asleep
            .iter()
            .map(|(path, on)| {
                format!(
                    "{} ({})",
                    path.split('/').nth_back(if path.starts_with("/sys/bus") { 1 } else { 2 }).unwrap_or(path),
                    on.join(" ")
                )
            })
            .collect();
        let cost = Cost::unknown(if is_deep {
            word!("tens of microseconds for a packet or request after a pause, as a rule; not measured")
        } else {
            word!("a few microseconds for a packet or request after a pause, as a rule; not measured")
        });
        let mut finding =
            Finding::new(self, weight, Confidence::Medium, say!("PCI links may sleep: {}", words.join(", ")), cost);
        for (path, on) in &asleep {
            finding = finding.on(path.clone(), say!("on: {}", on.join(" ")));
        }
        if let Some(policy) = policy {
            finding = finding.on("/sys/module/pcie_aspm/parameters/policy", policy);
        }
        let is_kept_off = facts.boot.argument("pcie_aspm") == Some("off");
        if policy.is_some_and(|p| p != "performance") && !is_kept_off {
            let path = "/sys/module/pcie_aspm/parameters/policy";
            finding = finding.step("pcie.aspm", None, "performance", path, word!("keep the links awake"));
        }
        finding
            .remedy(
                if is_kept_off {
                    word!("Booted with pcie_aspm=off the kernel leaves the links as the firmware set them: switch ASPM off \
                        in the firmware, or boot without the argument and set the policy.")
                } else {
                    word!("Set the policy to performance, which keeps every link awake; or switch off the link states of \
                        the devices that matter alone (wakewatt tune knobs pcie.link). It ends with the reboot.")
                },
                word!("A few watts per device at most."),
                word!("wakewatt measure network before and after"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn links() {
        let at = "//- /sys/class/nvme/nvme0";
        let check = |l1: u8, l12: u8| {
            ask(
                &PcieAspm,
                &format!("{at}/model\nX\n{at}/device/link/l1_aspm\n{l1}\n{at}/device/link/l1_2_aspm\n{l12}\n"),
            )
        };
        assert_eq!(check(1, 1), "yes risk unknown: pci links may sleep: nvme0 (l1 l1.2)");
        assert!(check(1, 0).starts_with("yes note"));
        assert!(check(0, 0).starts_with("no"));
        assert!(ask(&PcieAspm, "").starts_with("cannot tell"));
        let at = "//- /sys/bus/pci/devices/0000:65:00.0";
        let policy = "//- /sys/module/pcie_aspm/parameters/policy\n[default] performance\n";
        let bare =
            |class: &str, l1: u8| ask(&PcieAspm, &format!("{policy}{at}/class\n{class}\n{at}/link/l1_aspm\n{l1}\n"));
        assert_eq!(bare("0x010802", 1), "yes note unknown: pci links may sleep: 0000:65:00.0 (l1)");
        assert!(bare("0x020000", 0).starts_with("no: no link state is on"));
        assert!(bare("0x060400", 1).starts_with("cannot tell: policy default"), "a bridge serves no request");
    }
}
