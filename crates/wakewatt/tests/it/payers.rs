//! Who pays for a wake-up: the cgroup of what was woken, never of what woke it.
//!
//! A waker that never sleeps, in a cgroup and on a CPU of its own, feeds a wakee in another. A tool that filters by whoever runs at
//! sched_waking charges the first; `trace` charges the second.

use crate::agent::Agent;
use crate::live::machine;
use crate::tool::{wait_until, wakewatt};
use crate::trace::Running;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use wakewatt_testing::{Lacks, skipped};

/// A cgroup of version 2; gone with the value.
struct Group(PathBuf);

impl Group {
    fn new(root: &Path, name: &str) -> std::io::Result<Group> {
        let folder = root.join(name);
        fs::create_dir(&folder).map(|()| Group(folder))
    }

    /// A shell in it, on this CPU.
    fn shell(&self, cpu: u32, script: &str) -> Running {
        let script = format!("echo $$ >'{}/cgroup.procs'; taskset -cp {cpu} $$ >/dev/null; {script}", self.0.display());
        Running(Command::new("/bin/sh").args(["-c", &script]).stdout(Stdio::null()).spawn().expect("/bin/sh"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Whoever was in it is dying.
        wait_until(Duration::from_secs(10), || fs::remove_dir(&self.0).is_ok());
    }
}

/// A waker that never sleeps, in a cgroup and on a CPU of its own, and whom it wakes in another.
struct Pair {
    groups: (Group, Group),
    shells: (Running, Running),
    _folder: tempfile::TempDir,
}

impl Pair {
    /// None where there is no way to have one; the test is told to be skipped then.
    fn start(test: &str, names: (&str, &str)) -> Option<Pair> {
        let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
        let Some(root) = roots.iter().map(Path::new).find(|r| r.join("cgroup.controllers").exists()) else {
            skipped(test, Lacks::Here, "no cgroup version 2 is mounted");
            return None;
        };
        if std::thread::available_parallelism().is_ok_and(|n| n.get() < 2) {
            skipped(test, Lacks::Here, "one CPU: waker and wakee need one each");
            return None;
        }
        let (Ok(waker), Ok(wakee)) = (Group::new(root, names.0), Group::new(root, names.1)) else {
            skipped(test, Lacks::Here, "cgroups cannot be made here");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let reads = wakee.shell(1, &format!("while read x; do :; done <{}", fifo.display()));
        let spin = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let writes = waker.shell(0, &format!("exec 3>{}; while :; do {spin}; echo x >&3; done", fifo.display()));
        Some(Pair { groups: (waker, wakee), shells: (writes, reads), _folder: folder })
    }

    /// Before the cgroups, which are not removed while somebody is in them.
    fn end(self) {
        let Pair { groups, shells, _folder } = self;
        drop(shells);
        drop(groups);
    }
}

fn traced(args: &[&str]) -> Value {
    let out = wakewatt(&[&["trace", "--json", "--for", "3s"], args].concat()).output().expect("wakewatt");
    serde_json::from_slice(&out.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&out.stderr)))
}

#[test]
fn live_the_woken_pays_and_not_the_waker() {
    let test = "live_the_woken_pays_and_not_the_waker";
    let Some(_machine) = machine(test) else { return };
    let Some(pair) = Pair::start(test, ("wakewatt-waker", "wakewatt-wakee")) else { return };
    let all = traced(&["--by", "cgroup"]);
    let of = |path: &str| -> u64 {
        let rows = all["payers"]["rows"].as_array().unwrap();
        rows.iter().filter(|r| r["cgroup"] == path).map(|r| r["n"].as_u64().unwrap()).sum()
    };
    let by_waker = traced(&["--cgroup", "wakewatt-waker"]);
    pair.end();
    let out_of_idle = by_waker["rows"].as_array().unwrap().iter().filter(|r| !r["state"].is_null());
    let n_by_filter: u64 = out_of_idle.map(|r| r["n"].as_u64().unwrap()).sum();
    let (woken, waking) = (of("/wakewatt-wakee"), of("/wakewatt-waker"));
    assert!(woken >= 20, "{woken} wake-ups of the wakee: {}", all["payers"]);
    assert!(
        4 * waking < woken && 4 * n_by_filter < woken,
        "{waking} and {n_by_filter} of the waker, {woken} of the wakee"
    );
}

#[test]
fn live_stacks_say_who_woke_whom_and_add_up() {
    let test = "live_stacks_say_who_woke_whom_and_add_up";
    let Some(_machine) = machine(test) else { return };
    let Some(pair) = Pair::start(test, ("wakewatt-a;b c", "wakewatt-d;e f")) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (stacks, page) = (folder.path().join("woke.folded"), folder.path().join("woke.html"));
    let all = traced(&["--unmasked", "--stacks", stacks.to_str().unwrap(), "-o", page.to_str().unwrap()]);
    pair.end();
    let text = fs::read_to_string(&stacks).unwrap();
    let mut sum_ns = 0;
    for line in text.lines() {
        let (frames, weight) = line.rsplit_once(' ').unwrap();
        assert_eq!((frames.split(';').count(), frames.contains(' ')), (4, false), "{line}");
        sum_ns += weight.parse::<u64>().unwrap();
    }
    let lost = all["rows"].as_array().unwrap().iter().filter(|row| row["contains_exit"] == true);
    assert_eq!(sum_ns, lost.map(|row| row["total_ns"].as_u64().unwrap()).sum::<u64>(), "{text}");
    let ours = text.lines().find(|line| line.starts_with("sh;/wakewatt-d\\x3be_f;sh;"));
    assert!(ours.is_some(), "a shell woke a shell in the other cgroup: {text}");
    assert!(!text.contains(";/wakewatt-a"), "the waker is woken by nobody: {text}");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("id=\"trace-stacks-narrow-t\"") && page.contains("Who woke whom"), "the picture is there");
}

#[test]
fn live_the_agent_names_who_pays_and_counts_everybody() {
    let test = "live_the_agent_names_who_pays_and_counts_everybody";
    let Some(_machine) = machine(test) else { return };
    let Some(pair) = Pair::start(test, ("wakewatt-giver", "wakewatt-taker")) else { return };
    let agent = Agent::start(&["--trace", "--by", "cgroup", "--top", "3", "--interval", "1s"]);
    let of = |page: &str, payer: &str| -> f64 {
        let head = format!("wakewatt_payer_wakeups_total{{by=\"cgroup\",payer=\"{payer}\"");
        page.lines()
            .filter(|l| l.starts_with(&head))
            .map(|l| l.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
            .sum()
    };
    let mut page = String::new();
    let is_named = wait_until(Duration::from_secs(150), || {
        page = agent.text();
        of(&page, "/wakewatt-taker") >= 20.0
    });
    pair.end();
    assert!(
        is_named && of(&page, "(other)") > 0.0 && of(&page, "/wakewatt-giver") <= of(&page, "/wakewatt-taker") / 4.0
    );
    let payers = page.lines().filter(|l| l.starts_with("wakewatt_payer_wakeups_total{"));
    let names: std::collections::BTreeSet<&str> = payers.filter_map(|l| l.split('"').nth(3)).collect();
    assert!(names.len() <= 4, "{names:?}");
    // All wake-ups that contain the exit are somebody's.
    let exits = ["remote", "interrupt_before_exit"].map(|class| format!("class=\"{class}\""));
    let counted = page.lines().filter(|l| l.starts_with("wakewatt_wakeup_latency_seconds_count{"));
    let counted = counted.filter(|l| exits.iter().any(|class| l.contains(class.as_str())));
    let number = |line: &str| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
    let heads = ["wakewatt_payer_wakeups_total{", "wakewatt_payer_retired_wakeups_total{"];
    let told: f64 = page.lines().filter(|l| heads.iter().any(|head| l.starts_with(head))).map(number).sum();
    let counted: f64 = counted.map(number).sum();
    assert!(told >= counted && told <= counted * 1.01 + 50.0, "{told} told, {counted} counted");
    let (head, body) = agent.get("/api/v1/node", "");
    let node: Value = serde_json::from_slice(&body).unwrap_or_else(|_| panic!("{head}"));
    let rows = node["payers"]["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["payer"] == "/wakewatt-taker"), "{}", node["payers"]);
    assert_eq!(agent.end(), Some(130));
}
