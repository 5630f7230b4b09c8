//! The policy of PCIe link power states (ASPM): `/sys/module/pcie_aspm/parameters/policy`.
//!
//! The file shows all policies and marks the one in use: `[default] performance powersave powersupersave`. default is what
//! firmware set up; performance switches link states off; powersave allows L0s and L1, powersupersave the L1 sub-states
//! too, whose exit takes tens of microseconds and looks like a slow CPU. The policy resets every link, so the switches of
//! single devices (`pcie.link`) come after it. With the boot parameter pcie_aspm=off the kernel leaves firmware's setting
//! and refuses writes (EPERM); it does so too where firmware forbids ASPM. Source: admin-guide/kernel-parameters.txt.

use super::one_file;
use crate::knob::{About, Host, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use wakewatt_core::fact::parse;
use wakewatt_words::{say, word};

/// `pcie.aspm`.
pub struct PcieAspm;

const FILE: &str = "/sys/module/pcie_aspm/parameters/policy";

const ABOUT: About = About {
    id: "pcie.aspm",
    title: "power states of PCIe links",
    unit: "default, performance, powersave, powersupersave",
    scope: Scope::Machine,
    io_scope: Scope::Device,
    stage: Stage::Devices,
    reversible: Reversible::Exactly,
    price: Price {
        up: "fewer watts per device; a link takes microseconds to wake",
        down: "up to a few watts per device, no link wake-up",
    },
    risk: "some devices hang or drop off the bus in L1 sub-states; EPERM with pcie_aspm=off or where firmware forbids it",
    overlaps: &["ASPM"],
    moves: &["pcie.link"],
    source: "Documentation/admin-guide/kernel-parameters.txt (pcie_aspm); drivers/pci/pcie/aspm.c",
};

impl Knob for PcieAspm {
    fn about(&self) -> &'static About {
        &ABOUT
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        let text = host.text(FILE).unwrap_or_default();
        let words = text.split_whitespace().map(|w| w.trim_matches(['[', ']']).to_string()).collect();
        let mut sites =
            one_file::machine(host, ABOUT.id, FILE, Valid::Words(words), word!("a kernel without CONFIG_PCIEASPM"))?;
        for site in &mut sites {
            // The marked word alone is what can be written back.
            site.now = site.now.take().and_then(|text| parse::chosen(&text).ok());
            site.path = format!("choice:{FILE}");
            let is_off = host.facts.boot.cmdline.get().is_some_and(|line| line.value("pcie_aspm") == Some("off"));
            site.refusal = is_off.then(|| say!("booted with pcie_aspm=off: the kernel keeps its hands off the links"));
        }
        Ok(sites)
    }
    fn rank(&self, _: &str, text: &str, _: &str) -> Option<u64> {
        // What `default` is, firmware says.
        ["performance", "powersave", "powersupersave"].iter().position(|word| *word == text).map(|at| at as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn the_marked_word_is_now() {
        let tree = Tree::from_text(&format!("//- {FILE}\ndefault [performance] powersave powersupersave \n"));
        let host = Host::read(&tree);
        let site = PcieAspm.sites(&host).unwrap().remove(0);
        assert_eq!((site.now.as_deref(), site.path.starts_with("choice:/sys")), (Some("performance"), true));
        assert_eq!(PcieAspm.encode(&host, &site, "powersave").unwrap(), "powersave");
        let off = Tree::from_text(&format!("//- {FILE}\n[default] performance\n//- /proc/cmdline\nro pcie_aspm=off\n"));
        assert!(PcieAspm.sites(&Host::read(&off)).unwrap()[0].refusal.is_some());
    }
}
