//! Link power states of one PCIe device: `/sys/bus/pci/devices/ADDRESS/link/{l0s,l1,…}_aspm` and `clkpm`.
//!
//! `pcie.link.l1_aspm@0000:3b:00.0`. Files are there for states that both ends of the link can do (kernel 5.5 and later).
//! L1.1 and L1.2 need L1: the kernel switches L1 on with them, and them off with it. A change of the policy (`pcie.aspm`)
//! or a reset of the device sets all of them anew. Source: ABI/testing/sysfs-bus-pci.

use super::one_file;
use crate::knob::{About, Host, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::folder::Folder;
use wakewatt_words::{say, word};

/// `pcie.link`.
pub struct PcieLink;

const DEVICES: &str = "/sys/bus/pci/devices";
/// In the order of waking cost.
const STATES: [&str; 7] = ["clkpm", "l0s_aspm", "l1_aspm", "l1_1_pcipm", "l1_1_aspm", "l1_2_pcipm", "l1_2_aspm"];

const ABOUT: About = About {
    id: "pcie.link",
    title: "link power state of one PCIe device",
    unit: "on, off",
    scope: Scope::Device,
    io_scope: Scope::Device,
    stage: Stage::Devices,
    reversible: Reversible::Exactly,
    price: Price { up: "L1 costs microseconds per wake-up, L1.2 tens of them", down: "the link draws more" },
    risk: "one state switches others of the same link along; some devices do not survive L1 sub-states",
    overlaps: &["ASPM"],
    moves: &["pcie.link"],
    source: "Documentation/ABI/testing/sysfs-bus-pci (link/)",
};

impl Knob for PcieLink {
    fn about(&self) -> &'static About {
        &ABOUT
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        let devices = Folder::list(host.source, DEVICES);
        let mut sites = Vec::new();
        for device in devices.names() {
            let link = Folder::list(host.source, format!("{DEVICES}/{device}/link"));
            for state in STATES.iter().filter(|state| link.has(state)) {
                let (name, path) = (format!("{}.{state}", ABOUT.id), format!("{}/{state}", link.path));
                sites.extend(one_file::find(host, &name, device.clone(), CpuSet::new(), path, Valid::one_is_on()));
            }
        }
        if sites.is_empty() {
            let none = || word!("no link has a state to switch").to_string();
            let why = devices.gap().map_or_else(none, |gap| gap.reason);
            return Err(say!("{DEVICES}/*/link: {why} (kernel 5.5 with CONFIG_PCIEASPM, and firmware that allows it)"));
        }
        Ok(sites)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn each_state_of_each_link() {
        let at = format!("//- {DEVICES}/0000:3b:00.0/link");
        let tree =
            Tree::from_text(&format!("{at}/l1_aspm\n1\n{at}/clkpm\n0\n//- {DEVICES}/0000:00:00.0/vendor\n0x8086\n"));
        let host = Host::read(&tree);
        let sites = PcieLink.sites(&host).unwrap();
        let shown: Vec<String> = sites.iter().map(|s| format!("{}@{}", s.name, s.place)).collect();
        assert_eq!(shown, ["pcie.link.clkpm@0000:3b:00.0", "pcie.link.l1_aspm@0000:3b:00.0"]);
        assert_eq!(PcieLink.encode(&host, &sites[1], "off").unwrap(), "0");
        assert!(PcieLink.sites(&Host::read(&Tree::default())).is_err());
    }
}
