//! Which CPUs exist, and which of them are online. Every per-CPU domain starts from this.
//!
//! `/sys/devices/system/cpu/{present,online,possible}` (Documentation/ABI/testing/sysfs-devices-system-cpu). A tree
//! without them (a masked container, a partial recording) falls back to the `cpuN` folders, then to /proc/cpuinfo.

use crate::cpuset::CpuSet;
use crate::fact::{Fact, Gap, fact, parse};
use crate::source::Source;
use crate::units::Cpu;
use serde::Serialize;

/// The folder of everything per CPU.
pub const ROOT: &str = "/sys/devices/system/cpu";

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
    fn masked_sys_falls_back_to_cpuinfo() {
        assert_eq!(
            check("//- /proc/cpuinfo\nprocessor\t: 0\nprocessor\t: 1\n"),
            ("0-1".into(), "0-1".into(), String::new())
        );
        assert_eq!(check(""), ("?".into(), "?".into(), String::new()));
    }
}
