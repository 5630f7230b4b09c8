//! An order as a Job: one pod, once, on one node, with as much privilege as the order needs and no more.
//!
//! Three kinds (docs/kubernetes.md has them as a table). Reads: root without a capability, because root's own files (energy
//! counters) are then read as their owner; the node's /sys read-only. Measures: the same with BPF, PERFMON and SYS_NICE, and
//! without the runtime's seccomp profile, whose older versions refuse those calls even to who may. Changes: privileged, in the
//! node's PID namespace, /sys and the journals of the node to write. None has a token of the API server, a network of the
//! node or a file system of its own to write to.
//!
//! The pod runs `wakewatt carried`, which writes the answer into the log and stays until what is to live on has ended. A guard
//! dies with its container: so who takes the pod away gives it as long as the guard may still need. Nothing is tried twice,
//! everything ends by itself, and what has ended is removed by the cluster.

use crate::{NodeName, Order, Privilege};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};

/// Where the order's standard input is found: no second object is needed, and none is left behind.
pub const INPUT: &str = "WAKEWATT_CARRIED_INPUT";
/// The kernel takes no longer variable (MAX_ARG_STRLEN is 128 KiB).
pub const LONGEST_INPUT: usize = 96 << 10;
/// For the image to come and the pod to start, beside what the order takes.
const START: Duration = Duration::from_secs(300);
/// After the last moment, before the cluster ends it by force.
const GRACE: Duration = Duration::from_secs(30);
/// How long an ended Job stays to be looked at.
const KEPT: Duration = Duration::from_secs(120);

/// How Jobs are made in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Where: it must allow hostPath, and privileged pods for changes (docs/kubernetes.md).
    pub namespace: String,
    /// The image, which has wakewatt at /wakewatt.
    pub image: String,
    /// Whom reading and measuring pods belong to.
    pub reader: String,
    /// Whom changing pods belong to.
    pub changer: String,
    /// Memory that a pod may use, as Kubernetes writes it.
    pub memory: String,
    /// Take a node out of service (cordon) before its first change.
    pub is_cordoning: bool,
}

impl Default for Terms {
    fn default() -> Self {
        Terms {
            namespace: "wakewatt".into(),
            image: "wakewatt".into(),
            reader: "wakewatt-reader".into(),
            changer: "wakewatt-changer".into(),
            memory: "512Mi".into(),
            is_cordoning: false,
        }
    }
}

/// What tells our objects apart.
pub(super) const MANAGED: (&str, &str) = ("app.kubernetes.io/managed-by", "wakewatt");

/// The Job for an order.
pub(super) fn manifest(
    terms: &Terms,
    name: &str,
    node: &NodeName,
    order: &Order,
    input: &str,
    start_before: SystemTime,
) -> Value {
    let is_changing = order.privilege == Privilege::Changes;
    let host = |name: &str, path: &str, is_written: bool, kind: &str| {
        let volume = json!({"name": name, "hostPath": {"path": path, "type": kind}});
        (volume, json!({"name": name, "mountPath": path, "readOnly": !is_written}))
    };
    let mut shared = vec![host("sys", "/sys", is_changing, "Directory")];
    // Journals are their business who ask `tune`; a folder that is missing is made by who changes only.
    if is_changing {
        shared.push(host("state", "/var/lib/wakewatt", true, "DirectoryOrCreate"));
    } else if order.arguments.first().is_some_and(|word| word == "tune") {
        shared.push(host("state", "/var/lib/wakewatt", false, ""));
    }
    let (volumes, mounts): (Vec<Value>, Vec<Value>) = shared.into_iter().unzip();
    let security = match order.privilege {
        Privilege::Reads => json!({
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsUser": 0,
            "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
        }),
        Privilege::Measures => json!({
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsUser": 0,
            "capabilities": {"drop": ["ALL"], "add": ["BPF", "PERFMON", "SYS_NICE"]},
            "seccompProfile": {"type": "Unconfined"},
        }),
        Privilege::Changes => json!({"privileged": true, "readOnlyRootFilesystem": true, "runAsUser": 0}),
    };
    let mut arguments = vec![
        "carried".to_string(),
        format!("--within={}s", order.within.as_secs().max(1)),
        format!("--lives-on={}s", order.lives_on.as_secs()),
        format!("--at-most={}", order.at_most),
    ];
    if is_changing {
        let since = start_before.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        arguments.push(format!("--start-before={}", since.as_secs()));
    }
    arguments.push("--".into());
    arguments.extend(order.arguments.iter().cloned());
    // Kubernetes puts variables into arguments and values; two dollars are one.
    let literal = |text: &str| text.replace('$', "$$");
    let arguments: Vec<String> = arguments.iter().map(|word| literal(word)).collect();
    let environment = if input.is_empty() { json!([]) } else { json!([{"name": INPUT, "value": literal(input)}]) };
    let lasts = order.within + order.lives_on;
    let labels = json!({
        "app.kubernetes.io/name": "wakewatt", "app.kubernetes.io/component": "carried", (MANAGED.0): MANAGED.1,
    });
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "namespace": terms.namespace, "labels": labels},
        "spec": {
            "backoffLimit": 0, "completions": 1, "parallelism": 1,
            "activeDeadlineSeconds": (lasts + START + GRACE).as_secs(),
            "ttlSecondsAfterFinished": KEPT.as_secs(),
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "restartPolicy": "Never",
                    "serviceAccountName": if is_changing { &terms.changer } else { &terms.reader },
                    "automountServiceAccountToken": false,
                    "enableServiceLinks": false,
                    "hostPID": is_changing,
                    "terminationGracePeriodSeconds": (order.lives_on + GRACE).as_secs(),
                    // As a DaemonSet's pods are bound: the scheduler counts it, and a cordoned node still takes it.
                    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node.as_str()]}]},
                    ]}}},
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{
                        "name": "wakewatt",
                        "image": terms.image,
                        "imagePullPolicy": "IfNotPresent",
                        "command": ["/wakewatt"],
                        "args": arguments,
                        "env": environment,
                        "securityContext": security,
                        "resources": {
                            "requests": {"cpu": "10m", "memory": "32Mi"},
                            "limits": {"memory": terms.memory},
                        },
                        "volumeMounts": mounts,
                    }],
                    "volumes": volumes,
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(privilege: Privilege, arguments: &[&str]) -> Order {
        Order {
            arguments: arguments.iter().map(ToString::to_string).collect(),
            input: Vec::new(),
            privilege,
            within: Duration::from_secs(60),
            at_most: 1000,
            lives_on: Duration::from_secs(90),
        }
    }

    fn made(privilege: Privilege, arguments: &[&str]) -> Value {
        let node = NodeName::new("node1").unwrap();
        manifest(&Terms::default(), "w-1", &node, &order(privilege, arguments), "a$(b)", SystemTime::now())
    }

    #[test]
    fn only_who_changes_is_privileged_and_nobody_has_a_token() {
        for (privilege, is_privileged) in
            [(Privilege::Reads, false), (Privilege::Measures, false), (Privilege::Changes, true)]
        {
            let job = made(privilege, &["inspect", "--json"]);
            let pod = &job["spec"]["template"]["spec"];
            let security = &pod["containers"][0]["securityContext"];
            assert_eq!(security["privileged"].as_bool().unwrap_or(false), is_privileged);
            assert_eq!(pod["hostPID"], is_privileged);
            assert_eq!(pod["automountServiceAccountToken"], false);
            assert_eq!(security["readOnlyRootFilesystem"], true);
            for mount in pod["containers"][0]["volumeMounts"].as_array().unwrap() {
                assert_eq!(mount["readOnly"], !is_privileged, "{mount}");
            }
        }
        let adds = |p| {
            made(p, &["x"])["spec"]["template"]["spec"]["containers"][0]["securityContext"]["capabilities"]["add"]
                .clone()
        };
        assert_eq!(adds(Privilege::Measures), json!(["BPF", "PERFMON", "SYS_NICE"]));
        assert_eq!(adds(Privilege::Reads), Value::Null);
    }

    #[test]
    fn everything_ends_by_itself_and_a_guard_is_given_its_time() {
        let job = made(Privilege::Changes, &["tune", "apply", "$(HOME)"]);
        let spec = &job["spec"];
        assert_eq!((&spec["backoffLimit"], &spec["ttlSecondsAfterFinished"]), (&json!(0), &json!(120)));
        assert_eq!(spec["activeDeadlineSeconds"], 60 + 90 + 300 + 30);
        assert_eq!(spec["template"]["spec"]["terminationGracePeriodSeconds"], 90 + 30);
        let container = &spec["template"]["spec"]["containers"][0];
        assert_eq!(container["args"].as_array().unwrap().last().unwrap(), "$$(HOME)", "no variable is put in");
        assert_eq!(container["env"][0]["value"], "a$$(b)");
    }

    #[test]
    fn journals_are_shown_to_who_asks_tune_only() {
        let volumes = |words: &[&str]| made(Privilege::Reads, words)["spec"]["template"]["spec"]["volumes"].clone();
        assert_eq!(volumes(&["inspect"]).as_array().unwrap().len(), 1);
        assert_eq!(volumes(&["tune", "status"])[1]["hostPath"]["path"], "/var/lib/wakewatt");
    }
}
