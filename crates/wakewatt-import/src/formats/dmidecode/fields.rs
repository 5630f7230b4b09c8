//! The fields of dmidecode's structures, as the bytes that they were printed from (DMTF DSP0134, 7.1 to 7.18).
//!
//! Of each structure only what core reads is written; a field that the text does not give is what the standard calls unknown.

use super::super::smbios::Structure;
use crate::plain::whole;

const SIZES: &[(u8, u8)] = &[(0, 0x1a), (1, 0x1b), (2, 0x0f), (4, 0x30), (16, 0x17), (17, 0x5c)];

/// A structure whose fields are being read.
pub(super) struct Open {
    pub(super) kind: u8,
    pub(super) made: Option<Structure>,
    pub(super) slot: Option<String>,
    /// The line with the speed it runs at, else its rating: what evidence names.
    pub(super) speed_at: Option<usize>,
    pub(super) first: usize,
    /// The fields that it has, where nothing but a field that comes again tells it from the next.
    pub(super) bare: Option<Vec<String>>,
}

impl Open {
    pub(super) fn of(kind: u8, first: usize) -> Open {
        let mut made = SIZES.iter().find(|(known, _)| *known == kind).map(|(_, length)| Structure::new(kind, *length));
        if let (17, Some(made)) = (kind, &mut made) {
            // A size that is not told is unknown (SMBIOS 7.18), and no empty slot.
            made.set(0x0c, &[0xff, 0xff]);
        }
        Open { kind, made, slot: None, speed_at: None, first, bare: None }
    }
}

/// One field; false where nothing here needs it.
pub(super) fn field(open: &mut Open, key: &str, value: &str, at: usize) -> Result<bool, &'static str> {
    let Some(made) = &mut open.made else { return Ok(false) };
    let is_unknown = matches!(value, "Unknown" | "Not Specified" | "None" | "N/A" | "NO DIMM" | "Not Provided" | "");
    let first = || value.split_whitespace().next().and_then(whole);
    let mib = |value: &str| {
        let mut words = value.split_whitespace();
        let n = whole(words.next()?)?;
        let scale = match words.next()?.to_ascii_uppercase().as_str() {
            "KB" | "KIB" => return Some(n >> 10),
            "MB" | "MIB" => 1,
            "GB" | "GIB" => 1 << 10,
            "TB" | "TIB" => 1 << 20,
            _ => return None,
        };
        n.checked_mul(scale)
    };
    const NO_NUMBER: &str = "no number with its unit";
    match (open.kind, key) {
        (17, "Size") => {
            if value.starts_with("No Module") || value == "Not Installed" {
                made.set(0x0c, &[0, 0]);
            } else if is_unknown {
                made.set(0x0c, &[0xff, 0xff]);
            } else {
                let mib = u32::try_from(mib(value).ok_or(NO_NUMBER)?).map_err(|_| NO_NUMBER)?;
                made.set(0x0c, &[0xff, 0x7f]);
                made.set(0x1c, &mib.to_le_bytes());
            }
        }
        (17, "Speed" | "Configured Memory Speed" | "Configured Clock Speed") => {
            let is_rated = key == "Speed";
            if !is_unknown {
                let mts = first().ok_or(NO_NUMBER)?;
                if is_rated { made.speed(0x15, 0x54, mts) } else { made.speed(0x20, 0x58, mts) }
            }
            if !is_rated || open.speed_at.is_none() {
                open.speed_at = Some(at);
            }
        }
        (17, "Locator") => {
            made.text(0x10, value);
            open.slot = Some(value.into());
        }
        (17, "Bank Locator") => made.text(0x11, value),
        (17, "Manufacturer") if !is_unknown => made.text(0x17, value),
        (17, "Part Number") if !is_unknown => made.text(0x1a, value),
        (17, "Rank") if !is_unknown => {
            made.set(0x1b, &[first().and_then(|n| u8::try_from(n).ok()).filter(|n| *n < 16).ok_or(NO_NUMBER)?])
        }
        (17, "Form Factor") => {
            made.set(0x0e, &[code(value, &[("SIMM", 3), ("DIMM", 9), ("SODIMM", 0x0d), ("Die", 0x10), ("CAMM", 0x11)])])
        }
        (17, "Type") => made.set(0x12, &[code(value, TYPES)]),
        (17, "Type Detail") => {
            let known = [
                ("Synchronous", 1u16 << 7),
                ("Non-Volatile", 1 << 12),
                ("Registered", 1 << 13),
                ("Unbuffered", 1 << 14),
                ("LRDIMM", 1 << 15),
            ];
            let bits = known.iter().filter(|(name, _)| value.contains(name)).fold(0, |all, (_, bit)| all | bit);
            made.set(0x13, &bits.to_le_bytes());
        }
        (16, "Use") => made.set(5, &[if value == "System Memory" { 3 } else { 1 }]),
        (16, "Error Correction Type") => {
            made.set(
                6,
                &[code(value, &[("None", 3), ("Parity", 4), ("Single-bit ECC", 5), ("Multi-bit ECC", 6), ("CRC", 7)])],
            );
        }
        (16, "Number Of Devices") => {
            made.set(0x0d, &first().and_then(|n| u16::try_from(n).ok()).ok_or(NO_NUMBER)?.to_le_bytes())
        }
        (4, "Socket Designation") => made.text(0x04, value),
        (4, "Version") if !is_unknown => made.text(0x10, value),
        (4, "Max Speed" | "Current Speed") if !is_unknown => {
            let mhz = first().and_then(|n| u16::try_from(n).ok()).ok_or(NO_NUMBER)?;
            made.set(if key == "Max Speed" { 0x14 } else { 0x16 }, &mhz.to_le_bytes());
        }
        (0..=2, "Manufacturer" | "Product Name" | "Version" | "Release Date" | "Vendor") => {}
        _ => return Ok(false),
    }
    Ok(true)
}

const TYPES: &[(&str, u8)] = &[
    ("SDRAM", 0x0f),
    ("DDR", 0x12),
    ("DDR2", 0x13),
    ("DDR3", 0x18),
    ("DDR4", 0x1a),
    ("LPDDR", 0x1b),
    ("LPDDR2", 0x1c),
    ("LPDDR3", 0x1d),
    ("LPDDR4", 0x1e),
    ("Logical non-volatile device", 0x1f),
    ("HBM", 0x20),
    ("HBM2", 0x21),
    ("DDR5", 0x22),
    ("LPDDR5", 0x23),
    ("HBM3", 0x24),
];

/// The standard's number of a word; 2 is its "unknown".
fn code(word: &str, known: &[(&str, u8)]) -> u8 {
    known.iter().find(|(name, _)| *name == word).map_or(2, |(_, code)| *code)
}
