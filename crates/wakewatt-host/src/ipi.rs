//! A bare inter-processor interrupt, there and back: reading a counter that lives on another CPU.
//!
//! A software counter opened for one CPU (perf_event_open, pid -1) is read by running a function on that CPU
//! (kernel/events/core.c, perf_event_read -> smp_call_function_single), so a read from elsewhere takes as long as
//! waking that CPU, running a few instructions there and seeing the answer: no thread is switched in, and one clock
//! on one CPU measures it. A CPU that polls in idle is told through memory without any interrupt; that is its merit.
//! Needs perf_event_paranoid of 0 or less, or CAP_PERFMON.

use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::io;
use wakewatt_core::units::Cpu;

const PERF_TYPE_SOFTWARE: u32 = 1;
const PERF_COUNT_SW_CPU_CLOCK: u64 = 0;
const ATTR_SIZE_VER0: u32 = 64;
const PERF_FLAG_FD_CLOEXEC: u64 = 8;
const PERF_FORMAT_GROUP: u64 = 8;

/// The head of struct perf_event_attr, as far as version 0 goes (include/uapi/linux/perf_event.h).
#[repr(C)]
#[derive(Default)]
struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events_and_bp_type: u64,
    config1: u64,
}

/// Opens a counter of a thread (0 is the calling one) or of all (-1), on one CPU or any (-1).
pub(crate) fn open(kind: u32, config: u64, flags: u64, pid: i32, cpu: i32) -> io::Result<OwnedFd> {
    open_with(&Attr { kind, size: ATTR_SIZE_VER0, config, flags, ..Attr::default() }, pid, cpu, -1)
}

/// Opens a counter of one CPU that counts together with others or not at all: the leader's, or with none a leader. Reading
/// the leader gives them all at once.
pub(crate) fn open_in_group(kind: u32, config: u64, cpu: Cpu, leader: Option<&OwnedFd>) -> io::Result<OwnedFd> {
    let cpu = i32::try_from(cpu).map_err(io::Error::other)?;
    let attr = Attr { kind, size: ATTR_SIZE_VER0, config, read_format: PERF_FORMAT_GROUP, ..Attr::default() };
    open_with(&attr, -1, cpu, leader.map_or(-1, AsRawFd::as_raw_fd))
}

fn open_with(attr: &Attr, pid: i32, cpu: i32, group: i32) -> io::Result<OwnedFd> {
    // SAFETY: attr is 64 bytes as its size field says, live, and only read during the call; the rest are plain integers.
    let fd = unsafe {
        libc::syscall(libc::SYS_perf_event_open, std::ptr::from_ref(attr), pid, cpu, group, PERF_FLAG_FD_CLOEXEC)
    };
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave us this descriptor and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A counter on one CPU.
#[derive(Debug)]
pub struct RemoteCounter(OwnedFd);

impl RemoteCounter {
    /// Opens it on the CPU.
    pub fn on(cpu: Cpu) -> io::Result<RemoteCounter> {
        RemoteCounter::of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, cpu)
    }

    /// Opens another event there: a PMU's `type` file, and its event's `config`.
    pub(crate) fn of(kind: u32, config: u64, cpu: Cpu) -> io::Result<RemoteCounter> {
        let cpu = i32::try_from(cpu).map_err(io::Error::other)?;
        open(kind, config, 0, -1, cpu).map(RemoteCounter)
    }

    /// Reads it: from another CPU, one interrupt round trip.
    pub fn read(&self) -> io::Result<u64> {
        let mut value = [0u8; 8];
        rustix::io::read(&self.0, &mut value)?;
        Ok(u64::from_ne_bytes(value))
    }
}
