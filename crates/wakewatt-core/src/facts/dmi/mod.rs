//! The machine and its memory modules, from the firmware's SMBIOS table: rated and configured speed, population.
//!
//! `/sys/firmware/dmi/tables/DMI` (DMTF DSP0134) is for root only; the machine's name is also in /sys/class/dmi/id for
//! everybody. A module that runs below its rated speed, or channels that are unevenly filled, cost memory bandwidth and
//! show as busy, stalled CPUs. Speeds are what the firmware claims, in megatransfers per second. A module's rating may
//! exceed what the processor supports, so rated above configured is a question, not yet a fault. Serial numbers, asset
//! tags and the UUID are never decoded, and [`mask_tables`] removes them before a table is captured.

mod decode;
mod place;
mod table;

pub use decode::{Dimm, DmiProcessor, MemoryArray};
pub use table::mask_tables;

use super::{Cpus, Domain};
use crate::arrange::Arrange as _;
use crate::fact::{Fact, Gap, fact, parse};
use crate::sheet::{Cell, Sheet};
use crate::source::Source;
use decode::{decode_array, decode_dimm, decode_processor};
use serde::Serialize;
use wakewatt_words::{say, word};

/// The table.
pub const TABLE: &str = "/sys/firmware/dmi/tables/DMI";
const ENTRY: &str = "/sys/firmware/dmi/tables/smbios_entry_point";
const ID: &str = "/sys/class/dmi/id";

/// Machine, memory modules, processors as the firmware describes them.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Dmi {
    /// Who built the machine.
    pub system_vendor: Fact<String>,
    /// Model of the machine, as its maker wrote it into the firmware.
    pub product_name: Fact<String>,
    /// Model of the main board.
    pub board_name: Fact<String>,
    /// Version of the firmware.
    pub bios_version: Fact<String>,
    /// Date of the firmware, as its maker writes it.
    pub bios_date: Fact<String>,
    /// Version of the standard, e.g. 3.2.
    pub smbios_version: Fact<String>,
    /// Every slot, filled or not.
    pub dimms: Fact<Vec<Dimm>>,
    /// Memory arrays (boards' sets of slots) that are system memory.
    pub arrays: Vec<MemoryArray>,
    /// The processor sockets, empty ones included.
    pub processors: Vec<DmiProcessor>,
    /// The table is damaged: the above is what could be read.
    pub damage: Option<Gap>,
}

/// The modules of one channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChannelPopulation {
    /// The socket the channel belongs to, where that can be told.
    pub socket: Option<String>,
    /// Name of the memory channel.
    pub channel: String,
    /// How many slots the channel has.
    pub n_slots: u64,
    /// Slots that hold a module.
    pub n_populated: u64,
    /// Bytes of memory on the channel.
    pub size_bytes: u64,
}

impl Dmi {
    /// Slots that hold a module.
    pub fn populated(&self) -> impl Iterator<Item = &Dimm> {
        self.dimms.get().into_iter().flatten().filter(|d| d.is_populated() == Some(true))
    }

    /// Modules that run below what they are rated for.
    pub fn below_rated(&self) -> impl Iterator<Item = &Dimm> {
        self.populated().filter(|d| d.is_below_rated() == Some(true))
    }

    /// Memory per channel, in order of socket and channel; empty where a slot's channel is not recognised.
    pub fn channels(&self) -> Vec<ChannelPopulation> {
        let mut all: Vec<ChannelPopulation> = Vec::new();
        for dimm in self.dimms.get().into_iter().flatten() {
            let (Some(channel), Some(size)) = (&dimm.channel, dimm.size_bytes) else { return Vec::new() };
            let at = all.iter().position(|c| c.socket == dimm.socket && c.channel == *channel).unwrap_or_else(|| {
                let (socket, channel) = (dimm.socket.clone(), channel.clone());
                all.push(ChannelPopulation { socket, channel, ..ChannelPopulation::default() });
                all.len() - 1
            });
            let entry = &mut all[at];
            entry.n_slots += 1;
            entry.n_populated += u64::from(size > 0);
            entry.size_bytes = entry.size_bytes.saturating_add(size);
        }
        all.arrange_by(|a, b| (&a.socket, &a.channel).cmp(&(&b.socket, &b.channel)));
        all
    }

    /// Do all channels hold the same amount? None where channels are not recognised.
    pub fn is_evenly_populated(&self) -> Option<bool> {
        let all = self.channels();
        let first = all.first()?.size_bytes;
        Some(all.iter().all(|c| c.size_bytes == first))
    }
}

impl Domain for Dmi {
    const TITLE: &'static str = "Machine and memory modules (SMBIOS)";
    const HELP: &'static str = "machine, firmware, every DIMM: slot, size, rated and configured speed";

    fn read(src: &dyn Source, _: &Cpus) -> Dmi {
        let bytes = src.read(TABLE);
        let (structures, why) = match &bytes {
            Ok(bytes) => table::walk(bytes),
            Err(_) => (Vec::new(), None),
        };
        // World-readable first; the table fills in where /sys/class/dmi was not recorded.
        let named = |file: &str, kind: u8, at: usize| match fact(src, &format!("{ID}/{file}"), parse::word) {
            Fact::Known(value) => Fact::Known(value),
            gap => structures.iter().find(|s| s.kind == kind).and_then(|s| s.text(at)).map_or(gap, Fact::Known),
        };
        let product_name = named("product_name", 1, 0x05);
        let is_poweredge = product_name.get().is_some_and(|p| p.contains("PowerEdge"));
        let dimms = match &bytes {
            Err(error) => Fact::Gap(Gap::from_read(TABLE, error)),
            Ok(_) => {
                let found = structures.iter().filter(|s| s.kind == 17);
                let mut all: Vec<Dimm> = found.map(|s| decode_dimm(s, is_poweredge)).collect();
                if let (true, Some(product)) = (is_poweredge, product_name.get()) {
                    let slots: Vec<Option<&str>> = all.iter().map(|d| d.slot.as_deref()).collect();
                    let channels = place::poweredge(product, &slots);
                    all.iter_mut().zip(channels).for_each(|(dimm, channel)| {
                        dimm.channel = channel.or(dimm.channel.take());
                    });
                }
                Fact::Known(all)
            }
        };
        Dmi {
            system_vendor: named("sys_vendor", 1, 0x04),
            board_name: named("board_name", 2, 0x05),
            bios_version: named("bios_version", 0, 0x05),
            bios_date: named("bios_date", 0, 0x08),
            smbios_version: read_version(src),
            // Use 3 is system memory; others are video, flash and cache.
            arrays: structures.iter().filter(|s| s.kind == 16 && s.byte(5) == Some(3)).map(decode_array).collect(),
            processors: structures.iter().filter(|s| s.kind == 4).map(decode_processor).collect(),
            damage: why.map(|why| Gap::malformed(TABLE, format!("{why}; what stands before it was read"))),
            product_name,
            dimms,
        }
    }

    fn show(&self, sheet: &mut Sheet) {
        sheet.fact("dimms.vendor", word!("maker"), &self.system_vendor, |v| Cell::text(v));
        sheet.fact("dimms.product", "model", &self.product_name, |v| Cell::text(v));
        sheet.fact("dimms.board", word!("board"), &self.board_name, |v| Cell::text(v));
        sheet.fact("dimms.bios_version", word!("firmware version"), &self.bios_version, |v| Cell::text(v));
        sheet.fact("dimms.bios_date", word!("firmware date"), &self.bios_date, |v| Cell::text(v));
        sheet.fact("dimms.smbios", word!("SMBIOS version"), &self.smbios_version, |v| Cell::text(v));
        sheet.fact("dimms.slots", word!("memory slots"), &self.dimms, |v| Cell::Count(v.len() as u64));
        for processor in &self.processors {
            let name = processor.socket.as_deref().unwrap_or("?");
            if let Some(khz) = processor.max_khz {
                sheet.say(format!("dimms.socket.{}.max", id_of(name)), say!("{name} fastest"), Cell::Khz(khz));
            }
            if let Some(khz) = processor.boot_khz {
                sheet.say(format!("dimms.socket.{}.boot", id_of(name)), say!("{name} at boot"), Cell::Khz(khz));
            }
        }
        if let Some(damage) = &self.damage {
            sheet.fact("dimms.damage", word!("rest of the table"), &Fact::<u64>::Gap(damage.clone()), |v| {
                Cell::Count(*v)
            });
        }
        if self.dimms.is_known() {
            sheet.say("dimms.populated", word!("modules"), Cell::Count(self.populated().count() as u64));
            sheet.say(
                "dimms.below_rated",
                word!("modules below rated speed"),
                Cell::Count(self.below_rated().count() as u64),
            );
        }
        for (i, dimm) in self.populated().enumerate() {
            let name = dimm.slot.clone().unwrap_or_else(|| format!("module {i}"));
            // Some boards give every slot the same name; the bank, else the position, tells them apart.
            let twins = self.populated().filter(|d| d.slot == dimm.slot).count();
            let name = match &dimm.bank {
                _ if twins < 2 => name,
                Some(bank) => format!("{bank} {name}"),
                None => format!("{name} #{i}"),
            };
            let mut say = |what: &str, label: &str, cell: Option<Cell>| {
                if let Some(cell) = cell {
                    sheet.say(format!("dimms.{}.{what}", id_of(&name)), format!("{name} {label}"), cell);
                }
            };
            say("size", word!("size"), dimm.size_bytes.map(Cell::Bytes));
            say("type", word!("type"), dimm.memory_type.as_ref().map(Cell::text));
            say("rated", word!("rated speed"), dimm.rated_mts.map(Cell::MegaTransfers));
            say("configured", word!("configured speed"), dimm.configured_mts.map(Cell::MegaTransfers));
            say("ranks", word!("ranks"), dimm.n_ranks.map(|n| Cell::Count(n.into())));
            say("part", word!("part"), dimm.part_number.as_ref().map(Cell::text));
        }
        for channel in self.channels() {
            let socket = channel.socket.as_deref().map_or(String::new(), |s| format!("{s} "));
            let name = format!("{socket}channel {}", channel.channel);
            let text = format!("{} of {} slots", channel.n_populated, channel.n_slots);
            sheet.say(format!("dimms.{}.filled", id_of(&name)), say!("{name} filled"), Cell::Text(text));
        }
    }
}

/// A name as part of a row's id: without blanks and dots.
fn id_of(name: &str) -> String {
    name.replace([' ', '.'], "_")
}

fn read_version(src: &dyn Source) -> Fact<String> {
    let bytes = match src.read(ENTRY) {
        Ok(bytes) => bytes,
        Err(error) => return Fact::Gap(Gap::from_read(ENTRY, &error)),
    };
    let at = if bytes.starts_with(b"_SM3_") {
        7
    } else if bytes.starts_with(b"_SM_") {
        6
    } else {
        return Fact::Gap(Gap::malformed(ENTRY, "no SMBIOS anchor"));
    };
    match bytes.get(at..at + 2) {
        Some(&[major, minor]) => Fact::Known(format!("{major}.{minor}")),
        _ => Fact::Gap(Gap::malformed(ENTRY, "cut off")),
    }
}

#[cfg(test)]
mod tests {
    use super::table::tests::structure;
    use super::*;
    use crate::source::{ErrorKind, ReadError, Tree};

    fn dimm(slot: &str, size_mib: u16, rated: u16, configured: u16) -> Vec<u8> {
        let set: &[(usize, &[u8])] = &[
            (0x0c, &size_mib.to_le_bytes()),
            (0x0e, &[9]),
            (0x10, &[1]),
            (0x12, &[0x1a]),
            (0x13, &[0x80, 0x20]),
            (0x15, &rated.to_le_bytes()),
            (0x18, &[2]),
            (0x1a, &[3]),
            (0x1b, &[2]),
            (0x1c, &65536u32.to_le_bytes()),
            (0x20, &configured.to_le_bytes()),
            (0x26, &1200u16.to_le_bytes()),
            (0x54, &8800u32.to_le_bytes()),
            (0x58, &8000u32.to_le_bytes()),
        ];
        structure(17, 0x5c, set, &[slot, "SN-SECRET", "HMA84-PART"])
    }

    fn read(table: Vec<u8>) -> Dmi {
        let mut tree = Tree::from_text("//- /sys/class/dmi/id/product_name\nModel 9\n");
        tree.files.insert(TABLE.into(), Ok(table));
        tree.files.insert(ENTRY.into(), Ok(b"_SM3_\x00\x18\x03\x02\x00".to_vec()));
        Dmi::read(&tree, &Cpus::default())
    }

    #[test]
    fn a_module_below_its_rating_shows() {
        let maker = structure(1, 0x1b, &[(4, &[1]), (7, &[2]), (8, &[9; 16])], &["Maker", "SYS-SERIAL"]);
        let end = structure(127, 4, &[], &[]);
        let table = [
            maker,
            dimm("P0_DIMM_A1", 32767, 2933, 2100),
            dimm("P0_DIMM_B1", 16384, 2933, 2933),
            dimm("P0_DIMM_B2", 0, 0, 0),
            dimm("P0_DIMM_C1", 0, 0xffff, 0xffff),
            end,
        ];
        let dmi = read(table.concat());
        let dimms = dmi.dimms.get().unwrap();
        assert_eq!(
            (dimms[0].rated_mts, dimms[0].configured_mts, dimms[0].size_bytes),
            (Some(2933), Some(2100), Some(64 << 30))
        );
        assert_eq!((dimms[2].rated_mts, dimms[2].is_populated(), dimms[2].is_below_rated()), (None, Some(false), None));
        assert_eq!((dimms[3].rated_mts, dimms[3].configured_mts), (Some(8800), Some(8000)));
        assert_eq!(dimms[0].detail, ["synchronous", "registered"]);
        let slow: Vec<&str> = dmi.below_rated().filter_map(|d| d.slot.as_deref()).collect();
        assert_eq!(slow, ["P0_DIMM_A1"]);
        assert_eq!(
            (dmi.system_vendor.get().unwrap().as_str(), dmi.product_name.get().unwrap().as_str()),
            ("Maker", "Model 9")
        );
        assert_eq!(dmi.smbios_version.get().unwrap(), "3.2");
        let channels: Vec<String> =
            dmi.channels().iter().map(|c| format!("{} {}/{}", c.channel, c.n_populated, c.n_slots)).collect();
        assert_eq!((channels.join(", ").as_str(), dmi.is_evenly_populated()), ("A 1/1, B 1/2, C 0/1", Some(false)));
        let mut sheet = Sheet::default();
        dmi.show(&mut sheet);
        let shown = format!("{sheet:?}{}", serde_json::to_string(&dmi).unwrap());
        assert!(shown.contains("MegaTransfers(2933)") && shown.contains("MegaTransfers(2100)"));
        assert!(!shown.contains("SECRET") && !shown.contains("SYS-SERIAL"));
    }

    #[test]
    fn a_damaged_table_gives_what_it_has_and_a_gap() {
        let mut table = dimm("A1", 1024, 3200, 3200);
        table.extend_from_slice(&[17, 2, 0, 0]);
        let dmi = read(table);
        assert_eq!(dmi.dimms.get().unwrap().len(), 1);
        assert!(dmi.damage.unwrap().reason.contains("length 2"));
    }

    #[test]
    fn without_root_the_model_is_known_and_the_modules_are_a_gap() {
        let mut tree = Tree::from_text("//- /sys/class/dmi/id/sys_vendor\nMaker\n");
        tree.files.insert(TABLE.into(), Err(ReadError::new(ErrorKind::Denied, "Permission denied")));
        let dmi = Dmi::read(&tree, &Cpus::default());
        assert_eq!(dmi.system_vendor.get().unwrap(), "Maker");
        assert_eq!(dmi.dimms.gap().unwrap().kind, crate::fact::GapKind::Denied);
        assert_eq!((dmi.is_evenly_populated(), dmi.populated().count()), (None, 0));
    }
}
