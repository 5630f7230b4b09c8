//! The per-CPU latency limit: `cpuN/power/pm_qos_resume_latency_us`, with its inverted zero.
//!
//! `0` means no limit and `n/a` means zero latency (that CPU polls), the opposite of the global device. The file is one
//! request shared by all of user space, owned by nobody, and stays after the writer's exit: so it is only ever written
//! inside a [`Transaction`].

use crate::transaction::{Setting, Transaction, TuneError};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::pm_qos::cpu_limit_path;
use wakewatt_core::units::LatencyLimit;

/// The settings to declare so that these limits may be written on these CPUs.
pub fn settings(cpus: &CpuSet, limits: &[LatencyLimit]) -> Vec<Setting> {
    let values: Vec<String> = limits.iter().map(|l| l.as_cpu_text()).collect();
    cpus.iter().map(|cpu| Setting { path: cpu_limit_path(cpu), values: values.clone() }).collect()
}

/// Writes the limit on every CPU of the set.
pub fn set(transaction: &Transaction<'_>, cpus: &CpuSet, limit: LatencyLimit) -> Result<(), TuneError> {
    cpus.iter().try_for_each(|cpu| transaction.set(&cpu_limit_path(cpu), &limit.as_cpu_text()))
}

/// Writes what was found back, within the transaction.
pub fn set_found(transaction: &Transaction<'_>, cpus: &CpuSet) -> Result<(), TuneError> {
    cpus.iter().try_for_each(|cpu| {
        let path = cpu_limit_path(cpu);
        let before = transaction.before(&path).unwrap_or("0").to_string();
        transaction.set(&path, &before)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_host::sink::LiveSink;

    #[test]
    fn no_limit_and_polling_are_written_the_kernels_way_and_put_back() {
        let dir = tempfile::tempdir().unwrap();
        let cpus = CpuSet::parse("0-1").unwrap();
        let file = |cpu: u32| dir.path().join(cpu_limit_path(cpu).trim_start_matches('/'));
        for cpu in cpus.iter() {
            std::fs::create_dir_all(file(cpu).parent().unwrap()).unwrap();
            std::fs::write(file(cpu), if cpu == 0 { "n/a\n" } else { "30\n" }).unwrap();
        }
        let live = LiveSink::at(dir.path());
        let declared = settings(&cpus, &[LatencyLimit::None, LatencyLimit::Poll]);
        let transaction =
            Transaction::begin(&live, dir.path(), &dir.path().join("j"), "test", &declared, None).unwrap();
        set(&transaction, &cpus, LatencyLimit::None).unwrap();
        assert_eq!(std::fs::read_to_string(file(0)).unwrap(), "0");
        set(&transaction, &cpus, LatencyLimit::Poll).unwrap();
        assert_eq!(std::fs::read_to_string(file(1)).unwrap(), "n/a");
        set_found(&transaction, &cpus).unwrap();
        assert!(transaction.undo().is_complete());
        assert_eq!(
            (std::fs::read_to_string(file(0)).unwrap().as_str(), std::fs::read_to_string(file(1)).unwrap().as_str()),
            ("n/a", "30")
        );
    }
}
