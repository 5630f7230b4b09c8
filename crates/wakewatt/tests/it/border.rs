//! What root is asked to run or believe: plans and profiles in somebody else's hands, words for the kernel's line, units
//! that name a program anybody may exchange, programs that lie in the working folder.

use crate::tool::{NOBODY, PROGRAM, fixtures, is_root, run, said, wakewatt};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;
use wakewatt_testing::{Lacks, skipped};

/// No arm of it can be set anywhere, so it ends before anything is changed.
const PLAN: &str = r#"format = 1
name = "x"
question = "?"
[[arm]]
name = "a"
set = ["idle.state.NOPE=off"]
command = ["true"]
undo_command = ["true"]
[[arm]]
name = "b"
set = ["idle.state.NOPE=off"]
command = ["/no/such\u001b[2J"]
undo_command = ["true"]
[[workload]]
kind = "command"
command = ["true"]
"#;

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn root_acts_by_no_file_that_others_may_write() {
    if !is_root() {
        skipped("root_acts_by_no_file_that_others_may_write", Lacks::Root, "only root is refused");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (profile, plan, by_profile) = (dir.path().join("p.toml"), dir.path().join("x.toml"), dir.path().join("y.toml"));
    fs::write(&profile, "format = 1\n[set]\n\"no.such.knob\" = 1\n").unwrap();
    fs::write(&plan, PLAN).unwrap();
    let line = format!("name = \"a\"\nprofile = {profile:?}\n");
    let line = PLAN.replacen("name = \"a\"\n", &line, 1);
    fs::write(&by_profile, line).unwrap();
    let profile_name = profile.to_str().unwrap();
    let config = dir.path().join("kubeconfig");
    fs::write(&config, "apiVersion: v1\n").unwrap();
    let cluster = ["fleet", "collect", "--kubernetes", "--image", "x", "--kubeconfig", config.to_str().unwrap()];
    let (ssh_config, nodes) = (dir.path().join("ssh_config"), dir.path().join("nodes"));
    fs::write(&ssh_config, "Host *\n").unwrap();
    fs::write(&nodes, "127.0.0.1\n").unwrap();
    let (nodes, named) = (nodes.to_str().unwrap(), ssh_config.to_str().unwrap());
    let cases: [(&Path, Vec<&str>); 5] = [
        (&ssh_config, vec!["fleet", "collect", "--ssh", nodes, "--ssh-config", named, "-o", "collected"]),
        (&config, [&cluster[..], &["-o", "collected"]].concat()),
        (&profile, vec!["tune", "apply", profile_name]),
        (&plan, vec!["experiment", plan.to_str().unwrap()]),
        (&profile, vec!["experiment", by_profile.to_str().unwrap()]),
    ];
    for (file, args) in &cases {
        for spoil in [|file: &Path| mode(file, 0o666), |file: &Path| chown(file, Some(NOBODY), None).unwrap()] {
            spoil(file);
            let refused = run(args);
            assert_eq!(refused.code, Some(7), "{args:?}: {refused:?}");
            assert!(
                refused.err.contains("sudo install") && refused.err.contains("root would act by it"),
                "{refused:?}"
            );
            mode(file, 0o644);
            chown(file, Some(0), None).unwrap();
        }
    }
    // Looking is free, and whoever called sudo may do all this anyway.
    mode(&profile, 0o666);
    let host = fixtures().join("hosts/sklep0.host");
    let looked = run(&["tune", "plan", profile_name, "--host", host.to_str().unwrap()]);
    assert!(looked.err.contains("no.such.knob"), "{looked:?}");
    mode(&profile, 0o644);
    chown(&profile, Some(NOBODY), None).unwrap();
    let behind = said(wakewatt(&["tune", "apply", profile_name]).env("SUDO_UID", NOBODY.to_string()));
    assert!(behind.code == Some(4) && behind.err.contains("no.such.knob"), "{behind:?}");
}

#[test]
fn a_user_whom_root_would_not_believe_changes_nothing() {
    let name = "a_user_whom_root_would_not_believe_changes_nothing";
    if !is_root() {
        return skipped(name, Lacks::Root, "takes root's capabilities over to another user");
    }
    let capabilities = "+dac_override,+dac_read_search";
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps", capabilities]);
    command.args(["--ambient-caps", capabilities, PROGRAM, "tune", "apply", "--set", "qos.cpu=20us"]);
    if Command::new("setpriv").arg("--version").output().is_err() {
        return skipped(name, Lacks::Program("setpriv"), "changes the user and keeps capabilities");
    }
    let refused = said(&mut command);
    assert!(refused.code == Some(7) && refused.err.contains("a journal of user 65534; use sudo"), "{refused:?}");
    // Not even the folder: root would refuse to work in one of that user's.
    let strangers = ["/var/lib/wakewatt", "/var/lib/wakewatt/lock", "/var/lib/wakewatt/open"];
    for path in strangers {
        assert!(fs::metadata(path).map_or(true, |found| found.uid() == 0), "{path} belongs to a user");
    }
}

#[test]
fn a_plan_shows_its_commands_before_they_run() {
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("x.toml");
    fs::write(&plan, PLAN).unwrap();
    let folder = dir.path().join("run");
    let shown = run(&["experiment", plan.to_str().unwrap(), "--run-dir", folder.to_str().unwrap()]);
    let line = "Runs, for arm b, to enter it: '/no/such\\u{1b}[2J'";
    assert!(shown.err.contains(line) && shown.err.contains("Runs, for the workload of each block: true"), "{shown:?}");
}

#[test]
fn a_kept_run_of_somebody_else_is_not_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("run");
    fs::create_dir(&folder).unwrap();
    for name in ["head.json", "plan.toml", "blocks.jsonl"] {
        fs::write(folder.join(name), "").unwrap();
    }
    mode(&folder, 0o777);
    let refused = run(&["experiment", "resume", folder.to_str().unwrap()]);
    assert!(refused.code == Some(7) && refused.err.contains("may be written by everybody"), "{refused:?}");
    mode(&folder, 0o755);
    mode(&folder.join("plan.toml"), 0o666);
    fs::write(folder.join("head.json"), "{}").unwrap();
    let broken = run(&["experiment", "resume", folder.to_str().unwrap()]);
    assert_eq!(broken.code, Some(4), "{broken:?}");
}

#[test]
fn a_rollouts_state_that_others_may_write_is_not_shown_as_its_state() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state.json");
    fs::write(&state, "{}").unwrap();
    let status = || run(&["fleet", "rollout", "--status", "--book", dir.path().to_str().unwrap()]);
    mode(&state, 0o666);
    let refused = status();
    assert!(refused.code == Some(4) && refused.err.contains("may be written by everybody"), "{refused:?}");
    mode(&state, 0o644);
    assert!(!status().err.contains("may be written"));
}

#[test]
fn strange_words_for_the_kernel_need_a_persons_word_and_are_told_loudly() {
    let tree = fixtures().join("boot/grub-debian-12/before");
    let dir = tempfile::tempdir().unwrap();
    let profile = dir.path().join("p.toml");
    fs::write(&profile, "format = 1\n[boot]\narguments = [\"nosmt\", \"systemd.run=/home/x/run\"]\n").unwrap();
    let plan = |more: &[&str]| {
        let mut args = vec!["tune", "plan", profile.to_str().unwrap(), "--sysroot", tree.to_str().unwrap()];
        args.extend(more);
        run(&args)
    };
    let refused = plan(&[]);
    assert!(refused.code == Some(7) && refused.err.contains("systemd.run=/home/x/run: not among"), "{refused:?}");
    assert_eq!(run(&["tune", "apply", profile.to_str().unwrap(), "--persist"]).code, Some(7));
    let taken = plan(&["--any-boot-argument"]);
    assert!(taken.err.contains("WARNING") && taken.err.contains("systemd.run=/home/x/run"), "{taken:?}");
    assert!(taken.out.contains("WARNING systemd.run=/home/x/run is not a kernel parameter"), "{taken:?}");
    let json: serde_json::Value = serde_json::from_str(&plan(&["--any-boot-argument", "--json"]).out).unwrap();
    assert_eq!(json["boot"]["unknown"], serde_json::json!(["systemd.run=/home/x/run"]));
    assert_eq!(json["boot"]["arguments"][0], "nosmt");
}

#[test]
fn units_name_no_program_that_others_may_exchange() {
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("wakewatt");
    fs::copy(PROGRAM, &copy).unwrap();
    mode(dir.path(), 0o777);
    let root = dir.path().join("root");
    let refused =
        said(std::process::Command::new(&copy).env_clear().args(["tune", "units", "--write", root.to_str().unwrap()]));
    assert!(refused.code == Some(7) && refused.err.contains("root would run"), "{refused:?}");
    assert!(!root.exists());
}

#[test]
fn the_working_folder_is_searched_for_no_program() {
    let dir = tempfile::tempdir().unwrap();
    let trap = dir.path().join("nvidia-smi-of-nobody");
    fs::write(&trap, "#!/bin/sh\necho trapped >&2\n").unwrap();
    mode(&trap, 0o755);
    let start = |path: Option<&str>| {
        let mut command = wakewatt(&["load", "--", "nvidia-smi-of-nobody"]);
        command.current_dir(dir.path());
        path.map(|path| command.env("PATH", path));
        said(&mut command)
    };
    for path in [None, Some(""), Some(":/usr/bin"), Some("/usr/bin:."), Some(".")] {
        let missing = start(path);
        assert!(missing.code == Some(2) && missing.err.contains("not found in /usr"), "{path:?}: {missing:?}");
        assert!(!missing.err.contains("trapped"), "{path:?}: {missing:?}");
    }
    let named = said(wakewatt(&["load", "--", "./nvidia-smi-of-nobody"]).current_dir(dir.path()));
    assert!(named.err.contains("trapped"), "what a person names by path is run: {named:?}");
}
