//! Which CPUs exist, and which of them are online. Every per-CPU domain starts from this.
//!
//! `/sys/devices/system/cpu/{present,online,possible}` (Documentation/ABI/testing/sysfs-devices-system-cpu). A tree
//! without them (a masked container, a partial recording) falls back to the `cpuN` folders, then to /proc/cpuinfo.

use crate::cpuset::CpuSet;
use crate::fact::{Fact, Gap, fact, parse};
use crate::source::Source;
use crate::units::Cpu;
use serde::Serialize;
use wakewatt_words::say;

/// The folder of everything per CPU.
pub const ROOT: &str = "/sys/devices/system/cpu";

/// A list of CPUs longer than this is left to the evidence of a finding.
const MAX_LIST: usize = 40;

/// The machine's CPUs.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cpus {
    /// CPUs that are plugged in, running or not.
    pub present: Fact<CpuSet>,
    /// CPUs that run now.
    pub online: Fact<CpuSet>,
    /// Present and not online; `cpuN/online` is 0 for them.
    pub offline: CpuSet,
    /// Ever possible on this boot.
    pub possible: Fact<CpuSet>,
}

impl Cpus {
    /// Reads the lists, with the fallbacks named above.
    pub fn read(src: &dyn Source) -> Cpus {
        let mut present = fact(src, &format!("{ROOT}/present"), parse::cpus);
        let mut online = fact(src, &format!("{ROOT}/online"), parse::cpus);
        let possible = fact(src, &format!("{ROOT}/possible"), parse::cpus);
        if present.get().is_none_or(CpuSet::is_empty) {
            if let Some(found) = from_folders(src).or_else(|| from_cpuinfo(src)) {
                present = Fact::Known(found);
            }
        }
        if online.get().is_none_or(CpuSet::is_empty) {
            let running = from_cpuinfo(src).or_else(|| present.get().cloned());
            online = running.map_or_else(
                || {
                    Fact::Gap(Gap::malformed(
                        &format!("{ROOT}/online"),
                        "no CPU could be found: /sys and /proc are both masked",
                    ))
                },
                Fact::Known,
            );
        }
        if let (None, Some(online)) = (present.get(), online.get()) {
            present = Fact::Known(online.clone());
        }
        let offline = match (present.get(), online.get()) {
            (Some(present), Some(online)) => present.minus(online),
            _ => CpuSet::new(),
        };
        Cpus { present, online, offline, possible }
    }

    /// The CPUs that run.
    pub fn running(&self) -> impl Iterator<Item = Cpu> + '_ {
        self.online.get().into_iter().flat_map(CpuSet::iter)
    }

    /// How many of the running CPUs a set is, as findings say it: "all 32 CPUs", "CPU 5 only", "4 of 32 CPUs (0-3)".
    pub fn extent(&self, cpus: &CpuSet) -> String {
        let (n, of) = (cpus.len(), self.running().count());
        match (n, of) {
            (_, 0) | (1, 1) => cpus.named(),
            _ if n >= of => say!("all {of} CPUs"),
            (1, _) => say!("{cpu} only", cpu = cpus.named()),
            _ => {
                let list = cpus.to_string();
                match list.len() <= MAX_LIST {
                    true => say!("{n} of {of} CPUs ({list})"),
                    false => say!("{n} of {of} CPUs"),
                }
            }
        }
    }

    /// All that are plugged in, running or not.
    pub fn all(&self) -> impl Iterator<Item = Cpu> + '_ {
        self.present.get().into_iter().flat_map(CpuSet::iter)
    }
}

fn from_folders(src: &dyn Source) -> Option<CpuSet> {
    let names = src.list(ROOT).ok()?;
    let set: CpuSet = names.iter().filter_map(|n| n.strip_prefix("cpu")?.parse().ok()).filter(|n| *n < 65536).collect();
    (!set.is_empty()).then_some(set)
}

fn from_cpuinfo(src: &dyn Source) -> Option<CpuSet> {
    let bytes = src.read("/proc/cpuinfo").ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let number = |line: &str| line.strip_prefix("processor")?.trim_start().strip_prefix(':')?.trim().parse().ok();
    let set: CpuSet = text.lines().filter_map(number).filter(|n| *n < 65536).collect();
    (!set.is_empty()).then_some(set)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Tree;

    fn check(text: &str) -> (String, String, String) {
        let cpus = Cpus::read(&Tree::from_text(text));
        let show = |f: &Fact<CpuSet>| f.get().map_or("?".to_string(), CpuSet::to_string);
        (show(&cpus.present), show(&cpus.online), cpus.offline.to_string())
    }

    #[test]
    fn offline_is_present_minus_online() {
        let text = "//- /sys/devices/system/cpu/present\n0-7\n//- /sys/devices/system/cpu/online\n0-2,4-7\n";
        assert_eq!(check(text), ("0-7".into(), "0-2,4-7".into(), "3".into()));
    }

    #[test]
    fn a_set_of_cpus_is_said_with_its_extent() {
        let cpus = Cpus::read(&Tree::from_text("//- /sys/devices/system/cpu/online\n0-199\n"));
        let said = |list: &str| cpus.extent(&CpuSet::parse(list).unwrap());
        assert_eq!([said("0-199"), said("5"), said("0-3")], ["all 200 CPUs", "CPU 5 only", "4 of 200 CPUs (0-3)"]);
        let odd: CpuSet = (0..200).filter(|cpu| cpu % 2 == 1).collect();
        assert_eq!(cpus.extent(&odd), "100 of 200 CPUs");
        assert_eq!(Cpus::default().extent(&CpuSet::parse("0-3").unwrap()), "CPUs 0-3", "how many run is not known");
    }

    #[test]
    fn masked_sys_falls_back_to_cpuinfo() {
        assert_eq!(
            check("//- /proc/cpuinfo\nprocessor\t: 0\nprocessor\t: 1\n"),
            ("0-1".into(), "0-1".into(), String::new())
        );
        assert_eq!(check(""), ("?".into(), "?".into(), String::new()));
    }
}
