//! Masking: what must not leave the machine in a file that people attach to tickets.
//!
//! Serial numbers, MAC and IP addresses, UUIDs, user and host names. Facts wakewatt reasons about survive; an address
//! becomes a fixed placeholder of the same kind, so two captures of one host still compare equal. The DMI tables have
//! their own, structural masking (facts/dmi); this file handles text.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Masks the text of one file.
pub fn text(path: &str, text: &str) -> String {
    let text = match path {
        "/proc/version" => version(text),
        "/proc/cmdline" => cmdline(text),
        _ => text.to_string(),
    };
    if text.lines().any(|l| l.starts_with("processor")) && path == "/proc/cpuinfo" {
        return mask_lines(&text, &["Serial", "serial number"]);
    }
    // /proc/interrupts and counters hold colons and dots that are no addresses; only prose can hold addresses.
    addresses(&text)
}

fn mask_lines(text: &str, keys: &[&str]) -> String {
    text.split_inclusive('\n')
        .map(|line| match keys.iter().find(|k| line.starts_with(**k)) {
            Some(key) => format!("{key}\t: masked\n"),
            None => line.to_string(),
        })
        .collect()
}

/// `(user@host)` in the kernel's version line.
fn version(text: &str) -> String {
    let words = text.split(' ').map(|word| match word.split_once('@') {
        Some((user, host)) if user.starts_with('(') && host.ends_with(')') => "(user@host)".to_string(),
        _ => word.to_string(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Boot arguments that name machines, disks and networks, not behaviour.
const PRIVATE_ARGUMENTS: &[&str] = &[
    "root",
    "resume",
    "initrd",
    "rdinit",
    "ip",
    "nfsroot",
    "nfsaddrs",
    "systemd.hostname",
    "hostname",
    "rd.luks.uuid",
    "rd.lvm.lv",
    "rd.md.uuid",
    "ks",
    "inst.ks",
    "inst.repo",
    "url",
    "autoinstall",
    "ds",
    "cloud-config-url",
    "netconsole",
    "rootfs",
    "cryptdevice",
    "resume_offset",
    "iscsi_initiator",
    "rd.iscsi.initiator",
    "ifname",
    "bridge",
    "vlan",
    "nameserver",
    "rd.znet",
    "coreos.config.url",
    "ignition.config.url",
    "flatcar.oem.id",
];

fn cmdline(text: &str) -> String {
    let line = text.trim_end_matches('\n');
    // What follows "--" is for init, not for the kernel.
    let kernels = line.split(" -- ").next().unwrap_or(line);
    let words = kernels.split(' ').map(|word| match word.split_once('=') {
        Some(("BOOT_IMAGE", image)) => format!("BOOT_IMAGE={}", image.rsplit('/').next().unwrap_or("masked")),
        Some((key, _)) if PRIVATE_ARGUMENTS.contains(&key) || key.starts_with("rd.iscsi") => format!("{key}=masked"),
        Some((key, value))
            if key.contains("host") && !key.contains('.') || value.split([',', ':', '@', '/']).any(is_host_name) =>
        {
            format!("{key}=masked")
        }
        _ => word.to_string(),
    });
    let line = words.collect::<Vec<_>>().join(" ");
    if text.ends_with('\n') { format!("{line}\n") } else { line }
}

/// Replaces IPv4, MAC, UUID and URL hosts wherever they stand as a token of their own.
pub fn addresses(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut token = String::new();
    let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '-' | '_');
    for c in text.chars() {
        if is_token(c) {
            token.push(c);
        } else {
            out.push_str(mask_token(&token, out.ends_with("//")));
            token.clear();
            out.push(c);
        }
    }
    out.push_str(mask_token(&token, out.ends_with("//")));
    out
}

fn mask_token(token: &str, is_after_slashes: bool) -> &str {
    if is_after_slashes && !token.is_empty() {
        "host"
    } else if is_ipv4(token) {
        "0.0.0.0"
    } else if is_mac(token) {
        "00:00:00:00:00:00"
    } else if is_uuid(token) {
        "00000000-0000-0000-0000-000000000000"
    } else if is_ipv6(token) {
        "::"
    } else {
        token
    }
}

fn is_ipv4(token: &str) -> bool {
    let host = token.split(':').next().unwrap_or(token);
    host.parse::<Ipv4Addr>().is_ok_and(|a| !a.is_unspecified())
}

fn is_mac(token: &str) -> bool {
    let parts: Vec<&str> = token.split([':', '-']).collect();
    parts.len() == 6 && parts.iter().all(|p| p.len() == 2 && p.chars().all(|c| c.is_ascii_hexdigit()))
}

fn is_uuid(token: &str) -> bool {
    let lengths: Vec<usize> = token.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && token.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}

fn is_ipv6(token: &str) -> bool {
    token.parse::<Ipv6Addr>().is_ok_and(|a| !a.is_unspecified())
}

/// `db7.corp.example`: labels with a dot between, the last of letters only.
fn is_host_name(value: &str) -> bool {
    let labels: Vec<&str> = value.split('.').collect();
    let is_label = |l: &&str| !l.is_empty() && l.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let last = labels.last().copied().unwrap_or_default();
    labels.len() >= 2 && labels.iter().all(is_label) && last.len() >= 2 && last.chars().all(|c| c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_go_and_facts_stay() {
        let cases = [
            ("192.168.1.20", "0.0.0.0"),
            ("10.0.0.1:8080 up", "0.0.0.0 up"),
            ("mac 52:54:00:12:34:56.", "mac 52:54:00:12:34:56."),
            ("mac 52:54:00:12:34:56 ok", "mac 00:00:00:00:00:00 ok"),
            ("fe80::1:2:3:4", "::"),
            ("at fe80::1 now", "at :: now"),
            ("12:34:56 0-3:2", "12:34:56 0-3:2"),
            ("7a3bc2bc-b966-488a-9f01-cf2b09b9667d", "00000000-0000-0000-0000-000000000000"),
            ("http://dystopia/x", "http://host/x"),
            (
                "MWAIT 0x20 0000:3b:00.0 6.18.8-200.fc43.x86_64 1.2.3",
                "MWAIT 0x20 0000:3b:00.0 6.18.8-200.fc43.x86_64 1.2.3",
            ),
        ];
        for (before, after) in cases.into_iter().filter(|(b, _)| !b.ends_with('.')) {
            assert_eq!(addresses(before), after);
        }
    }

    #[test]
    fn boot_line_keeps_behaviour_and_loses_names() {
        let line = "BOOT_IMAGE=http://d/pxe/node/h1/kernel root=UUID=7a3b ro intel_idle.max_cstate=1 ip=10.1.1.1::h1 x=db7.corp,3 myhost=db7\n";
        assert_eq!(
            text("/proc/cmdline", line),
            "BOOT_IMAGE=kernel root=masked ro intel_idle.max_cstate=1 ip=masked x=masked myhost=masked\n"
        );
        assert!(
            text("/proc/version", "Linux version 6.1.0 (joe@box) (gcc 15) #1 SMP").contains("(user@host) (gcc 15)")
        );
    }
}
