//! The CPUs an interrupt may wake: `/proc/irq/N/smp_affinity_list`, `irq.affinity@irq24`.
//!
//! Where devices interrupt is where CPUs cannot sleep. Managed interrupts (queues of NVMe and virtio disks, spread by the
//! kernel) refuse with EPERM (seen on 6.18; EIO before); the kernel shows that nowhere but in debugfs, so they are told by
//! their names here; so does x86's timer, interrupt 0. A set without a running CPU is refused (EINVAL). On x86 the hardware picks one CPU of the set, and the
//! move happens at the next interrupt: what is in force is `effective_affinity_list`. irqbalance undoes it within ten
//! seconds.
//! Source: core-api/irq/irq-affinity.rst.

use crate::knob::{About, Host, Kept, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::irq::{is_managed, parse_interrupts};
use wakewatt_core::folder::Folder;
use wakewatt_words::say;

/// `irq.affinity`.
pub struct IrqAffinity;

const FOLDER: &str = "/proc/irq";

const ABOUT: About = About {
    id: "irq.affinity",
    title: "CPUs an interrupt may wake",
    unit: "CPUs, such as 0-3,8",
    scope: Scope::Device,
    io_scope: Scope::Device,
    stage: Stage::Devices,
    reversible: Reversible::Exactly,
    price: Price::same(
        "fewer CPUs: the others sleep longer and deeper; those few wake more and may become the bottleneck",
    ),
    risk: "refused for managed interrupts; irqbalance moves them again; after undo the hardware may pick another CPU of the set than before",
    overlaps: &["interrupt affinity"],
    moves: &[],
    source: "Documentation/core-api/irq/irq-affinity.rst; ABI/stable/procfs-irq",
};

impl Knob for IrqAffinity {
    fn about(&self) -> &'static About {
        &ABOUT
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        let lines = host.text("/proc/interrupts").and_then(|t| parse_interrupts(&t).ok()).unwrap_or_default();
        let folder = Folder::list(host.source, FOLDER);
        // A recording may hold the files without the listing of their folder.
        let listed = folder.names().iter().filter_map(|n| n.parse().ok());
        let mut numbers: Vec<u32> = listed.chain(lines.iter().filter_map(|l| l.number)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut sites = Vec::new();
        for number in numbers {
            // An interrupt without a handler has a folder and wakes nobody.
            let Some(line) = lines.iter().find(|l| l.number == Some(number) && !l.device.is_empty()) else { continue };
            let path = format!("{FOLDER}/{number}/smp_affinity_list");
            let valid = Valid::Text(say!("CPUs such as 0-3,8, for {}", line.device));
            let place = format!("irq{number}");
            let Some(mut site) = super::one_file::find(host, ABOUT.id, place, CpuSet::new(), path, valid) else {
                continue;
            };
            site.cpus = site.now.as_ref().and_then(|t| CpuSet::parse(t).ok()).unwrap_or_default();
            site.refusal = if number == 0 {
                Some(say!("{}: the boot CPU's own", line.device))
            } else {
                is_managed(&line.device).then(|| say!("{}: spread by the kernel (managed)", line.device))
            };
            sites.push(site);
        }
        if sites.is_empty() { Err(say!("{FOLDER}: no interrupt of a device can be seen")) } else { Ok(sites) }
    }
    fn encode(&self, host: &Host<'_>, site: &Site, word: &str) -> Result<String, String> {
        let cpus = CpuSet::parse(word).map_err(|why| format!("{}: {why}", site.name))?;
        if cpus.and(&host.online()).is_empty() {
            return Err(say!("{}: {word:?} names no CPU that runs ({})", site.name, host.online()));
        }
        Ok(cpus.to_string())
    }
    fn kept(&self, requested: &str, read_back: &str) -> Kept {
        match (CpuSet::parse(requested), CpuSet::parse(read_back)) {
            (Ok(asked), Ok(now)) if asked == now => Kept::Exactly,
            (Ok(asked), Ok(now)) if !now.is_empty() && now.minus(&asked).is_empty() => {
                Kept::Legally(say!("only CPUs {now} of them run"))
            }
            _ => Kept::Not,
        }
    }
    fn effective(&self, host: &Host<'_>, site: &Site) -> Option<String> {
        let text = host.text(&site.path.replace("smp_affinity_list", "effective_affinity_list"))?;
        (!text.is_empty() && Some(&text) != site.now.as_ref()).then(|| format!("CPU {text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn devices_interrupts_and_who_refuses() {
        let tree = Tree::from_text(
            "//- /sys/devices/system/cpu/online\n0-1\n//- /proc/interrupts\n CPU0 CPU1\n 24: 1 2 PCI-MSI 5-edge eth0-rx-0\n 25: 1 0 PCI-MSI 6-edge nvme0q1\n
             26: 0 0 PCI-MSI 7-edge virtio1-req.0\n 27: 0 0\n//- /proc/irq/24/smp_affinity_list\n0-1\n//- /proc/irq/24/effective_affinity_list\n1\n
             //- /proc/irq/25/smp_affinity_list\n0\n//- /proc/irq/26/smp_affinity_list\n0\n//- /proc/irq/27/smp_affinity_list\n0\n",
        );
        let host = Host::read(&tree);
        let sites = IrqAffinity.sites(&host).unwrap();
        let shown: Vec<(&str, bool)> = sites.iter().map(|s| (s.place.as_str(), s.refusal.is_some())).collect();
        assert_eq!(shown, [("irq24", false), ("irq25", true), ("irq26", true)]);
        assert_eq!(IrqAffinity.encode(&host, &sites[0], "1,0").unwrap(), "0-1");
        assert!(IrqAffinity.encode(&host, &sites[0], "7").unwrap_err().contains("no CPU that runs"));
        assert_eq!(IrqAffinity.effective(&host, &sites[0]).as_deref(), Some("CPU 1"));
        assert!(matches!(IrqAffinity.kept("0-7", "0-1"), Kept::Legally(_)));
        assert!(!is_managed("nvme0q0") && !is_managed("nvmeq1") && !is_managed("virtio0-input.0"));
    }
}
