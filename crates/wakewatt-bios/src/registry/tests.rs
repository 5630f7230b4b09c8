//! Registries as they come: in order, odd, and hostile.

use super::*;
use serde_json::json;

fn dell() -> Registry {
    let lock = |of: &str| {
        json!({ "Dependency": { "MapFrom": [{ "MapFromAttribute": "SysProfile", "MapFromCondition": "NEQ",
            "MapFromProperty": "CurrentValue", "MapFromValue": "Custom" }], "MapToAttribute": of, "MapToProperty": "ReadOnly",
            "MapToValue": true }, "DependencyFor": of, "Type": "Map" })
    };
    let json = json!({ "Id": "x", "RegistryEntries": {
        "Attributes": [
            { "AttributeName": "ProcCStates", "Type": "Enumeration", "ReadOnly": true,
              "Value": [{ "ValueName": "Enabled" }, { "ValueName": "Disabled" }] },
            { "AttributeName": "Cores", "Type": "Integer", "LowerBound": 2, "UpperBound": 8, "ScalarIncrement": 2 },
            { "AttributeName": "Quiet", "Type": "Boolean" },
            { "AttributeName": "Tag", "Type": "String", "MaxLength": 3 },
            { "AttributeName": "Pass", "Type": "Password" },
            { "AttributeName": "ProcCStates", "Type": "String" },
            { "Type": "String" }, 7, null ],
        "Dependencies": [lock("ProcCStates"), { "Dependency": 7 }, "x"] } });
    Registry::parse(&json, "/r").unwrap()
}

#[test]
fn what_is_odd_is_counted_and_the_rest_is_read() {
    let registry = dell();
    assert_eq!((registry.attributes.len(), registry.rules.len()), (5, 1));
    assert_eq!(registry.oddities.len(), 3, "{:?}", registry.oddities);
    assert_eq!(registry.get("ProcCStates").map(|a| a.kind), Some(Kind::Enumeration), "the first counts");
    for hostile in
        [json!(null), json!([]), json!({ "RegistryEntries": 7 }), json!({ "RegistryEntries": { "Attributes": {} } })]
    {
        assert!(Registry::parse(&hostile, "/r").is_err());
    }
}

#[test]
fn a_word_becomes_a_value_or_is_refused_with_what_there_is() {
    let registry = dell();
    let accept = |name: &str, word: &str| registry.get(name).unwrap().accept(word, None);
    assert_eq!(accept("ProcCStates", "disable"), Ok(Setting::Text("Disabled".into())));
    assert!(accept("ProcCStates", "sometimes").unwrap_err().to_string().contains("Enabled, Disabled"));
    assert_eq!(accept("Cores", "4"), Ok(Setting::Number(4)));
    assert!(accept("Cores", "5").is_err() && accept("Cores", "10").is_err() && accept("Cores", "many").is_err());
    let text = Setting::Text("2".into());
    assert_eq!(
        registry.get("Cores").unwrap().accept("4", Some(&text)),
        Ok(Setting::Text("4".into())),
        "as the BMC types it"
    );
    assert_eq!(accept("Quiet", "on"), Ok(Setting::Flag(true)));
    assert!(accept("Tag", "abcd").is_err() && accept("Tag", "abc").is_ok());
    assert_eq!(accept("Pass", "x"), Err(NotTaken::Password));
}

#[test]
fn display_names_are_spoken_where_the_bmc_speaks_them() {
    let value = |name: &str, shown: &str| json!({ "ValueName": name, "ValueDisplayName": shown });
    let json = json!({ "RegistryEntries": { "Attributes": [
        { "AttributeName": "C6_3D22", "Type": "Enumeration", "Value": [value("0", "Disable"), value("255", "Auto")] },
        { "AttributeName": "C1E_3D23", "Type": "Enumeration", "Value": [value("0", "Disable"), value("1", "Enable")] },
        { "AttributeName": "CbsNps", "Type": "Enumeration", "Value": [value("CbsNpsNPS1", "NPS1"), value("CbsNpsNPS4", "NPS4")] }] } });
    let mut registry = Registry::parse(&json, "/r").unwrap();
    registry.learn(&BTreeMap::from([("C6_3D22".to_string(), Setting::Text("Auto".into()))]));
    let accept = |name: &str, word: &str| registry.get(name).unwrap().accept(word, None);
    assert_eq!(accept("C6_3D22", "disabled"), Ok(Setting::Text("Disable".into())));
    assert_eq!(accept("C1E_3D23", "0"), Ok(Setting::Text("Disable".into())), "absent now, but the others speak so");
    let mut registry = registry.clone();
    registry.learn(&BTreeMap::from([("CbsNps".to_string(), Setting::Text("CbsNpsNPS1".into()))]));
    assert_eq!(registry.get("CbsNps").unwrap().accept("nps4", None), Ok(Setting::Text("CbsNpsNPS4".into())));
}

#[test]
fn rules_are_or_unless_they_say_and_unknown_locks_nothing() {
    let from = |name: &str, test: &str, value: Value, terms: Value| {
        json!({ "MapFromAttribute": name, "MapFromCondition": test, "MapFromProperty": "CurrentValue", "MapFromValue": value,
            "MapTerms": terms })
    };
    let rule = |from: Vec<Value>| {
        Rule::parse(&json!({ "Dependency": { "MapFrom": from, "MapToAttribute": "x", "MapToProperty": "GrayOut",
            "MapToValue": "true" } }))
        .unwrap()
    };
    let now = BTreeMap::from([("a".to_string(), Setting::Number(4)), ("b".to_string(), Setting::Text("on".into()))]);
    let registry = Registry::default();
    let truth = |from: Vec<Value>| registry.holds(&rule(from), &now);
    let (yes, no) = (from("a", "GEQ", json!(4), json!(null)), from("b", "EQU", json!("off"), json!(null)));
    assert_eq!(truth(vec![no.clone(), yes.clone()]), Truth::Yes);
    assert_eq!(truth(vec![from("b", "EQU", json!("off"), json!("AND")), yes.clone()]), Truth::No);
    assert_eq!(truth(vec![from("nobody", "EQU", json!(1), json!(null))]), Truth::Unknown);
    assert_eq!(truth(vec![from("b", "LSS", json!(1), json!(null))]), Truth::Unknown, "texts have no order");
    assert!(rule(vec![yes]).is_lock());
}
