//! Knobs: what wakewatt may write, one file each. To add one: write the file, add its line to [`KNOBS`].

use crate::knob::Knob;

pub mod cpu_online;
pub mod cpu_smt;
pub mod freq_boost;
pub mod freq_driver;
pub mod freq_epb;
pub mod freq_epp;
pub mod freq_governor;
pub mod freq_hwp_dynamic_boost;
pub mod freq_limits;
pub mod freq_perf;
pub mod freq_tunable;
pub mod idle_c1_demotion;
pub mod idle_governor;
pub mod idle_haltpoll;
pub mod idle_state;
pub mod irq_affinity;
pub mod memory_numa_balancing;
pub mod msr_bits;
pub mod net_coalescing;
pub mod nvme_apst;
mod one_file;
pub mod pcie_aspm;
pub mod pcie_link;
mod per_policy;
pub mod place_consolidate;
pub mod power_limit;
pub mod qos_global;
pub mod qos_limit;
mod uncore_domains;
pub mod uncore_elc;
pub mod uncore_limits;

/// Every knob, in the order of docs/ref/knobs.md: idle, frequency, uncore, CPUs, power, devices, memory.
pub const KNOBS: &[&dyn Knob] = &[
    &qos_limit::GlobalLatency,
    &qos_limit::CpuLatency,
    &idle_state::IdleStateSwitch,
    &idle_governor::IdleGovernor,
    &idle_c1_demotion::IdleC1Demotion,
    &idle_haltpoll::IdleHaltpoll,
    &freq_driver::FreqDriver,
    &freq_governor::FreqGovernor,
    &freq_tunable::FreqTunable,
    &freq_boost::FreqBoost,
    &freq_hwp_dynamic_boost::FreqHwpDynamicBoost,
    &freq_limits::MAX,
    &freq_limits::MIN,
    &freq_perf::MAX,
    &freq_perf::MIN,
    &freq_epp::FreqEpp,
    &freq_epb::FreqEpb,
    &uncore_limits::MAX,
    &uncore_limits::MIN,
    &uncore_elc::UncoreElc,
    &cpu_smt::CpuSmt,
    &cpu_online::CpuOnline,
    &power_limit::LIMIT,
    &power_limit::WINDOW,
    &msr_bits::PACKAGE_LIMIT,
    &msr_bits::C1_DEMOTION,
    &msr_bits::C1_UNDEMOTION,
    &msr_bits::C1E_PROMOTION,
    &pcie_aspm::PcieAspm,
    &pcie_link::PcieLink,
    &nvme_apst::NvmeApst,
    &net_coalescing::NetCoalescing,
    &irq_affinity::IrqAffinity,
    &memory_numa_balancing::NumaBalancing,
    &place_consolidate::PlaceConsolidate,
];

/// The knob a setting's full name belongs to: its own id, or the longest id that the name continues behind a dot.
pub fn find(name: &str) -> Option<&'static dyn Knob> {
    let is_prefix = |id: &str| name == id || name.strip_prefix(id).is_some_and(|rest| rest.starts_with('.'));
    KNOBS.iter().copied().filter(|k| is_prefix(k.about().id)).max_by_key(|k| k.about().id.len())
}
