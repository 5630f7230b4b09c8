//! The Helm chart: what its schema lets through, what a pod of it may do, and that helm takes it where helm is.
//!
//! The schema is asked about documents here, because Helm asks it before anything else. What the API server thinks of the
//! objects, with the fields checked strictly and the policy compiled, is proved by `make prove-fleet`.

use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use wakewatt_testing::{Lacks, skipped};

fn chart() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/helm/wakewatt"))
}

fn text(name: &str) -> String {
    std::fs::read_to_string(chart().join(name)).unwrap()
}

#[test]
fn the_schema_refuses_what_would_be_open_or_misspelt() {
    let schema: Value = serde_json::from_str(&text("values.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let listening = |with: Value| {
        let mut agent =
            json!({"enabled": true, "listen": "cluster", "tlsSecret": "", "tokenSecret": "", "clientCaSecret": ""});
        agent.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
        json!({"agent": agent})
    };
    let operator = |kind: &str| json!({"changes": {"enabled": true, "operators": [{"kind": kind, "name": "ann"}]}});
    for good in [
        json!({}),
        json!({"agent": {"enabled": true, "listen": "node"}}),
        listening(json!({"tlsSecret": "t", "tokenSecret": "t"})),
        listening(json!({"tlsSecret": "t", "clientCaSecret": "c"})),
        operator("Group"),
    ] {
        assert!(schema.is_valid(&good), "{good}");
    }
    for bad in [
        json!({"agnet": {}}),
        json!({"agent": {"listen": "everywhere"}}),
        json!({"agent": {"port": 80}}),
        listening(json!({})),
        listening(json!({"tlsSecret": "t"})),
        listening(json!({"tokenSecret": "t"})),
        operator("Everybody"),
        json!({"image": {"repository": "x", "digest": "sha256:short"}}),
    ] {
        assert!(!schema.is_valid(&bad), "{bad}");
    }
}

#[test]
fn nothing_of_the_chart_is_privileged_or_has_a_token() {
    for name in ["agent.yaml", "tests.yaml"] {
        let text = text(&format!("templates/{name}"));
        assert!(
            text.contains("readOnlyRootFilesystem: true") && text.contains("allowPrivilegeEscalation: false"),
            "{name}"
        );
        assert!(!text.contains("privileged: true") && !text.contains("hostPID") && !text.contains("hostIPC"), "{name}");
        assert!(text.contains("mountPath: /sys, readOnly: true"), "{name}");
    }
    let agent = text("templates/agent.yaml");
    assert!(agent.contains("add: [BPF, PERFMON]") && agent.matches("add:").count() == 1);
    for name in ["agent.yaml", "carried.yaml", "tests.yaml"] {
        let text = text(&format!("templates/{name}"));
        let accounts = text.matches("kind: ServiceAccount\n").count() + text.matches("serviceAccountName:").count();
        assert_eq!(text.matches("automountServiceAccountToken: false").count(), accounts, "{name}");
    }
    // Off until somebody is named.
    let values = text("values.yaml");
    assert!(values.contains("changes:\n  enabled: false") && values.contains("reading:\n  enabled: false"));
}

#[test]
fn helm_takes_the_chart() {
    let helm = |words: &[&str]| Command::new("helm").args(words).arg(chart()).output();
    let Ok(lint) = helm(&["lint", "--strict"]) else {
        return skipped("chart::helm_takes_the_chart", Lacks::Program("helm"), "the chart is not rendered");
    };
    assert!(lint.status.success(), "{}", String::from_utf8_lossy(&lint.stdout));
    let made = helm(&[
        "template",
        "w",
        "--kube-version",
        "1.34.0",
        "--set",
        "changes.enabled=true,changes.operators[0].kind=User,changes.operators[0].name=ann",
    ])
    .unwrap();
    let made = String::from_utf8_lossy(&made.stdout).into_owned();
    for kind in ["DaemonSet", "Role", "ClusterRole", "NetworkPolicy", "ValidatingAdmissionPolicy"] {
        assert!(made.contains(&format!("kind: {kind}\n")), "{kind}\n{made}");
    }
    let open = helm(&["template", "w", "--kube-version", "1.34.0", "--set", "agent.listen=cluster"]).unwrap();
    assert!(!open.status.success(), "to the cluster only with TLS and a token");
}
