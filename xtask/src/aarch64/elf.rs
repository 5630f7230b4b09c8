//! Is the file what it is meant to be: a program for arm64 that needs no loader on the machine it is carried to?
//!
//! Read from the ELF header and the program headers (elf(5)), not from the flags of the build: a flag that did not
//! arrive is found here and not on a server. Static-pie is static too: what counts is that no interpreter is asked for.

use anyhow::{Result, bail};
use std::path::Path;

const EM_AARCH64: u64 = 183;
const PT_INTERP: u64 = 3;

/// Fails when the program is for another machine or wants a loader.
pub(super) fn check(path: &Path) -> Result<()> {
    let bytes = std::fs::read(path)?;
    match judge(&bytes) {
        Some((EM_AARCH64, false)) => Ok(()),
        Some((EM_AARCH64, true)) => bail!(
            "{}: not static, it asks for a loader; is target-feature=+crt-static set in .cargo/config.toml, and is \
             RUSTFLAGS unset?",
            path.display()
        ),
        Some((machine, _)) => bail!("{}: for ELF machine {machine}, not {EM_AARCH64} (arm64)", path.display()),
        None => bail!("{}: no 64-bit little-endian ELF file", path.display()),
    }
}

/// The machine, and whether an interpreter is asked for.
fn judge(bytes: &[u8]) -> Option<(u64, bool)> {
    if bytes.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let number = |at: usize, n: usize| -> Option<u64> {
        let field = bytes.get(at..at.checked_add(n)?)?;
        Some(field.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    };
    let (table, size, n) = (number(0x20, 8)?, number(0x36, 2)?, number(0x38, 2)?);
    let mut has_loader = false;
    for i in 0..n {
        let at = usize::try_from(table.checked_add(i * size)?).ok()?;
        has_loader |= number(at, 4)? == PT_INTERP;
    }
    Some((number(0x12, 2)?, has_loader))
}

#[cfg(test)]
mod tests {
    use super::judge;

    /// A header and one program header, both as short as the reader allows.
    fn elf(machine: u8, kind: u8) -> Vec<u8> {
        let mut bytes = vec![0; 0x40 + 0x38];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (bytes[0x12], bytes[0x20], bytes[0x36], bytes[0x38], bytes[0x40]) = (machine, 0x40, 0x38, 1, kind);
        bytes
    }

    #[test]
    fn machine_and_loader_are_told_apart_and_nonsense_is_refused() {
        assert_eq!(judge(&elf(183, 1)), Some((183, false)));
        assert_eq!(judge(&elf(183, 3)), Some((183, true)));
        assert_eq!(judge(&elf(62, 1)), Some((62, false)));
        assert_eq!((judge(b""), judge(b"\x7fELF\x02\x01"), judge(&elf(183, 1)[..0x41])), (None, None, None));
    }
}
