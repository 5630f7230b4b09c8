//! A program that runs beside an arm: started when the arm is entered, ended when it is left, and no longer than we live.
//!
//! It gets nobody's terminal and nobody reads it. It is asked to end (SIGTERM), with all that it started in its group, and is
//! killed after three seconds. Whether it still runs is asked of its pidfd after each block: an agent that has ended costs nothing,
//! and a block without it would say so of the agent.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags};
use std::process::{Child, Stdio};
use std::time::Duration;
use wakewatt_host::affinity::allowed_cpus;
use wakewatt_host::bound::{bind, signal_group};
use wakewatt_host::environment;

/// One that ends within this time was never there.
const FIRST_LOOK: Duration = Duration::from_millis(300);
/// From asking to ending it.
const GRACE: Duration = Duration::from_secs(3);
const TERM: i32 = 15;
const KILL: i32 = 9;

/// A running program.
#[derive(Debug)]
pub(crate) struct Companion {
    child: Child,
    pidfd: OwnedFd,
    name: String,
}

impl Companion {
    /// Starts it, and looks whether it stays.
    pub(crate) fn start(argv: &[String]) -> Result<Companion, String> {
        let (program, arguments) = argv.split_first().ok_or("no program")?;
        let cannot = |e: &dyn std::fmt::Display| format!("{program}: could not be started: {e}");
        let mut command = environment::users(program).map_err(|e| cannot(&e))?;
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // On the CPUs that we may use, which is what it would have had anyway; the rest of `bind` is that it ends with us.
        let cpus = allowed_cpus().map_err(|e| cannot(&e))?;
        bind(&mut command, &cpus, None).map_err(|e| cannot(&e))?;
        let mut child = command.spawn().map_err(|e| cannot(&e))?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let opened = pid.ok_or("process id out of range".to_string()).and_then(|pid| {
            rustix::process::pidfd_open(pid, PidfdFlags::empty()).map_err(|e| format!("pidfd_open: {e}"))
        });
        let pidfd = opened.inspect_err(|_| {
            let _ = child.kill().and_then(|()| child.wait());
        })?;
        let mut companion = Companion { child, pidfd, name: program.clone() };
        if companion.has_ended_within(FIRST_LOOK) {
            let status = companion.child.wait().map_or_else(|e| e.to_string(), |status| status.to_string());
            return Err(format!("{program} ended at once ({status}); an agent has to stay, in the foreground"));
        }
        Ok(companion)
    }

    /// Why what was measured was not beside it; none while it runs.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.has_ended_within(Duration::ZERO).then(|| format!("{} ended while the block was measured", self.name))
    }

    fn has_ended_within(&self, time: Duration) -> bool {
        let part = |n: u128| i64::try_from(n).unwrap_or(i64::MAX);
        let limit = Timespec { tv_sec: part(time.as_secs().into()), tv_nsec: part(time.subsec_nanos().into()) };
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        // A signal cuts the wait short, and it has then not been seen to end.
        poll(&mut fds, Some(&limit)).is_ok_and(|n| n > 0)
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        let leader = self.child.id();
        let _ = signal_group(leader, TERM);
        if !self.has_ended_within(GRACE) {
            let _ = signal_group(leader, KILL);
        }
        // While it is not waited for, its number is nobody else's: what it left running in its group goes, too.
        let _ = signal_group(leader, KILL);
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn it_runs_until_dropped_with_all_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let line = format!("sleep 600 & echo $! > {}; wait", file.display());
        let companion = Companion::start(&words(&["sh", "-c", &line])).unwrap();
        assert_eq!(companion.trouble(), None);
        let inner: u32 = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
        assert!(std::path::Path::new(&format!("/proc/{inner}")).exists());
        drop(companion);
        // Whoever adopts it may take a moment to wait for it; a zombie runs no longer.
        let is_running = || {
            let stat = std::fs::read_to_string(format!("/proc/{inner}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ")
        };
        let until = std::time::Instant::now() + Duration::from_secs(20);
        while is_running() && std::time::Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(!is_running());
    }

    #[test]
    fn one_that_does_not_stay_is_an_error_that_says_so() {
        assert!(Companion::start(&words(&["false"])).unwrap_err().contains("ended at once"));
        assert!(Companion::start(&words(&["/no/such/agent"])).unwrap_err().contains("could not be started"));
        assert!(Companion::start(&[]).is_err());
    }

    #[test]
    fn one_that_will_not_end_is_killed_and_one_that_ended_is_noticed() {
        let deaf = Companion::start(&words(&["sh", "-c", "trap '' TERM; while :; do sleep 1; done"])).unwrap();
        drop(deaf);
        let short = Companion::start(&words(&["sleep", "0.8"])).unwrap();
        assert!(short.has_ended_within(Duration::from_secs(60)));
        assert!(short.trouble().unwrap().contains("sleep ended"));
    }
}
