//! Names of interfaces, disks and interrupts: what the kernel or udev made from a number or a place stays, what somebody
//! chose, or what holds an address, goes.
//!
//! Grammars: Documentation/admin-guide/devices.txt for disks; systemd.net-naming-scheme(7) for interfaces, without its
//! `x` form, which is the hardware address in hexadecimal. `enp3s0f1np1` names a slot, not a machine. The name of an
//! interrupt is free text of a driver in which interfaces' names stand (`i40e-dbnet-TxRx-3`); its words are kept when they
//! are numbers, parts of a PCI address, or words that drivers use.

use super::addresses::addresses;
use super::names::{Kind, Names, is_replacement};

/// Interfaces named by kind and number.
const NUMBERED_NETS: &[&str] = &[
    "eth", "wlan", "wwan", "bond", "team", "br", "virbr", "docker", "dummy", "ifb", "tun", "tap", "veth", "vlan",
    "gre", "gretap", "sit", "ip6tnl", "tunl", "ib", "usb", "lan", "wan", "can", "vcan", "ppp", "wg", "lxcbr", "lxdbr",
    "cni", "hsn",
];

/// Disks named by kind and number.
const NUMBERED_DISKS: &[&str] = &[
    "loop", "ram", "zram", "dm-", "md", "sr", "nbd", "rbd", "drbd", "pmem", "fd", "nullb", "ublkb", "zd", "bcache",
    "mmcblk", "scm",
];

/// Disks named by kind and letters.
const LETTERED_DISKS: &[&str] = &["sd", "vd", "xvd", "hd", "dasd", "ubd"];

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.len() <= 6 && text.chars().all(|c| c.is_ascii_digit())
}

/// Takes digits off the front; none where there are none.
fn after_digits(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    (rest.len() < text.len()).then_some(rest)
}

/// An interface's name, or its replacement.
pub(super) fn interface(name: &str, names: &mut Names) -> String {
    if name == "lo" || name == "bonding_masters" || is_replacement(name) || is_plain_interface(name) {
        return name.to_string();
    }
    names.of(Kind::Interface, name)
}

fn is_plain_interface(name: &str) -> bool {
    if NUMBERED_NETS.iter().any(|front| name.strip_prefix(front).is_some_and(is_digits)) {
        return true;
    }
    let front = ["en", "wl", "ww", "ib", "sl"].iter().find_map(|front| name.strip_prefix(*front));
    front.is_some_and(|place| is_place(place).is_some())
}

/// `o1`, `s3f0`, `p3s0f1np1d0`, with a PCI domain before: `P1p3s0`.
fn is_place(mut rest: &str) -> Option<()> {
    let mut n = 0;
    while !rest.is_empty() {
        let front = ["np", "P", "p", "s", "o", "f", "d", "n", "v", "r", "u", "i", "c"];
        rest = front.iter().find_map(|front| after_digits(rest.strip_prefix(*front)?))?;
        n += 1;
    }
    (n > 0 && n <= 8).then_some(())
}

/// A disk's name, or its replacement. What facts pass over by its front keeps the front.
pub(super) fn disk(name: &str, names: &mut Names) -> String {
    let is_replaced = is_replacement(name) || name.strip_prefix("md_").is_some_and(is_replacement);
    if is_replaced || is_plain_disk(name) {
        return name.to_string();
    }
    if name.starts_with("md") {
        let new = format!("md_{}", names.of(Kind::Word, name));
        return new;
    }
    names.of(Kind::Disk, name)
}

fn is_plain_disk(name: &str) -> bool {
    let is_letters = |rest: &str| {
        let number = rest.trim_start_matches(|c: char| c.is_ascii_lowercase());
        let letters = rest.len() - number.len();
        letters > 0 && letters <= 3 && (number.is_empty() || is_digits(number))
    };
    let is_partition = |rest: &str| rest.is_empty() || rest.strip_prefix('p').is_some_and(is_digits);
    let is_nvme = || {
        let mut rest = after_digits(name.strip_prefix("nvme")?)?;
        if let Some(path) = rest.strip_prefix('c') {
            rest = after_digits(path)?;
        }
        if rest.is_empty() {
            return Some(());
        }
        is_partition(after_digits(rest.strip_prefix('n')?)?).then_some(())
    };
    is_nvme().is_some()
        || LETTERED_DISKS.iter().any(|front| name.strip_prefix(front).is_some_and(is_letters))
        || NUMBERED_DISKS.iter().any(|front| name.strip_prefix(front).and_then(after_digits).is_some_and(is_partition))
}

/// Words of drivers in the names of interrupts, in lower case and without numbers at their end.
#[rustfmt::skip]
const DRIVER_WORDS: &[&str] = &[
    "acpi", "ged", "ahci", "i8042", "rtc", "timer", "cascade", "floppy", "parport", "pcieport", "pcie", "aer", "pme", "pciehp", "dpc", "bwctrl",
    "hotplug", "xhci", "ehci", "uhci", "ohci", "hcd", "usb", "nvme", "q", "virtio", "config", "req", "request", "requests",
    "input", "output", "control", "event", "events", "rx", "tx", "txrx", "comp", "async", "pages", "cmd", "cmdq", "eq",
    "ceq", "aeq", "mlx", "mlx5", "mlx4", "bnxt", "en", "ena", "mgmnt", "mgmt", "i40e", "iavf", "ice", "igb", "igc", "ixgbe",
    "ixgbevf", "fm10k", "e1000", "e1000e", "r8169", "r8168", "tg3", "bnx2", "bnx2x", "fp", "sp", "qede", "qed", "sfc",
    "gve", "vmxnet", "vmxnet3", "rxtx", "hv", "netvsc", "vmbus", "megasas", "megaraid", "msix", "msi", "mpt2sas", "mpt3sas",
    "smartpqi", "hpsa", "aacraid", "qla2xxx", "lpfc", "dmar", "iommu", "amd", "vi", "ivhd", "ppr", "ga", "i915", "nvidia",
    "nouveau", "amdgpu", "radeon", "snd", "hda", "intel", "idxd", "dsa", "iax", "ioat", "ioatdma", "dma", "ptdma", "ccp",
    "qat", "ptp", "mei", "me", "ismt", "i2c", "i801", "smbus", "smb", "gpio", "pinctrl", "dwapb", "spi", "uart", "ttys",
    "ttyama", "pl011", "pl", "virtqueues", "optee", "sdma", "rtc0", "pmu", "armpmu", "arch", "arm", "thermal", "power", "button", "vfio", "intx", "iwlwifi", "queue",
    "default", "exception", "fast", "path", "balloon", "inflate", "deflate", "stats", "reporting", "vq", "hiprio", "fs",
    "rng", "gpu", "vsock", "scsi", "net", "blk", "console", "pci", "irq", "int", "err", "error", "edac", "ras", "sbsa",
    "gwdt", "watchdog", "hns", "hns3", "hisi", "sas", "smmu", "smmuv3", "gerror", "combined", "evtq", "priq", "misc",
    "mbx", "mailbox", "ctrl", "link", "lsc", "fdir", "ch", "channel", "swr", "notify", "ipmi", "si", "bmc", "kcs",
    "tpm", "tis", "serial", "mdev", "eth", "wlan", "bond", "port", "ata", "sata", "pata", "ide", "mmc", "sdhci", "dw",
    "idma", "idma64", "lpss", "thunderbolt", "typec", "ucsi", "cros", "ec", "elan", "synaptics", "wacom", "hid", "and", "or",
    "acpitimer", "hpet", "apic", "msr", "gic", "gicv3", "its", "mc", "nic", "roce", "rdma", "ib", "irdma", "hfi1", "hfi", "wm",
    "ufshcd", "ufs", "cxl", "cxlmd", "pcc", "cppc", "vgic", "kvm", "guest", "xen", "evtchn", "dynamic", "percpu", "hvc", "tty", "thing", "one", "two",
];

/// /proc/interrupts with the names of devices masked; counts and the kernel's own lines stay.
pub(super) fn interrupts(text: &str, names: &mut Names) -> String {
    let lines = text.split_inclusive('\n').map(|line| {
        let is_device = line.split_once(':').is_some_and(|(label, _)| is_digits(label.trim()));
        let at = device_at(line);
        if is_device && at < line.len() {
            let (front, device) = line.split_at(at);
            format!("{front}{}", device_name(device, names))
        } else if !line.contains(':') && line.split_whitespace().any(|word| !word.starts_with("CPU")) {
            // Neither the header nor a line that the kernel makes.
            "\n".to_string()
        } else {
            line.to_string()
        }
    });
    lines.collect()
}

/// Where the device's name starts: behind the word for the trigger, else the last word.
fn device_at(line: &str) -> usize {
    let mut last = line.len();
    let mut words =
        line.split_whitespace().map(|word| (word.as_ptr() as usize - line.as_ptr() as usize, word)).skip(1).peekable();
    while let Some((at, word)) = words.next() {
        if ["edge", "level", "fasteoi", "Edge", "Level"].iter().any(|t| word.ends_with(t)) {
            return words.peek().map_or(line.len(), |next| next.0);
        }
        if word.parse::<u64>().is_err() {
            last = at;
        }
    }
    last
}

fn device_name(text: &str, names: &mut Names) -> String {
    let text = names.replaced(&[Kind::Interface, Kind::Disk], &addresses(text));
    let mut out = String::with_capacity(text.len());
    let mut word = String::new();
    for c in text.chars().map(Some).chain([None]) {
        match c {
            Some(c) if c.is_alphanumeric() => word.push(c),
            other => {
                out.push_str(&device_word(&word, names));
                word.clear();
                out.extend(other);
            }
        }
    }
    out
}

fn device_word(word: &str, names: &mut Names) -> String {
    let lower = word.to_ascii_lowercase();
    let stem = lower.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_pci = word.len() <= 4 && word.chars().all(|c| c.is_ascii_hexdigit());
    let is_driver = DRIVER_WORDS.contains(&stem) || DRIVER_WORDS.contains(&lower.as_str());
    let is_kept = word.is_empty()
        || is_digits(word)
        || is_pci
        || is_replacement(word)
        || is_driver
        || is_plain_interface(word)
        || is_plain_disk(word)
        // A queue of a disk: nvme0q12.
        || lower.strip_prefix("nvme").and_then(after_digits).and_then(|rest| rest.strip_prefix('q')).is_some_and(is_digits);
    if is_kept { word.to_string() } else { names.of(Kind::Device, word) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_stay_and_chosen_names_go() {
        let mut names = Names::default();
        for name in ["lo", "eth0", "eno1", "ens3f0np0", "enp3s0f1", "enP2p1s0", "wlp2s0", "ib0", "maskednet3"] {
            assert_eq!(interface(name, &mut names), name);
        }
        for (n, name) in
            ["enx001122334455", "wlxaabbccddeeff", "dbnet", "eth0.100", "vethf00ba4", "en", "acme1"].iter().enumerate()
        {
            assert_eq!(interface(name, &mut names), format!("maskednet{}", n + 1), "{name}");
        }
        for name in
            ["sda", "vdb", "nvme0n1", "nvme0c1n1", "nvme0n1p2", "dm-3", "md127", "loop0", "zram0", "mmcblk0", "sdaa1"]
        {
            assert_eq!(disk(name, &mut names), name);
        }
        assert_eq!(
            (disk("acme", &mut names), disk("md_acme", &mut names)),
            ("maskeddisk1".into(), "md_maskedword1".into())
        );
    }

    #[test]
    fn an_interrupt_loses_the_interfaces_name_and_keeps_its_shape() {
        let mut names = Names::default();
        interface("enx001122334455", &mut names);
        interface("db-net", &mut names);
        let text = "   CPU0 CPU1\n 36: 0 8 PCI-MSIX-0000:00:02.0 1-edge virtio1-req.0\n 37: 1 0 IR-PCI-MSI 5-edge i40e-enx001122334455-TxRx-1\n \
                    38: 0 0 PCI-MSI 6-edge db-net-rx-0\n 39: 1 1 x 7-edge mlx5_comp0@pci:0000:3b:00.0\n 40: 0 0 z 9-edge acmecard 00:11:22:33:44:55\n \
                    41: 0 5\n LOC: 4 5 Local timer interrupts\n";
        let masked = interrupts(text, &mut names);
        assert_eq!(
            masked,
            text.replace("enx001122334455", "maskednet1")
                .replace("db-net", "maskednet2")
                .replace("acmecard 00:11:22:33:44:55", "maskeddev1 00:00:00:00:00:00")
        );
        assert_eq!(interrupts(&masked, &mut Names::default()), masked);
    }
}
