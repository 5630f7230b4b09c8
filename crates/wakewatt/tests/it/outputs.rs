//! Where files go: not through what another user laid in the way, and not found out after minutes of measuring.

use crate::tool::{NOBODY, host, is_root, run, said, wakewatt};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::Path;
use std::process::Stdio;
use wakewatt_testing::{Lacks, skipped};

/// A folder of another user's with a link at every default name, and the file of root's that they lead to.
fn theirs(dir: &Path, names: &[&str]) -> std::path::PathBuf {
    let (secret, folder) = (dir.join("secret"), dir.join("theirs"));
    fs::write(&secret, "secret").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(&folder).unwrap();
    for name in names {
        symlink(&secret, folder.join(name)).unwrap();
        lchown(folder.join(name), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    lchown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
    folder
}

#[test]
fn root_writes_through_no_link_in_a_users_folder() {
    if !is_root() {
        return skipped("root_writes_through_no_link_in_a_users_folder", Lacks::Root, "needs root");
    }
    let dir = tempfile::tempdir().unwrap();
    let recorded = host("sklep0");
    let recorded = recorded.to_str().unwrap();
    let run_file = dir.path().join("x.run");
    let saved = run(&["doctor", "--no-report", "--host", recorded, "--save", run_file.to_str().unwrap()]);
    assert_eq!(saved.code, Some(0), "{saved:?}");
    let run_file = run_file.to_str().unwrap();
    let laid = ["wakewatt-report.html", "x.host", "tables", "node0.out", "rec", "idle.wtrace", "p.parquet"];
    let folder = theirs(dir.path(), &laid);
    for (args, code) in [
        (&["report", run_file][..], 4),
        (&["report", run_file, "--parquet", "p.parquet"], 4),
        (&["report", run_file, "--csv", "tables"], 4),
        (&["report", run_file, "--csv", "tables/deeper"], 4),
        (&["report", run_file, "--svg", "tables"], 4),
        (&["capture", "--host", recorded, "-o", "x.host"], 4),
        (&["watch", "--once", "--record", "rec"], 4),
        (&["doctor", "--host", recorded, "--save", "x.host", "--no-report"], 4),
        // A page that nobody asked for by name.
        (&["doctor", "--host", recorded], 0),
    ] {
        let said = said(wakewatt(args).current_dir(&folder));
        assert_eq!(said.code, Some(code), "{args:?}: {said:?}");
        assert!(said.err.contains("link that another user may have laid"), "{args:?}: {said:?}");
    }
    let secret = dir.path().join("secret");
    assert_eq!(
        (fs::read_to_string(&secret).unwrap().as_str(), fs::metadata(&secret).unwrap().mode() & 0o777),
        ("secret", 0o600)
    );
    let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(left.len(), laid.len(), "{left:?}");
    // What is no link is written, and is root's.
    let said = said(wakewatt(&["capture", "--host", recorded, "-o", "new.host"]).current_dir(&folder));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(fs::read_to_string(folder.join("new.host")).unwrap().starts_with("wakewatt-host"));
}

/// /proc takes no file from anybody, root included.
#[test]
fn a_bad_place_is_found_before_anything_is_measured() {
    let marker = tempfile::tempdir().unwrap();
    let marker = marker.path().join("started");
    let touch = marker.to_str().unwrap();
    for args in [
        &["doctor", "--read-only", "-o", "/proc/wakewatt.html"][..],
        &["doctor", "--read-only", "--no-report", "--save", "/proc/none/x.run"],
        &["trace", "--for", "1h", "-o", "/proc/wakewatt.html"],
        &["trace", "-o", "/proc/wakewatt.html", "--", "touch", touch],
        &["measure", "wakeup", "--duration", "1h", "--save", "/proc/x.run"],
        &["experiment", "idle-states", "-o", "/proc/wakewatt.html"],
        &["experiment", "idle-states", "--save", "/proc/x.run"],
        &["experiment", "idle-states", "--run-dir", "/proc/runs/x"],
        &["load", "--save", "/proc/x.run", "--", "touch", touch],
        &["load", "steps", "--save", "/proc/x.run"],
        &["load", "shop", "--save", "/proc/x.run"],
        &["watch", "--csv", "--record", "/proc/recording"],
        &["run", "--per-node", "--output", "/proc/none", "--", "touch", touch],
    ] {
        let mut args: Vec<&str> = args.to_vec();
        let plans = run(&["experiment", "list"]).out;
        if let Some(at) = args.iter().position(|a| *a == "idle-states") {
            args[at] = plans.split_whitespace().next().unwrap();
        }
        let said = run(&args);
        assert_eq!(said.code, Some(4), "{args:?}: {said:?}");
        assert!(said.err.contains("/proc/") && said.out.is_empty(), "{args:?}: {said:?}");
    }
    assert!(!marker.exists(), "the command was started");
}

/// A shell's `>(…)` is a pipe under /dev/fd; /dev/stdout may be a file that was opened to be appended to.
#[test]
fn descriptors_of_the_shell_are_written_to() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    fs::write(&log, "before\n").unwrap();
    let file = host("vm-haltpoll-2cpu");
    let to = fs::OpenOptions::new().append(true).open(&log).unwrap();
    let out =
        wakewatt(&["capture", "--host", file.to_str().unwrap(), "-o", "/dev/stdout"]).stdout(to).status().unwrap();
    assert!(out.success());
    let text = fs::read_to_string(&log).unwrap();
    assert!(text.starts_with("before\nwakewatt-host 1"), "{}", &text[..40]);
}

/// What was measured is saved although nobody could read it, and the code says so.
#[test]
fn a_result_that_cannot_be_printed_is_saved_and_ends_with_4() {
    let dir = tempfile::tempdir().unwrap();
    let recorded = host("sklep0");
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let cpu = wakewatt_host::affinity::allowed_cpus().unwrap().first().unwrap().to_string();
    for (nth, args) in [
        &["doctor", "--no-report", "--host", recorded.to_str().unwrap()][..],
        &["measure", "wakeup", "--kind", "timer", "--duration", "50ms", "--cpu", &cpu],
    ]
    .into_iter()
    .enumerate()
    {
        for (kind, code) in [("full", 4), ("closed", 0)] {
            let file = dir.path().join(format!("{nth}-{kind}.run"));
            let args = [args, &["--save", file.to_str().unwrap()]].concat();
            let mut command = wakewatt(&args);
            let child = match kind {
                "full" => command.stdout(full()).stderr(Stdio::piped()).spawn(),
                _ => command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn(),
            };
            let mut child = child.unwrap();
            drop(child.stdout.take());
            let done = child.wait_with_output().unwrap();
            assert_eq!(done.status.code(), Some(code), "{args:?} {kind}: {done:?}");
            assert!(fs::read_to_string(&file).unwrap().contains("wakewatt/run/v1"), "{args:?} {kind}");
        }
    }
    let help = said(wakewatt(&["--help"]).stdout(full()));
    assert!(help.code == Some(4) && help.err.contains("No space left"), "{help:?}");
}
