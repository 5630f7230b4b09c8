//! How rules are tested: machine text in, one line out.

use super::{Answer, RULES, Rule};
use crate::evidence::Evidence;
use crate::facts::Snapshot;
use crate::samples::experiment::Block;
use crate::samples::woken::Woken;
use crate::samples::{IdleDelta, StateDelta, Window};
use crate::source::Tree;

/// A block of this arm in which a CPU slept deeply before each wake-up, by its idle counters.
pub(crate) fn slept(arm: &str) -> Block {
    let state =
        |(index, name, n_usage): (u32, &str, u64)| StateDelta { index, name: name.into(), n_usage, time_ns: n_usage };
    Block {
        round: 0,
        arm: arm.into(),
        window: Window::default(),
        values: Vec::new(),
        idle: vec![IdleDelta { cpu: 0, states: [(1, "C1", 0), (2, "C6", 9)].map(state).to_vec() }],
        woken: Some(Woken::new(0, 9)),
        ..Block::default()
    }
}

/// Evidence of a machine in the tests' mini-language: every topic read, nothing measured.
pub(crate) fn evidence(text: &str) -> Evidence {
    Evidence { facts: Snapshot::read(&Tree::from_text(text), |_| true), ..Evidence::default() }
}

/// `yes risk predicted: title`, `no: because`, `cannot tell: because`.
pub(crate) fn ask(rule: &dyn Rule, text: &str) -> String {
    line(rule, &evidence(text))
}

/// The same of evidence made by hand; a finding must be complete.
pub(crate) fn line(rule: &dyn Rule, evidence: &Evidence) -> String {
    match rule.answer(evidence) {
        Answer::No { because } => format!("no: {because}"),
        Answer::DoesNotApply { because } => format!("does not apply: {because}"),
        Answer::CannotTell { because, try_this } => {
            assert!(!because.is_empty() && !try_this.to_string().is_empty(), "{}", rule.id());
            format!("cannot tell: {because}")
        }
        Answer::Yes(f) => {
            assert_eq!(f.id, rule.id());
            assert!(
                !f.evidence.is_empty() && f.evidence.iter().all(|b| !b.path.is_empty()),
                "{} rests on nothing",
                f.id
            );
            assert!(!f.remedy.is_empty() && !f.price.is_empty() && !f.cost.text.is_empty(), "{} is incomplete", f.id);
            let commands = [
                "doctor",
                "inspect",
                "measure wakeup",
                "measure network",
                "measure idle",
                "measure frequency",
                "measure disk",
                "measure memory",
                "measure cores",
                "compare",
            ];
            assert!(commands.iter().any(|c| f.verify.contains(&format!("wakewatt {c}"))), "{}: {}", f.id, f.verify);
            format!("yes {:?} {:?}: {}", f.weight, f.cost.basis, f.title).to_lowercase()
        }
    }
}

/// The options of `wakewatt tune` that a finding proposes; empty where there is no finding or no plan.
pub(crate) fn plan(rule: &dyn Rule, text: &str) -> String {
    match rule.check(&evidence(text)) {
        Answer::Yes(f) => f.plan.map_or(String::new(), |plan| plan.options().join(" ")),
        _ => String::new(),
    }
}

/// Two CPUs with these idle states (name, exit latency, target residency in microseconds), all enabled and unused.
pub(crate) fn idle(driver: &str, states: &[(&str, u64, u64)]) -> String {
    let root = "/sys/devices/system/cpu";
    let mut text = format!(
        "//- {root}/present\n0-1\n//- {root}/online\n0-1\n//- {root}/cpuidle/current_driver\n{driver}\n
         //- {root}/cpuidle/current_governor\nmenu\n"
    );
    for cpu in 0..2 {
        text += &format!("//- {root}/cpu{cpu}/power/pm_qos_resume_latency_us\n0\n");
        for (index, (name, latency, residency)) in states.iter().enumerate() {
            let at = format!("//- {root}/cpu{cpu}/cpuidle/state{index}");
            text +=
                &format!("{at}/name\n{name}\n{at}/latency\n{latency}\n{at}/residency\n{residency}\n{at}/disable\n0\n");
            text += &format!("{at}/default_status\nenabled\n");
        }
    }
    text
}

/// An Ice Lake server's table.
pub(crate) fn icx() -> String {
    idle("intel_idle", &[("POLL", 0, 0), ("C1", 1, 1), ("C1E", 4, 4), ("C6", 170, 600)])
}

/// A guest's table.
pub(crate) fn haltpoll() -> String {
    idle("haltpoll", &[("POLL", 0, 0), ("haltpoll idle", 1, 1)]) + "//- /proc/cpuinfo\nflags : fpu hypervisor\n"
}

#[test]
fn every_rule_is_silent_where_nothing_is_known() {
    for rule in RULES {
        for (what, evidence) in [("nothing", Evidence::default()), ("empty", evidence(""))] {
            let said = line(*rule, &evidence);
            assert!(!said.starts_with("yes"), "{} accuses {what}: {said}", rule.id());
        }
    }
}

#[test]
fn ids_are_unique_and_are_the_file_names() {
    let source = include_str!("mod.rs");
    let mut files: Vec<String> = source
        .lines()
        .filter_map(|l| l.strip_prefix("mod ")?.strip_suffix(';'))
        .map(|file| format!("rule.{}", file.replace('_', "-")))
        .collect();
    let mut ids: Vec<String> = RULES.iter().map(|r| r.id().to_string()).collect();
    assert_eq!(ids, files, "one file per rule, in the order of RULES");
    ids.dedup();
    files.sort();
    files.dedup();
    assert_eq!(ids.len(), files.len(), "two rules share an id");
    assert!(RULES.iter().all(|r| r.question().ends_with('?')), "a rule asks a question");
}

/// Two CPUs in one cpufreq policy with these attributes, beside whatever else is said of /sys/devices/system/cpu.
pub(crate) fn policy(attributes: &[(&str, &str)]) -> String {
    let root = "/sys/devices/system/cpu";
    let mut text = format!("//- {root}/present\n0-1\n//- {root}/online\n0-1\n");
    for (name, value) in [("affected_cpus", "0 1"), ("related_cpus", "0 1")].iter().chain(attributes) {
        text += &format!("//- {root}/cpufreq/policy0/{name}\n{value}\n");
    }
    text
}

#[test]
fn no_plan_where_it_would_fail_or_undo_a_decision() {
    let cpu = "//- /sys/devices/system/cpu";
    let msr = |says: &str| {
        format!(
            "{cpu}/online\n0\n{cpu}/cpu0/topology/physical_package_id\n0\n
             {cpu}/modalias\ncpu:type:x86,ven0000fam0006mod0055:feature:\n//- msr {says}\n"
        )
    };
    // Locked by firmware.
    let zone = "//- /sys/class/powercap/intel-rapl:0";
    let limit = |register: &str| {
        let rapl = format!(
            "{zone}/name\npackage-0\n{zone}/constraint_0_name\nlong_term\n
             {zone}/constraint_0_power_limit_uw\n150000000\n{zone}/constraint_0_max_power_uw\n250000000\n"
        );
        plan(&super::power_limit::PowerLimit, &(msr(register) + &rapl))
    };
    assert_eq!(limit("0x610 cpu0 8000"), "--set power.limit.long@intel-rapl:0=250W");
    assert_eq!(limit("0x610 cpu0 8000000000008000"), "");
    // The governor forces it.
    let epp = |governor: &str| {
        let preference = ("energy_performance_preference", "power");
        plan(&super::epp::Epp, &policy(&[("scaling_governor", governor), preference]))
    };
    assert_eq!((epp("powersave").as_str(), epp("performance").as_str()), ("--set freq.epp=performance", ""));
    let raised = |governor: &str| {
        let (min, hardware) = (("scaling_min_freq", "2000000"), ("cpuinfo_min_freq", "800000"));
        plan(&super::min_frequency::MinFrequency, &policy(&[("scaling_governor", governor), min, hardware]))
    };
    assert_eq!((raised("ondemand").as_str(), raised("performance").as_str()), ("--set freq.min=min", ""));
    // A governor that is not there.
    let offered = |all: &str| {
        let (driver, governor) = (("scaling_driver", "acpi-cpufreq"), ("scaling_governor", "schedutil"));
        plan(&super::governor::Governor, &policy(&[driver, governor, ("scaling_available_governors", all)]))
    };
    assert_eq!(offered("schedutil performance"), "--set freq.governor=performance");
    assert_eq!(offered("schedutil ondemand"), "");
    // The firmware's limit clamps any request.
    let limited = |bios: &str| {
        let all = [("scaling_driver", "acpi-cpufreq"), ("scaling_available_frequencies", "3000000 2000000")];
        let limits = [("scaling_max_freq", "2000000"), ("bios_limit", bios)];
        plan(&super::max_below_hardware::MaxBelowHardware, &policy(&[all[0], all[1], limits[0], limits[1]]))
    };
    assert_eq!((limited("3000000").as_str(), limited("2000000").as_str()), ("--set freq.max=3000MHz", ""));
    // Chosen at boot.
    let passive = |line: &str| {
        let text = policy(&[("scaling_driver", "intel_cpufreq")]);
        let rest = format!("{cpu}/intel_pstate/status\npassive\n//- /proc/cmdline\n{line}\n");
        plan(&super::frequency_driver::FrequencyDriver, &(text + &rest))
    };
    assert_eq!((passive("quiet").as_str(), passive("intel_pstate=passive").as_str()), ("--set freq.driver=active", ""));
    let links = |line: &str| {
        let at = "//- /sys/class/nvme/nvme0";
        let text = format!("{at}/model\nX\n{at}/device/link/l1_aspm\n1\n//- /proc/cmdline\n{line}\n");
        let policy = "//- /sys/module/pcie_aspm/parameters/policy\n[default] performance\n";
        plan(&super::pcie_aspm::PcieAspm, &(text + policy))
    };
    assert_eq!((links("quiet").as_str(), links("pcie_aspm=off").as_str()), ("--set pcie.aspm=performance", ""));
    // The only sleeping state stays, or the CPUs would spin.
    let refused = |states: &[(&str, u64, u64)], last: usize| {
        let counters: String = (0..2)
            .map(|n| format!("{cpu}/cpu{n}/cpuidle/state{last}"))
            .map(|at| format!("{at}/rejected\n5000\n{at}/usage\n100000\n"))
            .collect();
        plan(&super::idle_rejected::IdleRejected, &(idle("acpi_idle", states) + &counters))
    };
    assert_eq!(refused(&[("POLL", 0, 0), ("C1", 1, 1), ("C6", 170, 600)], 2), "--set idle.state.C6=off");
    assert_eq!(refused(&[("POLL", 0, 0), ("C1", 1, 1)], 1), "");
}

#[test]
fn interrupts_are_spread_on_their_node_unless_a_daemon_or_the_kernel_does_it() {
    let lines = |names: [&str; 2]| {
        let [a, b] = names;
        format!(
            "//- /sys/devices/system/cpu/present\n0-3\n//- /sys/devices/system/cpu/online\n0-3\n
             //- /sys/devices/system/node/online\n0-1\n//- /sys/devices/system/node/node0/cpulist\n0-1\n
             //- /sys/devices/system/node/node1/cpulist\n2-3\n//- /proc/interrupts\nCPU0 CPU1 CPU2 CPU3\n
             36: 0 0 100000 0 PCI-MSI 1-edge {a}\n37: 0 0 200000 0 PCI-MSI 2-edge {b}\n"
        )
    };
    let rule = super::irq_affinity::IrqAffinity;
    let nic = lines(["eth0-TxRx-0", "eth0-TxRx-1"]);
    assert_eq!(plan(&rule, &nic), "--set irq.affinity@irq36=2 --set irq.affinity@irq37=3");
    assert_eq!(plan(&rule, &lines(["nvme0q1", "nvme0q2"])), "");
    let daemon = "//- /proc/7/comm\nirqbalance\n//- /proc/7/stat\n7 (irqbalance) S 1\n";
    assert_eq!(plan(&rule, &(nic + daemon)), "");
}

/// The line of a rule on a recorded machine, given as the text of its .host file. Marked as what it is, a test's: the rules
/// themselves never see a recording.
#[cfg(test)]
pub(crate) fn recorded(rule: &dyn Rule, text: &str) -> String {
    let tree = crate::record::host_file::read(text, "recorded").expect("a fixture");
    line(rule, &Evidence { facts: Snapshot::read(&tree, |_| true), ..Evidence::default() })
}

/// What a recorded machine says with some files changed: the new content by path, none where it stays.
pub(crate) fn edited(text: &str, change: impl Fn(&str) -> Option<&'static str>) -> Evidence {
    let mut tree = crate::record::host_file::read(text, "recorded").expect("a fixture");
    for (path, content) in &mut tree.files {
        if let Some(new) = change(path) {
            *content = Ok(new.as_bytes().to_vec());
        }
    }
    Evidence { facts: Snapshot::read(&tree, |_| true), ..Evidence::default() }
}
