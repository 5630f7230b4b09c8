//! Paths as people type them: `x`, `./x`, `x/`, `../here/x`, and from the root, in the working folder.

use crate::tool::{fixtures, host, said, wakewatt};
use std::path::Path;

/// How a name in the working folder may be written.
fn forms(folder: &Path, name: &str) -> Vec<String> {
    let here = folder.file_name().unwrap().to_str().unwrap();
    vec![
        name.to_string(),
        format!("./{name}"),
        format!("../{here}/{name}"),
        format!("{}/{name}", folder.display()),
        format!(".//{name}"),
    ]
}

/// What is written, as a file or as a folder, and what is read. `PATH` stands for the path, `HOST` and `RUN` for files that are there.
const WRITES_FILE: &[&str] = &[
    "capture --host HOST -o PATH",
    "doctor --host HOST -o PATH",
    "doctor --host HOST --no-report --save PATH",
    "report RUN -o PATH",
    "simulate plain --save PATH",
    "simulate plain -o PATH",
    "import TEXT -o PATH",
    "replay TRACE --recorded hz=250 -o PATH",
    "replay TRACE --recorded hz=250 --csv PATH",
    "replay TRACE --recorded hz=250 --parquet PATH",
    "replay TRACE --recorded hz=250 --save PATH",
    "simulate plain --duration 200ms --replications 2 --parquet PATH",
    "report RUN --parquet PATH",
    "trace export TRACE -o PATH",
    "measure wakeup --duration 200ms --save PATH",
];
const WRITES_FOLDER: &[&str] =
    &["report RUN --csv PATH", "report RUN --svg PATH", "watch --once --record PATH", "fleet tables HOSTS -o PATH"];
const READS_FILE: &[&str] = &[
    "inspect --host PATH",
    "doctor --no-report --host PATH",
    "explain C1 --host PATH",
    "tune plan latency --host PATH",
    "capture --host PATH -o out.host",
    "compare PATH PATH",
    "watch --once --host PATH",
    "agent --once --host PATH",
    "tune knobs --host PATH",
    "replay TRACE --recorded hz=250 --table PATH",
];
/// What reads something else, and the name in the folder of what it reads.
const READS_OTHER: &[(&str, &str)] = &[
    ("inspect --from PATH", "given.txt"),
    ("explain C1 --from PATH", "given.txt"),
    ("import PATH", "given.txt"),
    ("report PATH", "given.run"),
    ("compare PATH PATH", "given.run"),
    ("trace info PATH", "given.wtrace"),
    ("trace export PATH --force -o out.parquet", "given.wtrace"),
    ("replay PATH --recorded hz=250", "given.wtrace"),
    ("simulate PATH --duration 200ms --replications 2", "given.toml"),
    ("simulate plain --duration 200ms --replications 2 --arrivals PATH", "given.wtrace"),
    ("tune plan PATH --host HOST", "profile.toml"),
    ("inspect --sysroot PATH", "tree"),
    ("fleet tables PATH -o tables", "hosts"),
    ("watch --once --json --play PATH", "recording"),
];
/// Options that need another machine, root, a network or a load, by what they are for. What reads or writes their file is the same
/// code as of an option above.
const ELSEWHERE: &[(&str, &str)] = &[
    ("redfish-password-file", "a BMC"),
    ("bmc-password-file", "BMCs of a rollout"),
    ("bmc-ca", "BMCs of a rollout"),
    ("ca", "a server with TLS"),
    ("insecure", "a server with TLS"),
    ("tls-cert", "an agent with TLS"),
    ("tls-key", "an agent with TLS"),
    ("client-ca", "an agent with TLS"),
    ("token-file", "an agent or a Kubernetes server"),
    ("otlp-ca", "a collector"),
    ("otlp-header-file", "a collector"),
    ("ssh-config", "nodes behind ssh"),
    ("remote-program", "nodes behind ssh: a path there"),
    ("copy", "nodes behind ssh"),
    ("kubeconfig", "a cluster"),
    ("book", "a rollout"),
    ("sign-key", "a rollout"),
    ("audit-check", "a rollout"),
    ("journals", "a BMC"),
    ("database-password-file", "a database"),
    ("mix", "the shop"),
    ("in", "a disk or the shop"),
    ("device", "a disk"),
    ("run-dir", "an experiment, as root"),
    ("predict", "a measured run of this machine"),
    ("model", "a measured model"),
    ("measured", "a run with measured exits"),
    ("against", "runs of a gate"),
    ("junit", "a gate"),
    ("history", "an agent's history"),
    ("facts", "a fleet"),
    ("files", "a fleet"),
    ("wtrace", "a perf script with idle events"),
    ("stacks", "tracing, as root"),
    ("record", "tracing, as root"),
    ("png", "as --svg, and slow"),
    ("target", "a disk"),
    ("fit runs", "a measured run with a load"),
    ("run output", "a machine with memory nodes"),
    ("tune apply profile", "changes settings"),
    ("experiment resume run_dir", "an experiment, as root"),
    ("experiment replicate runs", "runs of an experiment"),
];

fn typed(folder: &Path, template: &str, path: &str) {
    let known = [
        ("HOST", host("sklep0").display().to_string()),
        ("RUN", folder.join("given.run").display().to_string()),
        ("TRACE", fixtures().join("traces/arm64-menu-exact-6.1.wtrace").display().to_string()),
        ("TEXT", fixtures().join("stories/jonas/lscpu.txt").display().to_string()),
        ("HOSTS", folder.join("hosts").display().to_string()),
        ("PATH", path.to_string()),
    ];
    let words: Vec<String> = template
        .split(' ')
        .map(|word| known.iter().find(|(name, _)| *name == word).map_or(word.to_string(), |(_, path)| path.clone()))
        .collect();
    let args: Vec<&str> = words.iter().map(String::as_str).collect();
    let said = said(wakewatt(&args).current_dir(folder));
    assert_eq!(said.code, Some(0), "{args:?}: {said:?}");
}

#[test]
fn every_form_of_a_path_is_written_and_read() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().canonicalize().unwrap();
    typed(&folder, "measure wakeup --duration 200ms --save PATH", "given.run");
    given(&folder);
    for template in WRITES_FILE {
        for path in forms(&folder, "made") {
            typed(&folder, template, &path);
            assert!(folder.join("made").is_file(), "{template} with {path}");
            std::fs::remove_file(folder.join("made")).unwrap();
        }
    }
    for template in WRITES_FOLDER {
        for path in forms(&folder, "made").into_iter().chain(["made/".to_string()]) {
            typed(&folder, template, &path);
            assert!(folder.join("made").is_dir(), "{template} with {path}");
            std::fs::remove_dir_all(folder.join("made")).unwrap();
        }
    }
    std::fs::copy(host("sklep0"), folder.join("given.host")).unwrap();
    for template in READS_FILE {
        for path in forms(&folder, "given.host") {
            typed(&folder, template, &path);
        }
    }
}

/// What the commands above read.
fn given(folder: &Path) {
    std::fs::copy(fixtures().join("stories/jonas/lscpu.txt"), folder.join("given.txt")).unwrap();
    std::fs::copy(fixtures().join("traces/arm64-menu-exact-6.1.wtrace"), folder.join("given.wtrace")).unwrap();
    std::fs::write(folder.join("given.toml"), said(&mut wakewatt(&["simulate", "--example", "plain"])).out).unwrap();
    let profile =
        "format = 1\nname = \"mine\"\nabout = \"for a test\"\n[set]\n\"freq.min\" = { to = \"min\", reason = \"x\" }\n";
    std::fs::write(folder.join("profile.toml"), profile).unwrap();
    std::fs::create_dir_all(folder.join("tree/sys/devices/system/cpu")).unwrap();
    std::fs::create_dir_all(folder.join("tree/proc")).unwrap();
    std::fs::write(folder.join("tree/sys/devices/system/cpu/online"), "0\n").unwrap();
    std::fs::create_dir(folder.join("hosts")).unwrap();
    std::fs::copy(host("sklep0"), folder.join("hosts/a.host")).unwrap();
    typed(folder, "watch --once --record PATH", "recording");
}

#[test]
fn what_is_read_is_found_by_every_form_of_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().canonicalize().unwrap();
    typed(&folder, "measure wakeup --duration 200ms --save PATH", "given.run");
    given(&folder);
    for (template, name) in READS_OTHER {
        let is_folder = folder.join(name).is_dir();
        let more = is_folder.then(|| format!("{name}/"));
        for path in forms(&folder, name).into_iter().chain(more) {
            typed(&folder, template, &path);
            let _ = std::fs::remove_dir_all(folder.join("tables"));
        }
    }
}

/// Every option that takes a path is in a table above, or says why it is not.
#[test]
fn no_option_that_takes_a_path_is_left_out() {
    let mut untried = Vec::new();
    let mut known = 0;
    walk(&<wakewatt::cli::Cli as clap::CommandFactory>::command(), "", &mut |command, argument| {
        let names =
            argument.get_value_names().unwrap_or_default().iter().map(|name| name.to_string()).collect::<Vec<_>>();
        let is_path =
            |name: &String| ["FILE", "DIR", "RUN", "FOLDER", "PATH", "PROFILE"].iter().any(|word| name.contains(word));
        if !names.iter().any(is_path) {
            return;
        }
        known += 1;
        let option = argument.get_long().map(|long| format!("--{long}"));
        let short = argument.get_short().map(|short| format!("-{short}"));
        let templates = WRITES_FILE.iter().chain(WRITES_FOLDER).chain(READS_FILE).copied();
        let mut templates = templates.chain(READS_OTHER.iter().map(|(template, _)| *template));
        let is_tried = templates.any(|template| {
            let words: Vec<&str> = template.split(' ').collect();
            let at = words.iter().position(|word| *word == "PATH").unwrap_or(0);
            let before = words[at.saturating_sub(1)];
            match (&option, &short) {
                // One definition serves several commands.
                (Some(long), _) if before == long => true,
                (_, Some(short)) if before == short => true,
                (None, None) => template.starts_with(command) && !before.starts_with('-'),
                _ => false,
            }
        });
        let id = argument.get_long().map_or(argument.get_id().as_str(), |long| long);
        if !is_tried && ELSEWHERE.iter().all(|(name, _)| *name != id && *name != format!("{command} {id}")) {
            untried.push(format!("{command}: {id} {names:?}"));
        }
    });
    assert!(untried.is_empty() && known > 100, "{known}: {untried:#?}");
}

pub fn walk(command: &clap::Command, path: &str, each: &mut dyn FnMut(&str, &clap::Arg)) {
    command
        .get_arguments()
        .filter(|argument| argument.get_action().takes_values())
        .for_each(|argument| each(path, argument));
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let path = format!("{path} {}", sub.get_name());
        walk(sub, path.trim_start(), each);
    }
}

#[test]
fn a_folder_where_a_file_is_meant_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let recorded = host("sklep0");
    let recorded = recorded.to_str().unwrap();
    for args in [
        &["capture", "--host", recorded, "-o", "made/"][..],
        &["doctor", "--host", recorded, "-o", "made/"],
        &["doctor", "--host", recorded, "--no-report", "--save", "made/"],
    ] {
        let said = said(wakewatt(args).current_dir(dir.path()));
        assert!(
            said.code == Some(4) && said.err.contains("made/: it is a folder; name a file in it"),
            "{args:?}: {said:?}"
        );
    }
}
