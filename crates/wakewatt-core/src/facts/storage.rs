//! Disks: what delays a request besides the CPU's sleep.
//!
//! An NVMe disk has power states of its own (APST); the host's tolerance decides how deep it goes
//! (`power/pm_qos_latency_tolerance_us`, `nvme_core.default_ps_max_latency_us`), and leaving one costs up to tens of
//! milliseconds. The PCI link has ASPM. `rq_affinity` decides which CPU completes a request; 2 wakes the CPU that sent
//! it. Serial numbers are never read.

use super::pcie::{self, AddressedLink, PcieLink};
use super::{Cpus, Domain};
use crate::fact::{Fact, fact, parse};
use crate::sheet::{Cell, Sheet};
use crate::source::Source;
use crate::units::LatencyLimit;
use serde::Serialize;
use wakewatt_words::word;

/// Disks and their power settings.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Storage {
    /// Block devices without loop, ram, zram and device-mapper ones.
    pub disks: Vec<Disk>,
    /// The NVMe controllers.
    pub nvme: Vec<Nvme>,
    /// The kernel's default limit for NVMe power states; 0 turns them off.
    pub nvme_default_max_latency_ns: Fact<u64>,
    /// default, performance, powersave, powersupersave.
    pub aspm_policy: Fact<String>,
    /// Links of PCI devices by address, looked at only where no folder of a network card or NVMe disk is there.
    pub links: Vec<AddressedLink>,
}

/// One block device.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Disk {
    /// Name of the disk: sda, nvme0n1 …
    pub name: String,
    /// none, mq-deadline, bfq, kyber.
    pub scheduler: Fact<String>,
    /// Has spinning platters, as far as the kernel knows.
    pub is_rotational: Fact<bool>,
    /// Where requests complete: 0 anywhere, 1 in the sender's group, 2 on the sender's CPU.
    pub request_affinity: Fact<u64>,
    /// Polled queues are there.
    pub is_polled: Fact<bool>,
    /// Length of the request queue.
    pub n_requests: Fact<u64>,
}

/// One NVMe controller.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Nvme {
    /// Name of the controller: nvme0 …
    pub name: String,
    /// Model, as its maker wrote it.
    pub model: Fact<String>,
    /// live, resetting, dead …
    pub state: Fact<String>,
    /// The wake-up latency the host tolerates; poll = no power states.
    pub latency_tolerance: Fact<LatencyLimit>,
    /// Power management of its PCI Express link.
    pub pcie: PcieLink,
}

impl Domain for Storage {
    const TITLE: &'static str = "Storage";
    const HELP: &'static str = "disks: scheduler, completion affinity; NVMe power states; PCI link power states";

    fn read(src: &dyn Source, _: &Cpus) -> Storage {
        let is_disk = |n: &&String| !["loop", "ram", "zram", "dm-", "md"].iter().any(|skip| n.starts_with(skip));
        let is_controller = |n: &&String| {
            n.strip_prefix("nvme").is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit()))
        };
        let disks = src.list("/sys/block").unwrap_or_default();
        let controllers = src.list("/sys/class/nvme").unwrap_or_default();
        Storage {
            disks: disks.iter().filter(is_disk).map(|name| read_disk(src, name)).collect(),
            nvme: controllers.iter().filter(is_controller).map(|name| read_nvme(src, name)).collect(),
            nvme_default_max_latency_ns: fact(
                src,
                "/sys/module/nvme_core/parameters/default_ps_max_latency_us",
                parse::us_to_ns,
            ),
            links: if controllers.is_empty() && src.list("/sys/class/net").unwrap_or_default().is_empty() {
                pcie::addressed(src)
            } else {
                Vec::new()
            },
            aspm_policy: fact(src, "/sys/module/pcie_aspm/parameters/policy", parse::chosen),
        }
    }

    fn show(&self, sheet: &mut Sheet) {
        sheet.fact("storage.aspm_policy", word!("PCI link power policy (ASPM)"), &self.aspm_policy, |v| Cell::text(v));
        let label = word!("NVMe default latency limit (APST)");
        sheet.fact("storage.nvme_max_latency", label, &self.nvme_default_max_latency_ns, |v| Cell::Ns(*v));
        for device in &self.links {
            device.link.show(sheet, &format!("storage.{}", device.address), &device.address);
        }
        for disk in &self.disks {
            let id = |what: &str| format!("storage.{}.{what}", disk.name);
            let label = |what: &str| format!("{} {what}", disk.name);
            sheet.fact(id("scheduler"), label(word!("scheduler")), &disk.scheduler, |v| Cell::text(v));
            sheet.fact(id("rotational"), label(word!("rotational")), &disk.is_rotational, |v| Cell::Flag(*v));
            sheet.fact(id("rq_affinity"), label(word!("completion affinity")), &disk.request_affinity, |v| {
                Cell::Count(*v)
            });
            sheet.fact(id("io_poll"), label(word!("polled queues")), &disk.is_polled, |v| Cell::Flag(*v));
            sheet.fact(id("requests"), label(word!("queue length")), &disk.n_requests, |v| Cell::Count(*v));
        }
        for nvme in &self.nvme {
            let id = |what: &str| format!("storage.{}.{what}", nvme.name);
            let label = |what: &str| format!("{} {what}", nvme.name);
            sheet.fact(id("model"), label("model"), &nvme.model, |v| Cell::text(v));
            sheet.fact(id("state"), label(word!("state")), &nvme.state, |v| Cell::text(v));
            let tolerance = label(word!("latency tolerance (APST)"));
            sheet.fact(id("latency_tolerance"), tolerance, &nvme.latency_tolerance, |v| match v {
                LatencyLimit::Poll => Cell::text("0 (no power states)"),
                other => Cell::text(other),
            });
            nvme.pcie.show(sheet, &format!("storage.{}", nvme.name), &nvme.name);
        }
    }
}

fn read_disk(src: &dyn Source, name: &str) -> Disk {
    let path = |file: &str| format!("/sys/block/{name}/queue/{file}");
    Disk {
        name: name.into(),
        // A device without a request queue says "none" without brackets.
        scheduler: fact(src, &path("scheduler"), |text| {
            if text.trim() == "none" { Ok("none".into()) } else { parse::chosen(text) }
        }),
        is_rotational: fact(src, &path("rotational"), parse::flag),
        request_affinity: fact(src, &path("rq_affinity"), parse::number),
        is_polled: fact(src, &path("io_poll"), parse::flag),
        n_requests: fact(src, &path("nr_requests"), parse::number),
    }
}

fn read_nvme(src: &dyn Source, name: &str) -> Nvme {
    let path = |file: &str| format!("/sys/class/nvme/{name}/{file}");
    Nvme {
        name: name.into(),
        model: fact(src, &path("model"), parse::word),
        state: fact(src, &path("state"), parse::word),
        latency_tolerance: fact(src, &path("power/pm_qos_latency_tolerance_us"), parse_tolerance),
        pcie: PcieLink::read(src, &path("device")),
    }
}

/// `auto` and `any` are no limit of the host's own; 0 allows no latency at all.
fn parse_tolerance(text: &str) -> Result<LatencyLimit, String> {
    match text.trim() {
        "auto" | "any" => Ok(LatencyLimit::None),
        "0" => Ok(LatencyLimit::Poll),
        other => parse::us_to_ns(other).map(LatencyLimit::AtMostNs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Tree;

    #[test]
    fn disks_and_controllers() {
        let tree = Tree::from_text(
            "//- /sys/block/nvme0n1/queue/scheduler\n[none] mq-deadline\n//- /sys/block/nvme0n1/queue/rotational\n0\n
             //- /sys/block/loop0/queue/scheduler\nnone\n//- /sys/block/vda/queue/scheduler\nnone\n
             //- /sys/class/nvme/nvme0/power/pm_qos_latency_tolerance_us\n100000\n//- /sys/class/nvme/nvme0/serial\nSECRET\n
             //- /sys/class/nvme/nvme0/device/link/l1_aspm\n1\n//- /sys/module/pcie_aspm/parameters/policy\ndefault [powersave]\n
             //- /sys/module/nvme_core/parameters/default_ps_max_latency_us\n0\n",
        );
        let storage = Storage::read(&tree, &Cpus::default());
        let names: Vec<&str> = storage.disks.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["nvme0n1", "vda"]);
        assert_eq!(storage.disks[0].scheduler.get().unwrap(), "none");
        assert!(storage.disks[1].is_rotational.gap().is_some());
        assert_eq!(storage.nvme[0].latency_tolerance.get(), Some(&LatencyLimit::AtMostNs(100_000_000)));
        assert_eq!(storage.nvme[0].pcie.is_l1_on.get(), Some(&true));
        assert_eq!(storage.nvme_default_max_latency_ns.get(), Some(&0));
        assert_eq!(storage.aspm_policy.get().unwrap(), "powersave");
        assert!(!serde_json::to_string(&storage).unwrap().contains("SECRET"));
    }
}
