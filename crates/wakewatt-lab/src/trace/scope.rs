//! Whose wake-ups: what was asked to what the probe understands, checked while a mistake can still be explained.

use super::Whose;
use super::watched::{self, Watched};
use crate::refusal::Refusal;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use wakewatt_core::samples::traced_whose::{TracedProcess, TracedWhose};
use wakewatt_probes::namespace;
use wakewatt_probes::wake::Scope;

/// Where cgroups are mounted.
pub(super) const CGROUPS: &str = "/sys/fs/cgroup";

/// The scope, its name for people, and what to watch for its end.
pub(super) fn of(whose: &Whose) -> Result<(Scope, TracedWhose, Watched), Refusal> {
    let nobody = || Watched::new(Vec::new(), None);
    match whose {
        Whose::Machine => Ok((Scope::Machine, TracedWhose::Machine, nobody())),
        Whose::Processes(pids) => {
            // Opened before it is looked at, so that both are the same process.
            let opened = pids.iter().filter_map(|pid| Some((*pid, watched::process(*pid)?))).collect();
            let named: Result<Vec<TracedProcess>, Refusal> = pids.iter().map(|pid| process(*pid)).collect();
            let scope = Scope::Processes { tgids: pids.clone(), is_following: false };
            Ok((scope, TracedWhose::Processes(named?), Watched::new(opened, None)))
        }
        Whose::Cgroup(path) => {
            let (scope, name, folder) = cgroup(path)?;
            Ok((scope, name, Watched::new(Vec::new(), Some(folder))))
        }
        Whose::Command(words) => {
            let program = words.first().map(|word| word.to_string_lossy()).unwrap_or_default();
            // The command's id is not known yet: forks of this process are followed while it starts.
            let scope = Scope::Processes { tgids: vec![std::process::id()], is_following: true };
            Ok((scope, TracedWhose::Command(program.into_owned()), nobody()))
        }
    }
}

/// The kernel's own process ids are what the probe sees; inside a PID namespace ours are others.
pub(super) fn same_process_ids(scope: &Scope) -> Result<(), Refusal> {
    if matches!(scope, Scope::Processes { .. }) && !namespace::has_kernel_process_ids() {
        return Err(Refusal::Unavailable(
            "/proc/self/ns/pid: inside a PID namespace process ids are not the kernel's; run with the host's (hostPID)"
                .into(),
        ));
    }
    if matches!(scope, Scope::Cgroup { .. }) && !namespace::has_kernel_cgroup_paths() {
        return Err(Refusal::Unavailable(
            "/proc/self/ns/cgroup: inside a cgroup namespace paths do not start at the kernel's root; run with the host's"
                .into(),
        ));
    }
    Ok(())
}

fn process(pid: u32) -> Result<TracedProcess, Refusal> {
    let wrong = |why: String| Refusal::Asked(format!("--pid {pid}: {why}"));
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))
        .map_err(|_| wrong("no such process (it may have ended)".into()))?;
    let field = |key: &str| status.lines().find_map(|l| l.strip_prefix(key)).map(|v| v.trim().to_string());
    match field("Tgid:") {
        Some(tgid) if tgid != pid.to_string() => {
            Err(wrong(format!("that is a thread of process {tgid}; name the process")))
        }
        _ => Ok(TracedProcess { pid, name: field("Name:").unwrap_or_else(|| "?".into()) }),
    }
}

fn cgroup(given: &Path) -> Result<(Scope, TracedWhose, PathBuf), Refusal> {
    let wrong = |why: String| Refusal::Asked(format!("--cgroup {}: {why}", given.display()));
    let root = cgroup_root()
        .ok_or_else(|| wrong(format!("no cgroup version 2 hierarchy is mounted under {CGROUPS}; use --pid instead")))?;
    let candidates = [given.to_path_buf(), root.join(given.strip_prefix("/").unwrap_or(given))];
    let inside = |p: &PathBuf| p.starts_with(&root) && p.join("cgroup.procs").is_file();
    let Some(folder) = candidates.iter().filter_map(|p| p.canonicalize().ok()).find(inside) else {
        return Err(wrong(format!("no such cgroup below {}", root.display())));
    };
    let id = std::fs::metadata(&folder).map_err(|e| wrong(e.to_string()))?.ino();
    let below = folder.strip_prefix(&root).unwrap_or(&folder);
    let level = u32::try_from(below.components().count()).unwrap_or(0);
    let name = TracedWhose::Cgroup(format!("/{}", below.display()));
    Ok((Scope::Cgroup { id, level }, name, folder))
}

/// Where cgroup version 2 is mounted: the whole folder, or `unified` beside version 1 (hybrid).
pub(super) fn cgroup_root() -> Option<PathBuf> {
    let found = [CGROUPS.to_string(), format!("{CGROUPS}/unified")];
    found.into_iter().map(PathBuf::from).find(|p| p.join("cgroup.controllers").is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_not_there_is_named() {
        let why = process(4_194_304).unwrap_err().to_string();
        assert!(why.contains("--pid 4194304: no such process"), "{why}");
        assert!(process(std::process::id()).unwrap().pid == std::process::id());
        let why = cgroup(Path::new("no/such/group")).unwrap_err().to_string();
        assert!(why.contains("no such cgroup") || why.contains("no cgroup version 2"), "{why}");
    }
}
