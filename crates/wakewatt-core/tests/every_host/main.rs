//! What must hold of the findings of any machine: asked on every recorded host, and on each with one thing changed.
//!
//! A rule is easily right on the host it was written for. Here each recording of `fixtures/hosts` is read as it is and with
//! the changes people make (states disabled, arguments, limits, uneven settings), and the findings of one run must not
//! exclude each other, must say how many of many they are about, must use no other maker's words, and must not leave the
//! answer to a rule that has none. More hosts:
//! `WAKEWATT_HOSTS=FOLDER cargo test -p wakewatt-core --test every_host`.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // The bans are for core itself; a test may read files.

mod machines;

use machines::{cpu_of, hosts, policy_of, variants};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::enterable;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::rules::exclusions::{Assertion, contradictions};
use wakewatt_core::rules::{Answer, Finding, RULES, Ruling, Weight, judge};
use wakewatt_core::source::Tree;

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
