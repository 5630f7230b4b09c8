//! One machine per maker: paths, values, registry, and what its profile locks.

use super::message::Attributes;
use serde_json::{Value, json};

/// Whose ways it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// A job per change; no second PATCH while one waits.
    Dell,
    /// Takes anything; judged at boot, with messages.
    Hpe,
    /// Takes anything with the right tag; drops at boot what its mode locks.
    Lenovo,
    /// Display texts, suffixed names, nothing where nothing waits, 202 without a place.
    Supermicro,
    /// If-Match or nothing, weak tags of which the strong form counts.
    Ami,
}

/// A machine.
pub(super) struct Model {
    pub(super) system: &'static str,
    pub(super) bios: &'static str,
    pub(super) settings: &'static str,
    pub(super) registry_file: &'static str,
    pub(super) registry: &'static str,
    /// What the BIOS calls its registry.
    pub(super) registry_name: &'static str,
    pub(super) maker: &'static str,
    /// The profile, and its value that locks nothing.
    pub(super) gate: (&'static str, &'static str),
    pub(super) gated: &'static [&'static str],
    pub(super) current: Attributes,
    pub(super) document: Value,
}

fn choices(name: &str, values: &[&str], more: Value) -> Value {
    let values: Vec<Value> = values.iter().map(|v| json!({ "ValueName": v, "ValueDisplayName": v })).collect();
    let mut entry = json!({ "AttributeName": name, "Type": "Enumeration", "DisplayName": name, "Value": values, "MenuPath": "./",
        "ReadOnly": false, "ResetRequired": true });
    for (key, value) in more.as_object().into_iter().flatten() {
        entry[key] = value.clone();
    }
    entry
}

/// As Supermicro: numbers for names.
fn numbered(name: &str, values: &[&str], menu: &str) -> Value {
    let value = |(at, text): (usize, &&str)| json!({ "ValueName": at.to_string(), "ValueDisplayName": text });
    let values: Vec<Value> = values.iter().enumerate().map(value).collect();
    json!({ "AttributeName": name, "Type": "Enumeration", "DisplayName": name, "Value": values, "MenuPath": menu,
        "ReadOnly": false, "GrayOut": false, "Hidden": false })
}

fn rule(from: &str, test: &str, value: &str, to: &str, property: &str, becomes: Value) -> Value {
    json!({ "DependencyFor": to, "Type": "Map", "Dependency": {
        "MapFrom": [{ "MapFromAttribute": from, "MapFromProperty": "CurrentValue", "MapFromCondition": test, "MapFromValue": value }],
        "MapToAttribute": to, "MapToProperty": property, "MapToValue": becomes } })
}

fn registry(id: &str, attributes: Vec<Value>, rules: Vec<Value>) -> Value {
    json!({ "@odata.type": "#AttributeRegistry.v1_3_6.AttributeRegistry", "Id": id, "Language": "en",
        "RegistryEntries": { "Attributes": attributes, "Dependencies": rules } })
}

fn values(pairs: &[(&str, &str)]) -> Attributes {
    pairs.iter().map(|(name, value)| ((*name).to_string(), json!(value))).collect()
}

pub(super) fn model(vendor: Vendor) -> Model {
    match vendor {
        Vendor::Dell => dell(),
        Vendor::Hpe => hpe(),
        Vendor::Lenovo => lenovo(),
        Vendor::Supermicro => supermicro(),
        Vendor::Ami => ami(),
    }
}

const ON_OFF: &[&str] = &["Enabled", "Disabled"];

fn dell() -> Model {
    let gated = &["ProcCStates", "ProcC1E", "UncoreFrequency"];
    let mut rules = Vec::new();
    for name in gated {
        rules.push(rule("SysProfile", "NEQ", "Custom", name, "ReadOnly", json!(true)));
    }
    for (profile, c_states, c1e, uncore) in [
        ("PerfOptimized", "Disabled", "Disabled", "MaxUFS"),
        ("PerfPerWattOptimizedDapc", "Enabled", "Enabled", "DynamicUFS"),
    ] {
        for (name, value) in [("ProcCStates", c_states), ("ProcC1E", c1e), ("UncoreFrequency", uncore)] {
            rules.push(rule("SysProfile", "EQU", profile, name, "CurrentValue", json!(value)));
        }
    }
    let locked = json!({ "ReadOnly": true });
    let attributes = vec![
        choices("SysProfile", &["PerfPerWattOptimizedDapc", "PerfOptimized", "Custom"], json!({})),
        choices("ProcCStates", &["Enabled", "Disabled", "Autonomous"], locked.clone()),
        choices("ProcC1E", ON_OFF, locked.clone()),
        choices("UncoreFrequency", &["DynamicUFS", "MaxUFS"], locked),
        choices("LogicalProc", ON_OFF, json!({})),
        json!({ "AttributeName": "SysPassword", "Type": "Password", "ReadOnly": false }),
    ];
    Model {
        system: "/redfish/v1/Systems/System.Embedded.1",
        bios: "/redfish/v1/Systems/System.Embedded.1/Bios",
        settings: "/redfish/v1/Systems/System.Embedded.1/Bios/Settings",
        registry_file: "/redfish/v1/Registries/BiosAttributeRegistry.v1_0_0",
        registry: "/redfish/v1/Systems/System.Embedded.1/Bios/BiosRegistry",
        registry_name: "BiosAttributeRegistry.v1_0_3",
        maker: "Dell Inc.",
        gate: ("SysProfile", "Custom"),
        gated,
        current: values(&[
            ("SysProfile", "PerfPerWattOptimizedDapc"),
            ("ProcCStates", "Enabled"),
            ("ProcC1E", "Enabled"),
            ("UncoreFrequency", "DynamicUFS"),
            ("LogicalProc", "Enabled"),
        ]),
        document: registry("BiosAttributeRegistry.v1_0_3", attributes, rules),
    }
}

fn hpe() -> Model {
    let gated = &["MinProcIdlePower", "PowerRegulator"];
    let mut rules = Vec::new();
    for name in gated {
        for profile in ["LowLatency", "GeneralPowerEfficientCompute"] {
            rules.push(rule("WorkloadProfile", "EQU", profile, name, "ReadOnly", json!(true)));
        }
    }
    rules.push(rule("WorkloadProfile", "EQU", "LowLatency", "MinProcIdlePower", "CurrentValue", json!("NoCStates")));
    let locked = json!({ "ReadOnly": true });
    let attributes = vec![
        choices("WorkloadProfile", &["GeneralPowerEfficientCompute", "LowLatency", "Custom"], json!({})),
        choices("MinProcIdlePower", &["C6", "NoCStates"], locked.clone()),
        choices("PowerRegulator", &["DynamicPowerSavings", "StaticHighPerf", "OsControl"], locked),
        choices("ProcSMT", ON_OFF, json!({})),
    ];
    Model {
        system: "/redfish/v1/systems/1/",
        bios: "/redfish/v1/systems/1/bios/",
        settings: "/redfish/v1/systems/1/bios/settings/",
        registry_file: "/redfish/v1/registries/biosattributeregistrya42.v1_2_60/",
        registry: "/redfish/v1/registrystore/registries/en/biosattributeregistrya42.v1_2_60/",
        registry_name: "BiosAttributeRegistryA42.v1_2_60",
        maker: "HPE",
        gate: ("WorkloadProfile", "Custom"),
        gated,
        current: values(&[
            ("WorkloadProfile", "GeneralPowerEfficientCompute"),
            ("MinProcIdlePower", "C6"),
            ("PowerRegulator", "DynamicPowerSavings"),
            ("ProcSMT", "Enabled"),
        ]),
        document: registry("BiosAttributeRegistryA42.v1_2_60", attributes, rules),
    }
}

fn lenovo() -> Model {
    let gated = &["Processors_CStates", "Processors_TurboMode"];
    let mode = "OperatingModes_ChooseOperatingMode";
    let rules = gated.iter().map(|name| rule(mode, "NEQ", "CustomMode", name, "GrayOut", json!("true"))).collect();
    let gray = json!({ "GrayOut": true });
    let attributes = vec![
        choices(mode, &["MinimalPower", "Efficiency_FavorPerformance", "CustomMode", "MaximumPerformance"], json!({})),
        choices("Processors_CStates", &["Legacy", "Autonomous", "Disabled"], gray.clone()),
        choices("Processors_TurboMode", ON_OFF, gray),
        choices("Processors_HyperThreading", ON_OFF, json!({})),
        json!({ "AttributeName": "Quiet", "Type": "Boolean", "ReadOnly": false }),
    ];
    let mut current = values(&[
        (mode, "Efficiency_FavorPerformance"),
        ("Processors_CStates", "Legacy"),
        ("Processors_TurboMode", "Enabled"),
        ("Processors_HyperThreading", "Enabled"),
    ]);
    current.insert("Quiet".into(), json!(true));
    Model {
        system: "/redfish/v1/Systems/1",
        bios: "/redfish/v1/Systems/1/Bios",
        settings: "/redfish/v1/Systems/1/Bios/Pending",
        registry_file: "/redfish/v1/Registries/BiosAttributeRegistry.1.0.0",
        registry: "/redfish/v1/schemas/registries/BiosAttributeRegistry.1.0.0.json",
        registry_name: "BiosAttributeRegistry.1.0.0",
        maker: "Lenovo",
        gate: (mode, "CustomMode"),
        gated,
        current,
        document: registry("BiosAttributeRegistry.1.0", attributes, rules),
    }
}

fn supermicro() -> Model {
    let menu = "./Advanced/CPU Configuration/Advanced Power Management Configuration";
    let below = "./Advanced/CPU Configuration/Advanced Power Management Configuration/CPU C State Control";
    let attributes = vec![
        numbered("PowerTechnology_FF77", &["Disable", "Energy Efficient", "Custom"], menu),
        numbered("CPUC6Report_3D22", &["Disable", "Enable", "Auto"], below),
        numbered("EnhancedHaltState_C1E__3D23", &["Disable", "Enable"], below),
        numbered("Hyper_Threading_ALL__F27F", &["Enable", "Disable"], "./Advanced/CPU Configuration"),
    ];
    let rules = vec![rule("PowerTechnology_FF77", "NEQ", "Custom", "SMCFKItem142", "GrayOut", json!(true))];
    Model {
        system: "/redfish/v1/Systems/1",
        bios: "/redfish/v1/Systems/1/Bios",
        settings: "/redfish/v1/Systems/1/Bios/SD",
        registry_file: "/redfish/v1/Registries/BiosAttributeRegistry",
        registry: "/registries/BiosAttributeRegistry.1.0.0.json",
        registry_name: "BiosAttributeRegistry.v1_0_0",
        maker: "Supermicro",
        gate: ("PowerTechnology_FF77", "Custom"),
        gated: &["CPUC6Report_3D22", "EnhancedHaltState_C1E__3D23"],
        current: values(&[
            ("PowerTechnology_FF77", "Energy Efficient"),
            ("CPUC6Report_3D22", "Auto"),
            ("EnhancedHaltState_C1E__3D23", "Enable"),
            ("Hyper_Threading_ALL__F27F", "Enable"),
        ]),
        document: registry("BiosAttributeRegistry.1_0_0", attributes, rules),
    }
}

fn ami() -> Model {
    let attributes = vec![
        choices("PackageCState", &["C0/C1 state", "C2 state", "No Limit", "Auto"], json!({})),
        choices("TurboMode", ON_OFF, json!({})),
    ];
    Model {
        system: "/redfish/v1/Systems/Self",
        bios: "/redfish/v1/Systems/Self/Bios",
        settings: "/redfish/v1/Systems/Self/Bios/SD",
        registry_file: "/redfish/v1/Registries/BiosAttributeRegistry113.1.1.3",
        registry: "/redfish/v1/Registries/BiosAttributeRegistry113.en-US.1.1.3.json",
        registry_name: "BiosAttributeRegistry113.1.1.3",
        maker: "AMI",
        gate: ("", ""),
        gated: &[],
        current: values(&[("PackageCState", "Auto"), ("TurboMode", "Enabled")]),
        document: registry("BiosAttributeRegistry113.1.1.3", attributes, Vec::new()),
    }
}
