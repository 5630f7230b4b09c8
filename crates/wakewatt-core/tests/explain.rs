//! What words are explained as on recorded machines; every word of the list is explained everywhere.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // The bans are for core itself; a test may read files.

use wakewatt_core::evidence::Evidence;
use wakewatt_core::explain::{Explanation, Kind, explain, names};
use wakewatt_core::facts::Snapshot;
use wakewatt_core::glossary;
use wakewatt_core::record::host_file;
use wakewatt_core::rules::{Answer, RULES};
use wakewatt_core::source::Tree;
use wakewatt_words::{Language, within};

fn recorded(text: &str) -> Evidence {
    let tree = host_file::read(text, "recorded").unwrap();
    Evidence { facts: Snapshot::read(&tree, |_| true), ..Evidence::default() }
}

fn emr() -> Evidence {
    recorded(include_str!("../../../fixtures/hosts/emr9.host"))
}

fn rows(word: &str, evidence: &Evidence) -> Vec<String> {
    let explanation = explain(word, evidence).unwrap();
    explanation.here.iter().map(|h| format!("{}: {}", h.what, h.says)).collect()
}

#[test]
fn a_core_state_has_the_numbers_of_this_machine() {
    let rows = rows("c6", &emr());
    for row in
        ["C6 exit latency (claimed): 290us", "C6 target residency (claimed): 800us", "C6 lets the package go to: PC6"]
    {
        assert!(rows.iter().any(|r| r == row), "{row}: {rows:#?}");
    }
    assert!(rows.iter().any(|r| r.starts_with("C6 since boot: ") && r.contains(" % of all idle time")), "{rows:#?}");
}

#[test]
fn the_driver_may_call_it_otherwise() {
    let raptor = recorded(include_str!("../../../fixtures/hosts/rpl0.host"));
    let rows = rows("C10", &raptor);
    assert!(rows[0].contains("this machine has POLL, C1_ACPI, C2_ACPI, C3_ACPI"), "{rows:#?}");
    assert_eq!(rows[1], "the driver calls it: C3_ACPI");
    let epyc = recorded(include_str!("../../../fixtures/hosts/rome0.host"));
    let pc6 = explain("PC6", &epyc).unwrap();
    assert!(pc6.here[0].what == "not here" && pc6.cannot_tell.is_empty(), "{pc6:#?}");
    let altra = recorded(include_str!("../../../fixtures/edited-hosts/altra.host"));
    let pc6 = explain("PC6", &altra).unwrap();
    assert!(pc6.here[0].what == "not here" && pc6.cannot_tell.is_empty(), "{pc6:#?}");
}

#[test]
fn a_makers_word_on_another_makers_machine() {
    for host in [
        include_str!("../../../fixtures/hosts/rome0.host"),
        include_str!("../../../fixtures/hosts/genoa0.host"),
        include_str!("../../../fixtures/hosts/turin0.host"),
    ] {
        let epyc = recorded(host);
        for word in ["C6", "CC6"] {
            let rows = rows(word, &epyc);
            assert_eq!(rows[0], "here: no state of that name; this machine has POLL, C1, C2");
            assert_eq!(rows[1], "AMD calls it CC6; it is usually reached through: C2", "{word}");
            assert!(rows[2].starts_with("C2 exit latency (claimed): "), "{rows:#?}");
        }
        let rows = rows("C6P", &epyc);
        assert!(rows[0].starts_with("not here: a word of Intel; this machine's processor is"), "{rows:#?}");
    }
    assert!(rows("WFI", &emr())[0].starts_with("not here: a word of Arm"));
    assert!(!rows("C6P", &emr())[0].starts_with("not here"), "another generation of the same maker");
}

#[test]
fn what_is_said_is_true_of_the_machine() {
    let has = |rows: &[String], what: &str| rows.iter().any(|row| row.contains(what));
    let rome = recorded(include_str!("../../../fixtures/hosts/rome0.host"));
    for word in ["HWP", "EPB", "uncore", "intel_pstate"] {
        assert!(rows(word, &rome)[0].starts_with("not here: a word of Intel"), "{word}");
    }
    assert!(has(&rows("turbo", &emr()), "turbo forbidden"));
    assert!(has(&rows("max_perf_pct", &emr()), "in force on"));
    assert!(has(&rows("governor", &emr()), "performance") || has(&rows("governor", &emr()), "powersave"));
    let text = include_str!("../../../fixtures/hosts/emr9.host");
    let spinning = recorded(&text.replacen("BOOT_IMAGE", "idle=poll BOOT_IMAGE", 1));
    for word in ["POLL", "C6"] {
        assert!(has(&rows(word, &spinning), "no: booted with idle=poll"), "{word}: {:#?}", rows(word, &spinning));
    }
    assert!(has(&rows("PC6", &spinning), "every idle CPU spins"), "{:#?}", rows("PC6", &spinning));
}

#[test]
fn efficiency_latency_control_has_the_numbers_of_its_domains() {
    let xeon6 = recorded(include_str!("../../../fixtures/hosts/gnr3.host"));
    let rows = rows("elc", &xeon6);
    assert!(rows.iter().any(|row| row.contains("efficiency floor: ")), "{rows:#?}");
}

#[test]
fn machine_states_name_the_cpus_states() {
    let rows = rows("g0/s0/CX", &emr());
    assert_eq!(rows[0], "this machine runs, in: G0/S0; its Cx are POLL, C1, C1E, C6");
}

#[test]
fn a_rule_is_its_essay_and_its_answer_here() {
    let named = explain("exit_latency_claims", &emr()).unwrap();
    assert_eq!((named.kind, named.name.as_str()), (Kind::Rule, "rule.exit-latency-claims"));
    assert!(named.text.len() > 100 && named.title.is_some_and(|t| t.ends_with('?')));
    assert!(named.here.len() + named.cannot_tell.len() > 0, "it answers");
}

#[test]
fn a_state_of_this_table_only() {
    let root = "/sys/devices/system/cpu";
    let text = format!(
        "//- {root}/online\n0\n//- {root}/present\n0\n//- {root}/cpu0/cpuidle/state0/name\nLPI-2\n//- {root}/cpu0/cpuidle/state0/latency\n300\n"
    );
    let evidence = Evidence { facts: Snapshot::read(&Tree::from_text(&text), |_| true), ..Evidence::default() };
    assert_eq!(explain("lpi-2", &evidence).unwrap().kind, Kind::IdleState);
    assert_eq!(rows("lpi-2", &evidence)[0], "LPI-2 exit latency (claimed): 300us");
    assert_eq!(explain("LPI-3", &evidence), None);
}

#[test]
fn every_name_is_explained_even_where_nothing_is_known() {
    for evidence in [Evidence::default(), emr()] {
        for name in names(&evidence) {
            let explanation = explain(&name, &evidence).unwrap_or_else(|| panic!("{name} is not explained"));
            assert!(!explanation.text.is_empty(), "{name}");
            assert!(explanation.here.len() + explanation.cannot_tell.len() > 0, "{name} says nothing of this machine");
        }
    }
}

#[test]
fn every_term_is_explained_in_chinese_and_only_where_it_is_wanted() {
    let emr = emr();
    for term in glossary::terms() {
        let of = |language| within(language, || explain(term.name, &emr).unwrap());
        let (english, chinese) = (of(Language::English), of(Language::Chinese));
        assert_eq!(english.text, term.text);
        let is_han = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
        assert!(
            chinese.text.contains(is_han) && chinese.text.ends_with('。'),
            "{} is not in Chinese: {}",
            term.name,
            chinese.text
        );
        // Names and sources are the same everywhere, and as much is said of this machine.
        let kept = |e: &Explanation| (e.name.clone(), e.source.clone(), e.see_also.clone());
        assert_eq!(kept(&english), kept(&chinese));
        let n_said = |e: &Explanation| (e.here.len(), e.cannot_tell.len());
        assert_eq!(n_said(&english), n_said(&chinese), "{}", term.name);
    }
    let c6 = within(Language::Chinese, || rows("C6", &emr));
    for row in ["C6 退出延迟（标称）: 290us", "C6 目标驻留时间（标称）: 800us", "C6 允许封装进入: PC6"]
    {
        assert!(c6.iter().any(|r| r == row), "{row}: {c6:#?}");
    }
}

/// Words in capitals that everybody knows who reads a finding, that name a file, or a case of the GUIDE.
const KNOWN: &[&str] =
    &["BIOS", "CPU", "CPUs", "DMA", "DMI", "EPYC", "K4", "KVM", "L3", "NVMe", "PID", "QEMU", "CONFIG_NO_HZ_IDLE"];

/// The words in capitals of a text: EPP, PC6, C1E.
fn capitals(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'));
    let is_jargon = |word: &&str| {
        let n_upper = word.chars().filter(char::is_ascii_uppercase).count();
        let n_lower = word.chars().filter(char::is_ascii_lowercase).count();
        (n_upper >= 2 && n_lower <= 1) || (n_upper == 1 && n_lower == 0 && word.len() > 1)
    };
    words.filter(|word| !word.starts_with(|c: char| c.is_ascii_digit())).filter(is_jargon)
}

#[test]
fn the_jargon_of_findings_is_explained() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts");
    let mut unknown = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let evidence = recorded(&std::fs::read_to_string(&path).unwrap());
        let mut said = std::collections::BTreeMap::new();
        for rule in RULES {
            let text = match rule.check(&evidence) {
                Answer::Yes(finding) => [finding.title, finding.remedy, finding.price, finding.cost.text].join(" "),
                Answer::No { because } | Answer::DoesNotApply { because } | Answer::CannotTell { because, .. } => {
                    because
                }
            };
            for word in capitals(&text).filter(|word| !KNOWN.contains(word)) {
                said.entry(word.to_string()).or_insert_with(|| format!("{}: {text}", rule.id()));
            }
        }
        // Each word once, however many findings say it.
        unknown.extend(said.into_iter().filter(|(word, _)| explain(word, &evidence).is_none()));
    }
    assert!(unknown.is_empty(), "in no glossary: {unknown:#?}");
}
