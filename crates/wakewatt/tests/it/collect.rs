//! `fleet collect` over a real ssh: an sshd of the test's own on loopback, which several names lead to, and one name that leads nowhere.

use crate::schemas::{assert_valid, validator};
use crate::tool::{PROGRAM, Said, answers, run, wait_until};
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wakewatt_testing::{Lacks, skipped};

/// An sshd and all that a client needs; it ends with the test.
struct Hosts {
    dir: tempfile::TempDir,
    sshd: Child,
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn sshd_path() -> Option<PathBuf> {
    ["/usr/sbin/sshd", "/usr/local/sbin/sshd", "/usr/bin/sshd"].iter().map(PathBuf::from).find(|p| p.exists())
}

impl Hosts {
    fn new(test: &str) -> Option<Hosts> {
        let has_ssh = Command::new("ssh").arg("-V").stderr(Stdio::null()).status().is_ok();
        let Some(sshd) = sshd_path().filter(|_| has_ssh) else {
            skipped(test, Lacks::Program(if has_ssh { "sshd" } else { "ssh" }), "no host to reach");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).display().to_string();
        for key in ["hostkey", "key"] {
            let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &at(key)]).status();
            assert!(made.unwrap().success());
        }
        // Where sshd run by root separates privileges.
        let _ = fs::create_dir_all("/run/sshd");
        let (port, nowhere) = (free_port(), free_port());
        let conf = format!(
            "ListenAddress 127.0.0.1\nPort {port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\nStrictModes no\n\
             PasswordAuthentication no\nPermitRootLogin prohibit-password\n",
            at("hostkey"),
            at("key.pub")
        );
        fs::write(at("sshd_config"), conf).unwrap();
        let host_key = fs::read_to_string(at("hostkey.pub")).unwrap();
        fs::write(at("known_hosts"), format!("[127.0.0.1]:{port} {host_key}")).unwrap();
        let client = format!(
            "Host dark\n  Port {nowhere}\nHost *\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {}\n  IdentitiesOnly yes\n  \
             UserKnownHostsFile {}\n  GlobalKnownHostsFile none\n  StrictHostKeyChecking yes\n",
            at("key"),
            at("known_hosts")
        );
        fs::write(at("ssh_config"), client).unwrap();
        fs::write(at("hosts"), "[web]\nalpha\nbeta\n[db]\ndark\n").unwrap();
        let sshd = Command::new(sshd)
            .args(["-D", "-e", "-f", &at("sshd_config")])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let hosts = Hosts { dir, sshd };
        let is_up = || answers(port);
        assert!(wait_until(Duration::from_secs(60), is_up), "sshd does not answer");
        // Without PAM an account whose password is locked may not log in with a key either.
        let tried =
            Command::new("ssh").args(["-F", &hosts.at("ssh_config"), "-o", "BatchMode=yes", "alpha", "true"]).output();
        if let Some(refused) = tried.ok().filter(|tried| !tried.status.success()) {
            skipped(test, Lacks::Here, &String::from_utf8_lossy(&refused.stderr));
            return None;
        }
        Some(hosts)
    }

    fn at(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    fn collect(&self, folder: &str, more: &[&str]) -> Said {
        let (hosts, config, to) = (self.at("hosts"), self.at("ssh_config"), self.at(folder));
        let args =
            ["fleet", "collect", "--ssh", &hosts, "--ssh-config", &config, "--remote-program", PROGRAM, "-o", &to];
        run(&[&args[..], more].concat())
    }

    fn index(&self, folder: &str) -> Value {
        let text = fs::read_to_string(self.dir.path().join(folder).join("index.json")).unwrap();
        assert_valid(&validator("fleet-collect"), "fleet collect", &text)
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut all: Vec<String> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    all.sort();
    all
}

#[test]
fn who_answers_is_a_file_who_does_not_is_told_and_only_they_are_asked_again() {
    let Some(hosts) = Hosts::new("collect::who_answers_is_a_file") else { return };
    let folder = hosts.dir.path().join("all");
    let said = hosts.collect("all", &["--capture"]);
    assert_eq!(said.code, Some(9), "{said:?}");
    assert!(said.out.contains("3 nodes by ssh: 2 of 3 answers"), "{said:?}");
    assert!(said.out.contains("cannot be reached: dark") && said.err.contains("dark: capture"), "{said:?}");
    assert_eq!(names(&folder), ["alpha.host", "beta.host", "index.json"]);
    let first = hosts.index("all");
    assert_eq!(first["is_complete"], false);
    assert_eq!(first["nodes"]["dark"]["answers"][0]["outcome"]["missing"]["reason"], "unreachable");
    assert!(first["nodes"]["alpha"]["labels"].get("web").is_some(), "{first}");
    let read = run(&["inspect", "kernel", "--host", folder.join("alpha.host").to_str().unwrap()]);
    assert_eq!(read.code, Some(0), "{read:?}");

    // Not twice by accident; with --resume only what is missing or was changed.
    let again = hosts.collect("all", &["--capture"]);
    assert!(again.code == Some(4) && again.err.contains("--resume"), "{again:?}");
    fs::write(folder.join("beta.host"), "cut").unwrap();
    let again = hosts.collect("all", &["--resume", "--parquet"]);
    assert_eq!(again.code, Some(9), "{again:?}");
    let second = hosts.index("all");
    assert_eq!(second["nodes"]["alpha"], first["nodes"]["alpha"], "not asked again");
    assert!(fs::read_to_string(folder.join("beta.host")).unwrap().starts_with("wakewatt-host 1"));
    assert_eq!(second["began_at"], first["began_at"]);
    if !again.err.contains("without Parquet") {
        assert!(folder.join("facts.parquet").exists() && folder.join("measures.parquet").exists(), "{again:?}");
    }
    let compared = run(&["fleet", "compare", "--files", folder.to_str().unwrap(), "--json"]);
    assert!(matches!(compared.code, Some(0 | 3)), "{compared:?}");
}

#[test]
fn a_masked_collection_can_be_handed_on() {
    let Some(hosts) = Hosts::new("collect::a_masked_collection") else { return };
    let said = hosts.collect("shared", &["--mask", "--json"]);
    assert_eq!(said.code, Some(9), "{said:?}");
    let folder = hosts.dir.path().join("shared");
    assert_eq!(names(&folder), ["index.json", "node-0001.host", "node-0002.host"]);
    let text = fs::read_to_string(folder.join("index.json")).unwrap();
    for word in ["alpha", "beta", "dark", "web", "127.0.0.1"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
    let list = hosts.dir.path().join("shared.names.json");
    assert_eq!(fs::metadata(&list).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(&list).unwrap().contains("\"alpha\": \"node-0001\""));
    // Whatever the path looks like, the list lies beside the folder and not in it.
    for path in ["second/.", "third/../second3"] {
        fs::create_dir_all(hosts.dir.path().join("third")).unwrap();
        assert_eq!(hosts.collect(path, &["--mask"]).code, Some(9), "{path}");
        let folder = hosts.dir.path().join(path).canonicalize().unwrap();
        assert!(!names(&folder).iter().any(|name| name.ends_with("names.json")), "{path}: {:?}", names(&folder));
        assert!(folder.with_extension("names.json").exists(), "{path}");
    }
    // Numbered anew, a node would be given what another said.
    fs::rename(&list, hosts.dir.path().join("away")).unwrap();
    let lost = hosts.collect("shared", &["--resume", "--mask"]);
    assert!(lost.code == Some(4) && lost.err.contains("who is who"), "{lost:?}");
    // Going on without --mask would mix names into it.
    let mixed = hosts.collect("shared", &["--resume"]);
    assert!(mixed.code == Some(4) && mixed.err.contains("--mask"), "{mixed:?}");
}

#[test]
fn what_is_not_said_well_is_refused_before_anybody_is_asked() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("x").display().to_string();
    let nobody = run(&["fleet", "collect", "-o", &folder]);
    assert!(nobody.code == Some(2) && nobody.err.contains("--ssh"), "{nobody:?}");
    let odd = run(&["fleet", "collect", "-o", &folder, "--ssh", "hosts", "--run", "rm -rf /"]);
    assert!(odd.code == Some(2) && odd.err.contains("measure wakeup"), "{odd:?}");
    assert!(!dir.path().join("x").exists());
    let missing = run(&["fleet", "collect", "-o", &folder, "--ssh", "/no/such/list"]);
    assert_eq!(missing.code, Some(4), "{missing:?}");
}
