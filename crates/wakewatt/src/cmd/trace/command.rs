//! The command that is traced: started so that not even its first wake-up is missed, waited for without waking anybody.
//!
//! The probe follows forks of this process while the command is started, so the child is known to the kernel before it
//! runs. Waiting is a poll on the child's pidfd: no timer ticks meanwhile.

use anyhow::{Context, Result};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::process::{Pid, PidfdFlags, Signal};
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;

/// A running command.
#[derive(Debug)]
pub(crate) struct Traced {
    child: Child,
    pidfd: OwnedFd,
    name: String,
    is_told: std::cell::Cell<bool>,
}

impl Traced {
    /// Starts it.
    pub(crate) fn start(command: &[OsString]) -> Result<Traced> {
        let (program, args) = command.split_first().context("no command")?;
        let name = program.to_string_lossy().into_owned();
        let mut command =
            wakewatt_host::environment::users(program).with_context(|| format!("{name}: could not be started"))?;
        let child = command.args(args).spawn().with_context(|| format!("{name}: could not be started"))?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("process id out of range")?;
        let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty()).context("pidfd_open")?;
        Ok(Traced { child, pidfd, name, is_told: Default::default() })
    }

    /// Its program.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Readable once it has ended.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Its thread group.
    pub(crate) fn tgid(&self) -> u32 {
        self.child.id()
    }

    /// Its exit code, once it has ended: as a shell would say it.
    pub(crate) fn ended(&mut self) -> Option<u8> {
        let status = self.child.try_wait().ok()??;
        let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(255);
        Some(u8::try_from(code & 0xff).unwrap_or(255))
    }

    /// Asks it to end, once: Ctrl-C has reached it through the terminal already, and it may need a moment.
    pub(crate) fn terminate(&self) {
        if self.is_told.replace(true) {
            return;
        }
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, Signal::TERM);
    }
}

#[cfg(test)]
mod tests {
    use super::super::watched::sleep_until;
    use super::*;
    use wakewatt_host::clock::monotonic_ns;

    fn code_of(script: &str) -> u8 {
        let mut traced = Traced::start(&["sh".into(), "-c".into(), script.into()]).unwrap();
        loop {
            sleep_until(monotonic_ns() + 1_000_000_000, &[traced.fd()]);
            if let Some(code) = traced.ended() {
                return code;
            }
        }
    }

    #[test]
    fn the_code_is_the_commands_own_and_a_signal_counts_as_in_a_shell() {
        assert_eq!((code_of("exit 7"), code_of("kill -9 $$")), (7, 137));
        let why = Traced::start(&["/no/such/program".into()]).unwrap_err().to_string();
        assert!(why.contains("/no/such/program"), "{why}");
    }
}
