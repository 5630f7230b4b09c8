//! `fleet rollout` at its border: what is refused before anything happens, and, on the machine this runs on, three nodes by ssh.
//!
//! The three are sshd on loopback ports, each in a mount namespace of its own: with its own /var/lib/wakewatt and /var/tmp, so each
//! has its own lock, journals and copy of the program, and with a file in place of the idle governor, so that what `tune` sets and
//! reads back is its own and the machine's is not touched. So everything is real but the distance and the kernel: ssh, the
//! copied program, `tune apply`, its guard, `tune confirm`, `tune undo`. A fleet of machines this is not.

use crate::live::{machine, state};
use crate::schemas::{assert_valid, validator};
use crate::tool::{Said, answers, run, said, wait_until, wakewatt};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wakewatt_testing::{Lacks, skipped};

const PLAN: &str = r#"
format = 1
name = "limit"
order_within = "20s"
[change]
set = ["idle.governor=menu"]
[targets]
groups = ["here"]
[[stage]]
canary = 1
pause = "PAUSE"
[[stage]]
percent = 100
[[gate]]
name = "fine"
command = ["COMMAND"]
hold = "0s"
"#;

#[test]
fn what_cannot_be_done_is_refused_before_anybody_is_asked() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let book = dir.path().join("book").display().to_string();
    let hosts = file("hosts", "a group=here\nb group=here\n");
    let plan = PLAN.replace("PAUSE", "1s").replace("COMMAND", "true");
    let good = file("good.toml", &plan);
    let refused = |args: &[&str], code: i32, words: &str| {
        let mut all = vec!["fleet", "rollout", "--book", &book];
        all.extend(args);
        let said = run(&all);
        assert_eq!(said.code, Some(code), "{args:?}: {}", said.err);
        assert!(said.err.contains(words), "{args:?}: {}", said.err);
    };
    refused(&[&good], 2, "--ssh HOSTS");
    refused(&["--status"], 4, "no rollout was begun with this book");
    refused(&["--resume", "--ssh", &hosts], 2, "this book holds no rollout");
    let wrong = file("wrong.toml", &plan.replace("set = [", "sett = ["));
    refused(&[&wrong, "--ssh", &hosts], 4, "did you mean set?");
    let unknown = file("unknown.toml", &plan.replace("idle.governor=menu", "freq.gouvernor=x"));
    refused(&[&unknown, "--ssh", &hosts], 4, "did you mean freq.governor?");
    let nobody = file("nobody.toml", &plan.replace("groups = [\"here\"]", "hosts = [\"aa\"]"));
    refused(&[&nobody, "--ssh", &hosts], 2, "aa: no such node");
    let store = file("store.toml", &plan.replace("command = [\"true\"]", "promql = \"x\"\nbelow = 1"));
    refused(&[&store, "--ssh", &hosts], 2, "--prometheus URL");
    let bad_hosts = file("bad", "-oProxyCommand=x\n");
    refused(&[&good, "--ssh", &bad_hosts], 4, "line 1");
    assert!(!dir.path().join("book/state.json").exists(), "nothing was begun");
    let example = run(&["fleet", "rollout", "--example"]);
    assert!(example.code == Some(0) && example.out.contains("canary = 1"));
}

const CPUIDLE: &str = "/sys/devices/system/cpu/cpuidle";
/// A node: $0 is sshd, $1 its configuration, $2 the folder of its files, $3 where the governor is. A service manager would start
/// the guard outside.
const NODE: &str = "set -e; mkdir -p /var/lib/wakewatt; mount -t tmpfs n /var/lib/wakewatt; mount --bind \"$2/room\" /var/tmp; \
    for f in current_governor available_governors; do mount --bind \"$2/$f\" \"$3/$f\"; done; \
    [ ! -d /run/systemd/system ] || mount -t tmpfs n /run/systemd; exec \"$0\" -D -e -f \"$1\"";

/// Three sshd, ended when dropped.
struct Nodes {
    dir: tempfile::TempDir,
    sshd: Vec<Child>,
    /// Copies this program to each; a debug build is large.
    is_copying: bool,
}

impl Nodes {
    fn start(test: &str) -> Option<Nodes> {
        let sshd = std::env::var("WAKEWATT_SSHD").unwrap_or_else(|_| "/usr/sbin/sshd".into());
        if !Path::new(&sshd).is_file() {
            skipped(test, Lacks::Program("sshd"), "OpenSSH's server is not installed (WAKEWATT_SSHD names one)");
            return None;
        }
        if !Path::new(CPUIDLE).join("current_governor").exists() {
            skipped(test, Lacks::Here, "this machine has no idle governor");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all("/run/sshd").unwrap();
        for key in ["host", "user"] {
            let file = dir.path().join(key);
            let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(file).status();
            assert!(made.is_ok_and(|s| s.success()), "ssh-keygen");
        }
        let mut nodes = Nodes { dir, sshd: Vec::new(), is_copying: false };
        fs::copy(nodes.path("user.pub"), nodes.path("allowed")).unwrap();
        let host_key = fs::read_to_string(nodes.path("host.pub")).unwrap();
        let (mut config, mut known) = (String::new(), String::new());
        for name in ["node-a", "node-b", "node-c"] {
            let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let text = format!(
                "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nPidFile none\nPasswordAuthentication no\n",
                nodes.path("host").display(),
                nodes.path("allowed").display()
            );
            fs::write(nodes.path(name), text).unwrap();
            let own = nodes.path(&format!("of-{name}"));
            fs::create_dir_all(own.join("room")).unwrap();
            fs::set_permissions(own.join("room"), std::os::unix::fs::PermissionsExt::from_mode(0o1777)).unwrap();
            // Words of equal length: a file is not cut as an attribute is.
            fs::write(own.join("current_governor"), "mine\n").unwrap();
            fs::write(own.join("available_governors"), "menu mine\n").unwrap();
            let child = Command::new("unshare")
                .args(["--mount", "--propagation", "private", "sh", "-c", NODE, &sshd])
                .args([nodes.path(name), own, CPUIDLE.into()])
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            nodes.sshd.push(child);
            config += &format!(
                "Host {name}\n HostName 127.0.0.1\n Port {port}\n User root\n IdentityFile {}\n IdentitiesOnly yes\n UserKnownHostsFile {}\n",
                nodes.path("user").display(),
                nodes.path("known").display()
            );
            known += &format!("[127.0.0.1]:{port} {host_key}");
            assert!(wait_until(Duration::from_secs(20), || answers(port)));
        }
        fs::write(nodes.path("config"), config).unwrap();
        fs::write(nodes.path("known"), known).unwrap();
        fs::write(nodes.path("hosts"), "[here]\nnode-a\nnode-b\nnode-c\n").unwrap();
        Some(nodes)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn plan(&self, pause: &str, command: &str) -> String {
        let file = self.path("plan.toml");
        fs::write(&file, PLAN.replace("PAUSE", pause).replace("COMMAND", command)).unwrap();
        file.display().to_string()
    }

    fn command(&self, args: &[&str]) -> Command {
        let [hosts, config, book] = ["hosts", "config", "book"].map(|n| self.path(n).display().to_string());
        let mut all = vec!["fleet", "rollout", "--ssh", &hosts, "--ssh-config", &config, "--book", &book];
        if !self.is_copying {
            all.extend(["--remote-program", env!("CARGO_BIN_EXE_wakewatt")]);
        }
        all.extend(args);
        wakewatt(&all)
    }

    fn rollout(&self, args: &[&str]) -> Said {
        said(&mut self.command(args))
    }

    fn status(&self) -> Value {
        let said = self.rollout(&["--status", "--json"]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert_valid(&validator("fleet-rollout"), "fleet rollout", &said.out)
    }

    /// Transactions on a node, as it says itself from within.
    fn has(&self, node: usize) -> Vec<String> {
        let said = said(
            Command::new("nsenter")
                .arg(format!("--mount=/proc/{}/ns/mnt", self.sshd[node].id()))
                .arg(env!("CARGO_BIN_EXE_wakewatt"))
                .args(["tune", "status", "--json"]),
        );
        let told: Value = serde_json::from_str(&said.out).unwrap();
        let all = told["transactions"].as_array().unwrap();
        all.iter().map(|t| format!("{} {}", t["phase"].as_str().unwrap(), t["purpose"].as_str().unwrap())).collect()
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for child in &mut self.sshd {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn is_waiting_for_gate(nodes: &Nodes) -> bool {
    nodes.path("book/state.json").exists() && nodes.status()["phase"].get("pausing").is_some()
}

#[test]
fn three_nodes_by_ssh_are_changed_kept_and_put_back() {
    const TEST: &str = "three_nodes_by_ssh_are_changed_kept_and_put_back";
    let Some(_machine) = machine(TEST) else { return };
    let Some(mut nodes) = Nodes::start(TEST) else { return };
    nodes.is_copying = true;
    let before = state();
    let plan = nodes.plan("1s", "true");
    let dry = nodes.rollout(&[&plan, "--dry-run"]);
    assert_eq!(dry.code, Some(0), "{}{}", dry.out, dry.err);
    assert!(dry.out.contains("node-c") && dry.out.contains("idle.governor: mine -> menu"), "{}", dry.out);
    let dry = nodes.rollout(&[&plan, "--dry-run", "--json"]);
    assert_valid(&validator("fleet-rollout-plan"), "fleet rollout --dry-run", &dry.out);
    assert!((0..3).all(|n| nodes.has(n).is_empty()), "a dry run changes nothing");
    let done = nodes.rollout(&[&plan, "--json", "-o", &nodes.path("page.html").display().to_string()]);
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    let told = assert_valid(&validator("fleet-rollout"), "fleet rollout", &done.out);
    assert_eq!(told["end"], "done");
    for node in 0..3 {
        let has = nodes.has(node);
        assert!(has.len() == 1 && has[0].starts_with("applied ") && has[0].ends_with(']'), "{has:?}");
    }
    assert_eq!(fs::read_dir(nodes.path("of-node-a/room")).unwrap().count(), 0, "the copy is gone");
    nodes.is_copying = false;
    let log = nodes.path("book/audit.jsonl").display().to_string();
    let audit = run(&["fleet", "rollout", "--audit-check", &log]);
    assert_eq!(audit.code, Some(0), "{}", audit.out);
    let undone = nodes.rollout(&["--undo"]);
    assert_eq!(undone.code, Some(0), "{}{}", undone.out, undone.err);
    assert!((0..3).all(|n| nodes.has(n).is_empty()));
    // A gate that fails puts everything back, too.
    let failed = nodes.rollout(&[&nodes.plan("1s", "false"), "--json"]);
    assert_eq!(failed.code, Some(7), "{}{}", failed.out, failed.err);
    assert_eq!(serde_json::from_str::<Value>(&failed.out).unwrap()["end"], "all_undone");
    assert!((0..3).all(|n| nodes.has(n).is_empty()));
    // What the canary proved says nothing of a node that is changed in another way, or cannot be.
    fs::write(nodes.path("of-node-c/available_governors"), "teo mine\n").unwrap();
    let odd = nodes.rollout(&[&nodes.plan("1s", "true")]);
    assert!(odd.code == Some(7) && odd.out.contains("node-c is left out"), "{}{}", odd.out, odd.err);
    assert!((0..3).all(|n| nodes.has(n).is_empty()));
    let is_mine =
        |n: &str| fs::read_to_string(nodes.path(&format!("of-{n}/current_governor"))).unwrap().trim() == "mine";
    assert!(["node-a", "node-b", "node-c"].into_iter().all(is_mine), "the values are as before");
    drop(nodes);
    assert_eq!(state(), before);
}

#[test]
fn a_killed_operator_can_go_on_and_a_second_one_is_refused() {
    const TEST: &str = "a_killed_operator_can_go_on_and_a_second_one_is_refused";
    let Some(_machine) = machine(TEST) else { return };
    let Some(nodes) = Nodes::start(TEST) else { return };
    let before = state();
    let plan = nodes.plan("8s", "true");
    let mut first = nodes.command(&[&plan]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    assert!(wait_until(Duration::from_secs(60), || is_waiting_for_gate(&nodes)));
    let second = nodes.rollout(&[&plan]);
    assert_eq!(second.code, Some(8), "{}", second.err);
    assert!(second.err.contains("held by"), "{}", second.err);
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(nodes.has(0)[0].starts_with("unconfirmed "), "{:?}", nodes.has(0));
    let begun_anew = nodes.rollout(&[&plan]);
    assert_eq!(begun_anew.code, Some(8), "one that is not at its end is gone on with: {}", begun_anew.err);
    let done = nodes.rollout(&["--resume"]);
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    assert!((0..3).all(|n| nodes.has(n).len() == 1 && nodes.has(n)[0].starts_with("applied ")));
    assert_eq!(nodes.rollout(&["--undo"]).code, Some(0));
    drop(nodes);
    assert_eq!(state(), before);
}

#[test]
fn a_node_that_is_cut_off_undoes_itself() {
    const TEST: &str = "a_node_that_is_cut_off_undoes_itself";
    let Some(_machine) = machine(TEST) else { return };
    let Some(mut nodes) = Nodes::start(TEST) else { return };
    let before = state();
    let plan = nodes.plan("5s", "true");
    // As short as a window may be: 5 orders of 2 s, the pause, the gate, a minute.
    let text = fs::read_to_string(&plan)
        .unwrap()
        .replace("\"20s\"", "\"4s\"")
        .replace("hold = \"0s\"", "hold = \"0s\"\nwithin = \"1s\"");
    fs::write(&plan, text).unwrap();
    let first = nodes.command(&[&plan]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert!(wait_until(Duration::from_secs(60), || is_waiting_for_gate(&nodes)));
    // Nobody listens there any more; its namespace lives on with the guard.
    let hold = fs::File::open(format!("/proc/{}/ns/mnt", nodes.sshd[0].id())).unwrap();
    nodes.sshd[0].kill().unwrap();
    nodes.sshd[0].wait().unwrap();
    let ended = first.wait_with_output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert_eq!(ended.status.code(), Some(5), "{stdout}{stderr}");
    assert!(stdout.contains("node-a is LOST") && stdout.contains("undoes itself by"), "{stdout}");
    assert!(nodes.has(1).is_empty() && nodes.has(2).is_empty(), "nobody else was changed");
    let has_nothing = || {
        let said = said(
            Command::new("nsenter")
                .arg(format!("--mount=/proc/{}/fd/{}", std::process::id(), std::os::fd::AsRawFd::as_raw_fd(&hold)))
                .arg(env!("CARGO_BIN_EXE_wakewatt"))
                .args(["tune", "status"]),
        );
        said.out.contains("Nothing is applied")
    };
    assert!(wait_until(Duration::from_secs(200), has_nothing), "the node undoes itself");
    drop(nodes);
    assert_eq!(state(), before);
}
