//! Finding what there is to watch: one walk over the machine, which makes the [`Layout`].
//!
//! Only names, tables and places are read here, and nothing that interrupts a CPU: above all not /proc/cpuinfo. Which
//! hwmon chips are read: fans and power meters of any chip but disks, network cards and GPUs (their sensors are answered
//! by a device that interrupts a CPU, or wake a sleeping card), temperatures of processors only.

use super::layout::{
    CpuInfo, Layout, PackageInfo, Reach, SensorInfo, SensorKind, Sources, StateInfo, StateSlots, ZoneInfo,
};
use super::package_residency;
use super::reading::{Reading, Why};
use crate::cpuset::CpuSet;
use crate::fact::{fact, parse};
use crate::facts::{cpus::ROOT, pm_qos};
use crate::folder::{Folder, numbered};
use crate::source::{Read, Source};
use crate::units::Cpu;
use std::collections::BTreeMap;

const ZONES: &str = "/sys/class/powercap";
const HWMON: &str = "/sys/class/hwmon";
const NODES: &str = "/sys/devices/system/node";
const UNCORE: &str = "/sys/devices/system/cpu/intel_uncore_frequency";

/// Chips whose readings come from an MSR of the CPU they describe.
const MSR_CHIPS: &[&str] = &["coretemp", "via_cputemp", "amd_energy"];
/// Chips that tell a processor's temperature over a bus.
const CPU_TEMPERATURES: &[&str] = &["k10temp", "zenpower", "cpu_thermal", "smpro_hwmon", "scmi_sensors", "soc_thermal"];
/// Chips that are not asked: a device answers, with an interrupt, or is woken for it.
const NOT_ASKED: &[&str] =
    &["nvme", "drivetemp", "amdgpu", "radeon", "nouveau", "i915", "xe", "mlx", "bnxt", "ice", "i40e", "iwl", "mt7"];

/// Looks at a machine.
pub fn discover(src: &dyn Source, sources: Sources) -> Layout {
    let word = |path: &str| fact(src, path, parse::word).get().cloned();
    let mut layout = Layout {
        origin: src.origin(),
        hostname: word("/proc/sys/kernel/hostname"),
        kernel: word("/proc/sys/kernel/osrelease"),
        idle_driver: word(&format!("{ROOT}/cpuidle/current_driver")),
        idle_governor: word(&format!("{ROOT}/cpuidle/current_governor"))
            .or_else(|| word(&format!("{ROOT}/cpuidle/current_governor_ro"))),
        sources,
        ..Layout::default()
    };
    layout.stat = layout.add("/proc/stat", Reach::Memory);
    layout.online = layout.add(format!("{ROOT}/online"), Reach::Memory);
    layout.global_limit = layout.add(pm_qos::GLOBAL, Reach::Memory);
    add_cpus(src, &mut layout);
    add_packages(src, &mut layout);
    add_zones(src, &mut layout);
    add_sensors(src, &mut layout);
    layout.files.settle();
    layout
}

/// From 5.18 on `scaling_cur_freq` is answered from memory.
fn is_freq_in_memory(kernel: Option<&str>) -> bool {
    let version = kernel.and_then(|release| {
        let mut parts = release.split(['.', '-']).map(|p| p.parse::<u32>().ok());
        Some((parts.next()??, parts.next()??))
    });
    version.is_some_and(|version| version >= (5, 18))
}

/// The running and sleeping CPUs: present ones, or those of /proc/stat where /sys is masked.
fn present(src: &dyn Source) -> CpuSet {
    let set = |file: &str| fact(src, &format!("{ROOT}/{file}"), parse::cpus).get().cloned().unwrap_or_default();
    let found = set("present").union(&set("online"));
    if !found.is_empty() {
        return found;
    }
    let stat = fact(src, "/proc/stat", crate::facts::load::parse_stat);
    stat.get().into_iter().flat_map(|s| &s.cpus).filter_map(|c| c.cpu).filter(|c| *c < 1 << 16).collect()
}

fn nodes(src: &dyn Source) -> BTreeMap<Cpu, u32> {
    let mut of = BTreeMap::new();
    for node in Folder::list(src, NODES).numbered("node") {
        let cpus = fact(src, &format!("{NODES}/node{node}/cpulist"), parse::cpus);
        of.extend(cpus.get().into_iter().flat_map(CpuSet::iter).map(|cpu| (cpu, node)));
    }
    of
}

fn add_cpus(src: &dyn Source, layout: &mut Layout) {
    let node_of = nodes(src);
    let generation = package_residency::generation(src);
    let freq_reach = is_freq_in_memory(layout.kernel.as_deref());
    let mut states: BTreeMap<u32, StateInfo> = BTreeMap::new();
    let mut indexes: Vec<Vec<u32>> = Vec::new();
    for cpu in present(src).iter() {
        let at = format!("{ROOT}/cpu{cpu}");
        let siblings = fact(src, &format!("{at}/topology/thread_siblings_list"), parse::cpus);
        let mut info = CpuInfo {
            cpu,
            package: fact(src, &format!("{at}/topology/physical_package_id"), parse::number)
                .get()
                .and_then(|n| u32::try_from(*n).ok()),
            node: node_of.get(&cpu).copied(),
            core: siblings.get().and_then(CpuSet::first),
            ..CpuInfo::default()
        };
        let folder = Folder::list(src, &at);
        (info.freq, info.no_freq) = match (freq_reach, layout.sources) {
            _ if !folder.has("cpufreq") => (None, Some(missing(src, &folder, "cpufreq"))),
            (true, _) => (Some(layout.add(format!("{at}/cpufreq/scaling_cur_freq"), Reach::Memory)), None),
            (_, Sources::All) => (Some(layout.add(format!("{at}/cpufreq/scaling_cur_freq"), Reach::Cpu(cpu))), None),
            _ => (None, Some(Why::NotAsked)),
        };
        info.limit = Some(layout.add(pm_qos::cpu_limit_path(cpu), Reach::Memory));
        if folder.has("thermal_throttle") {
            info.throttles = Some(layout.add(format!("{at}/thermal_throttle/core_throttle_count"), Reach::Memory));
        }
        let mut own = Folder::list(src, format!("{at}/cpuidle")).numbered("state");
        own.truncate(64);
        for &index in &own {
            let file = |what: &str| format!("{at}/cpuidle/state{index}/{what}");
            let name = fact(src, &file("name"), parse::word).get().cloned().unwrap_or_else(|| format!("state{index}"));
            let state = states.entry(index).or_insert_with(|| StateInfo {
                index,
                name: name.clone(),
                exit_latency_ns: fact(src, &file("latency"), parse::us_to_ns).get().copied(),
                target_residency_ns: fact(src, &file("residency"), parse::us_to_ns).get().copied(),
                lets_package: generation.and_then(|generation| {
                    let description = fact(src, &file("desc"), parse::word);
                    package_residency::lets(generation, &name, description.get()?)
                }),
            });
            if !state.name.split('/').any(|n| n == name) {
                state.name = format!("{}/{name}", state.name);
            }
            let mut slot = |what: &str| layout.add(file(what), Reach::Memory);
            let slots = StateSlots {
                at: 0,
                usage: slot("usage"),
                time: slot("time"),
                above: slot("above"),
                below: slot("below"),
                rejected: slot("rejected"),
            };
            info.state_slots.push(slots);
        }
        indexes.push(own);
        layout.cpus.push(info);
    }
    layout.states = states.into_values().collect();
    for (cpu, own) in layout.cpus.iter_mut().zip(indexes) {
        cpu.states = own.iter().filter_map(|i| layout.states.iter().position(|s| s.index == *i)).collect();
        for (slots, at) in cpu.state_slots.iter_mut().zip(&cpu.states) {
            slots.at = *at;
        }
    }
}

/// Why a folder does not have a name.
fn missing(src: &dyn Source, folder: &Folder, name: &str) -> Why {
    let error = folder.fact(src, name, parse::word);
    match error.gap().map(|gap| gap.kind) {
        Some(crate::fact::GapKind::Denied) => Why::Denied,
        Some(crate::fact::GapKind::NotRecorded) => Why::NotRecorded,
        _ => Why::Absent,
    }
}

fn why_not<T>(listing: &Read<T>) -> Option<Why> {
    listing.as_ref().err().map(Why::from)
}

fn add_packages(src: &dyn Source, layout: &mut Layout) {
    let mut of: BTreeMap<u32, CpuSet> = BTreeMap::new();
    for cpu in &layout.cpus {
        if let Some(package) = cpu.package {
            of.entry(package).or_default().insert(cpu.cpu);
        }
    }
    let uncore = src.list(UNCORE);
    let counted = package_residency::generation(src).map(package_residency::counted).unwrap_or_default();
    for (package, cpus) in of {
        let lead = cpus.first().unwrap_or(0);
        let throttle = format!("{ROOT}/cpu{lead}/thermal_throttle");
        let has_throttle = src.list(&throttle).is_ok_and(|names| names.iter().any(|n| n == "package_throttle_count"));
        let throttles = has_throttle.then(|| layout.add(format!("{throttle}/package_throttle_count"), Reach::Memory));
        let die = format!("package_{package:02}_die_00");
        let (uncore, no_uncore) = match &uncore {
            Err(error) => (None, Some(Why::from(error))),
            Ok(names) if !names.contains(&die) => (None, Some(Why::Absent)),
            Ok(_) if layout.sources < Sources::Package => (None, Some(Why::NotAsked)),
            Ok(_) => (Some(layout.add(format!("{UNCORE}/{die}/current_freq_khz"), Reach::Cpu(lead))), None),
        };
        let no_states = (layout.sources < Sources::Package).then_some(Why::NotAsked);
        // Once per register, and once for the TSC, because each is a question to that CPU.
        let n_registers = if no_states.is_some() || counted.is_empty() { 0 } else { counted.len() + 1 };
        let registers =
            (0..n_registers).map(|_| layout.add(format!("/dev/cpu/{lead}/msr"), Reach::Cpu(lead))).collect();
        let states = counted.clone();
        layout.packages.push(PackageInfo { package, cpus, no_uncore, uncore, throttles, states, no_states, registers });
    }
}

/// The CPU that answers for a package; the first of the machine where nothing is known.
fn lead(layout: &Layout, package: Option<u32>) -> Cpu {
    let found = package.and_then(|p| layout.packages.iter().find(|info| info.package == p));
    found.and_then(|info| info.cpus.first()).or(layout.cpus.first().map(|c| c.cpu)).unwrap_or(0)
}

fn add_zones(src: &dyn Source, layout: &mut Layout) {
    let listing = src.list(ZONES);
    layout.no_zones = why_not(&listing);
    let mut ids: Vec<String> = listing.unwrap_or_default().into_iter().filter(|id| id.contains(':')).collect();
    ids.sort();
    let mut package_of: BTreeMap<String, u32> = BTreeMap::new();
    for id in ids {
        // The same energy through memory-mapped registers: counting it twice would double the watts.
        if id.starts_with("intel-rapl-mmio") || id.starts_with("dtpm") {
            continue;
        }
        let folder = Folder::list(src, format!("{ZONES}/{id}"));
        let name = folder.fact(src, "name", parse::word).get().cloned().unwrap_or_else(|| id.clone());
        let (parent, _) = id.rsplit_once(':').unwrap_or((&id, ""));
        // package-1, or package-1-die-0 on parts with several dies.
        let own = name.strip_prefix("package-").and_then(|n| n.split('-').next()?.parse().ok());
        let package = own.or_else(|| package_of.get(parent).copied());
        if let Some(package) = own {
            package_of.insert(id.clone(), package);
        }
        let range = folder.fact(src, "max_energy_range_uj", parse::number);
        let has_energy = folder.has("energy_uj");
        let is_read = has_energy && layout.sources >= Sources::Package;
        let not_read = match (has_energy, is_read) {
            (false, _) => Some(missing(src, &folder, "energy_uj")),
            (true, false) => Some(Why::NotAsked),
            _ => None,
        };
        let reach = Reach::Cpu(lead(layout, package));
        let slot = is_read.then(|| layout.add(format!("{ZONES}/{id}/energy_uj"), reach));
        // DRAM is beside the cores, not inside the package's number; psys holds everything.
        let is_part = name != "dram" && own.is_none();
        let max_energy_range_uj = range.get().map_or(Reading::Missing(Why::Absent), |n| Reading::Known(*n));
        layout.zones.push(ZoneInfo { id, name, package, max_energy_range_uj, is_part, not_read, slot });
    }
    if layout.zones.is_empty() && layout.no_zones.is_none() {
        layout.no_zones = Some(Why::Absent);
    }
}

fn add_sensors(src: &dyn Source, layout: &mut Layout) {
    let class = src.list(HWMON);
    layout.no_sensors = why_not(&class);
    let packages: Vec<u32> = layout.packages.iter().map(|p| p.package).collect();
    let mut n_of_name: BTreeMap<String, usize> = BTreeMap::new();
    for number in numbered(&class.unwrap_or_default(), "hwmon") {
        let folder = Folder::list(src, format!("{HWMON}/hwmon{number}"));
        let chip = folder.fact(src, "name", parse::word).get().cloned().unwrap_or_else(|| "unnamed".into());
        if NOT_ASKED.iter().any(|name| chip.starts_with(name)) {
            continue;
        }
        let nth = n_of_name.entry(chip.clone()).or_default();
        let by_order = packages.get(*nth).copied();
        *nth += 1;
        let is_msr = MSR_CHIPS.contains(&chip.as_str());
        let stems = |prefix: &str, end: &str| {
            let names: Vec<String> =
                folder.names().iter().filter_map(|n| n.strip_suffix(end)).map(str::to_string).collect();
            numbered(&names, prefix)
        };
        let mut channels: Vec<(SensorKind, String, String)> = Vec::new();
        if is_msr || CPU_TEMPERATURES.contains(&chip.as_str()) {
            channels.extend(
                stems("temp", "_input")
                    .into_iter()
                    .map(|n| (SensorKind::Temperature, format!("temp{n}"), format!("temp{n}_input"))),
            );
        }
        channels.extend(
            stems("fan", "_input").into_iter().map(|n| (SensorKind::Fan, format!("fan{n}"), format!("fan{n}_input"))),
        );
        let average = |n: u32| if folder.has(&format!("power{n}_input")) { "input" } else { "average" };
        let mut powers = stems("power", "_input");
        powers.extend(stems("power", "_average"));
        powers.sort_unstable();
        powers.dedup();
        channels.extend(
            powers.into_iter().map(|n| (SensorKind::Power, format!("power{n}"), format!("power{n}_{}", average(n)))),
        );
        // coretemp names its package; k10temp does not, and chips come in the order of the packages.
        let labels: Vec<Option<String>> = channels
            .iter()
            .map(|(_, stem, _)| folder.fact(src, &format!("{stem}_label"), parse::word).get().cloned())
            .collect();
        let named = labels.iter().flatten().find_map(|l| l.strip_prefix("Package id ")?.parse().ok());
        let package = named.or(by_order);
        for ((kind, stem, file), label) in channels.into_iter().zip(labels) {
            let label = label.unwrap_or(stem);
            let is_core = kind == SensorKind::Temperature && (label.starts_with("Core ") || label.starts_with("Tccd"));
            let needed = match (is_msr, is_core) {
                (false, _) => Sources::Quiet,
                (true, false) => Sources::Package,
                (true, true) => Sources::All,
            };
            let not_read = (layout.sources < needed).then_some(Why::NotAsked);
            let reach = if is_msr { Reach::Cpu(core_lead(layout, package, &label)) } else { Reach::Bus };
            let slot = not_read.is_none().then(|| layout.add(format!("{}/{file}", folder.path), reach));
            let package = if kind == SensorKind::Temperature { package } else { None };
            layout.sensors.push(SensorInfo { chip: chip.clone(), label, kind, package, is_core, not_read, slot });
        }
    }
    if layout.sensors.is_empty() && layout.no_sensors.is_none() {
        layout.no_sensors = Some(Why::Absent);
    }
}

/// The CPU that a coretemp channel asks. Core numbers of labels and first CPUs differ; which CPU of the package it is
/// matters only for counting, so the package's CPUs are taken in turn.
fn core_lead(layout: &Layout, package: Option<u32>, label: &str) -> Cpu {
    let first = lead(layout, package);
    let Some(n) = label.strip_prefix("Core ").and_then(|n| n.parse::<usize>().ok()) else { return first };
    let info = package.and_then(|p| layout.packages.iter().find(|info| info.package == p));
    info.and_then(|info| info.cpus.iter().nth(n)).unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Tree;

    const TEXT: &str = "//- /sys/devices/system/cpu/present\n0-1\n//- /proc/sys/kernel/osrelease\n6.12.0\n
        //- /sys/devices/system/cpu/cpu0/topology/physical_package_id\n0\n//- /sys/devices/system/cpu/cpu1/topology/physical_package_id\n1\n
        //- /sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq\n800000\n
        //- /sys/devices/system/cpu/cpu0/cpuidle/state0/name\nPOLL\n//- /sys/devices/system/cpu/cpu1/cpuidle/state1/name\nC6\n
        //- /sys/class/powercap/intel-rapl:1/name\npackage-1\n//- /sys/class/powercap/intel-rapl:1/energy_uj\n5\n
        //- /sys/class/powercap/intel-rapl:1:0/name\ndram\n//- /sys/class/powercap/intel-rapl:1:0/energy_uj\n5\n
        //- /sys/class/powercap/intel-rapl-mmio:0/name\npackage-0\n//- /sys/class/powercap/intel-rapl-mmio:0/energy_uj\n5\n
        //- /sys/class/hwmon/hwmon0/name\ncoretemp\n//- /sys/class/hwmon/hwmon0/temp1_input\n4\n//- /sys/class/hwmon/hwmon0/temp1_label\nPackage id 0\n
        //- /sys/class/hwmon/hwmon0/temp2_input\n4\n//- /sys/class/hwmon/hwmon0/temp2_label\nCore 0\n
        //- /sys/class/hwmon/hwmon1/name\nnvme\n//- /sys/class/hwmon/hwmon1/temp1_input\n4\n
        //- /sys/class/hwmon/hwmon2/name\nnct6798\n//- /sys/class/hwmon/hwmon2/fan1_input\n900\n//- /sys/class/hwmon/hwmon2/temp1_input\n9\n";

    #[test]
    fn quiet_reads_nothing_that_interrupts_a_cpu() {
        let tree = Tree::from_text(TEXT);
        let quiet = discover(&tree, Sources::Quiet);
        assert!(quiet.files.iter().all(|f| !matches!(f.reach, Reach::Cpu(_))));
        assert!(quiet.files.iter().all(|f| !f.path.contains("cpuinfo") && !f.path.contains("energy_uj")));
        assert_eq!(quiet.sensors.iter().filter(|s| s.slot.is_some()).count(), 1, "the fan only: {:?}", quiet.sensors);
        assert!(quiet.zones.iter().all(|z| z.not_read == Some(Why::NotAsked)));
        let reads = |sources| {
            let layout = discover(&tree, sources);
            layout.remote_reads().iter().map(|(cpu, files)| (*cpu, files.len())).collect::<Vec<_>>()
        };
        assert_eq!(reads(Sources::Package), [(0, 1), (1, 2)]);
        assert_eq!(reads(Sources::All), [(0, 2), (1, 2)]);
    }

    #[test]
    fn cpus_keep_their_own_tables() {
        let layout = discover(&Tree::from_text(TEXT), Sources::Quiet);
        assert_eq!(layout.states.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["POLL", "C6"]);
        assert_eq!((&layout.cpus[0].states, &layout.cpus[1].states), (&vec![0], &vec![1]));
        assert_eq!((layout.cpus[0].no_freq, layout.cpus[1].no_freq), (None, Some(Why::Absent)));
        assert_eq!(layout.zones.len(), 2, "the memory-mapped twin is left out");
        assert!(layout.zones.iter().all(|z| z.package == Some(1) && !z.is_part));
    }

    #[test]
    fn old_kernels_ask_the_cpu_for_its_frequency() {
        let tree = Tree::from_text(&TEXT.replace("6.12.0", "4.18.0-553.el8"));
        assert_eq!(discover(&tree, Sources::Quiet).cpus[0].no_freq, Some(Why::NotAsked));
        assert!(is_freq_in_memory(Some("5.18-rc1")) && !is_freq_in_memory(Some("5.17.9")) && !is_freq_in_memory(None));
    }
}
