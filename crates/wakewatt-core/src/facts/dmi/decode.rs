//! From SMBIOS structures to slots, arrays and processors (DMTF DSP0134, sections 7.5, 7.17 and 7.18).
//!
//! Older firmware has shorter structures, so every field may be missing; the standard's "unknown" values become none
//! as well, and a size of 0, which means an empty slot, stays 0. Speeds above 65535 MT/s stand in later fields.

use super::place;
use super::table::Structure;
use serde::Serialize;

/// One memory slot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Dimm {
    /// The slot's name, as printed on the board.
    pub slot: Option<String>,
    /// Name of the bank, as firmware writes it.
    pub bank: Option<String>,
    /// Socket, guessed from the names and spelled as there.
    pub socket: Option<String>,
    /// Memory channel, guessed from the slot's name likewise.
    pub channel: Option<String>,
    /// 0 in an empty slot; none where the firmware does not know.
    pub size_bytes: Option<u64>,
    /// Form of the module: DIMM, SODIMM …
    pub form_factor: Option<String>,
    /// Kind of memory: DDR4, DDR5 …
    pub memory_type: Option<String>,
    /// Registered, Unbuffered, LRDIMM …
    pub detail: Vec<String>,
    /// What the module is rated for.
    pub rated_mts: Option<u64>,
    /// What it runs at.
    pub configured_mts: Option<u64>,
    /// How many ranks the module has.
    pub n_ranks: Option<u8>,
    /// Voltage it runs at.
    pub configured_mv: Option<u64>,
    /// Maker of the module.
    pub manufacturer: Option<String>,
    /// The maker's part number.
    pub part_number: Option<String>,
}

impl Dimm {
    /// Holds a module? None where the firmware does not know.
    pub fn is_populated(&self) -> Option<bool> {
        // A slot without a module runs at no speed.
        self.size_bytes.map(|size| size > 0).or_else(|| self.configured_mts.map(|_| true))
    }
    /// Runs below what it is rated for? None unless both are known.
    pub fn is_below_rated(&self) -> Option<bool> {
        Some(self.configured_mts? < self.rated_mts?)
    }
}

/// A set of slots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryArray {
    /// How many slots the array has.
    pub n_slots: Option<u16>,
    /// The most it can hold.
    pub max_bytes: Option<u64>,
    /// none, parity, single-bit ECC, multi-bit ECC …
    pub correction: Option<String>,
}

/// A processor socket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DmiProcessor {
    /// Its name on the board.
    pub socket: Option<String>,
    /// Name of the processor, as firmware writes it.
    pub version: Option<String>,
    /// The fastest the socket supports.
    pub max_khz: Option<u64>,
    /// The speed the firmware started it at.
    pub boot_khz: Option<u64>,
}

pub(super) fn decode_dimm(s: &Structure<'_>, is_poweredge: bool) -> Dimm {
    const MIB: u64 = 1 << 20;
    let size_bytes = match s.word(0x0c) {
        None | Some(0xffff) => None,
        Some(0x7fff) => s.dword(0x1c).map(|mib| u64::from(mib & 0x7fff_ffff) * MIB),
        Some(kib) if kib & 0x8000 != 0 => Some(u64::from(kib & 0x7fff) << 10),
        Some(mib) => Some(u64::from(mib) * MIB),
    };
    let speed = |at: usize, extended: usize| match s.word(at)? {
        0 => None,
        0xffff => s.dword(extended).map(|mts| u64::from(mts & 0x7fff_ffff)).filter(|mts| *mts > 0),
        mts => Some(u64::from(mts)),
    };
    let (slot, bank) = (s.text(0x10), s.text(0x11));
    let (socket, channel) =
        place::place(slot.as_deref().unwrap_or_default(), bank.as_deref().unwrap_or_default(), is_poweredge);
    const DETAILS: &[(u16, &str)] = &[
        (1 << 7, "synchronous"),
        (1 << 12, "non-volatile"),
        (1 << 13, "registered"),
        (1 << 14, "unbuffered"),
        (1 << 15, "load-reduced"),
    ];
    let bits = s.word(0x13).unwrap_or(0);
    Dimm {
        socket,
        channel,
        size_bytes,
        form_factor: s.byte(0x0e).and_then(|v| {
            name_of(
                v,
                &[
                    (0x03, "SIMM"),
                    (0x09, "DIMM"),
                    (0x0b, "row of chips"),
                    (0x0d, "SODIMM"),
                    (0x10, "die"),
                    (0x11, "CAMM"),
                ],
            )
        }),
        memory_type: s.byte(0x12).and_then(|v| name_of(v, MEMORY_TYPES)),
        detail: DETAILS.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| (*name).to_string()).collect(),
        rated_mts: speed(0x15, 0x54),
        configured_mts: speed(0x20, 0x58),
        n_ranks: s.byte(0x1b).map(|v| v & 0x0f).filter(|n| *n > 0),
        configured_mv: s.word(0x26).filter(|mv| *mv > 0).map(u64::from),
        manufacturer: s.text(0x17),
        part_number: s.text(0x1a),
        slot,
        bank,
    }
}

const MEMORY_TYPES: &[(u8, &str)] = &[
    (0x0f, "SDRAM"),
    (0x12, "DDR"),
    (0x13, "DDR2"),
    (0x14, "DDR2 FB-DIMM"),
    (0x18, "DDR3"),
    (0x1a, "DDR4"),
    (0x1b, "LPDDR"),
    (0x1c, "LPDDR2"),
    (0x1d, "LPDDR3"),
    (0x1e, "LPDDR4"),
    (0x1f, "logical non-volatile"),
    (0x20, "HBM"),
    (0x21, "HBM2"),
    (0x22, "DDR5"),
    (0x23, "LPDDR5"),
    (0x24, "HBM3"),
];

fn name_of(value: u8, names: &[(u8, &str)]) -> Option<String> {
    names.iter().find(|(v, _)| *v == value).map(|(_, name)| (*name).to_string())
}

pub(super) fn decode_array(s: &Structure<'_>) -> MemoryArray {
    let max_bytes = match s.dword(0x07) {
        Some(0x8000_0000) => s.qword(0x0f),
        kib => kib.map(|kib| u64::from(kib) << 10),
    };
    let corrections = [(3, "none"), (4, "parity"), (5, "single-bit ECC"), (6, "multi-bit ECC"), (7, "CRC")];
    MemoryArray {
        n_slots: s.word(0x0d),
        max_bytes: max_bytes.filter(|b| *b > 0),
        correction: s.byte(0x06).and_then(|v| name_of(v, &corrections)),
    }
}

pub(super) fn decode_processor(s: &Structure<'_>) -> DmiProcessor {
    let khz = |at: usize| s.word(at).filter(|mhz| *mhz > 0).map(|mhz| u64::from(mhz) * 1000);
    DmiProcessor { socket: s.text(0x04), version: s.text(0x10), max_khz: khz(0x14), boot_khz: khz(0x16) }
}
