//! How fast a core runs, and who decides: drivers, preferences, turbo, the clock of what cores share.
//!
//! Sources: Documentation/admin-guide/pm/{intel_pstate,amd-pstate,cpufreq}.rst, Intel SDM volume 3, ACPI 6.5 (CPPC).

use super::Family::Frequency;
use super::Only::Intel;
use super::Term;

const PSTATE: &str = "Documentation/admin-guide/pm/intel_pstate.rst";

pub(super) const TERMS: &[Term] = &[
    Frequency.term(
        "HWP",
        &["Speed Shift", "hardware P-states"],
        PSTATE,
        &["EPP", "CPPC"],
        "Intel: the processor picks its own frequency within limits and by a preference; the kernel only says what it would like.",
    )
    .only(Intel),
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
    )
    .only(Intel),
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
        "frequency limits",
        &["max_perf_pct", "min_perf_pct", "scaling_max_freq", "scaling_min_freq", "bios_limit"],
        "Documentation/admin-guide/pm/cpufreq.rst; admin-guide/pm/intel_pstate.rst",
        &["turbo", "frequency governor"],
        "Several settings bound the clock, and the tightest counts: scaling_max_freq and scaling_min_freq of each policy, max_perf_pct and \
         min_perf_pct of intel_pstate for all of them (percent of the highest turbo frequency), bios_limit of the firmware, and no turbo.",
    ),
    Frequency.term(
        "intel_pstate",
        &["intel_cpufreq"],
        PSTATE,
        &["HWP", "frequency governor"],
        "Intel's frequency driver. Active: driver and hardware choose. Passive (then called intel_cpufreq): the kernel's governors do.",
    )
    .only(Intel),
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
    )
    .only(Intel),
    Frequency.term(
        "ELC",
        &["efficiency latency control", "latency-optimised mode"],
        "Documentation/admin-guide/pm/intel_uncore_frequency_scaling.rst, Efficiency Latency Control",
        &["uncore"],
        "Xeon 6: how the uncore clock follows the load of the cores. Below a low threshold of utilisation the clock may fall to a floor of \
         its own; above a high one, where that is switched on, it rises step by step. A floor at the lowest clock saves power and makes \
         the first accesses after a rest slower; firmware's latency-optimised mode raises it.",
    )
    .only(Intel),
    Frequency.term(
        "SST",
        &["SST-PP", "SST-BF", "SST-TF", "SST-CP", "Speed Select", "Intel Speed Select Technology"],
        "Documentation/admin-guide/pm/intel-speed-select.rst",
        &["turbo", "TDP"],
        "Unequal cores by choice: with SST-BF some cores have a higher base frequency and the others a lower one, with SST-TF \
         prioritised cores reach a higher turbo, SST-CP says which cores come first, SST-PP switches whole profiles.",
    )
    .only(Intel),
];
