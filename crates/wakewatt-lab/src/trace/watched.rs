//! Whoever is traced may be gone before the trace is: a process exits, a cgroup is removed.
//!
//! A process is watched through its pidfd, so its exit ends the waiting at once and no second process that gets the same
//! id is ever counted. A cgroup is looked for at each window's end. When nobody is left the trace ends, says so, and
//! shows what it has. Sleeping is one poll on all of these, on the command, and on what signals write to.

use crate::context::Clock;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::process::{Pid, PidfdFlags};
use std::os::fd::AsFd;
use std::path::PathBuf;

/// What is watched.
#[derive(Debug)]
pub(super) struct Watched {
    processes: Vec<(u32, OwnedFd)>,
    cgroup: Option<PathBuf>,
    gone: Vec<String>,
}

/// Opens a process so that its end is noticed; none when there is no such process.
pub(super) fn process(pid: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()
}

impl Watched {
    /// Of these processes, or of the cgroup in this folder.
    pub(super) fn new(processes: Vec<(u32, OwnedFd)>, cgroup: Option<PathBuf>) -> Watched {
        Watched { processes, cgroup, gone: Vec::new() }
    }

    /// Sleeps until the time, a signal, the end of a watched process, or of the command.
    pub(super) fn sleep_until(&self, clock: &dyn Clock, at_ns: u64, command: Option<BorrowedFd<'_>>) {
        let processes = self.processes.iter().map(|(_, fd)| fd.as_fd());
        clock.sleep_until(at_ns, &processes.chain(command).collect::<Vec<_>>());
    }

    /// Processes that have ended since the last call.
    pub(super) fn ended(&mut self) -> Vec<u32> {
        let is_over = |fd: &OwnedFd| poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&ZERO)).is_ok_and(|n| n > 0);
        let (over, left) = std::mem::take(&mut self.processes).into_iter().partition(|(_, fd)| is_over(fd));
        self.processes = left;
        let over: Vec<u32> = Vec::from_iter(over.into_iter().map(|(pid, _): (u32, OwnedFd)| pid));
        self.gone.extend(over.iter().map(|pid| format!("process {pid} ended")));
        over
    }

    /// Looks whether the cgroup is still there.
    pub(super) fn look(&mut self) {
        if let Some(folder) = self.cgroup.take_if(|folder| !folder.exists()) {
            self.gone.push(format!("cgroup {} was removed", folder.display()));
        }
    }

    /// Who is gone, in words, and is nobody left to be traced?
    pub(super) fn gone(&self) -> (&[String], bool) {
        (&self.gone, !self.gone.is_empty() && self.processes.is_empty() && self.cgroup.is_none())
    }
}

const ZERO: rustix::time::Timespec = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::MachineClock;

    #[test]
    fn who_ends_is_noticed_at_once_and_said() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let pid = child.id();
        let mut watched = Watched::new(vec![(pid, process(pid).unwrap())], None);
        assert!(watched.ended().is_empty() && !watched.gone().1);
        child.kill().unwrap();
        let (clock, start_ns) = (MachineClock::default(), MachineClock::default().now_ns());
        watched.sleep_until(&clock, start_ns + 600_000_000_000, None);
        assert!(clock.now_ns() - start_ns < 300_000_000_000);
        assert_eq!(watched.ended(), [pid]);
        assert_eq!(watched.gone(), (&[format!("process {pid} ended")][..], true));
        child.wait().unwrap();
        assert!(process(pid).is_none() || process(u32::MAX).is_none());
    }

    #[test]
    fn a_removed_cgroup_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let mut watched = Watched::new(Vec::new(), Some(folder.path().to_path_buf()));
        watched.look();
        assert!(!watched.gone().1);
        drop(folder);
        watched.look();
        assert!(watched.gone().1 && watched.gone().0[0].contains("was removed"));
    }
}
