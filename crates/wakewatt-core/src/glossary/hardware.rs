//! How a machine is put together, as far as findings name it: registers, threads of a core, memory nodes.
//!
//! Sources: Intel SDM volume 4, BIOS guides of the makers, Documentation/admin-guide/mm/numaperf.rst.

use super::Family::Hardware;
use super::Term;

pub(super) const TERMS: &[Term] = &[
    Hardware.term(
        "MSR",
        &["model-specific register"],
        "Intel SDM volume 4; AMD PPR; msr(4)",
        &["MSR 0xE2", "MSR 0x1FC"],
        "A numbered register of a processor whose meaning depends on the model. Reading one needs root and the module msr, and wakes the \
         CPU it is read on.",
    ),
    Hardware.term(
        "SMT",
        &["SMT sibling", "Hyper-Threading", "HT"],
        "Documentation/ABI/testing/sysfs-devices-system-cpu",
        &["POLL", "C1E"],
        "Several CPUs (threads) that share one core and its idle state: the core sleeps no deeper than its shallowest thread, and a thread \
         that polls takes cycles from its sibling.",
    ),
    Hardware.term(
        "SNC",
        &["sub-NUMA clustering", "NPS", "NPS1", "NPS4", "nodes per socket", "Cluster-on-Die", "COD"],
        "Intel's and AMD's BIOS guides; Documentation/admin-guide/mm/numaperf.rst",
        &["memory-only node", "uncore"],
        "The BIOS divides a socket into several memory nodes: SNC (before: Cluster-on-Die) on Intel, NPS on AMD. Memory of the CPU's own \
         node answers a little sooner, the rest of the socket a little later.",
    ),
    Hardware.term(
        "memory-only node",
        &["MCDRAM", "HBM", "CXL"],
        "Documentation/admin-guide/mm/numaperf.rst",
        &["SNC"],
        "A memory node without CPUs: memory in the package with more bandwidth (MCDRAM of Xeon Phi, HBM of Xeon Max), or memory behind \
         CXL, which answers later. The kernel puts nothing there unless asked, or when other nodes are full.",
    ),
];
