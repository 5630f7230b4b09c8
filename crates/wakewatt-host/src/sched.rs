//! The state of a measuring thread: pinned, real-time where allowed, timers exact, memory locked.
//!
//! Timer slack of SCHED_OTHER adds 50 us to every sleep (docs/methods/README.md), so it is set to 1 ns; the kernel
//! ignores slack for SCHED_FIFO. What is refused is said in [`Scheduling::Other`], because then the numbers include the
//! run queue. All is put back on drop, the scheduling to what it was before: policy, priority, nice value and whether
//! children inherit it (a container runtime or `chrt` may have chosen them). Memory is locked for the process while at
//! least one measuring thread lives.

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
    /// How the thread was scheduled before; none where nothing was changed.
    before: Option<Attributes>,
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
        let before = if fifo_priority.is_some() { attributes() } else { Ok(Attributes::default()) };
        let scheduling = match fifo_priority {
            None => Scheduling::Ordinary,
            // What could not be put back is not changed.
            Some(priority) => match before.as_ref().map_err(ToString::to_string).and_then(|_| set_fifo(priority)) {
                Ok(()) => Scheduling::Fifo(priority),
                Err(why) => Scheduling::Other(format!(
                    "SCHED_FIFO priority {priority} was refused ({why}): needs root, CAP_SYS_NICE or ulimit -r"
                )),
            },
        };
        let before = before.ok().filter(|_| matches!(scheduling, Scheduling::Fifo(_)));
        Ok(MeasuringThread { scheduling, before, slack_before, is_memory_locked: lock_memory(), _pinned: pinned })
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
        if let Some(before) = &self.before {
            put_back(before);
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

/// `struct sched_attr` in its first version: policy, flags, nice, priority, and the times of SCHED_DEADLINE.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// Its size is what the kernel calls SCHED_ATTR_SIZE_VER0.
const SIZE: u32 = 48;
const RESET_ON_FORK: u64 = 1;

/// How the calling thread is scheduled.
fn attributes() -> std::io::Result<Attributes> {
    let mut found = Attributes { size: SIZE, ..Attributes::default() };
    // SAFETY: the pointer is to a live, writable struct of the size given, which the kernel fills; 0 is this thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut found, SIZE, 0) };
    if result == 0 { Ok(Attributes { size: SIZE, ..found }) } else { Err(std::io::Error::last_os_error()) }
}

fn set(wanted: &Attributes) -> std::io::Result<()> {
    // SAFETY: the pointer is to a live struct whose size it carries, which is only read during the call; 0 is this thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, std::ptr::from_ref(wanted), 0) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

fn put_back(before: &Attributes) {
    if set(before).is_err() {
        // Without CAP_SYS_NICE the kernel does not take "children get the default" back; the rest it does.
        let _ = set(&Attributes { flags: before.flags | RESET_ON_FORK, ..*before });
    }
}

fn set_fifo(priority: u8) -> Result<(), String> {
    // The kernel's range is 1 to 99; 0 would be a mistake of the caller and is refused by the kernel.
    let policy = u32::try_from(libc::SCHED_FIFO).unwrap_or(1);
    let fifo =
        Attributes { size: SIZE, policy, flags: RESET_ON_FORK, priority: priority.into(), ..Attributes::default() };
    set(&fifo).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_testing::{Lacks, skipped};

    #[test]
    fn scheduling_is_put_back_as_it_was_found() {
        // In a thread of its own: scheduling is the thread's.
        let tried = std::thread::spawn(|| {
            let batch = u32::try_from(libc::SCHED_BATCH).unwrap();
            let chosen =
                Attributes { size: SIZE, policy: batch, nice: 7, flags: RESET_ON_FORK, ..Attributes::default() };
            set(&chosen).unwrap();
            // Newer kernels also tell a slice; what was found is what counts.
            let found = attributes().unwrap();
            assert_eq!((found.policy, found.nice, found.flags), (batch, 7, RESET_ON_FORK));
            let thread = MeasuringThread::enter(None, Some(1)).unwrap();
            let was_fifo = matches!(thread.scheduling(), Scheduling::Fifo(1));
            drop(thread);
            assert_eq!(attributes().unwrap(), found);
            was_fifo
        });
        if !tried.join().unwrap() {
            let test = "scheduling_is_put_back_as_it_was_found";
            skipped(test, Lacks::Here, "SCHED_FIFO is not allowed here, so nothing had to be put back");
        }
        // A real-time thread that somebody else has made stays one.
        std::thread::spawn(|| {
            if set_fifo(2).is_ok() {
                drop(MeasuringThread::enter(None, Some(1)).unwrap());
                assert_eq!(attributes().unwrap().priority, 2);
            }
        })
        .join()
        .unwrap();
    }

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
