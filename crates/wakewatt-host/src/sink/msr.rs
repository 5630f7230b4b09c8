//! Some bits of a model-specific register: `msr:0x1fc@0/1:1` is bit 1 of 0x1FC as CPU 0 sees it, a decimal number.
//!
//! `/dev/cpu/N/msr` reads and writes eight bytes at the offset that is the register's address (msr(4)). Everything
//! outside the named bits is written back as it was read. Between the two another writer may slip in: the kernel has no
//! lock for user space, so only registers that the running kernel leaves alone belong here. Kernel lockdown (Secure
//! Boot) and `msr.allow_writes=off` refuse writes; the `msr` module is never loaded for it.

use super::{SinkError, fail, refuse};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::path::Path;

/// A field of a register on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bits {
    address: u64,
    cpu: u32,
    high: u32,
    low: u32,
}

impl Bits {
    fn parse(path: &str) -> Result<Bits, SinkError> {
        let parsed = || {
            let (address, rest) = path.strip_prefix("msr:0x")?.split_once('@')?;
            let (cpu, bits) = rest.split_once('/')?;
            let (high, low) = bits.split_once(':')?;
            let address = u32::from_str_radix(address, 16).ok()?.into();
            let bits = Bits { address, cpu: cpu.parse().ok()?, high: high.parse().ok()?, low: low.parse().ok()? };
            (bits.low <= bits.high && bits.high < 64).then_some(bits)
        };
        parsed().ok_or_else(|| refuse(path, "not a register's bits such as msr:0x1fc@0/1:1"))
    }
    /// The largest number that fits.
    fn most(self) -> u64 {
        u64::MAX >> (63 - (self.high - self.low))
    }
    fn cut(self, register: u64) -> u64 {
        (register >> self.low) & self.most()
    }
    fn put(self, register: u64, value: u64) -> u64 {
        (register & !(self.most() << self.low)) | (value << self.low)
    }
    fn open(self, root: &Path, path: &str, flags: OFlags) -> Result<OwnedFd, SinkError> {
        let file = root.join(format!("dev/cpu/{}/msr", self.cpu));
        rustix::fs::open(file, flags | OFlags::CLOEXEC, Mode::empty()).map_err(|e| match e {
            Errno::NOENT => SinkError {
                is_absent: true,
                ..refuse(path, "no such device: the kernel module msr is not loaded, or the CPU is offline")
            },
            Errno::ACCESS | Errno::PERM => refuse(path, "permission denied: root is needed, without kernel lockdown"),
            other => fail(path, other),
        })
    }
    fn load(self, fd: &OwnedFd, path: &str) -> Result<u64, SinkError> {
        let mut bytes = [0u8; 8];
        match rustix::io::pread(fd, &mut bytes, self.address) {
            Ok(8) => Ok(u64::from_le_bytes(bytes)),
            Ok(n) => Err(refuse(path, format!("only {n} of 8 bytes came"))),
            Err(Errno::IO) => Err(refuse(path, "this CPU does not have the register")),
            Err(other) => Err(fail(path, other)),
        }
    }
}

/// The bits as they are.
pub(super) fn read(root: &Path, path: &str) -> Result<String, SinkError> {
    let bits = Bits::parse(path)?;
    let fd = bits.open(root, path, OFlags::RDONLY)?;
    Ok(bits.cut(bits.load(&fd, path)?).to_string())
}

/// Changes the bits and nothing beside them.
pub(super) fn write(root: &Path, path: &str, value: &str) -> Result<(), SinkError> {
    let bits = Bits::parse(path)?;
    let value: u64 = match value.trim().parse() {
        Ok(value) if value <= bits.most() => value,
        _ => return Err(refuse(path, format!("{value:?} is no number from 0 to {}", bits.most()))),
    };
    let fd = bits.open(root, path, OFlags::RDWR)?;
    let before = bits.load(&fd, path)?;
    let after = bits.put(before, value);
    if after == before {
        return Ok(());
    }
    match rustix::io::pwrite(&fd, &after.to_le_bytes(), bits.address) {
        Ok(8) => Ok(()),
        Ok(n) => Err(refuse(path, format!("only {n} of 8 bytes were taken"))),
        Err(Errno::IO) => Err(refuse(path, "the CPU refused it: the register is locked, or has no such bits")),
        Err(Errno::PERM) => Err(refuse(path, "refused by kernel lockdown or msr.allow_writes=off")),
        Err(other) => Err(fail(path, other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A regular file with registers at their offsets.
    fn machine(address: usize, value: u64) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("dev/cpu/3")).unwrap();
        let mut bytes = vec![0u8; address];
        bytes.extend(value.to_le_bytes());
        std::fs::write(dir.path().join("dev/cpu/3/msr"), bytes).unwrap();
        dir
    }

    #[test]
    fn only_the_named_bits_change() {
        let dir = machine(0xe2, 0xffff_0000_1400_8403);
        let path = "msr:0xe2@3/3:0";
        assert_eq!(read(dir.path(), path).unwrap(), "3");
        write(dir.path(), path, "8").unwrap();
        assert_eq!(read(dir.path(), "msr:0xe2@3/63:0").unwrap(), 0xffff_0000_1400_8408_u64.to_string());
        assert_eq!(read(dir.path(), "msr:0xe2@3/15:15").unwrap(), "1");
        assert!(write(dir.path(), path, "16").unwrap_err().what.contains("0 to 15"));
        write(dir.path(), "msr:0xe2@3/63:0", &u64::MAX.to_string()).unwrap();
        assert_eq!(read(dir.path(), path).unwrap(), "15");
    }

    #[test]
    fn no_module_says_so_and_nonsense_is_refused() {
        let dir = machine(0xe2, 0);
        let absent = read(dir.path(), "msr:0xe2@4/3:0").unwrap_err();
        assert!(absent.is_absent && absent.what.contains("msr is not loaded"));
        for wrong in
            ["msr:", "msr:0xe2@3", "msr:0xe2@3/0:3", "msr:0xe2@3/64:0", "msr:e2@3/3:0", "msr:0x1ffffffff@3/3:0"]
        {
            assert!(read(dir.path(), wrong).is_err(), "{wrong}");
        }
    }
}
