//! Recorded Redfish trees: small ones made here, among them hostile ones, and those of real BMCs where somebody has them
//! (`WAKEWATT_REDFISH_TREES`: a folder with one unpacked mockup per machine, `NAME/redfish/v1/index.json`).
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use wakewatt_bios::plan::{Plan, StepState, plan};
use wakewatt_bios::recorded::Recorded;
use wakewatt_bios::show::show;
use wakewatt_bios::walk::{Machine, NoBios, machine};
use wakewatt_bios::wish::Wish;
use wakewatt_testing::{Lacks, skipped};

fn open(folder: &Path) -> Result<Machine, String> {
    let mut recorded = Recorded::open(folder).map_err(|e| e.to_string())?;
    machine(&mut recorded, None).map_err(|e| e.to_string())
}

fn planned(machine: &Machine, words: &[&str]) -> Plan {
    let wishes: Vec<Wish> = words.iter().map(|word| Wish::parse(word).unwrap()).collect();
    plan(machine, machine.bios.as_ref().unwrap(), &wishes)
}

fn steps(plan: &Plan) -> Vec<String> {
    assert!(plan.refused.is_empty(), "{:?}", plan.refused);
    plan.steps.iter().map(|s| format!("{:?} {}={}", s.state, s.attribute, s.wished)).collect()
}

fn real(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("WAKEWATT_REDFISH_TREES").map(PathBuf::from)?.join(name);
    folder.is_dir().then_some(folder)
}

fn lacks(test: &str, name: &str) {
    skipped(test, Lacks::Here, &format!("WAKEWATT_REDFISH_TREES names no folder with the unpacked tree {name}"));
}

fn word(machine: &Machine, id: &str) -> Option<String> {
    show(machine, false).concepts.into_iter().find(|c| c.id == id).and_then(|c| c.word)
}

#[test]
fn the_tree_of_a_dell_r750() {
    let Some(folder) = real("dell") else { return lacks("the_tree_of_a_dell_r750", "dell") };
    let machine = open(&folder).unwrap();
    assert_eq!(
        (machine.vendor.as_str(), machine.model.as_str(), machine.id.as_str()),
        ("Dell Inc.", "PowerEdge R750", "System.Embedded.1")
    );
    let registry = machine.bios.as_ref().unwrap().registry.as_ref().unwrap();
    assert_eq!((registry.attributes.len(), registry.rules.len()), (682, 588));
    for (id, expected) in [
        ("profile", "performance"),
        ("c-states", "off"),
        ("c1e", "off"),
        ("uncore", "max"),
        ("smt", "on"),
        ("numa", "off"),
        ("epb", "performance"),
        ("memory-frequency", "max"),
    ] {
        assert_eq!(word(&machine, &format!("bios.{id}")).as_deref(), Some(expected), "{id}");
    }
    // On PerfOptimized everything is locked; the profile opens it, in the same plan.
    let plan = planned(&machine, &["bios.c-states=on", "bios.numa=snc2"]);
    assert_eq!(
        steps(&plan),
        ["WillChange SysProfile=Custom", "WillChange ProcCStates=Enabled", "WillChange SubNumaCluster=2-Way"]
    );
    assert!(plan.steps[0].is_gate && plan.needs_reboot && plan.is_validated);
    assert_eq!(
        steps(&planned(&machine, &["bios.c-states=off", "bios.uncore=max"])),
        ["NoChange ProcCStates=Disabled", "NoChange UncoreFrequency=MaxUFS"]
    );
    let plan = planned(&machine, &["bios.profile=balanced"]);
    assert!(
        plan.moved.iter().any(|m| m.attribute == "ProcCStates" && m.becomes.word() == "Enabled"),
        "{:?}",
        plan.moved
    );
    assert!(plan.steps.iter().all(|s| s.state == StepState::WillChange));
}

#[test]
fn the_tree_of_a_supermicro_x13() {
    let Some(folder) = real("supermicro") else { return lacks("the_tree_of_a_supermicro_x13", "supermicro") };
    let machine = open(&folder).unwrap();
    let registry = machine.bios.as_ref().unwrap().registry.as_ref().unwrap();
    assert_eq!((registry.attributes.len(), registry.rules.len()), (495, 350));
    assert_eq!(machine.reset.as_ref().map(|reset| reset.kinds.is_empty()), Some(false), "from its ActionInfo");
    for (id, expected) in [
        ("profile", "custom"),
        ("c-states", "auto"),
        ("turbo", "on"),
        ("package-c-states", "auto"),
        ("numa", "auto"),
        ("aspm", "off"),
        ("memory-frequency", "max"),
        ("smt", "on"),
    ] {
        assert_eq!(word(&machine, &format!("bios.{id}")).as_deref(), Some(expected), "{id}");
    }
    // Display names, not the numbers of the registry.
    let plan = planned(&machine, &["bios.c-states=off", "bios.numa=snc4", "bios.package-c-states=off"]);
    assert_eq!(
        steps(&plan),
        [
            "WillChange CPUC6Report_3D22=Disable",
            "WillChange EnhancedHaltState_C1E__3D23=Disable",
            "WillChange SNC_F300=Enable SNC4 (4-clusters)",
            "WillChange PackageCState_3D25=C0/C1 state"
        ]
    );
    // The bias is greyed out while the system controls it; what would change that is named, or done.
    let plan = planned(&machine, &["bios.epb=performance"]);
    assert!(!plan.refused.is_empty() || plan.steps.len() > 1, "{plan:?}");
    // No uncore switch under a known name: what sounds like it is hinted.
    let plan = planned(&machine, &["bios.uncore=max"]);
    assert!(plan.refused[0].why.contains("MeshRatio_3BD2"), "{}", plan.refused[0].why);
}

#[test]
fn every_tree_there_is_is_shown_without_a_fall() {
    let Some(folder) = std::env::var_os("WAKEWATT_REDFISH_TREES").map(PathBuf::from) else {
        return lacks("every_tree_there_is_is_shown_without_a_fall", "of any machine");
    };
    for entry in std::fs::read_dir(folder).unwrap().flatten().filter(|entry| entry.path().is_dir()) {
        let machine = open(&entry.path()).unwrap();
        let shown = show(&machine, true);
        assert!(
            shown.unavailable.is_some() || !shown.concepts.is_empty() || shown.not_validated.is_some(),
            "{:?}",
            entry.path()
        );
    }
}

/// Writes documents as a mockup: path below the top, and content.
fn tree(documents: &[(&str, Value)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, json) in documents {
        write(folder.path(), path, json.to_string().as_bytes());
    }
    folder
}

fn write(folder: &Path, path: &str, bytes: &[u8]) {
    let place = folder.join(path.trim_start_matches('/'));
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("index.json"), bytes).unwrap();
}

fn link(path: &str) -> Value {
    json!({ "@odata.id": path })
}

const ROOT: &str = "/redfish/v1";

fn root() -> (&'static str, Value) {
    (ROOT, json!({ "Systems": link("/redfish/v1/Systems"), "Registries": link("/redfish/v1/Registries") }))
}

fn systems() -> (&'static str, Value) {
    ("/redfish/v1/Systems", json!({ "Members": [link("/redfish/v1/Systems/1")] }))
}

fn system(bios: Value) -> (&'static str, Value) {
    ("/redfish/v1/Systems/1", json!({ "Id": "1", "Bios": bios }))
}

#[test]
fn links_in_a_circle_and_out_of_the_server_lead_nowhere() {
    // The BIOS is the system, the settings are the BIOS, the list of registries is the root.
    let circle = tree(&[
        (ROOT, json!({ "Systems": link("/redfish/v1/Systems"), "Registries": link(ROOT) })),
        systems(),
        (
            "/redfish/v1/Systems/1",
            json!({ "Id": "1", "Bios": link("/redfish/v1/Systems/1"), "Attributes": { "A": "x" },
            "@Redfish.Settings": { "SettingsObject": link("/redfish/v1/Systems/1") } }),
        ),
    ]);
    let machine = open(circle.path()).unwrap();
    let bios = machine.bios.as_ref().unwrap();
    assert!(bios.settings_path.is_none() && bios.registry.is_err() && bios.current.len() == 1);
    for evil in ["https://evil/redfish/v1/Bios", "//evil/x", "/redfish/../../../etc/passwd", "/redfish/v1/a\r\nb"] {
        let evil = tree(&[root(), systems(), system(link(evil))]);
        assert!(matches!(open(evil.path()).unwrap().bios, Err(NoBios::NotOffered)));
    }
    let folder = tree(&[root(), systems(), system(link("/redfish/v1/Systems/1/Bios"))]);
    std::os::unix::fs::symlink("/etc", folder.path().join("redfish/v1/Systems/1/Bios")).unwrap();
    assert!(matches!(open(folder.path()).unwrap().bios, Err(NoBios::NotRead(_))));
}

#[test]
fn no_bios_no_attributes_and_no_registry_are_three_answers() {
    let without = tree(&[root(), systems(), ("/redfish/v1/Systems/1", json!({ "Id": "1" }))]);
    assert!(matches!(open(without.path()).unwrap().bios, Err(NoBios::NotOffered)));
    let bios = "/redfish/v1/Systems/1/Bios";
    let empty = tree(&[root(), systems(), system(link(bios)), (bios, json!({ "Actions": {} }))]);
    let machine = open(empty.path()).unwrap();
    assert!(matches!(machine.bios, Err(NoBios::NoAttributes(_))));
    assert!(show(&machine, true).unavailable.is_some());
    let blind = tree(&[
        root(),
        systems(),
        system(link(bios)),
        (bios, json!({ "Attributes": { "LogicalProc": "Enabled", "N": 1.5, "O": {}, "P": null } })),
    ]);
    let machine = open(blind.path()).unwrap();
    let plan = planned(&machine, &["bios.smt=off"]);
    assert_eq!(steps(&plan), ["WillChange LogicalProc=Disabled"]);
    assert!(!plan.is_validated);
    let shown = show(&machine, true);
    assert!(shown.not_validated.is_some() && shown.attributes.len() == 1, "{shown:?}");
}

#[test]
fn wrong_types_huge_files_and_no_json_end_in_sentences() {
    for wrong in
        [json!(null), json!([]), json!("x"), json!({ "Systems": 7 }), json!({ "Systems": { "@odata.id": [] } })]
    {
        assert!(open(tree(&[(ROOT, wrong)]).path()).is_err());
    }
    for members in [json!(7), json!({ "Members": 7 }), json!({ "Members": [7, null, {}] })] {
        assert!(open(tree(&[root(), ("/redfish/v1/Systems", members)]).path()).is_err());
    }
    let bios = "/redfish/v1/Systems/1/Bios";
    let folder = tree(&[root(), systems(), system(link(bios))]);
    write(folder.path(), bios, b"<html>");
    assert!(open(folder.path()).unwrap().bios.unwrap_err().to_string().contains("no JSON"));
    // A file of 100 MB is not read to its end.
    write(folder.path(), bios, b"");
    let file = folder.path().join("redfish/v1/Systems/1/Bios/index.json");
    std::fs::File::options().write(true).open(&file).unwrap().set_len(100 << 20).unwrap();
    assert!(open(folder.path()).unwrap().bios.unwrap_err().to_string().contains("MiB"));
    assert!(open(Path::new("/nonexistent")).unwrap_err().contains("--from"));
}
