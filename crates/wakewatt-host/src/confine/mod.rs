//! Giving up what a long-lived reader needs no more: what did somebody gain who took it over?
//!
//! A thread that has attached its probes and opened its meters gives away its privileges for good: capabilities (capabilities(7)), the files and
//! network ports it has no business with (Landlock, Documentation/userspace-api/landlock.rst), the system calls it never makes (seccomp(2)). Each is
//! tried by itself, as far as the kernel has it; what is missing is said, and the rest holds. Nothing here can be undone.
//!
//! All of it belongs to a thread, and is handed on to threads that it makes: so every thread that lives already has to do it, and
//! [`n_unconfined`] counts those that did not.

mod calls;
mod capabilities;
mod files;

pub use capabilities::{Capability, works_without};

use std::path::PathBuf;

/// What is still needed afterwards.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// Files, and folders with all below them, that are read.
    pub read: Vec<PathBuf>,
    /// Folders in which files are read, made, written and removed.
    pub write: Vec<PathBuf>,
    /// TCP ports of others that are spoken to.
    pub connect: Vec<u16>,
    /// Capabilities that are used later; only what is held already is kept.
    pub keep: Vec<Capability>,
    /// Goes without Landlock: under it no process may look at another one's open files.
    pub looks_into_processes: bool,
}

/// One way to give something up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Capabilities beyond those of any user.
    Capabilities,
    /// Privileges by starting a program (PR_SET_NO_NEW_PRIVS).
    NewPrivileges,
    /// Files (Landlock).
    Files,
    /// TCP ports (Landlock, version 4).
    Ports,
    /// System calls (seccomp).
    Calls,
}

impl Guard {
    /// As metrics and documents call it.
    pub fn word(self) -> &'static str {
        match self {
            Guard::Capabilities => "capabilities",
            Guard::NewPrivileges => "new_privileges",
            Guard::Files => "files",
            Guard::Ports => "tcp_ports",
            Guard::Calls => "system_calls",
        }
    }
}

/// How that went: what is kept, or why it does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Which one.
    pub guard: Guard,
    /// In words.
    pub kept: Result<String, String>,
}

/// Confines the calling thread, and those that it will make.
pub fn this_thread(needs: &Needs) -> Vec<Held> {
    let new_privileges = rustix::thread::set_no_new_privs(true);
    let capabilities = capabilities::keep_only(&needs.keep);
    let (files, ports) = files::keep_only(needs);
    // Last: the others make calls that it forbids.
    let calls = calls::keep_only(!needs.connect.is_empty());
    let words = |result: rustix::io::Result<()>| {
        result.map(|()| "none, whatever program is started".to_string()).map_err(|why| why.to_string())
    };
    vec![
        Held { guard: Guard::Capabilities, kept: capabilities },
        Held { guard: Guard::NewPrivileges, kept: words(new_privileges) },
        Held { guard: Guard::Files, kept: files },
        Held { guard: Guard::Ports, kept: ports },
        Held { guard: Guard::Calls, kept: calls },
    ]
}

/// Does root run this? It owns most of what only its owner may read.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Threads of this process that do not hold what the calling one holds; none where /proc does not say.
pub fn n_unconfined() -> Option<usize> {
    let held = |path: &std::path::Path| {
        let status = std::fs::read_to_string(path.join("status")).ok()?;
        let lines = status
            .lines()
            .filter(|line| ["CapPrm:", "CapEff:", "NoNewPrivs:", "Seccomp:"].iter().any(|name| line.starts_with(name)));
        Some(lines.map(str::to_string).collect::<Vec<String>>())
    };
    let own = held(std::path::Path::new("/proc/thread-self"))?;
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    // A thread that has just ended holds nothing any more.
    Some(tasks.flatten().filter_map(|task| held(&task.path())).filter(|other| *other != own).count())
}

#[cfg(test)]
mod tests;
