//! The carrier against a cluster in memory: what it asks, what it makes of answers, and what it leaves behind.

use super::*;
use serde_json::Value;
use std::ffi::OsString;
use tempfile::TempDir;
use wakewatt_testing::cluster::{Cluster, Fault, Kubelet};

/// A pod that has answered so and has ended, or lives on.
fn answering(code: i32, output: &'static str, phase: &'static str) -> Kubelet {
    Box::new(move |_| {
        let answer = answer::Answer { code, output: output.into(), said: "said".into(), ..answer::Answer::default() };
        (json!({"phase": phase}), format!("noise\n{}", answer.to_lines()))
    })
}

fn cluster(kubelet: Kubelet) -> (TempDir, Cluster, Kubernetes) {
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(folder.path(), kubelet).unwrap();
    for (name, ready) in [("node1", "True"), ("dark", "Unknown")] {
        let node = json!({"metadata": {"name": name, "labels": {"pool": "a"}},
            "status": {"conditions": [{"type": "Ready", "status": ready}]}});
        cluster.add(&format!("/api/v1/nodes/{name}"), node);
    }
    let kubectl = Kubectl {
        program: cluster.kubectl().into_os_string(),
        context: Some("prod".into()),
        kubeconfig: Some(cluster.kubeconfig()),
    };
    let terms = Terms { is_cordoning: true, ..Terms::default() };
    (folder, cluster, Kubernetes::new(kubectl, terms))
}

fn order(privilege: Privilege, lives_on_s: u64) -> Order {
    Order {
        arguments: vec!["tune".into(), "apply".into()],
        input: b"format = 1\n".to_vec(),
        privilege,
        within: Duration::from_secs(120),
        at_most: 1 << 20,
        lives_on: Duration::from_secs(lives_on_s),
    }
}

fn name(text: &str) -> NodeName {
    NodeName::new(text).unwrap()
}

const JOBS: &str = "/apis/batch/v1/namespaces/wakewatt/jobs";

#[test]
fn an_answer_comes_back_while_its_job_lives_on_and_what_has_ended_goes() {
    let (_folder, cluster, carrier) = cluster(answering(6, "{\"a\":1}", "Running"));
    let reply = carrier.run(&name("node1"), &order(Privilege::Changes, 90)).unwrap();
    assert_eq!((reply.code, reply.output.as_slice(), reply.said.as_str()), (6, b"{\"a\":1}".as_slice(), "said"));
    assert_eq!(cluster.paths(JOBS).len(), 1, "the guard lives in it");
    let job = cluster.get(&cluster.paths(JOBS)[0]).unwrap();
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["env"][0], json!({"name": "WAKEWATT_CARRIED_INPUT", "value": "format = 1\n"}));
    let reply = carrier.run(&name("node1"), &order(Privilege::Reads, 0)).unwrap();
    assert_eq!(reply.code, 6);
    assert!(cluster.wait_for(|c| c.paths(JOBS).len() == 1), "the one that has ended was taken away");
    // One kubectl for all of it, and nothing in its words but where to go.
    let words = cluster.arguments();
    let words: Vec<&str> = words.lines().collect();
    assert_eq!(words[1..3], ["--context=prod", "proxy"]);
    assert_eq!(words.len(), 4, "{words:?}");
}

#[test]
fn lost_answers_and_a_server_that_is_away_are_asked_again_and_make_one_job() {
    let (_folder, cluster, carrier) = cluster(answering(0, "ok", "Running"));
    cluster.spoil(&[Fault::Away, Fault::Lost]);
    let reply = carrier.run(&name("node1"), &order(Privilege::Changes, 90)).unwrap();
    assert_eq!(reply.output, b"ok");
    assert_eq!(cluster.paths(JOBS).len(), 1);
    let creations = cluster.asked().iter().filter(|(method, ..)| method == "POST").count();
    assert_eq!(creations, 3, "away, lost, and there already");
}

#[test]
fn who_cannot_answer_is_told_apart() {
    let (_folder, cluster, carrier) = cluster(Box::new(|job| {
        let word = job["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap().last().unwrap().clone();
        let waiting = |reason: &str| json!({"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": reason}}}]});
        match word.as_str().unwrap() {
            "pending" => (waiting("ContainerCreating"), String::new()),
            "misnamed" => (waiting("InvalidImageName"), String::new()),
            "full" => (json!({"phase": "Failed", "reason": "OutOfcpu"}), String::new()),
            "killed" => {
                let state = json!({"terminated": {"reason": "OOMKilled", "exitCode": 137}});
                (json!({"phase": "Failed", "containerStatuses": [{"state": state}]}), "some words\n".into())
            }
            "torn" => (json!({"phase": "Running"}), "wakewatt-answer/1 &&\n".into()),
            _ => {
                (json!({"phase": "Running"}), answer::Answer { output: vec![1; 3000], ..Default::default() }.to_lines())
            }
        }
    }));
    let node = name("node1");
    let run = |word: &str, within_s| {
        let order = Order {
            arguments: vec![word.into()],
            within: Duration::from_secs(within_s),
            at_most: 2000,
            ..order(Privilege::Reads, 0)
        };
        carrier.run(&node, &order).unwrap_err()
    };
    assert!(matches!(run("pending", 2), CarryError::Unreachable { why, .. } if why.contains("ContainerCreating")));
    assert!(matches!(run("misnamed", 60), CarryError::Refused { why, .. } if why.contains("InvalidImageName")));
    assert!(matches!(run("full", 60), CarryError::Unreachable { why, .. } if why.contains("OutOfcpu")));
    assert!(
        matches!(run("killed", 60), CarryError::Unreachable { why, .. } if why.contains("OOMKilled (exit code 137)"))
    );
    assert!(matches!(run("torn", 60), CarryError::Unreachable { why, .. } if why.contains("containerLogMaxSize")));
    assert!(matches!(run("long", 60), CarryError::TooLong { at_most: 2000, .. }));
    let change =
        Order { arguments: vec!["pending".into()], within: Duration::from_secs(2), ..order(Privilege::Changes, 9) };
    assert!(matches!(carrier.run(&node, &change), Err(CarryError::TimedOut { .. })), "may have been done or not");
    assert!(
        matches!(carrier.run(&name("dark"), &change), Err(CarryError::Unreachable { why, .. }) if why.contains("not ready"))
    );
    assert!(
        matches!(carrier.run(&name("none"), &change), Err(CarryError::Unreachable { why, .. }) if why.contains("no such node"))
    );
    assert!(cluster.wait_for(|c| c.paths(JOBS).is_empty()), "nothing may begin there any more");
    cluster.forbid("POST /apis/batch/v1");
    let refused = carrier.run(&node, &change).unwrap_err().to_string();
    assert!(refused.ends_with("kubectl auth can-i create jobs.batch --namespace wakewatt"), "{refused}");
}

#[test]
fn a_cordon_is_put_back_as_it_was() {
    let (_folder, cluster, carrier) = cluster(answering(0, "", "Running"));
    let unschedulable = || cluster.get("/api/v1/nodes/node1").unwrap()["spec"]["unschedulable"].clone();
    let node = name("node1");
    carrier.put_back(&node).unwrap();
    carrier.take_out(&node).unwrap();
    // A second one, after a crash, does not take the first one's for what was before.
    carrier.take_out(&node).unwrap();
    assert_eq!(unschedulable(), true);
    carrier.put_back(&node).unwrap();
    assert_eq!(unschedulable(), Value::Null);
    assert!(cluster.get("/api/v1/nodes/node1").unwrap()["metadata"]["annotations"].as_object().unwrap().is_empty());
    cluster.add("/api/v1/nodes/node1", json!({"metadata": {"name": "node1"}, "spec": {"unschedulable": true}}));
    carrier.take_out(&node).unwrap();
    carrier.put_back(&node).unwrap();
    assert_eq!(unschedulable(), true, "it was cordoned before");
}

#[test]
fn nodes_come_in_pages_with_labels_and_readiness() {
    let (_folder, cluster, carrier) = cluster(answering(0, "", "Running"));
    for n in 0..600 {
        cluster.add(
            &format!("/api/v1/nodes/n{n:03}"),
            json!({"metadata": {"name": format!("n{n:03}")}, "spec": {"unschedulable": n == 7}}),
        );
    }
    let nodes = carrier.nodes().unwrap();
    assert_eq!(nodes.len(), 602);
    let of = |name: &str| nodes.iter().find(|n| n.name.as_str() == name).unwrap();
    assert_eq!((of("node1").is_ready, of("dark").is_ready), (Some(true), Some(false)));
    assert_eq!(of("node1").labels["pool"], "a");
    assert!(of("n007").labels.contains_key("node.kubernetes.io/unschedulable"));
}

#[test]
fn others_who_set_the_same_are_named() {
    let (_folder, cluster, carrier) = cluster(answering(0, "", "Running"));
    assert_eq!(carrier.holders(&name("node1")).unwrap(), []);
    cluster.add("/api/v1/namespaces/shop/pods/db-0", json!({"metadata": {"namespace": "shop", "name": "db-0",
        "annotations": {"cpu-c-states.crio.io": "disable"}}, "spec": {"nodeName": "node1"}, "status": {"phase": "Running"}}));
    let operator = "/apis/tuned.openshift.io/v1/namespaces/openshift-cluster-node-tuning-operator/profiles/node1";
    cluster
        .add(operator, json!({"metadata": {"name": "node1"}, "spec": {"config": {"tunedProfile": "openshift-node"}}}));
    cluster.add(
        "/api/v1/nodes/node1/proxy/configz",
        json!({"metadata": {}, "kubeletconfig": {"cpuManagerPolicy": "static"}}),
    );
    let found = carrier.holders(&name("node1")).unwrap();
    let in_the_way: Vec<bool> = found.iter().map(Holder::is_in_the_way).collect();
    assert_eq!(in_the_way, [true, true, false], "{found:?}");
    assert!(carrier.holders(&name("dark")).unwrap().is_empty(), "each node by itself");
}

#[test]
fn without_kubectl_or_with_one_that_ends_the_reason_is_said() {
    let broken = |program: &str| {
        let kubectl = Kubectl { program: OsString::from(program), ..Kubectl::default() };
        Kubernetes::new(kubectl, Terms::default()).nodes().unwrap_err().to_string()
    };
    assert!(broken("/none/kubectl").contains("/none/kubectl"));
    assert!(broken("false").contains("kubectl proxy has ended"));
}
