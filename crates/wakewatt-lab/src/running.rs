//! A command of the user's that is running or whose energy is measured: started as typed, waited for without waking anybody.
//!
//! Waiting is a poll on the child's pidfd: no timer ticks meanwhile.

use crate::context::Lab;
use crate::refusal::Refusal;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::process::{Pid, PidfdFlags, Signal};
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;

/// A running command.
#[derive(Debug)]
pub struct Running {
    child: Child,
    pidfd: OwnedFd,
    name: String,
    is_told: std::cell::Cell<bool>,
}

impl Running {
    /// Starts it.
    pub fn start(command: &[OsString]) -> Result<Running, Refusal> {
        let asked = |why: String| Refusal::Asked(format!("{why}; the command comes after --"));
        let (program, args) = command.split_first().ok_or_else(|| asked("no command".into()))?;
        let name = program.to_string_lossy().into_owned();
        let cannot = |e: &dyn std::fmt::Display| asked(format!("{name}: could not be started: {e}"));
        let mut command = wakewatt_host::environment::users(program).map_err(|e| cannot(&e))?;
        let child = command.args(args).spawn().map_err(|e| cannot(&e))?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| cannot(&"process id out of range"))?;
        let pidfd =
            rustix::process::pidfd_open(pid, PidfdFlags::empty()).map_err(|e| asked(format!("pidfd_open: {e}")))?;
        Ok(Running { child, pidfd, name, is_told: Default::default() })
    }

    /// Its program.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Readable once it has ended.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Its thread group.
    pub fn tgid(&self) -> u32 {
        self.child.id()
    }

    /// Its exit code, once it has ended: as a shell would say it.
    pub fn ended(&mut self) -> Option<u8> {
        let status = self.child.try_wait().ok()??;
        let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(255);
        Some(u8::try_from(code & 0xff).unwrap_or(255))
    }

    /// Asks it to end, once: Ctrl-C has reached it through the terminal already, and it may need a moment.
    pub fn terminate(&self) {
        if self.is_told.replace(true) {
            return;
        }
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, Signal::TERM);
    }
    /// Waits for its end, and hands an interruption on; its exit code.
    pub fn wait(&mut self, lab: Lab<'_>) -> u8 {
        loop {
            if let Some(code) = self.ended() {
                return code;
            }
            if lab.is_stopped() {
                self.terminate();
            }
            lab.clock.sleep_until(u64::MAX, &[self.fd()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{MachineClock, Unheard};
    use std::sync::atomic::AtomicBool;
    use wakewatt_core::source::Tree;

    fn code_of(script: &str, is_stopped: bool) -> u8 {
        let (src, stop, clock) = (Tree::default(), AtomicBool::new(is_stopped), MachineClock::default());
        let lab = Lab { src: &src, stop: &stop, tell: &Unheard, clock: &clock };
        Running::start(&["sh".into(), "-c".into(), script.into()]).unwrap().wait(lab)
    }

    #[test]
    fn the_code_is_the_commands_own_and_a_signal_counts_as_in_a_shell() {
        assert_eq!((code_of("exit 7", false), code_of("kill -9 $$", false)), (7, 137));
        assert_eq!(code_of("sleep 60 & wait", true), 143, "an interruption is handed on");
        let why = Running::start(&["/no/such/program".into()]).unwrap_err().to_string();
        assert!(why.contains("/no/such/program") && why.ends_with("comes after --"), "{why}");
    }
}
