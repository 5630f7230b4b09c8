//! How fast a core runs, and who decides: drivers, preferences, turbo, the clock of what cores share.
//!
//! Sources: Documentation/admin-guide/pm/{intel_pstate,amd-pstate,cpufreq}.rst, Intel SDM volume 3, ACPI 6.5 (CPPC).

use super::Family::Frequency;
use super::Term;

const PSTATE: &str = "Documentation/admin-guide/pm/intel_pstate.rst";

pub(super) const TERMS: &[Term] = &[
    Frequency.term(
        "HWP",
        &["Speed Shift", "hardware P-states"],
        PSTATE,
        &["EPP", "CPPC"],
        "Intel: the processor picks its own frequency within limits and by a preference; the kernel only says what it would like.",
    ),
    Frequency.term(
        "CPPC",
        &["collaborative processor performance control"],
        "ACPI 6.5 section 8.4.6; Documentation/admin-guide/pm/amd-pstate.rst",
        &["HWP", "amd-pstate"],
        "Performance on an abstract scale instead of frequencies, shared by firmware and kernel. AMD's and Arm's way of asking.",
    ),
    Frequency.term(
        "EPP",
        &["energy performance preference", "energy_performance_preference"],
        PSTATE,
        &["EPB", "HWP"],
        "A hint from 0 (performance) to 255 (power) to a processor that picks its own frequency. Under the governor performance both \
         drivers hold it at 0.",
    ),
    Frequency.term(
        "EPB",
        &["energy performance bias", "energy_perf_bias"],
        "Documentation/admin-guide/pm/intel_epb.rst",
        &["EPP"],
        "An older hint from 0 (performance) to 15 (power). The kernel changes 0 to 6 at boot.",
    ),
    Frequency.term(
        "turbo",
        &["boost", "Turbo Boost", "Precision Boost"],
        PSTATE,
        &["C1E", "TDP"],
        "Frequencies above the guaranteed one, as long as heat, current and the number of busy cores allow. Cores that sleep deeply \
         leave more of it to the others.",
    ),
    Frequency.term(
        "frequency governor",
        &["cpufreq governor", "schedutil", "ondemand", "conservative", "powersave"],
        "Documentation/admin-guide/pm/cpufreq.rst",
        &["HWP", "Px"],
        "The part of the kernel that chooses the frequency. Under intel_pstate and amd-pstate in active mode, performance and powersave are \
         algorithms of the driver, and powersave is not the lowest frequency.",
    ),
    Frequency.term(
        "intel_pstate",
        &["intel_cpufreq"],
        PSTATE,
        &["HWP", "frequency governor"],
        "Intel's frequency driver. Active: driver and hardware choose. Passive (then called intel_cpufreq): the kernel's governors do.",
    ),
    Frequency.term(
        "amd-pstate",
        &["amd_pstate", "amd-pstate-epp"],
        "Documentation/admin-guide/pm/amd-pstate.rst",
        &["CPPC", "frequency governor"],
        "AMD's frequency driver over CPPC, in modes active (EPP), guided and passive. Up to EPYC family 19h servers run acpi-cpufreq \
         unless it is asked for.",
    ),
    Frequency.term(
        "uncore",
        &["mesh", "uncore frequency"],
        "Documentation/admin-guide/pm/intel_uncore_frequency_scaling.rst",
        &["package state", "PC6"],
        "All that the cores of a package share: last-level cache, mesh, memory controllers, links. Its clock falls when the machine rests, \
         and the first accesses after that are slower.",
    ),
];
