//! What there is to watch on a machine, found once: CPUs and where they sit, idle states, zones, sensors, and the files.
//!
//! Each file carries what reading it disturbs ([`Reach`]). From the kernel's sources (6.1 to 6.18):
//!
//! - **Memory**: `/proc/stat`, `cpuidle/stateK/*`, `thermal_throttle/*`, `pm_qos_resume_latency_us`, `online`. The
//!   kernel prints variables of its own; a remote CPU's are read from here and it sleeps on. `scaling_cur_freq` belongs
//!   here since 5.18 (samples of the last tick, so it is stale on an idle CPU); before that x86 interrupted every CPU
//!   that was not idle, as /proc/cpuinfo did, which is never read here.
//! - **Bus**: hwmon chips on PCI, I2C, SMBus or ACPI (k10temp, nct67xx, pmbus, acpi_power_meter). No CPU is asked, but
//!   a slow bus takes milliseconds.
//! - **Cpu**: an MSR read on one CPU of the package: powercap `energy_uj` on MSR parts (the first online CPU of the
//!   package), coretemp `tempN_input`, `intel_uncore_frequency/*/current_freq_khz`. It is an interrupt unless the reader
//!   already runs there, and it wakes that CPU if it sleeps.

pub use super::files::{Files, Reach, Slot};
use super::reading::{Reading, Why};
use crate::cpuset::CpuSet;
use crate::units::Cpu;
use serde::{Deserialize, Serialize};

/// Which files may be read: how much the observer may disturb.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Sources {
    /// Memory and buses: wakes no other CPU.
    #[default]
    Quiet,
    /// Also one CPU per package: watts, package temperature, uncore frequency.
    Package,
    /// Also every core's temperature.
    All,
}

impl Sources {
    /// As typed.
    pub fn word(self) -> &'static str {
        match self {
            Sources::Quiet => "quiet",
            Sources::Package => "package",
            Sources::All => "all",
        }
    }
}

/// The files that interrupt one CPU.
pub type RemoteReads<'a> = Vec<(Slot, &'a str)>;

/// One idle state of the machine, over all CPUs that have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateInfo {
    /// Index of the state, as Linux counts.
    pub index: u32,
    /// Name, or names joined with a slash where CPUs differ.
    pub name: String,
    /// Claimed exit latency, of the first CPU that has it.
    pub exit_latency_ns: Option<u64>,
    /// Target residency that driver or firmware claims.
    pub target_residency_ns: Option<u64>,
    /// The deepest package state while every core is at least here; none where that is not known of this processor.
    #[serde(default)]
    pub lets_package: Option<String>,
}

/// Files of one state of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateSlots {
    /// Index into [`Layout::states`].
    pub at: usize,
    /// Times entered.
    pub usage: Slot,
    /// Time in it.
    pub time: Slot,
    /// Woke too early for it.
    pub above: Slot,
    /// Could have gone deeper.
    pub below: Slot,
    /// Refused by the driver.
    pub rejected: Slot,
}

/// One CPU: where it sits, and its files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuInfo {
    /// Number.
    pub cpu: Cpu,
    /// Package; none where the machine does not say.
    pub package: Option<u32>,
    /// NUMA node.
    pub node: Option<u32>,
    /// The core, named by its first CPU.
    pub core: Option<Cpu>,
    /// Which of [`Layout::states`] it has.
    pub states: Vec<usize>,
    /// Files of the states, in the same order; empty in a recording.
    #[serde(skip)]
    pub state_slots: Vec<StateSlots>,
    /// `scaling_cur_freq`, or why it is not read.
    #[serde(skip)]
    pub freq: Option<Slot>,
    /// Why there is no frequency.
    pub no_freq: Option<Why>,
    /// The CPU's own latency limit.
    #[serde(skip)]
    pub limit: Option<Slot>,
    /// Times its core was throttled.
    #[serde(skip)]
    pub throttles: Option<Slot>,
}

/// An energy counter of powercap.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ZoneInfo {
    /// `intel-rapl:0:1`.
    pub id: String,
    /// package-0, dram, core, psys.
    pub name: String,
    /// The package it counts; none for the platform.
    pub package: Option<u32>,
    /// Where it wraps.
    pub max_energy_range_uj: Reading<u64>,
    /// Not to be added to the machine's sum: a part of another zone.
    pub is_part: bool,
    /// Why it is not read; none when it is.
    pub not_read: Option<Why>,
    #[serde(skip)]
    #[allow(missing_docs)]
    pub slot: Option<Slot>,
}

/// What a sensor tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SensorKind {
    /// Thousandths of a degree Celsius.
    #[default]
    Temperature,
    /// A fan, in revolutions per minute.
    Fan,
    /// A power meter, in microwatts.
    Power,
}

/// A channel of a hwmon chip.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SensorInfo {
    /// coretemp, nct6798, power_meter …
    pub chip: String,
    /// "Package id 0", "fan2".
    pub label: String,
    /// What it tells.
    pub kind: SensorKind,
    /// The package whose temperature it is.
    pub package: Option<u32>,
    /// One core's temperature, shown as the hottest only.
    pub is_core: bool,
    /// Why it is not read; none when it is.
    pub not_read: Option<Why>,
    #[serde(skip)]
    #[allow(missing_docs)]
    pub slot: Option<Slot>,
}

/// What belongs to a package.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PackageInfo {
    /// Number.
    pub package: u32,
    /// Its CPUs.
    pub cpus: CpuSet,
    /// Why there is no uncore frequency; none when it is read.
    pub no_uncore: Option<Why>,
    #[serde(skip)]
    #[allow(missing_docs)]
    pub uncore: Option<Slot>,
    #[serde(skip)]
    #[allow(missing_docs)]
    pub throttles: Option<Slot>,
    /// The package states that the hardware counts; empty where that is not known of this processor, or in a guest.
    #[serde(default)]
    pub states: Vec<PackageStateInfo>,
    /// Why their counters are not read; none when they are.
    #[serde(default)]
    pub no_states: Option<Why>,
    /// The CPU whose registers they are, and the register file once per register.
    #[serde(skip)]
    pub registers: Vec<Slot>,
}

/// A package state that the hardware counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageStateInfo {
    /// PC2, PC6 …
    pub name: String,
    /// The register that counts it, in ticks of the TSC.
    pub register: u32,
}

/// Everything that is watched on one machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// "this machine", "tree /x", "recorded host x.host".
    pub origin: String,
    /// The host's name.
    pub hostname: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Idle driver and governor.
    pub idle_driver: Option<String>,
    /// menu, teo, haltpoll …
    pub idle_governor: Option<String>,
    /// The mode.
    pub sources: Sources,
    /// CPUs that are plugged in.
    pub cpus: Vec<CpuInfo>,
    /// Idle states by index.
    pub states: Vec<StateInfo>,
    /// Packages.
    pub packages: Vec<PackageInfo>,
    /// Energy counters.
    pub zones: Vec<ZoneInfo>,
    /// Temperatures, fans, power meters.
    pub sensors: Vec<SensorInfo>,
    /// Why there is no energy counter at all.
    pub no_zones: Option<Why>,
    /// Why there is no hwmon chip at all.
    pub no_sensors: Option<Why>,
    /// The files, by slot; empty in a recording.
    #[serde(skip)]
    pub files: Files,
    #[serde(skip)]
    #[allow(missing_docs)]
    pub stat: Slot,
    #[serde(skip)]
    #[allow(missing_docs)]
    pub online: Slot,
    #[serde(skip)]
    #[allow(missing_docs)]
    pub global_limit: Slot,
}

impl Layout {
    /// Files that interrupt a CPU, by CPU: what an interval would cost if each were read from elsewhere.
    pub fn remote_reads(&self) -> Vec<(Cpu, RemoteReads<'_>)> {
        let mut reads: std::collections::BTreeMap<Cpu, RemoteReads<'_>> = std::collections::BTreeMap::new();
        for (slot, file) in self.files.iter().enumerate() {
            if let Reach::Cpu(cpu) = file.reach {
                reads.entry(cpu).or_default().push((slot, file.path));
            }
        }
        reads.into_iter().collect()
    }

    /// Adds a file.
    pub(super) fn add(&mut self, path: impl AsRef<str>, reach: Reach) -> Slot {
        self.files.add(path.as_ref(), reach)
    }
}
