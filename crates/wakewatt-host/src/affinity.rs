//! Which CPUs this thread may run on, and pinning it to one for a while.
//!
//! rustix carries a mask of 1024 CPUs; on larger machines the CPUs above cannot be chosen and are reported so.

use rustix::io;
use rustix::process::Pid;
use rustix::thread::{CpuSet as Mask, sched_getaffinity, sched_getcpu, sched_setaffinity};
use std::collections::BTreeSet;
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
    sched_setaffinity(None, &mask(cpus)?)
}

/// Takes this CPU from the calling thread, unless it is the only one it has.
pub fn keep_off(cpu: Cpu) -> io::Result<()> {
    let others: CpuSet = allowed_cpus()?.iter().filter(|other| *other != cpu).collect();
    if others.is_empty() { Ok(()) } else { confine(&others) }
}

/// Leaves all threads of a process, and what they start from now on, only these CPUs. It has done so when no thread is left
/// that was not told: one that starts meanwhile may have begun with the CPUs of before.
pub fn confine_process(pid: u32, cpus: &CpuSet) -> io::Result<()> {
    let mask = mask(cpus)?;
    let mut told = BTreeSet::new();
    loop {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
        let tasks = tasks.map_err(|e| io::Errno::from_io_error(&e).unwrap_or(io::Errno::SRCH))?;
        let ids = tasks.flatten().filter_map(|task| task.file_name().to_str()?.parse::<i32>().ok());
        let new: Vec<i32> = ids.filter(|id| !told.contains(id)).collect();
        if new.is_empty() {
            return Ok(());
        }
        for id in new {
            told.insert(id);
            match sched_setaffinity(Pid::from_raw(id), &mask) {
                // It has ended meanwhile.
                Err(io::Errno::SRCH) => {}
                done => done?,
            }
        }
    }
}

fn mask(cpus: &CpuSet) -> io::Result<Mask> {
    let mut mask = Mask::new();
    for cpu in cpus.iter() {
        let cpu = usize::try_from(cpu).ok().filter(|cpu| *cpu < Mask::MAX_CPU).ok_or(io::Errno::INVAL)?;
        mask.set(cpu);
    }
    Ok(mask)
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
        sched_setaffinity(None, &mask(&[cpu].into_iter().collect())?)?;
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
    fn all_threads_of_a_process_are_confined() {
        let all = allowed_cpus().unwrap();
        let one: CpuSet = all.iter().take(1).collect();
        // This test's process has many threads, which other tests use: a child has to do.
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let confined = confine_process(child.id(), &one);
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        confined.unwrap();
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
        assert_eq!(CpuSet::parse(list.trim()).unwrap(), one);
        assert!(confine_process(child.id(), &one).is_err(), "it is gone");
        assert!(confine_process(std::process::id(), &[100_000].into_iter().collect()).is_err());
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

    #[test]
    fn who_keeps_off_a_cpu_has_all_the_others() {
        std::thread::spawn(|| {
            let before = allowed_cpus().unwrap();
            let first = before.first().unwrap();
            keep_off(first).unwrap();
            let left = allowed_cpus().unwrap();
            assert_eq!(left.contains(first), before.len() == 1);
            assert_eq!(left.len(), before.len().saturating_sub(1).max(1));
        })
        .join()
        .unwrap();
    }
}
