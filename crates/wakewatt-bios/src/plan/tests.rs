//! Plans against registries of every maker's kind, and against ones that mean harm.

use super::*;
use crate::registry::Registry;
use crate::walk::NotFound;
use serde_json::{Value, json};

fn rule(from: &str, test: &str, value: &str, to: &str, property: &str, becomes: Value) -> Value {
    json!({ "Dependency": { "MapFrom": [{ "MapFromAttribute": from, "MapFromProperty": "CurrentValue", "MapFromCondition": test,
        "MapFromValue": value }], "MapToAttribute": to, "MapToProperty": property, "MapToValue": becomes } })
}

fn entry(name: &str, values: &[&str], more: Value) -> Value {
    let values: Vec<Value> = values.iter().map(|v| json!({ "ValueName": v })).collect();
    let mut entry = json!({ "AttributeName": name, "Type": "Enumeration", "Value": values });
    more.as_object().unwrap().iter().for_each(|(key, value)| entry[key] = value.clone());
    entry
}

fn bios(attributes: Vec<Value>, rules: Vec<Value>, current: &[(&str, &str)]) -> Bios {
    let json = json!({ "RegistryEntries": { "Attributes": attributes, "Dependencies": rules } });
    let current: Values = current.iter().map(|(n, v)| ((*n).to_string(), Setting::Text((*v).into()))).collect();
    let mut registry = Registry::parse(&json, "/r").unwrap();
    registry.learn(&current);
    Bios {
        path: "/b".into(),
        current,
        pending: Values::new(),
        settings_path: Some("/b/s".into()),
        pending_unknown: None,
        is_flat: false,
        apply_times: Vec::new(),
        messages: Vec::new(),
        messages_time: None,
        registry: Ok(registry),
    }
}

fn machine(bios: &Bios) -> Machine {
    Machine {
        origin: "test".into(),
        path: "/s".into(),
        id: "1".into(),
        vendor: String::new(),
        model: String::new(),
        bios_version: String::new(),
        power_state: "On".into(),
        reset: None,
        bios: Ok(bios.clone()),
        others: Vec::new(),
    }
}

fn planned(bios: &Bios, wishes: &[&str]) -> Plan {
    let wishes: Vec<Wish> = wishes.iter().map(|wish| Wish::parse(wish).unwrap()).collect();
    plan(&machine(bios), bios, &wishes)
}

fn told(plan: &Plan) -> Vec<String> {
    plan.steps
        .iter()
        .map(|s| format!("{:?} {}={}{}", s.state, s.attribute, s.wished, if s.is_gate { " gate" } else { "" }))
        .collect()
}

const PROFILES: &[&str] = &["PerfPerWattOptimizedDapc", "PerfOptimized", "Custom"];

/// A Dell on PerfOptimized, as its registry has it: locks and forced values by rule, read-only as the state of the moment.
fn dell() -> Bios {
    let locked = json!({ "ReadOnly": true, "ResetRequired": true });
    let states = &["Enabled", "Disabled"];
    let mut rules = Vec::new();
    for name in ["ProcCStates", "ProcC1E"] {
        rules.push(rule("SysProfile", "NEQ", "Custom", name, "ReadOnly", json!(true)));
        rules.push(rule("SysProfile", "EQU", "PerfOptimized", name, "CurrentValue", json!("Disabled")));
        rules.push(rule("SysProfile", "EQU", "PerfPerWattOptimizedDapc", name, "CurrentValue", json!("Enabled")));
    }
    bios(
        vec![
            entry("SysProfile", PROFILES, json!({})),
            entry("ProcCStates", states, locked.clone()),
            entry("ProcC1E", states, locked),
            entry("LogicalProc", states, json!({})),
        ],
        rules,
        &[
            ("SysProfile", "PerfOptimized"),
            ("ProcCStates", "Disabled"),
            ("ProcC1E", "Disabled"),
            ("LogicalProc", "Enabled"),
        ],
    )
}

#[test]
fn the_profile_goes_first_and_is_a_line_of_its_own() {
    let plan = planned(&dell(), &["bios.c-states=on", "bios.smt=off"]);
    assert_eq!(
        told(&plan),
        ["WillChange SysProfile=Custom gate", "WillChange ProcCStates=Enabled", "WillChange LogicalProc=Disabled"]
    );
    assert!(plan.refused.is_empty() && plan.needs_reboot && plan.is_validated);
    assert!(
        plan.steps[0].why.contains("ProcCStates is read-only while SysProfile=PerfOptimized"),
        "{:?}",
        plan.steps[0]
    );
    assert!(plan.notes.iter().any(|note| note.contains("SysProfile leaves PerfOptimized")), "{:?}", plan.notes);
}

#[test]
fn what_is_so_already_needs_no_unlocking() {
    let plan = planned(&dell(), &["bios.c-states=off", "bios.c1e=off"]);
    assert_eq!(told(&plan), ["NoChange ProcCStates=Disabled", "NoChange ProcC1E=Disabled"]);
    assert!(!plan.needs_reboot);
}

#[test]
fn a_profile_moves_others_and_they_are_named() {
    let plan = planned(&dell(), &["bios.profile=balanced"]);
    assert_eq!(told(&plan), ["WillChange SysProfile=PerfPerWattOptimizedDapc"]);
    let moved: Vec<String> =
        plan.moved.iter().map(|m| format!("{}={} ({})", m.attribute, m.becomes, m.because)).collect();
    assert_eq!(
        moved,
        [
            "ProcC1E=Enabled (SysProfile=PerfPerWattOptimizedDapc)",
            "ProcCStates=Enabled (SysProfile=PerfPerWattOptimizedDapc)"
        ]
    );
    // The same thing asked for twice, once through the profile.
    let plan = planned(&dell(), &["bios.profile=balanced", "bios.c-states=on"]);
    assert_eq!(told(&plan)[1], "Follows ProcCStates=Enabled");
    assert!(plan.refused.is_empty());
}

#[test]
fn wishes_that_exclude_each_other_are_refused_with_both() {
    let plan = planned(&dell(), &["bios.profile=balanced", "bios.c-states=off"]);
    assert!(
        matches!(&plan.refused[0].refusal, Refusal::GateTaken { gate, needs, wanted, .. }
        if gate == "SysProfile" && needs == "Custom" && wanted == "PerfPerWattOptimizedDapc"),
        "{:?}",
        plan.refused
    );
    let plan = planned(&dell(), &["bios.smt=off", "attr:LogicalProc=Enabled"]);
    assert!(matches!(plan.refused[0].refusal, Refusal::Contradiction { .. }));
}

#[test]
fn unknown_name_unknown_value_and_locked_are_three_things() {
    let plan = planned(
        &dell(),
        &["bios.cstates=off", "attr:ProcCState=x", "bios.c-states=sometimes", "bios.uncore=max", "bios.smt=off"],
    );
    let kinds: Vec<&Refusal> = plan.refused.iter().map(|r| &r.refusal).collect();
    assert!(
        matches!(kinds[0], Refusal::UnknownConcept { near, .. } if near.contains(&"bios.c-states".to_string())),
        "{kinds:?}"
    );
    assert!(
        matches!(kinds[1], Refusal::UnknownAttribute { near, .. } if near.contains(&"ProcCStates".to_string())),
        "{kinds:?}"
    );
    assert!(matches!(kinds[2], Refusal::NotTaken { .. }) && matches!(kinds[3], Refusal::NoAttribute), "{kinds:?}");
    assert_eq!(told(&plan), ["WillChange LogicalProc=Disabled"], "the rest is still planned");
}

#[test]
fn a_flag_that_no_rule_explains_is_not_talked_away() {
    let locked = bios(
        vec![entry("LogicalProc", &["Enabled", "Disabled"], json!({ "ReadOnly": true }))],
        vec![],
        &[("LogicalProc", "Enabled")],
    );
    let plan = planned(&locked, &["bios.smt=off"]);
    assert!(matches!(plan.refused[0].refusal, Refusal::LockedUnexplained { how: "read-only", .. }));
    let never = bios(
        vec![entry("LogicalProc", &["Enabled", "Disabled"], json!({ "Immutable": true }))],
        vec![],
        &[("LogicalProc", "Enabled")],
    );
    assert!(matches!(planned(&never, &["bios.smt=off"]).refused[0].refusal, Refusal::Immutable { .. }));
}

#[test]
fn rules_in_a_circle_end_and_are_named() {
    let on_off = &["on", "off"];
    let names = ["LogicalProc", "B", "C"];
    let rules = vec![
        rule("B", "NEQ", "on", "LogicalProc", "ReadOnly", json!(true)),
        rule("C", "NEQ", "on", "B", "ReadOnly", json!(true)),
        rule("LogicalProc", "NEQ", "on", "C", "ReadOnly", json!(true)),
    ];
    let current: Vec<(&str, &str)> = names.iter().map(|n| (*n, "off")).collect();
    let circle = bios(names.iter().map(|n| entry(n, on_off, json!({}))).collect(), rules, &current);
    // What is wanted frees the third, so this one can be had.
    let plan = planned(&circle, &["attr:LogicalProc=on"]);
    assert_eq!(told(&plan), ["WillChange C=on gate", "WillChange B=on gate", "WillChange LogicalProc=on"]);
    // Each locked by the other, whatever it is set to.
    let both = vec![
        rule("B", "NEQ", "x", "LogicalProc", "ReadOnly", json!(true)),
        rule("LogicalProc", "NEQ", "x", "B", "ReadOnly", json!(true)),
    ];
    let circle = bios(
        vec![entry("LogicalProc", &["x", "y", "z"], json!({})), entry("B", &["x", "y"], json!({}))],
        both,
        &[("LogicalProc", "y"), ("B", "y")],
    );
    let plan = planned(&circle, &["attr:LogicalProc=z"]);
    assert!(plan.steps.is_empty() && plan.refused.len() == 1, "{plan:?}");
}

#[test]
fn a_menu_of_supermicro_is_opened_by_its_profile() {
    let below = json!({ "MenuPath": "./Power/CPU C State Control" });
    let mut all = vec![
        entry("PowerTechnology_FF77", &["Disable", "Energy Efficient", "Custom"], json!({ "MenuPath": "./Power" })),
        entry("CPUC6Report_3D22", &["Disable", "Enable", "Auto"], below.clone()),
        entry("EnhancedHaltState_C1E__3D23", &["Disable", "Enable"], below),
    ];
    let current = [
        ("PowerTechnology_FF77", "Energy Efficient"),
        ("CPUC6Report_3D22", "Auto"),
        ("EnhancedHaltState_C1E__3D23", "Enable"),
    ];
    let plan = planned(&bios(all.clone(), vec![], &current), &["bios.c-states=off"]);
    assert_eq!(
        told(&plan),
        [
            "WillChange PowerTechnology_FF77=Custom gate",
            "WillChange CPUC6Report_3D22=Disable",
            "WillChange EnhancedHaltState_C1E__3D23=Disable"
        ]
    );
    assert!(plan.steps[0].why.contains("the registry does not say"), "what is assumed is said: {}", plan.steps[0].why);
    all.truncate(1);
    assert!(planned(&bios(all, vec![], &current), &["bios.c-states=off"]).steps.is_empty());
}

#[test]
fn what_waits_is_told_apart_from_what_is() {
    let mut dell = dell();
    dell.pending.insert("LogicalProc".into(), Setting::Text("Disabled".into()));
    let plan = planned(&dell, &["bios.smt=off"]);
    assert_eq!((told(&plan), plan.waiting.len()), (vec!["AlreadyPending LogicalProc=Disabled".to_string()], 0));
    // Wanted as it is now, while the opposite waits: that is a change.
    let plan = planned(&dell, &["bios.smt=on"]);
    assert_eq!((told(&plan), plan.waiting.len()), (vec!["WillChange LogicalProc=Enabled".to_string()], 1));
    let plan = planned(&dell, &["bios.c-states=off"]);
    assert_eq!(plan.waiting.iter().map(|w| w.attribute.as_str()).collect::<Vec<_>>(), ["LogicalProc"]);
}

#[test]
fn without_a_registry_names_are_compared_and_nothing_is_called_valid() {
    let mut blind = dell();
    blind.registry = Err(NotFound::NoList);
    let plan = planned(&blind, &["bios.smt=off", "attr:Nope=1"]);
    assert_eq!(told(&plan), ["WillChange LogicalProc=Disabled"]);
    assert!(!plan.is_validated && plan.notes.iter().any(|note| note.contains("not validated")), "{:?}", plan.notes);
    assert!(matches!(plan.refused[0].refusal, Refusal::UnknownAttribute { .. }));
}

#[test]
fn undo_leaves_to_the_profile_what_the_profile_locks() {
    // As after `c-states=on`: Custom and Enabled; before: PerfOptimized and Disabled.
    let mut now = dell();
    now.current.insert("SysProfile".into(), Setting::Text("Custom".into()));
    now.current.insert("ProcCStates".into(), Setting::Text("Enabled".into()));
    let exact =
        |name: &str, value: &str| Exact { name: name.into(), value: Setting::Text(value.into()), asked: "undo".into() };
    let plan = settled(
        &machine(&now),
        &now,
        vec![exact("SysProfile", "PerfOptimized"), exact("ProcCStates", "Disabled")],
        Purpose::Undo,
    );
    assert!(plan.refused.is_empty(), "{:?}", plan.refused);
    assert_eq!(told(&plan), ["WillChange SysProfile=PerfOptimized", "Follows ProcCStates=Disabled"]);
}

/// A DGX H100, whose bias the operating system writes: the registry names no dependency.
fn dgx(owners: &[&str], owner: &str) -> Bios {
    bios(
        vec![
            entry("PwrPerfTuning", owners, json!({})),
            entry("AltEngPerfBIAS", &["Performance", "Balanced Performance", "Balanced Power", "Power"], json!({})),
        ],
        vec![],
        &[("PwrPerfTuning", owner), ("AltEngPerfBIAS", "Balanced Performance")],
    )
}

const OWNERS: &[&str] = &["OS Controls EPB", "BIOS Controls EPB", "PECI Controls EPB"];

#[test]
fn a_value_is_planned_with_the_switch_that_gives_it_force() {
    let wanted = ["WillChange PwrPerfTuning=BIOS Controls EPB gate", "WillChange AltEngPerfBIAS=Performance"];
    let dgx_now = dgx(OWNERS, "OS Controls EPB");
    for wish in ["bios.epb=performance", "attr:AltEngPerfBIAS=Performance"] {
        let plan = planned(&dgx_now, &[wish]);
        assert_eq!(told(&plan), wanted, "{wish}");
        assert!(
            plan.refused.is_empty() && plan.steps[0].why.contains("has no force while PwrPerfTuning=OS Controls EPB")
        );
    }
    // So already, and without force: the switch is what changes.
    let plan = planned(&dgx_now, &["bios.epb=balanced"]);
    assert_eq!(told(&plan)[0], wanted[0]);
    let plan = planned(&dgx(OWNERS, "BIOS Controls EPB"), &["bios.epb=performance"]);
    assert_eq!(told(&plan), [wanted[1]], "it has force");
    let plan = planned(&dgx_now, &["bios.epb=performance", "bios.epb-owner=firmware"]);
    assert_eq!(told(&plan).len(), 2, "{:?}", told(&plan));
    assert!(plan.refused.is_empty(), "{:?}", plan.refused);
}

/// Lenovo with an AMD processor, whose registry names no dependency.
#[test]
fn lenovo_takes_single_settings_in_custom_mode_only() {
    let modes = &["MaximumEfficiency", "MaximumPerformance", "CustomMode"];
    let switch = &["Disabled", "Enabled"];
    let machine = |mode: &str| {
        bios(
            vec![
                entry("OperatingModes_ChooseOperatingMode", modes, json!({})),
                entry("Processors_GlobalC_stateControl", switch, json!({})),
            ],
            vec![],
            &[("OperatingModes_ChooseOperatingMode", mode), ("Processors_GlobalC_stateControl", "Enabled")],
        )
    };
    let wish = &["attr:Processors_GlobalC_stateControl=Disabled"];
    let plan = planned(&machine("MaximumEfficiency"), wish);
    assert_eq!(
        told(&plan),
        [
            "WillChange OperatingModes_ChooseOperatingMode=CustomMode gate",
            "WillChange Processors_GlobalC_stateControl=Disabled"
        ]
    );
    assert_eq!(told(&planned(&machine("CustomMode"), wish)).len(), 1);
    // Intel: C1E has a say under the older C-states only, and turbo's economy with turbo.
    let intel = bios(
        vec![
            entry("OperatingModes_ChooseOperatingMode", modes, json!({})),
            entry("Processors_CStates", &["Legacy", "Autonomous", "Disabled"], json!({})),
            entry("Processors_C1EnhancedMode", switch, json!({})),
            entry("Processors_TurboMode", switch, json!({})),
            entry("Processors_EnergyEfficientTurbo", switch, json!({})),
        ],
        vec![],
        &[
            ("OperatingModes_ChooseOperatingMode", "CustomMode"),
            ("Processors_CStates", "Autonomous"),
            ("Processors_C1EnhancedMode", "Enabled"),
            ("Processors_TurboMode", "Disabled"),
            ("Processors_EnergyEfficientTurbo", "Enabled"),
        ],
    );
    let c1e = planned(&intel, &["attr:Processors_C1EnhancedMode=Disabled"]);
    assert_eq!(told(&c1e)[0], "WillChange Processors_CStates=Legacy gate");
    let turbo = planned(&intel, &["attr:Processors_EnergyEfficientTurbo=Disabled"]);
    assert_eq!(told(&turbo)[0], "WillChange Processors_TurboMode=Enabled gate");
}

#[test]
fn a_value_whose_switch_cannot_be_had_is_refused_with_the_reason() {
    let plan =
        planned(&dgx(OWNERS, "OS Controls EPB"), &["bios.epb=performance", "attr:PwrPerfTuning=OS Controls EPB"]);
    assert!(
        matches!(&plan.refused[0].refusal, Refusal::GateTaken { gate, needs, .. } if gate == "PwrPerfTuning" && needs == "BIOS Controls EPB"),
        "{:?}",
        plan.refused
    );
    let plan = planned(&dgx(&OWNERS[..1], "OS Controls EPB"), &["bios.epb=performance"]);
    assert!(plan.steps.is_empty(), "{:?}", told(&plan));
    let why = &plan.refused[0].why;
    assert!(why.starts_with("AltEngPerfBIAS has no force while PwrPerfTuning=OS Controls EPB"), "{why}");
    // Not asked for: what is shown says that it has no force, and no word stands for it.
    let dgx = dgx(OWNERS, "OS Controls EPB");
    let shown = crate::show::show(&machine(&dgx), false);
    let epb = shown.concepts.iter().find(|c| c.id == "bios.epb").unwrap();
    assert_eq!(epb.word, None);
    assert!(epb.attributes[0].locked.as_ref().is_some_and(|why| why.contains("has no force")), "{epb:?}");
}

/// HPE's fabric keeps a P-state only while its power management is off; `Auto` needs no switch.
#[test]
fn the_fabric_is_pinned_with_its_power_management_off() {
    let hpe = |boost: &str| {
        bios(
            vec![
                entry("InfinityFabricPstate", &["Auto", "P0", "P1"], json!({})),
                entry("ApplicationPowerBoost", &["Enabled", "Disabled"], json!({})),
            ],
            vec![],
            &[("InfinityFabricPstate", "Auto"), ("ApplicationPowerBoost", boost)],
        )
    };
    let pinned = ["WillChange ApplicationPowerBoost=Disabled gate", "WillChange InfinityFabricPstate=P0"];
    assert_eq!(told(&planned(&hpe("Enabled"), &["bios.uncore=max"])), pinned);
    assert_eq!(told(&planned(&hpe("Enabled"), &["attr:InfinityFabricPstate=P0"])), pinned);
    assert_eq!(told(&planned(&hpe("Disabled"), &["bios.uncore=max"])), pinned[1..]);
    assert_eq!(told(&planned(&hpe("Enabled"), &["bios.uncore=dynamic"])), ["NoChange InfinityFabricPstate=Auto"]);
}

/// Undo brings old values back together with the switches that they had.
#[test]
fn an_undo_needs_no_switch() {
    let now = dgx(OWNERS, "OS Controls EPB");
    let exact = Exact { name: "AltEngPerfBIAS".into(), value: Setting::Text("Power".into()), asked: "undo".into() };
    let plan = settled(&machine(&now), &now, vec![exact], Purpose::Undo);
    assert_eq!(told(&plan), ["WillChange AltEngPerfBIAS=Power"]);
}

#[test]
fn prefetchers_are_all_of_them_or_a_named_one() {
    let names = ["HwPrefetcher", "AdjSecPrefetch", "DcuStreamPrefetcher", "DcuIpPrefetcher"];
    let with = |last: &[&str]| {
        let mut all: Vec<Value> = names.iter().map(|name| entry(name, &["Enabled", "Disabled"], json!({}))).collect();
        all.push(entry("XptPrefetcher", last, json!({})));
        let current: Vec<(&str, &str)> =
            names.iter().map(|n| (*n, "Enabled")).chain([("XptPrefetcher", "Auto")]).collect();
        bios(all, vec![], &current)
    };
    let hpe = with(&["Auto", "Enabled", "Disabled"]);
    let off: Vec<String> =
        names.iter().chain(&["XptPrefetcher"]).map(|name| format!("WillChange {name}=Disabled")).collect();
    assert_eq!(told(&planned(&hpe, &["bios.prefetchers=off"])), off);
    assert_eq!(told(&planned(&hpe, &["bios.prefetcher-l1-ip=off"])), ["WillChange DcuIpPrefetcher=Disabled"]);
    let unknown = planned(&hpe, &["bios.prefetcher=off"]);
    assert!(
        matches!(&unknown.refused[0].refusal, Refusal::UnknownConcept { near, .. } if near.contains(&"bios.prefetchers".into())),
        "{:?}",
        unknown.refused
    );
    // One that cannot be switched off leaves nothing half done.
    let plan = planned(&with(&["Auto", "Enabled"]), &["bios.prefetchers=off"]);
    assert!(plan.steps.is_empty() && plan.refused[0].why.starts_with("XptPrefetcher"), "{:?}", plan.refused);
}

/// PCC shares the choice of clocks with firmware; it is not HWP.
#[test]
fn collaborative_power_control_is_no_hwp() {
    let hpe = bios(
        vec![entry("CollabPowerControl", &["Enabled", "Disabled"], json!({}))],
        vec![],
        &[("CollabPowerControl", "Enabled")],
    );
    let plan = planned(&hpe, &["bios.hw-p-states=off", "bios.pcc=off"]);
    assert_eq!(told(&plan), ["WillChange CollabPowerControl=Disabled"]);
    assert!(matches!(plan.refused[0].refusal, Refusal::NoAttribute));
    assert!(
        !plan.refused[0].why.contains("CollabPowerControl"),
        "nothing that only sounds like it: {:?}",
        plan.refused
    );
}
