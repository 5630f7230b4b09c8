//! Compares every value of `inspect --json` with the raw text: the same, a gap where there is none, and nothing lost.

use super::content::Content;
use super::expect::{self, Shape};
use super::raw::Raw;
use super::tables::{self, Column, Named};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const CPU: &str = "/sys/devices/system/cpu";
const NODE: &str = "/sys/devices/system/node";

/// What a check came to.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Values compared.
    pub n_checked: u64,
    /// Of which the raw tree has something that is no value, and wakewatt says so.
    pub n_gaps: u64,
    /// What differs.
    pub mismatches: Vec<String>,
    /// Topics of the tables that the document does not have.
    pub missing_topics: BTreeSet<String>,
}

/// Checks a document against the raw machine.
pub(crate) fn check(raw: &Raw, json: &Value) -> Tally {
    let mut tally = Tally::default();
    let cpus = raw.numbered(CPU, "cpu");
    let online = raw.text(&format!("{CPU}/online")).and_then(|t| expect::cpu_list(&t)).filter(|s| !s.is_empty());
    let running = online.map_or(cpus.clone(), |online| cpus.intersection(&online).copied().collect());
    tally.states(raw, json, &cpus);
    let of_cpu = |n: u32| format!("{CPU}/cpu{n}");
    for (columns, keys) in [(tables::PRESENT, &cpus), (tables::RUNNING, &running)] {
        columns.iter().for_each(|c| tally.column(raw, json, c, keys, &of_cpu));
    }
    let policies = raw.numbered(&format!("{CPU}/cpufreq"), "policy");
    for column in tables::POLICY {
        tally.column(raw, json, column, &policies, &|n| format!("{CPU}/cpufreq/policy{n}"));
    }
    tally.caches(raw, json, &running);
    for named in tables::NAMED {
        tally.named(raw, json, named);
    }
    for (path, pointer, shape) in tables::SINGLE {
        if tally.has_topic(json, pointer) {
            tally.one(raw, path, json.pointer(pointer), *shape, pointer.starts_with("/cpus/"));
        }
    }
    if tally.has_topic(json, "/memory") {
        for node in raw.numbered(NODE, "node") {
            let found = json["memory"]["nodes"].as_array().and_then(|all| all.iter().find(|n| n["id"] == node));
            for column in tables::NODE {
                let path = format!("{NODE}/node{node}/{}", column.files[0]);
                tally.one(raw, &path, found.and_then(|n| n.pointer(column.json)), column.shape, false);
            }
        }
    }
    tally
}

impl Tally {
    fn has_topic(&mut self, json: &Value, pointer: &str) -> bool {
        let topic = pointer.split('/').nth(1).unwrap_or_default();
        let is_there = json.get(topic).is_some();
        if !is_there {
            self.missing_topics.insert(topic.to_string());
        }
        is_there
    }

    fn states(&mut self, raw: &Raw, json: &Value, cpus: &BTreeSet<u32>) {
        let mut by_state: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for cpu in cpus {
            for state in raw.numbered(&format!("{CPU}/cpu{cpu}/cpuidle"), "state") {
                by_state.entry(state).or_default().insert(*cpu);
            }
        }
        let listed = json["idle"]["states"].as_array().cloned().unwrap_or_default();
        for state in listed.iter().filter_map(|s| s["index"].as_u64()) {
            if !by_state.keys().any(|k| u64::from(*k) == state) {
                self.mismatches.push(format!("state {state} is in the document and not in the tree"));
            }
        }
        let nothing = Value::Null;
        for (state, cpus) in by_state {
            let found = listed.iter().find(|s| s["index"] == state).unwrap_or(&nothing);
            for column in tables::STATE {
                let of_cpu = |cpu: u32| format!("{CPU}/cpu{cpu}/cpuidle/state{state}");
                self.rows(raw, found.pointer(column.json), column, &cpus, &of_cpu);
            }
        }
    }

    fn caches(&mut self, raw: &Raw, json: &Value, cpus: &BTreeSet<u32>) {
        if !self.has_topic(json, "/cache") {
            return;
        }
        let mut of_cpu: BTreeMap<(u32, u64), &Value> = BTreeMap::new();
        for cache in json["cache"]["caches"].as_array().into_iter().flatten() {
            for cpu in cache["cpus"].as_str().and_then(expect::cpu_list).into_iter().flatten() {
                of_cpu.insert((cpu, cache["index"].as_u64().unwrap_or(u64::MAX)), cache);
            }
        }
        for cpu in cpus {
            for index in raw.numbered(&format!("{CPU}/cpu{cpu}/cache"), "index") {
                let folder = format!("{CPU}/cpu{cpu}/cache/index{index}");
                let found = of_cpu.get(&(*cpu, index.into())).copied();
                for column in tables::CACHE {
                    let path = format!("{folder}/{}", column.files[0]);
                    self.one(raw, &path, found.and_then(|f| f.pointer(column.json)), column.shape, false);
                }
                let sharers = serde_json::json!({ "value": found.map(|f| f["cpus"].clone()) });
                // An unreadable list leaves the CPU alone with its cache, which is not a gap.
                let path = format!("{folder}/shared_cpu_list");
                if raw.text(&path).is_some_and(|t| expect::cpu_list(&t).is_some_and(|s| s.contains(cpu))) {
                    self.one(raw, &path, Some(&sharers), expect::cpus, false);
                }
            }
        }
    }

    fn named(&mut self, raw: &Raw, json: &Value, named: &Named) {
        if !self.has_topic(json, named.json) {
            return;
        }
        let listed = json.pointer(named.json).and_then(Value::as_array);
        for name in raw.names(named.folder).iter().filter(|n| named.prefixes.iter().any(|p| n.starts_with(p))) {
            let found = listed.and_then(|all| all.iter().find(|object| object[named.key] == name.as_str()));
            for column in named.columns {
                let path = format!("{}/{name}/{}", named.folder, column.files[0]);
                self.one(raw, &path, found.and_then(|f| f.pointer(column.json)), column.shape, false);
            }
        }
    }

    fn column(
        &mut self,
        raw: &Raw,
        json: &Value,
        column: &Column,
        keys: &BTreeSet<u32>,
        folder: &dyn Fn(u32) -> String,
    ) {
        if self.has_topic(json, column.json) {
            self.rows(raw, json.pointer(column.json), column, keys, folder);
        }
    }

    fn rows(
        &mut self,
        raw: &Raw,
        found: Option<&Value>,
        column: &Column,
        keys: &BTreeSet<u32>,
        folder: &dyn Fn(u32) -> String,
    ) {
        let is_there = |file: &&&str| keys.iter().any(|k| raw.at(&format!("{}/{file}", folder(*k))) != Content::Absent);
        let file = column.files.iter().find(is_there).unwrap_or(&column.files[0]);
        let mut groups: BTreeMap<u32, &Value> = BTreeMap::new();
        for group in found.and_then(Value::as_array).into_iter().flatten() {
            for key in group["cpus"].as_str().and_then(expect::cpu_list).into_iter().flatten() {
                if groups.insert(key, group).is_some() {
                    self.mismatches.push(format!("{}: {key} is in two groups", column.json));
                }
            }
        }
        for key in keys.union(&groups.keys().copied().collect()) {
            let path = format!("{}/{file}", folder(*key));
            self.one(raw, &path, groups.get(key).copied(), column.shape, column.has_fallback);
        }
    }

    /// One value: `found` is the object that holds `value` or `gap`, or nothing.
    fn one(&mut self, raw: &Raw, path: &str, found: Option<&Value>, shape: Shape, has_fallback: bool) {
        let value = found.and_then(|f| f.get("value")).map(|v| expect::normalise(shape, v));
        let gap = found.and_then(|f| f.get("gap"));
        let content = raw.at(path);
        let expected = match &content {
            Content::Bytes(bytes) => {
                std::str::from_utf8(bytes).ok().and_then(|t| shape(t.trim_end_matches(['\n', '\0'])))
            }
            _ => None,
        };
        if content == Content::Absent {
            if let (Some(value), false) = (&value, has_fallback) {
                self.mismatches.push(format!("{path}: not in the tree, yet the document says {value}"));
            }
            return;
        }
        self.n_checked += 1;
        match (expected, value, gap) {
            (Some(expected), Some(value), _) if expected == value => {}
            (None, None, Some(_)) => self.n_gaps += 1,
            // A list that cannot be read has a documented second source.
            (None, Some(_), _) if has_fallback => {}
            (expected, value, gap) => {
                let show = |v: Option<Value>, none: &str| v.map_or(none.to_string(), |v| short(&v.to_string()));
                let got = gap.map_or_else(|| show(value, "nothing"), |g| format!("gap {}", short(&g.to_string())));
                self.mismatches.push(format!("{path}: expected {}, got {got}", show(expected, "a gap")));
            }
        }
    }
}

fn short(text: &str) -> String {
    let cut: String = text.chars().take(100).collect();
    if cut.len() < text.len() { cut + "…" } else { cut }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tree() -> Raw {
        let mut raw = Raw::default();
        for (path, text) in [
            ("online", "0-1\n"),
            ("cpu0/cpuidle/state1/latency", "2\n"),
            ("cpu1/cpuidle/state1/latency", "3\n"),
            ("cpu0/cpuidle/state1/usage", "x\n"),
        ] {
            raw.files.insert(format!("{CPU}/{path}"), Content::Bytes(text.into()));
        }
        raw
    }

    fn document(latency: Value) -> Value {
        let usage = json!([{ "cpus": "0-1", "gap": { "kind": "malformed" } }]);
        let state = json!({ "index": 1, "exit_latency_ns": latency, "n_usage": usage });
        json!({ "cpus": { "online": { "value": "0-1" } }, "idle": { "states": [state] } })
    }

    #[test]
    fn right_values_pass_and_are_counted() {
        let good = json!([{ "cpus": "0", "value": 2000 }, { "cpus": "1", "value": 3000 }]);
        let tally = check(&tree(), &document(good));
        assert_eq!((tally.mismatches.as_slice(), tally.n_checked, tally.n_gaps), (&[][..], 4, 1));
    }

    #[test]
    fn wrong_lost_and_invented_values_are_mismatches() {
        for bad in [
            json!([{ "cpus": "0-1", "value": 2000 }]),
            json!([{ "cpus": "0", "value": 2000 }]),
            json!([{ "cpus": "0", "value": 2000 }, { "cpus": "1", "value": 0 }]),
            json!([{ "cpus": "0", "value": 2000 }, { "cpus": "1", "value": 3000 }, { "cpus": "2", "value": 3000 }]),
        ] {
            assert_eq!(check(&tree(), &document(bad.clone())).mismatches.len(), 1, "{bad}");
        }
    }
}
