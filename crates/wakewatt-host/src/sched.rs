//! The state of a measuring thread: pinned, real-time where allowed, timers exact, memory locked.
//!
//! Timer slack of SCHED_OTHER adds 50 us to every sleep (MEASURE 2.9), so it is set to 1 ns; the kernel ignores slack
//! for SCHED_FIFO. What is refused is said in [`Scheduling::Other`], because then the numbers include the run queue.
//! All is put back on drop. Memory is locked for the process while at least one measuring thread lives.

use crate::affinity::Pinned;
use rustix::io;
use rustix::mm::{MlockAllFlags, mlockall, munlockall};
use rustix::thread::{current_timer_slack, set_current_timer_slack};
use std::num::NonZeroU64;
use std::sync::{Mutex, PoisonError};
use wakewatt_core::samples::Scheduling;
use wakewatt_core::units::Cpu;

static N_LOCKED: Mutex<usize> = Mutex::new(0);

/// A thread made fit to measure, until dropped.
#[derive(Debug)]
pub struct MeasuringThread {
    scheduling: Scheduling,
    slack_before: Option<NonZeroU64>,
    is_memory_locked: bool,
    _pinned: Option<Pinned>,
}

impl MeasuringThread {
    /// Pins the calling thread (if a CPU is named) and asks for SCHED_FIFO (if a priority is named). Only a refused
    /// pin is an error.
    pub fn enter(cpu: Option<Cpu>, fifo_priority: Option<u8>) -> io::Result<MeasuringThread> {
        let pinned = cpu.map(Pinned::to).transpose()?;
        let slack_before = current_timer_slack().ok().and_then(NonZeroU64::new);
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let scheduling = match fifo_priority {
            None => Scheduling::Other("SCHED_FIFO was not asked for".into()),
            Some(priority) => match set_fifo(priority) {
                Ok(()) => Scheduling::Fifo(priority),
                Err(why) => Scheduling::Other(format!(
                    "SCHED_FIFO priority {priority} was refused ({why}): needs root, CAP_SYS_NICE or ulimit -r"
                )),
            },
        };
        Ok(MeasuringThread { scheduling, slack_before, is_memory_locked: lock_memory(), _pinned: pinned })
    }

    /// How it is scheduled.
    pub fn scheduling(&self) -> &Scheduling {
        &self.scheduling
    }

    /// Is the memory of the process locked? If not, a page fault may add microseconds to a sample.
    pub fn is_memory_locked(&self) -> bool {
        self.is_memory_locked
    }
}

impl Drop for MeasuringThread {
    fn drop(&mut self) {
        if matches!(self.scheduling, Scheduling::Fifo(_)) {
            let _ = set_scheduler(libc::SCHED_OTHER, 0);
        }
        let _ = set_current_timer_slack(self.slack_before);
        if self.is_memory_locked {
            let mut n = N_LOCKED.lock().unwrap_or_else(PoisonError::into_inner);
            *n = n.saturating_sub(1);
            if *n == 0 {
                let _ = munlockall();
            }
        }
    }
}

/// Voluntary context switches of the calling thread so far: it grew across a wait exactly if the thread really slept.
pub fn n_voluntary_switches() -> i64 {
    // SAFETY: rusage is plain numbers, for which all zeros is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live, writable rusage, which the kernel fills and does not keep.
    let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    if result == 0 { usage.ru_nvcsw } else { 0 }
}

fn lock_memory() -> bool {
    let mut n = N_LOCKED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_locked = *n > 0 || mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).is_ok();
    *n += usize::from(is_locked);
    is_locked
}

fn set_fifo(priority: u8) -> std::io::Result<()> {
    // The kernel's range is 1 to 99; 0 would be a mistake of the caller and is refused by the kernel.
    set_scheduler(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, i32::from(priority))
}

fn set_scheduler(policy: i32, priority: i32) -> std::io::Result<()> {
    // musl keeps sched_setscheduler unimplemented on purpose (ENOSYS), so the system call is made directly.
    let param = priority;
    // SAFETY: struct sched_param is one int; the pointer is live and only read during the call; 0 is this thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const param) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slack_is_put_back_and_refusal_is_said() {
        let before = current_timer_slack().unwrap();
        {
            let thread = MeasuringThread::enter(None, Some(0)).unwrap();
            assert!(matches!(thread.scheduling(), Scheduling::Other(why) if why.contains("refused")));
            assert_eq!(current_timer_slack().unwrap(), 1);
        }
        assert_eq!(current_timer_slack().unwrap(), before);
        let n = n_voluntary_switches();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(n_voluntary_switches() > n);
    }
}
