//! States of one core: POLL to C10, with the suffixes that drivers add, and Arm's WFI.
//!
//! A name is the driver's and holds for one generation: acpi_idle's C2 on an EPYC server is the hardware's CC6. So the
//! texts say what the letter usually stands for, and the table of the machine says the rest. Sources: Intel SDM volume 3
//! (MWAIT, C-states) and datasheets, AMD's PPRs, ACPI 6.5 section 8, Documentation/admin-guide/pm/cpuidle.rst.

use super::Family::CoreState;
use super::Only::{Arm, Intel};
use super::Term;

const SDM: &str = "Intel SDM volume 3, processor power management; the processor's datasheet";
const CPUIDLE: &str = "Documentation/admin-guide/pm/cpuidle.rst";
const ACPI: &str = "ACPI 6.5 section 8.1, processor power states";

pub(super) const TERMS: &[Term] = &[
    CoreState.term(
        "C0",
        &["CC0"],
        ACPI,
        &["POLL", "C1"],
        "The core executes instructions. An idle CPU that polls is in C0 too.",
    ),
    CoreState.term(
        "POLL",
        &["polling"],
        CPUIDLE,
        &["C0", "PM QoS"],
        "The idle CPU spins in a short loop and looks for work. It answers at once, draws nearly what a busy core draws, takes \
         cycles from its SMT sibling and turbo headroom from the others. x86 only; Arm's shallowest state sleeps.",
    ),
    CoreState.term(
        "C1",
        &["CC1", "HLT", "HALT", "C1_ACPI"],
        SDM,
        &["C1E", "POLL"],
        "The core stops its clock and keeps everything: caches, registers, voltage. Leaving it takes about a microsecond.",
    ),
    CoreState.term(
        "C1E",
        &[],
        SDM,
        &["C1", "MSR 0x1FC"],
        "C1, and the core also goes to its lowest frequency and voltage once all its threads rest. The wake-up itself is short; \
         the clock then has to climb. Firmware may turn every C1 into C1E (C1E promotion).",
    ),
    CoreState.term(
        "C2",
        &["C2_ACPI"],
        ACPI,
        &["CC6", "C6"],
        "ACPI's second state: a number in the firmware's list (_CST), not a depth. On AMD's servers it is usually the core's CC6, on \
         Intel clients with an ACPI table it is what the MWAIT hint in its description says.",
    ),
    CoreState.term(
        "C3",
        &["CC3", "C3_ACPI"],
        SDM,
        &["C6", "PC3"],
        "Intel, up to Broadwell servers and Skylake clients: the core empties its first two caches into the shared one and stops all \
         its clocks. As C3_ACPI it is only the third entry of the firmware's list and may be as deep as C10.",
    ),
    CoreState.term(
        "C6",
        &["C6_ACPI", "core C6"],
        SDM,
        &["C6P", "CC6", "PC6", "target residency"],
        "The core saves its registers, empties its own caches and its power is cut. Leaving it takes tens to hundreds of microseconds, \
         and the caches are cold. It pays only for a sleep of at least the target residency.",
    ),
    CoreState.term(
        "CC6",
        &[],
        "AMD PPR, core C-states; turbostat(8) for Intel's core residency",
        &["C2", "C6", "PC6"],
        "Core C6 as the hardware counts it, apart from what the kernel asked for: the power of the core is cut. On AMD it is reached \
         through the ACPI state C2, and no counter of it is public.",
    ),
    CoreState.term(
        "C6P",
        &[],
        "drivers/idle/intel_idle.c, description of the state; Granite Rapids",
        &["C6", "PC6"],
        "Granite Rapids: C6 that also lets the package go to PC6. Its plain C6 cuts the core's power and holds the package awake, \
         which wakes faster.",
    )
    .only(Intel),
    CoreState.term(
        "C6S",
        &[],
        "drivers/idle/intel_idle.c, description of the state; Sierra Forest, Grand Ridge",
        &["C6SP", "C6"],
        "Efficient-core servers (Sierra Forest, Clearwater Forest): C6 of the cores of a module together with the cache they share.",
    )
    .only(Intel),
    CoreState.term(
        "C6SP",
        &[],
        "drivers/idle/intel_idle.c, description of the state; Sierra Forest",
        &["C6S", "PC6"],
        "C6S that also lets the package go to PC6.",
    )
    .only(Intel),
    CoreState.term(
        "C7",
        &["C7s", "CC7"],
        SDM,
        &["C6", "PC7"],
        "Intel clients: C6, and the core gives up its part of the shared cache when it is the last one. C7s empties that cache at once.",
    )
    .only(Intel),
    CoreState.term(
        "C8",
        &[],
        SDM,
        &["C7", "PC8"],
        "Intel clients: C7 that also lets the package cut the power of the shared cache (PC8).",
    )
    .only(Intel),
    CoreState.term(
        "C9",
        &[],
        SDM,
        &["C8", "PC9"],
        "Intel clients: C8 that also lets the package lower its input voltage (PC9).",
    )
    .only(Intel),
    CoreState.term(
        "C10",
        &[],
        SDM,
        &["C9", "PC10"],
        "Intel clients: the deepest request; lets the package go to PC10, the way to S0ix on notebooks.",
    )
    .only(Intel),
    CoreState.term(
        "WFI",
        &["LPI-0"],
        "Arm ARM, Wait For Interrupt; ACPI 6.5 section 8.4.3 (LPI)",
        &["PSCI", "C1"],
        "Arm's shallowest state: the core waits with its clock stopped and keeps everything. There is no polling below it.",
    )
    .only(Arm),
    CoreState.term(
        "PSCI",
        &["LPI", "cpu-sleep", "cluster-sleep"],
        "Arm DEN 0022, Power State Coordination Interface",
        &["WFI"],
        "Arm: the kernel asks firmware for a deeper state by a number. Which cores, clusters or system parts lose power is the \
         firmware's business; names, latencies and residencies come from the device tree or from ACPI's LPI tables.",
    )
    .only(Arm),
    CoreState.term(
        "haltpoll",
        &["haltpoll idle", "guest halt polling"],
        "Documentation/virt/guest-halt-polling.rst",
        &["POLL", "C1"],
        "In a guest: poll for a while before HLT hands the CPU back to the host. What the hardware then does is the host's choice, and \
         the guest cannot see it.",
    ),
];
