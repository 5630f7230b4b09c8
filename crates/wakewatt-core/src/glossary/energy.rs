//! Watts, joules and their limits, and the links that draw them.
//!
//! Sources: Intel SDM volume 3 (RAPL), Documentation/power/powercap/powercap.rst, PCI Express base specification.

use super::Family::Energy;
use super::Term;

const RAPL: &str = "Intel SDM volume 3, RAPL; Documentation/power/powercap/powercap.rst";

pub(super) const TERMS: &[Term] = &[
    Energy.term(
        "RAPL",
        &["powercap"],
        RAPL,
        &["TDP", "PL1"],
        "Counters of energy and limits of power in the processor: package, sometimes cores, memory, whole platform. Without fans, disks \
         and the power supply's loss.",
    ),
    Energy.term(
        "TDP",
        &["design power"],
        RAPL,
        &["PL1", "turbo"],
        "The power a package is made to draw for ever at its base frequency, for which its cooling is built.",
    ),
    Energy.term(
        "PL1",
        &["long-term limit"],
        RAPL,
        &["PL2", "TDP"],
        "The power a package may draw averaged over a window of seconds; usually TDP.",
    ),
    Energy.term(
        "PL2",
        &["short-term limit"],
        RAPL,
        &["PL1"],
        "The power a package may draw for milliseconds to seconds above PL1.",
    ),
    Energy.term(
        "PROCHOT",
        &[],
        "Intel SDM volume 3, thermal monitoring",
        &["TDP"],
        "A line that throttles the processor at once: raised by the processor when hot, or from outside by power supply or board.",
    ),
    Energy.term(
        "MSR 0x1FC",
        &["0x1FC", "POWER_CTL"],
        "Intel SDM volume 4, MSR_POWER_CTL",
        &["C1E", "PROCHOT"],
        "A register of switches of the package: C1E promotion, outside PROCHOT, prewake, energy-efficiency optimisation.",
    ),
    Energy.term(
        "ASPM",
        &["L1", "L0s", "L1.2"],
        "PCI Express base specification, ASPM; Documentation/ABI/testing/sysfs-bus-pci",
        &["Dx", "PC2"],
        "Active-state power management of a PCI Express link: L0s and L1 with its sub-states. A sleeping link wakes in microseconds to tens \
         of them; on some platforms a link that never sleeps keeps the package from its deepest state.",
    ),
];
