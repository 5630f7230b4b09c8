//! Core and package states on recorded machines: what is said of generations that are known, and that nothing is said of others.
#![allow(clippy::unwrap_used)] // A test may.

use wakewatt_core::facts::Snapshot;
use wakewatt_core::package_states::read;
use wakewatt_core::record::host_file;

macro_rules! recorded {
    ($name:literal) => {
        recorded($name, include_str!(concat!("../../../fixtures/hosts/", $name, ".host")))
    };
}

fn recorded(name: &str, text: &str) -> Snapshot {
    Snapshot::read(&host_file::read(text, name).unwrap(), |_| true)
}

/// Every row, one line each.
fn said(facts: &Snapshot) -> Vec<String> {
    let rows = read(facts).sheet().rows;
    rows.iter().map(|row| format!("{}: {}", row.label, row.cell.as_ref().unwrap())).collect()
}

#[test]
fn firmware_keeps_a_cascade_lake_from_pc6() {
    assert_eq!(
        said(&recorded!("clx2s0")),
        [
            "generation: Skylake, Cascade Lake, Cooper Lake server",
            "core state -> package state: C1 -> PC0, C1E -> PC0, C6 -> PC6",
            "package 0: settings allow PC0 of PC6",
            "package 0 kept by: the firmware's limit is PC0",
            "package 1: settings allow PC0 of PC6",
            "package 1 kept by: the firmware's limit is PC0",
        ]
    );
}

#[test]
fn nothing_keeps_an_emerald_rapids() {
    assert_eq!(
        said(&recorded!("emr9")),
        [
            "generation: Sapphire Rapids, Emerald Rapids",
            "core state -> package state: C1 -> PC0, C1E -> PC0, C6 -> PC6",
            "package 0: settings allow PC6, its deepest",
            "package 1: settings allow PC6, its deepest",
        ]
    );
}

#[test]
fn granite_rapids_needs_the_state_with_a_p() {
    assert_eq!(
        said(&recorded!("gnr3")),
        [
            "generation: Granite Rapids",
            "core state -> package state: C1 -> PC0, C1E -> PC0, C6 -> less than PC6, C6P -> PC6",
            "package 0: settings allow PC6, its deepest",
            "package 1: settings allow PC6, its deepest",
        ]
    );
}

#[test]
fn a_client_is_told_by_its_hints() {
    assert_eq!(
        said(&recorded!("rpl0")),
        [
            "generation: Alder Lake, Raptor Lake",
            "core state -> package state: C1_ACPI (C1) -> PC0, C2_ACPI (C6) -> PC6, C3_ACPI (C10) -> PC10",
            "package 0: settings allow PC10, its deepest",
            "package 0 perhaps kept by: C1 demotion: a deep request may become C1",
        ]
    );
}

#[test]
fn amd_arm_and_guests_are_not_judged() {
    let hosts = [
        recorded!("rome0"),
        recorded!("genoa0"),
        recorded!("turin0"),
        recorded!("arm64-psci-6.1"),
        recorded!("vm-haltpoll-2cpu"),
        recorded!("knl0"),
        recorded!("dnv0"),
    ];
    for facts in hosts {
        let all = read(&facts);
        assert!(all.packages.is_empty() && all.cannot_tell.len() == 1, "{}: {all:?}", facts.origin);
    }
}
