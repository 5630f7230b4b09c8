//! Are this process's ids the kernel's own? Probes see the kernel's; inside a PID or cgroup namespace ours are others.

/// Inode numbers of the initial namespaces (include/linux/proc_ns.h): the only ones that are the same on every machine.
const INITIAL_PID: &str = "pid:[4026531836]";
const INITIAL_CGROUP: &str = "cgroup:[4026531835]";

fn is(kind: &str, initial: &str) -> bool {
    // Unreadable is not a refusal: an old kernel without the file has no such namespace.
    std::fs::read_link(format!("/proc/self/ns/{kind}")).map_or(true, |link| link.as_os_str() == initial)
}

/// Process ids are the kernel's.
pub fn has_kernel_process_ids() -> bool {
    is("pid", INITIAL_PID)
}

/// Cgroup paths start at the kernel's root.
pub fn has_kernel_cgroup_paths() -> bool {
    is("cgroup", INITIAL_CGROUP)
}
