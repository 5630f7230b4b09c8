//! How slow an NVMe disk may be to wake: `/sys/class/nvme/nvmeN/power/pm_qos_latency_tolerance_us`.
//!
//! The disk's own power states (APST); the kernel tells the disk to use those whose exit fits the tolerance. `any`: every
//! state; `auto`: no wish of user space, so the default of nvme_core counts (100ms unless default_ps_max_latency_us says
//! otherwise); `off` (0us): none. There only if the disk has APST. Waking from the deepest costs up to tens of
//! milliseconds, for a watt or two per disk. Sources: ABI/testing/sysfs-devices-power, drivers/nvme/host/core.c.

use super::one_file;
use crate::knob::{About, Host, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::folder::Folder;
use wakewatt_core::units::{parse_ns, show_ns};
use wakewatt_words::say;

/// `nvme.apst`.
pub struct NvmeApst;

const CLASS: &str = "/sys/class/nvme";

const ABOUT: About = About {
    id: "nvme.apst",
    title: "wake-up latency tolerated of an NVMe disk",
    unit: "any, auto, off, or a time with its unit (100us)",
    scope: Scope::Device,
    io_scope: Scope::Device,
    stage: Stage::Devices,
    reversible: Reversible::Exactly,
    price: Price {
        up: "an idle disk draws less; its first request waits longer",
        down: "a watt or two more per idle disk, quicker first request",
    },
    risk: "the disk is reconfigured by a command; firmware of some disks has faults in deep states",
    overlaps: &["runtime suspend"],
    moves: &[],
    source: "Documentation/ABI/testing/sysfs-devices-power (pm_qos_latency_tolerance_us); drivers/nvme/host/core.c",
};

impl Knob for NvmeApst {
    fn about(&self) -> &'static About {
        &ABOUT
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        let class = Folder::list(host.source, CLASS);
        let site = |disk: &String| {
            let path = format!("{CLASS}/{disk}/power/pm_qos_latency_tolerance_us");
            one_file::find(host, ABOUT.id, disk.clone(), CpuSet::new(), path, Valid::Text(ABOUT.unit.into()))
        };
        let sites: Vec<Site> = class.names().iter().filter_map(site).collect();
        if sites.is_empty() {
            return Err(say!("{CLASS}/*/power/pm_qos_latency_tolerance_us: no NVMe disk with power states of its own"));
        }
        Ok(sites)
    }
    fn encode(&self, _: &Host<'_>, site: &Site, word: &str) -> Result<String, String> {
        match word.trim() {
            "any" | "auto" => Ok(word.trim().into()),
            "off" => Ok("0".into()),
            time => match parse_ns(time).map(|ns| ns / 1000) {
                Ok(us @ 1..=2_147_483_646) => Ok(us.to_string()),
                Ok(_) => Err(say!("{}: {word:?} is not 1us to half an hour; off is a word", site.name)),
                Err(why) => Err(say!("{}: {why}; or say any, auto or off", site.name)),
            },
        }
    }
    fn decode(&self, _: &Site, text: &str) -> String {
        match text.parse::<u64>() {
            Ok(0) => "off".into(),
            Ok(us) => show_ns(us.saturating_mul(1000)),
            Err(_) => text.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn words_and_times() {
        let tree = Tree::from_text(&format!("//- {CLASS}/nvme0/power/pm_qos_latency_tolerance_us\n100000\n"));
        let host = Host::read(&tree);
        let site = NvmeApst.sites(&host).unwrap().remove(0);
        assert_eq!(site.place, "nvme0");
        let said =
            ["any", "auto", "off", "1.5ms", "0us", "5"].map(|w| NvmeApst.encode(&host, &site, w).unwrap_or_default());
        assert_eq!(said, ["any", "auto", "0", "1500", "", ""]);
        assert_eq!(["0", "100000", "any"].map(|t| NvmeApst.decode(&site, t)), ["off", "100ms", "any"]);
    }
}
