//! Memory whose page size and node are known: what a memory measurement stands on.
//!
//! A latency without its page size is half a number: on one machine the same chase took 108 or 197 ns
//! (docs/methods/memory.md). So a region is asked for with 2 MB pages (MAP_HUGETLB, else transparent ones by madvise)
//! or with base pages only, and afterwards /proc/self/smaps is asked what was really given. The same for nodes: mbind
//! says where pages should lie, move_pages (without a target it only asks) says where they do. Everything is populated
//! before it is handed out, so no page fault falls into a measurement; by MADV_POPULATE_WRITE, since a touch of a
//! reserved page that the bound node's pool or the cgroup's limit does not have would be SIGBUS, and this is an error
//! (madvise(2), since Linux 5.14).

use std::io;
use std::ptr::NonNull;

/// One cache line of numbers; also the alignment every kernel relies on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(64))]
pub struct Line(pub [f64; 8]);

/// Bytes of a [`Line`].
pub const LINE_BYTES: usize = size_of::<Line>();

const HUGE_BYTES: usize = 2 << 20;
const MPOL_BIND: i32 = 2;
/// Words of a node mask: 1024 nodes, the kernel's largest.
const MASK_WORDS: usize = 1024 / usize::BITS as usize;

/// The page size wished for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageRequest {
    /// 2 MB pages, reserved ones first.
    Huge,
    /// Base pages, and nothing else.
    Base,
}

/// A private, zeroed, touched region.
#[derive(Debug)]
pub struct Pages {
    start: NonNull<u8>,
    mapped_bytes: usize,
    len_bytes: usize,
    is_reserved: bool,
}

// SAFETY: the region belongs to this value alone (private, anonymous), like a Box<[u8]>.
unsafe impl Send for Pages {}
// SAFETY: through a shared reference it can only be read.
unsafe impl Sync for Pages {}

impl Pages {
    /// Maps and touches `len_bytes` (rounded up to whole lines), on one memory node if one is named.
    pub fn map(len_bytes: usize, request: PageRequest, node: Option<u32>) -> io::Result<Pages> {
        let whole = len_bytes.max(LINE_BYTES).checked_next_multiple_of(HUGE_BYTES);
        let whole = whole.ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let reserved = if request == PageRequest::Huge { Pages::reserved(whole, node).ok() } else { None };
        let mut pages = match reserved {
            Some(pages) => pages,
            None => Pages::ordinary(whole, request, node)?,
        };
        pages.len_bytes = len_bytes.max(LINE_BYTES).next_multiple_of(LINE_BYTES);
        Ok(pages)
    }

    /// From the pool of 2 MB pages, whatever size is the default. Never touched to try it: without MADV_POPULATE_WRITE
    /// there are none.
    fn reserved(whole_bytes: usize, node: Option<u32>) -> io::Result<Pages> {
        let pages = Pages::raw(whole_bytes, libc::MAP_HUGETLB | libc::MAP_HUGE_2MB)?;
        node.map_or(Ok(()), |node| pages.bind(node))?;
        pages.advise(libc::MADV_POPULATE_WRITE)?;
        Ok(pages)
    }

    /// Transparent huge pages, or base pages.
    fn ordinary(whole_bytes: usize, request: PageRequest, node: Option<u32>) -> io::Result<Pages> {
        let mut pages = Pages::raw(whole_bytes, 0)?;
        // Refused where the kernel has no transparent huge pages: then there are none to ask for or to forbid.
        let _ = pages.advise(if request == PageRequest::Huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE });
        node.map_or(Ok(()), |node| pages.bind(node))?;
        match pages.advise(libc::MADV_POPULATE_WRITE) {
            Err(why) if why.raw_os_error() == Some(libc::ENOMEM) => return Err(why),
            // Not known to this kernel, or forbidden: as programs always did it.
            Err(_) => pages.touch(),
            Ok(()) => {}
        }
        Ok(pages)
    }

    fn advise(&self, advice: i32) -> io::Result<()> {
        // SAFETY: the range is our own mapping; the advice changes how it is backed, not what it holds.
        let result = unsafe { libc::madvise(self.start.as_ptr().cast(), self.mapped_bytes, advice) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn raw(whole_bytes: usize, flag: i32) -> io::Result<Pages> {
        // Transparent huge pages need 2 MB alignment, which mmap does not promise: map one more and start inside.
        let spare = if flag == 0 { HUGE_BYTES } else { 0 };
        let mapped_bytes = whole_bytes + spare;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flag;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches nothing that exists.
        let at =
            unsafe { libc::mmap(std::ptr::null_mut(), mapped_bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let unaligned = at as usize;
        let head = unaligned.next_multiple_of(HUGE_BYTES) - unaligned;
        // The spare ends are given back, so that len, smaps and munmap speak of the same range.
        let (head, tail) = if spare == 0 { (0, 0) } else { (head, spare - head) };
        // SAFETY: head + whole_bytes + tail is exactly the mapping made above; each unmapped part is page aligned
        // (2 MB minus a page-aligned address) and nobody holds a pointer into it.
        unsafe {
            if head > 0 {
                libc::munmap(at, head);
            }
            let start = at.cast::<u8>().add(head);
            if tail > 0 {
                libc::munmap(start.add(whole_bytes).cast(), tail);
            }
            let start = NonNull::new(start).ok_or_else(|| io::Error::other("mmap gave a null address"))?;
            Ok(Pages { start, mapped_bytes: whole_bytes, len_bytes: whole_bytes, is_reserved: flag != 0 })
        }
    }

    fn bind(&self, node: u32) -> io::Result<()> {
        let mut mask = [0usize; MASK_WORDS];
        let bit = node as usize;
        let word = mask.get_mut(bit / usize::BITS as usize).ok_or(io::ErrorKind::InvalidInput)?;
        *word = 1 << (bit % usize::BITS as usize);
        let n_bits = MASK_WORDS * usize::BITS as usize + 1;
        // SAFETY: the range is our own mapping; the mask is live and of the length told; policy and flags are plain.
        let result = unsafe {
            libc::syscall(libc::SYS_mbind, self.start.as_ptr(), self.mapped_bytes, MPOL_BIND, mask.as_ptr(), n_bits, 0)
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// One write per base page; the kernel finds and clears each now.
    fn touch(&mut self) {
        for line in self.lines_mut().iter_mut().step_by(4096 / LINE_BYTES) {
            // Volatile: a zero written over a zero would otherwise be left out.
            // SAFETY: the pointer comes from a live exclusive reference.
            unsafe { std::ptr::write_volatile(line, Line::default()) };
        }
    }

    /// Length asked for, in whole lines.
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// The region, to read.
    pub fn lines(&self) -> &[Line] {
        // SAFETY: len_bytes are mapped from start, zeroed by the kernel (any bits are f64), aligned to 2 MB, ours alone.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.len_bytes / LINE_BYTES) }
    }

    /// The region, to write.
    pub fn lines_mut(&mut self) -> &mut [Line] {
        // SAFETY: as in `lines`; the exclusive borrow of self makes this the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.len_bytes / LINE_BYTES) }
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// How many bytes lie in huge pages, by /proc/self/smaps; none where it cannot be told.
    pub fn huge_bytes(&self) -> Option<u64> {
        if self.is_reserved {
            return Some(self.len_bytes as u64);
        }
        let text = std::fs::read_to_string("/proc/self/smaps").ok()?;
        let start = self.start.as_ptr() as u64;
        huge_bytes_in(&text, start, start + self.mapped_bytes as u64)
    }

    /// Were they reserved huge pages (hugetlbfs), not transparent ones?
    pub fn is_reserved(&self) -> bool {
        self.is_reserved
    }

    /// Of up to 64 pages spread over the region: how many lie on this node, and how many were looked at.
    pub fn on_node(&self, node: u32) -> io::Result<(usize, usize)> {
        let n = (self.len_bytes / 4096).clamp(1, 64);
        let step = (self.len_bytes / n).next_multiple_of(LINE_BYTES);
        let at: Vec<*mut u8> =
            (0..n).map(|i| self.start.as_ptr().wrapping_add((i * step).min(self.len_bytes - 1))).collect();
        let mut status = vec![-1i32; n];
        // SAFETY: n addresses inside our mapping and n live places for the answers; no target nodes, so nothing moves.
        let result = unsafe {
            libc::syscall(libc::SYS_move_pages, 0, n, at.as_ptr(), std::ptr::null::<i32>(), status.as_mut_ptr(), 0)
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((status.iter().filter(|s| u32::try_from(**s) == Ok(node)).count(), n))
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: exactly our own mapping; no reference outlives self.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.mapped_bytes) };
    }
}

/// Sums AnonHugePages of the mappings inside `start..end` (the kernel may join neighbours or split ours).
fn huge_bytes_in(smaps: &str, start: u64, end: u64) -> Option<u64> {
    let (mut is_ours, mut is_found, mut sum) = (false, false, 0u64);
    for line in smaps.lines() {
        let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        if let Some((from, to)) = range.and_then(|(from, to)| Some((hex(from)?, hex(to)?))) {
            is_ours = from < end && to > start;
            is_found |= is_ours;
        } else if let Some(kib) = line.strip_prefix("AnonHugePages:").filter(|_| is_ours) {
            let kib: u64 = kib.trim().trim_end_matches("kB").trim().parse().ok()?;
            sum = sum.saturating_add(kib.saturating_mul(1024));
        }
    }
    is_found.then_some(sum.min(end.saturating_sub(start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_zero_aligned_and_gone_again() {
        for request in [PageRequest::Huge, PageRequest::Base] {
            let mut pages = Pages::map(5 << 20, request, None).unwrap();
            assert_eq!((pages.len_bytes(), pages.lines().len()), (5 << 20, (5 << 20) / 64));
            assert!(pages.lines().iter().all(|l| *l == Line::default()));
            assert_eq!(pages.lines().as_ptr() as usize % HUGE_BYTES, 0);
            pages.lines_mut()[81919].0[7] = 3.0;
            assert_eq!(pages.lines()[81919].0[7], 3.0);
            if request == PageRequest::Base {
                assert_eq!(pages.huge_bytes(), Some(0));
            }
        }
        assert!(Pages::map(usize::MAX - 10, PageRequest::Base, None).is_err());
    }

    #[test]
    fn reserved_pages_that_are_not_there_are_an_error_and_no_signal() {
        // More than any pool holds, and a node that is not there.
        assert!(Pages::reserved(1 << 46, None).is_err());
        assert!(Pages::reserved(HUGE_BYTES, Some(1000)).is_err());
        if let Ok(pages) = Pages::reserved(HUGE_BYTES, None) {
            assert!(pages.is_reserved() && pages.lines()[0] == Line::default());
        }
    }

    #[test]
    fn pages_lie_where_they_were_bound() {
        match Pages::map(1 << 20, PageRequest::Base, Some(0)) {
            // A kernel without NUMA, or a sandbox that forbids it.
            Err(why) => assert!(why.raw_os_error().is_some(), "{why}"),
            Ok(pages) => assert!(pages.on_node(0).is_err() || pages.on_node(0).unwrap() == (64, 64)),
        }
        assert!(Pages::map(4096, PageRequest::Base, Some(4000)).is_err(), "no such node");
    }

    #[test]
    fn smaps_are_summed_over_our_range_only() {
        let text = "1000-2000 rw-p 00000000 00:00 0\nSize: 4 kB\nAnonHugePages:  2048 kB\n\
                    2000-a00000 rw-p 0 00:00 0 \nAnonHugePages:    4096 kB\nb00000-c00000 r--p 0 00:00 0 /x\nAnonHugePages: 9 kB\n";
        assert_eq!(huge_bytes_in(text, 0x2000, 0xa0_0000), Some(4 << 20));
        assert_eq!(huge_bytes_in(text, 0xd0_0000, 0xe0_0000), None);
    }
}
