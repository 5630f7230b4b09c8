//! What has become of a setting whose file is not there any more, when it is to be put back.
//!
//! The kernel's attributes go with what they belong to. A removed device takes its setting along: when it comes back the
//! kernel makes a new one, with the values of a new one, so there is nothing left to put back. That is not so of a CPU
//! that is only offline (idle states and limits keep their values), nor of a network interface, which may have been moved
//! to another network namespace: both come back as they went. And it is not known of anything else: registers keep what
//! they hold when the driver that shows them is unloaded. Only what is known to be gone is called gone, and only where
//! what it was part of can be seen: on a machine whose /sys is not mounted nothing has gone.

use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::units::Cpu;
use wakewatt_host::sink::{Sink, SinkError};

/// Where a missing file's setting is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Nowhere: it has gone with its device, for these reasons.
    Gone(String),
    /// Out of reach; it may come back as it went.
    Away(String),
    /// Nobody knows.
    Unknown,
}

/// How often a CPU may go or come back between two looks at the same file.
pub(crate) const TRIES: usize = 3;

const CPUS: &str = "/sys/devices/system/cpu";
/// Folders whose entries come and go as devices do, and whose settings go with them.
const DEVICES: [&str; 3] = ["/sys/class/nvme/", "/sys/bus/pci/devices/", "/proc/irq/"];
const CGROUPS: &str = "/sys/fs/cgroup";

/// Judges the path of an entry whose file was said to be absent.
pub fn judge(sink: &dyn Sink, path: &str) -> Missing {
    if let Some(cpu) = cpu_of(path) {
        let listed = |file: &str| sink.read(&format!("{CPUS}/{file}")).ok().and_then(|t| CpuSet::parse(t.trim()).ok());
        return match (listed("present"), listed("online")) {
            (Some(present), Some(_)) if !present.contains(cpu) => {
                Missing::Gone(format!("CPU {cpu} is not there any more ({CPUS}/present)"))
            }
            (Some(_), Some(online)) if !online.contains(cpu) => {
                Missing::Away(format!("CPU {cpu} is offline and may come back with the value it had"))
            }
            _ => Missing::Unknown,
        };
    }
    let interface = path.strip_prefix("ethtool:").or_else(|| path.strip_prefix("/sys/class/net/"));
    if let Some(name) = interface.and_then(|rest| rest.split('/').next()) {
        return Missing::Away(format!(
            "interface {name} is not here; if it was moved to another network namespace it has kept the value"
        ));
    }
    if path.strip_prefix("partition:").is_some_and(|folder| folder.starts_with(CGROUPS)) {
        let is_mounted = is_there(sink, &format!("{CGROUPS}/cgroup.controllers"));
        return if is_mounted { Missing::Gone("the control group was removed".into()) } else { Missing::Unknown };
    }
    let device = DEVICES.iter().find_map(|folder| Some((*folder, path.strip_prefix(folder)?.split('/').next()?)));
    match device {
        Some((folder, name)) if is_there(sink, folder) && !is_there(sink, &format!("{folder}{name}")) => {
            Missing::Gone(format!("{folder}{name} is not there any more"))
        }
        _ => Missing::Unknown,
    }
}

/// A file's value; none where it is of a CPU that is offline or gone.
pub(crate) fn value(sink: &dyn Sink, path: &str) -> Result<Option<String>, SinkError> {
    let mut tries = 0..TRIES;
    loop {
        match sink.read(path) {
            Ok(value) => return Ok(Some(value)),
            Err(error) if error.is_absent => match judge(sink, path) {
                Missing::Gone(_) | Missing::Away(_) if cpu_of(path).is_some() => return Ok(None),
                _ if tries.next().is_some() => {}
                _ => return Err(error),
            },
            Err(error) => return Err(error),
        }
    }
}

/// A folder cannot be read as a file, which is another error than that of one that is not there.
fn is_there(sink: &dyn Sink, path: &str) -> bool {
    sink.read(path.trim_end_matches('/')).map_or_else(|error| !error.is_absent, |_| true)
}

/// The CPU whose file it is: its own folder, its frequency policy (which is named after its first), its registers.
fn cpu_of(path: &str) -> Option<Cpu> {
    if let Some((_, rest)) = path.strip_prefix("msr:").and_then(|rest| rest.split_once('@')) {
        return rest.split('/').next()?.parse().ok();
    }
    let rest = path.strip_prefix(CPUS)?.trim_start_matches('/');
    let folder = rest.strip_prefix("cpufreq/policy").or_else(|| rest.strip_prefix("cpu"))?;
    folder.split('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_host::sink::LiveSink;

    #[test]
    fn only_what_is_known_to_be_gone_is_called_gone() {
        let dir = tempfile::tempdir().unwrap();
        let sink = LiveSink::at(dir.path());
        let file = |path: &str, text: &str| {
            let file = dir.path().join(path.trim_start_matches('/'));
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        let nvme = "/sys/class/nvme/nvme0/power/pm_qos_latency_tolerance_us";
        let cpu = |n: u32| format!("{CPUS}/cpu{n}/cpuidle/state1/disable");
        // Nothing is mounted: nothing has gone.
        for path in [nvme, &cpu(1), "/proc/irq/7/smp_affinity_list", "partition:/sys/fs/cgroup/x", "/sys/other"] {
            assert_eq!(judge(&sink, path), Missing::Unknown, "{path}");
        }
        file(&format!("{CPUS}/present"), "0-2\n");
        file(&format!("{CPUS}/online"), "0,2\n");
        file("/sys/class/nvme/nvme1/x", "");
        file("/proc/irq/8/x", "");
        file("/sys/fs/cgroup/cgroup.controllers", "");
        let is_gone = |path: &str| matches!(judge(&sink, path), Missing::Gone(_));
        let is_away = |path: &str| matches!(judge(&sink, path), Missing::Away(_));
        assert!(is_gone(nvme) && is_gone("/proc/irq/7/smp_affinity_list") && is_gone("partition:/sys/fs/cgroup/x"));
        assert!(is_gone(&cpu(3)) && is_away(&cpu(1)) && is_away("msr:0x1b0@1/3:0"));
        assert!(is_away("ethtool:eth0/rx-usecs"));
        // Its driver was unloaded: registers may still hold the value. An interrupt that is there may forbid reading.
        for path in [cpu(0), "/sys/class/powercap/intel-rapl:0/x".into(), "msr:0x1b0@0/3:0".into()] {
            assert_eq!(judge(&sink, &path), Missing::Unknown, "{path}");
        }
        assert_eq!(judge(&sink, "/proc/irq/8/smp_affinity_list"), Missing::Unknown);
    }
}
