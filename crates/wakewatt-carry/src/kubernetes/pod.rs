//! What a pod's status says about whether an answer can still come.
//!
//! Decided on the fields the API promises (phase, conditions, `waiting.reason`), never on messages, which are only shown.

use serde_json::Value;
use wakewatt_core::visible;

/// How far a pod is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It may still start; why it has not.
    Pending(String),
    /// It will not start as it is.
    Stuck(String),
    /// Its log can be read.
    Started,
    /// Its log can be read, and nothing more will be written there.
    Ended,
    /// It never ran.
    Failed(String),
}

/// Reasons of a waiting container that waiting longer does not mend: what the user named is wrong.
const STUCK: &[&str] = &[
    "ErrImageNeverPull",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
];
/// Those that may be mended by waiting, but seldom are: a registry that is away. Given up when seen after a while.
pub(super) const DOUBTFUL: &[&str] = &["ErrImagePull", "ImagePullBackOff"];

/// How far it is.
pub(super) fn stage(pod: &Value) -> Stage {
    let status = &pod["status"];
    let container = &status["containerStatuses"][0]["state"];
    let told = |of: &Value| {
        let reason = of["reason"].as_str().unwrap_or_default();
        let message = of["message"].as_str().unwrap_or_default();
        let text = if message.is_empty() { reason.to_string() } else { format!("{reason}: {message}") };
        visible::line(&text).chars().take(500).collect::<String>()
    };
    let has_run = !container["terminated"].is_null();
    match status["phase"].as_str() {
        Some("Succeeded") => Stage::Ended,
        Some("Failed") if has_run => Stage::Ended,
        Some("Failed") => Stage::Failed(told(status)),
        Some("Running") if has_run => Stage::Ended,
        Some("Running") => Stage::Started,
        _ => {
            let waiting = &container["waiting"];
            if waiting["reason"].as_str().is_some_and(|reason| STUCK.contains(&reason)) {
                return Stage::Stuck(told(waiting));
            }
            let conditions = status["conditions"].as_array();
            let not_placed =
                conditions.into_iter().flatten().find(|c| c["type"] == "PodScheduled" && c["status"] == "False");
            Stage::Pending(told(not_placed.unwrap_or(waiting)))
        }
    }
}

/// Is its image not to be had?
pub(super) fn is_without_image(pod: &Value) -> bool {
    let reason = pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"].as_str();
    reason.is_some_and(|reason| DOUBTFUL.contains(&reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_is_told_by_its_fields() {
        let with =
            |phase: &str, state: Value| json!({"status": {"phase": phase, "containerStatuses": [{"state": state}]}});
        let waiting = |reason: &str| json!({"waiting": {"reason": reason, "message": "m\u{1b}"}});
        assert_eq!(stage(&json!({})), Stage::Pending(String::new()));
        assert_eq!(
            stage(&with("Pending", waiting("ContainerCreating"))),
            Stage::Pending("ContainerCreating: m\\x1b".into())
        );
        assert!(matches!(stage(&with("Pending", waiting("InvalidImageName"))), Stage::Stuck(_)));
        assert!(is_without_image(&with("Pending", waiting("ImagePullBackOff"))));
        assert_eq!(stage(&with("Running", json!({"running": {}}))), Stage::Started);
        assert_eq!(stage(&with("Failed", json!({"terminated": {"exitCode": 1}}))), Stage::Ended);
        assert_eq!(stage(&with("Succeeded", json!({}))), Stage::Ended);
        let evicted = json!({"status": {"phase": "Failed", "reason": "OutOfcpu", "message": "no room"}});
        assert_eq!(stage(&evicted), Stage::Failed("OutOfcpu: no room".into()));
        let unplaced = json!({"status": {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]}});
        assert_eq!(stage(&unplaced), Stage::Pending("Unschedulable: 0/3 nodes".into()));
    }
}
