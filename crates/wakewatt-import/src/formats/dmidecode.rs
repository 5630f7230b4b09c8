//! `dmidecode`, whole or with `-t memory`: the machine's name, and every memory slot with rated and configured speed.
//!
//! A structure begins with `Handle 0x0011, DMI type 17, 84 bytes` and its name; its fields follow as `Key: Value`. `Configured
//! Clock Speed` is the old word for `Configured Memory Speed`, and MHz in old texts are what MT/s are in new ones. Serial numbers,
//! asset tags and the UUID are not kept.

use super::smbios::Structure;
use crate::plain::{pair, whole};
use crate::reading::{Format, Mark, Reading, likely};
use crate::section::Section;

/// The format.
pub(super) const FORMAT: Format = Format { id: "dmidecode", title: "dmidecode", detect, read };

const TABLE: &str = "/sys/firmware/dmi/tables/DMI";
const ID: &str = "/sys/class/dmi/id";

/// Without a prompt it comes last: an open structure takes every field behind it, and another tool's lines must be gone by then.
fn detect(section: &Section<'_>) -> u32 {
    let is_own = |line: &str| handle(line).is_some() || line == "Memory Device" || line.starts_with("# dmidecode");
    let score = likely(section, "dmidecode", is_own);
    if section.is_by("dmidecode") { score } else { score.min(10) }
}

/// `Handle 0x0011, DMI type 17, 84 bytes`.
fn handle(line: &str) -> Option<u8> {
    let rest = line.trim().strip_prefix("Handle")?;
    rest[rest.find("type")? + 4..].split(',').next()?.trim().parse().ok()
}

/// Titles say the type where the line with the handle is missing.
fn title(line: &str) -> Option<u8> {
    let known = [
        ("BIOS Information", 0),
        ("System Information", 1),
        ("Base Board Information", 2),
        ("Processor Information", 4),
    ];
    let memory = [("Physical Memory Array", 16), ("Memory Device", 17)];
    known.iter().chain(&memory).find(|(name, _)| *name == line.trim()).map(|(_, kind)| *kind)
}

const SIZES: &[(u8, u8)] = &[(0, 0x1a), (1, 0x1b), (2, 0x0f), (4, 0x30), (16, 0x17), (17, 0x5c)];

struct Open {
    kind: u8,
    made: Option<Structure>,
    slot: Option<String>,
    /// The line with the speed it runs at, else its rating: what evidence names.
    speed_at: Option<usize>,
    first: usize,
}

impl Open {
    fn of(kind: u8, first: usize) -> Open {
        let mut made = SIZES.iter().find(|(known, _)| *known == kind).map(|(_, length)| Structure::new(kind, *length));
        if let (17, Some(made)) = (kind, &mut made) {
            // A size that is not told is unknown (SMBIOS 7.18), and no empty slot.
            made.set(0x0c, &[0xff, 0xff]);
        }
        Open { kind, made, slot: None, speed_at: None, first }
    }
}

fn read(reading: &mut Reading<'_>) {
    let mut table = Vec::new();
    let mut n: u16 = 0;
    let mut first_memory = None;
    let mut open: Option<Open> = None;
    for (at, line) in reading.open_lines() {
        let text = line.text.trim();
        if text.starts_with("# dmidecode")
            || text.starts_with("SMBIOS ")
            || text.starts_with("Getting SMBIOS")
            || text.starts_with("Scanning /dev/mem")
            || text.contains("structures occupying")
            || text.starts_with("Table at ")
            || text.starts_with("Reading SMBIOS")
        {
            reading.unused(at);
        } else if let Some(kind) = handle(text) {
            let memory = close(reading, open.take(), &mut table, &mut n);
            first_memory = first_memory.or(memory);
            open = Some(Open::of(kind, at));
            reading.take(at);
        } else if let Some(kind) = title(text) {
            if open.as_ref().is_none_or(|o| o.kind != kind || o.speed_at.is_some() || o.slot.is_some()) {
                let memory = close(reading, open.take(), &mut table, &mut n);
                first_memory = first_memory.or(memory);
                open = Some(Open::of(kind, at));
            }
            reading.take(at);
        } else if let Some(now) = &mut open {
            let Some((key, value)) = pair(text) else {
                // Names of structures and items of lists stand alone.
                reading.unused(at);
                continue;
            };
            match field(now, key, value, at) {
                Ok(true) => reading.take(at),
                Ok(false) => reading.unused(at),
                Err(why) => reading.refuse(at, why),
            }
            let id = match (now.kind, key) {
                (1, "Manufacturer") => "sys_vendor",
                (1, "Product Name") => "product_name",
                (2, "Product Name") => "board_name",
                (0, "Version") => "bios_version",
                (0, "Release Date") => "bios_date",
                _ => continue,
            };
            reading.put(at, &format!("{ID}/{id}"), value);
        }
    }
    let memory = close(reading, open.take(), &mut table, &mut n);
    if n == 0 {
        return;
    }
    Structure::new(127, 4).append_to(&mut table, n);
    let at = first_memory.or(memory).or_else(|| reading.marks.iter().position(|m| *m == Mark::Taken)).unwrap_or(0);
    reading.put_bytes(at, TABLE, table);
}

/// Ends a structure; of a module its first line.
fn close(reading: &mut Reading<'_>, open: Option<Open>, table: &mut Vec<u8>, n: &mut u16) -> Option<usize> {
    let Open { made: Some(made), slot, speed_at, first, kind } = open? else { return None };
    made.append_to(table, *n);
    *n = n.wrapping_add(1);
    if let Some(slot) = slot {
        reading.hint(speed_at.unwrap_or(first), TABLE, &slot);
    }
    (kind == 17).then_some(first)
}

/// One field; false where nothing here needs it.
fn field(open: &mut Open, key: &str, value: &str, at: usize) -> Result<bool, &'static str> {
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

#[cfg(test)]
mod tests {
    use crate::formats::testing::{formats, read};
    use wakewatt_core::facts::Snapshot;

    const SAMPLE: &str = "# dmidecode 3.3\nGetting SMBIOS data from sysfs.\nSMBIOS 3.2.0 present.\n\nHandle 0x1000, DMI type 16, 23 bytes\nPhysical Memory Array\n\tLocation: System Board Or Motherboard\n\
        \tUse: System Memory\n\tError Correction Type: Multi-bit ECC\n\tMaximum Capacity: 3 TB\n\tNumber Of Devices: 2\n\n\
        Handle 0x1100, DMI type 17, 84 bytes\nMemory Device\n\tSize: 16 GB\n\tForm Factor: DIMM\n\tLocator: A1\n\tBank Locator: Not Specified\n\tType: DDR4\n\tType Detail: Synchronous Registered (Buffered)\n\
        \tSpeed: 2933 MT/s\n\tManufacturer: Somebody\n\tSerial Number: 0011AAFF\n\tPart Number: X-1\n\tRank: 2\n\tConfigured Memory Speed: 2100 MT/s\n\n\
        Handle 0x1101, DMI type 17, 84 bytes\nMemory Device\n\tSize: No Module Installed\n\tLocator: A2\n\tSpeed: Unknown\n";

    #[test]
    fn modules_are_decoded_as_firmwares_are() {
        let found = read(SAMPLE);
        assert_eq!(formats(&found), ["dmidecode"]);
        let facts = Snapshot::read(&found.facts.tree, |_| true);
        let dimms = facts.dimms.dimms.get().unwrap();
        assert_eq!((dimms.len(), dimms[0].rated_mts, dimms[0].configured_mts), (2, Some(2933), Some(2100)));
        assert_eq!(
            (dimms[0].size_bytes, dimms[0].memory_type.as_deref(), dimms[1].is_populated()),
            (Some(16 << 30), Some("DDR4"), Some(false))
        );
        assert!(facts.dimms.damage.is_none() && facts.dimms.arrays.len() == 1);
        let table = found.facts.tree.files["/sys/firmware/dmi/tables/DMI"].clone().unwrap();
        assert!(!String::from_utf8_lossy(&table).contains("0011AAFF"), "serial numbers are not kept");
        let cited = found.facts.source_of("/sys/firmware/dmi/tables/DMI type 17, A1", "2933 2100").unwrap();
        assert!(cited.contains("Configured Memory Speed: 2100 MT/s"), "{cited}");
        assert_eq!(found.document.files[0].n_not_understood, 0, "{:?}", found.document.files[0].not_understood);
    }

    #[test]
    fn without_handles_and_with_old_words() {
        let text = "Memory Device\n Size: 8192 MB\n Locator: DIMM_A1\n Speed: 1600 MHz\n Configured Clock Speed: 1333 MHz\nMemory Device\n Size: eight GB\n Locator: DIMM_B1\n";
        let found = read(text);
        let facts = Snapshot::read(&found.facts.tree, |_| true);
        let dimms = facts.dimms.dimms.get().unwrap();
        assert_eq!((dimms.len(), dimms[0].configured_mts, dimms[1].slot.as_deref()), (2, Some(1333), Some("DIMM_B1")));
        assert_eq!(found.document.files[0].n_not_understood, 1);
    }
}
