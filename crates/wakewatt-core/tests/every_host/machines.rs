//! The machines that findings are asked of: every recorded host, a z/VM guest, and each of them with one change that people
//! make (states disabled, arguments, limits, uneven settings, registers, another hypervisor). Fails where a host file does
//! not parse.

use std::path::{Path, PathBuf};
use wakewatt_core::record::host_file;
use wakewatt_core::source::Tree;

/// The recorded hosts, and those of the folder that the environment names.
pub(crate) fn hosts() -> Vec<(String, Tree)> {
    let own = |folder: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(folder);
    let folders: Vec<PathBuf> = [own("hosts"), own("edited-hosts")]
        .into_iter()
        .chain(std::env::var_os("WAKEWATT_HOSTS").map(PathBuf::from))
        .collect();
    let mut all = Vec::new();
    for folder in folders {
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        for path in files.filter(|path| path.extension().is_some_and(|e| e == "host")) {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            all.push((name.clone(), host_file::read(&std::fs::read_to_string(&path).unwrap(), &name).unwrap()));
        }
    }
    all.push(("z/VM".into(), z_vm()));
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

/// The number of a CPU in a path, and what follows it.
pub(crate) fn cpu_of(path: &str) -> Option<(u32, &str)> {
    let rest = path.strip_prefix("/sys/devices/system/cpu/cpu")?;
    let (number, rest) = rest.split_once('/')?;
    Some((number.parse().ok()?, rest))
}

/// A file of a policy, by the policy's number.
pub(crate) fn policy_of(path: &str) -> Option<(u32, &str)> {
    let rest = path.strip_prefix("/sys/devices/system/cpu/cpufreq/policy")?;
    let (number, rest) = rest.split_once('/')?;
    Some((number.parse().ok()?, rest))
}

fn is_disable(rest: &str) -> bool {
    rest.starts_with("cpuidle/state") && rest.ends_with("/disable") && !rest.starts_with("cpuidle/state0")
}

/// A change: its name, and the new content of a path, none where it stays.
type Edit = (&'static str, fn(&str, &str) -> Option<String>);

const CMDLINE: &str = "/proc/cmdline";

const EDITS: &[Edit] = &[
    ("as recorded", |_, _| None),
    ("every sleeping state disabled", |path, _| cpu_of(path).filter(|(_, rest)| is_disable(rest)).map(|_| "1".into())),
    ("every sleeping state disabled on CPU 0", |path, _| {
        cpu_of(path).filter(|(cpu, rest)| *cpu == 0 && is_disable(rest)).map(|_| "1".into())
    }),
    ("state 3 disabled", |path, _| {
        cpu_of(path).filter(|(_, rest)| *rest == "cpuidle/state3/disable").map(|_| "1".into())
    }),
    ("idle=poll", |path, old| (path == CMDLINE).then(|| format!("{} idle=poll", old.trim()))),
    ("idle=halt", |path, old| (path == CMDLINE).then(|| format!("{} idle=halt", old.trim()))),
    ("idle=poll, no driver", |path, old| match path {
        CMDLINE => Some(format!("{} idle=poll", old.trim())),
        "/sys/devices/system/cpu/cpuidle/current_driver" => Some("none".into()),
        _ => None,
    }),
    ("processor.max_cstate=1", |path, old| (path == CMDLINE).then(|| format!("{} processor.max_cstate=1", old.trim()))),
    ("both max_cstate", |path, old| {
        (path == CMDLINE).then(|| format!("{} processor.max_cstate=1 intel_idle.max_cstate=0", old.trim()))
    }),
    ("idle=nomwait", |path, old| (path == CMDLINE).then(|| format!("{} idle=nomwait", old.trim()))),
    ("caps that exclude nothing", |path, old| {
        (path == CMDLINE).then(|| format!("{} processor.max_cstate=9 intel_idle.max_cstate=9", old.trim()))
    }),
    ("intel_pstate=no_hwp", |path, old| (path == CMDLINE).then(|| format!("{} intel_pstate=no_hwp", old.trim()))),
    ("amd_pstate=passive", |path, old| (path == CMDLINE).then(|| format!("{} amd_pstate=passive", old.trim()))),
    ("ladder, state 1 disabled", |path, _| match cpu_of(path) {
        Some((_, "cpuidle/state1/disable")) => Some("1".into()),
        _ => (path == "/sys/devices/system/cpu/cpuidle/current_governor").then(|| "ladder".into()),
    }),
    ("C6 disabled on half, state 2 on the other", |path, _| {
        let (cpu, rest) = cpu_of(path)?;
        let is_even = cpu % 2 == 0;
        (rest == if is_even { "cpuidle/state3/disable" } else { "cpuidle/state2/disable" }).then(|| "1".into())
    }),
    ("one I/O die limited", |path, _| {
        (path.contains("/intel_uncore_frequency/uncore02/") && path.ends_with("/max_freq_khz"))
            .then(|| "1000000".into())
    }),
    ("governor userspace", |path, _| {
        let (_, rest) = policy_of(path)?;
        match rest {
            "scaling_governor" => Some("userspace".into()),
            "scaling_setspeed" => Some("1500000".into()),
            _ => None,
        }
    }),
    ("n/a on CPUs 0 to 3", |path, _| {
        cpu_of(path).filter(|(cpu, rest)| *cpu < 4 && *rest == "power/pm_qos_resume_latency_us").map(|_| "n/a".into())
    }),
    ("ladder", |path, _| (path == "/sys/devices/system/cpu/cpuidle/current_governor").then(|| "ladder".into())),
    ("max_perf_pct 50", |path, _| (path == "/sys/devices/system/cpu/intel_pstate/max_perf_pct").then(|| "50".into())),
    ("min_perf_pct 100", |path, _| (path == "/sys/devices/system/cpu/intel_pstate/min_perf_pct").then(|| "100".into())),
    ("half the clock everywhere", |path, old| {
        policy_of(path).filter(|(_, rest)| *rest == "scaling_max_freq")?;
        Some((old.trim().parse::<u64>().ok()? / 2).to_string())
    }),
    ("half the clock on four policies", |path, old| {
        policy_of(path).filter(|(policy, rest)| *policy < 4 && *rest == "scaling_max_freq")?;
        Some((old.trim().parse::<u64>().ok()? / 2).to_string())
    }),
    ("no turbo", |path, _| match path {
        "/sys/devices/system/cpu/intel_pstate/no_turbo" => Some("1".into()),
        "/sys/devices/system/cpu/cpufreq/boost" => Some("0".into()),
        _ => None,
    }),
    ("EPP power on four policies", |path, _| {
        let is_it = |(policy, rest): &(u32, &str)| *policy < 4 && *rest == "energy_performance_preference";
        policy_of(path).filter(is_it).map(|_| "power".into())
    }),
    ("governor powersave on four policies", |path, _| {
        policy_of(path).filter(|(policy, rest)| *policy < 4 && *rest == "scaling_governor").map(|_| "powersave".into())
    }),
    ("one uncore domain below the boot", |path, old| {
        (path.contains("/intel_uncore_frequency/package_00") && path.ends_with("/max_freq_khz"))
            .then(|| old.trim().parse::<u64>().map(|khz| (khz / 2).to_string()).ok())?
    }),
    ("one uncore domain raised", |path, old| {
        (path.contains("/intel_uncore_frequency/package_00") && path.ends_with("/min_freq_khz"))
            .then(|| old.trim().parse::<u64>().map(|khz| (khz * 2).to_string()).ok())?
    }),
    ("lower limit raised on four policies", |path, old| {
        policy_of(path).filter(|(policy, rest)| *policy < 4 && *rest == "scaling_min_freq")?;
        Some((old.trim().parse::<u64>().ok()? * 3 / 2).to_string())
    }),
    ("four policies at 200 MHz", |path, _| {
        let (policy, rest) = policy_of(path)?;
        (policy < 4 && ["scaling_cur_freq", "cpuinfo_avg_freq"].contains(&rest)).then(|| "200000".into())
    }),
    ("a deep state off by default and on, on CPU 0 off", |path, _| {
        let (cpu, rest) = cpu_of(path)?;
        match rest {
            "cpuidle/state3/default_status" => Some("disabled".into()),
            "cpuidle/state3/disable" if cpu == 0 => Some("1".into()),
            _ => None,
        }
    }),
    ("in a guest", |path, old| {
        let flag = |line: &str| if line.starts_with("flags") { format!("{line} hypervisor") } else { line.into() };
        (path == "/proc/cpuinfo").then(|| old.trim().lines().map(flag).collect::<Vec<_>>().join("\n"))
    }),
    ("amd_pstate=active", |path, old| (path == CMDLINE).then(|| format!("{} amd_pstate=active", old.trim()))),
    ("intel_pstate=disable", |path, old| (path == CMDLINE).then(|| format!("{} intel_pstate=disable", old.trim()))),
    ("unknown governors", |path, old| {
        let arguments = "cpuidle.governor=nobody cpufreq.default_governor=nobody";
        (path == CMDLINE).then(|| format!("{} {arguments}", old.trim()))
    }),
    ("memory on node 0 only", |path, _| (path == "/sys/devices/system/node/has_memory").then(|| "0".into())),
    ("one memory node", |path, _| (path == "/sys/devices/system/node/online").then(|| "0".into())),
    ("powersave everywhere", |path, _| {
        policy_of(path).filter(|(_, rest)| *rest == "scaling_governor").map(|_| "powersave".into())
    }),
    ("energy bias 15 on CPU 0", |path, _| {
        cpu_of(path).filter(|(cpu, rest)| *cpu == 0 && *rest == "power/energy_perf_bias").map(|_| "15".into())
    }),
];

/// A change of a register: its name, its address, and the new value.
type RegisterEdit = (&'static str, u32, fn(u64) -> u64);

/// Made on CPU 0 alone.
const REGISTERS: &[RegisterEdit] = &[
    ("package limit on CPU 0", 0xe2, |value| if value & 0xf == 0 { value | 2 } else { value & !0xf }),
    ("C1 demotion on CPU 0", 0xe2, |value| value ^ 1 << 26),
    ("C1E promotion on CPU 0", 0x1fc, |value| value ^ 2),
    ("highest level of the HWP request on CPU 0", 0x774, |value| (value & !0xff00) | (((value >> 8 & 0xff) / 2) << 8)),
];

/// A guest of a hypervisor: the name, and the files that identify it beside the CPU flag.
type GuestEdit = (&'static str, &'static [(&'static str, &'static str)]);

const GUESTS: &[GuestEdit] = &[
    (
        "guest of VMware",
        &[("/sys/class/dmi/id/sys_vendor", "VMware, Inc."), ("/sys/class/dmi/id/product_name", "VMware20,1")],
    ),
    ("guest of Xen", &[("/sys/hypervisor/type", "xen"), ("/sys/class/dmi/id/sys_vendor", "Xen")]),
    (
        "guest of Hyper-V",
        &[
            ("/sys/class/dmi/id/sys_vendor", "Microsoft Corporation"),
            ("/sys/class/dmi/id/product_name", "Virtual Machine"),
        ],
    ),
    (
        "guest of KVM",
        &[("/sys/class/dmi/id/sys_vendor", "QEMU"), ("/sys/class/dmi/id/product_name", "KVM Virtual Machine")],
    ),
    (
        "guest of Nitro",
        &[("/sys/class/dmi/id/sys_vendor", "Amazon EC2"), ("/sys/class/dmi/id/product_name", "m7i.xlarge")],
    ),
];

fn guest(tree: &Tree, (_, files): &GuestEdit) -> Option<Tree> {
    let flag = EDITS.iter().find(|(name, _)| *name == "in a guest").unwrap();
    let mut tree = edited(tree, flag)?;
    for (path, text) in *files {
        tree.files.insert((*path).to_string(), Ok(text.as_bytes().to_vec()));
    }
    Some(tree)
}

/// A z/VM guest: no idle driver, and a /proc/cpuinfo in the s390 form.
fn z_vm() -> Tree {
    let cpu = "//- /sys/devices/system/cpu";
    Tree::from_text(&format!(
        "{cpu}/present\n0-3\n{cpu}/online\n0-3\n{cpu}/cpuidle/current_driver\nnone\n{cpu}/cpuidle/current_governor\nmenu\n
         //- /proc/cpuinfo\nvendor_id       : IBM/S390\n# processors    : 4\nfeatures\t: esan3 zarch stfle\n
         processor 0: version = FF,  identification = 0A1B2C,  machine = 3931\n
         //- /proc/sysinfo\nManufacturer: IBM\nType: 3931\nVM00 Control Program: z/VM 7.3.0\n
         //- /proc/cmdline\nroot=/dev/dasda1 dasd=0.0.0100\n//- /proc/version\nLinux version 6.12.0 (build@example) #1 SMP\n
         //- /proc/sys/kernel/osrelease\n6.12.0\n"
    ))
}

/// The host with each change that changes something there, by name.
pub(crate) fn variants(tree: &Tree) -> Vec<(&'static str, Tree)> {
    let guests = GUESTS.iter().filter_map(|edit| Some((edit.0, guest(tree, edit)?)));
    let files = EDITS.iter().filter_map(|edit| Some((edit.0, edited(tree, edit)?)));
    let registers = REGISTERS.iter().filter_map(|(name, address, new)| {
        let mut tree = tree.clone();
        let value = tree.msrs.get_mut(&(*address, 0))?.as_mut().ok()?;
        let old = std::mem::replace(value, new(*value));
        (*value != old).then_some((*name, tree))
    });
    files.chain(registers).chain(guests).collect()
}

fn edited(tree: &Tree, edit: &Edit) -> Option<Tree> {
    let mut tree = tree.clone();
    let mut is_changed = edit.0 == EDITS[0].0;
    for (path, content) in &mut tree.files {
        let Ok(old) = content.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned()) else { continue };
        if let Some(new) = edit.1(path, &old) {
            is_changed |= new != old.trim();
            *content = Ok(new.into_bytes());
        }
    }
    is_changed.then_some(tree)
}
