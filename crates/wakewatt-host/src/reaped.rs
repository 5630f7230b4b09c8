//! A child that has ended: how, and what CPU time it took with all its children that it waited for.
//!
//! `wait4` tells of one child, where RUSAGE_CHILDREN would add whatever else this process has started. What a command leaves
//! running behind it is in neither.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// An ended child.
#[derive(Clone, Copy, Debug)]
pub struct Reaped {
    /// How it ended.
    pub status: ExitStatus,
    /// CPU time in user mode.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
}

/// Takes an ended child's remains; none while it runs. After this its number may be another process's.
pub fn reap(pid: u32) -> io::Result<Option<Reaped>> {
    let pid = i32::try_from(pid).map_err(io::Error::other)?;
    let mut status = 0i32;
    // SAFETY: rusage is plain numbers, for which all zeros is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live, writable values of the right types, which the kernel fills and does not keep.
    match unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage) } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        _ => Ok(Some(Reaped {
            status: ExitStatus::from_raw(status),
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
        })),
    }
}

fn ns(time: libc::timeval) -> u64 {
    let part = |n: i64| u64::try_from(n).unwrap_or(0);
    part(time.tv_sec).saturating_mul(1_000_000_000).saturating_add(part(time.tv_usec) * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    #[allow(clippy::zombie_processes)] // `reap` is what waits
    fn the_time_of_its_children_counts() {
        let script = "i=0; (while [ $i -lt 20000 ]; do i=$((i+1)); done); exit 7";
        let child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let ended = loop {
            match reap(child.id()).unwrap() {
                Some(ended) => break ended,
                None => std::thread::sleep(std::time::Duration::from_millis(2)),
            }
        };
        assert_eq!(ended.status.code(), Some(7));
        assert!(ended.user_ns + ended.system_ns > 1_000_000, "{ended:?}");
        assert!(reap(child.id()).is_err(), "only once");
    }
}
