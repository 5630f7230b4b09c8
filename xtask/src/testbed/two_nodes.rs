//! The measuring commands on an emulated machine of two memory nodes: what they place lies where they say.
//!
//! No machine of ours has two nodes, so this is the only proof that pages and cache lines are put on the right one. Times
//! inside an emulator mean nothing and are not looked at; structure and placement are. The machine has no idle states,
//! no meter and a management controller without DCMI, so how that is told is looked at too. `doctor` is left out: it takes
//! two minutes here.

use super::step::Step;
use serde_json::Value;

const fn step(words: &'static str, code: u8, says: &'static [&'static str], json: fn(&Value) -> Vec<String>) -> Step {
    Step { words, code, says, names_states: false, json: Some(json) }
}

/// In this order.
pub(super) const STEPS: &[Step] = &[
    step(
        // 64 MiB: four times the 16 MiB that the emulated processor reports as its last-level cache.
        "measure memory --size 64K,64M --pages base --array-size 1M --sample-time 2ms --samples 2 --json",
        0,
        &[],
        memory,
    ),
    step("measure wakeup --duration 200ms --cpu 3 --json", 0, &[], wakeup),
    step("measure network --duration 3s --json", 0, &[], network),
    step(
        "run --per-node --json -- sh -c 'x=$(head -c 4000000 /dev/zero | tr \"\\000\" x); sleep 2; echo ${#x}'",
        0,
        &["[node0] 4000000", "[node1] 4000000"],
        run,
    ),
    step("measure cores --cpu 0,2 --json", 0, &[], cores),
    step("measure disk /dev/vda --duration 300ms --json", 0, &[], disk),
    step("measure power --for 1s --json", 3, &[], power),
    step("measure frequency --cpu 2 --work 2ms --no-vector --json", 0, &[], frequency),
    Step {
        words: "measure idle",
        code: 3,
        says: &["no idle driver", "wakewatt measure wakeup"],
        names_states: false,
        json: None,
    },
];

/// Sentences for what is not so.
fn wrong(claims: &[(bool, &str)]) -> Vec<String> {
    claims.iter().filter(|(is_so, _)| !is_so).map(|(_, claim)| format!("not so: {claim}")).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn is_positive(value: &Value) -> bool {
    value.as_f64().is_some_and(|v| v > 0.0)
}

/// Nearly all, or all: the kernel counts whole pages.
fn is_all(value: &Value) -> bool {
    value.as_f64().is_some_and(|v| v >= 0.995)
}

fn memory(document: &Value) -> Vec<String> {
    let memory = &document["memory"];
    let matrix = list(&memory["matrix"]);
    let nodes: Vec<_> = matrix.iter().map(|cell| (cell["cpu_node"].as_u64(), cell["memory_node"].as_u64())).collect();
    let expected = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(a, b)| (Some(a), Some(b)));
    wrong(&[
        (nodes == expected, "the matrix is two by two nodes"),
        (matrix.iter().all(|cell| is_all(&cell["on_node_ratio"])), "all pages lie on the node of their column"),
        (matrix.iter().all(|cell| is_positive(&cell["latency_ns"])), "every pair has a latency"),
        (memory["placement"]["remote_ratio"] == 0.5, "random placement is half remote"),
        (list(&memory["latency"]).len() == 1, "one latency curve"),
        (TRAFFIC.iter().all(|t| has_bandwidth(memory, t)), "bandwidth of all four CPUs with every kernel"),
        (memory["loaded"]["size_bytes"] == 64 << 20, "the load is measured with the largest working set"),
        (list(&memory["loaded"]["points"]).len() == 9, "nine points of latency under load"),
        (is_positive(&memory["loaded"]["points"][8]["bytes_per_s"]), "the readers read"),
    ])
}

const TRAFFIC: [&str; 4] = ["load", "copy", "copy_non_temporal", "triad"];

fn has_bandwidth(memory: &Value, traffic: &str) -> bool {
    let all = list(&memory["bandwidth"]);
    all.iter().any(|b| b["cpus"] == "0-3" && b["traffic"] == traffic && is_positive(&b["best_bytes_per_s"]))
}

fn wakeup(document: &Value) -> Vec<String> {
    let all = list(&document["wakeups"]);
    let has = |kind: &str| all.iter().any(|sample| sample["kind"] == kind && is_positive(&sample["latency"]["n"]));
    wrong(&[
        (["timer", "futex", "eventfd", "ipi"].iter().all(|kind| has(kind)), "four kinds of wake-up, each with samples"),
        (all.iter().all(|sample| sample["cpu"] == 3), "CPU 3 is woken"),
        (all.iter().all(|sample| sample["from_cpu"] != 3), "by another one"),
    ])
}

fn network(document: &Value) -> Vec<String> {
    let all = list(&document["network"]);
    let has = |word: &str| all.iter().any(|s| s["transport"] == word && is_positive(&s["round_trip"]["n"]));
    let is_apart = |s: &Value| s["requester_cpu"] != s["responder_cpu"];
    wrong(&[
        (has("udp") && has("tcp"), "round trips by UDP and TCP"),
        (all.iter().all(|sample| sample["peer"] == "loopback"), "over loopback"),
        (all.iter().all(is_apart), "between two CPUs"),
    ])
}

fn run(document: &Value) -> Vec<String> {
    let copies = list(&document["copies"]);
    let mut found = wrong(&[(copies.len() == 2, "two copies")]);
    for (node, copy) in copies.iter().enumerate() {
        let (cpus, policy) = (["0-1", "2-3"].get(node), format!("bind:{node}"));
        let bytes = copy["pages"]["bytes_by_node"][node.to_string()].as_u64();
        let claims = wrong(&[
            (copy["node"].as_u64() == u64::try_from(node).ok(), "copies in the order of their nodes"),
            (copy["cpus"].as_str() == cpus.copied(), "the CPUs of its node"),
            (copy["exit_code"] == 0, "exit code 0"),
            (is_all(&copy["pages"]["own_node_ratio"]), "all its own pages on its node"),
            (copy["pages"]["policy"] == policy.as_str(), "its memory is bound"),
            (bytes.is_some_and(|bytes| bytes > 2_000_000), "the memory it took was seen"),
        ]);
        found.extend(claims.into_iter().map(|claim| format!("copy {node}: {claim}: {copy}")));
    }
    found
}

fn cores(document: &Value) -> Vec<String> {
    let pairs = list(&document["cores"][0]["pairs"]);
    // CPUs 0 and 1 are on node 0; the line lies with whoever leads.
    let is_home = |pair: &Value| pair["line_node"].as_u64() == pair["from_cpu"].as_u64().map(|cpu| cpu / 2);
    wrong(&[
        (pairs.len() == 2, "two ordered pairs"),
        (pairs.iter().all(is_home), "the line lies on the leader's node"),
        (pairs.iter().all(|pair| pair["nearness"] == "other_package"), "the pair is of two packages"),
    ])
}

fn disk(document: &Value) -> Vec<String> {
    let sample = &document["disk"][0];
    wrong(&[
        (sample["target"]["device"] == "vda" && sample["target"]["kind"] == "device", "the device is named"),
        (sample["target"]["size_bytes"] == 67_108_864, "its size"),
        (sample["target"]["is_direct"] == true, "reads past the page cache"),
        (is_positive(&sample["latency"]["n"]), "something was read"),
    ])
}

fn power(document: &Value) -> Vec<String> {
    let power = &document["power"][0];
    let meters = list(&power["sample"]["meters"]);
    let ipmi = meters.iter().find(|meter| meter["meter"] == "ipmi").unwrap_or(&Value::Null);
    let why = ipmi["why"].as_str().unwrap_or_default();
    wrong(&[
        (power["sample"]["chosen"].is_null(), "no meter is quoted"),
        (ipmi["label"] == "unavailable" && why.contains("DCMI"), "the controller's refusal is named"),
        (meters.iter().all(|meter| meter["total"].is_null()), "no watts without a meter"),
        (power["modelled"]["label"] == "modelled", "the model is labelled"),
    ])
}

fn frequency(document: &Value) -> Vec<String> {
    let speed = &document["speed"][0];
    wrong(&[(speed["cpu"] == 2, "CPU 2"), (list(&speed["after"]).len() == 4, "four idle times")])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_page_on_the_wrong_node_is_told() {
        let copy = |node: u32, ratio: f64| {
            json!({"node": node, "cpus": (["0-1", "2-3"][node as usize]), "exit_code": 0, "pages": {
                "own_node_ratio": ratio, "policy": format!("bind:{node}"), "bytes_by_node": {node.to_string(): 4_000_000}}})
        };
        assert!(run(&json!({"copies": [copy(0, 1.0), copy(1, 1.0)]})).is_empty());
        let one = run(&json!({"copies": [copy(0, 1.0), copy(1, 0.9)]}));
        assert!(one.len() == 1 && one[0].starts_with("copy 1: not so: all its own pages"), "{one:?}");
        assert_eq!(run(&json!({})), ["not so: two copies"]);
        let pair = |from: u32, node: u32| json!({"from_cpu": from, "line_node": node, "nearness": "other_package"});
        let of = |pairs: Value| cores(&json!({"cores": [{"pairs": pairs}]}));
        assert!(of(json!([pair(0, 0), pair(2, 1)])).is_empty());
        assert_eq!(of(json!([pair(0, 0), pair(2, 0)])), ["not so: the line lies on the leader's node"]);
    }

    #[test]
    fn nothing_measured_is_never_right() {
        for step in STEPS.iter().filter_map(|step| step.json) {
            assert!(!step(&json!({})).is_empty());
        }
    }
}
