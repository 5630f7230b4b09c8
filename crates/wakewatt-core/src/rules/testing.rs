//! How rules are tested: machine text in, one line out.

use super::{Answer, RULES, Rule};
use crate::evidence::Evidence;
use crate::facts::Snapshot;
use crate::source::Tree;

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
    match rule.check(evidence) {
        Answer::No { because } => format!("no: {because}"),
        Answer::CannotTell { because, try_this } => {
            assert!(!because.is_empty() && !try_this.is_empty(), "{}", rule.id());
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
                "compare",
            ];
            assert!(commands.iter().any(|c| f.verify.contains(&format!("wakewatt {c}"))), "{}: {}", f.id, f.verify);
            format!("yes {:?} {:?}: {}", f.weight, f.cost.basis, f.title).to_lowercase()
        }
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
