//! A name for this machine that tells it from others in files that are shared, and gives nothing away.
//!
//! machine-id(5) asks that the id itself is kept secret and that applications use a keyed hash of it. Its 128 random bits cannot be
//! guessed, as a host's name can, so the name cannot be turned back.

use ring::hmac;

/// What the hash is for: other programs' hashes of the same id are others.
const PURPOSE: &[u8] = b"wakewatt: a host's name in files";
const BOOT_PURPOSE: &[u8] = b"wakewatt: a boot's name in files";
const FILES: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];

/// `boot-3fa9c2d1`: tells the boots of machines apart and is not the kernel's boot id, by which logs can be joined. None where
/// the kernel does not say.
pub fn of_this_boot() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    boot(&id)
}

fn boot(id: &str) -> Option<String> {
    let id = id.trim().replace('-', "");
    let name = hashed(&id, BOOT_PURPOSE)?;
    Some(format!("boot-{name:08x}"))
}

/// `host-3fa9c2d1`; `host` where the machine has no id, as in some containers.
pub fn of_this_machine() -> String {
    let id = FILES.iter().find_map(|file| std::fs::read_to_string(file).ok());
    of(id.as_deref().unwrap_or_default())
}

fn of(id: &str) -> String {
    hashed(id.trim(), PURPOSE).map_or("host".into(), |short| format!("host-{short:08x}"))
}

/// None of what is no id of 128 bits.
fn hashed(id: &str, purpose: &[u8]) -> Option<u32> {
    let is_id = id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit());
    let tag = is_id.then(|| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, id.as_bytes()), purpose))?;
    tag.as_ref().first_chunk().copied().map(u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_told_apart_and_not_named() {
        let [one, other] = ["0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdee"].map(of);
        assert_ne!(one, other);
        assert_eq!((one.len(), one.as_str()), (13, of("0123456789abcdef0123456789abcdef\n").as_str()));
        assert!(!one.contains("01234567"));
        let [one, other] = ["01234567-89ab-cdef-0123-456789abcdef\n", "01234567-89ab-cdef-0123-456789abcdee"].map(boot);
        assert!(one != other && one.as_ref().is_some_and(|one| one.len() == 13 && !one.contains("01234567")));
        assert_eq!(boot(""), None);
        for none in ["", "uninitialized\n", "web-01"] {
            assert_eq!(of(none), "host");
        }
    }
}
