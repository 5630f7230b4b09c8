//! The command line as people and scripts meet it: help, version, colours, closed pipes, full disks, exit codes.

use crate::tool::{ForNobody, Said, host, run, said, wakewatt};
use std::fs;
use std::io::Read;
use std::process::Stdio;
use wakewatt_testing::{Lacks, skipped};

/// Every path of subcommands that is shown, such as `["measure", "wakeup"]`.
fn commands() -> Vec<Vec<String>> {
    fn walk(command: &clap::Command, path: &[String], all: &mut Vec<Vec<String>>) {
        all.push(path.to_vec());
        for sub in command.get_subcommands().filter(|s| !s.is_hide_set()) {
            walk(sub, &[path, &[sub.get_name().to_string()]].concat(), all);
        }
    }
    let mut all = Vec::new();
    walk(&<wakewatt::cli::Cli as clap::CommandFactory>::command(), &[], &mut all);
    all
}

#[test]
fn every_help_begins_with_an_example() {
    let all = commands();
    assert!(all.len() > 8, "{all:?}");
    for path in all {
        let mut args: Vec<&str> = path.iter().map(String::as_str).collect();
        args.push("--help");
        let said = run(&args);
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{args:?}");
        // `measure` only introduces the two measurements that have examples of their own.
        assert!(said.out.starts_with("Example:\n") || path == ["measure"], "{args:?}: {}", said.out);
        let longest = said.out.lines().map(|l| l.chars().count()).max();
        assert!(longest <= Some(100), "{args:?}: {longest:?} columns");
    }
    assert!(run(&["--help"]).out.contains("Exit codes:"));
}

#[test]
fn help_fits_a_small_terminal() {
    for path in commands() {
        let args: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
        let output = wakewatt(&args).env("COLUMNS", "80").output().unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        let longest = help.lines().map(|l| l.chars().count()).max();
        assert!(longest <= Some(80), "{path:?}: {longest:?} columns");
        let example = help.split("\n\n").next().unwrap();
        // What a shell takes as one command is not broken at column 0.
        assert!(example.lines().skip(1).all(|line| line.starts_with("  ")), "{path:?}: {example}");
    }
}

#[test]
fn the_version_is_one_line() {
    let said = run(&["--version"]);
    assert_eq!(said.out, format!("wakewatt {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(said.code, Some(0));
}

#[test]
fn a_wrong_command_line_is_2_and_says_what_there_is() {
    let file = host("sklep0");
    let file = file.to_str().unwrap();
    for (args, word) in [
        (&["inspect", "nonsense"][..], "possible values"),
        (&["nonsense"], "unrecognized"),
        (&[], "Usage"),
        (&["compare", file], "name two hosts"),
        (&["inspect", "--host", file, "--sysroot", "/"], "cannot be used with"),
        (&["doctor", "--json", "--markdown"], "cannot be used with"),
        (&["doctor", "--fail-on", "everything"], "possible values"),
        (&["measure", "wakeup", "--gap", "soon"], "--gap"),
        (&["measure", "wakeup", "--cpu", "0-x"], "--cpu"),
        (&["measure", "wakeup", "--kind", "smoke"], "possible values"),
        (&["measure", "network", "--peer", "nowhere"], "HOST:PORT"),
        (&["measure", "cores", "--cpu", "0-x"], "--cpu"),
        (&["measure", "frequency", "--work", "1us"], "--work"),
        (&["measure", "idle", "--kind", "smoke"], "possible values"),
        (&["respond", "--listen", "here"], "--listen"),
        (&["capture"], "--output"),
    ] {
        let said = run(args);
        assert_eq!(said.code, Some(2), "{args:?}: {said:?}");
        assert!(said.err.contains(word), "{args:?} should say {word:?}: {}", said.err);
        assert_eq!(said.out, "", "{args:?}");
    }
}

#[test]
fn colour_only_where_it_is_wanted() {
    let file = host("sklep0");
    for command in ["inspect", "doctor"] {
        let base = [command, "--host", file.to_str().unwrap()];
        let args = |more: &[&'static str]| {
            let no_report = if command == "doctor" { &["--no-report"][..] } else { &[] };
            [&base[..], no_report, more].concat().into_iter().map(String::from).collect::<Vec<_>>()
        };
        let is_coloured = |more: &[&'static str], environment: &[(&str, &str)]| {
            let args = args(more);
            let mut command = wakewatt(&args.iter().map(String::as_str).collect::<Vec<_>>());
            said(command.envs(environment.iter().copied())).out.contains('\u{1b}')
        };
        assert!(!is_coloured(&[], &[]), "{command}: not on a pipe");
        assert!(!is_coloured(&[], &[("NO_COLOR", "1"), ("TERM", "xterm")]));
        assert!(!is_coloured(&["--color=never"], &[]));
        assert!(is_coloured(&["--color=always"], &[]));
        assert!(is_coloured(&["--color=always"], &[("NO_COLOR", "1")]), "{command}: the flag is nearer than NO_COLOR");
    }
}

/// On a terminal: coloured by itself, unless NO_COLOR or a dumb terminal says otherwise. `script` makes the terminal.
#[test]
fn no_color_is_respected_on_a_terminal() {
    let file = host("sklep0");
    let line = format!("{} inspect qos --host {}", crate::tool::PROGRAM, file.display());
    let on_terminal = |environment: &[(&str, &str)]| {
        let mut command = std::process::Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).env_clear().envs(environment.iter().copied());
        command.env("PATH", std::env::var("PATH").unwrap_or_default());
        command.stdin(Stdio::null()).output().ok().map(|o| String::from_utf8_lossy(&o.stdout).into_owned())
    };
    let Some(plain) = on_terminal(&[("TERM", "xterm"), ("NO_COLOR", "1")]) else {
        return skipped(
            "no_color_is_respected_on_a_terminal",
            Lacks::Program("script"),
            "script (bsdutils) is not installed",
        );
    };
    assert!(plain.contains("Latency limits") && !plain.contains('\u{1b}'), "{plain}");
    assert!(on_terminal(&[("TERM", "xterm")]).unwrap().contains("\u{1b}[1m"));
    assert!(!on_terminal(&[("TERM", "dumb")]).unwrap().contains('\u{1b}'));
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let file = host("turin0");
    let file = file.to_str().unwrap();
    for args in [
        &["inspect", "--json", "--host", file][..],
        &["inspect", "--host", file],
        &["capture", "--host", file, "-o", "-"],
        &["compare", "--all", "--json", file, file],
        &["doctor", "--no-report", "--json", "--host", file],
        &["doctor", "--no-report", "--host", file],
        &["--help"],
    ] {
        let mut child = wakewatt(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""), "{args:?}");
    }
}

fn names(folder: &std::path::Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_full_disk_is_4_and_the_device_stays_a_device() {
    use std::os::unix::fs::FileTypeExt;
    let file = host("sklep0");
    let file = file.to_str().unwrap();
    let before = names("/dev".as_ref());
    for args in [&["capture", "--host", file, "-o", "/dev/full"][..], &["doctor", "--host", file, "-o", "/dev/full"]] {
        let said = run(args);
        assert_eq!(said.code, Some(4), "{args:?}: {said:?}");
        assert!(said.err.contains("/dev/full") && said.err.contains("No space left"), "{}", said.err);
        assert!(fs::metadata("/dev/full").unwrap().file_type().is_char_device());
    }
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let to_full = said(wakewatt(&["inspect", "--host", file]).stdout(full));
    assert_eq!(to_full.code, Some(4), "{to_full:?}");
    assert!(to_full.err.contains("No space left"), "{to_full:?}");
    assert_eq!(run(&["capture", "--host", file, "-o", "/dev/null"]).code, Some(0));
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    assert_eq!(names("/dev".as_ref()), before, "something was left in /dev");
}

#[test]
fn an_unwritable_folder_is_4_and_leaves_nothing_behind() {
    let nobody = ForNobody::new();
    let before = names(nobody.folder());
    let file = nobody.folder().join("x.host");
    fs::copy(host("sklep0"), &file).unwrap();
    for args in [
        &["capture", "--host", "x.host", "-o", "out.host"][..],
        &["capture", "--host", "x.host", "-o", "no/such/folder/out.host"],
        &["doctor", "--host", "x.host", "-o", "out.html"],
        &["doctor", "--host", "x.host", "-o", "no/such/folder/out.html"],
    ] {
        let said = said(&mut nobody.command(args));
        assert_eq!(said.code, Some(4), "{args:?}: {said:?}");
        assert!(said.err.contains("out.h") && said.err.contains("-o"), "what to try: {}", said.err);
    }
    // A report nobody asked for is not an error.
    let said = said(&mut nobody.command(&["doctor", "--host", "x.host"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.err.contains("No HTML report"), "{said:?}");
    fs::remove_file(file).unwrap();
    assert_eq!(names(nobody.folder()), before);
}

#[test]
fn a_file_is_replaced_whole_through_its_link() {
    let dir = tempfile::tempdir().unwrap();
    let (real, link) = (dir.path().join("real"), dir.path().join("link"));
    fs::write(&real, "old").unwrap();
    std::os::unix::fs::symlink("real", &link).unwrap();
    let file = host("vm-haltpoll-2cpu");
    let said = run(&["capture", "--host", file.to_str().unwrap(), "-o", link.to_str().unwrap()]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(fs::read_to_string(&real).unwrap().starts_with("wakewatt-host"));
    assert_eq!(names(dir.path()), ["link", "real"]);
    assert!(fs::symlink_metadata(link).unwrap().is_symlink());
}

#[test]
fn findings_decide_the_exit_code_only_when_asked() {
    let file = host("sklep0");
    let doctor = |more: &[&str]| run(&[&["doctor", "--no-report", "--host", file.to_str().unwrap()], more].concat());
    assert_eq!(doctor(&[]).code, Some(0));
    let json: serde_json::Value = serde_json::from_str(&doctor(&["--json"]).out).unwrap();
    let rulings = json["rulings"].as_array().unwrap();
    let n = |weight: &str| rulings.iter().filter(|r| r["weight"] == weight).count();
    let expected = [("problem", n("problem")), ("risk", n("problem") + n("risk")), ("note", 1)];
    assert!(n("note") + n("risk") + n("problem") > 0, "no finding at all on a server with C6");
    for (weight, n) in expected {
        let code = i32::from(n > 0);
        assert_eq!(doctor(&["--fail-on", weight]).code, Some(code), "{weight}");
        assert_eq!(doctor(&["--fail-on", weight, "--json"]).code, Some(code), "{weight}");
    }
}

#[test]
fn the_three_forms_of_doctor_say_the_same_verdict() {
    let file = host("emr9");
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("r.html");
    let doctor = |more: &[&str]| run(&[&["doctor", "--host", file.to_str().unwrap()], more].concat());
    let json: serde_json::Value = serde_json::from_str(&doctor(&["--json", "--no-report"]).out).unwrap();
    let verdict = json["verdict"].as_str().unwrap();
    let start: String = verdict.split_whitespace().take(6).collect::<Vec<_>>().join(" ");
    let text = doctor(&["-o", page.to_str().unwrap()]);
    assert!(text.out.starts_with(&start) && text.err.contains("Report: "), "{text:?}");
    assert!(doctor(&["--markdown", "--no-report"]).out.contains(&start));
    let html = fs::read_to_string(page).unwrap();
    assert!(html.contains(&start) && html.trim_end().ends_with("</html>"));
    assert!(!html.contains("http://") || !html.contains("<script src"));
    assert_eq!(names(dir.path()), ["r.html"]);
}

/// Measures the machine as it is (it changes nothing), as a user who may do nothing, with nothing in the environment.
#[test]
fn doctor_works_for_nobody_in_an_empty_environment() {
    let nobody = ForNobody::new();
    let before = names(nobody.folder());
    let Said { code, out, err } = said(&mut nobody.command(&["doctor", "--read-only", "--quick"]));
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("Could not be looked at:"), "{out}");
    assert!(out.contains("--read-only changes nothing"), "{out}");
    assert!(err.contains("No HTML report") && err.contains("-o"), "{err}");
    assert_eq!(names(nobody.folder()), before);
    let captured = said(&mut nobody.command(&["capture", "-o", "-"]));
    assert_eq!(captured.code, Some(0), "{captured:?}");
    assert!(captured.err.is_empty() || captured.err.starts_with("masked: "), "{captured:?}");
    for args in [&["inspect"][..], &["inspect", "--json"]] {
        let said = said(&mut nobody.command(args));
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{args:?}");
    }
    // Where root has used wakewatt, its journals are there and nobody else's to read.
    let is_used = std::path::Path::new(wakewatt_tune::journal::STATE_DIR).exists();
    let said = said(&mut nobody.command(&["recover"]));
    match is_used {
        false => assert_eq!((said.code, said.err.as_str()), (Some(0), "")),
        true => assert!(said.code == Some(7) && said.err.contains("use sudo"), "{said:?}"),
    }
}
