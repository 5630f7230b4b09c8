//! Who pays for a wake-up: the cgroup of what was woken, never of what woke it.
//!
//! A waker that never sleeps, in a cgroup and on a CPU of its own, feeds a wakee in another. A tool that filters by whoever runs at
//! sched_waking charges the first; `trace` charges the second.

use crate::live::machine;
use crate::tool::wakewatt;
use crate::trace::Running;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
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
        let script = format!("echo $$ >{}/cgroup.procs; taskset -cp {cpu} $$ >/dev/null; {script}", self.0.display());
        Running(Command::new("/bin/sh").args(["-c", &script]).stdout(Stdio::null()).spawn().expect("/bin/sh"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Whoever was in it is dying.
        crate::tool::wait_until(std::time::Duration::from_secs(10), || fs::remove_dir(&self.0).is_ok());
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
    let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    let Some(root) = roots.iter().map(Path::new).find(|r| r.join("cgroup.controllers").exists()) else {
        return skipped(test, Lacks::Here, "no cgroup version 2 is mounted");
    };
    if std::thread::available_parallelism().is_ok_and(|n| n.get() < 2) {
        return skipped(test, Lacks::Here, "one CPU: waker and wakee need one each");
    }
    let groups = (Group::new(root, "wakewatt-waker"), Group::new(root, "wakewatt-wakee"));
    let (Ok(waker), Ok(wakee)) = groups else {
        return skipped(test, Lacks::Here, "cgroups cannot be made here");
    };
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let reads = wakee.shell(1, &format!("while read x; do :; done <{}", fifo.display()));
    let spin = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
    let writes = waker.shell(0, &format!("exec 3>{}; while :; do {spin}; echo x >&3; done", fifo.display()));
    let all = traced(&["--by", "cgroup"]);
    let of = |path: &str| -> u64 {
        let rows = all["payers"]["rows"].as_array().unwrap();
        rows.iter().filter(|r| r["cgroup"] == path).map(|r| r["n"].as_u64().unwrap()).sum()
    };
    let by_waker = traced(&["--cgroup", "wakewatt-waker"]);
    drop((reads, writes));
    let out_of_idle = by_waker["rows"].as_array().unwrap().iter().filter(|r| !r["state"].is_null());
    let n_by_filter: u64 = out_of_idle.map(|r| r["n"].as_u64().unwrap()).sum();
    let (woken, waking) = (of("/wakewatt-wakee"), of("/wakewatt-waker"));
    assert!(woken >= 20, "{woken} wake-ups of the wakee: {}", all["payers"]);
    assert!(
        4 * waking < woken && 4 * n_by_filter < woken,
        "{waking} and {n_by_filter} of the waker, {woken} of the wakee"
    );
}
