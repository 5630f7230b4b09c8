//! How the CPUs are built: packages, dies, clusters, cores, SMT siblings, kinds of core, and which processor it is.
//!
//! `cpuN/topology/*` (Documentation/ABI/stable/sysfs-devices-system-cpu) says who shares what. Ids are only unique
//! inside their parent: die 0 exists in every package, so whoever wants "the dies" asks [`Topology::dies`], not the id.
//! The kernel writes -1 for an id that firmware did not tell; that is a gap here. A tree without these files (a partial
//! recording, a masked container) falls back to /proc/cpuinfo, whose `physical id` and `core id` say the same on x86.
//!
//! Hybrid parts: `/sys/devices/cpu_{core,atom,lowpower}/cpus` are the perf PMUs of each kind of core; elsewhere (Arm,
//! newer x86) `cpu_capacity` ranks them, 1024 being the fastest. An offline CPU has no topology folder at all, so
//! everything here is about running CPUs; see `cpus` for the offline ones. A guest shows what its hypervisor invented.

use super::{Cpus, Domain, cpuinfo, cpus::ROOT};
use crate::arrange::Arrange as _;
use crate::cpuset::CpuSet;
use crate::fact::{Fact, PerCpu, fact, parse};
use crate::folder::Folders;
use crate::sheet::{Cell, Sheet};
use crate::source::Source;
use crate::units::Cpu;
use serde::Serialize;
use std::collections::BTreeMap;
use wakewatt_words::{say, word};

pub use super::cpuinfo::Processor;

/// Packages, cores, siblings.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Topology {
    /// Number of the package (socket) of each CPU.
    pub package_id: PerCpu<u32>,
    /// Die number, unique inside the package.
    pub die_id: PerCpu<u32>,
    /// Cluster (Intel: module) number: cores that share an L2; unique inside the package.
    pub cluster_id: PerCpu<u32>,
    /// Core number, unique inside the package.
    pub core_id: PerCpu<u32>,
    /// CPUs of the same core, itself included.
    pub siblings: PerCpu<CpuSet>,
    /// CPUs of the same die.
    pub die_cpus: PerCpu<CpuSet>,
    /// CPUs of the same cluster.
    pub cluster_cpus: PerCpu<CpuSet>,
    /// Relative speed, 1024 for the fastest.
    pub capacity: PerCpu<u64>,
    /// Kinds of core on a hybrid machine, by the kernel's word (core, atom, lowpower); empty elsewhere.
    pub kinds: Vec<Kind>,
    /// `on`, `off`, `forceoff`, `notsupported`, `notimplemented`, or a number of threads per core.
    pub smt_control: Fact<String>,
    /// Does any core run two CPUs now?
    pub is_smt_active: Fact<bool>,
    /// Vendor, model and microcode of each CPU.
    pub processor: PerCpu<Processor>,
    /// Those of [`cpuinfo::FLAGS`] that /proc/cpuinfo lists; `…` behind them where the list may be cut short.
    pub flags: PerCpu<Vec<String>>,
}

/// One kind of core.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Kind {
    /// The kernel's word: core, atom, lowpower.
    pub name: String,
    /// The CPUs of this kind.
    pub cpus: CpuSet,
}

impl Topology {
    /// Packages by number.
    pub fn packages(&self) -> Vec<(u32, CpuSet)> {
        let mut all: Vec<(u32, CpuSet)> = self.package_id.known().map(|(cpus, id)| (*id, cpus.clone())).collect();
        all.sort();
        all
    }

    /// Dies, in order of their first CPU.
    pub fn dies(&self) -> Vec<CpuSet> {
        self.groups(&self.die_cpus, &self.die_id)
    }

    /// Cores as groups of siblings, in order of their first CPU.
    pub fn cores(&self) -> Vec<CpuSet> {
        self.groups(&self.siblings, &self.core_id)
    }

    /// All CPUs of one core, the CPU itself included; none where the machine does not say.
    pub fn siblings_of(&self, cpu: Cpu) -> Option<CpuSet> {
        self.cores().into_iter().find(|core| core.contains(cpu))
    }

    /// Does every CPU have this flag? None where /proc/cpuinfo does not say, or where a text's list of flags may be cut before it.
    pub fn has_flag(&self, flag: &str) -> Option<bool> {
        let said = self.flags.known().map(|(_, flags)| cpuinfo::is_among(flag, flags.iter().map(String::as_str)));
        // One CPU that lacks it decides, whatever is not known of others.
        let worst = said.min_by_key(|said| said.map_or(1, |has| if has { 2 } else { 0 }));
        worst.flatten()
    }

    /// May the list of flags be cut short?
    pub fn has_cut_flags(&self) -> bool {
        self.flags.known().any(|(_, flags)| flags.iter().any(|flag| flag == cpuinfo::CUT))
    }

    /// Are we a guest? By the flag; a hypervisor can hide it, and a guest may still own real C-states.
    pub fn is_guest(&self) -> Option<bool> {
        self.has_flag("hypervisor")
    }

    /// The processor, if all CPUs have the same.
    pub fn processor(&self) -> Option<&Processor> {
        self.processor.uniform()
    }

    /// Reads again what changes while a machine runs, SMT and microcode, from files that ask no CPU: /proc/cpuinfo asks every busy one
    /// on older kernels. What such a file does not say stays as it was.
    pub fn refresh(&mut self, src: &dyn Source) {
        self.smt_control = fact(src, &format!("{ROOT}/smt/control"), parse::word);
        self.is_smt_active = fact(src, &format!("{ROOT}/smt/active"), parse::flag);
        let cpus: Vec<Cpu> = self.processor.known().flat_map(|(cpus, _)| cpus.iter()).collect();
        let path = |cpu: Cpu| format!("{ROOT}/cpu{cpu}/microcode/version");
        let revisions = PerCpu::read(src, cpus.iter().copied(), path, revision);
        let (revisions, mut processors) = (revisions.by_cpu(), self.processor.by_cpu());
        let refreshed = cpus.into_iter().filter_map(|cpu| {
            let mut processor = processors.remove(&cpu)?.clone();
            processor.microcode = revisions.get(&cpu).map(|r| **r).or(processor.microcode);
            Some((cpu, Fact::Known(processor)))
        });
        self.processor = PerCpu::group(refreshed);
    }

    /// Groups by list, or by (package, id) for the CPUs that have no list.
    fn groups(&self, lists: &PerCpu<CpuSet>, ids: &PerCpu<u32>) -> Vec<CpuSet> {
        // A list may name CPUs whose own list differs (a lying hypervisor): the CPUs that carry it are the group.
        let mut by_list: BTreeMap<&CpuSet, CpuSet> = BTreeMap::new();
        for (cpus, list) in lists.known() {
            let group = by_list.entry(list).or_default();
            *group = group.union(cpus);
        }
        // A CPU whose own list cannot be read belongs to the group whose list names it: it is not a die of its own.
        for cpu in lists.0.iter().filter(|g| g.fact.gap().is_some()).flat_map(|g| g.cpus.iter()) {
            if let Some((_, group)) = by_list.iter_mut().find(|(list, _)| list.contains(cpu)) {
                group.insert(cpu);
            }
        }
        let mut all: Vec<CpuSet> = by_list.into_values().collect();
        let listed: CpuSet = all.iter().flat_map(CpuSet::iter).collect();
        let package: BTreeMap<Cpu, u32> =
            self.package_id.known().flat_map(|(cpus, id)| cpus.iter().map(|cpu| (cpu, *id))).collect();
        let mut by_id: BTreeMap<(Option<u32>, u32), CpuSet> = BTreeMap::new();
        for (cpus, id) in ids.known() {
            for cpu in cpus.iter().filter(|cpu| !listed.contains(*cpu)) {
                by_id.entry((package.get(&cpu).copied(), *id)).or_default().insert(cpu);
            }
        }
        all.extend(by_id.into_values());
        all.arrange_by_key(CpuSet::first);
        all
    }
}

/// An id, where -1 means that firmware did not say.
fn id(text: &str) -> Result<u32, String> {
    match parse::signed(text)? {
        -1 => Err("the kernel does not know it (-1)".into()),
        n => u32::try_from(n).map_err(|_| format!("{n} is not an id")),
    }
}

/// A revision of microcode: `0x2b000620`.
fn revision(text: &str) -> Result<u64, String> {
    let digits = text.trim().strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    digits.ok_or_else(|| "expected a number in hexadecimal".into())
}

impl Domain for Topology {
    const TITLE: &'static str = "Topology";
    const HELP: &'static str = "packages, dies, cores, SMT siblings, kinds of core, processor model and flags";

    fn read(src: &dyn Source, cpus: &Cpus) -> Topology {
        let info = cpuinfo::read(src);
        let files = Folders::alike(src, cpus.running(), |cpu| format!("{ROOT}/cpu{cpu}/topology"));
        let list = |new, old| files.read(src, if files.any(new) { new } else { old }, parse::cpus);
        let or =
            |sysfs: PerCpu<u32>, proc: PerCpu<u32>| if sysfs.is_unknown() && !proc.is_unknown() { proc } else { sysfs };
        let kind = |name: &str| {
            let cpus = fact(src, &format!("/sys/devices/cpu_{name}/cpus"), parse::cpus).get()?.clone();
            Some(Kind { name: name.into(), cpus })
        };
        let own = Folders::alike(src, cpus.running(), |cpu| format!("{ROOT}/cpu{cpu}"));
        Topology {
            package_id: or(files.read(src, "physical_package_id", id), info.package_id),
            die_id: files.read(src, "die_id", id),
            cluster_id: files.read(src, "cluster_id", id),
            core_id: or(files.read(src, "core_id", id), info.core_id),
            siblings: list("core_cpus_list", "thread_siblings_list"),
            die_cpus: files.read(src, "die_cpus_list", parse::cpus),
            cluster_cpus: files.read(src, "cluster_cpus_list", parse::cpus),
            capacity: own.read(src, "cpu_capacity", parse::number),
            kinds: ["core", "atom", "lowpower"].into_iter().filter_map(kind).collect(),
            smt_control: fact(src, &format!("{ROOT}/smt/control"), parse::word),
            is_smt_active: fact(src, &format!("{ROOT}/smt/active"), parse::flag),
            processor: info.processor,
            flags: info.flags,
        }
    }

    fn show(&self, sheet: &mut Sheet) {
        let hex = |n: &Option<u64>| n.map_or("?".to_string(), |n| format!("0x{n:x}"));
        sheet.per_cpu("topology.processor", word!("processor"), &self.processor, |p| Cell::text(p));
        if !self.processor.known().any(|(_, p)| p.implementer.is_some()) {
            // Arm's have none that software could read.
            sheet.per_cpu("topology.microcode", word!("microcode"), &self.processor, |p| Cell::Text(hex(&p.microcode)));
        }
        sheet.per_cpu("topology.flags", word!("flags that matter here"), &self.flags, |v| Cell::text(v.join(" ")));
        sheet.per_cpu("topology.package", word!("package"), &self.package_id, |v| Cell::Count(u64::from(*v)));
        if !self.die_cpus.is_unknown() || !self.die_id.is_unknown() {
            sheet.say("topology.n_dies", word!("dies"), Cell::Count(self.dies().len() as u64));
        }
        let cores = self.cores();
        if !cores.is_empty() {
            sheet.say("topology.n_cores", word!("running cores"), Cell::Count(cores.len() as u64));
            let widths = PerCpu::group(
                cores.iter().flat_map(|core| core.iter().map(|cpu| (cpu, Fact::Known(core.len() as u64)))),
            );
            sheet.per_cpu("topology.cpus_per_core", word!("CPUs per core"), &widths, |v| Cell::Count(*v));
        }
        sheet.fact("topology.smt_control", word!("SMT control"), &self.smt_control, |v| Cell::text(v));
        sheet.fact("topology.smt_active", word!("SMT active"), &self.is_smt_active, |v| Cell::Flag(*v));
        for kind in &self.kinds {
            let name = &kind.name;
            sheet.say(format!("topology.kind.{name}"), say!("{name} CPUs"), Cell::text(&kind.cpus));
        }
        sheet.per_cpu("topology.capacity", word!("relative capacity"), &self.capacity, |v| Cell::Count(*v));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Tree;

    fn read(text: &str) -> Topology {
        let tree = Tree::from_text(text);
        Topology::read(&tree, &Cpus::read(&tree))
    }

    #[test]
    fn what_changes_while_it_runs_is_read_again() {
        let text = |smt: u8, files: &str| {
            format!(
                "//- /sys/devices/system/cpu/online\n0-1\n//- /sys/devices/system/cpu/smt/active\n{smt}\n\
                 //- /proc/cpuinfo\nprocessor : 0\nvendor_id : GenuineIntel\nmicrocode : 0x10\n\nprocessor : 1\nvendor_id : GenuineIntel\nmicrocode : 0x10\n\n{files}"
            )
        };
        let mut top = read(&text(1, ""));
        let microcodes =
            |top: &Topology| top.processor.known().map(|(c, p)| (c.len(), p.microcode)).collect::<Vec<_>>();
        assert_eq!((top.is_smt_active.get(), microcodes(&top)), (Some(&true), vec![(2, Some(0x10))]));
        let loaded = |cpu: u8, to: &str| format!("//- /sys/devices/system/cpu/cpu{cpu}/microcode/version\n{to}\n");
        top.refresh(&Tree::from_text(&text(0, &(loaded(0, "0x12") + &loaded(1, "0x12")))));
        assert_eq!((top.is_smt_active.get(), microcodes(&top)), (Some(&false), vec![(2, Some(0x12))]));
        top.refresh(&Tree::from_text(&text(0, &loaded(1, "0x13"))));
        assert_eq!(microcodes(&top), [(1, Some(0x12)), (1, Some(0x13))], "what is not said stays");
        top.refresh(&Tree::from_text(&text(0, &loaded(1, "rubbish"))));
        assert_eq!(microcodes(&top), [(1, Some(0x12)), (1, Some(0x13))]);
    }

    #[test]
    fn sysfs_says_who_shares_a_core() {
        let top = read(
            "//- /sys/devices/system/cpu/online\n0-3\n//- /sys/devices/cpu_core/cpus\n0-1\n//- /sys/devices/cpu_atom/cpus\n2-3\n
             //- /sys/devices/system/cpu/cpu0/topology/thread_siblings_list\n0-1\n//- /sys/devices/system/cpu/cpu1/topology/thread_siblings_list\n0-1\n
             //- /sys/devices/system/cpu/cpu2/topology/thread_siblings_list\n2\n//- /sys/devices/system/cpu/cpu3/topology/thread_siblings_list\n3\n
             //- /sys/devices/system/cpu/cpu0/topology/physical_package_id\n0\n//- /sys/devices/system/cpu/cpu1/topology/physical_package_id\n-1\n",
        );
        let cores: Vec<String> = top.cores().iter().map(CpuSet::to_string).collect();
        assert_eq!(cores, ["0-1", "2", "3"]);
        assert_eq!(top.siblings_of(1).unwrap().to_string(), "0-1");
        let kinds: Vec<String> = top.kinds.iter().map(|k| format!("{} {}", k.name, k.cpus)).collect();
        assert_eq!(kinds, ["core 0-1", "atom 2-3"]);
        assert!(top.package_id.of(1).unwrap().gap().unwrap().reason.contains("-1"));
        assert_eq!(top.has_flag("hwp"), None, "no cpuinfo, no answer");
    }

    #[test]
    fn cpuinfo_stands_in_for_a_missing_folder() {
        let block = |cpu, package, core| {
            format!(
                "processor\t: {cpu}\nvendor_id\t: GenuineIntel\nphysical id\t: {package}\ncore id\t\t: {core}\nflags\t\t: fpu hypervisor\n\n"
            )
        };
        let blocks: String = [(0, 0, 0), (1, 0, 0), (2, 1, 0), (3, 1, 0)].map(|(a, b, c)| block(a, b, c)).concat();
        let top = read(&format!(
            "//- /sys/devices/system/cpu/online\n0-3\n//- /sys/devices/system/cpu/cpu0/topology/die_id\n0\n//- /proc/cpuinfo\n{blocks}"
        ));
        let cores: Vec<String> = top.cores().iter().map(CpuSet::to_string).collect();
        assert_eq!(cores, ["0-1", "2-3"], "core 0 exists once in each package");
        assert_eq!(top.packages().len(), 2);
        assert_eq!(top.is_guest(), Some(true));
    }
}
