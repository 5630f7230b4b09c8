//! Nodes as objects: who there is, whether they are ready, taking them out of service and back.
//!
//! A cordon is remembered in an annotation of the node: whether it was cordoned before is then known to whoever puts it back,
//! on whatever machine, however the first one ended. Only a cordon: a drain moves other people's work, which is theirs to
//! order (`kubectl drain` respects their PodDisruptionBudgets); the settings that are rolled out need no empty node.

use super::api::{Api, ApiError, Body, Right};
use crate::{CarryError, Node, NodeName};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Before our labels and annotations. `.internal` is reserved for private use (ICANN, 2024): it is nobody's domain, so no
/// stranger's keys can be meant by it, and none of ours by a stranger's.
pub const PREFIX: &str = "wakewatt.internal";

const WAS: &str = "wakewatt.internal/was-unschedulable";
const PAGE: usize = 250;
/// For all pages of a large cluster.
const LIST: Duration = Duration::from_secs(120);
const SHORT: Duration = Duration::from_secs(30);
/// Tries against somebody who writes to the same node at once: the kubelet's heartbeat does not count.
const TRIES: usize = 5;

/// Every node, with its labels; one that is cordoned bears the label of the taint.
pub(super) fn all(api: &Api) -> Result<Vec<Node>, CarryError> {
    let broken = |why: String| CarryError::Carrier { carrier: "kubectl", why };
    let (until, mut next, mut nodes) = (Instant::now() + LIST, String::new(), Vec::new());
    loop {
        let path = format!("/api/v1/nodes?limit={PAGE}{next}");
        let right = Right { verb: "list", resource: "nodes", namespace: None };
        let page = api.ask(right, &path, Body::None, until).map_err(|e| broken(e.to_string()))?;
        for item in page["items"].as_array().into_iter().flatten() {
            let name = item["metadata"]["name"].as_str().unwrap_or_default();
            let name = NodeName::new(name).map_err(|e| broken(e.to_string()))?;
            let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_string()));
            let labels = item["metadata"]["labels"].as_object().into_iter().flatten();
            let mut labels: BTreeMap<String, String> = labels.filter_map(text).collect();
            if item["spec"]["unschedulable"] == true {
                labels.insert("node.kubernetes.io/unschedulable".into(), String::new());
            }
            nodes.push(Node { name, labels, is_ready: Some(is_ready(item)) });
        }
        match page["metadata"]["continue"].as_str() {
            // A token of the server's: letters, digits, `-`, `_`, `=`.
            Some(token) if !token.is_empty() => next = format!("&continue={}", token.replace('=', "%3D")),
            _ => break,
        }
    }
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(nodes)
}

/// One node.
pub(super) fn one(api: &Api, node: &NodeName, until: Instant) -> Result<Value, ApiError> {
    api.ask(Right { verb: "get", resource: "nodes", namespace: None }, &path(node), Body::None, until)
}

fn path(node: &NodeName) -> String {
    format!("/api/v1/nodes/{node}")
}

/// Does it say so itself, and lately enough for the cluster?
pub(super) fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|c| c["type"] == "Ready" && c["status"] == "True")
}

/// Takes it out of service.
pub(super) fn cordon(api: &Api, node: &NodeName) -> Result<(), ApiError> {
    change(api, node, |found| {
        // Somebody of ours began and did not end: what was before is known already.
        let is_known = found["metadata"]["annotations"][WAS].is_string();
        let was = found["spec"]["unschedulable"] == true;
        let annotations = if is_known { json!({}) } else { json!({(WAS): was.to_string()}) };
        (!is_known || !was).then(|| json!({"metadata": {"annotations": annotations}, "spec": {"unschedulable": true}}))
    })
}

/// And back, as it was before.
pub(super) fn uncordon(api: &Api, node: &NodeName) -> Result<(), ApiError> {
    change(api, node, |found| {
        let was = found["metadata"]["annotations"][WAS].as_str()?;
        let unschedulable = if was == "true" { json!(true) } else { Value::Null };
        Some(json!({"metadata": {"annotations": {(WAS): null}}, "spec": {"unschedulable": unschedulable}}))
    })
}

/// Reads, decides, writes if nobody has written meanwhile.
fn change(api: &Api, node: &NodeName, decide: impl Fn(&Value) -> Option<Value>) -> Result<(), ApiError> {
    let until = Instant::now() + SHORT;
    let mut last = ApiError::Conflict(String::new());
    for _ in 0..TRIES {
        let found = one(api, node, until)?;
        let Some(mut patch) = decide(&found) else { return Ok(()) };
        patch["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"].clone();
        let right = Right { verb: "patch", resource: "nodes", namespace: None };
        match api.ask(right, &path(node), Body::Merge(&patch), until) {
            Ok(_) => return Ok(()),
            Err(error @ ApiError::Conflict(_)) => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}
