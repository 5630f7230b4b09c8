//! What the package C-state limit of register 0xE2 means: the same number is another state on another model.
//!
//! Servers have three bits and clients and Atoms four; Haswell and Broadwell count PC3, the later servers do not, Skylake
//! and Sapphire Rapids know PC6 in two kinds (3 keeps the caches at retention voltage), Ice Lake and Xeon 6 in one, and
//! on Denverton 0 is no limit at all
//! and 2 is PC3 (so the SDM and turbostat; pepc calls it PC2). Snow Ridge and Grand Ridge have no package C-states. A model that is not listed
//! has no words here, and a number that its table leaves open stays a number. Sources: Intel SDM volume 4 (the tables of
//! MSR_PKG_CST_CONFIG_CONTROL by model), and intel/pepc, `PCStateConfigCtl.py`, which lists what was tried on machines.

use crate::facts::cpuinfo::Processor;
use serde::Serialize;
use std::fmt;

/// The deepest state a package may enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PackageLimit {
    /// None: the package stays awake, whatever its cores do.
    Pc0,
    /// Shallow: the way to memory sleeps now and then.
    Pc2,
    /// The caches are flushed or clocked down.
    Pc3,
    /// The package sleeps: memory path, mesh and caches.
    Pc6,
    /// The same with the caches at retention voltage.
    Pc6Retention,
    /// Clients: the last-level cache may be switched off.
    Pc7,
    /// The same, shrunk step by step.
    Pc7s,
    /// Clients: most of the package is off.
    Pc8,
    /// Deeper, with lower voltage.
    Pc9,
    /// The deepest of clients.
    Pc10,
    /// Whatever the package can do.
    Unlimited,
    /// A number that the model's table leaves open.
    Code(u8),
}

use PackageLimit::{Pc0, Pc2, Pc3, Pc6, Pc6Retention, Pc7, Pc7s, Pc8, Pc9, Pc10, Unlimited};

impl fmt::Display for PackageLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Pc0 => "PC0",
            Pc2 => "PC2",
            Pc3 => "PC3",
            Pc6 => "PC6",
            Pc6Retention => "PC6R",
            Pc7 => "PC7",
            Pc7s => "PC7S",
            Pc8 => "PC8",
            Pc9 => "PC9",
            Pc10 => "PC10",
            Unlimited => "unlimited",
            PackageLimit::Code(code) => return write!(f, "code {code}"),
        })
    }
}

impl PackageLimit {
    /// Does it keep the package out of every package state?
    pub fn is_awake(self) -> bool {
        self <= Pc0
    }

    /// May the package sleep in PC6 or deeper? None where the number has no name.
    pub fn allows_pc6(self) -> Option<bool> {
        match self {
            PackageLimit::Code(_) => None,
            named => Some(named >= Pc6),
        }
    }
}

/// How one kind of processor codes the limit.
#[derive(Clone, Copy, Debug)]
pub struct Codes {
    /// The field is bits 0 to this one.
    pub high_bit: u32,
    names: &'static [(u8, PackageLimit)],
}

const IVY_BRIDGE: Codes =
    Codes { high_bit: 2, names: &[(0, Pc0), (1, Pc2), (2, Pc6), (3, Pc6Retention), (7, Unlimited)] };
const HASWELL: Codes = Codes { high_bit: 2, names: &[(0, Pc0), (1, Pc2), (2, Pc3), (3, Pc6), (7, Unlimited)] };
const BROADWELL_D: Codes = Codes { high_bit: 3, names: &[(0, Pc0), (1, Pc2), (2, Pc3), (3, Pc6)] };
const ICE_LAKE: Codes = Codes { high_bit: 2, names: &[(0, Pc0), (1, Pc2), (2, Pc6), (7, Unlimited)] };
const DENVERTON: Codes = Codes { high_bit: 3, names: &[(0, Unlimited), (2, Pc3), (3, Pc6)] };
const CLIENT_7: Codes = Codes { high_bit: 3, names: &[(0, Pc0), (1, Pc2), (2, Pc3), (3, Pc6), (4, Pc7), (5, Pc7s)] };
const CLIENT_10: Codes = Codes {
    high_bit: 3,
    names: &[(0, Pc0), (1, Pc2), (2, Pc3), (3, Pc6), (4, Pc7), (5, Pc7s), (6, Pc8), (7, Pc9), (8, Pc10)],
};
const LUNAR_LAKE: Codes = Codes { high_bit: 3, names: &[(0, Pc0), (1, Pc2), (3, Pc6), (8, Pc10)] };

/// By model of family 6.
const MODELS: &[(&[u64], &Codes)] = &[
    // Ivy Bridge; Skylake, Cascade and Cooper Lake; Sapphire and Emerald Rapids; Knights Landing and Mill.
    (&[0x3e, 0x55, 0x8f, 0xcf, 0x57, 0x85], &IVY_BRIDGE),
    (&[0x3f, 0x4f], &HASWELL),
    (&[0x56, 0x47], &BROADWELL_D),
    // Ice Lake; Granite Rapids; Sierra and Clearwater Forest.
    (&[0x6a, 0x6c, 0xad, 0xae, 0xaf, 0xdd], &ICE_LAKE),
    (&[0x5f], &DENVERTON),
    (&[0x3c, 0x46], &CLIENT_7),
    // Haswell to Skylake and Kaby Lake clients; Cannon, Ice, Comet, Tiger and Rocket Lake.
    (
        &[
            0x45, 0x3d, 0x4e, 0x5e, 0x8e, 0x9e, 0x66, 0x7d, 0x7e, 0x9d, 0xa5, 0xa6, 0x8a, 0x8c, 0x8d, 0xa7,
            // Alder, Raptor, Meteor and Arrow Lake.
            0x97, 0x9a, 0xbe, 0xb7, 0xba, 0xbf, 0xaa, 0xac, 0xb5, 0xc5, 0xc6,
        ],
        &CLIENT_10,
    ),
    (&[0xbd], &LUNAR_LAKE),
];

/// The codes of this model of Intel's family 6; none where they are not known here.
pub fn codes(model: u64) -> Option<&'static Codes> {
    MODELS.iter().find(|(models, _)| models.contains(&model)).map(|(_, codes)| *codes)
}

/// The same of a processor.
pub fn codes_of(processor: &Processor) -> Option<&'static Codes> {
    let is_family_6 = processor.is_intel() && processor.family == Some(6);
    is_family_6.then(|| codes(processor.model?))?
}

impl Codes {
    /// What the register says.
    pub fn of(&self, register: u64) -> PackageLimit {
        let code = register.to_le_bytes()[0] & ((1 << (self.high_bit + 1)) - 1);
        self.names.iter().find(|(known, _)| *known == code).map_or(PackageLimit::Code(code), |(_, limit)| *limit)
    }

    /// The number of a limit on this model.
    pub fn code(&self, limit: PackageLimit) -> Option<u8> {
        self.names.iter().find(|(_, known)| *known == limit).map(|(code, _)| *code)
    }

    /// The limits that this model knows, in the order of their numbers.
    pub fn limits(&self) -> impl Iterator<Item = PackageLimit> {
        self.names.iter().map(|(_, limit)| *limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_registers_by_model() {
        let said = |model, register| codes(model).map(|c| c.of(register).to_string());
        for (model, register, limit) in [
            (0x55, 0x8400, "PC0"),       // Cascade Lake, locked
            (0x4f, 0x8403, "PC6"),       // Broadwell
            (0x57, 0x1400_8403, "PC6R"), // Knights Landing
            (0x5f, 0x432, "PC3"),        // Denverton
            (0x8c, 0x7400_8008, "PC10"), // Tiger Lake: four bits
            (0xad, 0x22, "PC6"),         // Granite Rapids
            (0xdd, 0x27, "unlimited"),   // Clearwater Forest
            (0xcf, 0x403, "PC6R"),       // Emerald Rapids
            (0x6a, 0x1400_0402, "PC6"),  // Ice Lake
            (0x6a, 0x0b, "code 3"),      // bit 3 is no part of the field
        ] {
            assert_eq!(said(model, register).as_deref(), Some(limit), "model {model:#x}");
        }
        assert_eq!(said(0x86, 2), None, "Snow Ridge has no package C-states");
    }

    #[test]
    fn no_model_is_listed_twice_and_every_limit_has_its_number() {
        let mut all: Vec<u64> = MODELS.iter().flat_map(|(models, _)| models.iter().copied()).collect();
        let n = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), n);
        for (_, codes) in MODELS {
            for limit in codes.limits() {
                let code = codes.code(limit).unwrap();
                assert_eq!(codes.of(u64::from(code)), limit);
            }
        }
        assert_eq!([Pc0, Pc2, Pc6, Unlimited].map(PackageLimit::allows_pc6), [false, false, true, true].map(Some));
        assert_eq!(PackageLimit::Code(5).allows_pc6(), None);
    }
}
