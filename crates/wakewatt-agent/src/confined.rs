//! What the agent gives up between its start and its first answer: it has attached its probe and opened what it keeps open, and it answers strangers for months.
//!
//! Each thread does it (`wakewatt_host::confine` says what there is): the one that reads and answers when everything is attached and before anything else is read, so that the
//! first page says what the later ones can; the one that waits before it makes the one that pushes.

use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wakewatt_core::source::Source;
use wakewatt_core::watch::Layout;
use wakewatt_host::confine::{self, Capability, Guard, Held, Needs};
use wakewatt_lab::trace::WakeFeed;

/// What is read of this machine, now or later. What is not there need not be.
const MACHINE: [&str; 11] = [
    "/sys",
    "/proc",
    "/dev/cpu_dma_latency",
    "/dev/cpu_wakeup_latency",
    "/run/systemd/container",
    "/run/.containerenv",
    "/.dockerenv",
    // Names of those who pay.
    "/var/log/pods",
    "/var/log/containers",
    "/var/lib/docker/containers",
    "/var/lib/containers/storage/overlay-containers",
];
/// Where registers of CPUs are.
const REGISTERS: &str = "/dev/cpu";
/// Where addresses of names are looked for.
const NAMES: [&str; 2] = ["/etc/hosts", "/etc/resolv.conf"];

/// How much is given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Confine {
    /// Nothing, on purpose.
    No,
    /// All but what naming the holders of the latency limit takes: CAP_SYS_PTRACE, and no Landlock.
    Holders,
    /// All.
    #[default]
    Full,
}

/// One guard as people and programs see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Guarded {
    /// What is given up: capabilities, new_privileges, files, tcp_ports or system_calls.
    pub guard: &'static str,
    /// What is kept of it; none where it is not given up.
    pub kept: Option<String>,
    /// Why it is not given up; none where it is.
    pub not_because: Option<String>,
}

/// What was given up, and how the other threads do the same.
#[derive(Clone, Debug)]
pub(crate) struct Confined {
    needs: Option<Needs>,
    /// Each way.
    pub guards: Arc<[Guarded]>,
}

/// What is needed beside the machine.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// Files of certificates, which are replaced while the agent runs.
    pub renewed: Vec<PathBuf>,
    /// A port that is pushed to.
    pub port: Option<u16>,
}

/// Names the needs of an agent; what the machine says of capabilities comes later.
pub(crate) fn needs(how: Confine, tree: Option<&Path>, history: Option<&Path>, beside: &Beside) -> Needs {
    let mut read: Vec<PathBuf> = match tree {
        // The agent itself is looked at in /proc.
        Some(tree) => vec![tree.into(), "/proc".into()],
        None => MACHINE.iter().map(PathBuf::from).collect(),
    };
    for file in &beside.renewed {
        add_folders_of(&mut read, file);
    }
    if beside.port.is_some() {
        read.extend(NAMES.iter().map(PathBuf::from));
        // Written anew by whoever manages the network; where it is a link, so is the file behind it.
        add_folder_behind(&mut read, Path::new("/etc/resolv.conf"));
    }
    Needs {
        read,
        write: history.map(Path::to_path_buf).into_iter().collect(),
        // Answers of a name server that are too long for a datagram come over TCP.
        connect: beside.port.into_iter().flat_map(|port| [port, 53]).collect(),
        keep: Vec::new(),
        looks_into_processes: how == Confine::Holders,
    }
}

/// /dev/cpu_dma_latency is none.
fn is_register(path: &str) -> bool {
    Path::new(path).starts_with(REGISTERS)
}

/// A new file of that name, and what a link of that name leads to.
fn add_folders_of(read: &mut Vec<PathBuf>, file: &Path) {
    let file = &std::path::absolute(file).unwrap_or_else(|_| file.into());
    if let Some(folder) = file.parent() {
        add(read, folder.into());
    }
    add_folder_behind(read, file);
}

fn add_folder_behind(read: &mut Vec<PathBuf>, file: &Path) {
    let behind = std::fs::canonicalize(file).ok().filter(|_| file.is_symlink());
    if let Some(folder) = behind.as_deref().and_then(Path::parent) {
        add(read, folder.into());
    }
}

fn add(read: &mut Vec<PathBuf>, folder: PathBuf) {
    if !read.contains(&folder) {
        read.push(folder);
    }
}

impl Confined {
    /// Nothing was given up, because somebody wanted it so.
    pub(crate) fn not() -> Confined {
        let all = [Guard::Capabilities, Guard::NewPrivileges, Guard::Files, Guard::Ports, Guard::Calls];
        let guards = all.map(|guard| Guarded {
            guard: guard.word(),
            kept: None,
            not_because: Some("--confine none was asked for".into()),
        });
        Confined { needs: None, guards: guards.into() }
    }

    /// Confines the thread that reads, for what it still has to read of this machine or of a tree.
    pub(crate) fn here(
        mut needs: Needs,
        is_here: bool,
        layout: &Layout,
        feed: Option<&mut WakeFeed>,
        src: &dyn Source,
    ) -> Confined {
        // Root owns what only its owner may read.
        if !confine::is_root() {
            needs.keep.push(Capability::DacReadSearch);
        }
        // Where there are none now (the module is not loaded), reading them fails as it would anyway.
        if is_here && layout.files.iter().any(|file| is_register(file.path) && Path::new(&file.path).exists()) {
            needs.keep.push(Capability::SysRawio);
            needs.read.push(REGISTERS.into());
        }
        if needs.looks_into_processes {
            needs.keep.push(Capability::SysPtrace);
        }
        // Before Linux 6.0 every call of an unprivileged process is refused where loading is.
        if let Some(feed) = feed
            && !confine::works_without(Capability::Bpf, || feed.counted(src).is_ok())
        {
            needs.keep.push(Capability::Bpf);
        }
        let guards = confine::this_thread(&needs).into_iter().map(told).collect();
        Confined { needs: Some(needs), guards }
    }

    /// Confines another thread in the same way; an error says what it could not give up although the first one could.
    pub(crate) fn here_too(&self) -> Result<(), String> {
        let Some(needs) = &self.needs else { return Ok(()) };
        let guards: Vec<Guarded> = confine::this_thread(needs).into_iter().map(told).collect();
        let worse =
            guards.iter().zip(self.guards.iter()).find(|(here, there)| here.kept.is_none() && there.kept.is_some());
        match (worse, confine::n_unconfined()) {
            (Some((here, _)), _) => Err(format!("{}: {}", here.guard, here.not_because.clone().unwrap_or_default())),
            (None, Some(n)) if n > 0 => Err(format!("{n} threads hold more than the others")),
            _ => Ok(()),
        }
    }
}

fn told(held: Held) -> Guarded {
    let (kept, not_because) = match held.kept {
        Ok(kept) => (Some(kept), None),
        Err(why) => (None, Some(why)),
    };
    Guarded { guard: held.guard.word(), kept, not_because }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_no_register() {
        let all = ["/dev/cpu/0/msr", "/dev/cpu_dma_latency", "/dev/cpu_wakeup_latency", "/proc/stat"];
        assert_eq!(all.map(is_register), [true, false, false, false]);
    }

    #[test]
    fn a_renewed_file_may_be_a_new_one_behind_a_new_link() {
        let dir = tempfile::tempdir().unwrap();
        let folder = std::fs::canonicalize(dir.path()).unwrap();
        let at = |name: &str| folder.join(name);
        for name in ["live", "archive", "tree"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        std::fs::write(at("archive/key1.pem"), "x").unwrap();
        std::os::unix::fs::symlink("../archive/key1.pem", at("live/key.pem")).unwrap();
        let beside = Beside { renewed: vec![at("live/key.pem"), at("live/none.pem")], port: None };
        let needs = needs(Confine::Full, Some(&at("tree")), Some(&at("history")), &beside);
        assert_eq!(needs.read, [at("tree"), "/proc".into(), at("live"), at("archive")]);
        assert_eq!((needs.write, needs.connect), (vec![at("history")], Vec::new()));
        let pushing = Beside { renewed: vec!["own.crt".into()], port: Some(4318) };
        let needs = super::needs(Confine::Holders, None, None, &pushing);
        assert!(
            needs.read.contains(&"/etc/hosts".into()) && needs.read.contains(&std::env::current_dir().unwrap()),
            "{needs:?}"
        );
        assert_eq!((needs.connect, needs.looks_into_processes), (vec![4318, 53], true));
    }
}
