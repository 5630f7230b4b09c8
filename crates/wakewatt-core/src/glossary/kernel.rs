//! How the kernel chooses an idle state, and who limits the choice.
//!
//! Sources: Documentation/admin-guide/pm/cpuidle.rst, Documentation/power/pm_qos_interface.rst, docs/governors.md.

use super::Family::Kernel;
use super::Term;

const CPUIDLE: &str = "Documentation/admin-guide/pm/cpuidle.rst";
const QOS: &str = "Documentation/power/pm_qos_interface.rst, Documentation/ABI/testing/sysfs-devices-power";

pub(super) const TERMS: &[Term] = &[
    Kernel.term(
        "exit latency",
        &["latency", "wake-up latency"],
        CPUIDLE,
        &["target residency", "PM QoS"],
        "How long leaving an idle state takes, as driver or firmware claim: a worst case, not a measurement (`wakewatt measure idle` \
         measures it). A latency limit allows the states whose exit latency is at most the limit.",
    ),
    Kernel.term(
        "target residency",
        &["residency", "break-even"],
        CPUIDLE,
        &["exit latency", "idle governor"],
        "How long a CPU must stay in an idle state for it to save energy against the next shallower one, as claimed. The governor \
         chooses the deepest state whose target residency is below the sleep it expects.",
    ),
    Kernel.term(
        "idle governor",
        &["cpuidle governor", "governor"],
        CPUIDLE,
        &["menu", "teo", "tick"],
        "The part of the kernel that guesses how long a CPU will rest and chooses the idle state. The driver carries it out.",
    ),
    Kernel.term(
        "menu",
        &[],
        CPUIDLE,
        &["teo", "idle governor"],
        "The usual idle governor where the tick is stopped: the next timer, corrected by how its last guesses came out, and by recent sleeps \
         that look alike.",
    ),
    Kernel.term(
        "teo",
        &["timer events oriented"],
        CPUIDLE,
        &["menu", "idle governor"],
        "An idle governor that trusts the next timer unless most recent sleeps ended before it.",
    ),
    Kernel.term(
        "ladder",
        &[],
        CPUIDLE,
        &["menu", "tick"],
        "An idle governor that climbs one state at a time. Made for kernels whose tick never stops (nohz=off).",
    ),
    Kernel.term(
        "intel_idle",
        &["acpi_idle", "idle driver"],
        "Documentation/admin-guide/pm/intel_idle.rst",
        &["Cx", "exit latency", "_CST"],
        "The idle driver knows the states and enters them. intel_idle has tables for Intel's models; acpi_idle takes the firmware's list and \
         serves AMD and everything else with ACPI. Where intel_idle is switched off, acpi_idle takes over.",
    ),
    Kernel.term(
        "_CST",
        &["CST"],
        "ACPI 6.5 section 8.4.1.1",
        &["intel_idle", "Cx"],
        "The firmware's list of idle states, with latencies of its own. A state that the BIOS switches off is missing from it; \
         intel_idle then registers its own entry as disabled, which root may enable.",
    ),
    Kernel.term(
        "tick",
        &["nohz", "nohz_full", "scheduler tick"],
        "Documentation/timers/no_hz.rst",
        &["idle governor", "timer migration"],
        "The kernel's periodic interrupt, 100 to 1000 times a second on a busy CPU. An idle CPU stops it when it expects to rest longer; \
         with nohz=off it never does, and no sleep lasts longer than a tick.",
    ),
    Kernel.term(
        "timer migration",
        &[],
        "docs/governors.md",
        &["tick"],
        "Timers that are not bound to a CPU may be served by another one that is awake, so that an idle CPU sleeps on (kernel 6.9 and later).",
    ),
    Kernel.term(
        "PM QoS",
        &["latency limit", "cpu_dma_latency", "/dev/cpu_dma_latency", "resume latency", "pm_qos_resume_latency_us"],
        QOS,
        &["exit latency", "POLL", "pm_qos_resume_latency boot parameter"],
        "A limit on exit latency. Globally it holds while some process keeps /dev/cpu_dma_latency open (0 means poll); per CPU it is \
         a file in sysfs that stays (0 means no limit, n/a means poll). The smallest wins, together with /dev/cpu_wakeup_latency where \
         the kernel has that.",
    ),
    Kernel.term(
        "pm_qos_resume_latency boot parameter",
        &["pm_qos_resume_latency_us=", "resume latency boot parameter"],
        "linux-pm, \"PM: QoS: Introduce boot parameter pm_qos_resume_latency_us\", versions 2 to 5 (2026)",
        &["PM QoS"],
        "A per-CPU resume limit from the kernel command line, proposed in 2026. In its first versions 0 meant poll, the opposite of \
         the 0 in sysfs; in the fifth it means no limit, as there, and n/a polls. Read the files in sysfs after the boot.",
    ),
    Kernel.term(
        "cpu_wakeup_latency",
        &["/dev/cpu_wakeup_latency"],
        QOS,
        &["PM QoS", "S0ix"],
        "A second device of limits beside cpu_dma_latency, in kernels from 6.19 that are built with it. It holds while a process keeps \
         it open, enters the same minimum, and unlike the other also limits suspend-to-idle.",
    ),
    Kernel.term(
        "sched_ext",
        &["scx"],
        "Documentation/scheduler/sched-ext.rst",
        &["PM QoS"],
        "Schedulers loaded as BPF programs. Some set per-CPU resume limits while they run, and not every one restores what was there.",
    ),
];
