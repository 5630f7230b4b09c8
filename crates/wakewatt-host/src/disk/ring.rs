//! Reads through io_uring: a fixed number of slots, each with its own buffer, at most one read under way in each.
//!
//! Plain rings: no polling (it would keep the CPU awake, which is what is to be measured), no registered buffers, as
//! fio's defaults. One system call submits and waits. Forbidden by `kernel.io_uring_disabled` or a container's filter,
//! the ring cannot be made (EPERM, ENOSYS), and the caller takes `pread` instead.

use super::aligned::Aligned;
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::io;
use std::os::fd::AsRawFd;

/// Why no ring can be made here, if so.
pub fn refusal() -> Option<io::Error> {
    IoUring::new(1).err()
}

/// A ring that reads from one file.
pub struct ReadRing<'f> {
    ring: IoUring,
    file: BorrowedFd<'f>,
    buffers: Vec<Aligned>,
    block_bytes: u32,
    is_under_way: Vec<bool>,
}

impl<'f> ReadRing<'f> {
    /// `depth` slots for blocks of one size. To be used by the calling thread only.
    pub fn new(file: BorrowedFd<'f>, depth: u32, block_bytes: u32) -> io::Result<ReadRing<'f>> {
        // Newer kernels then need no interrupt of the thread to hand over a completion; older ones refuse the flags.
        let ring = IoUring::builder()
            .setup_coop_taskrun()
            .setup_single_issuer()
            .build(depth)
            .or_else(|e| if e.raw_os_error() == Some(libc::EINVAL) { IoUring::new(depth) } else { Err(e) })?;
        if !ring.params().is_feature_ext_arg() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "it cannot wait with a time-out before Linux 5.11"));
        }
        let buffers = (0..depth).map(|_| Aligned::new(block_bytes as usize)).collect();
        Ok(ReadRing { ring, file, buffers, block_bytes, is_under_way: vec![false; depth as usize] })
    }

    /// Queues a read into a slot; the next [`ReadRing::wait`] submits it. A slot that is busy or absent is refused.
    pub fn queue(&mut self, slot: u32, at_bytes: u64) -> io::Result<()> {
        let busy = || io::Error::from(Errno::BUSY);
        let index = slot as usize;
        let buffer = self.buffers.get_mut(index).ok_or_else(busy)?;
        if std::mem::replace(&mut self.is_under_way[index], true) {
            return Err(busy());
        }
        let into = buffer.bytes().as_mut_ptr();
        let read = opcode::Read::new(Fd(self.file.as_raw_fd()), into, self.block_bytes)
            .offset(at_bytes)
            .build()
            .user_data(u64::from(slot));
        // SAFETY: `into` points to `block_bytes` bytes of a boxed buffer owned by this ring. They are not touched, moved
        // or freed while the read is under way: `is_under_way` keeps the slot from being used twice, and `drop` waits for
        // every read or leaks the buffers. The descriptor is borrowed for longer than the ring lives.
        let pushed = unsafe { self.ring.submission().push(&read) };
        if pushed.is_err() {
            self.is_under_way[index] = false;
        }
        pushed.map_err(|_| busy())
    }

    /// Submits what is queued, and waits for a completion, at most so long (none: as long as it takes). A time-out or a
    /// signal is no error.
    pub fn wait(&mut self, at_most_ns: Option<u64>) -> io::Result<()> {
        let result = match at_most_ns {
            None => self.ring.submit_and_wait(1),
            Some(ns) => {
                #[allow(clippy::cast_possible_truncation)] // below 10^9
                let time = Timespec::new().sec(ns / 1_000_000_000).nsec((ns % 1_000_000_000) as u32);
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time))
            }
        };
        match result {
            Err(e) if !matches!(e.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => Err(e),
            _ => Ok(()),
        }
    }

    /// A completed read, if there is one: its slot, and the bytes that came.
    pub fn completed(&mut self) -> Option<(u32, rustix::io::Result<usize>)> {
        let entry = self.ring.completion().next()?;
        let slot = u32::try_from(entry.user_data()).unwrap_or(u32::MAX);
        if let Some(is_under_way) = self.is_under_way.get_mut(slot as usize) {
            *is_under_way = false;
        }
        let result = usize::try_from(entry.result()).map_err(|_| Errno::from_raw_os_error(-entry.result()));
        Some((slot, result))
    }
}

impl Drop for ReadRing<'_> {
    fn drop(&mut self) {
        while self.is_under_way.contains(&true) {
            if self.completed().is_none() && self.wait(None).is_err() {
                // The kernel may still write to them: memory is lost rather than handed to somebody else.
                std::mem::forget(std::mem::take(&mut self.buffers));
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn reads_arrive_and_a_busy_slot_is_refused() {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(
            &mut file,
            &(0..16384u32).map(|i| u8::try_from(i / 4096).unwrap()).collect::<Vec<_>>(),
        )
        .unwrap();
        let Ok(mut ring) = ReadRing::new(file.as_fd(), 2, 4096) else { return };
        ring.queue(0, 4096).unwrap();
        assert!(ring.queue(0, 0).is_err() && ring.queue(2, 0).is_err());
        ring.queue(1, 8192).unwrap();
        let mut done = Vec::new();
        while done.len() < 2 {
            ring.wait(Some(1_000_000_000)).unwrap();
            while let Some((slot, result)) = ring.completed() {
                assert_eq!(result, Ok(4096));
                assert!(ring.buffers[slot as usize].bytes().iter().all(|b| u32::from(*b) == slot + 1));
                done.push(slot);
            }
        }
        ring.wait(Some(1_000)).unwrap();
        assert!(ring.completed().is_none());
        ring.queue(0, 0).unwrap();
    }
}
