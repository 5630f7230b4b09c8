//! Fresh cache lines for two threads: pages mapped, touched and given back for one measurement, so that no earlier owner
//! decides on which memory node they lie.
//!
//! A page lies on the node of the CPU that touches it first (the default policy), so the thread that makes them must be
//! pinned already. `move_pages` without targets only asks where they came to lie (move_pages(2)).

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

/// The page of every machine this runs on divides into these.
const PAGE_BYTES: usize = 4096;
/// Two lines apart from every neighbour: prefetchers fetch lines in pairs.
const STRIDE_BYTES: usize = 256;

/// Some pages, one line of each in use.
#[derive(Debug)]
pub struct Lines {
    at: *mut u8,
    n: usize,
}

// SAFETY: the mapping is owned by this value alone, lives until it is dropped, and is only reached as atomics.
unsafe impl Send for Lines {}
// SAFETY: as above; shared access is to atomics.
unsafe impl Sync for Lines {}

impl Lines {
    /// So many lines in so many pages, touched by the calling thread.
    pub fn here(n: usize) -> io::Result<Lines> {
        let n = n.max(1);
        // SAFETY: a new private mapping at an address of the kernel's choice overlaps nothing.
        let at = unsafe {
            mmap_anonymous(std::ptr::null_mut(), n * PAGE_BYTES, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        }?;
        let lines = Lines { at: at.cast(), n };
        (0..n).for_each(|k| lines.line(k).store(0, Ordering::SeqCst));
        Ok(lines)
    }

    /// The line of a page, counted round; its place in the page differs from page to page, so that lines differ in their
    /// cache set and slice.
    pub fn line(&self, k: usize) -> &AtomicU32 {
        let k = k % self.n;
        let offset = k * PAGE_BYTES + (k * 5 % (PAGE_BYTES / STRIDE_BYTES)) * STRIDE_BYTES;
        // SAFETY: the offset is inside the mapping, which is page-aligned, so it is aligned for u32; the memory was
        // zeroed by the kernel, is only reached as atomics, and lives as long as `self`.
        unsafe { AtomicU32::from_ptr(self.at.add(offset).cast()) }
    }

    /// The memory node of the first page; none where the kernel does not say.
    pub fn node(&self) -> Option<u32> {
        let (pages, mut status) = ([self.at], [-1i32]);
        // SAFETY: one page address and one status word, both live; without target nodes nothing is moved.
        let result = unsafe {
            libc::syscall(
                libc::SYS_move_pages,
                0,
                1usize,
                pages.as_ptr(),
                std::ptr::null::<i32>(),
                status.as_mut_ptr(),
                0,
            )
        };
        if result == 0 { u32::try_from(status[0]).ok() } else { None }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `here` with this length, and no reference to it outlives `self`.
        let _ = unsafe { munmap(self.at.cast(), self.n * PAGE_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_apart_and_somewhere() {
        let lines = Lines::here(16).unwrap();
        let at: Vec<usize> = (0..16).map(|k| std::ptr::from_ref(lines.line(k)) as usize).collect();
        assert!(at.windows(2).all(|w| w[1] - w[0] >= STRIDE_BYTES));
        lines.line(3).store(7, Ordering::Relaxed);
        assert_eq!((lines.line(19).load(Ordering::Relaxed), lines.line(4).load(Ordering::Relaxed)), (7, 0));
        assert!(lines.node().is_none_or(|node| node < 4096));
    }
}
