//! Facts: what the host says about itself, one file per kernel subsystem.
//!
//! A domain is a type that knows its paths, its parsers and how it is shown. To add one: write the file, add one line
//! to `domains!` below. `Snapshot` holds all of them; a domain that was not asked for keeps its default, whose facts
//! are gaps of kind "not read". Reading is one pass over a [`Source`]; nothing here opens anything itself.

use crate::sheet::Sheet;
use crate::source::Source;
use serde::Serialize;

pub mod boot;
pub mod cache;
pub mod cgroup;
pub mod cpuinfo;
pub mod cpus;
pub mod dmi;
pub mod freq;
pub mod holders;
pub mod idle;
pub mod irq;
pub mod kernel;
pub mod kernel_vendor;
pub mod load;
pub mod msr;
pub mod network;
pub mod numa;
pub mod pcie;
pub mod pm_qos;
pub mod power;
pub mod sensors;
pub mod storage;
pub mod thermal;
pub mod topology;
pub mod uncore;
pub mod virt;

pub use cpus::Cpus;

/// What has a published schema. The schemas are made by the reference (`cargo xtask ref`) and checked by tests; a binary needs none,
/// so without the feature `schema` nothing is asked for.
#[cfg(feature = "schema")]
pub trait Described: schemars::JsonSchema {}
#[cfg(feature = "schema")]
impl<T: schemars::JsonSchema> Described for T {}
/// Likewise, in a build without schemas: everything is described.
#[cfg(not(feature = "schema"))]
pub trait Described {}
#[cfg(not(feature = "schema"))]
impl<T> Described for T {}

/// One area of facts.
pub trait Domain: Default + Serialize + Described {
    /// Heading.
    const TITLE: &'static str;
    /// One line for `inspect --help`.
    const HELP: &'static str;
    /// Reads it, given which CPUs exist.
    fn read(src: &dyn Source, cpus: &Cpus) -> Self;
    /// Its rows.
    fn show(&self, sheet: &mut Sheet);
}

/// A topic of `inspect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topic {
    /// The word the user types, and the key in JSON.
    pub id: &'static str,
    /// Heading.
    pub title: &'static str,
    /// One line.
    pub help: &'static str,
}

macro_rules! domains {
    ($($id:ident : $module:ident :: $type:ident,)*) => {
        /// Every topic, in reading order.
        pub const TOPICS: &[Topic] = &[$(Topic { id: stringify!($id), title: <$module::$type as Domain>::TITLE, help: <$module::$type as Domain>::HELP }),*];

        /// Facts of one host at one time.
        #[derive(Clone, Debug, Default, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct Snapshot {
            /// Where they were read: "this machine", a file.
            pub origin: String,
            /// The topics that were read.
            pub topics: Vec<String>,
            /// Which CPUs there are; always read.
            pub cpus: Cpus,
            $(#[doc = concat!("The facts of `wakewatt inspect ", stringify!($id), "`.")]
            pub $id: $module::$type,)*
        }

        impl Snapshot {
            /// Reads the topics that `wanted` accepts.
            pub fn read(src: &dyn Source, wanted: impl Fn(&str) -> bool) -> Snapshot {
                let mut snapshot = Snapshot { origin: src.origin(), cpus: Cpus::read(src), ..Snapshot::default() };
                $(if wanted(stringify!($id)) {
                    snapshot.topics.push(stringify!($id).into());
                    snapshot.$id = <$module::$type as Domain>::read(src, &snapshot.cpus);
                })*
                snapshot
            }

            /// The sheets of the topics that were read.
            pub fn sheets(&self) -> Vec<(Topic, Sheet)> {
                let mut all = Vec::new();
                $(if self.topics.iter().any(|t| t == stringify!($id)) {
                    let mut sheet = Sheet::default();
                    self.$id.show(&mut sheet);
                    if let Some(topic) = TOPICS.iter().find(|t| t.id == stringify!($id)) {
                        all.push((*topic, sheet));
                    }
                })*
                all
            }
        }
    };
}

// The list: topic word, file, type. One line here is all that a new domain adds outside its own file.
domains! {
    topology: topology::Topology,
    cache: cache::Caches,
    idle: idle::Idle,
    freq: freq::Freq,
    uncore: uncore::Uncore,
    power: power::Power,
    sensors: sensors::Sensors,
    thermal: thermal::Thermal,
    qos: pm_qos::PmQos,
    msr: msr::Msr,
    memory: numa::Numa,
    dimms: dmi::Dmi,
    boot: boot::Boot,
    kernel: kernel::Kernel,
    virt: virt::Virt,
    load: load::Load,
    cgroup: cgroup::Cgroups,
    irq: irq::Irqs,
    network: network::Network,
    storage: storage::Storage,
    holders: holders::Holders,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Tree;
    use proptest::prelude::*;

    /// Files whose readers are the least simple; the text in them is somebody else's.
    const PATHS: &[&str] = &[
        "/proc/stat",
        "/proc/interrupts",
        "/proc/cmdline",
        "/proc/loadavg",
        "/proc/uptime",
        "/proc/version",
        "/proc/pressure/cpu",
        "/proc/cpuinfo",
        "/proc/1/cgroup",
        "/proc/7/comm",
        "/sys/devices/system/node/online",
        "/sys/devices/system/node/node0/distance",
        "/sys/devices/system/node/node0/meminfo",
        "/sys/devices/system/node/node0/numastat",
        "/sys/firmware/dmi/tables/DMI",
        "/sys/firmware/dmi/tables/smbios_entry_point",
        "/sys/fs/cgroup/cgroup.controllers",
        "/sys/fs/cgroup/a/cpu.max",
        "/sys/fs/cgroup/a/cpu.stat",
        "/sys/class/net/eth0/speed",
        "/sys/class/net/eth0/queues/rx-0/rps_cpus",
        "ethtool:eth0/coalesce",
    ];

    proptest! {
        #[test]
        fn no_content_breaks_a_domain(
            texts in proptest::collection::vec("[a-z0-9CPU:.,=/ \\n\"\u{0}-é]{0,60}", PATHS.len()),
        ) {
            let mut tree = Tree::default();
            for (path, text) in PATHS.iter().zip(texts) {
                tree.files.insert((*path).into(), Ok(text.into_bytes()));
            }
            let snapshot = Snapshot::read(&tree, |_| true);
            prop_assert_eq!(snapshot.sheets().len(), TOPICS.len());
            prop_assert!(serde_json::to_string(&snapshot).is_ok());
        }
    }

    /// One file of each kind of place that the domains look into.
    const PLACES: &str = "topology/core_id topology/core_cpus_list topology/die_cpus_list topology/physical_package_id
        cache/index3/level cache/index3/size cache/index3/shared_cpu_list acpi_cppc/highest_perf acpi_cppc/nominal_freq
        power/energy_perf_bias power/pm_qos_resume_latency_us thermal_throttle/core_throttle_count cpu_capacity
        thermal_throttle/core_throttle_total_time_ms cpuidle/state1/name cpuidle/state1/latency cpuidle/state1/time
        /cpufreq/policy0/affected_cpus /cpufreq/policy0/scaling_cur_freq /cpufreq/policy0/stats/time_in_state
        /cpufreq/policy0/stats/total_trans /cpufreq/policy0/energy_performance_preference /cpufreq/schedutil/rate_limit_us
        /cpufreq/policy0/cpuinfo_transition_latency /cpufreq/policy0/scaling_available_frequencies /cpufreq/boost
        /intel_pstate/max_perf_pct /intel_uncore_frequency/uncore00/min_freq_khz /modalias /smt/control
        //proc/cpuinfo //sys/devices/cpu_core/cpus //sys/class/powercap/intel-rapl:0/energy_uj
        //sys/class/powercap/intel-rapl:0/constraint_0_time_window_us //sys/class/powercap/intel-rapl:0/name
        //sys/class/hwmon/hwmon0/temp1_input //sys/class/hwmon/hwmon0/fan1_input //sys/class/hwmon/hwmon0/name
        //sys/class/thermal/thermal_zone0/temp //sys/class/thermal/cooling_device0/cur_state";

    #[test]
    fn no_content_makes_a_domain_panic_or_invent() {
        let root = cpus::ROOT;
        let junk: [&[u8]; 10] = [
            b"",
            b"\n",
            b"\xff\xfe\x00",
            b"-1",
            b"18446744073709551615",
            b"-9223372036854775808",
            b"0-4294967295",
            b"<unknown>",
            b"processor : 7\nprocessor:\nflags",
            b"1 18446744073709551615\n: :",
        ];
        for content in junk {
            let mut tree = Tree::from_text(&format!("//- {root}/online\n0-1\n//- {root}/present\n0-2\n"));
            for place in PLACES.split_whitespace() {
                let path = match place.strip_prefix('/') {
                    Some(path) if path.starts_with('/') => path.to_string(),
                    Some(path) => format!("{root}/{path}"),
                    None => format!("{root}/cpu0/{place}"),
                };
                tree.files.insert(path, Ok(content.to_vec()));
            }
            for register in msr::registers::REGISTERS {
                tree.msrs.insert((register.address, 0), Ok(u64::MAX));
            }
            let snapshot = Snapshot::read(&tree, |_| true);
            assert_eq!(snapshot.sheets().len(), TOPICS.len());
            assert!(serde_json::to_string(&snapshot).is_ok());
            for (topic, sheet) in snapshot.sheets() {
                sheet.rows.iter().for_each(|row| assert!(row.id.starts_with(topic.id), "{} in {}", row.id, topic.id));
            }
            if content.len() < 2 {
                assert!(snapshot.freq.policies.cpus_of(0).is_none_or(crate::cpuset::CpuSet::is_empty));
                assert!(snapshot.power.zones[0].energy_uj.gap().is_some());
                assert!(snapshot.sensors.chips[0].temperatures[0].now_mc.gap().is_some());
            }
        }
    }
}
