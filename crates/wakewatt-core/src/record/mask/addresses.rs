//! Addresses by their form, wherever they stand in text: IPv4, IPv6, MAC, UUID, host of a URL, long identifiers.
//!
//! Each becomes a fixed placeholder of its own kind, so two captures of one host still compare equal. Version numbers,
//! times, PCI addresses and CPU masks have other forms (RFC 4291, RFC 4122; IEEE 802 for MAC) and stay. A machine's,
//! container's or image's identifier is 32, 40 or 64 hexadecimal digits (machine-id(5), SHA-1, SHA-256).

use super::names::is_replacement;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Replaces IPv4, MAC, UUID and URL hosts wherever they stand as a token of their own.
pub fn addresses(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut token = String::new();
    let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '-' | '_');
    for c in text.chars() {
        if is_token(c) {
            token.push(c);
        } else {
            push_masked(&mut out, &token);
            token.clear();
            out.push(c);
        }
    }
    push_masked(&mut out, &token);
    out
}

/// What ends a sentence or a clause may stand behind an address, or belong to it (`fe80::`).
fn push_masked(out: &mut String, token: &str) {
    const MARKS: [char; 4] = ['.', ':', '-', '_'];
    let is_after_slashes = out.ends_with("//");
    let bare = token.trim_end_matches(MARKS);
    let mut part = if is_after_slashes || is_ipv4(bare) { bare } else { token };
    loop {
        let masked = mask_token(part, is_after_slashes);
        match part.strip_suffix(MARKS) {
            Some(shorter) if masked == part => part = shorter,
            _ => {
                out.push_str(masked);
                out.push_str(&token[part.len()..]);
                return;
            }
        }
    }
}

fn mask_token(token: &str, is_after_slashes: bool) -> &str {
    if is_after_slashes && !token.is_empty() && !is_replacement(token) {
        "host"
    } else if is_ipv4(token) {
        "0.0.0.0"
    } else if is_mac(token) {
        "00:00:00:00:00:00"
    } else if is_uuid(token) {
        "00000000-0000-0000-0000-000000000000"
    } else if is_ipv6(token) {
        "::"
    } else if is_long_id(token) {
        "masked-id"
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

fn is_long_id(token: &str) -> bool {
    matches!(token.len(), 32 | 40 | 64) && token.chars().all(|c| c.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_go_and_facts_stay() {
        let cases = [
            ("192.168.1.20", "0.0.0.0"),
            ("10.0.0.1:8080 up", "0.0.0.0 up"),
            ("mac 52:54:00:12:34:56.", "mac 00:00:00:00:00:00."),
            ("mac 52:54:00:12:34:56 ok", "mac 00:00:00:00:00:00 ok"),
            ("10.1.2.3. Then 10.1.2.3: no, 10.0.0.1:80: no", "0.0.0.0. Then 0.0.0.0: no, 0.0.0.0: no"),
            ("fe80::aa:1: no", "::: no"),
            ("fe80:: and fe80::. and ::", ":: and ::. and ::"),
            ("http://dystopia. http://peer-1.", "http://host. http://peer-1."),
            ("12:34:56: 1.2.3. a:: x- 0000:3b:00.0:", "12:34:56: 1.2.3. :: x- 0000:3b:00.0:"),
            ("fe80::1:2:3:4", "::"),
            ("at fe80::1 now", "at :: now"),
            ("12:34:56 0-3:2", "12:34:56 0-3:2"),
            ("7a3bc2bc-b966-488a-9f01-cf2b09b9667d", "00000000-0000-0000-0000-000000000000"),
            ("id 0123456789abcdef0123456789abcdef", "id masked-id"),
            ("http://dystopia/x", "http://host/x"),
            (
                "MWAIT 0x20 0000:3b:00.0 6.18.8-200.fc43.x86_64 1.2.3",
                "MWAIT 0x20 0000:3b:00.0 6.18.8-200.fc43.x86_64 1.2.3",
            ),
        ];
        for (before, after) in cases {
            assert_eq!(addresses(before), after);
            assert_eq!(addresses(after), after, "masking twice changes nothing");
        }
    }
}
