//! Masking: what must not leave the machine in a file that people attach to tickets.
//!
//! Two questions are asked of everything in a recording. Who chose this name: the kernel, a driver or firmware (then it
//! describes the kind of machine, and stays), or its owner (then it goes)? And is this place known? What stands in a file,
//! folder or link that is not listed here is taken to be the owner's: numbers stay, words go. So a fact that is added
//! later cannot leak before somebody has thought about it; the recorded hosts in `fixtures/` then show the difference.
//!
//! A name that goes is renamed, the same everywhere in the file: paths, listings, links, and inside other text, so the
//! parsers find the same machine with other names in it ([`Names`]). Boot arguments: `boot_line.rs`. Interfaces, disks
//! and interrupts: `devices.rs`. Control groups: `cgroups.rs`. Addresses by their form: `addresses.rs`. Free text of run
//! files: `prose.rs`. The SMBIOS table has its own masking, by structure (facts/dmi).
//!
//! Kept on purpose, because facts are about them: release and build of the kernel, maker, model, board and firmware of
//! the machine, models of processors, memory modules, disks and sensors, names of drivers, PCI addresses, counters.

mod addresses;
mod boot_line;
mod cgroups;
mod devices;
mod names;
mod prose;

pub use addresses::addresses;
pub use boot_line::KEPT as KEPT_ARGUMENTS;
pub use names::{Kind, Names};

use crate::facts::{dmi, holders};
use crate::source::{Read, ReadError, Tree};
use std::collections::BTreeMap;

const NETS: &str = "/sys/class/net";
const DISKS: &str = "/sys/block";
const GROUPS: &str = "/sys/fs/cgroup";

/// Masks a whole recording in place and says what was renamed.
pub fn tree(tree: &mut Tree) -> Names {
    let mut names = Names::default();
    let release = release(tree);
    // Names first: contents are renamed by what the paths taught.
    rename(&mut tree.folders, &mut names, |path, listing, names| {
        for name in listing.iter_mut() {
            *name = child(path, name, names);
        }
        listing.sort();
        listing.dedup();
    });
    rename(&mut tree.files, &mut names, |_, _, _| {});
    rename(&mut tree.links, &mut names, |_, target, names| *target = link(target, names));
    for (at, content) in &mut tree.files {
        let Ok(bytes) = content else { continue };
        if at == dmi::TABLE {
            *bytes = dmi::mask_tables(bytes);
        } else if let Ok(before) = std::str::from_utf8(bytes) {
            let masked = text(at, before, release.as_deref(), &mut names);
            if masked != before {
                *bytes = masked.into_bytes();
            }
        } else if !is_kernels(at) {
            bytes.clear();
            names.count(Kind::Word);
        }
    }
    names
}

/// Applies the renaming of paths to a map, and `value` to what is there; a detail of an error names no path.
fn rename<T>(map: &mut BTreeMap<String, Read<T>>, names: &mut Names, value: impl Fn(&str, &mut T, &mut Names)) {
    let old = std::mem::take(map);
    for (at, mut read) in old {
        match &mut read {
            Ok(content) => value(&at, content, names),
            Err(error) => *error = ReadError::new(error.kind, detail(&error.detail)),
        }
        map.insert(path(&at, names), read);
    }
}

fn detail(text: &str) -> &str {
    if text.contains('/') || addresses(text) != text { "masked" } else { text }
}

/// The kernel's release, which the name of the booted image may repeat.
fn release(tree: &Tree) -> Option<String> {
    let read = |path: &str| {
        let bytes = tree.files.get(path)?.as_ref().ok()?;
        std::str::from_utf8(bytes).ok().map(str::to_string)
    };
    let own = read("/proc/sys/kernel/osrelease").map(|text| text.trim().to_string());
    own.or_else(|| read("/proc/version")?.split_whitespace().nth(2).map(str::to_string))
}

/// A path with its names masked.
pub(crate) fn path(path: &str, names: &mut Names) -> String {
    if let Some(rest) = path.strip_prefix("ethtool:") {
        let (name, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        return format!("ethtool:{}{rest}", devices::interface(name, names));
    }
    if let Some(rest) = below(path, GROUPS) {
        return format!("{GROUPS}{}", cgroups::path(rest, names));
    }
    for root in [NETS, DISKS] {
        if let Some(rest) = below(path, root).and_then(|rest| rest.strip_prefix('/')) {
            let mut parts = rest.split('/');
            let first = child(root, parts.next().unwrap_or_default(), names);
            let others = parts.map(|part| attribute(part, names));
            return std::iter::once(format!("{root}/{first}")).chain(others).collect::<Vec<_>>().join("/");
        }
    }
    if is_known_place(path) {
        return path.to_string();
    }
    path.split('/').map(|part| word(part, names)).collect::<Vec<_>>().join("/")
}

fn below<'a>(path: &'a str, root: &str) -> Option<&'a str> {
    path.strip_prefix(root).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A name in the listing of a folder.
fn child(folder: &str, name: &str, names: &mut Names) -> String {
    if folder == NETS {
        devices::interface(name, names)
    } else if folder == DISKS {
        devices::disk(name, names)
    } else if below(folder, GROUPS).is_some() {
        cgroups::component(name, names)
    } else if below(folder, NETS).is_some() || below(folder, DISKS).is_some() {
        attribute(name, names)
    } else if is_known_place(&format!("{folder}/{name}")) {
        name.to_string()
    } else {
        word(name, names)
    }
}

/// What lies in the folder of an interface or a disk: attributes of the kernel, and links named after neighbours
/// (`upper_dbnet`), which are nobody's business.
#[rustfmt::skip]
const ATTRIBUTES: &[&str] = &[
    "addr_assign_type", "addr_len", "address", "broadcast", "carrier", "carrier_changes", "carrier_down_count",
    "carrier_up_count", "dev_id", "dev_port", "device", "dormant", "duplex", "flags", "gro_flush_timeout", "ifalias",
    "ifindex", "iflink", "link_mode", "mtu", "name_assign_type", "napi_defer_hard_irqs", "netdev_group", "operstate",
    "phys_port_id", "phys_port_name", "phys_switch_id", "phydev", "power", "proto_down", "queues", "speed", "statistics",
    "subsystem", "testing", "threaded", "tx_queue_len", "type", "uevent", "driver", "link", "queue", "bonding", "brport",
    "bridge", "wireless", "phy80211", "master", "scheduler", "rotational", "rq_affinity", "io_poll", "nr_requests",
    "control", "l0s_aspm", "l1_aspm", "l1_1_aspm", "l1_2_aspm", "l1_1_pcipm", "l1_2_pcipm", "clkpm", "rps_cpus", "rps_flow_cnt",
    "xps_cpus", "xps_rxqs", "byte_queue_limits", "traffic_class", "tx_maxrate", "tx_timeout", "max_active", "model",
    "state", "pm_qos_latency_tolerance_us", "pm_qos_resume_latency_us", "runtime_status", "vendor", "class", "numa_node",
    "local_cpulist", "local_cpus", "msi_irqs", "msi_bus", "irq", "enable", "config", "resource", "revision", "modalias", "features",
    "status", "driver_override", "subsystem_vendor", "subsystem_device", "d3cold_allowed", "power_state", "current_link_speed",
    "current_link_width", "max_link_speed", "max_link_width", "ari_enabled", "dma_mask_bits", "consistent_dma_mask_bits", "net",
    "remove", "rescan", "reset", "reset_method", "rom", "broken_parity_status", "firmware_node", "iommu", "iommu_group", "ptp",
    "sriov_drivers_autoprobe", "sriov_numvfs", "sriov_offset", "sriov_stride", "sriov_totalvfs", "sriov_vf_device",
    "sriov_vf_total_msix", "aer_dev_correctable", "aer_dev_fatal", "aer_dev_nonfatal", "hwmon", "infiniband", "rx", "tx",
];

fn attribute(name: &str, names: &mut Names) -> String {
    let is_queue = name.strip_prefix("rx-").or_else(|| name.strip_prefix("tx-"));
    let is_queue = is_queue.is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()));
    if is_queue || ATTRIBUTES.contains(&name) { name.to_string() } else { word(name, names) }
}

/// A name of unknown origin: numbers stay.
fn word(name: &str, names: &mut Names) -> String {
    if name.chars().all(|c| c.is_ascii_digit()) && name.len() <= 6 {
        return name.to_string();
    }
    names.of(Kind::Word, name)
}

/// Roots below which kernel, drivers and this program name everything.
const KNOWN_PLACES: &[&str] = &[
    "/sys/devices/system",
    "/sys/devices/virtual/powercap",
    "/sys/devices/cpu_core",
    "/sys/devices/cpu_atom",
    "/sys/devices/cpu_lowpower",
    "/sys/class/hwmon",
    "/sys/class/thermal",
    "/sys/class/powercap",
    "/sys/class/nvme",
    "/sys/class/dmi",
    "/sys/bus/event_source",
    "/sys/bus/pci/devices",
    "/sys/module",
    "/sys/kernel",
    "/sys/firmware",
    "/sys/hypervisor",
    "/proc",
    "/dev/cpu_dma_latency",
    "/dev/cpu_wakeup_latency",
    "/dev/cpu",
    "/run/systemd/container",
    "/run/.containerenv",
    "/.dockerenv",
];

/// Of a path or a listed name: does the kernel name what lies there? NVMe controllers, PCI devices, modules and sysctls
/// are named by it.
fn is_known_place(path: &str) -> bool {
    const FORKS: &[&str] = &["/", "/sys", "/sys/class", "/sys/devices", "/sys/fs", "/sys/block", "/dev", "/run"];
    FORKS.contains(&path) || path == NETS || KNOWN_PLACES.iter().any(|root| below(path, root).is_some())
}

/// Where a link points: a driver, or a file that holders are told by.
fn link(target: &str, names: &mut Names) -> String {
    let of_driver = || {
        let rest = target.trim_start_matches("../");
        let mut parts = rest.trim_start_matches("/sys/").split('/');
        let is_form =
            (parts.next(), parts.next().map(is_bus), parts.next()) == (Some("bus"), Some(true), Some("drivers"));
        let name = parts.next()?;
        let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        (is_form && is_plain && parts.next().is_none()).then_some(())
    };
    if of_driver().is_some() || holders::is_watched(target) {
        return target.to_string();
    }
    names.of(Kind::Word, target)
}

fn is_bus(name: &str) -> bool {
    matches!(
        name,
        "pci"
            | "virtio"
            | "usb"
            | "platform"
            | "vmbus"
            | "xen"
            | "sdio"
            | "auxiliary"
            | "acpi"
            | "ccw"
            | "vio"
            | "mdio_bus"
    )
}

/// Files that hold identifiers, wherever they lie.
const SECRET: &[&str] = &[
    "serial",
    "uuid",
    "wwid",
    "wwn",
    "asset",
    "eui",
    "nguid",
    "address",
    "alias",
    "hostname",
    "domainname",
    "machine-id",
    "machine_id",
    "phys_port_id",
    "phys_switch_id",
    "unique_id",
    "boot_id",
    "guid",
    "nqn",
    "sku",
    "broadcast",
    "uevent",
];

/// Files in which kernel, driver or firmware wrote every word.
fn is_kernels(path: &str) -> bool {
    const ROOTS: &[&str] = &[
        "/sys/devices",
        "/sys/class/hwmon",
        "/sys/class/thermal",
        "/sys/class/powercap",
        "/sys/bus/event_source",
        "/sys/bus/pci/devices",
        "/sys/module",
        "/sys/kernel",
        "/sys/firmware/devicetree/base/compatible",
        "/sys/firmware/devicetree/base/hypervisor",
        "/sys/firmware/dmi/tables/smbios_entry_point",
        "/proc/stat",
        "/proc/cpuinfo",
        "/proc/uptime",
        "/proc/loadavg",
        "/proc/meminfo",
        "/proc/pressure",
        "/proc/irq",
        "/proc/sys/kernel/osrelease",
        "/proc/sys/kernel/version",
        "/dev/cpu_dma_latency",
        "/dev/cpu_wakeup_latency",
    ];
    const OF_DMI: &[&str] = &["sys_vendor", "product_name", "board_name", "bios_version", "bios_date"];
    let (folder, file) = path.rsplit_once('/').unwrap_or_default();
    ROOTS.iter().any(|root| below(path, root).is_some())
        || (folder == "/sys/class/dmi/id" && OF_DMI.contains(&file))
        || (path.starts_with("/sys/class/nvme/") && file == "model")
        || (below(path, GROUPS).is_some()
            && ["cpu.", "cpuset.", "cgroup.controllers"].iter().any(|f| file.starts_with(f)))
        || path.starts_with("ethtool:")
}

/// Masks the text of one file.
fn text(path: &str, text: &str, release: Option<&str>, names: &mut Names) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    let in_process = path.strip_prefix("/proc/").and_then(|rest| rest.split_once('/'));
    let masked = match path {
        "/proc/cmdline" => return boot_line::mask(text, release, names),
        "/proc/interrupts" => return devices::interrupts(text, names),
        "/proc/version" => version(text),
        "/proc/cpuinfo" => mask_lines(text, &["Serial", "serial number"]),
        _ if matches!(in_process, Some((_, "cgroup"))) => return cgroups::membership(text, names),
        _ if matches!(in_process, Some((_, "comm"))) => process(text, names),
        _ if file != "modalias" && SECRET.iter().any(|word| file.contains(word)) => secret(text, names),
        _ if is_kernels(path) => text.to_string(),
        _ => values(text, names),
    };
    let plain = addresses(&masked);
    if plain != masked {
        names.count(Kind::Address);
    }
    plain
}

fn secret(text: &str, names: &mut Names) -> String {
    if matches!(text.trim(), "" | "masked" | "(none)") {
        return text.to_string();
    }
    names.count(Kind::Word);
    if text.ends_with('\n') { "masked\n".into() } else { "masked".into() }
}

/// A process's name, unless it is a daemon that facts know or a program that is known to hold latency limits.
fn process(text: &str, names: &mut Names) -> String {
    let name = text.trim_end_matches('\n');
    let end = &text[name.len()..];
    format!("{}{end}", known_process(name, names))
}

/// The same for a bare name.
fn known_process(name: &str, names: &mut Names) -> String {
    const PROGRAMS: &[&str] =
        &["wakewatt", "cyclictest", "systemd", "powertop", "turbostat", "pipewire", "pulseaudio", "kthreadd"];
    const KERNEL: &[&str] = &[
        "kworker",
        "ksoftirqd",
        "migration",
        "rcu_sched",
        "rcu_preempt",
        "rcuc",
        "rcuop",
        "rcuos",
        "rcuog",
        "cpuhp",
        "kcompactd",
        "kswapd",
        "irq",
        "watchdogd",
        "idle_inject",
    ];
    let front = name.split('/').next().unwrap_or(name);
    let is_kernels = KERNEL.contains(&front)
        && name.chars().skip(front.len()).all(|c| c.is_ascii_digit() || matches!(c, '/' | ':' | 'u' | 'H'));
    let is_idle = front == "swapper" && name[front.len()..].chars().all(|c| c.is_ascii_digit() || c == '/');
    if PROGRAMS.contains(&name) || is_idle || is_kernels || holders::DAEMONS.iter().any(|d| d.comm == name) {
        name.to_string()
    } else {
        names.of(Kind::Process, name)
    }
}

/// Words that stand in small files of the kernel.
const WORDS: &[&str] = &[
    "up",
    "down",
    "unknown",
    "dormant",
    "lowerlayerdown",
    "testing",
    "notpresent",
    "live",
    "connecting",
    "resetting",
    "new",
    "deleting",
    "dead",
    "mq",
    "deadline",
    "kyber",
    "bfq",
    "any",
    "docker",
    "podman",
    "lxc",
    "oci",
    "systemd",
    "nspawn",
    "xen",
    "kvm",
    "max",
    "some",
    "full",
    "avg10",
    "avg60",
    "avg300",
    "total",
    "write",
    "back",
    "through",
];

/// Numbers and words of a short list stay; any other word goes.
fn values(text: &str, names: &mut Names) -> String {
    let mut out = String::with_capacity(text.len());
    let mut token = String::new();
    for c in text.chars().map(Some).chain([None]) {
        match c {
            Some(c) if !c.is_whitespace() => token.push(c),
            other => {
                let bare = token.trim_matches(['[', ']', '(', ')', ':', '=', ',']);
                let is_known = bare.split(['-', '_']).all(|w| w.is_empty() || WORDS.contains(&w)) || is_mask(bare);
                if bare.is_empty() || is_known || boot_line::is_plain(bare) {
                    out.push_str(&token);
                } else {
                    out.push_str(&token.replace(bare, &names.of(Kind::Word, bare)));
                }
                token.clear();
                out.extend(other);
            }
        }
    }
    out
}

/// A CPU mask: groups of eight hexadecimal digits.
fn is_mask(text: &str) -> bool {
    text.split(',').all(|group| !group.is_empty() && group.len() <= 8 && group.chars().all(|c| c.is_ascii_hexdigit()))
        && (text.contains(',') || text.chars().all(|c| matches!(c, '0' | 'f')) || text.len() <= 2)
}

fn mask_lines(text: &str, keys: &[&str]) -> String {
    text.split_inclusive('\n')
        .map(|line| match keys.iter().find(|k| line.starts_with(**k)) {
            Some(key) => format!("{key}\t: masked\n"),
            None => line.to_string(),
        })
        .collect()
}

/// Who built the kernel, and where, in the kernel's version line: `(user@host)`.
fn version(text: &str) -> String {
    let words = text.split(' ').map(|word| match word.contains('@') && word.trim_end() != "@0" {
        true if word.ends_with('\n') => "(user@host)\n",
        true => "(user@host)",
        false => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
