//! Caches: what each level holds and which CPUs share it. The L3 group is what a wake-up on another core has to cross.
//!
//! `cpuN/cache/indexK/{level,type,size,shared_cpu_list,id}` (Documentation/ABI/testing/sysfs-devices-system-cpu). CPUs
//! that share a cache show the same files, so each cache is read once, through the first CPU that has it. A guest sees
//! what its hypervisor puts into CPUID: an L3 of the whole host shared by two CPUs, or one L3 per CPU, is common;
//! check `topology.flags` for `hypervisor` before believing this page.

use super::{Cpus, Domain, cpus::ROOT};
use crate::arrange::Arrange as _;
use crate::cpuset::CpuSet;
use crate::fact::{Fact, Gap, GapKind, PerCpu, parse};
use crate::folder::Folder;
use crate::sheet::{Cell, Sheet};
use crate::source::Source;
use crate::units::Cpu;
use serde::Serialize;
use std::collections::BTreeMap;
use wakewatt_words::{say, word};

/// All caches of the machine.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Caches {
    /// In order of the first CPU, then index.
    pub caches: Vec<Cache>,
    /// Running CPUs that show no cache at all.
    pub cpus_without: CpuSet,
    /// Why the caches of some CPU could not be listed; they are not counted then.
    pub unlisted_because: Option<Gap>,
}

/// One level of cache, and which CPUs share it.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cache {
    /// The K of indexK.
    pub index: u32,
    /// 1, 2, 3 …
    pub level: Fact<u64>,
    /// What it caches: Data, Instruction or Unified.
    pub kind: Fact<String>,
    /// Capacity of one such cache, in bytes.
    pub size_bytes: Fact<u64>,
    /// The CPUs that share it; where that is unreadable, the one CPU it was read on.
    pub cpus: CpuSet,
    /// How many share it; a gap where it does not say.
    pub n_sharing: Fact<u64>,
    /// The kernel's number for it, unique within its level and type.
    pub id: Fact<u64>,
}

impl Cache {
    /// `L1d`, `L1i`, `L2`, `L3`; `index3` where level or type are unreadable.
    pub fn name(&self) -> String {
        let letter = match self.kind.get().map(String::as_str) {
            Some("Data") => "d",
            Some("Instruction") => "i",
            _ => "",
        };
        self.level.get().map_or_else(|| format!("index{}", self.index), |level| format!("L{level}{letter}"))
    }
}

impl Caches {
    /// The groups of CPUs that share each cache of this name ("L3").
    pub fn sharing(&self, name: &str) -> Vec<&CpuSet> {
        self.caches.iter().filter(|cache| cache.name() == name).map(|cache| &cache.cpus).collect()
    }

    /// The CPUs that share the last-level cache with this one; where levels are unreadable, the highest index is it.
    pub fn last_level_of(&self, cpu: Cpu) -> Option<&CpuSet> {
        let mine = self.caches.iter().filter(|cache| cache.cpus.contains(cpu));
        mine.max_by_key(|cache| (cache.level.get().copied(), cache.index)).map(|cache| &cache.cpus)
    }
}

/// `32K`, `2048K`, `105M`.
fn size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'M') => (&text[..text.len() - 1], 1 << 20),
        Some(b'G') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    parse::number(digits)?.checked_mul(unit).ok_or_else(|| "too large for a cache".to_string())
}

impl Domain for Caches {
    const TITLE: &'static str = "Caches";
    const HELP: &'static str = "every cache level: size and which CPUs share it";

    fn read(src: &dyn Source, cpus: &Cpus) -> Caches {
        let mut found = Caches::default();
        let mut covered: BTreeMap<u32, CpuSet> = BTreeMap::new();
        for cpu in cpus.running() {
            let root = format!("{ROOT}/cpu{cpu}/cache");
            let all = Folder::list(src, root.as_str());
            match all.gap() {
                Some(gap) if gap.kind != GapKind::Absent => {
                    found.unlisted_because.get_or_insert(gap);
                }
                _ if all.numbered("index").is_empty() => found.cpus_without.insert(cpu),
                _ => {}
            }
            let indexes = all.numbered("index");
            for index in indexes {
                let covered = covered.entry(index).or_default();
                if covered.contains(cpu) {
                    continue;
                }
                let folder = Folder::list(src, format!("{root}/index{index}"));
                let shared = folder.fact(src, "shared_cpu_list", parse::cpus);
                if let Some(list) = shared.get() {
                    // A CPU whose own list could not be read turns out to share this one.
                    found.caches.retain(|c| {
                        let is_this = c.index == index && !c.n_sharing.is_known() && c.cpus.minus(list).is_empty();
                        if is_this {
                            *covered = covered.minus(&c.cpus);
                        }
                        !is_this
                    });
                }
                let mut cpus: CpuSet = shared.get().cloned().unwrap_or_default().minus(covered);
                cpus.insert(cpu);
                cpus.iter().for_each(|cpu| covered.insert(cpu));
                found.caches.push(Cache {
                    index,
                    level: folder.fact(src, "level", parse::number),
                    kind: folder.fact(src, "type", parse::word),
                    size_bytes: folder.fact(src, "size", size),
                    n_sharing: shared.map(|_| cpus.len() as u64),
                    cpus,
                    id: folder.fact(src, "id", parse::number),
                });
            }
        }
        found
    }

    fn show(&self, sheet: &mut Sheet) {
        let mut by_name: BTreeMap<String, Vec<&Cache>> = BTreeMap::new();
        for cache in &self.caches {
            by_name.entry(cache.name()).or_default().push(cache);
        }
        for (name, caches) in by_name {
            let over_cpus = |fact: &dyn Fn(&Cache) -> Fact<u64>| {
                let mut items: Vec<(Cpu, Fact<u64>)> =
                    caches.iter().flat_map(|c| c.cpus.iter().map(|cpu| (cpu, unnamed(fact(c))))).collect();
                items.arrange_by_key(|(cpu, _)| *cpu);
                PerCpu::group(items)
            };
            let sizes = over_cpus(&|c| c.size_bytes.clone());
            let sharers = over_cpus(&|c| c.n_sharing.clone());
            sheet.per_cpu(&format!("cache.{name}.size"), &say!("{name} size"), &sizes, |v| Cell::Bytes(*v));
            sheet.per_cpu(&format!("cache.{name}.shared_by"), &say!("{name} CPUs sharing one"), &sharers, |v| {
                Cell::Count(*v)
            });
            let unsure = self.unlisted_because.iter().chain(caches.iter().filter_map(|c| c.n_sharing.gap())).next();
            let count = unsure.map_or(Fact::Known(caches.len() as u64), |gap| Fact::Gap(gap.clone()));
            sheet.fact(format!("cache.{name}.count"), say!("{name} caches"), &count, |n| Cell::Count(*n));
        }
        if !self.cpus_without.is_empty() {
            sheet.say("cache.cpus_without", word!("CPUs that show no cache"), Cell::text(&self.cpus_without));
        }
    }
}

/// Equal gaps of different CPUs group only if they do not name the CPU: point at the file instead.
fn unnamed(fact: Fact<u64>) -> Fact<u64> {
    match fact {
        Fact::Gap(mut gap) => {
            if let Some((_, file)) = gap.path.rsplit_once("/index") {
                gap.path = format!("{ROOT}/cpu*/cache/index{file}");
            }
            Fact::Gap(gap)
        }
        known => known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Tree;

    #[test]
    fn each_cache_is_read_once_and_shared_ones_are_one() {
        let mut text = "//- /sys/devices/system/cpu/online\n0-3\n".to_string();
        for cpu in 0..3 {
            text += &format!(
                "//- {ROOT}/cpu{cpu}/cache/index0/level\n1\n//- {ROOT}/cpu{cpu}/cache/index0/type\nData\n
                 //- {ROOT}/cpu{cpu}/cache/index0/size\n48K\n//- {ROOT}/cpu{cpu}/cache/index0/shared_cpu_list\n{cpu}\n
                 //- {ROOT}/cpu{cpu}/cache/index3/shared_cpu_list\n0-2\n//- {ROOT}/cpu{cpu}/cache/index3/id\n0\n"
            );
        }
        text += &format!("//- {ROOT}/cpu0/cache/index3/level\n3\n//- {ROOT}/cpu0/cache/index3/size\nhuge\n");
        let tree = Tree::from_text(&text);
        let caches = Caches::read(&tree, &Cpus::read(&tree));
        assert_eq!(caches.sharing("L1d").len(), 3);
        assert_eq!(caches.sharing("L3").iter().map(ToString::to_string).collect::<Vec<_>>(), ["0-2"]);
        assert_eq!(caches.last_level_of(2).unwrap().to_string(), "0-2");
        assert_eq!(caches.last_level_of(3), None);
        assert_eq!(caches.cpus_without.to_string(), "3");
        let mut sheet = Sheet::default();
        caches.show(&mut sheet);
        let rows: Vec<String> = sheet
            .rows
            .iter()
            .map(|r| format!("{} {}", r.id, r.cell.as_ref().map_or("gap".to_string(), ToString::to_string)))
            .collect();
        assert_eq!(
            rows,
            [
                "cache.L1d.size 48KiB",
                "cache.L1d.shared_by 1",
                "cache.L1d.count 3",
                "cache.L3.size gap",
                "cache.L3.shared_by 3",
                "cache.L3.count 1",
                "cache.cpus_without 3"
            ]
        );
    }
}
