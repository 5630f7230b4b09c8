//! Which file system a descriptor lies on, by the number `fstatfs` gives (linux/magic.h).

use rustix::fd::AsFd;
use rustix::fs::fstatfs;

const KNOWN: &[(u32, &str)] = &[
    (0xef53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0xf2f5_2010, "f2fs"),
    (0x2fc1_2fc1, "zfs"),
    (0x794c_7630, "overlay"),
    (0x0102_1994, "tmpfs"),
    (0x8584_58f6, "ramfs"),
    (0x6969, "nfs"),
    (0xff53_4d42, "cifs"),
    (0x6573_5546, "fuse"),
    (0x0102_1997, "9p"),
    (0x4d44, "vfat"),
    (0x2011_bab0, "exfat"),
    (0x7371_7368, "squashfs"),
    (0xe0f5_e1e2, "erofs"),
];

/// Its name, if its number is known here.
pub fn name(on: impl AsFd) -> Option<&'static str> {
    let found = fstatfs(on).ok()?;
    // The field's type differs between architectures; the numbers are 32 bits wide everywhere.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let number = found.f_type as u32;
    KNOWN.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

/// Does it keep its files in memory, so that there is no disk to measure?
pub fn is_memory(name: &str) -> bool {
    matches!(name, "tmpfs" | "ramfs")
}

/// Bytes an ordinary user may still use.
pub fn free_bytes(on: impl AsFd) -> Option<u64> {
    let found = rustix::fs::fstatvfs(on).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    #[test]
    fn memory_is_told_from_disks() {
        let shm = std::fs::File::open("/dev/shm").ok().and_then(|f| super::name(&f));
        assert!(shm.is_none_or(super::is_memory));
        assert!(!super::is_memory("ext4"));
        assert!(super::free_bytes(std::fs::File::open("/").unwrap()).is_some());
    }
}
