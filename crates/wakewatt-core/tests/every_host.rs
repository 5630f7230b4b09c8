//! What must hold of the findings of any machine: asked on every recorded host, and on each with one thing changed.
//!
//! A rule is easily right on the host it was written for. Here each recording of `fixtures/hosts` is read as it is and with
//! the changes people make (states disabled, arguments, limits, uneven settings), and the findings of one run must not
//! exclude each other, must say how many of many they are about, must use no other maker's words, and must not leave the
//! answer to a rule that has none. More hosts:
//! `WAKEWATT_HOSTS=FOLDER cargo test -p wakewatt-core --test every_host`.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // The bans are for core itself; a test may read files.

use std::path::{Path, PathBuf};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::enterable;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::record::host_file;
use wakewatt_core::rules::exclusions::{Assertion, contradictions};
use wakewatt_core::rules::{Answer, Finding, RULES, Ruling, Weight, judge};
use wakewatt_core::source::Tree;

/// The recorded hosts, and those of the folder that the environment names.
fn hosts() -> Vec<(String, Tree)> {
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
fn cpu_of(path: &str) -> Option<(u32, &str)> {
    let rest = path.strip_prefix("/sys/devices/system/cpu/cpu")?;
    let (number, rest) = rest.split_once('/')?;
    Some((number.parse().ok()?, rest))
}

/// A file of a policy, by the policy's number.
fn policy_of(path: &str) -> Option<(u32, &str)> {
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
fn variants(tree: &Tree) -> Vec<(&'static str, Tree)> {
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

/// A fault that findings of one run may have: its name, and where it is.
type Fault = (&'static str, fn(&Run) -> Vec<String>);

/// One host, and what every rule says of it.
struct Run {
    evidence: Evidence,
    found: Vec<Finding>,
    rulings: Vec<Ruling>,
}

impl Run {
    fn of(tree: &Tree) -> Run {
        let evidence = Evidence { facts: Snapshot::read(tree, |_| true), ..Evidence::default() };
        let rulings = judge(&evidence);
        let yes = rulings.iter().filter_map(|ruling| match &ruling.answer {
            Answer::Yes(finding) => Some((**finding).clone()),
            _ => None,
        });
        Run { found: yes.collect(), evidence, rulings }
    }
}

const FAULTS: &[Fault] = &[
    ("findings that exclude each other", exclude_each_other),
    ("CPUs that spin unseen, or are said to and do not", spin_unseen),
    ("a finding about many things that names one of them", name_one),
    ("a finding about settings of many things that does not say of how many", say_no_extent),
    ("words of another maker, or of hardware in a guest", speak_of_others),
    ("idle states that this machine does not have", name_absent_states),
    ("a remedy for guests of KVM elsewhere", advise_kvm),
    ("a rule that leaves the answer to one that has none", leave_it_to_nobody),
];

/// Every host as recorded and with each change, read once.
#[test]
fn what_must_hold_of_any_machine() {
    let hosts = hosts();
    assert!(hosts.len() >= 20, "fewer machines than there were");
    let of_host = |(name, tree): &(String, Tree)| {
        let mut faults = Vec::new();
        for (edit, tree) in variants(tree) {
            let run = Run::of(&tree);
            for (fault, is_so) in FAULTS {
                faults.extend(is_so(&run).iter().map(|at| format!("{name}, {edit}: {fault}: {at}")));
            }
        }
        faults
    };
    let faults: Vec<String> = std::thread::scope(|threads| {
        let some = |hosts: &[(String, Tree)]| hosts.iter().flat_map(of_host).collect::<Vec<_>>();
        let started: Vec<_> =
            hosts.chunks(hosts.len().div_ceil(4)).map(|hosts| threads.spawn(move || some(hosts))).collect();
        started.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(faults.is_empty(), "{faults:#?}");
}

fn exclude_each_other(run: &Run) -> Vec<String> {
    contradictions(&run.evidence).into_iter().map(|(one, other)| format!("{one} and {other}")).collect()
}

fn spin_unseen(run: &Run) -> Vec<String> {
    let spinning = enterable::spinning(&enterable::of(&run.evidence.facts));
    let is_found = run.found.iter().any(|f| f.id == "rule.polling-by-accident");
    (is_found == spinning.is_empty()).then(|| format!("CPUs {spinning}")).into_iter().collect()
}

/// The machine with its first CPUs only: a machine of every kind that is recorded, and quickly read.
fn first_cpus(tree: &Tree) -> Tree {
    const N_CPUS: u32 = 16;
    let mut tree = tree.clone();
    let is_kept = |path: &str| cpu_of(path).or(policy_of(path)).is_none_or(|(cpu, _)| cpu < N_CPUS);
    tree.files.retain(|path, _| is_kept(path));
    tree.folders.retain(|path, _| is_kept(path));
    tree.msrs.retain(|(_, cpu), _| *cpu < N_CPUS);
    for list in ["present", "online", "possible"] {
        let path = format!("/sys/devices/system/cpu/{list}");
        if let Some(Ok(text)) = tree.files.get_mut(&path) {
            let all = CpuSet::parse(std::str::from_utf8(text).unwrap().trim()).unwrap();
            *text = all.iter().filter(|cpu| *cpu < N_CPUS).collect::<CpuSet>().to_string().into_bytes();
        }
    }
    tree
}

/// Contradictions come from two things at once: each two changes together, on a machine of each kind.
#[test]
fn two_changes_at_once_contradict_nothing() {
    const KINDS: &[&str] = &["emr9", "gnr3", "sklep0", "rome0", "altra", "vm-haltpoll-2cpu"];
    let hosts: Vec<(String, Tree)> = hosts()
        .into_iter()
        .filter(|(name, _)| KINDS.contains(&name.as_str()))
        .map(|(n, t)| (n, first_cpus(&t)))
        .collect();
    assert_eq!(hosts.len(), KINDS.len());
    let of_host = |(name, tree): &(String, Tree)| {
        let (mut faults, mut n) = (Vec::new(), 0);
        for (one, tree) in variants(tree).into_iter().skip(1) {
            for (other, tree) in variants(&tree).into_iter().skip(1).filter(|(other, _)| *other > one) {
                let run = Run::of(&tree);
                n += 1;
                for (fault, is_so) in FAULTS.iter().take(2) {
                    faults.extend(is_so(&run).iter().map(|at| format!("{name}, {one}, {other}: {fault}: {at}")));
                }
            }
        }
        (faults, n)
    };
    let all: Vec<(Vec<String>, usize)> = std::thread::scope(|threads| {
        let started: Vec<_> = hosts.iter().map(|host| threads.spawn(move || of_host(host))).collect();
        started.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let faults: Vec<&String> = all.iter().flat_map(|(faults, _)| faults).collect();
    let n: usize = all.iter().map(|(_, n)| n).sum();
    assert!(n > 1000, "{n} pairs");
    assert!(faults.is_empty(), "{} of {n}: {:#?}", faults.len(), &faults[..faults.len().min(40)]);
}

fn kind(assertion: &Assertion) -> &'static str {
    match assertion {
        Assertion::Spins(_) => "spins",
        Assertion::Sleeps(_) => "sleeps",
        Assertion::Halts(_) => "halts",
        Assertion::ArgumentActs(_) => "argument acts",
        Assertion::ArgumentIgnored(_) => "argument ignored",
        Assertion::PackageMaySleep => "package may sleep",
        Assertion::PackageStaysAwake => "package stays awake",
        Assertion::UncoreFalls => "uncore falls",
        Assertion::UncoreStaysUp => "uncore stays up",
        Assertion::EntersDeep(_) => "enters deep",
        Assertion::NeverDeep(_) => "never deep",
        Assertion::ClockAtMost(..) => "clock at most",
        Assertion::ClockAtLeast(..) => "clock at least",
    }
}

/// What no finding takes for granted can be contradicted by none: of every kind some machine has a finding.
#[test]
fn every_assertion_is_made_on_some_machine() {
    let mut made = std::collections::BTreeSet::new();
    for (_, tree) in hosts() {
        for (_, tree) in variants(&first_cpus(&tree)) {
            let evidence = Evidence { facts: Snapshot::read(&tree, |_| true), ..Evidence::default() };
            let yes = RULES.iter().filter(|rule| matches!(rule.answer(&evidence), Answer::Yes(_)));
            made.extend(yes.flat_map(|rule| rule.takes_for_granted(&evidence)).map(|assertion| kind(&assertion)));
        }
    }
    // Of these there is no recording: a kernel without an idle driver, and a table that ends at C1.
    let root = "//- /sys/devices/system/cpu";
    let metal = format!(
        "{root}/present\n0\n{root}/online\n0\n//- /proc/cpuinfo\nprocessor : 0\nvendor_id : GenuineIntel\ncpu family : 6\n\
         model : 85\nflags : fpu\n\n"
    );
    let table = |states: &[&str]| -> String {
        let state = |(at, name): (usize, &&str)| {
            let at_ = format!("{root}/cpu0/cpuidle/state{at}");
            format!("{at_}/name\n{name}\n{at_}/latency\n{at}\n{at_}/disable\n0\n")
        };
        states.iter().enumerate().map(state).collect()
    };
    let driver = |name: &str| format!("{root}/cpuidle/current_driver\n{name}\n");
    for text in [driver("none"), driver("intel_idle") + &table(&["POLL", "C1"])] {
        let tree = Tree::from_text(&(metal.clone() + &text));
        let evidence = Evidence { facts: Snapshot::read(&tree, |_| true), ..Evidence::default() };
        let yes = RULES.iter().filter(|rule| matches!(rule.answer(&evidence), Answer::Yes(_)));
        made.extend(yes.flat_map(|rule| rule.takes_for_granted(&evidence)).map(|assertion| kind(&assertion)));
    }
    assert_eq!(made.len(), 13, "{made:?}");
}

/// A title that names one of many, without saying so: a CPU, policy, die, package zone or node by its number.
fn names_one_of_many(title: &str) -> bool {
    let words: Vec<&str> = title.split_whitespace().collect();
    let is_number = |word: &str| word.trim_end_matches([',', ';', ':', '.', ')']).parse::<u32>().is_ok();
    let is_one = |at: usize| {
        let word = words[at].trim_start_matches('(');
        let next = words.get(at + 1).copied().unwrap_or("");
        let named = (["CPU", "policy", "Policy", "node", "Node"].contains(&word) && is_number(next))
            .then_some(at + 2)
            .or_else(|| (word.starts_with("package_") || word.starts_with("uncore0")).then_some(at + 1))
            .or_else(|| word.starts_with("package-").then_some(at + 1));
        named.is_some_and(|behind| !words.get(behind).is_some_and(|word| word.starts_with("only")))
    };
    (0..words.len()).any(is_one)
}

fn name_one(Run { evidence, found, .. }: &Run) -> Vec<String> {
    // A finding that lists every device it is about, and the one node of another kind.
    const LISTS: &[&str] = &["rule.irq-affinity", "rule.pcie-aspm", "rule.memory-only-nodes"];
    let (n_cpus, n_domains) = (evidence.facts.cpus.running().count(), evidence.facts.uncore.deciding().count());
    let is_many = n_cpus > 1 && n_domains != 1;
    let is_faulty = |f: &&Finding| is_many && !LISTS.contains(&f.id.as_str()) && names_one_of_many(&f.title);
    found.iter().filter(is_faulty).map(|f| format!("{}: {}", f.id, f.title)).collect()
}

/// "4 of 32", "all 32", or "only".
fn says_extent(title: &str) -> bool {
    let words: Vec<&str> = title.split_whitespace().map(|word| word.trim_matches([',', ';', ':', '(', ')'])).collect();
    let is_number = |word: &&str| word.parse::<u32>().is_ok();
    let counts = words.windows(2).any(|pair| ["of", "all"].contains(&pair[0]) && is_number(&pair[1]));
    counts || words.contains(&"only")
}

fn say_no_extent(Run { evidence, found, .. }: &Run) -> Vec<String> {
    /// Rules about something of which a machine has one: a driver, a governor, an argument, a kernel.
    const OF_MACHINE: &[&str] = &[
        "rule.tick-never-stops",
        "rule.ladder-governor",
        "rule.history-contradicts-present",
        "rule.hwp-hidden",
        "rule.no-idle-driver",
        "rule.known-kernel-changes",
        "rule.frequency-driver",
        "rule.haltpoll-guest",
        "rule.guest-hypervisor",
        "rule.container-masked",
        "rule.arguments-ignored",
        "rule.idle-boot-arguments",
        "rule.hwp-dynamic-boost",
        "rule.turbo-off",
        "rule.one-node",
        // All of its nodes and sockets are counted in another form.
        "rule.snc-nps",
        "rule.memory-only-nodes",
        "rule.irq-affinity",
    ];
    const OF_DIES: &[&str] = &["rule.uncore-window", "rule.efficiency-latency-control"];
    let is_one_package = evidence.facts.topology.packages().len() < 2;
    let is_one_die = evidence.facts.uncore.deciding().count() < 2;
    let is_many_cpus = evidence.facts.cpus.running().count() > 1;
    let is_meant = |f: &&Finding| {
        let id = f.id.as_str();
        let is_of_one = (is_one_die && OF_DIES.contains(&id)) || (is_one_package && id == "rule.package-c6");
        is_many_cpus && !OF_MACHINE.contains(&id) && !is_of_one
    };
    // Kinds of core are all named.
    let is_listed = |f: &&Finding| f.title.contains("kinds of core");
    let silent = found.iter().filter(is_meant).filter(|f| !says_extent(&f.title) && !is_listed(f));
    silent.map(|f| format!("{}: {}", f.id, f.title)).collect()
}

/// All that a finding says.
fn texts(found: &Finding) -> String {
    let basis = found.evidence.iter().map(|basis| format!("{} {}", basis.path, basis.says));
    let own = [&found.title, &found.remedy, &found.price, &found.verify, &found.cost.text];
    own.into_iter().cloned().chain(basis).collect::<Vec<_>>().join(" | ")
}

/// Whose words mean nothing on this processor, or in a guest.
fn foreign_words(evidence: &Evidence) -> Vec<&'static str> {
    const INTEL: &[&str] = &[
        "C1E",
        "HWP",
        "hwp",
        "uncore",
        "ELC",
        "PROCHOT",
        "intel_",
        "energy bias",
        "energy_perf_bias",
        "Mwait",
        "SNC",
        "SST",
        "package C-state",
        "MSR 0x1",
        "MSR 0x7",
        "PC6",
        "thermal_throttle",
    ];
    const X86: &[&str] = &["_CST", "idle=poll", "idle=halt", "MWAIT", "mwait", "processor.max_cstate", "acpi-cpufreq"];
    const AMD: &[&str] = &["Global C-state", "amd_pstate", "amd-pstate", "EPYC", "by channel or die"];
    const ARM: &[&str] = &["WFI", "PSCI", "LPI", "nohlt"];
    const HARDWARE: &[&str] = &["BIOS", "BMC", "MSR 0x", "package C-state"];
    let processor = evidence.facts.topology.processor();
    let (is_intel, is_x86) = (processor.map(|p| p.is_intel()), processor.map(|p| p.is_x86()));
    let is_guest = evidence.facts.virt.is_guest() == Some(true);
    let is_amd = processor.map(|p| p.is_amd());
    let all = [
        (is_intel == Some(false), INTEL),
        (is_amd == Some(false), AMD),
        (is_x86 == Some(false), X86),
        (is_x86 == Some(true), ARM),
        (is_guest, HARDWARE),
    ];
    let words = all.into_iter().filter(|(is_foreign, _)| *is_foreign).flat_map(|(_, words)| words.iter().copied());
    // What the machine itself calls so is its own.
    words.filter(|word| !evidence.facts.idle.states.iter().any(|state| state.label() == *word)).collect()
}

fn speak_of_others(Run { evidence, found, rulings }: &Run) -> Vec<String> {
    // An argument that somebody wrote there is quoted.
    const QUOTES: &[&str] = &["rule.arguments-ignored"];
    let foreign = foreign_words(evidence);
    let mut said: Vec<(String, String)> = found.iter().map(|f| (f.id.clone(), texts(f))).collect();
    // What cannot be told is a question to the reader, and nobody can answer one about another maker's processor.
    for ruling in rulings {
        if let Answer::CannotTell { because, try_this } = &ruling.answer {
            said.push((ruling.rule.clone(), format!("{because} | {try_this}")));
        }
    }
    let said = said.iter().filter(|(id, _)| !QUOTES.contains(&id.as_str()));
    said.flat_map(|(id, text)| {
        let found = foreign.iter().filter(|word| text.contains(**word));
        found.map(|word| format!("{id}: {word} in: {text}")).collect::<Vec<_>>()
    })
    .collect()
}

/// A core state by its name, `C6`, `C1E` or `C3_ACPI`; none of `C-states` and the like.
fn core_states(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| {
        let rest = word.strip_prefix('C').map_or("", |rest| rest.trim_end_matches("_ACPI"));
        let digits = rest.trim_end_matches(|c: char| c.is_ascii_uppercase());
        !digits.is_empty() && digits.len() < 3 && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// States that remedies and titles name, and the table has not: advice about them is advice about another machine.
fn name_absent_states(Run { evidence, found, .. }: &Run) -> Vec<String> {
    let idle = &evidence.facts.idle;
    let has = |name: &str| idle.states.iter().any(|state| state.label().split('/').any(|own| own == name));
    // A rule that says which state is missing names it, and one about registers names C1, which they demote to.
    const MISSING: &[&str] =
        &["rule.no-deep-state", "rule.bios-disabled-states", "rule.c1e-promotion", "rule.c1-demotion"];
    let meant = found.iter().filter(|f| !MISSING.contains(&f.id.as_str()) && !idle.states.is_empty());
    meant
        .flat_map(|f| {
            // What the BIOS calls its options is its own.
            let text = format!("{} | {} | {}", f.title, f.remedy, f.price);
            let text = text.replace("C0/C1 or C2", "").replace("Package C State: C6", "");
            // Nor has the table what the hardware makes of C1.
            let text = text.replace("C1 is entered as C1E", "").replace("than C1 claims", "");
            let absent: Vec<String> = core_states(&text).filter(|name| !has(name)).map(String::from).collect();
            absent.into_iter().map(move |name| format!("{}: {name} in: {text}", f.id))
        })
        .collect()
}

fn advise_kvm(Run { evidence, found, .. }: &Run) -> Vec<String> {
    let virt = &evidence.facts.virt;
    let is_kvm = virt.is_guest() == Some(true) && virt.hypervisors.first().is_some_and(|clue| clue.is_kvm());
    let advises = |f: &&Finding| {
        let text = texts(f);
        ["cpuidle-haltpoll", "cpuidle_haltpoll", "kvm.halt_poll_ns"].iter().any(|word| text.contains(word))
    };
    // The driver haltpoll is KVM's.
    let is_haltpoll = evidence.facts.idle.driver.get().is_some_and(|driver| driver == "haltpoll");
    let wrong = found.iter().filter(|_| !is_kvm && !is_haltpoll).filter(advises);
    wrong.map(|f| format!("{}: {}", f.id, f.remedy)).collect()
}

/// A rule that says no because another one speaks of it: that one must.
fn leave_it_to_nobody(Run { found, rulings, .. }: &Run) -> Vec<String> {
    let speaks = |id: &str| found.iter().any(|f| f.id == id);
    let mut silent = Vec::new();
    for ruling in rulings {
        let Answer::No { because } = &ruling.answer else { continue };
        let named = because.split([' ', ',', ';', '(', ')']).filter(|word| word.starts_with("rule."));
        let named = named.map(|word| word.trim_end_matches(['.', ':']));
        silent.extend(named.filter(|id| !speaks(id)).map(|id| format!("{}: {id} says nothing", ruling.rule)));
    }
    silent
}

/// Values that differ between CPUs, or lie below those of the boot, are problems, and the finding says of how many.
#[test]
fn uneven_settings_are_problems() {
    const UNEVEN: &[(&str, &str)] = &[
        ("half the clock on four policies", "rule.max-below-hardware"),
        ("highest level of the HWP request on CPU 0", "rule.max-below-hardware"),
        ("lower limit raised on four policies", "rule.min-frequency"),
        ("four policies at 200 MHz", "rule.below-lowest"),
        ("EPP power on four policies", "rule.epp"),
        ("governor powersave on four policies", "rule.governor"),
        ("one uncore domain below the boot", "rule.uncore-window"),
        ("one uncore domain raised", "rule.uncore-window"),
        ("energy bias 15 on CPU 0", "rule.epb"),
        ("every sleeping state disabled on CPU 0", "rule.polling-by-accident"),
        ("every sleeping state disabled on CPU 0", "rule.idle-disabled-by-user"),
        ("a deep state off by default and on, on CPU 0 off", "rule.bios-disabled-states"),
        ("package limit on CPU 0", "rule.package-limit"),
        ("C1 demotion on CPU 0", "rule.c1-demotion"),
        ("C1E promotion on CPU 0", "rule.c1e-promotion"),
    ];
    let all: Vec<(String, &str, Evidence)> = hosts()
        .into_iter()
        .flat_map(|(host, tree)| variants(&tree).into_iter().map(move |(edit, tree)| (host.clone(), edit, tree)))
        .filter(|(_, edit, _)| UNEVEN.iter().any(|(name, _)| name == edit))
        .map(|(host, edit, tree)| {
            (host, edit, Evidence { facts: Snapshot::read(&tree, |_| true), ..Evidence::default() })
        })
        .filter(|(_, _, evidence)| evidence.facts.cpus.running().count() > 4)
        .collect();
    let recorded: Vec<(String, &str, String)> = hosts()
        .into_iter()
        .flat_map(|(host, tree)| {
            let evidence = Evidence { facts: Snapshot::read(&tree, |_| true), ..Evidence::default() };
            let asked = RULES.iter().filter(|rule| UNEVEN.iter().any(|(_, id)| *id == rule.id()));
            let titles = asked.filter_map(|rule| match rule.answer(&evidence) {
                Answer::Yes(found) => Some((host.clone(), rule.id(), found.title)),
                _ => None,
            });
            titles.collect::<Vec<_>>()
        })
        .collect();
    for (name, rule) in UNEVEN {
        let rule = RULES.iter().find(|known| known.id() == *rule).unwrap();
        let mut n_found = 0;
        for (host, _, evidence) in all.iter().filter(|(_, edit, _)| edit == name) {
            // Some hosts leave the rule out, and on some another setting decides.
            let Answer::Yes(found) = rule.answer(evidence) else { continue };
            if recorded.iter().any(|(name, id, title)| (name, *id, title) == (host, rule.id(), &found.title)) {
                continue;
            }
            // The only die of a package is even.
            if name.contains("uncore domain") && evidence.facts.uncore.deciding().count() == 1 {
                continue;
            }
            n_found += 1;
            assert_eq!(found.weight, Weight::Problem, "{host}, {name}: {}", found.title);
            assert!(says_extent(&found.title), "{host}, {name}: {}", found.title);
        }
        assert!(n_found > 0, "{name}: on no host");
    }
}
