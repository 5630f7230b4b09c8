//! Is this a guest, a container, or the metal itself, and what does that hide?
//!
//! A guest may well have idle states of its own, so nothing here decides what can be measured: reading does. The
//! answer says whose settings matter: in a guest part of the wake-up latency is the hypervisor's. Every guess names
//! the file it comes from. A container may see the host's /sys with parts masked by an empty mount; those are listed.
//! /proc/1/environ, the usual tell-tale, is private and never read.

use super::{Cpus, Domain, cpuinfo, load};
use crate::fact::{Fact, Gap, GapKind, fact, parse};
use crate::sheet::{Cell, Sheet};
use crate::source::{ErrorKind, ReadError, Source};
use serde::Serialize;
use wakewatt_words::word;

/// What a file says that is empty.
const IS_THERE: &str = "is there";
const CPUINFO: &str = "/proc/cpuinfo";
/// What the firmware of an arm64 machine without ACPI tells.
const DEVICE_TREE: &str = "/sys/firmware/devicetree/base";
const XEN_CAPABILITIES: &str = "/proc/xen/capabilities";
const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

/// Hypervisor and container.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Virt {
    /// The CPU says that a hypervisor runs below (x86 only).
    pub has_hypervisor_flag: Fact<bool>,
    /// What hypervisor, as far as files tell; the first is the best.
    pub hypervisors: Vec<Clue>,
    /// What container, as far as files tell; empty: none, or none that shows.
    pub containers: Vec<Clue>,
    /// Folders that exist and are empty where a host has files: hidden by the container runtime.
    pub masked: Vec<String>,
    /// CPU time the hypervisor took since boot.
    pub steal_ratio: Fact<f64>,
}

/// A guess and what it rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Clue {
    /// KVM, Xen, VMware, docker …
    pub name: String,
    /// The file that tells.
    pub path: String,
    /// What the file says.
    pub says: String,
}

impl Clue {
    /// KVM, whoever runs it?
    pub fn is_kvm(&self) -> bool {
        self.name.starts_with("KVM")
    }

    /// Xen's own domain (dom0), from which the hypervisor is set?
    pub fn is_control_domain(&self) -> bool {
        self.path == XEN_CAPABILITIES
    }

    /// What it says, for people.
    pub fn shown(&self) -> &str {
        if self.says == IS_THERE { word!("is there") } else { &self.says }
    }
}

impl Virt {
    /// A guest? None where neither the CPU nor any file tells.
    pub fn is_guest(&self) -> Option<bool> {
        match self.has_hypervisor_flag.get() {
            Some(flag) => Some(*flag),
            None => (!self.hypervisors.is_empty()).then_some(true),
        }
    }

    /// Runs in a container, as far as can be seen?
    pub fn is_container(&self) -> bool {
        !self.containers.is_empty() || !self.masked.is_empty()
    }
}

impl Domain for Virt {
    const TITLE: &'static str = "Virtualisation";
    const HELP: &'static str = "hypervisor, container, what is masked, stolen CPU time";

    fn read(src: &dyn Source, _: &Cpus) -> Virt {
        let has_hypervisor_flag = hypervisor_flag(src);
        let is_metal = has_hypervisor_flag.get() == Some(&false);
        let has_device_tree = has_hypervisor_flag.gap().is_some_and(|gap| gap.kind == GapKind::Absent);
        let is_masked = |path: &&&str| src.list(path).is_ok_and(|names| names.is_empty());
        let steal_ratio = match fact(src, "/proc/stat", load::parse_stat) {
            Fact::Gap(gap) => Fact::Gap(gap),
            Fact::Known(stat) => match stat.total.ratio(stat.total.steal_ns) {
                Some(ratio) => Fact::Known(ratio),
                None => Fact::Gap(Gap::malformed("/proc/stat", "no time has passed")),
            },
        };
        Virt {
            hypervisors: if is_metal { Vec::new() } else { hypervisors(src, has_device_tree) },
            containers: containers(src),
            masked: ["/sys/devices/virtual/powercap", "/sys/firmware"]
                .iter()
                .filter(is_masked)
                .map(|p| (*p).to_string())
                .collect(),
            has_hypervisor_flag,
            steal_ratio,
        }
    }

    fn show(&self, sheet: &mut Sheet) {
        sheet.fact("virt.guest", word!("hypervisor below"), &self.has_hypervisor_flag, |v| Cell::Flag(*v));
        for (id, label, clues) in [
            ("hypervisor", word!("hypervisor"), &self.hypervisors),
            ("container", word!("container"), &self.containers),
        ] {
            if let Some(best) = clues.first() {
                let text = format!("{} ({}: {})", best.name, best.path, best.shown());
                sheet.say(format!("virt.{id}"), label, Cell::Text(text));
            }
        }
        if !self.masked.is_empty() {
            sheet.say("virt.masked", word!("masked by the container"), Cell::Text(self.masked.join(" ")));
        }
        sheet.fact("virt.steal", word!("stolen CPU time (since boot)"), &self.steal_ratio, |v| Cell::Ratio(*v));
        if let Some(row) = sheet.rows.last_mut() {
            row.is_counter = true;
        }
    }
}

/// Arm's processors have `Features`, among which is no such flag: there it is absent, not malformed. A list that may be cut short does
/// not say that it is missing.
pub(super) fn hypervisor_flag(src: &dyn Source) -> Fact<bool> {
    let why = |kind, reason: &str| Fact::Gap(Gap::from_read(CPUINFO, &ReadError::new(kind, reason)));
    let found = fact(src, CPUINFO, |text| {
        let flags = text.lines().find_map(|l| l.strip_prefix("flags"));
        let is_arm = text.lines().any(|l| l.starts_with("Features"));
        if flags.is_none() && !is_arm && !src.is_imported() {
            return Err("no CPU flags in it".into());
        }
        Ok((flags.map(|flags| cpuinfo::is_among("hypervisor", flags.split_whitespace())), is_arm))
    });
    match found {
        Fact::Known((Some(Some(flag)), _)) => Fact::Known(flag),
        Fact::Known((Some(None), _)) => why(ErrorKind::NotRecorded, "the list of flags may be cut short"),
        Fact::Known((None, true)) => why(ErrorKind::Absent, "arm64 processors have no flag for it"),
        Fact::Known((None, false)) => why(ErrorKind::NotRecorded, cpuinfo::UNTOLD),
        Fact::Gap(gap) => Fact::Gap(gap),
    }
}

/// (what the DMI vendor or product holds, what that means)
const VENDORS: &[(&str, &str)] = &[
    ("Amazon EC2", "AWS Nitro"),
    ("VMware", "VMware"),
    ("Microsoft Corporation", "Hyper-V"),
    ("Google", "KVM (Google Compute Engine)"),
    ("innotek GmbH", "VirtualBox"),
    ("VirtualBox", "VirtualBox"),
    ("Parallels", "Parallels"),
    ("Nutanix", "KVM (Nutanix AHV)"),
    ("OpenStack", "KVM (OpenStack)"),
    ("Alibaba Cloud", "KVM (Alibaba Cloud)"),
    ("DigitalOcean", "KVM (DigitalOcean)"),
    ("Hetzner", "KVM (Hetzner)"),
    ("Xen", "Xen"),
    ("QEMU", "KVM/QEMU"),
    ("KVM", "KVM"),
    ("Bochs", "KVM/QEMU"),
];

/// What a device tree says of itself (a list of names, each ended by a zero), and what that means.
const TREES: &[(&str, &str, &str)] = &[
    ("hypervisor/compatible", "linux,kvm", "KVM"),
    ("hypervisor/compatible", "xen,xen", "Xen"),
    ("compatible", "linux,dummy-virt", "KVM/QEMU"),
];

fn hypervisors(src: &dyn Source, has_device_tree: bool) -> Vec<Clue> {
    let mut clues = Vec::new();
    let mut add = |name: &str, path: &str, says: &str| {
        clues.push(Clue { name: name.into(), path: path.into(), says: says.into() });
    };
    if let Fact::Known(kind) = fact(src, "/sys/hypervisor/type", parse::word) {
        add(if kind == "xen" { "Xen" } else { &kind }, "/sys/hypervisor/type", &kind);
    }
    let product = fact(src, "/sys/class/dmi/id/product_name", parse::word);
    let is_metal_product = product.get().is_some_and(|p| p.ends_with(".metal"));
    let mut has_dmi = product.is_known();
    for file in ["sys_vendor", "product_name"] {
        let path = format!("/sys/class/dmi/id/{file}");
        let Fact::Known(text) = fact(src, &path, parse::word) else { continue };
        has_dmi = true;
        if let Some((_, name)) = VENDORS.iter().find(|(word, _)| text.contains(word)) {
            // Google, Microsoft, Amazon and Nutanix make metal too.
            let is_sure = match *name {
                "Hyper-V" => product.get().is_some_and(|p| p.contains("Virtual Machine")),
                "AWS Nitro" => !is_metal_product,
                _ => true,
            };
            if is_sure {
                add(name, &path, &text);
            }
        }
    }
    for (file, word, name) in TREES.iter().filter(|_| has_device_tree) {
        let path = format!("{DEVICE_TREE}/{file}");
        let names = fact(src, &path, |text| Ok(text.split('\0').any(|name| name.trim() == *word)));
        if names.get() == Some(&true) {
            add(name, &path, word);
        }
    }
    let clocks = fact(src, CLOCKS, parse::words);
    for (clock, name) in [("kvm-clock", "KVM"), ("hyperv_clocksource_tsc_page", "Hyper-V"), ("xen", "Xen")] {
        if clocks.get().is_some_and(|all| all.iter().any(|c| c == clock)) {
            add(name, CLOCKS, clock);
        }
    }
    if !has_dmi {
        let line = fact(src, "/proc/cmdline", |text| Ok(super::boot::Cmdline::parse(text)));
        let is_micro = |l: &super::boot::Cmdline| {
            l.has("virtio_mmio.device") || (l.value("reboot") == Some("k") && l.value("panic") == Some("1"))
        };
        if line.get().is_some_and(is_micro) {
            add("Firecracker or a like microVM", "/proc/cmdline", "reboot=k panic=1, and no DMI");
        }
    }
    // Before the others, for it says most.
    let is_xen = clues.iter().any(|clue| clue.name == "Xen");
    if is_xen && fact(src, XEN_CAPABILITIES, parse::word).get().is_some_and(|says| says.contains("control_d")) {
        let clue = Clue { name: "Xen".into(), path: XEN_CAPABILITIES.into(), says: "control_d".into() };
        clues.insert(0, clue);
    }
    clues
}

fn containers(src: &dyn Source) -> Vec<Clue> {
    let mut clues = Vec::new();
    let mut add = |name: &str, path: &str, says: &str| {
        clues.push(Clue { name: name.into(), path: path.into(), says: says.into() });
    };
    if let Fact::Known(kind) = fact(src, "/run/systemd/container", parse::word) {
        add(&kind, "/run/systemd/container", &kind);
    }
    for (path, name) in [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")] {
        if src.read(path).is_ok() {
            add(name, path, IS_THERE);
        }
    }
    for path in ["/proc/1/cgroup", "/proc/self/cgroup"] {
        let Fact::Known(text) = fact(src, path, parse::word) else { continue };
        let known = [
            ("kubepods", "Kubernetes"),
            ("docker", "docker"),
            ("libpod", "podman"),
            ("crio-", "CRI-O"),
            ("cri-containerd", "containerd"),
            ("lxc", "LXC"),
        ];
        for line in text.lines() {
            // Daemons of the host live in docker.service and the like; a container's path goes deeper.
            let group = line.rsplit(':').next().unwrap_or_default();
            let is_service = group.ends_with(".service");
            if let Some((_, name)) = known.iter().find(|(word, _)| group.contains(word) && !is_service) {
                add(name, path, line);
                break;
            }
        }
    }
    clues
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Tree;

    fn check(text: &str) -> (Option<bool>, String, String) {
        let virt = Virt::read(&Tree::from_text(text), &Cpus::default());
        let best = |clues: &[Clue]| clues.first().map(|c| c.name.clone()).unwrap_or_default();
        (virt.is_guest(), best(&virt.hypervisors), best(&virt.containers))
    }

    #[test]
    fn guests_by_their_files() {
        let nitro = "//- /proc/cpuinfo\nflags\t: fpu hypervisor\n//- /sys/class/dmi/id/sys_vendor\nAmazon EC2\n";
        assert_eq!(check(nitro), (Some(true), "AWS Nitro".into(), String::new()));
        let metal = "//- /proc/cpuinfo\nflags\t: fpu\n//- /sys/class/dmi/id/sys_vendor\nAmazon EC2\n";
        assert_eq!(check(metal), (Some(false), String::new(), String::new()));
        let tiny = "//- /proc/cpuinfo\nflags\t: hypervisor\n//- /proc/cmdline\nreboot=k panic=1\n";
        assert_eq!(check(tiny).1, "Firecracker or a like microVM");
        assert_eq!(check("//- /proc/cpuinfo\nFeatures : fp asimd\n"), (None, String::new(), String::new()));
        let surface = "//- /proc/cpuinfo\nFeatures : fp\n//- /sys/class/dmi/id/sys_vendor\nMicrosoft Corporation\n";
        assert_eq!(check(surface).0, None, "Microsoft makes laptops too");
    }

    #[test]
    fn arm_guests_by_their_device_tree() {
        let arm = "//- /proc/cpuinfo\nFeatures : fp asimd\n";
        let virt = Virt::read(&Tree::from_text(arm), &Cpus::default());
        assert_eq!(virt.has_hypervisor_flag.gap().map(|gap| gap.kind), Some(GapKind::Absent));
        let tree = |file: &str, text: &str| format!("{arm}//- {DEVICE_TREE}/{file}\n{text}\n");
        assert_eq!(check(&tree("compatible", "linux,dummy-virt\0")), (Some(true), "KVM/QEMU".into(), String::new()));
        assert_eq!(check(&tree("hypervisor/compatible", "xen,xen-4.11\0xen,xen\0")).1, "Xen");
        assert_eq!(check(&tree("compatible", "raspberrypi,4-model-b\0brcm,bcm2711\0")).0, None);
        let x86 = tree("compatible", "linux,dummy-virt").replace("Features", "flags");
        assert_eq!(check(&x86).0, Some(false), "a flag that is not there decides on x86");
    }

    #[test]
    fn containers_and_masks() {
        assert_eq!(check("//- /.dockerenv\n").2, "docker");
        assert_eq!(check("//- /proc/1/cgroup\n0::/kubepods.slice/pod1/cri-containerd-x.scope\n").2, "Kubernetes");
        assert_eq!(check("//- /proc/self/cgroup\n0::/system.slice/docker.service\n").2, "");
        let mut tree = Tree::from_text("//- /proc/stat\ncpu  1 0 0 2 0 0 0 1\n");
        tree.folders.insert("/sys/devices/virtual/powercap".into(), Ok(Vec::new()));
        let virt = Virt::read(&tree, &Cpus::default());
        assert_eq!((virt.masked.len(), virt.is_container()), (1, true));
        assert_eq!(virt.steal_ratio.get(), Some(&0.25));
    }
}
