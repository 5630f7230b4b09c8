//! The carrier and the book in a real cluster: `make prove-fleet` starts one and runs this in it; elsewhere it is skipped.
//!
//! One real node, which is this machine: an answer from it can be held against what this machine says itself, and a change
//! against its files. The idle governor is changed and must be found afterwards as it was. The operator has the rights of the
//! chart and no others; the API server is killed and started again in the middle of an order.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use wakewatt_carry::book::cluster::ClusterBook;
use wakewatt_carry::book::{Book, BookError};
use wakewatt_carry::kubernetes::{Kubectl, Kubernetes, Terms};
use wakewatt_carry::{Carrier, CarryError, NodeName, Order, Privilege};
use wakewatt_testing::{Lacks, skipped};

const GOVERNOR: &str = "/sys/devices/system/cpu/cpuidle/current_governor";

/// The pods of orders, and not the chart's.
const CARRIED: &str = "job-name";

fn governor() -> String {
    std::fs::read_to_string(GOVERNOR).unwrap().trim().to_string()
}

struct Proof {
    run: PathBuf,
    began: Instant,
}

impl Proof {
    fn say(&self, what: &str) {
        println!("{:7.1} s  {what}", self.began.elapsed().as_secs_f64());
    }

    fn kubectl(&self, user: &str) -> Kubectl {
        Kubectl {
            program: "kubectl".into(),
            context: None,
            kubeconfig: Some(self.run.join(format!("kubeconfig{user}"))),
        }
    }

    fn carrier(&self, terms: Terms) -> Kubernetes {
        Kubernetes::new(self.kubectl(".operator"), terms)
    }

    /// As the cluster's admin.
    fn admin(&self, words: &[&str]) -> String {
        let output =
            Command::new("kubectl").args(words).env("KUBECONFIG", self.run.join("kubeconfig")).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn kill_api_server(&self) {
        let pid = std::fs::read_to_string(self.run.join("apiserver.pid")).unwrap();
        assert!(Command::new("kill").args(["-9", pid.trim()]).status().unwrap().success());
    }

    fn start_api_server(&self) {
        let child = Command::new(self.run.join("apiserver")).spawn().unwrap();
        std::fs::write(self.run.join("apiserver.pid"), child.id().to_string()).unwrap();
        // It lives on; its namespace ends it.
        std::mem::forget(child);
    }
}

fn terms() -> Terms {
    Terms { image: "localhost/wakewatt:proof".into(), ..Terms::default() }
}

fn order(privilege: Privilege, words: &[&str], lives_on_s: u64) -> Order {
    Order {
        arguments: words.iter().map(ToString::to_string).collect(),
        input: Vec::new(),
        privilege,
        within: Duration::from_secs(180),
        at_most: 8 << 20,
        lives_on: Duration::from_secs(lives_on_s),
    }
}

fn eventually(what: &str, is: impl Fn() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < Duration::from_secs(240), "{what}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn jobs(proof: &Proof) -> usize {
    proof.admin(&["get", "jobs", "-n", "wakewatt", "-o", "name"]).lines().count()
}

#[test]
fn proved_in_a_cluster() {
    let Some(run) = std::env::var_os("WAKEWATT_CLUSTER_RUN") else {
        return skipped("cluster", Lacks::Here, "make prove-fleet starts a cluster and runs this in it");
    };
    let proof = Proof { run: run.into(), began: Instant::now() };
    let carrier = proof.carrier(terms());
    let node = NodeName::new("node1").unwrap();
    let nodes = carrier.nodes().unwrap();
    assert!(nodes.iter().any(|n| n.name == node && n.is_ready == Some(true)));
    proof.say(&format!("{} nodes listed", nodes.len()));

    reads_and_measures(&proof, &carrier, &node);
    changes(&proof, &carrier, &node);
    refusals(&proof, &node);
    the_book(&proof);
    an_api_server_that_dies(&proof, &carrier, &node);
    the_cordon(&proof, &node);
    many(&proof, &carrier, &nodes.iter().map(|n| n.name.clone()).filter(|n| *n != node).collect::<Vec<_>>());
    eventually("what has ended is taken away", || jobs(&proof) == 0);
    proof.say("no Job is left");
}

fn reads_and_measures(proof: &Proof, carrier: &Kubernetes, node: &NodeName) {
    let reply = carrier.run(node, &order(Privilege::Reads, &["inspect", "--json"], 0)).unwrap();
    assert_eq!(reply.code, 0, "{}", reply.said);
    let document: serde_json::Value = serde_json::from_slice(&reply.output).unwrap();
    assert_eq!(document["schema"], "wakewatt/inspect/v1");
    let text = String::from_utf8_lossy(&reply.output);
    assert!(text.contains(&governor()), "it is this machine");
    proof.say(&format!("inspect --json on a node, without privilege: {} bytes", reply.output.len()));
    // What only root's file says: read by root without a capability.
    let reply = carrier.run(node, &order(Privilege::Reads, &["tune", "status", "--json"], 0)).unwrap();
    assert_eq!(reply.code, 0, "{}", reply.said);
    proof.say("tune status reads the node's journals");
    let trace = ["trace", "--for", "2s", "--json"];
    let reply = carrier.run(node, &order(Privilege::Measures, &trace, 0)).unwrap();
    assert_eq!(reply.code, 0, "{}", reply.said);
    proof.say("trace with BPF and PERFMON only");
    let reply =
        carrier.run(node, &order(Privilege::Reads, &["tune", "apply", "--set", "idle.governor=ladder"], 0)).unwrap();
    assert_ne!(reply.code, 0, "who may read only changes nothing");
    proof.say("a change without the privilege is refused on the node");
}

fn changes(proof: &Proof, carrier: &Kubernetes, node: &NodeName) {
    let found = governor();
    let other = if found == "menu" { "ladder" } else { "menu" };
    let set = format!("idle.governor={other}");
    let apply = |within: &'static str, lives_on_s| {
        let words = ["tune", "apply", "--set", &set, "--confirm-within", within, "--json"];
        let began = Instant::now();
        let reply = loop {
            let reply = carrier.run(node, &order(Privilege::Changes, &words, lives_on_s)).unwrap();
            // Another wakewatt is changing settings of this machine: its own tests, say.
            if reply.code != 8 || began.elapsed() > Duration::from_secs(300) {
                break reply;
            }
            std::thread::sleep(Duration::from_secs(2));
        };
        assert_eq!(reply.code, 0, "{}\n{}", String::from_utf8_lossy(&reply.output), reply.said);
        assert_eq!(governor(), other);
    };
    apply("60s", 70);
    proof.say(&format!("{found} -> {other}, to be confirmed; the answer is here while its pod lives"));
    let confirmed = Instant::now();
    assert_eq!(carrier.run(node, &order(Privilege::Changes, &["tune", "confirm"], 0)).unwrap().code, 0);
    proof.say(&format!("confirmed from a second pod in {:.1} s", confirmed.elapsed().as_secs_f64()));
    eventually("its pod ends when nothing waits any more", || {
        !proof
            .admin(&["get", "pods", "-n", "wakewatt", "-l", CARRIED, "-o", "jsonpath={.items[*].status.phase}"])
            .contains("Running")
    });
    assert_eq!(governor(), other, "confirmed: it stays");
    proof.say("its pod has ended, and the setting stays");
    assert_eq!(carrier.run(node, &order(Privilege::Changes, &["tune", "undo"], 0)).unwrap().code, 0);
    assert_eq!(governor(), found);
    proof.say("undone");

    apply("10s", 20);
    eventually("undone by itself", || governor() == found);
    proof.say("nobody confirmed: undone by itself");

    apply("20s", 30);
    let pods = proof.admin(&[
        "get",
        "pods",
        "-n",
        "wakewatt",
        "-o",
        "jsonpath={range .items[?(@.status.phase==\"Running\")]}{.metadata.name} {end}",
    ]);
    for pod in pods.split_whitespace() {
        proof.admin(&["delete", "pod", "-n", "wakewatt", pod, "--wait=false"]);
    }
    eventually("undone while its pod is being taken away", || governor() == found);
    proof.say("its pod was deleted (as a drain does): undone all the same");
}

fn refusals(proof: &Proof, node: &NodeName) {
    let stranger = Kubernetes::new(proof.kubectl(".stranger"), terms());
    let error = stranger.run(node, &order(Privilege::Reads, &["inspect"], 0)).unwrap_err();
    assert!(
        matches!(&error, CarryError::Refused { why, .. } if why.contains("kubectl auth can-i get nodes")),
        "{error}"
    );
    proof.say(&format!("without rights: {error}"));
    let reader = Kubernetes::new(proof.kubectl(".reader"), terms());
    assert_eq!(reader.run(node, &order(Privilege::Reads, &["inspect", "idle"], 0)).unwrap().code, 0);
    let error = reader.run(node, &order(Privilege::Changes, &["tune", "status"], 0)).unwrap_err();
    assert!(matches!(&error, CarryError::Refused { why, .. } if why.contains("change-nodes")), "{error}");
    proof.say(&format!("who may read only: {error}"));
    let error = proof.carrier(Terms { image: "localhost/none:1".into(), ..terms() });
    let error = error.run(node, &order(Privilege::Reads, &["inspect"], 0)).unwrap_err();
    assert!(matches!(&error, CarryError::Refused { .. }), "{error}");
    proof.say(&format!("without an image: {error}"));
    let strict = Terms { namespace: "strict".into(), ..terms() };
    let error = Kubernetes::new(proof.kubectl(""), strict)
        .run(node, &order(Privilege::Changes, &["tune", "status"], 0))
        .unwrap_err();
    // The Job was made, and the cluster may try again while it is there: a change that could begin is never called refused.
    assert!(matches!(&error, CarryError::Unreachable { why, .. } if why.contains("PodSecurity")), "{error}");
    proof.say(&format!("in a namespace that allows no privilege: {error}"));
}

fn the_book(proof: &Proof) {
    let open = |who: &str| ClusterBook::open(proof.kubectl(".operator"), "wakewatt", "proof", who, None);
    let mut book = open("ann@a").unwrap();
    let states = ["{\"wave\":1}".to_string(), "x".repeat(2_500_000), "{\"wave\":3}".to_string()];
    for state in &states {
        let began = Instant::now();
        book.write(state.as_bytes()).unwrap();
        assert_eq!(book.read().unwrap().unwrap(), state.as_bytes());
        proof.say(&format!(
            "a state of {} bytes written and read in {:.2} s",
            state.len(),
            began.elapsed().as_secs_f64()
        ));
    }
    let began = Instant::now();
    for n in 0..100 {
        book.audit(&format!("{{\"n\":{n},\"what\":\"{}\"}}", "x".repeat(200))).unwrap();
    }
    proof.say(&format!("100 lines of the audit log in {:.1} s", began.elapsed().as_secs_f64()));
    let marks = [("rollout".to_string(), "proof".to_string())].into();
    book.annotate(&NodeName::new("node1").unwrap(), &marks).unwrap();
    let node = proof.admin(&["get", "node", "node1", "-o", "jsonpath={.metadata.annotations}"]);
    assert!(node.contains("\"wakewatt.internal/rollout\":\"proof\""), "{node}");
    let Err(error) = open("bob@b") else { panic!("held twice") };
    assert!(matches!(error, BookError::Held { .. }));
    proof.say(&format!("taken twice: {error}"));
    drop(book);
    let mut book = open("bob@b").unwrap();
    assert_eq!(book.read().unwrap().unwrap(), states[2].as_bytes());
    proof.admin(&["delete", "configmap", "-n", "wakewatt", "proof"]);
    assert!(matches!(book.write(b"x"), Err(BookError::Changed(_))), "taken away by somebody else");
    proof.say("a state that somebody else took away is not written over");
}

fn an_api_server_that_dies(proof: &Proof, carrier: &Kubernetes, node: &NodeName) {
    let reply = std::thread::scope(|scope| {
        let asked = scope.spawn(|| {
            let order = order(Privilege::Measures, &["trace", "--for", "15s", "--json"], 0);
            (Instant::now(), carrier.run(node, &order))
        });
        std::thread::sleep(Duration::from_secs(4));
        proof.kill_api_server();
        std::thread::sleep(Duration::from_secs(8));
        proof.start_api_server();
        let (began, reply) = asked.join().unwrap();
        proof.say(&format!(
            "an order of 15 s, the API server killed for 8 s of it: answered after {:.1} s",
            began.elapsed().as_secs_f64()
        ));
        reply.unwrap()
    });
    assert_eq!(reply.code, 0, "{}", reply.said);
    let mut book = ClusterBook::open(proof.kubectl(".operator"), "wakewatt", "proof2", "ann@a", None).unwrap();
    book.write(b"{\"wave\":1}").unwrap();
    proof.kill_api_server();
    let written = std::thread::scope(|scope| {
        let written = scope.spawn(|| book.write(b"{\"wave\":2}"));
        std::thread::sleep(Duration::from_secs(5));
        proof.start_api_server();
        written.join().unwrap()
    });
    written.unwrap();
    assert_eq!(book.read().unwrap().unwrap(), b"{\"wave\":2}");
    proof.say("a state written across a restart of the API server");
}

fn the_cordon(proof: &Proof, node: &NodeName) {
    let carrier = proof.carrier(Terms { is_cordoning: true, ..terms() });
    let is_cordoned = || proof.admin(&["get", "node", "node1", "-o", "jsonpath={.spec.unschedulable}"]) == "true";
    carrier.take_out(node).unwrap();
    assert!(is_cordoned());
    assert_eq!(carrier.run(node, &order(Privilege::Reads, &["inspect", "idle"], 0)).unwrap().code, 0);
    carrier.put_back(node).unwrap();
    assert!(!is_cordoned());
    proof.say("cordoned, still reached, put back");
}

/// Every node that is not there, sixteen at a time.
fn many(proof: &Proof, carrier: &Kubernetes, nodes: &[NodeName]) {
    let (began, next, slowest) = (Instant::now(), Mutex::new(nodes.iter()), Mutex::new(Duration::ZERO));
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                loop {
                    let Some(node) = next.lock().unwrap().next() else { break };
                    let asked = Instant::now();
                    let reply = carrier.run(node, &order(Privilege::Changes, &["tune", "confirm"], 0)).unwrap();
                    assert_eq!((reply.code, reply.output), (0, node.as_str().as_bytes().to_vec()));
                    let mut slowest = slowest.lock().unwrap();
                    *slowest = slowest.max(asked.elapsed());
                }
            });
        }
    });
    let slowest = slowest.lock().unwrap();
    proof.say(&format!(
        "{} nodes that are not there answered in {:.1} s, the slowest in {:.1} s",
        nodes.len(),
        began.elapsed().as_secs_f64(),
        slowest.as_secs_f64()
    ));
}
