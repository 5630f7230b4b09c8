//! `dmidecode`, whole or with `-t memory`: the machine's name, and every memory slot with rated and configured speed.
//!
//! A structure begins with `Handle 0x0011, DMI type 17, 84 bytes` and its name; its fields follow as `Key: Value`. `Configured
//! Clock Speed` is the old word for `Configured Memory Speed`, and MHz in old texts are what MT/s are in new ones. Serial numbers,
//! asset tags and the UUID are not kept.

mod fields;

use super::smbios::Structure;
use crate::plain::pair;
use crate::reading::{Format, Mark, Reading, likely};
use crate::section::Section;
use fields::{Open, field};

/// The format.
pub(super) const FORMAT: Format = Format { id: "dmidecode", title: "dmidecode", detect, read };

const TABLE: &str = "/sys/firmware/dmi/tables/DMI";
const ID: &str = "/sys/class/dmi/id";

/// Without a prompt it comes last: an open structure takes every field behind it, and another tool's lines must be gone by then.
fn detect(section: &Section<'_>) -> u32 {
    // Behind a prompt, a filter may have left the fields alone (`| grep Speed`).
    let is_bare = |line: &str| section.is_by("dmidecode") && pair(line).is_some_and(|(key, _)| is_memory(key));
    let is_own = |line: &str| {
        handle(line).is_some() || line == "Memory Device" || line.starts_with("# dmidecode") || is_bare(line)
    };
    let score = likely(section, "dmidecode", is_own);
    if section.is_by("dmidecode") { score } else { score.min(10) }
}

/// A field that only memory modules have, or one that is understood of them where the rest is missing.
fn is_memory(key: &str) -> bool {
    matches!(key, "Locator" | "Bank Locator" | "Speed" | "Configured Memory Speed" | "Configured Clock Speed" | "Size")
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

fn read(reading: &mut Reading<'_>) {
    let mut table = Vec::new();
    let mut n: u16 = 0;
    let mut first_memory = None;
    let mut open: Option<Open> = None;
    let is_by = reading.section.is_by("dmidecode");
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
        } else {
            if let Some((key, _)) = pair(text).filter(|(key, _)| is_by && is_memory(key)) {
                if open.as_ref().is_none_or(|open| open.bare.as_ref().is_some_and(|seen| seen.iter().any(|k| k == key)))
                {
                    let memory = close(reading, open.take(), &mut table, &mut n);
                    first_memory = first_memory.or(memory);
                    open = Some(Open { bare: Some(Vec::new()), ..Open::of(17, at) });
                }
                if let Some(seen) = open.as_mut().and_then(|open| open.bare.as_mut()) {
                    seen.push(key.into());
                }
            }
            let Some(now) = &mut open else { continue };
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
    let Open { made: Some(mut made), mut slot, speed_at, first, kind, bare } = open? else { return None };
    if bare.is_some() && slot.is_none() {
        // Without its place it needs a name all the same: evidence names a module by it.
        let name = format!("module {}", *n + 1);
        made.text(0x10, &name);
        slot = Some(name);
    }
    made.append_to(table, *n);
    *n = n.wrapping_add(1);
    if let Some(slot) = slot {
        reading.hint(speed_at.unwrap_or(first), TABLE, &slot);
    }
    (kind == 17).then_some(first)
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
        assert_eq!(cited.2, "Configured Memory Speed: 2100 MT/s");
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

    #[test]
    fn what_a_filter_left_of_it() {
        let found = read(
            "[root@g2 ~]# dmidecode -t memory | grep Speed\n\tSpeed: 2933 MT/s\n\tConfigured Memory Speed: 2100 MT/s\n\tSpeed: 2933 MT/s\n\tConfigured Memory Speed: 2100 MT/s\n",
        );
        let facts = Snapshot::read(&found.facts.tree, |_| true);
        let dimms = facts.dimms.dimms.get().unwrap();
        let said: Vec<_> = dimms.iter().map(|d| (d.slot.as_deref(), d.rated_mts, d.configured_mts)).collect();
        assert_eq!(said, [(Some("module 1"), Some(2933), Some(2100)), (Some("module 2"), Some(2933), Some(2100))]);
        assert_eq!((facts.dimms.populated().count(), facts.dimms.below_rated().count()), (2, 2));
        assert_eq!(found.document.files[0].n_not_understood, 0);
        assert_eq!(
            read("Speed: 2933 MT/s\nSize: 3 GB\n").document.n_facts,
            0,
            "without the prompt they may be anything's"
        );
    }
}
