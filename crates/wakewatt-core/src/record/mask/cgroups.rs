//! Control groups: who runs what for whom stands in their names (users, pods, containers, units); the depth and the kind
//! of each group stay.
//!
//! A path's component is kept when it is one of the well-known groups ([`GROUPS`], systemd.special(7) and what container
//! runtimes make) or a file of the kernel's. In any other, the front words that say which runtime made it stay
//! (`docker-…`, `kubepods-burstable-pod…`), because facts tell a container by them, and so does the kind at its end
//! (`.scope`); the rest is renamed.

use super::names::{Kind, Names, is_replacement};
use crate::facts::cgroup::CONTROLLERS;

/// Groups, and services that nearly every machine has.
#[rustfmt::skip]
const GROUPS: &[&str] = &[
    "system.slice", "user.slice", "machine.slice", "init.scope", "kubepods", "kubepods.slice", "burstable", "besteffort",
    "guaranteed", "kubepods-burstable.slice", "kubepods-besteffort.slice", "docker", "podman", "libpod_parent", "lxc",
    "lxc.payload", "lxc.monitor", "background.slice", "session.slice", "app.slice", "system", "user", "machine",
    "systemd", "unified", "cpu", "cpuacct", "cpu,cpuacct", "cpuacct,cpu", "cpuset", "memory", "devices", "freezer", "blkio", "pids",
    "hugetlb", "rdma", "misc", "net_cls", "net_prio", "net_cls,net_prio", "perf_event", "elogind", "job", "debug",
    "dbus.service", "ssh.service", "sshd.service", "cron.service", "crond.service", "systemd-journald.service",
    "systemd-logind.service", "systemd-udevd.service", "systemd-networkd.service", "systemd-resolved.service",
    "systemd-timesyncd.service", "systemd-oomd.service", "NetworkManager.service", "chronyd.service", "rsyslog.service",
    "auditd.service", "polkit.service", "irqbalance.service", "tuned.service", "containerd.service", "docker.service",
    "kubelet.service", "crio.service", "tasks", "notify_on_release", "release_agent", "supervise", "init", "udev",
];

/// Front words that say what made a group.
const FRONTS: &[&str] = &[
    "kubepods",
    "burstable",
    "besteffort",
    "guaranteed",
    "docker",
    "libpod",
    "conmon",
    "crio",
    "cri",
    "containerd",
    "lxc",
    "payload",
    "monitor",
    "podman",
    "machine",
    "qemu",
    "lxd",
    "nspawn",
    "user",
    "session",
    "run",
    "app",
    "getty",
    "system",
    "serial",
    "user-runtime-dir",
    "nerdctl",
    "buildkit",
];

/// Kinds of units.
const UNITS: &[&str] = &["slice", "scope", "service", "mount", "socket", "swap", "partition"];

/// Words that the kernel's files are made of, behind the controller's name.
#[rustfmt::skip]
const FILE_WORDS: &[&str] = &[
    "controllers", "max", "min", "low", "high", "depth", "descendants", "pressure", "procs", "stat", "subtree", "control",
    "threads", "type", "kill", "freeze", "events", "cpus", "mems", "effective", "exclusive", "partition", "isolated", "cost",
    "model", "qos", "numa", "reclaim", "peak", "current", "oom", "group", "swap", "zswap", "writeback", "capacity", "local", "idle",
    "weight", "nice", "uclamp", "burst", "cfs", "quota", "period", "rt", "runtime", "us", "shares", "clone", "children",
    "sane", "behavior", "usage", "user", "sys", "all", "percpu", "in", "bytes", "limit", "failcnt", "kmem", "tcp", "slabinfo", "memsw",
    "soft", "swappiness", "move", "charge", "at", "immigrate", "force", "empty", "use", "hierarchy", "level", "list", "allow",
    "deny", "state", "self", "freezing", "parent", "throttle", "read", "write", "bps", "iops", "device", "serviced", "service", "bfq",
    "recursive", "latency", "prio", "class", "classid", "ifpriomap", "sched", "load", "balance", "relax", "domain", "mem",
    "hardwall", "spread", "page", "slab", "migrate", "enabled", "rsvd", "1gb", "2mb", "64kb", "32mb", "512mb", "16gb", "16mb", "sockets", "anon", "time",
];

/// One component of a path, or its replacement.
pub(super) fn component(name: &str, names: &mut Names) -> String {
    if name.is_empty() || GROUPS.contains(&name) || is_replacement(name) || is_kernel_file(name) {
        return name.to_string();
    }
    let (stem, unit) = match name.rsplit_once('.') {
        Some((stem, unit)) if UNITS.contains(&unit) => (stem, &name[stem.len()..]),
        _ => (name, ""),
    };
    let rest = after_fronts(stem);
    let front = &stem[..stem.len() - rest.len()];
    let (pod, rest) = match rest.strip_prefix("pod") {
        Some(uid) if !uid.is_empty() && uid.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, '-' | '_')) => {
            ("pod", uid)
        }
        Some(uid) if is_replacement(uid) => ("pod", uid),
        _ => ("", rest),
    };
    if rest.is_empty() {
        return name.to_string();
    }
    format!("{front}{pod}{}{unit}", names.of(Kind::Cgroup, rest))
}

/// What stands behind the words that say what made the group.
fn after_fronts(stem: &str) -> &str {
    let mut rest = stem;
    loop {
        let end = rest.find(['-', '@', '.', ':', '_']).unwrap_or(rest.len());
        if end == rest.len() {
            return if FRONTS.contains(&rest) { "" } else { rest };
        }
        if !FRONTS.contains(&&rest[..end]) {
            return rest;
        }
        rest = &rest[end + 1..];
    }
}

fn is_kernel_file(name: &str) -> bool {
    let Some((front, rest)) = name.split_once('.') else { return false };
    CONTROLLERS.contains(&front)
        && rest.split(['.', '_']).all(|word| FILE_WORDS.contains(&word.to_ascii_lowercase().as_str()))
}

/// A path below the root of the hierarchy.
pub(super) fn path(path: &str, names: &mut Names) -> String {
    path.split('/').map(|name| component(name, names)).collect::<Vec<_>>().join("/")
}

/// `/proc/PID/cgroup`: number, controllers, path.
pub(super) fn membership(text: &str, names: &mut Names) -> String {
    let lines = text.split_inclusive('\n').map(|line| {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let mut parts = line.splitn(3, ':');
        let (Some(number), Some(controllers), Some(group)) = (parts.next(), parts.next(), parts.next()) else {
            return end.to_string();
        };
        let controllers: Vec<String> = controllers
            .split(',')
            .map(|c| match c.strip_prefix("name=") {
                Some(name) if GROUPS.contains(&name) => c.to_string(),
                Some(name) => format!("name={}", names.of(Kind::Cgroup, name)),
                None => component(c, names),
            })
            .collect();
        let number: String = number.chars().filter(char::is_ascii_digit).collect();
        format!("{number}:{}:{}{end}", controllers.join(","), self::path(group, names))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_and_kind_stay_and_names_go() {
        let check = |before: &str, after: &str| {
            let once = path(before, &mut Names::default());
            assert_eq!(once, after, "{before}");
            assert_eq!(path(&once, &mut Names::default()), once, "masking twice changes nothing");
        };
        check("/", "/");
        check("/system.slice/sshd.service/cpu.max", "/system.slice/sshd.service/cpu.max");
        check("/system.slice/acme-trader.service", "/system.slice/masked1.service");
        check("/user.slice/user-1000.slice/session-3.scope", "/user.slice/user-masked1.slice/session-masked2.scope");
        check(
            "/user.slice/user-1000.slice/user@1000.service/x",
            "/user.slice/user-masked1.slice/user@masked1.service/masked2",
        );
        check(
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod7a3bc2bc_b966.slice/cri-containerd-0123abcd.scope",
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podmasked1.slice/cri-containerd-masked2.scope",
        );
        check("/kubepods/burstable/pod7a3bc2bc-b966/0123abcd", "/kubepods/burstable/podmasked1/masked2");
        check("/docker/0123abcd", "/docker/masked1");
        check("/memory.acme/cpu.cfs_quota_us", "/masked1/cpu.cfs_quota_us");
    }

    #[test]
    fn a_membership_keeps_its_form() {
        let text =
            "10:name=systemd:/\n9:name=acme:/\n8:cpu,cpuacct:/docker/0123abcd\n0::/system.slice/acme.service\nacme\n";
        let masked = membership(text, &mut Names::default());
        assert_eq!(
            masked,
            "10:name=systemd:/\n9:name=masked1:/\n8:cpu,cpuacct:/docker/masked2\n0::/system.slice/masked1.service\n\n"
        );
    }
}
