//! seccomp: the system calls of a thread that reads files, keeps a history and answers over sockets. All others fail as they would for any user.
//!
//! Not among them: starting a program, another process (a thread needs `clone` with CLONE_THREAD; clone3, whose flags cannot be looked at, is said not to exist, and
//! the C library then takes the other), memory that can be executed, changing owners, modes or clocks, mounting, tracing, loading of probes and
//! modules, signals to others. Of `bpf` reading maps remains, of `ioctl` what asks sockets and files about themselves.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};
use std::collections::BTreeMap;

/// Whatever its arguments.
const PLAIN: &[libc::c_long] = &[
    // Files.
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_readv,
    libc::SYS_preadv,
    libc::SYS_write,
    libc::SYS_pwrite64,
    libc::SYS_writev,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_fstatfs,
    libc::SYS_statfs,
    libc::SYS_getdents64,
    libc::SYS_readlinkat,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_getcwd,
    libc::SYS_ftruncate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_unlinkat,
    libc::SYS_fcntl,
    libc::SYS_flock,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    // Memory.
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_membarrier,
    // Threads, and what they learn of themselves.
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_getcpu,
    libc::SYS_getrusage,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getgroups,
    libc::SYS_capget,
    libc::SYS_prctl,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_getrandom,
    // Time and waiting.
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    // Sockets.
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_shutdown,
    libc::SYS_socketpair,
];

/// Older forms that this architecture still has.
#[cfg(target_arch = "x86_64")]
const OLD: &[libc::c_long] = &[
    libc::SYS_open,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_unlink,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_epoll_wait,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_time,
    libc::SYS_arch_prctl,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[libc::c_long] = &[];

/// Looking up, and going from key to key (linux/bpf.h: MAP_LOOKUP_ELEM, MAP_GET_NEXT_KEY, MAP_LOOKUP_BATCH).
const BPF_READS: [u64; 3] = [1, 4, 24];
/// Not to wait, to close when a program is started, what is a terminal, an interface's coalescing (SIOCETHTOOL) and number (SIOCGIFINDEX).
const ASKING: [u64; 5] = [0x5421, 0x5451, 0x5401, 0x8946, 0x8933];

/// Keeps those; `connects` is whether others are spoken to.
pub(super) fn keep_only(connects: bool) -> Result<String, String> {
    let enter = || -> Result<usize, seccompiler::Error> {
        let arch: TargetArch = std::env::consts::ARCH.try_into()?;
        let (allowed, absent) = (allowed(connects)?, vec![(libc::SYS_clone3, Vec::new())]);
        let n = allowed.len();
        let eperm = SeccompAction::Errno(errno(libc::EPERM));
        let first = SeccompFilter::new(allowed, eperm, SeccompAction::Allow, arch)?;
        let enosys = SeccompAction::Errno(errno(libc::ENOSYS));
        let second = SeccompFilter::new(absent.into_iter().collect(), SeccompAction::Allow, enosys, arch)?;
        // The one that says less comes first: the other forbids to add any.
        for filter in [second, first] {
            let program: BpfProgram = filter.try_into()?;
            seccompiler::apply_filter(&program)?;
        }
        Ok(n)
    };
    match enter() {
        Ok(n) => Ok(format!("{n} are left")),
        Err(seccompiler::Error::Seccomp(why) | seccompiler::Error::Prctl(why)) => {
            Err(format!("this kernel takes no filter: {why}"))
        }
        Err(why) => Err(why.to_string()),
    }
}

fn errno(number: i32) -> u32 {
    number.unsigned_abs()
}

fn allowed(connects: bool) -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = PLAIN.iter().chain(OLD).map(|call| (*call, Vec::new())).collect();
    let is = |at: u8, value: u64| equal(at, SeccompCmpOp::Eq, value);
    let has_none_of = |at: u8, bits: u64| equal(at, SeccompCmpOp::MaskedEq(bits), 0);
    let has_all_of = |at: u8, bits: u64| equal(at, SeccompCmpOp::MaskedEq(bits), bits);
    let bits = |flag: i32| u64::from(flag.unsigned_abs());
    let own = u64::from(std::process::id());
    // Its threads make threads and no processes. The other form is answered by the second filter.
    rules.insert(libc::SYS_clone3, Vec::new());
    rules.insert(libc::SYS_clone, vec![has_all_of(0, bits(libc::CLONE_THREAD))?]);
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        rules.insert(call, vec![has_none_of(2, bits(libc::PROT_EXEC))?]);
    }
    // Signals to itself, as an abort is.
    rules.insert(libc::SYS_tgkill, vec![is(0, own)?]);
    // Its own limit of open files grows with the machine's CPUs.
    rules.insert(libc::SYS_prlimit64, vec![is(0, 0)?]);
    rules.insert(libc::SYS_bpf, BPF_READS.into_iter().map(|command| is(0, command)).collect::<Result<_, _>>()?);
    rules.insert(libc::SYS_ioctl, ASKING.into_iter().map(|question| is(1, question)).collect::<Result<_, _>>()?);
    // Datagrams of IPv4 answer questions about interfaces; streams and IPv6 are for who pushes.
    let families = if connects {
        &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6][..]
    } else {
        &[libc::AF_UNIX, libc::AF_INET][..]
    };
    let families = families.iter().map(|family| is(0, bits(*family)));
    rules.insert(libc::SYS_socket, families.collect::<Result<_, _>>()?);
    Ok(rules)
}

fn equal(at: u8, how: SeccompCmpOp, value: u64) -> Result<SeccompRule, seccompiler::Error> {
    let condition = SeccompCondition::new(at, SeccompCmpArgLen::Dword, how, value)?;
    Ok(SeccompRule::new(vec![condition])?)
}
