//! Who else has a hand on the machine: processes that hold a latency limit open, and daemons that turn the same knobs.
//!
//! The kernel does not say who asked for a limit; the only way is to look at every process's open files. Without root
//! only one's own processes can be looked at, so the number of the others is kept as a gap: "nobody holds it" may be
//! said only when there is none. With `hidepid` other users' processes are not even listed. Names come from
//! /proc/PID/comm, which the kernel cuts at 15 characters. Command lines and environments are never read.

use super::{Cpus, Domain};
use crate::fact::{Fact, Gap, GapKind};
use crate::sheet::{Cell, Sheet};
use crate::source::{ErrorKind, Source};
use serde::Serialize;
use wakewatt_words::{say, word};

/// More processes than this are not walked.
const MAX_PROCESSES: usize = 50_000;

/// A program known to change what wakewatt looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Daemon {
    /// Its name as /proc/PID/comm has it: at most 15 characters.
    pub comm: &'static str,
    /// Its full name.
    pub name: &'static str,
    /// What it may change behind one's back.
    pub overlaps: &'static [&'static str],
}

/// The daemons looked for.
pub const DAEMONS: &[Daemon] = &[
    Daemon {
        comm: "tuned",
        name: "TuneD",
        overlaps: &["latency limit", "governor", "EPP", "EPB", "turbo", "sysctls", "command line"],
    },
    Daemon { comm: "tuned-ppd", name: "TuneD (power-profiles interface)", overlaps: &["TuneD profile"] },
    Daemon {
        comm: "power-profiles-",
        name: "power-profiles-daemon",
        overlaps: &["EPP", "EPB", "turbo", "platform profile"],
    },
    Daemon { comm: "tlp", name: "TLP", overlaps: &["governor", "EPP", "EPB", "turbo", "ASPM", "runtime suspend"] },
    Daemon { comm: "auto-cpufreq", name: "auto-cpufreq", overlaps: &["governor", "EPP", "turbo", "frequency limits"] },
    Daemon { comm: "thermald", name: "thermald", overlaps: &["power limits", "frequency limits", "turbo"] },
    Daemon {
        comm: "pwrapis",
        name: "powerapi (openEuler)",
        overlaps: &["governor", "frequency limits", "latency limit", "idle states"],
    },
    Daemon { comm: "scx_p2dq", name: "scx_p2dq", overlaps: &["latency limit (per CPU)"] },
    Daemon { comm: "scx_bpfland", name: "scx_bpfland", overlaps: &["latency limit (per CPU)"] },
    Daemon { comm: "scx_loader", name: "scx_loader", overlaps: &["scheduler, and with it latency limits"] },
    Daemon { comm: "irqbalance", name: "irqbalance", overlaps: &["interrupt affinity"] },
    Daemon { comm: "cpupower", name: "cpupower", overlaps: &["governor", "frequency limits", "idle states"] },
    Daemon { comm: "cpufreqd", name: "cpufreqd", overlaps: &["governor", "frequency limits"] },
    Daemon { comm: "cpuspeed", name: "cpuspeed", overlaps: &["governor", "frequency"] },
    Daemon { comm: "laptop_mode", name: "laptop-mode-tools", overlaps: &["governor", "ASPM", "runtime suspend"] },
    Daemon { comm: "lmt-poll", name: "laptop-mode-tools (poll)", overlaps: &["governor", "runtime suspend"] },
    Daemon {
        comm: "intel_lpmd",
        name: "Intel Low Power Mode Daemon",
        overlaps: &["EPP", "CPU affinity", "idle states"],
    },
    Daemon { comm: "slimbookbattery", name: "Slimbook Battery", overlaps: &["TLP", "EPP"] },
    Daemon { comm: "system76-power", name: "system76-power", overlaps: &["governor", "turbo", "platform profile"] },
    Daemon { comm: "gamemoded", name: "GameMode", overlaps: &["governor"] },
    Daemon { comm: "asusd", name: "asusctl", overlaps: &["EPP", "platform profile"] },
    Daemon { comm: "kubelet", name: "kubelet", overlaps: &["CPU quotas", "CPU affinity"] },
    Daemon {
        comm: "crio",
        name: "CRI-O",
        overlaps: &["governor", "latency limit (annotations)", "CPU quotas", "interrupt affinity"],
    },
    Daemon { comm: "containerd", name: "containerd", overlaps: &["CPU quotas"] },
    Daemon { comm: "dockerd", name: "Docker", overlaps: &["CPU quotas"] },
    Daemon { comm: "numad", name: "numad", overlaps: &["NUMA placement"] },
    Daemon { comm: "ksmtuned", name: "ksmtuned", overlaps: &["page merging"] },
];

/// Processes that matter.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Holders {
    /// Who holds which file open.
    pub open: Vec<Holder>,
    /// Known daemons that run.
    pub daemons: Vec<RunningDaemon>,
    /// How many processes were looked at.
    pub n_processes: Fact<u64>,
    /// How many refused to be looked at.
    pub n_denied: u64,
    /// Why the list of holders may not be complete.
    pub unseen: Option<Gap>,
}

/// A process that holds one of the files open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Holder {
    /// Number of the process.
    pub pid: u32,
    /// Its name, cut at 15 characters by the kernel; none if it could not be read.
    pub comm: Option<String>,
    /// The file it holds open.
    pub path: String,
}

/// A daemon that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunningDaemon {
    /// Number of the process.
    pub pid: u32,
    /// Full name of the daemon.
    pub name: String,
    /// What it may change.
    pub overlaps: Vec<String>,
}

impl Holders {
    /// Holders of a latency limit; none (not empty) when nobody was seen but somebody could not be looked at.
    pub fn of_latency_limit(&self) -> Option<Vec<&Holder>> {
        let is_limit = |h: &&Holder| is_limit(&h.path);
        let found: Vec<&Holder> = self.open.iter().filter(is_limit).collect();
        let is_sure = self.unseen.is_none() && self.n_processes.is_known();
        (is_sure || !found.is_empty()).then_some(found)
    }

    /// Does a daemon of that name (of [`DAEMONS`]) run? None where /proc could not be read.
    pub fn runs(&self, name: &str) -> Option<bool> {
        self.n_processes.get().map(|_| self.daemons.iter().any(|d| d.name == name))
    }
}

fn is_limit(path: &str) -> bool {
    matches!(path, "/dev/cpu_dma_latency" | "/dev/cpu_wakeup_latency")
}

/// Is this a file whose holders matter?
pub fn is_watched(path: &str) -> bool {
    let is_msr = path.strip_prefix("/dev/cpu/").and_then(|rest| rest.strip_suffix("/msr")).is_some();
    is_limit(path) || is_msr
}

impl Domain for Holders {
    const TITLE: &'static str = "Holders and daemons";
    const HELP: &'static str = "who holds /dev/cpu_dma_latency open; tuning daemons that turn the same knobs";

    fn read(src: &dyn Source, _: &Cpus) -> Holders {
        let mut found = Holders::default();
        let names = match src.list("/proc") {
            Ok(names) => names,
            Err(error) => {
                found.n_processes = Fact::Gap(Gap::from_read("/proc", &error));
                return found;
            }
        };
        let mut pids: Vec<u32> = names.iter().filter_map(|n| n.parse().ok()).collect();
        pids.sort_unstable();
        let n_left_out = pids.len().saturating_sub(MAX_PROCESSES);
        pids.truncate(MAX_PROCESSES);
        for pid in &pids {
            found.look_at(src, *pid);
        }
        found.n_processes = Fact::Known(pids.len() as u64);
        let gap = |kind, reason| Some(Gap { kind, path: "/proc/*/fd".into(), reason });
        if found.n_denied > 0 {
            let reason = format!("{} of {} processes may not be looked at", found.n_denied, pids.len());
            found.unseen = gap(GapKind::Denied, reason);
        } else if n_left_out > 0 {
            let reason = format!("only the first {MAX_PROCESSES} processes were looked at, {n_left_out} were not");
            found.unseen = gap(GapKind::NotRead, reason);
        } else if pids.is_empty() {
            found.unseen = gap(GapKind::NotRecorded, "no process is listed".into());
        }
        found
    }

    fn show(&self, sheet: &mut Sheet) {
        sheet.fact("holders.processes", word!("processes looked at"), &self.n_processes, |v| Cell::Count(*v));
        if let Some(row) = sheet.rows.last_mut() {
            row.is_counter = true;
        }
        for holder in &self.open {
            let name = holder.comm.as_deref().unwrap_or("?");
            let text = format!("{name} (pid {})", holder.pid);
            sheet.say(format!("holders.{}", holder.path), say!("{} held by", holder.path), Cell::Text(text));
        }
        if let Some(gap) = &self.unseen {
            sheet.fact("holders.unseen", word!("other holders"), &Fact::<u64>::Gap(gap.clone()), |v| Cell::Count(*v));
        }
        for daemon in &self.daemons {
            let text = format!("runs; may change: {}", daemon.overlaps.join(", "));
            sheet.say(format!("holders.daemon.{}", daemon.name), daemon.name.clone(), Cell::Text(text));
        }
    }
}

impl Holders {
    fn look_at(&mut self, src: &dyn Source, pid: u32) {
        let comm = src.read(&format!("/proc/{pid}/comm")).ok();
        let comm = comm.map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_string());
        if let Some(daemon) = comm.as_deref().and_then(|comm| DAEMONS.iter().find(|d| d.comm == comm)) {
            let is_new = self.daemons.iter().all(|d| d.name != daemon.name);
            if is_new && !daemon.overlaps.is_empty() {
                let overlaps = daemon.overlaps.iter().map(|o| (*o).to_string()).collect();
                self.daemons.push(RunningDaemon { pid, name: daemon.name.into(), overlaps });
            }
        }
        let folder = format!("/proc/{pid}/fd");
        let files = match src.list(&folder) {
            Ok(files) => files,
            Err(error) => {
                // A process that ended meanwhile is absent and holds nothing.
                self.n_denied += u64::from(error.kind == ErrorKind::Denied);
                return;
            }
        };
        for file in files {
            let target = match src.link(&format!("{folder}/{file}")) {
                Ok(target) => target,
                // Listing may be allowed where following is not (ptrace rules); one refusal stands for all.
                Err(error) if error.kind == ErrorKind::Denied => {
                    self.n_denied += 1;
                    return;
                }
                Err(_) => continue,
            };
            let is_known = |h: &Holder| h.pid == pid && h.path == target;
            if is_watched(&target) && !self.open.iter().any(is_known) {
                self.open.push(Holder { pid, comm: comm.clone(), path: target });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{ReadError, Tree};

    const TEXT: &str =
        "//- /proc/12/comm\ntuned\n//- link /proc/12/fd/0 /dev/null\n//- link /proc/12/fd/7 /dev/cpu_dma_latency\n
        //- link /proc/12/fd/8 /dev/cpu/3/msr\n//- /proc/900/comm\npower-profiles-\n//- /proc/loadavg\n0\n";

    #[test]
    fn names_the_holder_and_the_daemons() {
        let mut tree = Tree::from_text(TEXT);
        tree.folders.insert("/proc/900/fd".into(), Ok(Vec::new()));
        let holders = Holders::read(&tree, &Cpus::default());
        let limit = holders.of_latency_limit().unwrap();
        assert_eq!((limit.len(), limit[0].pid, limit[0].comm.as_deref()), (1, 12, Some("tuned")));
        assert_eq!(holders.open.len(), 2);
        assert_eq!(holders.runs("power-profiles-daemon"), Some(true));
        assert_eq!(holders.runs("TLP"), Some(false));
        assert!(holders.unseen.is_none());
    }

    #[test]
    fn what_could_not_be_looked_at_is_a_gap() {
        let mut tree = Tree::from_text("//- /proc/1/comm\nsystemd\n");
        tree.folders.insert("/proc/1/fd".into(), Err(ReadError::new(ErrorKind::Denied, "Permission denied")));
        let holders = Holders::read(&tree, &Cpus::default());
        assert_eq!(holders.unseen.as_ref().unwrap().reason, "1 of 1 processes may not be looked at");
        assert_eq!(holders.of_latency_limit(), None, "nobody seen is not nobody");
        let nothing = Holders::read(&Tree::default(), &Cpus::default());
        assert_eq!((nothing.of_latency_limit(), nothing.runs("TuneD")), (None, None));
    }

    #[test]
    fn every_name_fits_what_the_kernel_keeps() {
        assert!(DAEMONS.iter().all(|d| d.comm.len() <= 15));
    }
}
