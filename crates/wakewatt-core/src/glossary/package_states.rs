//! States of a whole package: what is left when every core of a socket rests.
//!
//! No kernel chooses them: the hardware goes as deep as the shallowest core, the firmware's limit and the devices allow.
//! Sources: Intel SDM volume 3 and 4 (MSR 0xE2, package residency counters), datasheets, AMD's PPRs.

use super::Family::PackageState;
use super::Term;

const SOURCE: &str = "Intel SDM volume 3 and 4 (MSR 0xE2, residency counters); the processor's datasheet";

pub(super) const TERMS: &[Term] = &[
    PackageState.term(
        "package state",
        &["PCx", "package C-state", "package idle state"],
        SOURCE,
        &["PC6", "core and package states", "uncore"],
        "A state of everything a socket shares: last-level cache, mesh, memory controller, links. It is at most as deep as the \
         shallowest of its cores; one CPU that polls or works keeps the whole package at PC0.",
    ),
    PackageState.term(
        "core and package states",
        &["combined states"],
        SOURCE,
        &["package state", "MSR 0xE2", "C1 demotion"],
        "Which core states let the package follow is a property of the generation. What then keeps it shallow: the firmware's limit, a \
         CPU that may not go deep, a device that needs memory or its link awake, and timers that end every sleep early.",
    ),
    PackageState.term(
        "PC0",
        &["package C0", "PC1"],
        SOURCE,
        &["package state"],
        "Some core works or rests lightly, and the shared part is fully awake.",
    ),
    PackageState.term(
        "PC2",
        &["package C2"],
        SOURCE,
        &["PC3", "PC6", "ASPM"],
        "All cores rest deeply, and something still needs the shared part: a device that reads memory, a snoop, or a firmware limit \
         at this step. It is the door to the deeper states and cannot be asked for.",
    ),
    PackageState.term(
        "PC3",
        &["package C3"],
        SOURCE,
        &["PC2", "PC6"],
        "All cores are in C3 or deeper: the shared cache keeps its contents, and clocks of the shared part stop.",
    ),
    PackageState.term(
        "PC6",
        &["package C6", "PC6R", "PC6N", "PC6 retention", "PC6 non-retention"],
        SOURCE,
        &["C6", "package state", "MSR 0xE2"],
        "All cores are in a C6 that permits it, and the shared part goes to its lowest voltage (retention keeps the cache, \
         non-retention empties it). On a server this is most of what idle can save, and the first access afterwards waits longer \
         than for a core's C6.",
    ),
    PackageState.term(
        "PC7",
        &["package C7", "PC7s"],
        SOURCE,
        &["C7", "PC6"],
        "Clients: all cores are in C7 or deeper, and the shared cache is emptied.",
    ),
    PackageState.term("PC8", &["package C8"], SOURCE, &["C8", "PC10"], "Clients: PC7 with the cache's power cut and most clocks off."),
    PackageState.term("PC9", &["package C9"], SOURCE, &["C9", "PC10"], "Clients: PC8 with the package's input voltage lowered."),
    PackageState.term(
        "PC10",
        &["package C10"],
        SOURCE,
        &["C10", "S0ix"],
        "Clients: the deepest package state, with the display off the way to S0ix.",
    ),
    PackageState.term(
        "MSR 0xE2",
        &["0xE2", "PKG_CST_CONFIG_CONTROL", "package limit", "package C-state limit"],
        SOURCE,
        &["PC6", "C1 demotion"],
        "The register with the deepest package state that firmware allows, the lock of that limit and the demotion bits. What its number \
         means depends on the model.",
    ),
    PackageState.term(
        "C1 demotion",
        &["demotion", "undemotion", "auto-demotion"],
        SOURCE,
        &["C6", "MSR 0xE2"],
        "The processor turns a request for a deep state into C1 when it expects a short sleep. The kernel's counters still show the deep \
         state; only the hardware's residency counters show the truth.",
    ),
];
