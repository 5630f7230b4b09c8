//! Who else sets on a node what a rollout would set, as far as the cluster knows.
//!
//! CRI-O does what a pod's annotations ask and puts back what it found when the pod ends, ours with it; the Node Tuning
//! Operator writes its profile again when it is changed; so these are in the way. A kubelet with the static CPU manager only
//! gives CPUs away: worth knowing, no reason to stop. What nobody may ask (the kubelet's own configuration needs `get
//! nodes/proxy`, which also opens a way into containers, so we do not ask to be given it) is left out.

use super::api::{Api, ApiError, Body, Right};
use crate::{Holder, HolderKind, NodeName};
use serde_json::Value;
use std::time::{Duration, Instant};
use wakewatt_core::visible;

const LIST: Duration = Duration::from_secs(30);
/// CRI-O's annotations that move idle states or frequency.
const CRIO: &[&str] = &["cpu-c-states.crio.io", "cpu-freq-governor.crio.io"];

/// All that are seen.
pub(super) fn of(api: &Api, node: &NodeName) -> Result<Vec<Holder>, ApiError> {
    let until = Instant::now() + LIST;
    let mut found = Vec::new();
    let path = format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{node}&limit=500");
    let pods = api.ask(Right { verb: "list", resource: "pods", namespace: None }, &path, Body::None, until)?;
    for pod in pods["items"].as_array().into_iter().flatten() {
        found.extend(of_pod(pod));
    }
    let profile =
        format!("/apis/tuned.openshift.io/v1/namespaces/openshift-cluster-node-tuning-operator/profiles/{node}");
    let namespace = Some("openshift-cluster-node-tuning-operator");
    let right = Right { verb: "get", resource: "profiles.tuned.openshift.io", namespace };
    // Without the operator there is no such resource; without the right nothing can be told.
    if let Ok(profile) = api.ask_once(right, &profile, Body::None, until) {
        let name = profile["spec"]["config"]["tunedProfile"].as_str().unwrap_or("a profile");
        let name = visible::line(name).into_owned();
        found.push(Holder {
            kind: HolderKind::NodeTuningOperator,
            name,
            place: profile["metadata"]["name"].as_str().unwrap_or_default().into(),
        });
    }
    let configuration = format!("/api/v1/nodes/{node}/proxy/configz");
    let right = Right { verb: "get", resource: "nodes/proxy", namespace: None };
    if let Ok(answer) = api.ask_once(right, &configuration, Body::None, until)
        && answer["kubeletconfig"]["cpuManagerPolicy"] == "static"
    {
        found.push(Holder { kind: HolderKind::CpuManager, name: "static".into(), place: node.to_string() });
    }
    Ok(found)
}

fn of_pod(pod: &Value) -> impl Iterator<Item = Holder> + '_ {
    let is_over = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    let of = |key: &str| pod["metadata"][key].as_str().unwrap_or_default();
    let place = format!("{}/{}", of("namespace"), of("name"));
    let annotations = pod["metadata"]["annotations"].as_object().into_iter().flatten().filter(move |_| !is_over);
    // With and without the name of a container behind it.
    let is_crio = |key: &str| CRIO.iter().any(|known| key == *known || key.starts_with(&format!("{known}/")));
    annotations.filter(move |(key, _)| is_crio(key)).map(move |(key, value)| Holder {
        kind: HolderKind::CrioAnnotation,
        name: visible::line(&format!("{key}={}", value.as_str().unwrap_or_default())).into_owned(),
        place: visible::line(&place).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn annotations_of_cri_o_are_seen_on_pods_that_run() {
        let pod = |phase: &str| {
            json!({"metadata": {"namespace": "shop", "name": "db-0", "annotations": {
                "cpu-c-states.crio.io": "disable", "cpu-freq-governor.crio.io/db": "performance", "other": "x"}},
                "status": {"phase": phase}})
        };
        let running = pod("Running");
        let found: Vec<Holder> = of_pod(&running).collect();
        assert_eq!(found.len(), 2);
        assert!(found[0].is_in_the_way() && found[0].to_string().contains("shop/db-0"), "{}", found[0]);
        assert_eq!(of_pod(&pod("Succeeded")).count(), 0);
    }
}
