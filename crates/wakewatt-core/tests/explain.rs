//! What words are explained as on recorded machines; every word of the list is explained everywhere.
#![allow(clippy::unwrap_used)] // A test may.

use wakewatt_core::evidence::Evidence;
use wakewatt_core::explain::{Kind, explain, names};
use wakewatt_core::facts::Snapshot;
use wakewatt_core::record::host_file;
use wakewatt_core::source::Tree;

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
    assert!(explain("PC6", &epyc).unwrap().cannot_tell[0].contains("not known here"));
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
