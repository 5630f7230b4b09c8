//! The objects of a cluster for tests, by path, with versions.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// All of them.
#[derive(Default)]
pub(crate) struct Objects {
    by_path: BTreeMap<String, Value>,
    version: u64,
}

/// What came of a request: a status and a document.
pub(crate) type Outcome = (u16, Value);

fn status(code: u16, reason: &str, message: String) -> Outcome {
    (code, json!({"kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": code}))
}

/// Its metadata, with what merges into it.
fn merge(into: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (key, value) in fields {
        if value.is_null() {
            if let Some(map) = into.as_object_mut() {
                map.remove(key);
            }
        } else {
            merge(&mut into[key], value);
        }
    }
}

impl Objects {
    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        self.by_path.get(path).cloned()
    }

    pub(crate) fn paths(&self, prefix: &str) -> Vec<String> {
        self.by_path.keys().filter(|path| path.starts_with(prefix)).cloned().collect()
    }

    pub(crate) fn put(&mut self, path: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.by_path.insert(path.into(), object.clone());
        object
    }

    /// One, or a list where the path ends with a plural.
    pub(crate) fn read(&self, path: &str, query: &str) -> Outcome {
        if let Some(object) = self.by_path.get(path) {
            return (200, object.clone());
        }
        let is_list = ["nodes", "pods", "jobs", "events", "configmaps", "leases"]
            .iter()
            .any(|p| path.ends_with(&format!("/{p}")));
        if !is_list {
            return status(404, "NotFound", format!("{path} not found"));
        }
        let asked = |key: &str| query.split('&').find_map(|part| part.strip_prefix(key)?.strip_prefix('='));
        let label = asked("labelSelector").and_then(|selector| selector.split_once("%3D"));
        let field = asked("fieldSelector").and_then(|selector| selector.strip_prefix("spec.nodeName%3D"));
        // Pods of all namespaces, too.
        let (group, plural) = path.rsplit_once('/').unwrap_or_default();
        let found = self.by_path.iter().filter(|(at, object)| {
            let is_here = at.starts_with(&format!("{path}/"))
                || (at.starts_with(&format!("{group}/namespaces/")) && at.contains(&format!("/{plural}/")));
            is_here
                && label.is_none_or(|(key, value)| object["metadata"]["labels"][key] == value)
                && field.is_none_or(|node| object["spec"]["nodeName"] == node)
        });
        let from: usize = asked("continue").and_then(|token| token.parse().ok()).unwrap_or_default();
        let limit: usize = asked("limit").and_then(|n| n.parse().ok()).unwrap_or(usize::MAX);
        let mut items: Vec<Value> =
            found.skip(from).take(limit.saturating_add(1)).map(|(_, object)| object.clone()).collect();
        let has_more = items.len() > limit;
        items.truncate(limit);
        let next = if has_more { (from + limit).to_string() } else { String::new() };
        (200, json!({"kind": "List", "metadata": {"continue": next}, "items": items}))
    }

    pub(crate) fn create(&mut self, path: &str, object: Value) -> Outcome {
        let at = format!("{path}/{}", object["metadata"]["name"].as_str().unwrap_or_default());
        if self.by_path.contains_key(&at) {
            return status(409, "AlreadyExists", format!("{at} already exists"));
        }
        (201, self.put(&at, object))
    }

    /// Replaces it, or merges into it.
    pub(crate) fn update(&mut self, path: &str, body: Value, is_patch: bool) -> Outcome {
        let Some(old) = self.get(path) else { return status(404, "NotFound", format!("{path} not found")) };
        let version = &body["metadata"]["resourceVersion"];
        if !version.is_null() && *version != old["metadata"]["resourceVersion"] {
            return status(409, "Conflict", format!("{path}: the object has been modified"));
        }
        let new = if is_patch {
            let mut new = old;
            merge(&mut new, &body);
            new
        } else {
            body
        };
        let size: usize =
            new["data"].as_object().into_iter().flatten().filter_map(|(_, v)| v.as_str()).map(str::len).sum();
        if size > 1 << 20 {
            return status(422, "Invalid", format!("{path}: must have at most 1048576 bytes"));
        }
        (200, self.put(path, new))
    }

    pub(crate) fn delete(&mut self, path: &str) -> Outcome {
        match self.by_path.remove(path) {
            Some(object) => (200, object),
            None => status(404, "NotFound", format!("{path} not found")),
        }
    }
}
