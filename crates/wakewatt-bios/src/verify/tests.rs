//! What a BIOS says beside what kernels have, from text.

use super::seen::compare;
use super::*;
use wakewatt_core::source::Tree;

fn facts(text: &str) -> Snapshot {
    Snapshot::read(&Tree::from_text(text), |_| true)
}

fn verdict(id: &str, word: &str, text: &str) -> (Verdict, String) {
    let found = compare(id, Some(word), &facts(text)).unwrap();
    (found.verdict, found.says)
}

const IDLE: &str = "
    //- /sys/devices/system/cpu/present
    0
    //- /sys/devices/system/cpu/possible
    0
    //- /sys/devices/system/cpu/online
    0
    //- /sys/devices/system/cpu/cpuidle/current_driver
    DRIVER
    //- /sys/devices/system/cpu/cpu0/cpuidle/state0/name
    C1
    //- /sys/devices/system/cpu/cpu0/cpuidle/state0/disable
    0
    //- /sys/devices/system/cpu/cpu0/cpuidle/state1/name
    C6
    //- /sys/devices/system/cpu/cpu0/cpuidle/state1/disable
    DISABLE
    //- /sys/devices/system/cpu/cpu0/cpuidle/state1/default_status
    STATUS";

fn idle(driver: &str, disable: &str, status: &str) -> String {
    IDLE.replace("DRIVER", driver).replace("DISABLE", disable).replace("STATUS", status)
}

#[test]
fn intel_idle_ignores_a_bios_without_c_states_and_that_is_said() {
    let (verdict_now, says) = verdict("c-states", "off", &idle("intel_idle", "0", "enabled"));
    assert_eq!(verdict_now, Verdict::Differs);
    assert!(says.contains("intel_idle ignores it"), "{says}");
    // Registered, but off by default because ACPI lists none: nobody chooses it.
    assert_eq!(verdict("c-states", "off", &idle("intel_idle", "1", "disabled")).0, Verdict::Agrees);
    assert_eq!(verdict("c-states", "on", &idle("intel_idle", "0", "enabled")).0, Verdict::Agrees);
    assert_eq!(verdict("c-states", "on", &idle("intel_idle", "1", "enabled")).0, Verdict::Differs);
    assert_eq!(verdict("c-states", "off", "").0, Verdict::CannotTell, "no driver known");
    let found = compare("c-states", Some("on"), &facts(&idle("acpi_idle", "0", "enabled"))).unwrap();
    assert_eq!(found.tables.as_deref(), Some("ACPI lists C6"));
}

#[test]
fn a_word_that_leaves_the_choice_says_nothing() {
    for (id, word) in [
        ("c-states", Some("auto")),
        ("numa", Some("auto")),
        ("c-states", None),
        ("epb", Some("balanced")),
        ("cooling", Some("max")),
    ] {
        assert_eq!(compare(id, word, &Snapshot::default()), None, "{id} {word:?}");
    }
}

#[test]
fn smt_and_turbo_are_held_against_the_kernels_switches() {
    let smt = "
    //- /sys/devices/system/cpu/smt/active
    1
    //- /sys/devices/system/cpu/smt/control
    on";
    assert_eq!(verdict("smt", "on", smt).0, Verdict::Agrees);
    assert_eq!(verdict("smt", "off", smt).0, Verdict::Differs);
    assert_eq!(verdict("smt", "off", "").0, Verdict::CannotTell);
    let turbo = "
    //- /sys/devices/system/cpu/intel_pstate/no_turbo
    1";
    assert_eq!(verdict("turbo", "off", turbo).0, Verdict::Agrees);
    assert!(verdict("turbo", "on", turbo).1.contains("Linux has switched it off"));
}
