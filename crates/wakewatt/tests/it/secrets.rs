//! What wakewatt looks up, and whom it tells: names without the machine's libraries, passwords to nobody else.

use crate::paths::walk;
use crate::tool::{NOBODY, PROGRAM, Said, is_root, run, said, wakewatt};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use wakewatt_testing::{Lacks, skipped};

/// A password that is nowhere else.
const PASSWORD: &str = "k4n4r1e-vogel";
const VARIABLE: &str = "WAKEWATT_REDFISH_PASSWORD";

/// Files, sockets and programs that this run and its children opened, from a network without anything in it.
fn touched(words: &[&str]) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("strace");
    let mut command = Command::new("unshare");
    command.args(["-rn", "strace", "-f", "-qq", "-s", "300", "-e", "trace=open,openat,openat2,connect,execve", "-o"]);
    command.arg(&log).arg(PROGRAM).args(words);
    command.env_clear().env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin").current_dir("/").stdin(Stdio::null());
    let out = command.output().ok()?;
    let text = fs::read_to_string(&log).unwrap_or_default();
    if !text.contains("execve(") {
        eprintln!("{}", String::from_utf8_lossy(&out.stderr));
        return None;
    }
    Some(text)
}

#[test]
fn a_name_is_looked_up_without_the_machines_libraries() {
    for words in [
        &["measure", "network", "--duration", "1ms", "--peer", "nosuch.wakewatt.invalid:7"][..],
        &["measure", "network", "--icmp", "--duration", "1ms", "--peer", "nosuch.wakewatt.invalid"],
        &["load", "shop", "--url", "http://nosuch.wakewatt.invalid/", "--quick"],
        &["measure", "power", "--for", "1ms", "--meter", "redfish", "--redfish", "https://nosuch.wakewatt.invalid"],
        &["load", "shop", "--database", "postgres://u@nosuch.wakewatt.invalid/x", "--quick"],
    ] {
        let Some(text) = touched(words) else {
            return skipped(
                "a_name_is_looked_up_without_the_machines_libraries",
                if std::path::Path::new("/usr/bin/strace").exists() { Lacks::Here } else { Lacks::Program("strace") },
                "no strace, or no namespaces for it",
            );
        };
        for library in ["libnss", "ld-linux", "ld.so", "libc.so", "nsswitch", "nscd", "host.conf", "gconv", "passwd"] {
            let lines: Vec<&str> = text.lines().filter(|line| line.contains(library)).collect();
            assert!(lines.is_empty(), "{words:?} touched {library}: {lines:?}");
        }
        let is_looked_up = text.contains("\"/etc/resolv.conf\"") && text.contains("\"/etc/hosts\"");
        assert!(is_looked_up, "{words:?} looked up no name:\n{text}");
    }
}

fn with_password(words: &[&str]) -> Said {
    let said = said(wakewatt(words).env("PATH", "/usr/bin:/bin").env(VARIABLE, PASSWORD).env("PLUG", "3"));
    assert!(!format!("{said:?}").contains(PASSWORD), "{words:?}: {said:?}");
    said
}

#[test]
fn no_child_inherits_the_password() {
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    let write = format!("env > {}; echo 100", seen.display());
    let meter = ["measure", "power", "--meter", "command", "--interval", "100ms", "--for", "300ms", "--meter-cmd"];
    assert_eq!(with_password(&[&meter[..], &[&write]].concat()).code, Some(0));
    let text = fs::read_to_string(&seen).unwrap();
    assert!(text.contains("PATH=/usr/bin:/bin") && !text.contains(VARIABLE) && !text.contains("PLUG"), "{text}");
    // The user's own commands keep their own variables.
    for words in [&["run", "--per-node", "--"][..], &["load", "--"], &["measure", "power", "--"]] {
        let _ = fs::remove_file(&seen);
        let said = with_password(&[words, &["sh", "-c", &write]].concat());
        let text = fs::read_to_string(&seen).unwrap_or_else(|e| panic!("{words:?}: {e}: {said:?}"));
        assert!(text.contains("PLUG=3") && !text.contains(VARIABLE), "{words:?}: {text}");
    }
}

#[test]
fn a_password_does_not_go_out_over_plain_http() {
    let words = ["measure", "power", "--for", "1ms", "--redfish", "http://bmc.invalid", "--redfish-user", "u"];
    let refused = with_password(&words);
    assert!(refused.code == Some(2) && refused.err.contains("unencrypted"), "{refused:?}");
    let here =
        with_password(&["measure", "power", "--for", "1ms", "--redfish", "http://127.0.0.1:1", "--redfish-user", "u"]);
    assert!(!here.err.contains("unencrypted") && !here.out.contains("unencrypted"), "{here:?}");
    let allowed = with_password(&[&words[..], &["--meter", "redfish", "--plain-http-password"]].concat());
    assert!(!format!("{allowed:?}").contains("unencrypted"), "{allowed:?}");
}

/// Each option that takes a secret, where a command reads it. `SECRET` stands for its file.
const TAKES_SECRET: &[&str] = &[
    "agent --listen 127.0.0.1:0 --token-file SECRET",
    "agent --listen 127.0.0.1:0 --tls-cert OTHER --tls-key SECRET",
    "agent --listen 127.0.0.1:0 --otlp https://127.0.0.1:1 --otlp-header-file SECRET",
    "measure power --for 1ms --meter redfish --redfish https://127.0.0.1:1 --redfish-user u --redfish-password-file SECRET",
    "bios show --redfish https://127.0.0.1:1 --redfish-user u --redfish-password-file SECRET",
    "fleet collect -o FOLDER --bmc OTHER --bmc-user u --bmc-password-file SECRET",
    "fleet compare --prometheus http://127.0.0.1:1 --token-file SECRET",
    "fleet rollout --audit-check OTHER --sign-key SECRET",
    "load shop --database postgres://u@127.0.0.1/x --database-password-file SECRET --quick",
];
/// Read by another program: kubectl. Root passes on none that others can write (border.rs).
const OF_OTHERS: &str = "kubeconfig";

#[test]
fn a_secret_that_others_may_read_or_have_written_is_refused_whatever_the_option() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let (secret, other, folder) = (at("secret"), at("other"), at("folder"));
    fs::write(&secret, format!("{PASSWORD}: {PASSWORD}\n")).unwrap();
    fs::write(&other, "node1 bmc=https://127.0.0.1:1\n").unwrap();
    let mode = |mode| fs::set_permissions(&secret, fs::Permissions::from_mode(mode)).unwrap();
    let refused = |advice: &str| {
        for template in TAKES_SECRET {
            let words = template.split(' ').map(|word| match word {
                "SECRET" => secret.as_str(),
                "OTHER" => other.as_str(),
                "FOLDER" => folder.as_str(),
                word => word,
            });
            // Should it be taken, an agent would run.
            let mut command = Command::new("timeout");
            let said = said(command.args(["30", PROGRAM]).args(words).stdin(Stdio::null()));
            let is_named = said.err.contains(&format!("{advice} {secret}"));
            assert!(matches!(said.code, Some(2 | 4)) && is_named, "{template}: {said:?}");
            assert!(!format!("{said:?}").contains(PASSWORD), "{template}: {said:?}");
        }
    };
    mode(0o644);
    refused("chmod 600");
    mode(0o602);
    refused("chmod 600");
    mode(0o600);
    if is_root() && std::os::unix::fs::chown(&secret, Some(NOBODY), None).is_ok() {
        refused("chown 0");
    }
}

#[test]
fn no_option_that_takes_a_secret_is_left_out() {
    const WORDS: &[&str] = &["password", "token", "key", "secret", "header", "credential", "kubeconfig"];
    let (mut untried, mut n_known) = (Vec::new(), 0);
    walk(&<wakewatt::cli::Cli as clap::CommandFactory>::command(), "", &mut |command, argument| {
        let Some(long) = argument.get_long() else { return };
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let takes_file = argument.get_value_names().unwrap_or_default().iter().any(|name| name == "FILE");
        let is_secret = WORDS.iter().any(|word| long.contains(word)) || help.contains("mode 600");
        if !takes_file || !is_secret {
            return;
        }
        n_known += 1;
        let option = format!("--{long}");
        let is_tried = TAKES_SECRET.iter().any(|template| template.contains(&format!("{option} SECRET")));
        if !is_tried && long != OF_OTHERS {
            untried.push(format!("{command} {option}"));
        }
    });
    assert!(untried.is_empty() && n_known >= TAKES_SECRET.len(), "{n_known}: {untried:#?}");
}

#[test]
fn a_password_file_that_others_may_read_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), format!("{PASSWORD}\n")).unwrap();
    let path = file.path().to_str().unwrap();
    let words = ["measure", "power", "--for", "1ms", "--meter", "redfish", "--redfish", "https://127.0.0.1:1"];
    let with_mode = |mode| {
        fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).unwrap();
        let said = run(&[&words[..], &["--redfish-user", "u", "--redfish-password-file", path, "--insecure"]].concat());
        assert!(!format!("{said:?}").contains(PASSWORD), "{said:?}");
        said
    };
    let open = with_mode(0o644);
    assert!(open.code == Some(4) && open.err.contains("chmod 600"), "{open:?}");
    let closed = with_mode(0o600);
    assert!(closed.code == Some(3) && !closed.err.contains("chmod"), "{closed:?}");
}
