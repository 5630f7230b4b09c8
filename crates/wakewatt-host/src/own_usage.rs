//! What this process itself costs: how often it was woken.
//!
//! A thread that waits gives up its CPU of its own accord; each such switch ends in one wake-up of the CPU it runs on, if
//! that slept. CPU time is in [`clock::own_cpu_ns`](crate::clock::own_cpu_ns).

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::OnceLock;

/// Voluntary context switches of all threads of this process; none where the kernel does not say.
pub fn n_wakeups() -> Option<u64> {
    u64::try_from(usage()?.ru_nvcsw).ok()
}

/// CPU time of all threads of this process so far: all of it, and the part in the kernel. The kernel divides a sum that
/// is exact by ticks that are not, so the part is good over seconds only.
pub fn cpu_ns() -> Option<(u64, u64)> {
    let usage = usage()?;
    let ns =
        |t: libc::timeval| Some(u64::try_from(t.tv_sec).ok()? * 1_000_000_000 + u64::try_from(t.tv_usec).ok()? * 1_000);
    let (user_ns, system_ns) = (ns(usage.ru_utime)?, ns(usage.ru_stime)?);
    Some((user_ns + system_ns, system_ns))
}

/// Memory of this process that is in RAM now; none where /proc is not there.
pub fn resident_bytes() -> Option<u64> {
    // Asked at every reading of an agent, so it stays open. What it says is of this process, whoever reads.
    static STATM: OnceLock<Option<File>> = OnceLock::new();
    let file = STATM.get_or_init(|| File::open("/proc/self/statm").ok()).as_ref()?;
    let mut bytes = [0; 128];
    let n = file.read_at(&mut bytes, 0).ok()?;
    let pages: u64 = std::str::from_utf8(bytes.get(..n)?).ok()?.split(' ').nth(1)?.parse().ok()?;
    pages.checked_mul(rustix::param::page_size() as u64)
}

fn usage() -> Option<libc::rusage> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is valid for writing one `rusage`, and is only read when the call says it has filled it; the zeroed
    // value would be valid as well.
    unsafe { (libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) == 0).then(|| usage.assume_init()) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn sleeping_counts() {
        let before = super::n_wakeups().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(super::n_wakeups().unwrap() > before);
    }

    #[test]
    fn the_kernels_part_is_no_more_than_all() {
        let (all, system) = super::cpu_ns().unwrap();
        assert!(all > 0 && system <= all);
    }
}
