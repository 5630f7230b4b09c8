//! Trees of files that support tools make: what of sosreport, supportconfig and must-gather is read, and tar as far as that needs.
//!
//! sosreport keeps copies of the kernel's files under `proc/` and `sys/`, and outputs under `sos_commands/`; supportconfig writes
//! text files with many outputs in each; must-gather has a folder per node. Whatever is named as a kernel's file is taken as that
//! file; other files are taken where their name says that a tool printed them, or that they are text. No link is followed, and
//! nothing is unpacked anywhere.

use std::io::{self, Read};

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
    "/sys/module/",
    "/sys/class/dmi/id/",
    "/sys/devices/virtual/dmi/id/",
    "/sys/firmware/dmi/tables/",
    "/sys/class/powercap/",
    "/sys/devices/virtual/powercap/",
    "/sys/kernel/mm/transparent_hugepage/",
    "/sys/class/hwmon/",
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
/// What the names of outputs hold.
const TOOLS: &[&str] = &[
    "cpupower",
    "turbostat",
    "dmidecode",
    "lscpu",
    "numactl",
    "numastat",
    "dmesg",
    "journalctl",
    "corefreq",
    "perf_script",
    "perf-script",
    "perf_sched",
    "trace-cmd",
    "trace_cmd",
    "tuned-adm",
    "x86_energy_perf_policy",
    "pepc",
    "proc_cmdline",
    "cpuinfo",
    "metrics",
];
const ENDINGS: &[&str] = &[".txt", ".log", ".yaml", ".yml", ".prom", ".out"];

/// Is this file of a tree worth reading, and as what?
pub fn wanted(name: &str) -> Option<Wanted> {
    let parts: Vec<&str> = name.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") || parts.len() > 64 {
        return None;
    }
    let root_of = |at: usize| Some(parts[..at].join("/"));
    let is_output = parts.iter().position(|part| *part == "sos_commands");
    if is_output.is_none() {
        if let Some(at) = parts.iter().position(|part| *part == "proc" || *part == "sys") {
            let path = format!("/{}", parts[at..].join("/"));
            let path = path.replace("/sys/devices/virtual/dmi/id/", "/sys/class/dmi/id/");
            let is_kernel = KERNEL.iter().any(|front| path.starts_with(front));
            return is_kernel.then(|| Wanted { path: Some(path), root: root_of(at), max_bytes: 16 << 20 });
        }
    }
    let last = parts.last()?.to_ascii_lowercase();
    let is_text = TOOLS.iter().any(|tool| last.contains(tool))
        || (parts.len() <= 3 && is_output.is_none() && ENDINGS.iter().any(|end| last.ends_with(end)));
    let is_packed = [".gz", ".xz", ".tgz", ".html", ".json", ".zip"].iter().any(|end| last.ends_with(end));
    (is_text && !is_packed).then(|| Wanted { path: None, root: is_output.and_then(root_of), max_bytes: 64 << 20 })
}

/// Is it an archive of another host inside (must-gather)?
pub fn is_inner(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or(name);
    (last.starts_with("sosreport")
        || last.starts_with("sysinfo")
        || last.starts_with("scc_")
        || last.starts_with("nts_"))
        && [".tar.xz", ".tar.gz", ".tgz", ".txz", ".tar"].iter().any(|end| last.ends_with(end))
}

/// Entries that are looked at.
const MAX_ENTRIES: usize = 2_000_000;
/// A name is no longer than this.
const MAX_NAME: u64 = 4096;

/// Is it tar, by its first block?
pub fn is_tar(front: &[u8]) -> bool {
    front.get(257..262) == Some(b"ustar")
}

/// Walks a tar file: `want` says of each plain file how many of its bytes, `take` gets them. Links and devices are passed over.
/// Why it ended early is an error; what was before has been taken.
pub fn walk_tar(
    tar: &mut dyn Read,
    want: &mut dyn FnMut(&str) -> Option<u64>,
    take: &mut dyn FnMut(&str, Vec<u8>),
) -> io::Result<()> {
    let cut = || io::Error::new(io::ErrorKind::UnexpectedEof, "the archive is cut off");
    let mut long_name: Option<String> = None;
    for _ in 0..MAX_ENTRIES {
        let mut head = [0u8; 512];
        match read_whole(tar, &mut head)? {
            0 => return Ok(()),
            512 => {}
            _ => return Err(cut()),
        }
        if head.iter().all(|b| *b == 0) {
            return Ok(());
        }
        let sum: u64 =
            head.iter().enumerate().map(|(at, b)| if (148..156).contains(&at) { 32 } else { u64::from(*b) }).sum();
        if octal(&head[148..156]) != Some(sum) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the archive is damaged: a header's checksum is wrong",
            ));
        }
        let size = octal(&head[124..136]).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "the archive is damaged: a length is no number")
        })?;
        let padded = size.checked_next_multiple_of(512).ok_or_else(cut)?;
        match head[156] {
            // A long name, GNU's way or pax'.
            kind @ (b'L' | b'x') => {
                let bytes = read_some(tar, size, MAX_NAME * 4)?;
                skip(tar, padded - bytes.len() as u64)?;
                let text = String::from_utf8_lossy(&bytes);
                let named = if kind == b'L' { Some(text.trim_end_matches('\0').to_string()) } else { pax_path(&text) };
                long_name = named.filter(|name| (name.len() as u64) < MAX_NAME).or(long_name);
            }
            b'g' => skip(tar, padded)?,
            kind => {
                let name = long_name.take().unwrap_or_else(|| short_name(&head));
                let is_file = matches!(kind, b'0' | 0);
                match want(&name).filter(|_| is_file) {
                    Some(max) => {
                        let bytes = read_some(tar, size, max)?;
                        let n = bytes.len() as u64;
                        if n < size.min(max) {
                            take(&name, bytes);
                            return Err(cut());
                        }
                        take(&name, bytes);
                        skip(tar, padded - n)?;
                    }
                    None => skip(tar, padded)?,
                }
            }
        }
    }
    Err(io::Error::new(io::ErrorKind::FileTooLarge, "more entries than any report has"))
}

fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn short_name(head: &[u8; 512]) -> String {
    let (name, prefix) = (text_of(&head[..100]), text_of(&head[345..500]));
    if prefix.is_empty() || &head[257..262] != b"ustar" { name } else { format!("{prefix}/{name}") }
}

fn pax_path(text: &str) -> Option<String> {
    text.lines().find_map(|line| line.split_once(' ')?.1.strip_prefix("path=").map(str::to_string))
}

/// Octal digits, or the binary form of large files, which is refused: nothing here is as large.
fn octal(field: &[u8]) -> Option<u64> {
    let text = text_of(field);
    let text = text.trim();
    if text.is_empty() { Some(0) } else { u64::from_str_radix(text, 8).ok() }
}

fn read_whole(tar: &mut dyn Read, block: &mut [u8]) -> io::Result<usize> {
    let mut n = 0;
    while n < block.len() {
        match tar.read(&mut block[n..])? {
            0 => break,
            more => n += more,
        }
    }
    Ok(n)
}

fn read_some(tar: &mut dyn Read, size: u64, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    tar.take(size.min(max)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn skip(tar: &mut dyn Read, n: u64) -> io::Result<()> {
    io::copy(&mut tar.take(n), &mut io::sink()).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, kind: u8, body: &[u8]) -> Vec<u8> {
        let mut head = [0u8; 512];
        head[..name.len()].copy_from_slice(name.as_bytes());
        head[124..135].copy_from_slice(format!("{:011o}", body.len()).as_bytes());
        head[156] = kind;
        head[257..262].copy_from_slice(b"ustar");
        let sum: u64 =
            head.iter().enumerate().map(|(at, b)| if (148..156).contains(&at) { 32 } else { u64::from(*b) }).sum();
        head[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
        let mut out = head.to_vec();
        out.extend(body);
        out.resize(out.len().next_multiple_of(512), 0);
        out
    }

    #[test]
    fn files_are_taken_links_are_not_and_cuts_are_said() {
        let long = format!("{}/proc/cmdline", "x".repeat(120));
        let tar = [
            entry("a/proc/version", b'0', b"Linux"),
            entry("a/sys/devices/system/x", b'2', b""),
            entry("L", b'L', long.as_bytes()),
            entry("short", b'0', b"quiet"),
        ]
        .concat();
        let read = |bytes: &[u8]| {
            let mut found = Vec::new();
            let mut bytes = bytes;
            let ended = walk_tar(&mut bytes, &mut |name| wanted(name).map(|w| w.max_bytes), &mut |name, body| {
                found.push((name.to_string(), body.len()))
            });
            (found, ended.map_err(|e| e.to_string()))
        };
        assert_eq!(read(&tar), (vec![("a/proc/version".into(), 5), (long, 5)], Ok(())));
        assert!(is_tar(&tar));
        assert!(read(&tar[..700]).1.is_ok() || read(&tar[..514]).1.unwrap_err().contains("cut off"));
        let mut broken = tar.clone();
        broken[3] ^= 1;
        assert!(read(&broken).1.unwrap_err().contains("checksum"));
    }

    #[test]
    fn which_files_of_a_report() {
        let want = |name: &str| wanted(name).map(|w| (w.path, w.root));
        assert_eq!(
            want("sosreport-db7/proc/cpuinfo"),
            Some((Some("/proc/cpuinfo".into()), Some("sosreport-db7".into())))
        );
        assert_eq!(
            want("sosreport-db7/sos_commands/processor/cpupower_idle-info"),
            Some((None, Some("sosreport-db7".into())))
        );
        assert_eq!(want("sosreport-db7/sos_commands/processor/turbostat_--debug_sleep_10").map(|w| w.0), Some(None));
        assert_eq!(want("sosreport-db7/etc/shadow"), None);
        assert_eq!(want("sosreport-db7/proc/1234/environ"), None);
        assert_eq!(want("a/../proc/cpuinfo"), None);
        assert_eq!(want("scc_db7/hardware.txt").map(|w| w.0), Some(None));
        assert!(is_inner("must-gather/nodes/n1/sosreport-n1.tar.xz") && !is_inner("x/other.tar.xz"));
    }
}
