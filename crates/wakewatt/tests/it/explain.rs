//! `explain` on recorded hosts: the words of the field with a machine's own numbers, and what is said of a word nobody knows.

use crate::schemas::{assert_valid, validator};
use crate::tool::{host, run};

fn of(word: &str, name: &str) -> String {
    let file = host(name);
    let said = run(&["explain", word, "--host", file.to_str().unwrap()]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{word}: {}", said.out);
    said.out
}

#[test]
fn a_state_a_package_a_rule_and_a_setting() {
    let c6 = of("c6", "emr9");
    assert!(c6.starts_with("C6\n") && c6.contains("C6 exit latency (claimed): 290us"), "{c6}");
    let pc6 = of("PC6", "clx2s0");
    assert!(pc6.contains("package 0 kept by: the firmware's limit is PC0"), "{pc6}");
    let rule = of("rule.package-limit", "clx2s0");
    assert!(rule.contains("answer: yes: Firmware keeps the packages awake"), "{rule}");
    let knob = of("freq.governor", "emr9");
    assert!(knob.contains("Price: ") && knob.contains("freq.governor: "), "{knob}");
    assert!(of("G0/S0/Cx", "rome0").contains("its Cx are POLL, C1, C2"));
}

#[test]
fn from_is_the_same_as_host() {
    let file = host("emr9");
    let said = run(&["explain", "C6", "--from", file.to_str().unwrap()]);
    assert_eq!(said.out, of("C6", "emr9"));
}

#[test]
fn an_unknown_word_is_2_and_names_the_nearest() {
    let file = host("emr9");
    let said = run(&["explain", "target residancy", "--host", file.to_str().unwrap()]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
    assert!(said.err.contains("did you mean target residency"), "{}", said.err);
    let said = run(&["explain", "qqqqqq", "--host", file.to_str().unwrap()]);
    assert!(said.code == Some(2) && said.err.contains("--list"), "{}", said.err);
}

#[test]
fn every_word_of_the_list_is_explained_and_documents_are_valid() {
    let file = host("emr9");
    let list = run(&["explain", "--list", "--host", file.to_str().unwrap()]);
    assert!(list.out.lines().count() > 150, "{}", list.out);
    for knob in wakewatt_tune::knobs::KNOBS.iter().map(|knob| knob.about().id) {
        assert!(list.out.lines().any(|l| l == knob), "{knob} is not in the list");
        // What a knob costs does not hang on the machine; this one is read in a tenth of the time.
        assert!(of(knob, "vm-haltpoll-2cpu").contains("Price: "), "{knob} is not explained");
    }
    let validator = validator("explain");
    for word in ["C6", "PC6", "rule.epp", "idle.state", "exit latency"] {
        let said = run(&["explain", word, "--json", "--host", file.to_str().unwrap()]);
        let document = assert_valid(&validator, word, &said.out);
        assert_eq!(document["schema"], "wakewatt/explain/v1");
    }
}
