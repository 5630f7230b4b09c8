//! Names and values that command a terminal or turn a line round: put into everything a machine says of itself, a run file,
//! a plan, a profile, a path and the command line; then every reading command in every format.
//!
//! Only our own colours may come out, and JSON keeps the data.

use crate::tool::{Said, host, run, said, wakewatt};
use std::fs;
use std::path::Path;
use wakewatt_core::record::host_file;
use wakewatt_core::source::Tree;
use wakewatt_core::visible::is_hidden;

/// ESC (a title and a colour that is not ours), BEL, C1, an override, an isolate, no width.
const EVIL: &str = "\u{1b}]0;x\u{7}\u{1b}[8m\u{9b}8m\u{202e}\u{2066}\u{200b}";

/// Which words of a file's content become evil.
#[derive(Clone, Copy, Debug)]
enum How {
    /// All that hold a letter; few files still parse.
    AllWords,
    /// The text of files that hold a name; the rest of the machine is whole.
    Names,
    /// Names of folders and files that are not numbered, with everything below.
    Paths,
}

/// Files that hold what a vendor, a driver or a user called something.
const NAME_FILES: &[&str] = &[
    "comm",
    "name",
    "model",
    "vendor",
    "serial",
    "label",
    "desc",
    "type",
    "driver",
    "governor",
    "hostname",
    "osrelease",
    "version",
    "cmdline",
    "cpuinfo",
    "interrupts",
    "mounts",
    "current_clocksource",
    "scaling_governor",
    "scaling_driver",
    "current_governor",
    "current_driver",
    "product_name",
    "sys_vendor",
    "bios_version",
    "firmware_rev",
    "scheduler",
];

fn evil_words(text: &str) -> String {
    text.split('\n')
        .map(|line| {
            let words = line.split(' ').map(|w| match w.contains(|c: char| c.is_alphabetic()) {
                true => format!("{w}{EVIL}"),
                false => w.to_string(),
            });
            words.collect::<Vec<_>>().join(" ")
        })
        .collect::<Vec<_>>()
        .join("\n")
}

/// Every name in the folders that foreigners fill.
fn evil_path(path: &str) -> String {
    const FOLDERS: [&str; 6] = [
        "/sys/class/net/",
        "/sys/block/",
        "/sys/fs/cgroup/",
        "/sys/class/hwmon/",
        "/sys/class/thermal/",
        "/sys/class/power_supply/",
    ];
    let Some(folder) = FOLDERS.iter().find(|f| path.starts_with(**f)) else { return path.to_string() };
    let (name, below) = path[folder.len()..].split_once('/').map_or((&path[folder.len()..], ""), |(n, b)| (n, b));
    let slash = if path[folder.len()..].contains('/') { "/" } else { "" };
    format!("{folder}{name}{}{slash}{below}", if name.contains('.') { "" } else { EVIL })
}

fn spoil(tree: &Tree, how: How) -> Tree {
    let mut evil = tree.clone();
    match how {
        How::AllWords | How::Names => {
            for (path, content) in &mut evil.files {
                let is_name = NAME_FILES.contains(&path.rsplit('/').next().unwrap_or_default());
                if let Ok(bytes) = content {
                    if let Ok(text) = std::str::from_utf8(bytes) {
                        if matches!(how, How::AllWords) || is_name {
                            *bytes = evil_words(text).into_bytes();
                        }
                    }
                }
            }
        }
        How::Paths => {
            evil.files = tree.files.iter().map(|(p, c)| (evil_path(p), c.clone())).collect();
            evil.links = tree.links.iter().map(|(p, t)| (evil_path(p), t.clone())).collect();
            evil.folders = tree
                .folders
                .iter()
                .map(|(path, names)| {
                    let inside = |name: &String| evil_path(&format!("{path}/{name}"))[path.len() + 1..].to_string();
                    (evil_path(path), names.clone().map(|names| names.iter().map(inside).collect()))
                })
                .collect();
        }
    }
    evil
}

/// What people see: the lines' own ends may stay, and our colours where they were asked for.
fn assert_harmless(what: &str, text: &str) {
    let mut rest = text.replace("\r\n", "\n");
    for own in ["0", "1", "2", "31"] {
        rest = rest.replace(&format!("\u{1b}[{own}m"), "");
    }
    let found = rest.find(|c: char| is_hidden(c) && c != '\n' && c != '\t');
    let around = found.map(|at| rest[at..].chars().take(30).collect::<String>().escape_unicode().to_string());
    assert!(found.is_none(), "{what}: {}", around.unwrap_or_default());
}

fn assert_said(args: &[&str], said: &Said) {
    assert_harmless(&format!("{args:?} said"), &said.out);
    assert_harmless(&format!("{args:?} complained"), &said.err);
}

fn check(args: &[&str]) -> Said {
    let said = run(args);
    assert_said(args, &said);
    said
}

fn assert_files_harmless(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_files_harmless(&path);
        } else if path.extension().is_none_or(|e| e != "png" && e != "parquet") {
            assert_harmless(&path.display().to_string(), &fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn a_hostile_machine_commands_no_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    for name in ["sklep0", "dell-latitude-5420-tgl"] {
        let text = fs::read_to_string(host(name)).unwrap();
        let tree = host_file::read(&text, name).unwrap();
        let whole = host(name);
        // One machine for the names of vendors, one for the rest: each is some twenty runs.
        let ways = if name == "sklep0" { &[How::AllWords, How::Paths][..] } else { &[How::Names] };
        for how in ways.iter().copied() {
            let file = at("evil.host");
            fs::write(&file, host_file::write(&spoil(&tree, how), &[])).unwrap();
            let evil = ["--host", file.as_str()];
            let with = |args: &[&'static str]| [args, &evil[..]].concat();
            for args in [
                &["inspect"][..],
                &["inspect", "--gaps", "--color=always"],
                &["inspect", "--json"],
                &["doctor", "--no-report"],
                &["doctor", "--no-report", "--color=always"],
                &["doctor", "--no-report", "--markdown"],
                &["doctor", "--no-report", "--json"],
                &["tune", "knobs"],
                &["tune", "knobs", "--json"],
                &["tune", "plan", "--max-latency", "10us"],
                &["tune", "plan", "--max-latency", "10us", "--json"],
                &["capture", "-o", "-"],
                &["capture", "--unmasked", "-o", "-"],
            ] {
                let said = check(&with(args));
                assert_ne!(said.code, None, "{how:?} {args:?}");
            }
            let (page, saved) = (at("page.html"), at("x.run"));
            check(&["doctor", "--host", &file, "-o", &page, "--save", &saved]);
            assert!(fs::read_to_string(&page).unwrap().contains("</html>"));
            check(&["compare", "--all", &file, whole.to_str().unwrap()]);
            check(&["compare", "--all", "--json", &file, whole.to_str().unwrap()]);
            check(&["report", &saved, "--markdown"]);
            check(&["report", &saved, "--json"]);
            check(&["report", &saved, "-o", &at("again.html"), "--csv", &at("csv"), "--svg", &at("svg")]);
            assert_files_harmless(dir.path());
        }
    }
    // Something of it did arrive, made visible, and JSON has it as it was.
    let tree = host_file::read(&fs::read_to_string(host("sklep0")).unwrap(), "x").unwrap();
    fs::write(at("evil.host"), host_file::write(&spoil(&tree, How::Names), &[])).unwrap();
    let shown = check(&["inspect", "--host", &at("evil.host")]).out;
    assert!(shown.contains("\\x1b]0;x\\x07") && shown.contains("\\u{202e}"), "{shown}");
    let json = check(&["inspect", "--json", "--host", &at("evil.host")]).out;
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    fn holds(value: &serde_json::Value) -> bool {
        match value {
            serde_json::Value::String(text) => text.contains(EVIL),
            serde_json::Value::Array(all) => all.iter().any(holds),
            serde_json::Value::Object(all) => all.values().any(holds),
            _ => false,
        }
    }
    assert!(holds(&value), "JSON lost the data");
}

#[test]
fn errors_that_quote_files_paths_or_the_command_line_are_harmless() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: String| {
        let path = dir.path().join(format!("{EVIL}{name}"));
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_string()
    };
    let toml = format!("format = 1\n[{EVIL} = \"{EVIL}\"\n{EVIL}\n");
    let unknown = format!("format = 1\n\"{EVIL}\" = \"{EVIL}\"\n");
    let knob = format!("format = 1\n[settings]\n\"{EVIL}\" = \"{EVIL}\"\n");
    for (nth, text) in [toml, unknown, knob].into_iter().enumerate() {
        let path = file(&format!("{nth}.toml"), text);
        for args in
            [&["tune", "plan", "--profile", &path][..], &["experiment", "--dry-run", &path], &["tune", "plan", &path]]
        {
            assert_ne!(check(args).code, Some(0), "{args:?}");
        }
    }
    let host = file("x.host", format!("wakewatt-host 1\n/a/{EVIL} {EVIL}\n"));
    let run_file =
        file("x.run", format!("{{\"schema\": \"wakewatt/run/v1\", \"{}\": 1", EVIL.replace(['\u{1b}', '\u{7}'], "")));
    let trace = file("x.wtrace", format!("wakewatt-wtrace {EVIL}\n"));
    let missing = format!("/none/{EVIL}");
    let argument = format!("--{EVIL}");
    for args in [
        &["inspect", "--host", &host][..],
        &["compare", &host, &host],
        &["report", &run_file],
        &["compare", &run_file, &run_file],
        &["trace", "info", &trace],
        &["watch", "--play", &trace],
        &["inspect", "--host", &missing],
        &["report", &missing],
        &["capture", "-o", &missing],
        &["inspect", &argument],
        &["inspect", EVIL],
        &[EVIL],
        &["measure", "wakeup", "--cpu", EVIL],
        &["measure", "power", "--meter", EVIL],
        &["tune", "plan", "--set", &format!("{EVIL}={EVIL}")],
        &["experiment", EVIL],
        &["experiment", "resume", &missing],
        &["load", "--", &missing],
    ] {
        assert_ne!(check(args).code, Some(0), "{args:?}");
    }
    // Nothing is applied here, so there is nothing to undo under any name.
    check(&["tune", "undo", EVIL]);
    // With colour asked for, too.
    let args = ["--color=always", "inspect", "--host", &host];
    assert_said(&args, &said(&mut wakewatt(&args)));
}
