//! Memory modules as SMBIOS records of type 17, byte by byte.
//!
//! QEMU can describe modules only in pairs of equal speed; its `-smbios file=` takes raw records instead and then leaves
//! its own out. Layout of the SMBIOS 3.3 specification, 7.18, cut after the configured voltage (offset 28h): a reader has
//! to look at the length byte anyway, and old firmware stops there too.

use crate::testbed::machine::Dimm;

/// Length of the formatted part.
const LENGTH: u8 = 0x28;
/// Handles no record of QEMU uses (it numbers type 17 from 1100h, type 16 from 1000h).
const FIRST_HANDLE: u16 = 0x7700;
/// QEMU's physical memory array, to which modules belong.
const ARRAY_HANDLE: u16 = 0x1000;
/// From here on the size stands in its own field.
const EXTENDED_SIZE_MIB: u32 = 0x7FFF;

/// A record per module.
pub(super) fn records(dimms: &[Dimm]) -> Vec<Vec<u8>> {
    let handles = FIRST_HANDLE..;
    handles.zip(dimms).map(|(handle, dimm)| record(handle, dimm)).collect()
}

fn record(handle: u16, dimm: &Dimm) -> Vec<u8> {
    let mut strings: Vec<&str> = Vec::new();
    let mut place = |text| place_of(&mut strings, text);
    let (locator, bank) = (place(&dimm.locator), place(&dimm.bank));
    let (maker, part) = (place(&dimm.manufacturer), place(&dimm.part_number));
    let is_empty = dimm.size_mib == 0;
    let size = u16::try_from(dimm.size_mib).ok().filter(|mib| u32::from(*mib) < EXTENDED_SIZE_MIB).unwrap_or(0x7FFF);
    let extended_mib = if size == 0x7FFF { dimm.size_mib } else { 0 };
    let width: u16 = if is_empty { 0xFFFF } else { 64 };
    let mut bytes = vec![17, LENGTH];
    for word in [handle, ARRAY_HANDLE, 0xFFFE, width, width, size] {
        bytes.extend(word.to_le_bytes());
    }
    // Form factor DIMM, no set, then the strings; kind DDR4 (or unknown), detail: registered.
    bytes.extend([0x09, 0, locator, bank, if is_empty { 0x02 } else { 0x1A }]);
    bytes.extend(0x2000_u16.to_le_bytes());
    bytes.extend(dimm.rated_mt_s.to_le_bytes());
    bytes.extend([maker, 0, 0, part]);
    bytes.push(if is_empty { 0 } else { 2 }); // Ranks.
    bytes.extend(extended_mib.to_le_bytes());
    bytes.extend(dimm.configured_mt_s.to_le_bytes());
    for millivolt in [1200_u16, 1200, 1200] {
        bytes.extend(millivolt.to_le_bytes());
    }
    for text in &strings {
        bytes.extend(text.bytes());
        bytes.push(0);
    }
    if strings.is_empty() {
        bytes.push(0);
    }
    bytes.push(0);
    bytes
}

/// A string is named by its place behind the record, from 1; 0 means none.
fn place_of<'a>(strings: &mut Vec<&'a str>, text: &'a str) -> u8 {
    if text.is_empty() {
        return 0;
    }
    strings.push(text);
    u8::try_from(strings.len()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dimm() -> Dimm {
        Dimm {
            locator: "A1".into(),
            bank: "N0".into(),
            size_mib: 16_384,
            rated_mt_s: 2933,
            configured_mt_s: 2100,
            manufacturer: "Maker".into(),
            part_number: String::new(),
        }
    }

    #[test]
    fn fields_lie_where_the_specification_says() {
        let bytes = record(0x7700, &dimm());
        assert_eq!(&bytes[..4], &[17, 0x28, 0x00, 0x77]);
        let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        assert_eq!((word(0x0C), word(0x15), word(0x20)), (16_384, 2933, 2100));
        assert_eq!((bytes[0x0E], bytes[0x10], bytes[0x11], bytes[0x17]), (0x09, 1, 2, 3));
        assert_eq!(&bytes[0x28..], b"A1\0N0\0Maker\0\0");
    }

    #[test]
    fn large_and_empty_modules() {
        let large = record(1, &Dimm { size_mib: 65_536, ..dimm() });
        assert_eq!(&large[0x0C..0x0E], &[0xFF, 0x7F]);
        assert_eq!(&large[0x1C..0x20], &65_536_u32.to_le_bytes());
        let empty = record(1, &Dimm { size_mib: 0, ..dimm() });
        assert_eq!(&empty[0x0C..0x0E], &[0, 0]);
        let both = records(&[dimm(), dimm()]);
        assert_eq!((&both[0][2..4], &both[1][2..4]), (&[0x00, 0x77][..], &[0x01, 0x77][..]), "handles differ");
    }
}
