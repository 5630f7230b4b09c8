//! Trees of files that support tools make: what of sosreport, supportconfig and must-gather is read, and whose it is.
//!
//! sosreport keeps copies of the kernel's files under `proc/` and `sys/`, and outputs under `sos_commands/`; supportconfig writes
//! text files with many outputs in each; must-gather has a folder per node below `nodes/`, with outputs and archives of that
//! node. Whatever is named as a kernel's file is taken as that file; other files are taken where their name says that a tool printed
//! them, or that they are text. No link is followed, and nothing is unpacked anywhere.

use crate::programs;
use crate::tar;
use std::io::{self, Read};

pub use crate::tar::is_tar;

/// A file of a tree that is worth reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The kernel's path that it is a copy of.
    pub path: Option<String>,
    /// The folder of the host it belongs to, within the tree; of what lies anywhere else, none.
    pub root: Option<String>,
    /// No more of it than this.
    pub max_bytes: u64,
}

/// The kernel's files that facts are made of.
const KERNEL: &[&str] = &[
    "/sys/devices/system/",
    "/sys/devices/cpu_core/",
    "/sys/devices/cpu_atom/",
    "/sys/module/",
    "/sys/class/dmi/id/",
    "/sys/devices/virtual/dmi/id/",
    "/sys/firmware/dmi/tables/",
    "/sys/class/powercap/",
    "/sys/devices/virtual/powercap/",
    "/sys/kernel/mm/transparent_hugepage/",
    "/sys/kernel/debug/sched/",
    "/sys/kernel/sched_ext/",
    "/sys/kernel/security/lockdown",
    "/sys/hypervisor/type",
    "/sys/class/hwmon/",
    "/sys/class/thermal/",
    "/sys/block/",
    "/sys/class/nvme/",
    "/proc/cpuinfo",
    "/proc/cmdline",
    "/proc/version",
    "/proc/stat",
    "/proc/loadavg",
    "/proc/uptime",
    "/proc/interrupts",
    "/proc/sys/kernel/",
    "/proc/sys/vm/zone_reclaim_mode",
    "/proc/sys/net/core/",
    "/proc/irq/",
    "/proc/pressure/",
];
/// Outputs that are one of the kernel's files and nothing else.
const COPIES: &[(&str, &str)] =
    &[("proc_cmdline", "/proc/cmdline"), ("proc_cpuinfo", "/proc/cpuinfo"), ("cpuinfo", "/proc/cpuinfo")];
const ENDINGS: &[&str] = &[".txt", ".log", ".yaml", ".yml", ".prom", ".out"];
/// Not text, whatever the rest of the name says.
const NO_TEXT: &[&str] = &[".gz", ".xz", ".bz2", ".zst", ".tgz", ".tbz", ".txz", ".html", ".json", ".zip", ".tar"];
/// What sos writes about itself.
const OF_SOS: &[&str] = &["sos_reports", "sos_logs", "sos_strings", "version.txt"];
/// What the archives of one host are called.
const REPORTS: &[&str] = &["sosreport", "sysinfo", "scc_", "nts_"];
const PACKED: &[&str] = &[".tar.xz", ".tar.gz", ".tgz", ".txz", ".tar", ".tbz", ".tar.bz2"];

fn parts_of(name: &str) -> Vec<&str> {
    name.split('/').filter(|part| !part.is_empty() && *part != ".").collect()
}

/// How many parts of a name lead to the folder of one host, where the name of the folder says so.
fn n_of_host(parts: &[&str]) -> Option<usize> {
    let folders = &parts[..parts.len().saturating_sub(1)];
    folders.iter().enumerate().find_map(|(at, part)| match *part {
        "nodes" if at + 1 < folders.len() => Some(at + 2),
        part if REPORTS.iter().any(|front| part.starts_with(front)) => Some(at + 1),
        _ => None,
    })
}

/// The folder of the host that a file of a tree belongs to, where the name of a folder says so.
pub fn host_of(name: &str) -> Option<String> {
    let parts = parts_of(name);
    n_of_host(&parts).map(|n| parts[..n].join("/"))
}

/// Is this file of a tree worth reading, and as what?
pub fn wanted(name: &str) -> Option<Wanted> {
    let parts = parts_of(name);
    let is_of_sos = parts.iter().any(|part| OF_SOS.contains(part));
    if parts.contains(&"..") || parts.len() > 64 || is_of_sos {
        return None;
    }
    let host = n_of_host(&parts);
    // Whatever lies deeper than the host's own folder is of that host.
    let root_of = |at: usize| Some(parts[..host.filter(|n| *n <= at).unwrap_or(at)].join("/"));
    let commands = parts.iter().position(|part| *part == "sos_commands");
    if commands.is_none() {
        if let Some(at) = parts.iter().position(|part| *part == "proc" || *part == "sys") {
            let path = format!("/{}", parts[at..].join("/"));
            let path = path.replace("/sys/devices/virtual/dmi/id/", "/sys/class/dmi/id/");
            let is_kernel = KERNEL.iter().any(|front| path.starts_with(front));
            return is_kernel.then(|| Wanted { path: Some(path), root: root_of(at), max_bytes: 16 << 20 });
        }
    }
    let last = parts.last()?.to_ascii_lowercase();
    let root = commands.and_then(root_of).or_else(|| host.and_then(root_of));
    if let Some((_, path)) = COPIES.iter().find(|(file, _)| *file == last) {
        return Some(Wanted { path: Some((*path).into()), root, max_bytes: 16 << 20 });
    }
    let is_text = programs::is_output(&last)
        || (parts.len() <= 3 && commands.is_none() && ENDINGS.iter().any(|end| last.ends_with(end)));
    let is_packed = NO_TEXT.iter().any(|end| last.ends_with(end));
    (is_text && !is_packed).then_some(Wanted { path: None, root, max_bytes: 64 << 20 })
}

/// Is it an archive of a host inside another archive or folder?
pub fn is_inner(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or(name);
    REPORTS.iter().any(|front| last.starts_with(front)) && PACKED.iter().any(|end| last.ends_with(end))
}

/// Walks a tar file: `want` says of each plain file how many of its bytes, `take` gets them.
/// Why it ended early is an error; what was before has been taken.
pub fn walk_tar(
    tar: &mut dyn Read,
    want: &mut dyn FnMut(&str) -> Option<u64>,
    take: &mut dyn FnMut(&str, Vec<u8>),
) -> io::Result<()> {
    tar::walk(tar, &mut |name, _, body| {
        let Some(max_bytes) = want(name) else { return Ok(()) };
        let mut bytes = Vec::new();
        let read = body.take(max_bytes).read_to_end(&mut bytes);
        take(name, bytes);
        read.map(drop)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_files_of_a_report() {
        let want = |name: &str| wanted(name).map(|w| (w.path, w.root));
        let of = |path: Option<&str>, root: &str| Some((path.map(str::to_string), Some(root.to_string())));
        assert_eq!(want("sosreport-db7/proc/cpuinfo"), of(Some("/proc/cpuinfo"), "sosreport-db7"));
        assert_eq!(want("sosreport-db7/sos_commands/processor/cpupower_idle-info"), of(None, "sosreport-db7"));
        assert_eq!(want("db7/sos_commands/processor/turbostat_--debug_sleep_10"), of(None, "db7"));
        assert_eq!(want("proc/cmdline"), of(Some("/proc/cmdline"), ""));
        assert_eq!(want("sosreport-db7/uptime"), of(None, "sosreport-db7"));
        for never in
            ["sosreport-db7/etc/shadow", "sosreport-db7/proc/1234/environ", "a/../proc/cpuinfo", "a/dmesg.html"]
        {
            assert_eq!(want(never), None, "{never}");
        }
        assert_eq!(want("scc_db7_250101_1200/hardware.txt"), of(None, "scc_db7_250101_1200"));
        assert!(is_inner("must-gather/nodes/n1/sosreport-n1.tar.xz") && !is_inner("x/other.tar.xz"));
    }

    #[test]
    fn nodes_of_a_cluster_are_hosts() {
        let want = |name: &str| wanted(name).map(|w| (w.path.unwrap_or_default(), w.root.unwrap_or_default()));
        let of = |path: &str| Some((path.to_string(), "mg/quay-io/nodes/w-1".to_string()));
        assert_eq!(want("mg/quay-io/nodes/w-1/lscpu"), of(""));
        assert_eq!(want("mg/quay-io/nodes/w-1/proc_cmdline"), of("/proc/cmdline"));
        assert_eq!(want("mg/quay-io/nodes/w-1/sosreport-x/proc/version"), of("/proc/version"));
        assert_eq!(host_of("mg/quay-io/nodes/w-1/sysinfo.tgz").as_deref(), Some("mg/quay-io/nodes/w-1"));
        assert_eq!(want("mg/quay-io/cluster-scoped-resources/core/nodes/w-1.yaml"), None);
        assert_eq!(want("a/sys/devices/system/node/node0/distance").map(|w| w.1).as_deref(), Some("a"));
    }
}
