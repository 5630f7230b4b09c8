//! A command that starts with its CPUs and its memory node already chosen, as `numactl --cpunodebind --membind` does.
//!
//! Both are set between fork and exec and are inherited by everything the command starts. Where the kernel has no memory
//! policies, or a sandbox forbids them, the start fails with the system's answer: a copy that only seems bound would
//! prove nothing.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use wakewatt_core::cpuset::CpuSet;

const MPOL_BIND: i32 = 2;
/// 1024 nodes and 8192 CPUs, the kernel's largest.
const NODE_WORDS: usize = 16;
const CPU_WORDS: usize = 128;

/// Makes a command start on these CPUs, with its memory on this node only, in a process group of its own. It is told to end
/// (SIGTERM) when the thread that started it ends, however that comes; what it started itself is its own business.
pub fn bind(command: &mut Command, cpus: &CpuSet, node: Option<u32>) -> io::Result<()> {
    let mut cpu_mask = [0u64; CPU_WORDS];
    for cpu in cpus.iter() {
        set(&mut cpu_mask, cpu)?;
    }
    let mut node_mask = [0u64; NODE_WORDS];
    if let Some(node) = node {
        set(&mut node_mask, node)?;
    }
    tie(command);
    let before_exec = move || {
        // SAFETY: a live array of the length told, which the kernel only reads; 0 is the calling thread.
        let result =
            unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(&cpu_mask), cpu_mask.as_ptr()) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        if node.is_some() {
            let n_bits = NODE_WORDS * 64 + 1;
            // SAFETY: as above.
            let result = unsafe { libc::syscall(libc::SYS_set_mempolicy, MPOL_BIND, node_mask.as_ptr(), n_bits) };
            if result < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made, on arrays the closure owns: nothing is allocated, no
    // lock is taken, and an error is made of a number.
    unsafe { command.pre_exec(before_exec) };
    Ok(())
}

/// Makes a command start in a process group of its own; it is told to end (SIGTERM) when the thread that started it ends.
pub fn tie(command: &mut Command) {
    command.process_group(0);
    let starter = std::process::id();
    let before_exec = move || {
        // SAFETY: plain integers; the second call cannot fail. Between fork and the first the starter may have ended.
        let (result, parent) = unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM), libc::getppid()) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        if u32::try_from(parent) != Ok(starter) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made: nothing is allocated, no lock is taken, and an error is made
    // of a number.
    unsafe { command.pre_exec(before_exec) };
}

fn set(mask: &mut [u64], bit: u32) -> io::Result<()> {
    let word = mask.get_mut(bit as usize / 64).ok_or(io::ErrorKind::InvalidInput)?;
    *word |= 1 << (bit % 64);
    Ok(())
}

/// Sends a signal to a group made by [`bind`].
pub fn signal_group(leader: u32, signal: i32) -> io::Result<()> {
    let leader = i32::try_from(leader).map_err(io::Error::other)?;
    // Group 0 and 1 are ourselves and everybody.
    if leader <= 1 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: plain integers; at worst the system refuses.
    let result = unsafe { libc::kill(-leader, signal) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity::allowed_cpus;

    #[test]
    fn a_bound_command_sees_its_cpus_and_can_be_ended() {
        let cpu: CpuSet = allowed_cpus().unwrap().iter().take(1).collect();
        let mut command = Command::new("grep");
        command.args(["Cpus_allowed_list", "/proc/self/status"]);
        bind(&mut command, &cpu, None).unwrap();
        let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert_eq!(said.split_whitespace().last(), Some(cpu.to_string().as_str()));
        let mut command = Command::new("sleep");
        command.arg("60");
        bind(&mut command, &cpu, None).unwrap();
        let mut child = command.spawn().unwrap();
        signal_group(child.id(), libc::SIGTERM).unwrap();
        assert!(!child.wait().unwrap().success());
        assert!(signal_group(0, 0).is_err());
        assert!(bind(&mut Command::new("true"), &cpu, Some(5000)).is_err());
    }
}
