//! Memory on four nodes of 256 MB, one of them nearly full: measuring it ends no process, not even our own.
//!
//! The neighbour is bound to one node and holds 150 MB there, so of the machine's memory most is free and of that node's
//! little. It is a node with all its memory still free: the unpacked initramfs lies where the kernel pleases, and beside it
//! 150 MB have no room, so that the neighbour would end before anything was measured. Binding what the machine as a whole would bear to a node makes the kernel end a process that has memory there
//! (CONSTRAINT_MEMORY_POLICY); this is how doctor itself was killed. Looked at after every step: no such line in the kernel
//! log, the neighbour alive with all its memory, nothing swapped out for us, the pool of reserved pages as it was. Its short
//! form, without doctor, is part of `testbed live`.

use super::{Inside, Proof, ProofResult, as_filed, no_words};
use anyhow::{Context, Result};
use serde_json::Value;

const MACHINE: &str = "four-small-nodes";

/// Doctor whole, and the variants.
pub(super) const PROOF: Proof =
    Proof { name: "full-node", machine: MACHINE, words: no_words, shape: as_filed, script, judge, boots: super::once };
/// The same in a memory cgroup of version 2, in a boot of its own: a controller that version 1 has had stays with it while
/// pages are charged to a group there.
pub(super) const PROOF_OF_VERSION_2: Proof = Proof {
    name: "full-node-cgroup2",
    machine: MACHINE,
    words: no_words,
    shape: as_filed,
    script: script_of_version_2,
    judge: judge_version_2,
    boots: super::once,
};
/// What `testbed live` has time for.
pub(in super::super) const SHORT: Proof = Proof {
    name: "full-node-short",
    machine: MACHINE,
    words: no_words,
    shape: as_filed,
    script: short,
    judge: judge_short,
    boots: super::once,
};

/// Neighbour's memory.
const HELD_MIB: u64 = 150;

/// `neighbour`: a process in a cpuset of the node $full that has touched its memory and waits; $other is the next freest. `after STEP`: what came of it.
/// `limited FOLDER CMD…`: in the memory cgroup of that folder.
const SHELL: &str = r#"
neighbour() {
  echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control
  mkdir /sys/fs/cgroup/neighbour
  by_free=$(sed -n 's/^Node \([1-3]\) MemFree: *\([0-9]*\) kB/\2 \1/p' /sys/devices/system/node/node*/meminfo | sort -rn | cut -d' ' -f2)
  full=$(echo "$by_free" | sed -n 1p); other=$(echo "$by_free" | sed -n 2p)
  echo $full >full; echo $other >other
  echo $full >/sys/fs/cgroup/neighbour/cpuset.mems
  echo $full >/sys/fs/cgroup/neighbour/cpuset.cpus
  sh -c 'echo $$ >/sys/fs/cgroup/neighbour/cgroup.procs; exec dd if=/dev/zero bs=150M count=1' 2>/dev/null | sleep 100000 &
  i=0
  while [ "$(held)" -lt 150000 ] && [ $i -lt 300 ]; do usleep 100000; i=$((i+1)); done
  held >neighbour.held
}
held() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$(pidof dd)/status" 2>/dev/null | grep . || echo 0; }
after() { held >"$1.held"; dmesg | grep -c oom-kill: >"$1.kills"; grep pswpout /proc/vmstat >"$1.swapped"; cut -d' ' -f1 /proc/uptime >"$1.at"; }
limited() { folder=$1; shift; sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$folder" "$@"; }
"#;
/// From one CPU to every node: the others' pairs are the same question, and minutes of emulated time.
const MATRIX: &str = "taskset 1 wakewatt measure memory --quick --json --part matrix";

fn short() -> String {
    format!("{SHELL}\nneighbour\nafter begun\nrun memory {MATRIX}\nafter memory\n")
}

fn script() -> String {
    format!(
        "{}\n\
         pool=/sys/devices/system/node/node$other/hugepages/hugepages-2048kB\n\
         echo 60 >$pool/nr_hugepages; cat $pool/nr_hugepages >pool.before\n\
         run hugetlb {MATRIX}\nafter hugetlb\ncat $pool/free_hugepages >pool.after\necho 0 >$pool/nr_hugepages\n\
         mkdir /tmp/v1 && mount -t cgroup -o memory none /tmp/v1 2>v1.mount\n\
         if mkdir /tmp/v1/small; then echo 64M >/tmp/v1/small/memory.limit_in_bytes\n\
         run v1 limited /tmp/v1/small {MATRIX}; after v1\nrmdir /tmp/v1/small; umount /tmp/v1; fi\n\
         echo 96M >/sys/block/zram0/disksize && mkswap /dev/zram0 && swapon /dev/zram0; cat /proc/swaps >swaps\n\
         run swap {MATRIX}\nafter swap\n\
         run doctor wakewatt doctor --quick --read-only --no-report --json\nafter doctor\n\
         dmesg >dmesg\n",
        short()
    )
}

fn script_of_version_2() -> String {
    format!(
        "{SHELL}\nneighbour\nafter begun\necho +memory >/sys/fs/cgroup/cgroup.subtree_control\n\
         mkdir /sys/fs/cgroup/small && echo 64M >/sys/fs/cgroup/small/memory.max\n\
         run v2 limited /sys/fs/cgroup/small {MATRIX}; after v2\ncat /sys/fs/cgroup/small/memory.events >v2.events\n"
    )
}

/// The document among what a step said: both streams are in it.
fn document(inside: &Inside, step: &str) -> Value {
    let said = inside.said(step);
    let text = said.find("\n{").map_or(said.as_str(), |at| &said[at..]);
    serde_json::Deserializer::from_str(text).into_iter().next().and_then(Result::ok).unwrap_or(Value::Null)
}

fn number(inside: &Inside, file: &str) -> Option<u64> {
    inside.text(file).split_whitespace().find_map(|word| word.parse().ok())
}

/// What must hold after every step, and what a step says of the full node.
fn step(inside: &Inside, verdict: &mut ProofResult, name: &str, memory: &Value) {
    verdict.step(inside, name, 0, &[]);
    unharmed(inside, verdict, name);
    verdict.expect(memory["matrix"].is_array(), || format!("{name}: no document of memory"));
}

/// Nobody was ended, nothing was swapped out.
fn unharmed(inside: &Inside, verdict: &mut ProofResult, name: &str) {
    let held_kib = number(inside, &format!("{name}.held"));
    verdict.expect(held_kib >= Some(HELD_MIB * 1000), || format!("{name}: the neighbour holds {held_kib:?} kB"));
    let kills = number(inside, &format!("{name}.kills"));
    verdict.expect(kills == Some(0), || format!("{name}: the kernel log has {kills:?} lines of oom-kill"));
    let swapped = number(inside, &format!("{name}.swapped"));
    verdict.expect(swapped == Some(0), || format!("{name}: {swapped:?} pages were swapped out"));
}

fn refused(memory: &Value, words: &[&str]) -> bool {
    let lines = memory["not_done"].as_array().into_iter().flatten().filter_map(Value::as_str);
    lines.into_iter().any(|line| line.contains("only") && words.iter().all(|word| line.contains(word)))
}

fn half_of(node: u64) -> String {
    format!("half of what is free on node {node}")
}

/// Pairs of nodes whose latency was measured.
fn n_measured(memory: &Value, node: u64) -> usize {
    let cells = memory["matrix"].as_array().into_iter().flatten();
    cells.filter(|cell| cell["memory_node"] == node && cell["latency_ns"].as_f64().is_some_and(|ns| ns > 0.0)).count()
}

fn judge_short(inside: &Inside) -> Result<ProofResult> {
    let mut verdict = ProofResult::default();
    let memory = &document(inside, "memory")["memory"];
    unharmed(inside, &mut verdict, "begun");
    step(inside, &mut verdict, "memory", memory);
    let full = number(inside, "full").context("the script did not say which node is full")?;
    verdict.expect(refused(memory, &[&*format!("memory of node {full}"), &half_of(full)]), || {
        format!("memory: node {full} is not refused: {}", memory["not_done"])
    });
    verdict.expect(n_measured(memory, full) == 0, || format!("memory: latency of node {full} was measured"));
    // The unpacked initramfs, most of it the program, lies on one or two of the others as the kernel pleases: what is not
    // measured must be refused by its own name.
    let others = (0..4).filter(|node| *node != full);
    let measured: Vec<u64> = others.clone().filter(|node| n_measured(memory, *node) == 1).collect();
    verdict.expect(!measured.is_empty(), || format!("memory: no node was measured: {}", memory["not_done"]));
    for node in others.filter(|node| !measured.contains(node)) {
        let words = [&*format!("memory of node {node}"), &half_of(node)];
        verdict.expect(refused(memory, &words), || {
            let n = n_measured(memory, node);
            format!("memory: node {node} was measured {n} times and not refused: {}", memory["not_done"])
        });
    }
    verdict.counted.push(format!(
        "memory of nodes {measured:?} measured, of the full one ({full}) refused; its neighbour lives (at {} to {} s)",
        inside.text("begun.at").trim(),
        inside.text("memory.at").trim()
    ));
    Ok(verdict)
}

fn judge(inside: &Inside) -> Result<ProofResult> {
    let mut verdict = judge_short(inside)?;
    let half =
        |file| number(inside, file).map(half_of).with_context(|| format!("the script did not say the node: {file}"));
    let (full, other) = (half("full")?, half("other")?);
    for (name, words) in
        [("hugetlb", &[&*other][..]), ("v1", &["memory.limit_in_bytes of cgroup /small"]), ("swap", &[&*full])]
    {
        let memory = &document(inside, name)["memory"];
        // Where everything is refused nothing was measured, and that is its exit code.
        step(inside, &mut verdict, name, memory);
        verdict.expect(refused(memory, words), || format!("{name}: {words:?} is not said: {}", memory["not_done"]));
    }
    let pool = [number(inside, "pool.before"), number(inside, "pool.after")];
    verdict.expect(pool[0] == pool[1] && pool[0] > Some(20), || format!("hugetlb: reserved and free after: {pool:?}"));
    verdict.expect(inside.text("swaps").contains("zram0"), || "swap: there is none".into());
    let doctor = document(inside, "doctor");
    step(inside, &mut verdict, "doctor", &doctor["evidence"]["memory"]);
    verdict.expect(doctor["verdict"].is_string(), || "doctor: no verdict".into());
    verdict.counted.push(format!(
        "with reserved huge pages, a memory cgroup of version 1, swap, and doctor --quick --read-only whole: none killed, none swapped \
         out ({} s in all)",
        inside.text("doctor.at").trim()
    ));
    Ok(verdict)
}

fn judge_version_2(inside: &Inside) -> Result<ProofResult> {
    let mut verdict = ProofResult::default();
    let memory = &document(inside, "v2")["memory"];
    step(inside, &mut verdict, "v2", memory);
    verdict.expect(refused(memory, &["memory.max of cgroup /small"]), || {
        format!("v2: the group's limit is not said: {}", memory["not_done"])
    });
    let events = inside.text("v2.events");
    verdict.expect(events.contains("oom_kill 0"), || format!("v2: {}", events.replace('\n', " ")));
    verdict.counted.push("in a memory cgroup of version 2: refused, none killed".into());
    Ok(verdict)
}
