//! What this process itself costs: how often it was woken.
//!
//! A thread that waits gives up its CPU of its own accord; each such switch ends in one wake-up of the CPU it runs on, if
//! that slept. CPU time is in [`clock::own_cpu_ns`](crate::clock::own_cpu_ns).

/// Voluntary context switches of all threads of this process; none where the kernel does not say.
pub fn n_wakeups() -> Option<u64> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is valid for writing one `rusage`, and is only read when the call says it has filled it; the zeroed
    // value would be valid as well.
    let usage = unsafe {
        if libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) != 0 {
            return None;
        }
        usage.assume_init()
    };
    u64::try_from(usage.ru_nvcsw).ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn sleeping_counts() {
        let before = super::n_wakeups().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(super::n_wakeups().unwrap() > before);
    }
}
