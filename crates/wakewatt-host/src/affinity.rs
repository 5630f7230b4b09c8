//! Which CPUs this thread may run on, and pinning it to one for a while.
//!
//! rustix carries a mask of 1024 CPUs; on larger machines the CPUs above cannot be chosen and are reported so.

use rustix::io;
use rustix::thread::{CpuSet as Mask, sched_getaffinity, sched_getcpu, sched_setaffinity};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::units::Cpu;

/// The CPUs the calling thread may use: cpusets, taskset and containers included.
pub fn allowed_cpus() -> io::Result<CpuSet> {
    let mask = sched_getaffinity(None)?;
    Ok((0..Mask::MAX_CPU).filter(|&cpu| mask.is_set(cpu)).filter_map(|cpu| Cpu::try_from(cpu).ok()).collect())
}

/// The CPU the calling thread runs on now.
pub fn current_cpu() -> Cpu {
    Cpu::try_from(sched_getcpu()).unwrap_or(0)
}

/// Leaves the calling thread, and what it starts from now on, only these CPUs.
pub fn confine(cpus: &CpuSet) -> io::Result<()> {
    let mut mask = Mask::new();
    for cpu in cpus.iter() {
        let cpu = usize::try_from(cpu).ok().filter(|cpu| *cpu < Mask::MAX_CPU).ok_or(io::Errno::INVAL)?;
        mask.set(cpu);
    }
    sched_setaffinity(None, &mask)
}

/// Keeps the calling thread on one CPU until dropped, then gives it back the CPUs it had.
#[derive(Debug)]
pub struct Pinned {
    before: Mask,
    // A mask belongs to one thread: the guard must be dropped where it was made.
    _stays: std::marker::PhantomData<*const ()>,
}

impl Pinned {
    /// Pins the calling thread.
    pub fn to(cpu: Cpu) -> io::Result<Pinned> {
        let before = sched_getaffinity(None)?;
        let cpu = usize::try_from(cpu).ok().filter(|cpu| *cpu < Mask::MAX_CPU).ok_or(io::Errno::INVAL)?;
        let mut mask = Mask::new();
        mask.set(cpu);
        sched_setaffinity(None, &mask)?;
        Ok(Pinned { before, _stays: std::marker::PhantomData })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // A CPU that went offline meanwhile is no reason to fail; the kernel moves the thread itself.
        let _ = sched_setaffinity(None, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_and_put_back() {
        let before = allowed_cpus().unwrap();
        for cpu in before.iter() {
            let _pinned = Pinned::to(cpu).unwrap();
            assert_eq!(current_cpu(), cpu);
            assert_eq!(allowed_cpus().unwrap().len(), 1);
        }
        assert_eq!(allowed_cpus().unwrap(), before);
        assert!(Pinned::to(100_000).is_err());
    }

    #[test]
    fn a_thread_is_confined() {
        let all = allowed_cpus().unwrap();
        let one: CpuSet = all.iter().take(1).collect();
        let confined = one.clone();
        let seen = std::thread::spawn(move || confine(&confined).and_then(|()| allowed_cpus())).join().unwrap();
        assert_eq!(seen.unwrap(), one);
        assert_eq!(allowed_cpus().unwrap(), all);
        assert!(confine(&[100_000].into_iter().collect()).is_err());
    }
}
