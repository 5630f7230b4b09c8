//! The power management of one PCI device's link: ASPM states and runtime suspend.
//!
//! `device/link/{l0s,l1,l1_1,l1_2}_aspm`, `clkpm` (Documentation/ABI/testing/sysfs-bus-pci, kernel 5.5 and later; needs
//! CONFIG_PCIEASPM) and `device/power/control` (`on` = never suspended, `auto` = may suspend). A link in L1.2 takes
//! tens of microseconds to wake, which looks like a slow CPU. Used by the `network` and `storage` topics.

use crate::fact::{Fact, fact, parse};
use crate::sheet::{Cell, Sheet};
use crate::source::Source;
use serde::Serialize;
use wakewatt_words::say;

/// Link states of one device that the kernel may use now.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PcieLink {
    /// May the link rest in L0s, which takes microseconds to leave?
    pub is_l0s_on: Fact<bool>,
    /// L1: a few microseconds.
    pub is_l1_on: Fact<bool>,
    /// May the link rest in the L1.1 sub-state?
    pub is_l1_1_on: Fact<bool>,
    /// L1.2 sub-state: tens of microseconds.
    pub is_l1_2_on: Fact<bool>,
    /// The device may be suspended while the machine runs.
    pub is_runtime_suspend_on: Fact<bool>,
}

/// The link of a device that is known by its PCI address only.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AddressedLink {
    /// Its address: 0000:65:00.0.
    pub address: String,
    /// PCI class code: 0x02 in its highest byte is a network card, 0x0108 in the two highest an NVMe disk.
    pub class: Fact<u64>,
    /// Power management of the link: which states it may use, and the width and speed it runs at.
    pub link: PcieLink,
}

/// `0x010802`
fn class(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.strip_prefix("0x").ok_or_else(|| format!("{text:?} is no class code"))?;
    u64::from_str_radix(digits, 16).map_err(|e| e.to_string())
}

impl AddressedLink {
    /// A network card, an NVMe disk, or a device that does not say.
    pub fn may_serve_requests(&self) -> bool {
        self.class.get().is_none_or(|class| class >> 16 == 0x02 || class >> 8 == 0x0108)
    }
}

/// The links of all PCI devices that tell theirs, for a tree that has the devices and not the folders of network and
/// NVMe that lead to them.
pub fn addressed(src: &dyn Source) -> Vec<AddressedLink> {
    const ROOT: &str = "/sys/bus/pci/devices";
    let names = src.list(ROOT).unwrap_or_default();
    let read = |address: String| {
        let device = format!("{ROOT}/{address}");
        let link = PcieLink::read(src, &device);
        link.states_on()?;
        Some(AddressedLink { class: fact(src, &format!("{device}/class"), class), address, link })
    };
    names.into_iter().filter_map(read).collect()
}

impl PcieLink {
    /// Reads it from a device folder such as /sys/class/nvme/nvme0/device.
    pub fn read(src: &dyn Source, device: &str) -> PcieLink {
        let state = |name: &str| fact(src, &format!("{device}/link/{name}"), parse::flag);
        PcieLink {
            is_l0s_on: state("l0s_aspm"),
            is_l1_on: state("l1_aspm"),
            is_l1_1_on: state("l1_1_aspm"),
            is_l1_2_on: state("l1_2_aspm"),
            is_runtime_suspend_on: fact(src, &format!("{device}/power/control"), |text| match text.trim() {
                "auto" => Ok(true),
                "on" => Ok(false),
                _ => Err("expected on or auto".into()),
            }),
        }
    }

    /// Each link state with its name.
    pub fn states(&self) -> [(&'static str, &Fact<bool>); 4] {
        [("L0s", &self.is_l0s_on), ("L1", &self.is_l1_on), ("L1.1", &self.is_l1_1_on), ("L1.2", &self.is_l1_2_on)]
    }

    /// The link states that are on; none where no state could be read.
    pub fn states_on(&self) -> Option<Vec<&'static str>> {
        let all = self.states();
        all.iter()
            .any(|(_, f)| f.is_known())
            .then(|| all.iter().filter(|(_, f)| f.get() == Some(&true)).map(|(name, _)| *name).collect())
    }

    /// Its rows, under the device's id.
    pub fn show(&self, sheet: &mut Sheet, id: &str, label: &str) {
        match self.states_on() {
            Some(on) if on.is_empty() => sheet.say(format!("{id}.aspm"), say!("{label} ASPM"), Cell::text("off")),
            Some(on) => sheet.say(format!("{id}.aspm"), say!("{label} ASPM"), Cell::Text(on.join(" "))),
            None => sheet.fact(format!("{id}.aspm"), say!("{label} ASPM"), &self.is_l1_on, |v| Cell::Flag(*v)),
        }
        let name = say!("{label} runtime suspend");
        sheet.fact(format!("{id}.runtime_suspend"), name, &self.is_runtime_suspend_on, |v| Cell::Flag(*v));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Tree;

    #[test]
    fn unknown_is_not_off() {
        let tree = Tree::from_text("//- /d/link/l1_aspm\n1\n//- /d/link/l1_2_aspm\n0\n//- /d/power/control\nauto\n");
        let link = PcieLink::read(&tree, "/d");
        assert_eq!((link.states_on(), link.is_runtime_suspend_on.get()), (Some(vec!["L1"]), Some(&true)));
        assert_eq!(PcieLink::read(&tree, "/e").states_on(), None);
    }

    #[test]
    fn devices_by_address() {
        let device = |address: &str, class: &str| {
            let at = format!("//- /sys/bus/pci/devices/{address}");
            format!("{at}/class\n{class}\n{at}/link/l1_aspm\n1\n")
        };
        let tree = Tree::from_text(&(device("0000:01:00.0", "0x020000") + &device("0000:02:00.0", "0x030000")));
        let links = addressed(&tree);
        let shown: Vec<_> = links.iter().map(|l| (l.address.as_str(), l.may_serve_requests())).collect();
        assert_eq!(shown, [("0000:01:00.0", true), ("0000:02:00.0", false)]);
        assert!(AddressedLink::default().may_serve_requests(), "what does not say is not left out");
    }
}
