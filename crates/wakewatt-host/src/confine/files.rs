//! Landlock: files and TCP ports, whoever asks for them. It binds root, too, and what a capability would open.
//!
//! Version 1 came with Linux 5.13, ports with version 4 (6.7), commands to devices with 5 (6.10). What a kernel does not have is left out and said. Under it a process
//! may not look into others that are not confined (/proc/PID/fd), whatever capabilities it has.
//! Left out: signals (seccomp keeps them to this process), sockets without a name in the file system, which some service managers are told by.

use super::Needs;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, RulesetStatus,
};
use std::path::{Path, PathBuf};

/// The newest that is asked for.
const NEWEST: ABI = ABI::V5;
/// The first that knows ports.
const WITH_PORTS: i64 = 4;
/// The first that knows commands to devices, and so everything that is asked for.
const WHOLE: i64 = 5;

/// What is kept of files, and of ports.
pub(super) fn keep_only(needs: &Needs) -> (Result<String, String>, Result<String, String>) {
    if needs.looks_into_processes {
        let why = "not entered, because who is confined may not look at the open files of other processes";
        return (Err(why.into()), Err(why.into()));
    }
    let version = version();
    if version < 1 {
        let why = "this kernel has no Landlock (Linux 5.13, CONFIG_SECURITY_LANDLOCK, lsm=landlock)";
        return (Err(why.into()), Err(why.into()));
    }
    match enter(needs) {
        Err(why) => (Err(why.to_string()), Err(why.to_string())),
        Ok(RulesetStatus::NotEnforced) => {
            let why = "the kernel did not take the rules";
            (Err(why.into()), Err(why.into()))
        }
        Ok(_) => {
            let lacking = if version < WHOLE { format!(" (version {version} of {WHOLE})") } else { String::new() };
            let files = format!("reads {}; writes {}{lacking}", listed(&needs.read), listed(&needs.write));
            let ports = match (version >= WITH_PORTS, needs.connect.as_slice()) {
                (false, _) => {
                    Err(format!("this kernel's Landlock has version {version}; ports need {WITH_PORTS} (Linux 6.7)"))
                }
                (true, []) => Ok("connects to none, takes none more".into()),
                (true, ports) => {
                    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
                    Ok(format!("connects to {}, takes none more", ports.join(", ")))
                }
            };
            (Ok(files), ports)
        }
    }
}

fn enter(needs: &Needs) -> Result<RulesetStatus, RulesetError> {
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .create()?;
    // No program is started, so nothing is executed.
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let write = read | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile;
    for path in &needs.read {
        rules = allow(rules, path, read)?;
    }
    for path in &needs.write {
        rules = allow(rules, path, write)?;
    }
    for port in &needs.connect {
        rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
    }
    Ok(rules.restrict_self()?.ruleset)
}

/// What is not there need not be allowed: it still looks absent, not forbidden.
fn allow(rules: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> Result<RulesetCreated, RulesetError> {
    let Ok(fd) = PathFd::new(path) else { return Ok(rules) };
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
    rules.add_rule(PathBeneath::new(fd, access))
}

fn listed(paths: &[PathBuf]) -> String {
    let there: Vec<String> = paths.iter().filter(|path| path.exists()).map(|path| path.display().to_string()).collect();
    if there.is_empty() { "nothing".into() } else { there.join(", ") }
}

/// The version of this kernel's Landlock; 0 without one (landlock_create_ruleset(2), LANDLOCK_CREATE_RULESET_VERSION).
fn version() -> i64 {
    const ASK_VERSION: libc::c_uint = 1;
    // SAFETY: without attributes nothing is read, and nothing is made.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0usize, ASK_VERSION)
    };
    version.max(0)
}
