//! `hold:cpu_dma_latency`: a process of this program (`wakewatt hold LIMIT`) that holds the global latency limit.
//!
//! The kernel keeps the limit only while a file descriptor is open, so somebody has to live. The holder is found by its
//! command line and by the device being open in it, never by a remembered process number. Values: `none`, or what
//! `wakewatt hold` takes (`poll`, `50us`). Two live only if a change was cut short between start and stop; then both are
//! said (`20us 50us`), which equals neither. What other users hold open is hidden from all but root: then it is an error,
//! not `none`.

use super::{SinkError, refuse};
use crate::{clock, detached};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

const DEVICE: &str = "/dev/cpu_dma_latency";
const PATIENCE: Duration = Duration::from_secs(5);

/// The limit that a process with this command line holds, if it is a holder's (NUL between words, as in /proc).
pub fn limit_of(command_line: &[u8]) -> Option<String> {
    let words: Vec<&str> = std::str::from_utf8(command_line).ok()?.split('\0').collect();
    let [_, "hold", limit, ..] = words[..] else { return None };
    Some(limit.to_string())
}

/// The limits of all holders as one value.
pub fn together(mut limits: Vec<String>) -> String {
    limits.sort();
    limits.dedup();
    if limits.is_empty() { "none".into() } else { limits.join(" ") }
}

/// Is the program's file named like ours? Said of processes that cannot be looked into.
fn is_named_so(command_line: &[u8]) -> bool {
    let program = command_line.split(|b| *b == 0).next().unwrap_or_default();
    program.rsplit(|b| *b == b'/').next().is_some_and(|name| name.starts_with(b"wakewatt"))
}

/// The holders that live: process and limit. A zombie has no command line, so it is none.
fn holders(proc: &Path) -> Result<Vec<(u32, String)>, String> {
    let entries = std::fs::read_dir(proc).map_err(|e| format!("{}: {e}", proc.display()))?;
    let mut found = Vec::new();
    let mut hidden = None;
    for pid in entries.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok()) {
        let folder = proc.join(pid.to_string());
        let Ok(line) = std::fs::read(folder.join("cmdline")) else { continue };
        let Some(limit) = limit_of(&line) else { continue };
        match has_device(&folder.join("fd")) {
            Ok(true) => found.push((pid, limit)),
            Err(e) if e.kind() == ErrorKind::PermissionDenied && is_named_so(&line) => hidden = Some(pid),
            // No holder, a stranger's process, or one that has ended meanwhile.
            _ => {}
        }
    }
    match hidden {
        Some(pid) if found.is_empty() => Err(format!("needs root to see whether process {pid} still holds it")),
        _ => Ok(found),
    }
}

fn has_device(fds: &Path) -> std::io::Result<bool> {
    for fd in std::fs::read_dir(fds)?.flatten() {
        match std::fs::read_link(fd.path()) {
            Ok(to) if to == Path::new(DEVICE) => return Ok(true),
            // Listing may be allowed where following is not.
            Err(e) if e.kind() == ErrorKind::PermissionDenied => return Err(e),
            _ => {}
        }
    }
    Ok(false)
}

fn living() -> Result<Vec<(u32, String)>, String> {
    holders(Path::new("/proc"))
}

pub(super) fn read(path: &str) -> Result<String, SinkError> {
    let all = living().map_err(|why| refuse(path, why))?;
    Ok(together(all.into_iter().map(|(_, limit)| limit).collect()))
}

pub(super) fn write(path: &str, limit: &str) -> Result<(), SinkError> {
    let old = living().map_err(|why| refuse(path, why))?;
    if limit != "none" {
        start(limit, &old).map_err(|why| refuse(path, why))?;
    }
    for (pid, _) in &old {
        stop(*pid).map_err(|why| refuse(path, why))?;
    }
    Ok(())
}

fn start(limit: &str, old: &[(u32, String)]) -> Result<(), String> {
    let program =
        std::env::current_exe().map_err(|e| format!("this program cannot find itself to start a holder: {e}"))?;
    let argv = [program.display().to_string(), "hold".into(), limit.into()];
    detached::start(&argv, &unit(), "holds a wake-up latency limit")?;
    let began = Instant::now();
    let is_new = |(pid, _): &(u32, String)| old.iter().all(|(o, _)| o != pid);
    while !living()?.iter().any(is_new) {
        if began.elapsed() > PATIENCE {
            return Err(format!("the holder was started but does not hold {DEVICE}"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// A name of its own for every start: going back from one limit to another starts two in one process, and the first
/// may still live then.
fn unit() -> String {
    format!("wakewatt-hold-{}-{}", std::process::id(), clock::boottime_ns())
}

/// Ends a holder. The process is pinned by a pidfd before it is looked at once more, so that the signal cannot reach
/// another one that has got its number meanwhile; a holder that is stopped is killed, which loses nothing: the kernel
/// drops the limit with the process.
fn stop(pid: u32) -> Result<(), String> {
    let is_holding = || living().map(|all| all.iter().any(|(p, _)| *p == pid));
    let Some(target) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(()) };
    let pinned = match pidfd_open(target, PidfdFlags::empty()) {
        Ok(fd) => Some(fd),
        Err(Errno::SRCH) => return Ok(()),
        // Kernels before 5.3, and filters that know no pidfd: by number, right after the look.
        Err(_) => None,
    };
    for (signal, patience) in [(Signal::TERM, PATIENCE), (Signal::KILL, PATIENCE)] {
        if !is_holding()? {
            return Ok(());
        }
        let sent = match &pinned {
            Some(fd) => pidfd_send_signal(fd, signal),
            None => kill_process(target, signal),
        };
        match sent {
            Ok(()) => {}
            Err(Errno::SRCH) => return Ok(()),
            Err(e) => return Err(format!("process {pid} holds the limit and cannot be stopped: {e}")),
        }
        let began = Instant::now();
        while is_holding()? && began.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    if is_holding()? { Err(format!("process {pid} holds the limit and does not end, not even killed")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// A /proc with one process.
    fn process(proc: &Path, pid: u32, line: &str, opens: &str) {
        let fds = proc.join(format!("{pid}/fd"));
        std::fs::create_dir_all(&fds).unwrap();
        std::fs::write(proc.join(format!("{pid}/cmdline")), line).unwrap();
        symlink(opens, fds.join("3")).unwrap();
    }

    #[test]
    fn a_holder_is_a_command_line_and_an_open_device() {
        let dir = tempfile::tempdir().unwrap();
        process(dir.path(), 1, "/sbin/init\0", DEVICE);
        process(dir.path(), 2, "/opt/wakewatt\x00hold\x0050us\0", "/dev/null");
        process(dir.path(), 3, "", DEVICE);
        assert_eq!(holders(dir.path()).unwrap(), []);
        process(dir.path(), 4, "/opt/wakewatt\x00hold\x0050us\0", DEVICE);
        assert_eq!(holders(dir.path()).unwrap(), [(4, "50us".to_string())]);
        assert!(holders(&dir.path().join("none")).is_err());
        assert_eq!(together(Vec::new()), "none");
        assert_eq!(together(vec!["50us".into(), "20us".into(), "50us".into()]), "20us 50us");
        assert_ne!(unit(), unit());
    }

    #[test]
    fn who_is_no_holder_gets_no_signal() {
        let mut stranger = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        assert_eq!(stop(stranger.id()), Ok(()));
        let is_unhurt = stranger.try_wait().unwrap().is_none();
        stranger.kill().unwrap();
        stranger.wait().unwrap();
        assert!(is_unhurt);
        // Nor anybody when the number is nobody's.
        assert_eq!(stop(stranger.id()), Ok(()));
    }

    #[test]
    fn what_is_hidden_is_not_called_none() {
        let dir = tempfile::tempdir().unwrap();
        process(dir.path(), 8, "/usr/bin/crane\x00hold\x0050us\0", DEVICE);
        process(dir.path(), 9, "/usr/bin/wakewatt\x00hold\x0050us\0", DEVICE);
        let hide = |pid: u32, mode| {
            let fds = dir.path().join(format!("{pid}/fd"));
            std::fs::set_permissions(fds, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        [8, 9].iter().for_each(|pid| hide(*pid, 0));
        // Root looks everywhere; the answer of everybody else is asked where there is somebody else.
        if std::fs::read_dir(dir.path().join("9/fd")).is_err() {
            assert_eq!(holders(dir.path()).unwrap_err(), "needs root to see whether process 9 still holds it");
            hide(8, 0o700);
            assert_eq!(holders(dir.path()).unwrap().len(), 1, "who is seen holding it is an answer");
        }
        [8, 9].iter().for_each(|pid| hide(*pid, 0o700));
        assert_eq!(holders(dir.path()).unwrap().len(), 2);
    }
}
