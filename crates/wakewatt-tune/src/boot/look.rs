//! Questions that several loaders ask of a machine: is this program there, which system is it, who booted it.
//!
//! Who booted it: a loader that follows the Boot Loader Interface leaves its name in the EFI variable `LoaderInfo`
//! (systemd-boot always; GRUB from 2.12, and Fedora's earlier). GRUB passes `BOOT_IMAGE=` to every kernel it starts.
//! Files prove less: a machine that was converted keeps those of its former loader.

use super::plan::BootError;
use wakewatt_core::source::{ErrorKind, Source};
use wakewatt_words::{say, word};

const LOADER_INFO: &str = "/sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";

/// Is the name in its folder? Asked by listing, so that no program is read to know that it exists.
pub(crate) fn has(source: &dyn Source, path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let folder = if folder.is_empty() { "/" } else { folder };
    source.list(folder).is_ok_and(|names| names.iter().any(|n| n == name))
}

/// A folder that exists, even an empty one.
pub(crate) fn has_folder(source: &dyn Source, path: &str) -> bool {
    source.list(path).is_ok()
}

/// Where a program lies.
pub(crate) fn program(source: &dyn Source, name: &str) -> Option<String> {
    ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].iter().map(|f| format!("{f}/{name}")).find(|p| has(source, p))
}

/// Bytes of a file; none if it is not there. A file that is there and cannot be read is an error, not an absence.
pub(crate) fn bytes(source: &dyn Source, path: &str) -> Result<Option<Vec<u8>>, BootError> {
    match source.read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if matches!(e.kind, ErrorKind::Absent | ErrorKind::NotRecorded) => Ok(None),
        Err(e) => Err(BootError::Unreadable { path: path.into(), reason: e.detail }),
    }
}

/// As [`bytes`], for a file that must be text because we would write it back.
pub(crate) fn text(source: &dyn Source, path: &str) -> Result<Option<String>, BootError> {
    let Some(bytes) = bytes(source, path)? else { return Ok(None) };
    let not_text = |_| BootError::refused(path, word!("is not UTF-8 text"), "look at the file; it is not changed");
    String::from_utf8(bytes).map(Some).map_err(not_text)
}

/// The files of a folder with an extension, whole paths, sorted.
pub(crate) fn files(source: &dyn Source, folder: &str, extension: &str) -> Vec<String> {
    let names = source.list(folder).unwrap_or_default();
    names.iter().filter(|n| n.ends_with(extension)).map(|n| format!("{folder}/{n}")).collect()
}

/// `ID=` of os-release.
pub(crate) fn system_id(source: &dyn Source) -> Option<String> {
    let text = ["/etc/os-release", "/usr/lib/os-release"].iter().find_map(|p| source.read(p).ok())?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let id = text.lines().find_map(|l| l.strip_prefix("ID="))?;
    Some(id.trim().trim_matches(['"', '\'']).to_string())
}

/// Who started the running kernel, if it can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BootedBy {
    Grub(String),
    SystemdBoot(String),
    Unknown,
}

/// See the head of this file.
pub(crate) fn booted_by(source: &dyn Source) -> BootedBy {
    if let Ok(bytes) = source.read(LOADER_INFO) {
        // Four bytes of attributes, then UTF-16.
        let units: Vec<u16> =
            bytes.get(4..).unwrap_or_default().chunks_exact(2).map(|c| u16::from_le_bytes([c[0], c[1]])).collect();
        let name = String::from_utf16_lossy(&units).trim_end_matches('\0').to_string();
        if name.starts_with("systemd-boot") {
            return BootedBy::SystemdBoot(say!("the EFI variable LoaderInfo says {name}"));
        }
        if name.to_ascii_uppercase().starts_with("GRUB") {
            return BootedBy::Grub(say!("the EFI variable LoaderInfo says {name}"));
        }
    }
    let line = source.read("/proc/cmdline").unwrap_or_default();
    let is_grub = String::from_utf8_lossy(&line).split_whitespace().any(|w| w.starts_with("BOOT_IMAGE="));
    if is_grub { BootedBy::Grub(say!("/proc/cmdline has BOOT_IMAGE=, which GRUB passes")) } else { BootedBy::Unknown }
}

/// What says that this is a container, whose kernel is the host's.
pub(crate) fn container(source: &dyn Source) -> Option<&'static str> {
    ["/run/systemd/container", "/run/.containerenv", "/.dockerenv"].into_iter().find(|p| has(source, p))
}

/// File system and device that hold a path, from /proc/mounts: the longest mount point in front of it.
pub(crate) fn mount_of(source: &dyn Source, path: &str) -> Option<(String, String)> {
    let text = String::from_utf8_lossy(&source.read("/proc/mounts").ok()?).into_owned();
    let holds = |point: &str| point == "/" || path == point || path.starts_with(&format!("{point}/"));
    let mounts = text.lines().filter_map(|l| {
        let mut words = l.split_whitespace();
        Some((words.next()?, words.next()?, words.next()?))
    });
    let (device, _, kind) = mounts.filter(|(_, point, _)| holds(point)).max_by_key(|(_, point, _)| point.len())?;
    Some((kind.into(), device.into()))
}

/// Can GRUB write its environment block here? If it cannot, a one-time entry would be booted for ever.
pub(crate) fn why_grubenv_is_fixed(source: &dyn Source, folder: &str) -> Option<String> {
    let Some((kind, device)) = mount_of(source, folder) else {
        return Some(say!(
            "/proc/mounts does not tell what {folder} lies on, so GRUB may be unable to forget the trial"
        ));
    };
    let is_plain = matches!(kind.as_str(), "ext2" | "ext3" | "ext4" | "xfs" | "vfat");
    let is_mapped = ["/dev/mapper/", "/dev/dm-", "/dev/md"].iter().any(|d| device.starts_with(d));
    (!is_plain || is_mapped).then(|| {
        say!("{folder} lies on {kind} on {device}, where GRUB cannot write: it would boot the trial again and again")
    })
}
