//! What must hold of the findings of any machine: asked on every recorded host, and on each with one thing changed.
//!
//! A rule is easily right on the host it was written for. Here each recording of `fixtures/hosts` is read as it is and with
//! the changes people make (states disabled, arguments, limits, uneven settings), and the findings of one run must not
//! exclude each other, must say how many of many they are about, and must propose nothing that changes nothing. More hosts:
//! `WAKEWATT_HOSTS=FOLDER cargo test -p wakewatt-core --test every_host`.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // The bans are for core itself; a test may read files.

use std::path::{Path, PathBuf};
use wakewatt_core::enterable;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::record::host_file;
use wakewatt_core::rules::exclusions::contradictions;
use wakewatt_core::rules::{Answer, Finding, Ruling, Weight, judge};
use wakewatt_core::source::Tree;

/// The recorded hosts, and those of the folder that the environment names.
fn hosts() -> Vec<(String, Tree)> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts");
    let folders: Vec<PathBuf> =
        [own].into_iter().chain(std::env::var_os("WAKEWATT_HOSTS").map(PathBuf::from)).collect();
    let mut all = Vec::new();
    for folder in folders {
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        for path in files.filter(|path| path.extension().is_some_and(|e| e == "host")) {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            all.push((name.clone(), host_file::read(&std::fs::read_to_string(&path).unwrap(), &name).unwrap()));
        }
    }
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
    ("energy bias 15 on CPU 0", |path, _| {
        cpu_of(path).filter(|(cpu, rest)| *cpu == 0 && *rest == "power/energy_perf_bias").map(|_| "15".into())
    }),
];

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
type Fault = (&'static str, fn(&Evidence, &[Finding]) -> Vec<String>);

const FAULTS: &[Fault] = &[
    ("findings that exclude each other", exclude_each_other),
    ("CPUs that spin unseen, or are said to and do not", spin_unseen),
    ("a finding about many things that names one of them", name_one),
];

/// Every host as recorded and with each change, read once.
#[test]
fn what_must_hold_of_any_machine() {
    let hosts = hosts();
    assert!(hosts.len() >= 18, "fewer machines than there were");
    let of_host = |(name, tree): &(String, Tree)| {
        let mut faults = Vec::new();
        for edit in EDITS {
            let Some(tree) = edited(tree, edit) else { continue };
            let evidence = Evidence { facts: Snapshot::read(&tree, |_| true), ..Evidence::default() };
            let found = findings(judge(&evidence));
            for (fault, is_so) in FAULTS {
                faults.extend(is_so(&evidence, &found).iter().map(|at| format!("{name}, {}: {fault}: {at}", edit.0)));
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

fn findings(rulings: Vec<Ruling>) -> Vec<Finding> {
    let yes = rulings.into_iter().filter_map(|ruling| match ruling.answer {
        Answer::Yes(finding) => Some(*finding),
        _ => None,
    });
    yes.collect()
}

fn exclude_each_other(evidence: &Evidence, _: &[Finding]) -> Vec<String> {
    contradictions(evidence).into_iter().map(|(one, other)| format!("{one} and {other}")).collect()
}

fn spin_unseen(evidence: &Evidence, found: &[Finding]) -> Vec<String> {
    let spinning = enterable::spinning(&enterable::of(&evidence.facts));
    let is_found = found.iter().any(|f| f.id == "rule.polling-by-accident");
    (is_found == spinning.is_empty()).then(|| format!("CPUs {spinning}")).into_iter().collect()
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

fn name_one(evidence: &Evidence, found: &[Finding]) -> Vec<String> {
    // A finding that lists every device it is about, and the one node of another kind.
    const LISTS: &[&str] = &["rule.irq-affinity", "rule.pcie-aspm", "rule.memory-only-nodes"];
    let (n_cpus, n_domains) = (evidence.facts.cpus.running().count(), evidence.facts.uncore.deciding().count());
    let is_many = n_cpus > 1 && n_domains != 1;
    let is_faulty = |f: &&Finding| is_many && !LISTS.contains(&f.id.as_str()) && names_one_of_many(&f.title);
    found.iter().filter(is_faulty).map(|f| format!("{}: {}", f.id, f.title)).collect()
}

/// Values that differ between CPUs, or lie below those of the boot, are problems, and the first finding is one of them.
#[test]
fn uneven_settings_are_problems() {
    const UNEVEN: &[(&str, &str)] = &[
        ("half the clock on four policies", "rule.max-below-hardware"),
        ("EPP power on four policies", "rule.epp"),
        ("one uncore domain below the boot", "rule.uncore-window"),
        ("energy bias 15 on CPU 0", "rule.epb"),
        ("every sleeping state disabled on CPU 0", "rule.polling-by-accident"),
    ];
    for (name, rule) in UNEVEN {
        let edit = EDITS.iter().find(|edit| edit.0 == *name).unwrap();
        let mut n_found = 0;
        for (host, tree) in hosts() {
            let Some(tree) = edited(&tree, edit) else { continue };
            let evidence = Evidence { facts: Snapshot::read(&tree, |_| true), ..Evidence::default() };
            let found = findings(judge(&evidence)).into_iter().find(|f| f.id == *rule);
            // A policy of four CPUs may be all there is, and some hosts leave the rule out.
            let Some(found) = found.filter(|_| evidence.facts.cpus.running().count() > 4) else { continue };
            n_found += 1;
            assert_eq!(found.weight, Weight::Problem, "{host}, {name}: {}", found.title);
        }
        assert!(n_found > 1, "{name}: on {n_found} hosts only");
    }
}
