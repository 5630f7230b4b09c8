//! The document of `watch --json`: what happened in a window, per machine, package and CPU. Made in [`rates`](super::rates).

use super::LatencyRow;
use super::layout::{SensorKind, Sources, StateInfo};
use super::reading::Reading;
use crate::cpuset::CpuSet;
use crate::samples::Window;
use crate::units::{Cpu, LatencyLimit};
use serde::Serialize;

/// What watching itself cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cost {
    /// The sources that were read: how far into the machine they reach.
    pub sources: Sources,
    /// Interrupts of other CPUs that this reading caused.
    pub n_remote_interrupts: u64,
    /// Times the observer itself was woken, per second: its timer, keys.
    pub own_wakeups_per_s: Reading<f64>,
    /// CPU time of the observer as a share of one CPU.
    pub own_cpu_ratio: Reading<f64>,
    /// How long the reading took: the numbers are of moments at most this far apart.
    pub reading_ns: u64,
}

/// One idle state of one CPU or of several.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateRate {
    /// Index of the state, as Linux counts on this CPU.
    pub index: u32,
    /// Name of the state.
    pub name: String,
    /// Share of the window.
    pub share_ratio: Reading<f64>,
    /// Times left: wake-ups from it.
    pub wakeups_per_s: Reading<f64>,
    /// Woke before its target residency.
    pub above_per_s: Reading<f64>,
    /// Slept long enough for a deeper one.
    pub below_per_s: Reading<f64>,
    /// Refused by the driver.
    pub rejected_per_s: Reading<f64>,
}

/// What one CPU did in the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuRate {
    /// Number of the CPU.
    pub cpu: Cpu,
    /// Number of its package (socket); none where it is not known.
    pub package: Option<u32>,
    /// Number of its memory node; none where it is not known.
    pub node: Option<u32>,
    /// Core, named by its first CPU.
    pub core: Option<Cpu>,
    /// Running at the end of the window?
    pub is_online: bool,
    /// Neither idle nor stolen.
    pub busy_ratio: Reading<f64>,
    /// Taken by the hypervisor.
    pub steal_ratio: Reading<f64>,
    /// What the kernel last knew; stale while the CPU sleeps.
    pub freq_khz: Reading<u64>,
    /// Idle states left per second.
    pub wakeups_per_s: Reading<f64>,
    /// Still asleep at the end, in a stay not booked yet.
    pub asleep_ratio: Reading<f64>,
    /// Booked in this window, of earlier ones.
    pub late_ns: u64,
    /// Throttle events of its core.
    pub throttles_per_s: Reading<f64>,
    /// Its own latency limit.
    pub limit: Reading<LatencyLimit>,
    /// The idle states it has.
    pub states: Vec<StateRate>,
}

/// What one package (socket) did in the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PackageRate {
    /// Number of the package.
    pub package: u32,
    /// The CPUs of the package.
    pub cpus: CpuSet,
    /// Watts of the package zone.
    pub power_uw: Reading<f64>,
    /// Watts of its memory.
    pub dram_uw: Reading<f64>,
    /// The package's sensor, else its hottest core.
    pub temperature_mc: Reading<i64>,
    /// Throttle events of the package.
    pub throttles_per_s: Reading<f64>,
    /// Uncore frequency, in kHz.
    pub uncore_khz: Reading<u64>,
    /// How long it was in each of its states, as the hardware counts, shallowest first; empty where the counters of this
    /// processor are not known, or in a guest.
    pub states: Vec<PackageStateRate>,
}

/// One state of a package.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PackageStateRate {
    /// PC2, PC6 …
    pub name: String,
    /// Share of the window, by the hardware's residency counter.
    pub share_ratio: Reading<f64>,
}

/// An energy counter as power.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ZoneRate {
    /// Folder of the zone: `intel-rapl:0:1`.
    pub id: String,
    /// Name of the zone: package-0, dram …
    pub name: String,
    /// The package it belongs to; none where it belongs to none.
    pub package: Option<u32>,
    /// Mean power over the window.
    pub power_uw: Reading<f64>,
}

/// What a temperature, fan or power sensor reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SensorRate {
    /// Name of the sensor chip.
    pub chip: String,
    /// Name of the chip's channel.
    pub label: String,
    /// Temperature (milli-degree), fan (rpm) or power (microwatts).
    pub kind: SensorKind,
    /// The package whose temperature it is.
    pub package: Option<u32>,
    /// The value, in the kind's unit.
    pub value: Reading<i64>,
}

/// Several CPUs as one row: a core, a package, a node, the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// CPUs in it that run.
    pub n_cpus: usize,
    /// Share of time that the CPUs were busy, 0 to 1; mean over the CPUs.
    pub busy_ratio: Reading<f64>,
    /// Share of time that the hypervisor took, 0 to 1; mean over the CPUs.
    pub steal_ratio: Reading<f64>,
    /// Of the CPUs that ran, weighted by how much.
    pub freq_khz: Reading<f64>,
    /// No CPU ran long enough for its frequency to be fresh.
    pub is_freq_stale: bool,
    /// Idle states left per second, all CPUs together.
    pub wakeups_per_s: Reading<f64>,
    /// Mean share still asleep.
    pub asleep_ratio: Reading<f64>,
    /// CPUs that no idle state was left on in the window.
    pub n_asleep_throughout: usize,
    /// Wake-ups before the target residency per second, all CPUs together.
    pub above_per_s: Reading<f64>,
    /// Sleeps long enough for a deeper state per second, all CPUs together.
    pub below_per_s: Reading<f64>,
    /// Throttle events per second, all CPUs together.
    pub throttles_per_s: Reading<f64>,
    /// The tightest of the CPUs' own limits.
    pub cpu_limit: Reading<LatencyLimit>,
    /// Mean share and summed counts per state.
    pub idle: Vec<StateRate>,
}

impl CpuRate {
    /// Nothing ended its sleep in this window.
    pub fn is_asleep_throughout(&self) -> bool {
        self.is_online && self.wakeups_per_s.get() == Some(0.0) && self.asleep_ratio.get().is_some_and(|r| r > 0.5)
    }
}

/// The whole machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Machine {
    /// How many CPUs run.
    pub n_online: usize,
    /// Over all of them.
    #[serde(flatten)]
    pub summary: Summary,
    /// Sum of the packages and their memory, or what a power meter says.
    pub power_uw: Reading<f64>,
    /// Where that comes from: "RAPL: package-0, dram".
    pub power_source: Option<String>,
    /// Temperature of the hottest package, in milli-degrees Celsius.
    pub temperature_mc: Reading<i64>,
    /// Interrupts per second, of all CPUs together.
    pub interrupts_per_s: Reading<f64>,
    /// Context switches per second.
    pub context_switches_per_s: Reading<f64>,
    /// The effective global latency limit.
    pub global_limit: Reading<LatencyLimit>,
    /// Who holds it, as far as could be seen.
    pub limit_holders: Vec<String>,
}

/// The CPUs of one node and package together, where they are not known one by one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlaceRate {
    /// Number of the memory node; none where it is not known.
    pub node: Option<u32>,
    /// Number of the package (socket); none where it is not known.
    pub package: Option<u32>,
    /// Over the CPUs there.
    pub summary: Summary,
}

/// Everything that happened in a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rates {
    /// Where the numbers come from: the live machine, or a recording.
    pub origin: String,
    /// Name of the host.
    pub hostname: Option<String>,
    /// CLOCK_MONOTONIC of both readings.
    pub window: Window,
    /// CLOCK_REALTIME of the second.
    pub wall_at_ns: u64,
    /// Time in suspend between the readings.
    pub suspended_ns: u64,
    /// What watching itself cost.
    pub cost: Cost,
    /// The machine as a whole.
    pub machine: Machine,
    /// The packages (sockets).
    pub packages: Vec<PackageRate>,
    /// The energy counters.
    pub zones: Vec<ZoneRate>,
    /// The sensors: temperatures, fans, power.
    pub sensors: Vec<SensorRate>,
    /// The CPUs one by one.
    pub cpus: Vec<CpuRate>,
    /// Sums over CPUs, where the CPUs are not known one by one: the history of an agent.
    pub places: Vec<PlaceRate>,
    /// The machine's idle states with the driver's claims.
    pub states: Vec<StateInfo>,
    /// Wake-ups of the window by idle state; only with `--trace`.
    pub wake_latency: Option<Vec<LatencyRow>>,
    /// What to know about this window.
    pub notes: Vec<String>,
}
