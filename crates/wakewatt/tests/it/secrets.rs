//! What wakewatt looks up, and whom it tells: names without the machine's libraries, passwords to nobody else.

use crate::tool::{PROGRAM, Said, run, said, wakewatt};
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
