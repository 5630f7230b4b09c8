//! The boot line: words that say how the machine behaves stay, words that say which machine it is go.
//!
//! An allow-list on both sides of the `=`. A key stays when wakewatt's parsers, rules or knobs look at it ([`KEPT`]), or when
//! it says nothing by itself ([`HARMLESS`]); any other word goes as a whole. A value stays only if the key is looked at and every word in the value is a number or one that such parameters
//! take ([`VALUES`]). What follows `--` is for init and is dropped. Sources: Documentation/admin-guide/
//! kernel-parameters.txt; dracut.cmdline(7), systemd(1) and kernel-command-line(7) for what user space takes.

use super::addresses::addresses;
use super::names::{Kind, Names};
use crate::facts::boot::is_same_name;

/// Keys whose values are kept if they are plain: those that rules and facts look at, and those that explain behaviour.
/// `wakewatt-tune` tests that the parameters it sets are here.
#[rustfmt::skip]
pub const KEPT: &[&str] = &[
    "idle", "nohz", "nohz_full", "isolcpus", "rcu_nocbs", "rcu_nocb_poll", "irqaffinity", "nosmt", "smt", "maxcpus",
    "nr_cpus", "possible_cpus", "skew_tick", "highres", "hpet", "tsc", "clocksource", "timer_migration", "threadirqs",
    "preempt", "mce", "nmi_watchdog", "nowatchdog", "nosoftlockup", "watchdog_thresh", "audit", "quiet", "debug",
    "panic", "reboot", "ro", "rw", "console", "earlyprintk", "earlycon", "loglevel", "mitigations", "nopti", "pti",
    "nospectre_v1", "nospectre_v2", "spectre_v2", "spectre_v2_user", "spec_store_bypass_disable", "l1tf", "mds",
    "tsx", "tsx_async_abort", "retbleed", "srbds", "mmio_stale_data", "gather_data_sampling", "intel_pstate",
    "amd_pstate", "amd_prefcore", "amd_pmf", "intel_idle", "acpi_osi", "noapic", "nolapic", "x2apic_phys", "iommu",
    "intel_iommu", "amd_iommu", "pci", "pcie_aspm", "pcie_port_pm", "transparent_hugepage", "hugepages", "hugepagesz",
    "default_hugepagesz", "numa", "numa_balancing", "cgroup_disable", "cgroup_enable", "psi", "swiotlb", "nomodule",
    "nomodeset", "nokaslr", "selinux", "enforcing", "apparmor", "lockdown", "kvm", "nested", "rcupdate",
    "workqueue.power_efficient", "cpufreq.off", "cpufreq.default_governor", "cpuidle.off", "cpuidle.governor",
    "intel_idle.max_cstate", "intel_idle.states_off", "intel_idle.use_acpi", "intel_idle.no_acpi", "intel_idle.no_native",
    "intel_idle.table", "intel_idle.ibrs_off", "intel_idle.preferred_cstates", "processor.nocst", "pm_qos_resume_latency_us",
    "processor.ignore_ppc", "haltpoll.guest_halt_poll_ns", "haltpoll.guest_halt_poll_shrink",
    "haltpoll.guest_halt_poll_grow", "haltpoll.guest_halt_poll_grow_start", "haltpoll.guest_halt_poll_allow_shrink",
    "kvm.halt_poll_ns", "kvm.halt_poll_ns_grow", "kvm.halt_poll_ns_grow_start", "kvm.halt_poll_ns_shrink",
    "processor.max_cstate", "haltpoll.force", "cpuidle_haltpoll.force", "nvme_core.default_ps_max_latency_us",
    "pcie_aspm.policy", "virtio_mmio.device", "random.trust_cpu", "msr.allow_writes", "rcupdate.rcu_cpu_stall_cputime",
    "rcutree.use_softirq", "rcutree.kthread_prio", "crashkernel", "zswap.enabled", "systemd.unified_cgroup_hierarchy",
    "splash", "rhgb", "nofb", "no_timer_check", "noibrs", "noibpb", "split_lock_detect", "cpufreq_driver",
];

/// Keys that may stay though their values go: each is what dozens of machines have.
#[rustfmt::skip]
const HARMLESS: &[&str] = &[
    "root", "rootflags", "rootfstype", "rootdelay", "rootwait", "resume", "resume_offset", "initrd", "init", "rdinit",
    "ip", "BOOTIF", "BOOT_IMAGE", "nfsroot", "nfsaddrs", "hostname", "systemd.hostname", "systemd.unit",
    "systemd.machine_id", "systemd.run", "systemd.mask", "systemd.wants", "systemd.setenv", "systemd.set_credential",
    "rd.luks", "rd.luks.uuid", "rd.luks.name", "rd.luks.key", "rd.luks.options", "luks.uuid", "luks.name", "luks",
    "rd.lvm.lv", "rd.lvm.vg", "rd.md.uuid", "rd.dm.uuid", "rd.iscsi.initiator", "rd.iscsi.target", "rd.iscsi.firmware",
    "iscsi_initiator", "netroot", "rd.route", "rd.neednet", "rd.znet", "rd.break", "rd.auto", "ifname", "bridge",
    "bond", "team", "vlan", "nameserver", "ks", "inst.ks", "inst.repo", "inst.stage2", "inst.sshpw", "sshpw", "inst.vnc",
    "inst.vncpassword", "url", "autoinstall", "ds", "cloud-config-url", "netconsole", "rootfs", "cryptdevice",
    "cryptkey", "zfs", "ostree", "boot", "fips", "coreos.config.url", "ignition.config.url", "ignition.platform.id",
    "ignition.firstboot", "flatcar.oem.id", "locale", "LANG", "vconsole.keymap", "vconsole.font", "keyb", "TERM",
];

/// Words that values of the kept keys are made of.
#[rustfmt::skip]
const VALUES: &[&str] = &[
    "on", "off", "auto", "yes", "no", "y", "n", "true", "false", "none", "full", "force", "enable", "enabled", "disable",
    "disabled", "default", "poll", "halt", "nomwait", "active", "passive", "guided", "undefined", "hwp", "only",
    "performance", "powersave", "powersupersave", "schedutil", "ondemand", "conservative", "userspace", "menu", "teo",
    "ladder", "haltpoll", "acpi", "native", "domain", "managed", "irq", "nohz", "tick", "workqueue", "rcu", "misc",
    "timer", "kthread", "tsc", "hpet", "pm", "jiffies", "kvm", "clock", "reliable", "unstable", "nowatchdog", "lazy",
    "voluntary", "always", "madvise", "never", "k", "b", "t", "w", "c", "f", "p", "e", "warm", "cold", "hard", "soft",
    "bios", "efi", "pci", "triple", "noaer", "nomsi", "nocrs", "pcie", "bus", "perf", "safe", "realloc", "pt", "strict",
    "passthrough", "noforce", "nosmt", "noexec", "guest", "host", "ibrs", "ibpb", "retpoline", "eibrs", "lfence",
    "generic", "stibp", "unret", "seccomp", "prctl", "mmio", "serial", "uart8250", "uart", "io", "mem", "integrity",
    "confidentiality", "memory", "cpu", "cpuset", "fatal", "warn", "ratelimit", "bootlog", "debug", "high", "low",
    "flush", "nowarn", "cond", "mode", "tty", "ttys", "ttyama", "ttyusb", "hvc", "ttyhvc", "and", "all", "vmx",
];

/// Masks the whole line.
pub(super) fn mask(text: &str, release: Option<&str>, names: &mut Names) -> String {
    let line = text.trim_end_matches('\n');
    let mut words: Vec<String> = Vec::new();
    for word in split(line) {
        // What follows "--" is for init, not for the kernel.
        if word == "--" {
            break;
        }
        words.push(mask_word(word, release, names));
    }
    // The kernel's own blank at the end is not ours to take.
    let mut line_out = words.join(" ");
    if line.ends_with(' ') {
        line_out.push(' ');
    }
    if text.ends_with('\n') { format!("{line_out}\n") } else { line_out }
}

/// At blanks outside of double quotes.
fn split(line: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    line.split(move |c: char| {
        is_quoted ^= c == '"';
        c.is_whitespace() && !is_quoted
    })
    .filter(|word| !word.is_empty())
}

fn mask_word(word: &str, release: Option<&str>, names: &mut Names) -> String {
    let (key, value) = match word.split_once('=') {
        Some((key, value)) => (key, Some(value)),
        None => (word, None),
    };
    let is_in = |list: &[&str]| list.iter().any(|known| is_same_name(known, key));
    let kept = match value {
        _ if key == "BOOT_IMAGE" => value.map(|value| image(value, release)),
        None if is_in(KEPT) || is_in(HARMLESS) => Some(word.to_string()),
        Some(value) if is_in(KEPT) && is_plain(value) => Some(word.to_string()),
        Some(_) if is_in(KEPT) || is_in(HARMLESS) => Some(format!("{key}=masked")),
        _ => None,
    };
    match kept {
        Some(kept) => {
            names.keep(Kind::Argument, word, &kept);
            kept
        }
        None => names.of(Kind::Argument, word),
    }
}

/// The kernel's file name, where it is the release that the capture has anyway.
fn image(value: &str, release: Option<&str>) -> String {
    let name = value.rsplit('/').next().unwrap_or_default();
    let version = name.split_once('-').map(|(_, version)| version);
    let is_common = matches!(name, "kernel" | "vmlinuz" | "vmlinux" | "bzImage" | "Image" | "linux" | "masked");
    if is_common || (version.is_some() && version == release) {
        format!("BOOT_IMAGE={name}")
    } else {
        "BOOT_IMAGE=masked".into()
    }
}

/// Nothing but numbers, units and words of [`VALUES`], and no address.
pub(super) fn is_plain(value: &str) -> bool {
    let is_number = |word: &str| {
        let digits = word.trim_start_matches("0x");
        let front = digits.trim_start_matches(|c: char| c.is_ascii_digit());
        let is_unit = matches!(
            front,
            "" | "n8" | "n8r" | "K" | "M" | "G" | "T" | "us" | "ms" | "s" | "ns" | "hz" | "kHz" | "MHz"
        );
        let is_hex = word.starts_with("0x") && digits.len() <= 16 && digits.chars().all(|c| c.is_ascii_hexdigit());
        word.len() <= 18 && ((digits.len() > front.len() && is_unit) || is_hex)
    };
    let is_known = |word: &str| {
        let lower = word.to_ascii_lowercase();
        let stem = lower.trim_end_matches(|c: char| c.is_ascii_digit());
        // A state: C6, C1E.
        let state = lower.strip_prefix('c').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let is_state = stem.len() <= 1
            || state.is_some_and(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()).len() <= 1);
        VALUES.contains(&lower.as_str()) || VALUES.contains(&stem) || (is_state && lower.len() <= 4)
    };
    let mut words = value.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    value.is_ascii() && addresses(value) == value && words.all(|word| is_number(word) || is_known(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(line: &str) -> String {
        mask(line, Some("6.1.0-9"), &mut Names::default())
    }

    #[test]
    fn behaviour_stays_and_names_go() {
        let line = "BOOT_IMAGE=http://d/pxe/node/h1/kernel root=UUID=7a3b ro intel_idle.max_cstate=1 ip=10.1.1.1::h1 \
                    x=db7.corp,3 myhost=db7 quiet isolcpus=domain,managed_irq,2-5 console=ttyS0,115200n8 nosmt=force\n";
        assert_eq!(
            masked(line),
            "BOOT_IMAGE=kernel root=masked ro intel_idle.max_cstate=1 ip=masked masked-1 masked-2 quiet \
             isolcpus=domain,managed_irq,2-5 console=ttyS0,115200n8 nosmt=force\n"
        );
        for line in [
            "intel_idle.table=C1:1:3,C6:50:100,c1e:2:4",
            "pcie_aspm.policy=powersave",
            "idle=nomwait ",
            "mitigations=auto,nosmt",
        ] {
            assert_eq!(masked(line), line);
        }
    }

    #[test]
    fn what_leaked_before_is_gone() {
        let line = "BOOTIF=01-aa-bb-cc-dd-ee-ff sshpw=geheim inst.sshpw=geheim systemd.machine_id=0123456789abcdef0123456789abcdef \
                    systemd.unit=geheim.target rd.luks.name=7a3b=geheim rd.route=10.0.0.0/8:192.168.7.1:geheim0 user=geheim \
                    geheim geheim.max=1 intel_idle.geheim=geheim idle=geheim BOOT_IMAGE=/geheim/vmlinuz-geheim \
                    dyndbg=\"file geheim +p\" BOOT_IMAGE=/boot/vmlinuz-6.1.0-9 isolcpus=10.0.0.1 isolcpus=corp idle=c3po -- geheim";
        let once = masked(line);
        for secret in ["geheim", "aa-bb", "7a3b", "10.0.0", "192.168", "01234", "corp", "c3po"] {
            assert!(!once.contains(secret), "{secret} in {once}");
        }
        assert!(once.contains("idle=masked") && once.contains("BOOT_IMAGE=vmlinuz-6.1.0-9"), "{once}");
        assert_eq!(masked(&once), once, "masking twice changes nothing");
    }
}
