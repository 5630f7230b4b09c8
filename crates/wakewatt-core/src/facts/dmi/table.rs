//! The SMBIOS structure table: walking it, whatever state it is in, and masking it for capture.
//!
//! A structure is a header (type, length, handle), a formatted area of `length` bytes, then strings ended by NUL and
//! the set of them by one more (DMTF DSP0134, section 6.1). Firmware gets this wrong in the field, so the walk returns
//! what it could read and says where it stopped. Nothing here trusts a length.

use crate::visible::is_hidden;

/// One structure, borrowed from the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Structure<'a> {
    /// What it describes.
    pub(super) kind: u8,
    formatted: &'a [u8],
    strings: &'a [u8],
}

impl<'a> Structure<'a> {
    /// A byte of the formatted area; none where the structure is older and shorter.
    pub(super) fn byte(&self, at: usize) -> Option<u8> {
        self.formatted.get(at).copied()
    }
    /// Two bytes, little-endian.
    pub(super) fn word(&self, at: usize) -> Option<u16> {
        Some(u16::from_le_bytes(self.formatted.get(at..at + 2)?.try_into().ok()?))
    }
    /// Four bytes, little-endian.
    pub(super) fn dword(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.formatted.get(at..at + 4)?.try_into().ok()?))
    }
    /// Eight bytes, little-endian.
    pub(super) fn qword(&self, at: usize) -> Option<u64> {
        Some(u64::from_le_bytes(self.formatted.get(at..at + 8)?.try_into().ok()?))
    }
    /// The string whose number stands at `at`; none for number 0, a missing or a blank string.
    pub(super) fn text(&self, at: usize) -> Option<String> {
        let number = usize::from(self.byte(at)?).checked_sub(1)?;
        let bytes = self.strings.split(|b| *b == 0).nth(number)?;
        let text: String = String::from_utf8_lossy(bytes).chars().filter(|c| !is_hidden(*c)).collect();
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_string())
    }
}

/// Walks the table: the structures up to its end mark, and why the walk ended early if it did.
pub(super) fn walk(bytes: &[u8]) -> (Vec<Structure<'_>>, Option<String>) {
    let mut all = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let [kind, length, _, _, ..] = rest else {
            return (all, Some(format!("cut off in a header at byte {at}")));
        };
        let length = usize::from(*length);
        if length < 4 {
            return (all, Some(format!("structure of length {length} at byte {at}")));
        }
        if rest.len() < length {
            return (all, Some(format!("cut off in a structure of type {kind} at byte {at}")));
        }
        let (formatted, tail) = rest.split_at(length);
        let end = tail.windows(2).position(|pair| pair == [0, 0]);
        // A set without its end mark takes what is left: a string that runs off the end is still a string.
        let strings = match end {
            Some(end) => &tail[..end],
            None => tail.strip_suffix(&[0]).unwrap_or(tail),
        };
        all.push(Structure { kind: *kind, formatted, strings });
        match end {
            _ if *kind == 127 => return (all, None),
            None => return (all, Some(format!("strings of the structure at byte {at} have no end"))),
            Some(end) => at += length + end + 2,
        }
    }
    (all, Some("no end mark (type 127)".into()))
}

/// What of a structure type may leave the machine: how many formatted bytes are known, which string fields stay, and
/// which bytes are blanked.
struct Keep {
    kind: u8,
    length: usize,
    strings: &'static [usize],
    blank: std::ops::Range<usize>,
}

const KEPT: &[Keep] = &[
    Keep { kind: 0, length: 0x1a, strings: &[0x04, 0x05, 0x08], blank: 0..0 },
    Keep { kind: 1, length: 0x1b, strings: &[0x04, 0x05, 0x06, 0x1a], blank: 0x08..0x18 },
    Keep { kind: 2, length: 0x0f, strings: &[0x04, 0x05, 0x06], blank: 0..0 },
    Keep { kind: 4, length: 0x32, strings: &[0x04, 0x07, 0x10], blank: 0..0 },
    Keep { kind: 16, length: 0x17, strings: &[], blank: 0..0 },
    Keep { kind: 17, length: 0x5c, strings: &[0x10, 0x11, 0x17, 0x1a], blank: 0..0 },
    Keep { kind: 127, length: 4, strings: &[], blank: 0..0 },
];

/// Fields that hold serial numbers and asset tags, by type: their strings go even if another field shares them.
const SECRET: &[(u8, &[usize])] = &[(1, &[0x07]), (2, &[0x07, 0x08]), (4, &[0x20, 0x21]), (17, &[0x18, 0x19])];

/// The table without what identifies the machine: only types 0, 1, 2, 4, 16, 17 and 127 stay; in them only the strings
/// that wakewatt shows stay, every other (serial numbers, asset tags, strings that nothing refers to) becomes as many
/// `x`; the UUID and bytes this file does not know become zeros. What follows a damaged place is dropped.
pub fn mask_tables(bytes: &[u8]) -> Vec<u8> {
    let mut masked = Vec::new();
    for structure in walk(bytes).0 {
        let Some(keep) = KEPT.iter().find(|k| k.kind == structure.kind) else { continue };
        for (at, byte) in structure.formatted.iter().enumerate() {
            let is_known = at < keep.length && !keep.blank.contains(&at);
            masked.push(if is_known { *byte } else { 0 });
        }
        let numbers = |fields: &[usize]| -> Vec<usize> {
            fields.iter().filter_map(|at| structure.byte(*at)).map(usize::from).collect()
        };
        let (shown, secret) = (
            numbers(keep.strings),
            numbers(SECRET.iter().find(|(kind, _)| *kind == structure.kind).map_or(&[], |(_, fields)| fields)),
        );
        let strings: Vec<&[u8]> = structure.strings.split(|b| *b == 0).collect();
        for (i, text) in strings.iter().enumerate() {
            if shown.contains(&(i + 1)) && !secret.contains(&(i + 1)) {
                masked.extend_from_slice(text);
            } else {
                masked.resize(masked.len() + text.len(), b'x');
            }
            masked.push(0);
        }
        // One NUL after the last string is there; an empty set has it too and needs the second all the same.
        masked.push(0);
    }
    masked
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Builds one structure: the formatted area after the header, then its strings.
    pub(in super::super) fn structure(kind: u8, length: usize, set: &[(usize, &[u8])], strings: &[&str]) -> Vec<u8> {
        let mut bytes = vec![0u8; length];
        (bytes[0], bytes[1], bytes[2]) = (kind, u8::try_from(length).unwrap(), kind);
        for (at, value) in set {
            bytes[*at..at + value.len()].copy_from_slice(value);
        }
        for text in strings {
            bytes.extend_from_slice(text.as_bytes());
            bytes.push(0);
        }
        if strings.is_empty() {
            bytes.push(0);
        }
        bytes.push(0);
        bytes
    }

    #[test]
    fn damage_ends_the_walk_and_says_where() {
        let good = structure(16, 0x17, &[], &[]);
        let end = structure(127, 4, &[], &[]);
        let check = |tail: &[u8]| {
            let bytes = [good.as_slice(), tail].concat();
            let (all, why) = walk(&bytes);
            (all.len(), why.unwrap_or_default())
        };
        assert_eq!(check(&end), (2, String::new()));
        assert!(check(&[]).1.contains("no end mark"));
        assert!(check(&[17, 3, 0, 0, 0, 0]).1.contains("length 3"));
        assert!(check(&[17]).1.contains("header"));
        assert!(check(&[17, 40, 0, 0, 1]).1.contains("type 17"));
        let (n, why) = check(&[4, 5, 0, 0, 1, b'a', b'b']);
        assert!(n == 2 && why.contains("no end"));
    }

    #[test]
    fn masking_keeps_the_model_and_drops_the_machine() {
        let uuid = [7u8; 16];
        let system = structure(
            1,
            0x1b,
            &[(4, &[1]), (5, &[2]), (7, &[3]), (8, &uuid), (0x19, &[4])],
            &["Maker", "Model", "SERIAL123", "SKU-9", "STRAY"],
        );
        let chassis = structure(3, 0x15, &[(7, &[1])], &["CHASSIS-SERIAL"]);
        let module =
            structure(17, 0x54, &[(0x10, &[1]), (0x18, &[2]), (0x19, &[3]), (0x1a, &[2])], &["A1", "SN77", "TAG88"]);
        let table = [system, chassis, module, structure(127, 4, &[], &[])].concat();
        let masked = mask_tables(&table);
        let text = String::from_utf8_lossy(&masked);
        for secret in ["SERIAL", "STRAY", "SKU", "CHASSIS", "SN77", "TAG88", "\u{7}"] {
            assert!(!text.contains(secret), "{secret}");
        }
        let (all, why) = walk(&masked);
        assert_eq!((all.len(), why), (3, None));
        assert_eq!((all[0].text(4).as_deref(), all[0].text(5).as_deref()), (Some("Maker"), Some("Model")));
        assert_eq!((all[0].text(7).as_deref(), all[1].text(0x10).as_deref()), (Some("xxxxxxxxx"), Some("A1")));
        assert_eq!(mask_tables(&masked), masked, "masking twice changes nothing");
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(bytes in proptest::collection::vec(0u8..32, 0..400)) {
            for structure in walk(&bytes).0 {
                (0..255).for_each(|at| { let _ = (structure.text(at), structure.qword(at)); });
            }
            let masked = mask_tables(&bytes);
            prop_assert_eq!(mask_tables(&masked), masked);
        }
    }
}
