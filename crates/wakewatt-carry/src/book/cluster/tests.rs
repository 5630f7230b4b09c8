//! The book against a cluster in memory.

use super::*;
use tempfile::TempDir;
use wakewatt_testing::cluster::{Cluster, Fault};

fn cluster() -> (TempDir, Cluster) {
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(folder.path(), Box::new(|_| (json!({}), String::new()))).unwrap();
    (folder, cluster)
}

fn open(cluster: &Cluster, who: &str) -> Result<ClusterBook, BookError> {
    let kubectl = Kubectl { program: cluster.kubectl().into(), kubeconfig: Some(cluster.kubeconfig()), context: None };
    ClusterBook::open(kubectl, "wakewatt", "rollout", who, None)
}

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/wakewatt/leases/rollout";
const MAPS: &str = "/api/v1/namespaces/wakewatt/configmaps";

#[test]
fn one_holds_it_and_the_next_reads_what_was_written() {
    let (_folder, cluster) = cluster();
    let mut first = open(&cluster, "ann@a").unwrap();
    assert_eq!(first.read().unwrap(), None);
    first.write(b"{\"wave\":1}").unwrap();
    let Err(BookError::Held { holder, until, .. }) = open(&cluster, "bob@b") else { panic!("held twice") };
    assert!(holder.starts_with("ann@a") && until.is_some(), "{holder}");
    drop(first);
    let mut second = open(&cluster, "bob@b").unwrap();
    assert_eq!(second.read().unwrap().unwrap(), b"{\"wave\":1}");
    let lease = cluster.get(LEASE).unwrap();
    assert_eq!(lease["spec"]["leaseTransitions"], 1);
}

#[test]
fn who_is_dead_is_followed_and_writes_no_more_when_he_wakes() {
    let (_folder, cluster) = cluster();
    let mut frozen = open(&cluster, "ann@a").unwrap();
    frozen.write(b"1").unwrap();
    frozen.audit("{\"n\":1}").unwrap();
    let mut lease = cluster.get(LEASE).unwrap();
    lease["spec"]["renewTime"] = json!("2026-01-01T00:00:00.000000Z");
    cluster.add(LEASE, lease);
    let mut next = open(&cluster, "bob@b").unwrap();
    assert_eq!(next.read().unwrap().unwrap(), b"1");
    // He believes that he holds it: the version of what he read is old.
    assert!(matches!(frozen.write(b"2"), Err(BookError::Held { .. } | BookError::Changed(_))));
    assert_eq!(next.read().unwrap().unwrap(), b"1");
    next.audit("{\"n\":2}").unwrap();
    assert!(matches!(frozen.audit("{\"n\":3}"), Err(BookError::Changed(_))));
    drop(frozen);
    let lease = cluster.get(LEASE).unwrap();
    assert!(
        lease["spec"]["holderIdentity"].as_str().unwrap().starts_with("bob@b"),
        "who lets go of another's lets go of nothing"
    );
}

#[test]
fn a_lost_answer_is_no_conflict_with_oneself() {
    let (_folder, cluster) = cluster();
    let mut book = open(&cluster, "ann@a").unwrap();
    for n in 0..3 {
        cluster.spoil(&[Fault::Lost, Fault::Away, Fault::NotYet, Fault::Lost]);
        book.write(n.to_string().as_bytes()).unwrap();
        cluster.spoil(&[Fault::Lost]);
        book.audit(&format!("{{\"n\":{n}}}")).unwrap();
    }
    assert_eq!(book.read().unwrap().unwrap(), b"2");
    let log = cluster.get(&format!("{MAPS}/rollout-audit-0")).unwrap();
    let lines = log["data"]["lines"].as_str().unwrap().to_string();
    assert!((0..3).all(|n| lines.matches(&format!("\"n\":{n}}}")).count() == 1), "each once: {lines}");
}

#[test]
fn a_state_that_is_too_large_for_one_object_lies_in_parts() {
    let (_folder, cluster) = cluster();
    let mut book = open(&cluster, "ann@a").unwrap();
    let large = |c: &str| c.repeat(1_300_000);
    for (state, n_objects) in [(large("ä"), 1 + 3), (large("b"), 1 + 2), ("small".to_string(), 1), (large("ö"), 1 + 3)]
    {
        book.write(state.as_bytes()).unwrap();
        assert_eq!(book.read().unwrap().unwrap(), state.as_bytes());
        assert_eq!(cluster.paths(MAPS).len(), n_objects, "what the state before used is gone");
    }
    drop(book);
    let mut book = open(&cluster, "bob@b").unwrap();
    assert_eq!(book.read().unwrap().unwrap(), large("ö").as_bytes());
    let part = cluster.paths(MAPS).into_iter().find(|p| p.ends_with("-1")).unwrap();
    cluster.add(&part, json!({"metadata": {}, "data": {"part": "changed"}}));
    assert!(matches!(book.read(), Err(BookError::Broken { why, .. }) if why.contains("not what was written")));
}

#[test]
fn the_audit_log_goes_on_in_the_next_object_and_after_a_restart() {
    let (_folder, cluster) = cluster();
    let line = |n: usize| format!("{{\"n\":{n},\"x\":\"{}\"}}", "x".repeat(9000));
    for round in 0..3 {
        let mut book = open(&cluster, "ann@a").unwrap();
        for n in 0..8 {
            book.audit(&line(round * 8 + n)).unwrap();
        }
    }
    let lines: String = (0..5)
        .filter_map(|n| cluster.get(&format!("{MAPS}/rollout-audit-{n}")))
        .map(|map| map["data"]["lines"].as_str().unwrap().to_string())
        .collect();
    for (n, text) in lines.lines().enumerate() {
        assert!(text.contains(&format!("\"n\":{n},")), "all of them, in order");
    }
    // Across objects and restarts one chain.
    let checked = crate::audit::check(lines.as_bytes(), None);
    assert_eq!((checked.n_lines, checked.faults.len()), (24, 0), "{:?}", checked.faults);
    assert_eq!(cluster.paths(MAPS).len(), 4);
}

#[test]
fn marks_at_a_node_bear_our_prefix_and_empty_ones_go() {
    let (_folder, cluster) = cluster();
    cluster
        .add("/api/v1/nodes/n1", json!({"metadata": {"annotations": {"other": "x", "wakewatt.internal/wave": "1"}}}));
    let mut book = open(&cluster, "ann@a").unwrap();
    let marks = [("state".to_string(), "done".to_string()), ("wave".into(), String::new())].into();
    book.annotate(&NodeName::new("n1").unwrap(), &marks).unwrap();
    let node = cluster.get("/api/v1/nodes/n1").unwrap();
    assert_eq!(node["metadata"]["annotations"], json!({"other": "x", "wakewatt.internal/state": "done"}));
}

#[test]
fn another_rollouts_state_goes_aside_and_anybody_can_look() {
    let (_folder, cluster) = cluster();
    let kubectl =
        || Kubectl { program: cluster.kubectl().into(), kubeconfig: Some(cluster.kubeconfig()), context: None };
    let look = |name: &str| ClusterBook::look(kubectl(), "wakewatt", name).unwrap();
    let state = |id: &str, size: usize| format!("{{\"id\":\"{id}\",\"x\":\"{}\"}}", "y".repeat(size));
    let (first, second) = (state("C1_00AB", 2_000_000), state("c2", 1));
    open(&cluster, "ann@a").unwrap().write(first.as_bytes()).unwrap();
    let mut book = open(&cluster, "bob@b").unwrap();
    book.write(first.as_bytes()).unwrap();
    assert_eq!(look("rollout-c1-00ab"), None, "the same goes on");
    drop(book);
    open(&cluster, "bob@b").unwrap().write(second.as_bytes()).unwrap();
    assert_eq!(look("rollout").unwrap(), second.as_bytes());
    assert_eq!(look("rollout-c1-00ab").unwrap(), first.as_bytes());
    assert_eq!(cluster.paths(MAPS).len(), 1 + 1 + 3, "the large one, in its parts");
}
