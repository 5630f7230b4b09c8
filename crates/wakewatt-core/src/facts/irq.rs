//! Interrupts: who raises them, which CPUs they wake.
//!
//! `/proc/interrupts` has a column per online CPU; on a 576-CPU machine it is a megabyte, so each line is kept as its
//! sum and the CPUs that were hit. `/proc/irq/N/smp_affinity_list` is where an interrupt may go,
//! `effective_affinity_list` where the hardware sends it: on x86 usually one CPU. A NIC whose queues all wake one CPU,
//! or that wakes CPUs of the other socket, is a look-alike of slow idle states. Managed interrupts (NVMe) cannot be moved.

use super::{Cpus, Domain};
use crate::arrange::Arrange as _;
use crate::cpuset::CpuSet;
use crate::fact::{Fact, fact, parse};
use crate::sheet::{Cell, Sheet};
use crate::source::Source;
use crate::units::Cpu;
use serde::Serialize;
use std::collections::BTreeMap;
use wakewatt_words::{say, word};

/// Interrupts since boot and where they go.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Irqs {
    /// The lines of /proc/interrupts.
    pub lines: Fact<Vec<IrqLine>>,
    /// Where an interrupt may go, by number; those that have a device.
    pub routes: BTreeMap<u32, IrqRoute>,
    /// Where new interrupts may go.
    pub default_cpus: Fact<CpuSet>,
}

/// A line of /proc/interrupts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IrqLine {
    /// `36`, or `LOC`, `RES` …
    pub label: String,
    /// The number, for a device's interrupt.
    pub number: Option<u32>,
    /// Who asked for it (`eth0-TxRx-3`), or the kernel's description (`Local timer interrupts`).
    pub device: String,
    /// Times, all CPUs together.
    pub n_total: u64,
    /// CPUs that took at least one.
    pub cpus_hit: CpuSet,
    /// The CPU that took most, and how many.
    pub busiest: Option<(Cpu, u64)>,
}

/// Where one interrupt may go.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IrqRoute {
    /// The CPUs it may go to, as set.
    pub allowed: Fact<CpuSet>,
    /// As routed by the hardware.
    pub effective: Fact<CpuSet>,
}

impl IrqRoute {
    /// The CPUs it wakes: as routed, or as allowed where the kernel does not tell.
    pub fn cpus(&self) -> Option<&CpuSet> {
        self.effective.get().filter(|set| !set.is_empty()).or(self.allowed.get())
    }
}

/// All interrupts of one device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IrqDevice {
    /// Name of the device: `eth0`, `nvme0` …
    pub device: String,
    /// How many interrupts it has that fired at least once.
    pub n_active: u64,
    /// How many it has.
    pub n_irqs: u64,
    /// The numbers of those that were raised.
    pub active: Vec<u32>,
    /// How many times its interrupts were raised since boot, together.
    pub n_total: u64,
    /// CPUs they are routed to; falls back to the CPUs that were hit.
    pub cpus: CpuSet,
}

impl Irqs {
    /// Interrupts by device, the busiest first.
    pub fn devices(&self) -> Vec<IrqDevice> {
        let mut all: BTreeMap<String, IrqDevice> = BTreeMap::new();
        for line in self.lines.get().into_iter().flatten().filter(|l| !l.device.is_empty()) {
            let Some(number) = line.number else { continue };
            let name = device_of(&line.device);
            let entry = all.entry(name.clone()).or_insert_with(|| IrqDevice { device: name, ..IrqDevice::default() });
            entry.n_irqs += 1;
            entry.n_active += u64::from(line.n_total > 0);
            entry.n_total = entry.n_total.saturating_add(line.n_total);
            let cpus = self.routes.get(&number).and_then(IrqRoute::cpus).unwrap_or(&line.cpus_hit);
            if line.n_total > 0 {
                entry.active.push(number);
                entry.cpus = entry.cpus.union(cpus);
            }
        }
        let mut all: Vec<IrqDevice> = all.into_values().collect();
        all.arrange_by(|a, b| b.n_total.cmp(&a.n_total).then_with(|| a.device.cmp(&b.device)));
        all
    }
}

impl Irqs {
    /// The interrupts of a device that do its work and may be moved: neither managed ones, nor those that raise less than one
    /// in a hundred (a configuration change, an administrator's queue). With the CPUs that they wake.
    pub fn movable(&self, device: &IrqDevice) -> (Vec<u32>, CpuSet) {
        let lines = || self.lines.get().into_iter().flatten();
        let works = |line: &&IrqLine| {
            line.number.is_some_and(|n| device.active.contains(&n))
                && !is_managed(&line.device)
                && line.n_total.saturating_mul(100) >= device.n_total
        };
        let all: Vec<(u32, &CpuSet)> = lines()
            .filter(works)
            .filter_map(|line| {
                let number = line.number?;
                Some((number, self.routes.get(&number).and_then(IrqRoute::cpus).unwrap_or(&line.cpus_hit)))
            })
            .collect();
        let cpus = all.iter().fold(CpuSet::new(), |cpus, (_, wakes)| cpus.union(wakes));
        (all.into_iter().map(|(number, _)| number).collect(), cpus)
    }
}

impl Domain for Irqs {
    const TITLE: &'static str = "Interrupts";
    const HELP: &'static str = "interrupts by device, the CPUs they wake, timer and reschedule interrupts";

    fn read(src: &dyn Source, _: &Cpus) -> Irqs {
        let lines = fact(src, "/proc/interrupts", parse_interrupts);
        let has_device = |l: &&IrqLine| l.number.is_some() && !l.device.is_empty();
        let numbers = lines.get().into_iter().flatten().filter(has_device).filter_map(|l| l.number);
        let route = |n: u32| IrqRoute {
            allowed: fact(src, &format!("/proc/irq/{n}/smp_affinity_list"), parse::cpus),
            effective: fact(src, &format!("/proc/irq/{n}/effective_affinity_list"), parse::cpus),
        };
        let routes = numbers.map(|n| (n, route(n))).collect();
        Irqs { routes, default_cpus: fact(src, "/proc/irq/default_smp_affinity", parse::mask), lines }
    }

    fn show(&self, sheet: &mut Sheet) {
        sheet.fact("irq.default_cpus", word!("CPUs for new interrupts"), &self.default_cpus, |v| Cell::text(v));
        let Some(lines) = self.lines.get() else {
            return sheet.fact("irq.lines", word!("interrupts"), &self.lines, |v| Cell::Count(v.len() as u64));
        };
        for device in self.devices().into_iter().filter(|d| d.n_active > 0) {
            let id = format!("irq.device.{}", device.device);
            sheet.say(format!("{id}.total"), say!("{} interrupts", device.device), Cell::Count(device.n_total));
            if let Some(row) = sheet.rows.last_mut() {
                (row.is_counter, row.cpus) = (true, Some(device.cpus.clone()));
            }
            let label = say!("{} wakes how many CPUs", device.device);
            sheet.say(format!("{id}.cpus"), label, Cell::Count(device.cpus.len() as u64));
        }
        for line in lines.iter().filter(|l| l.number.is_none() && l.n_total > 0) {
            let label = if line.device.is_empty() { line.label.clone() } else { line.device.clone() };
            sheet.say(format!("irq.{}", line.label), label, Cell::Count(line.n_total));
            if let Some(row) = sheet.rows.last_mut() {
                row.is_counter = true;
            }
        }
    }
}

/// Parses /proc/interrupts whatever its width; a line that makes no sense is passed over.
pub fn parse_interrupts(text: &str) -> Result<Vec<IrqLine>, String> {
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default();
    let cpus: Vec<Cpu> = header.split_whitespace().filter_map(|w| w.strip_prefix("CPU")?.parse().ok()).collect();
    if cpus.is_empty() {
        return Err("no header of CPUs".into());
    }
    let all: Vec<IrqLine> = lines.filter_map(|line| parse_line(line, &cpus)).collect();
    if all.is_empty() { Err("no interrupt in it".into()) } else { Ok(all) }
}

fn parse_line(line: &str, cpus: &[Cpu]) -> Option<IrqLine> {
    let (label, mut rest) = line.split_once(':')?;
    let label = label.trim();
    let mut found = IrqLine { label: label.into(), number: label.parse().ok(), ..IrqLine::default() };
    for cpu in cpus {
        let trimmed = rest.trim_start();
        let end = trimmed.find(char::is_whitespace).unwrap_or(trimmed.len());
        // ERR and MIS have one number for the whole machine.
        let Ok(count) = trimmed[..end].parse::<u64>() else { break };
        rest = &trimmed[end..];
        found.n_total = found.n_total.saturating_add(count);
        if count > 0 {
            found.cpus_hit.insert(*cpu);
            if found.busiest.is_none_or(|(_, most)| count > most) {
                found.busiest = Some((*cpu, count));
            }
        }
    }
    let words: Vec<&str> = rest.split_whitespace().collect();
    let is_trigger = |w: &&str| ["edge", "level", "fasteoi", "Edge", "Level"].iter().any(|t| w.ends_with(t));
    let from = match found.number {
        None => 0,
        Some(_) => words.iter().position(is_trigger).map_or(words.len().saturating_sub(1), |at| at + 1),
    };
    found.device = words.get(from..).unwrap_or_default().join(" ");
    Some(found)
}

/// Queues whose drivers let the kernel spread them: `nvme0q3` (not the admin queue 0), `virtio1-req.0`, `virtio2-request`.
pub fn is_managed(device: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let is_nvme = device
        .strip_prefix("nvme")
        .and_then(|rest| rest.split_once('q'))
        .is_some_and(|(disk, queue)| digits(disk) && digits(queue) && queue != "0");
    let virtio = device.strip_prefix("virtio").and_then(|rest| rest.split_once('-'));
    is_nvme || virtio.is_some_and(|(number, what)| digits(number) && what.starts_with("req"))
}

/// The device behind a queue's interrupt: `nvme0q5` is nvme0, `i40e-eth0-TxRx-3` and `eth0-rx-1` are their front.
fn device_of(name: &str) -> String {
    let first = name.split([',', ' ']).next().unwrap_or(name);
    if let Some((_, address)) = first.split_once("@pci:") {
        return address.to_string();
    }
    if let Some((disk, queue)) = first.strip_prefix("nvme").and_then(|rest| rest.split_once('q')) {
        if [disk, queue].iter().all(|s| !s.is_empty() && s.chars().all(|c| c.is_ascii_digit())) {
            return format!("nvme{disk}");
        }
    }
    let is_queue_word = |w: &str| {
        let w = w.split('.').next().unwrap_or(w).trim_end_matches(|c: char| c.is_ascii_digit());
        matches!(w.to_ascii_lowercase().as_str(), "" | "txrx" | "rx" | "tx" | "input" | "output" | "req" | "fp" | "q")
            || matches!(w, "config" | "event" | "control" | "mgmnt" | "Tx" | "Rx" | "ch")
    };
    let mut front = first;
    while let Some((before, last)) = front.rsplit_once('-') {
        if before.is_empty() || !is_queue_word(last) {
            break;
        }
        front = before;
    }
    front.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Tree;

    const TEXT: &str = "           CPU0       CPU2\n 36:          0      89385 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n
        38:          5       3711  PCI-MSI 524288-edge      i40e-eth0-TxRx-0\n 39: 7 0 PCI-MSI 524289-edge i40e-eth0-TxRx-1\n
        40:          1          0  IR-IO-APIC    9-fasteoi   acpi, thing two\n 41: 0 0\n LOC:      41259      42542   Local timer interrupts\n ERR:          3\n";

    #[test]
    fn lines_are_summed_and_devices_named() {
        let lines = parse_interrupts(TEXT).unwrap();
        let shown: Vec<String> =
            lines.iter().map(|l| format!("{}|{}|{}|{}", l.label, l.device, l.n_total, l.cpus_hit)).collect();
        assert_eq!(
            shown,
            [
                "36|virtio1-req.0|89385|2",
                "38|i40e-eth0-TxRx-0|3716|0,2",
                "39|i40e-eth0-TxRx-1|7|0",
                "40|acpi, thing two|1|0",
                "41||0|",
                "LOC|Local timer interrupts|83801|0,2",
                "ERR||3|0"
            ]
        );
    }

    #[test]
    fn queues_of_a_device_are_one_device() {
        let names = [
            "nvme0q5",
            "i40e-eth0-TxRx-3",
            "eth0-rx-1",
            "ens5-Tx-Rx-0",
            "virtio2-input.0",
            "acpi, x",
            "mlx5_comp3@pci:0000:3b:00.0",
            "ahci[0000:00:17.0]",
            "arch_timer",
            "nvmeq",
            "-1",
        ];
        assert_eq!(
            names.map(device_of),
            [
                "nvme0",
                "i40e-eth0",
                "eth0",
                "ens5",
                "virtio2",
                "acpi",
                "0000:3b:00.0",
                "ahci[0000:00:17.0]",
                "arch_timer",
                "nvmeq",
                "-1"
            ]
        );
    }

    #[test]
    fn routes_say_how_many_cpus_serve_a_device() {
        let text = format!(
            "//- /proc/interrupts\n{TEXT}//- /proc/irq/38/effective_affinity_list\n2\n//- /proc/irq/39/effective_affinity_list\n2\n
             //- /proc/irq/default_smp_affinity\nff\n"
        );
        let irqs = Irqs::read(&Tree::from_text(&text), &Cpus::default());
        let devices = irqs.devices();
        assert_eq!(
            (devices[1].device.as_str(), devices[1].n_irqs, devices[1].cpus.to_string()),
            ("i40e-eth0", 2, "2".into())
        );
        assert_eq!(devices[0].cpus.to_string(), "2", "no route known: the CPUs that were hit");
        assert_eq!(irqs.default_cpus.get().unwrap().len(), 8);
    }

    #[test]
    fn a_very_wide_table_and_junk() {
        let header: Vec<String> = (0..576).map(|c| format!("CPU{c}")).collect();
        let row: Vec<&str> = (0..576).map(|_| "1000000000").collect();
        let text = format!("{}\n 9: {} GICv3  27 Level     eth0\n", header.join(" "), row.join(" "));
        assert_eq!(parse_interrupts(&text).unwrap()[0].n_total, 576_000_000_000);
        assert_eq!(parse_interrupts(&text).unwrap()[0].device, "eth0");
        for junk in ["", "CPU0", "x\n1: 2", "CPU0\nno colon"] {
            assert!(parse_interrupts(junk).is_err(), "{junk}");
        }
    }
}
