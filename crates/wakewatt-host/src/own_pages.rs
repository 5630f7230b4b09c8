//! Memory that a long-lived process needs no more: what its start, or a look at everything, has left behind.
//!
//! A page of the program's file that was run once stays counted as this process's memory (VmRSS) until the kernel is short of it, and around each
//! such page the kernel maps 64 KiB. For a process that starts with a hundred readers and then uses three for months that is most of what it seems
//! to need. Letting go costs a fault for each piece used again, which is in the page cache and not read from disk. Memory
//! that was allocated and given back is returned too, where the allocator can.

/// Lets go of the program's own file pages that nothing has written to, and of free memory. What is used again comes back by itself.
pub fn let_go() {
    for (start, length) in unwritten() {
        // SAFETY: the range is one segment of this program as the kernel loaded it, for reading (and running) only: not even the loader has
        // written to it, because relocations are made in writable segments. So each page comes back from the file as it was.
        unsafe { libc::madvise(start as *mut libc::c_void, length, libc::MADV_DONTNEED) };
    }
    #[cfg(target_env = "gnu")]
    // SAFETY: the allocator's own function, which may be called at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Start and length of the segments of this program that cannot be written to, in whole pages.
fn unwritten() -> Vec<(usize, usize)> {
    // SAFETY: reads two words that the kernel gave this process at its start.
    let (at, n) = unsafe { (libc::getauxval(libc::AT_PHDR), libc::getauxval(libc::AT_PHNUM)) };
    let (Ok(at), Ok(n)) = (usize::try_from(at), usize::try_from(n)) else { return Vec::new() };
    if at == 0 || n > 1000 {
        return Vec::new();
    }
    // SAFETY: the kernel says that the program's headers lie there, so many of them; they are never written to and stay for the life of the
    // process. Every bit pattern is one.
    let headers = unsafe { std::slice::from_raw_parts(at as *const Header, n) };
    let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    // Where the headers lie is also one of them: what the two differ by is where the program was put.
    let Some(own) = headers.iter().find(|header| header.p_type == libc::PT_PHDR) else { return Vec::new() };
    let Some(base) = at.checked_sub(number(own.p_vaddr)) else { return Vec::new() };
    let page = rustix::param::page_size();
    let readable = headers.iter().filter(|h| h.p_type == libc::PT_LOAD && h.p_flags & libc::PF_W == 0);
    let whole = readable.filter_map(|header| {
        let start = base.checked_add(number(header.p_vaddr))?;
        let end = start.checked_add(number(header.p_memsz))?;
        // Pages at the edges may belong to a neighbour as well.
        let (first, last) = (start.next_multiple_of(page), end / page * page);
        last.checked_sub(first).filter(|length| *length > 0).map(|length| (first, length))
    });
    whole.collect()
}

#[cfg(target_pointer_width = "64")]
type Header = libc::Elf64_Phdr;
#[cfg(target_pointer_width = "32")]
type Header = libc::Elf32_Phdr;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_constants_are_in_it_and_variables_are_not() {
        static WRITTEN: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(1);
        let all = unwritten();
        let holds = |at: usize| all.iter().any(|(start, length)| (*start..start + length).contains(&at));
        assert!(holds(let_go as fn() as usize), "{all:x?}");
        assert!(!holds(&raw const WRITTEN as usize) && !holds(&raw const all as usize), "{all:x?}");
        // A table of addresses is relocated at the start: it must not go back to what the file holds.
        static TABLE: [fn(); 1] = [let_go];
        assert!(!holds(TABLE.as_ptr() as usize), "{all:x?}");
    }

    #[test]
    fn what_is_let_go_comes_back() {
        // Other tests of this program take memory meanwhile, so one of many looks has to see less.
        let is_less = |_: u32| {
            let before = crate::own_usage::resident_bytes().unwrap();
            let_go();
            crate::own_usage::resident_bytes().unwrap() < before
        };
        assert!((0..1000).any(is_less));
        assert_eq!(format!("{:?}", [1.5f64, -2.0]), "[1.5, -2.0]");
    }
}
