//! Latency limits in force: the per-CPU resume limit, and who holds the global one open.
//!
//! `cpuN/power/pm_qos_resume_latency_us` has an inverted zero: `0` is *no limit*, `n/a` is *zero latency*, so that CPU
//! polls for ever (Documentation/ABI/testing/sysfs-devices-power). `/dev/cpu_dma_latency` is the global limit, in force
//! while a process holds it open; reading it gives the effective minimum as a binary s32, and opening it needs root.
//! Opening it would itself register a request of "no limit" and is harmless, but holders can only be named by walking
//! `/proc/*/fd` (see the `holders` topic).

use super::{Cpus, Domain, cpus::ROOT};
use crate::fact::{Fact, Gap, GapKind, PerCpu};
use crate::sheet::{Cell, Sheet};
use crate::source::Source;
use crate::units::LatencyLimit;
use serde::Serialize;
use wakewatt_words::word;

/// The character device of the global limit.
pub const GLOBAL: &str = "/dev/cpu_dma_latency";
/// Its second device, in kernels from 6.19 that are built with it: enters the same minimum, and limits suspend-to-idle too.
pub const WAKEUP: &str = "/dev/cpu_wakeup_latency";

/// The path of one CPU's limit.
pub fn cpu_limit_path(cpu: crate::units::Cpu) -> String {
    format!("{ROOT}/cpu{cpu}/power/pm_qos_resume_latency_us")
}

/// Limits on wake-up latency (PM QoS) and who holds them.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PmQos {
    /// The effective global limit: the minimum over all requests.
    pub global: Fact<LatencyLimit>,
    /// The limit of the second device, which also holds for suspend-to-idle; a gap where the kernel has none.
    pub wakeup: Fact<LatencyLimit>,
    /// The per-CPU limit as set from user space.
    pub per_cpu: PerCpu<LatencyLimit>,
}

/// Parses the per-CPU file.
pub fn parse_cpu_limit(text: &str) -> Result<LatencyLimit, String> {
    match text.trim() {
        "n/a" => Ok(LatencyLimit::Poll),
        "0" => Ok(LatencyLimit::None),
        other => match other.parse::<u64>() {
            Ok(us) => Ok(LatencyLimit::AtMostNs(us.saturating_mul(1000))),
            Err(_) => Err("expected microseconds, 0 (no limit) or n/a (zero latency)".to_string()),
        },
    }
}

/// Parses what reading [`GLOBAL`] gives: a binary s32.
pub fn parse_global(bytes: &[u8]) -> Result<LatencyLimit, String> {
    match <[u8; 4]>::try_from(bytes).map(i32::from_ne_bytes) {
        Ok(0) => Ok(LatencyLimit::Poll),
        Ok(us @ 1..2_000_000_000) => Ok(LatencyLimit::AtMostNs(u64::from(us.unsigned_abs()) * 1000)),
        Ok(2_000_000_000..) => Ok(LatencyLimit::None),
        Ok(_) => Err("negative limit".into()),
        Err(_) => Err(format!("expected 4 bytes, found {}", bytes.len())),
    }
}

impl Domain for PmQos {
    const TITLE: &'static str = "Latency limits (PM QoS)";
    const HELP: &'static str = "the global and per-CPU wake-up latency limits in force";

    fn read(src: &dyn Source, cpus: &Cpus) -> PmQos {
        let device = |path: &str| match src.read(path) {
            Err(error) => Fact::Gap(Gap::from_read(path, &error)),
            Ok(bytes) => match parse_global(&bytes) {
                Ok(limit) => Fact::Known(limit),
                Err(reason) => Fact::Gap(Gap::malformed(path, reason)),
            },
        };
        let (global, wakeup) = (device(GLOBAL), device(WAKEUP));
        PmQos { global, wakeup, per_cpu: PerCpu::read(src, cpus.all(), cpu_limit_path, parse_cpu_limit) }
    }

    fn show(&self, sheet: &mut Sheet) {
        sheet.fact("qos.global", word!("global limit (effective)"), &self.global, |v| Cell::text(v));
        // Most kernels are built without it, which is no gap worth a line.
        if self.wakeup.gap().is_none_or(|gap| !matches!(gap.kind, GapKind::Absent | GapKind::NotRecorded)) {
            sheet.fact("qos.wakeup", word!("limit of cpu_wakeup_latency"), &self.wakeup, |v| Cell::text(v));
        }
        sheet.per_cpu("qos.per_cpu", word!("per-CPU limit"), &self.per_cpu, |v| Cell::text(v));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Tree;

    #[test]
    fn the_inverted_zero_is_read_right() {
        let mut tree = Tree::from_text(
            "//- /sys/devices/system/cpu/online\n0-2\n//- /sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us\n0\n
             //- /sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us\nn/a\n
             //- /sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us\n30\n",
        );
        tree.files.insert(GLOBAL.into(), Ok(0i32.to_ne_bytes().to_vec()));
        let qos = PmQos::read(&tree, &Cpus::read(&tree));
        let limits: Vec<LatencyLimit> = qos.per_cpu.known().map(|(_, l)| *l).collect();
        assert_eq!(limits, [LatencyLimit::None, LatencyLimit::Poll, LatencyLimit::AtMostNs(30_000)]);
        assert_eq!(qos.global.get(), Some(&LatencyLimit::Poll));
    }

    #[test]
    fn a_denied_global_limit_is_a_gap() {
        let tree = Tree::from_text("//- /sys/devices/system/cpu/online\n0\n//- /dev/cpu_dma_latency!denied\n");
        assert!(PmQos::read(&tree, &Cpus::read(&tree)).global.gap().is_some());
    }
}
