//! A name for this machine that tells it from others in files that are shared, and gives nothing away.
//!
//! machine-id(5) asks that the id itself is kept secret and that applications use a keyed hash of it. Its 128 random bits cannot be
//! guessed, as a host's name can, so the name cannot be turned back.

use ring::hmac;

/// What the hash is for: other programs' hashes of the same id are others.
const PURPOSE: &[u8] = b"wakewatt: a host's name in files";
const FILES: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];

/// `host-3fa9c2d1`; `host` where the machine has no id, as in some containers.
pub fn of_this_machine() -> String {
    let id = FILES.iter().find_map(|file| std::fs::read_to_string(file).ok());
    of(id.as_deref().unwrap_or_default())
}

fn of(id: &str) -> String {
    let id = id.trim();
    if id.len() != 32 || !id.bytes().all(|b| b.is_ascii_hexdigit()) {
        return "host".into();
    }
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, id.as_bytes()), PURPOSE);
    let short = u32::from_be_bytes(tag.as_ref().first_chunk().copied().unwrap_or_default());
    format!("host-{short:08x}")
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
        for none in ["", "uninitialized\n", "web-01"] {
            assert_eq!(of(none), "host");
        }
    }
}
