//! Bad input and hostile machines: a clear line that says what, where and what to try, a documented exit code,
//! everything else still reported, no panic.

use crate::tool::{ForNobody, PROGRAM, Said, fixtures, host, is_root, run, said, wakewatt};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// A tree in a folder of its own.
struct Machine {
    dir: tempfile::TempDir,
}

const CPU: &str = "sys/devices/system/cpu";

impl Machine {
    fn empty() -> Machine {
        let machine = Machine { dir: tempfile::tempdir().unwrap() };
        fs::create_dir_all(machine.at("sys")).unwrap();
        machine
    }

    /// So many CPUs with two idle states, all healthy.
    fn with_cpus(n: u32) -> Machine {
        let machine = Machine::empty();
        machine.file(&format!("{CPU}/online"), format!("0-{}\n", n - 1));
        machine.file(&format!("{CPU}/present"), format!("0-{}\n", n - 1));
        machine.file(&format!("{CPU}/cpuidle/current_driver"), "intel_idle\n");
        machine.file("proc/cmdline", "quiet\n");
        for cpu in 0..n {
            for (state, name, latency) in [(0, "POLL", 0), (1, "C1", 2), (2, "C6", 290)] {
                for (file, value) in [("name", name.to_string()), ("latency", latency.to_string())] {
                    machine.file(&format!("{CPU}/cpu{cpu}/cpuidle/state{state}/{file}"), format!("{value}\n"));
                }
            }
            machine.file(&format!("{CPU}/cpu{cpu}/power/pm_qos_resume_latency_us"), "0\n");
        }
        machine
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn file(&self, path: &str, content: impl AsRef<[u8]>) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        let _ = fs::remove_file(self.at(path));
        fs::write(self.at(path), content).unwrap();
    }

    fn path(&self) -> &str {
        self.dir.path().to_str().unwrap()
    }

    /// Every reading command; returns what `inspect` said, with gaps.
    fn check(&self) -> String {
        let inspect = run(&["inspect", "--gaps", "--sysroot", self.path()]);
        assert_eq!((inspect.code, inspect.err.as_str()), (Some(0), ""));
        let json = run(&["inspect", "--json", "--sysroot", self.path()]);
        assert_eq!(json.code, Some(0));
        assert!(serde_json::from_str::<serde_json::Value>(&json.out).is_ok());
        let doctor = run(&["doctor", "--no-report", "--sysroot", self.path()]);
        assert_eq!(doctor.code, Some(0), "{doctor:?}");
        let captured = self.at("captured.host");
        assert_eq!(run(&["capture", "--sysroot", self.path(), "-o", captured.to_str().unwrap()]).code, Some(0));
        let again = run(&["inspect", "--gaps", "--host", captured.to_str().unwrap()]);
        let body = |text: &str| text.lines().skip(1).map(String::from).collect::<Vec<_>>();
        assert_eq!(body(&again.out), body(&inspect.out), "the capture says something else than the tree");
        let compare = run(&["compare", self.path(), captured.to_str().unwrap()]);
        assert!(compare.out.contains("No difference"), "{compare:?}");
        fs::remove_file(captured).unwrap();
        inspect.out
    }
}

/// It failed with this code, and the line names the input, what is wrong with it, and what to try.
fn assert_refused(said: &Said, code: i32, where_: &str, what: &str, try_this: &str) {
    assert_eq!(said.code, Some(code), "{said:?}");
    assert_eq!(said.out, "", "{said:?}");
    for word in ["wakewatt: ", where_, what, try_this] {
        assert!(said.err.contains(word), "{word:?} is missing in: {}", said.err);
    }
    assert_eq!(said.err.trim_end().lines().count(), 1, "one line: {}", said.err);
}

#[test]
fn a_healthy_tree_is_read() {
    let shown = Machine::with_cpus(4).check();
    assert!(shown.contains("CPUs online: 0-3") && shown.contains("290us"), "{shown}");
}

#[test]
fn links_in_circles_are_named_and_nothing_else_suffers() {
    let machine = Machine::with_cpus(2);
    fs::remove_file(machine.at(&format!("{CPU}/cpuidle/current_driver"))).unwrap();
    symlink("current_driver", machine.at(&format!("{CPU}/cpuidle/current_driver"))).unwrap();
    symlink(".", machine.at(&format!("{CPU}/cpufreq"))).unwrap();
    symlink("../../../..", machine.at("sys/class")).unwrap();
    let shown = machine.check();
    assert!(shown.contains("cpuidle/current_driver: symbolic links run in a circle"), "{shown}");
    assert!(shown.contains("290us"), "{shown}");
}

#[test]
fn links_do_not_lead_out_of_the_tree() {
    let machine = Machine::with_cpus(1);
    symlink("/proc", machine.at("outside")).unwrap();
    fs::remove_dir_all(machine.at("proc")).unwrap();
    symlink("/../../../../../proc", machine.at("proc")).unwrap();
    assert!(!machine.check().contains("BOOT_IMAGE"));
}

#[test]
fn a_fifo_does_not_hang_it() {
    let machine = Machine::with_cpus(2);
    let fifo = machine.at(&format!("{CPU}/cpu1/cpuidle/state2/latency"));
    fs::remove_file(&fifo).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    assert!(machine.check().contains("290us  on 0") || machine.check().contains("C6"));
    // And as the input itself.
    let fifo = machine.at("fifo.host");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    assert_refused(&run(&["inspect", "--host", fifo.to_str().unwrap()]), 4, "fifo.host", "not a file", "--sysroot");
}

#[test]
fn a_huge_file_is_refused_and_named() {
    let machine = Machine::with_cpus(2);
    for path in ["proc/cpuinfo", "sys/devices/system/cpu/online"] {
        machine.file(path, "");
        fs::OpenOptions::new().write(true).open(machine.at(path)).unwrap().set_len(3 << 30).unwrap();
    }
    let shown = machine.check();
    assert!(shown.contains("larger than"), "{shown}");
    let huge = machine.at("huge.host");
    fs::File::create(&huge).unwrap().set_len(3 << 30).unwrap();
    assert_refused(&run(&["inspect", "--host", huge.to_str().unwrap()]), 4, "huge.host", "more than any", "capture");
}

#[test]
fn binary_empty_and_truncated_files_become_gaps() {
    let junk: [&[u8]; 6] = [b"", b"\n", &[0xff, 0xfe, 0, 1], b"29", b"-1\n", b"99999999999999999999999\n"];
    for content in junk {
        let machine = Machine::with_cpus(2);
        for file in ["online", "present", "cpu0/cpuidle/state2/latency", "cpu0/power/pm_qos_resume_latency_us"] {
            machine.file(&format!("{CPU}/{file}"), content);
        }
        machine.file("proc/stat", content);
        machine.file("proc/cpuinfo", content);
        let shown = machine.check();
        assert!(shown.contains("C1") && shown.contains("intel_idle"), "{content:?}: {shown}");
    }
}

#[test]
fn folders_in_place_of_files_and_files_in_place_of_folders() {
    let machine = Machine::with_cpus(2);
    fs::remove_file(machine.at(&format!("{CPU}/online"))).unwrap();
    fs::create_dir(machine.at(&format!("{CPU}/online"))).unwrap();
    machine.file(&format!("{CPU}/cpufreq"), "a file");
    machine.file("sys/class", "a file");
    let shown = machine.check();
    assert!(shown.contains("intel_idle"), "{shown}");
}

#[test]
fn an_empty_tree_and_no_tree_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let said = run(&["inspect", "--sysroot", path]);
    assert_refused(&said, 4, path, "neither sys/ nor proc/", "--sysroot wants a folder");
    let said = run(&["doctor", "--no-report", "--sysroot", "/no/such/tree"]);
    assert_refused(&said, 4, "/no/such/tree", "No such file", "--sysroot wants a folder");
    let said = run(&["inspect", "--sysroot", "/proc/version"]);
    assert_refused(&said, 4, "/proc/version", "Not a directory", "--sysroot wants a folder");
    let empty = Machine::empty();
    let shown = empty.check();
    assert!(shown.contains("CPUs online: unknown"), "{shown}");
}

#[test]
fn masked_sys_leaves_what_proc_says() {
    let machine = Machine::empty();
    fs::remove_dir(machine.at("sys")).unwrap();
    machine.file("proc/cmdline", "quiet idle=poll\n");
    machine.file("proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: A CPU\n\nprocessor\t: 1\n");
    let shown = machine.check();
    assert!(shown.contains("idle=poll") && shown.contains("A CPU"), "{shown}");
}

#[test]
fn an_offline_cpu_is_said_and_not_missed() {
    let machine = Machine::with_cpus(4);
    machine.file(&format!("{CPU}/online"), "0-2\n");
    fs::remove_dir_all(machine.at(&format!("{CPU}/cpu3/cpuidle"))).unwrap();
    let shown = machine.check();
    assert!(shown.contains("CPUs online: 0-2; offline: 3"), "{shown}");
    assert!(shown.contains("290us"), "{shown}");
}

#[test]
fn a_single_cpu_is_a_machine() {
    let machine = Machine::with_cpus(1);
    machine.file(&format!("{CPU}/online"), "0\n");
    assert!(machine.check().contains("CPUs online: 0\n"));
}

#[test]
fn no_cpuidle_is_an_answer() {
    let machine = Machine::with_cpus(2);
    fs::remove_dir_all(machine.at(&format!("{CPU}/cpuidle"))).unwrap();
    (0..2).for_each(|cpu| fs::remove_dir_all(machine.at(&format!("{CPU}/cpu{cpu}/cpuidle"))).unwrap());
    machine.check();
    let file = host("bdwex0-nocpuidle");
    assert_eq!(run(&["doctor", "--no-report", "--host", file.to_str().unwrap()]).code, Some(0));
}

#[test]
fn recordings_that_are_none_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let good = fs::read_to_string(host("dell-latitude-5420-tgl")).unwrap();
    let bad_line = good.replacen(" = ", " ? ", 1);
    for (name, content, what, try_this) in [
        ("empty.host", &b""[..], "wakewatt-host 1", "wakewatt capture"),
        ("binary.host", &[0xff, 0, 1, 2], "not text", "wakewatt capture"),
        ("other.host", b"#!/bin/sh\n", "wakewatt-host 1", "wakewatt capture"),
        ("newer.host", b"wakewatt-host 2\n/x = 1\n", "format version 2", "Capture the host again"),
        ("line.host", bad_line.as_bytes(), "line ", "wakewatt capture"),
    ] {
        let file = dir.path().join(name);
        fs::write(&file, content).unwrap();
        let file = file.to_str().unwrap();
        assert_refused(&run(&["inspect", "--host", file]), 4, name, what, try_this);
        assert_refused(&run(&["doctor", "--no-report", "--host", file]), 4, name, what, try_this);
        assert_refused(&run(&["compare", file, file]), 4, name, what, try_this);
    }
    let folder = dir.path().to_str().unwrap();
    assert_refused(&run(&["inspect", "--host", folder]), 4, folder, "not a file", "--sysroot");
    assert_refused(&run(&["inspect", "--host", "/no/such.host"]), 4, "/no/such.host", "No such file", "capture");
}

/// Every option that takes a file: a pipe, a device, a folder, a sparse and a huge file are refused, none is waited for.
#[test]
fn no_option_takes_what_is_not_a_plain_file() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, at("pipe.toml"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    fs::create_dir(at("folder.toml")).unwrap();
    // Three times as long as the longest file any option takes; and one that is short enough, and all hole.
    fs::File::create(at("huge.toml")).unwrap().set_len(3 << 30).unwrap();
    fs::File::create(at("sparse.toml")).unwrap().set_len(40_000).unwrap();
    symlink("/dev/zero", at("device.toml")).unwrap();
    // Words before the file, and after it.
    let options: &[(&[&str], &[&str])] = &[
        (&["inspect", "--host"], &[]),
        (&["doctor", "--no-report", "--host"], &[]),
        (&["capture", "-o", "-", "--host"], &[]),
        (&["report"], &["--json"]),
        (&["compare"], &["live"]),
        (&["watch", "--once", "--play"], &[]),
        (&["tune", "plan"], &[]),
        (&["experiment"], &["--dry-run"]),
        (&["load", "shop", "--clients", "1", "--url", "http://127.0.0.1:1/", "--mix"], &[]),
        (&["trace", "info"], &[]),
        (
            &["measure", "power", "--redfish", "https://127.0.0.1:1", "--redfish-user", "x", "--redfish-password-file"],
            &[],
        ),
    ];
    let mut n_checked = 0;
    for (before, after) in options {
        for what in ["pipe", "folder", "huge", "sparse", "device"] {
            // A folder is a tree or a recording to these.
            let is_taken = what == "folder" && ["compare", "watch"].contains(&before[0]);
            if is_taken {
                continue;
            }
            let file = at(&format!("{what}.toml"));
            let said = run(&[*before, &[file.as_str()], *after].concat());
            assert_eq!(said.code, Some(4), "{before:?} {what}: {said:?}");
            assert!(said.err.contains(&format!("{what}.toml")), "{before:?} {what}: {said:?}");
            assert_eq!(said.err.trim_end().lines().count(), 1, "{before:?} {what}: {}", said.err);
            n_checked += 1;
        }
    }
    assert_eq!(n_checked, options.len() * 5 - 2);
}

/// The size bombs of `wakewatt-readers/tests/bombs.rs`, through the program.
#[test]
fn a_line_that_stands_for_65_536_states_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bomb.host");
    fs::write(&file, format!("wakewatt-host 1\n/{CPU}/online = 0\n/{CPU}/cpu0/cpuidle/ list state{{0-65535}}\n"))
        .unwrap();
    for command in [&["inspect", "--host"][..], &["doctor", "--no-report", "--host"]] {
        let said = run(&[command, &[file.to_str().unwrap()]].concat());
        assert_refused(&said, 4, "bomb.host", "line 3: more entries", "capture");
    }
}

/// Cut at the end of a line, a recording is read, and every heading says that it may be cut.
#[test]
fn a_recording_without_its_end_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cut.host");
    let good = fs::read_to_string(host("vm-haltpoll-2cpu")).unwrap();
    fs::write(&file, good.strip_suffix("# end\n").unwrap()).unwrap();
    let said = run(&["inspect", "--host", file.to_str().unwrap()]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("no end mark; may be cut"), "{}", said.out);
    fs::write(&file, good).unwrap();
    let whole = run(&["inspect", "--host", file.to_str().unwrap()]);
    assert!(!whole.out.contains("may be cut"), "{}", whole.out);
    let captured = run(&["capture", "-o", "-", "--host", file.to_str().unwrap()]);
    assert!(captured.out.ends_with("# end\n"), "{}", captured.out);
}

/// Cut anywhere, a recording is either refused with the line, or read as far as it goes; never a panic.
#[test]
fn a_recording_cut_anywhere() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cut.host");
    let good = fs::read(host("vm-haltpoll-2cpu")).unwrap();
    let mut n_refused = 0;
    for part in 1..16 {
        fs::write(&file, &good[..good.len() * part / 16]).unwrap();
        let said = run(&["inspect", "--host", file.to_str().unwrap()]);
        match said.code {
            Some(0) => assert!(said.out.contains("CPUs online"), "{said:?}"),
            _ => {
                n_refused += 1;
                assert_refused(&said, 4, "cut.host", "line ", "wakewatt capture");
            }
        }
    }
    println!("{n_refused} of 15 cuts were refused");
}

fn copy_for(nobody: &ForNobody, machine: &Machine) -> PathBuf {
    let tree = nobody.folder().join("tree");
    copy(machine.dir.path(), &tree);
    tree
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)
        } else {
            let _ = fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn files_that_may_not_be_read_are_denied_not_absent() {
    let nobody = ForNobody::new();
    let tree = copy_for(&nobody, &Machine::with_cpus(2));
    let mode = |path: PathBuf, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    mode(tree.join(CPU).join("cpuidle/current_driver"), 0);
    mode(tree.join(CPU).join("cpu0/cpuidle/state2/latency"), 0);
    mode(tree.join("proc"), 0);
    let path = tree.to_str().unwrap();
    let shown = said(&mut nobody.command(&["inspect", "--sysroot", path]));
    assert_eq!((shown.code, shown.err.as_str()), (Some(0), ""));
    assert!(shown.out.contains("current_driver: permission denied"), "{}", shown.out);
    assert!(shown.out.contains("denied") && shown.out.contains("C1"), "{}", shown.out);
    assert_eq!(said(&mut nobody.command(&["doctor", "--no-report", "--sysroot", path])).code, Some(0));
    // A recording, and a tree, that may not be opened at all.
    let file = nobody.folder().join("closed.host");
    fs::write(&file, "wakewatt-host 1\n").unwrap();
    mode(file.clone(), 0);
    let refused = said(&mut nobody.command(&["inspect", "--host", file.to_str().unwrap()]));
    assert_refused(&refused, 4, "closed.host", "Permission denied", "");
    mode(tree.join("proc"), 0o755);
    mode(tree.clone(), 0);
    let refused = said(&mut nobody.command(&["inspect", "--sysroot", path]));
    assert_refused(&refused, 4, path, "ermission denied", "--sysroot");
    mode(tree, 0o755);
    assert!(is_root() || rustix::process::geteuid().as_raw() != 0);
}

/// A machine with 512 CPUs, written down as one line per fact.
fn big_host() -> String {
    let cpu = "/sys/devices/system/cpu";
    let mut text = String::from("wakewatt-host 1\n");
    let mut line = |path: &str, value: &str| text.push_str(&format!("{path} = {value}\n"));
    line(&format!("{cpu}/online"), "0-511");
    line(&format!("{cpu}/present"), "0-511");
    line(&format!("{cpu}/cpuidle/current_driver"), "acpi_idle");
    for (state, name, latency, residency) in [(0, "POLL", 0, 0), (1, "C1", 1, 2), (2, "C2", 800, 1600)] {
        let folder = format!("{cpu}/cpu{{0-511}}/cpuidle/state{state}");
        line(&format!("{folder}/name"), name);
        line(&format!("{folder}/latency"), &latency.to_string());
        line(&format!("{folder}/residency"), &residency.to_string());
        line(&format!("{folder}/disable"), "0");
    }
    line(&format!("{cpu}/cpu{{0-510}}/power/pm_qos_resume_latency_us"), "0");
    line(&format!("{cpu}/cpu{{511}}/power/pm_qos_resume_latency_us"), "n/a");
    for core in 0..256u32 {
        let siblings = format!("{core},{}", core + 256);
        for thread in [core, core + 256] {
            line(&format!("{cpu}/cpu{thread}/topology/thread_siblings_list"), &siblings);
        }
    }
    let usage: Vec<String> = (0..512u32).map(|n| (n * 7919 % 10_007).to_string()).collect();
    text.push_str(&format!("{cpu}/cpu{{0-511}}/cpuidle/state2/usage each {}\n# end\n", usage.join(" ")));
    text
}

#[test]
fn five_hundred_and_twelve_cpus_fit_a_screen() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("big.host");
    fs::write(&file, big_host()).unwrap();
    let file = file.to_str().unwrap();
    let said = run(&["inspect", "idle", "qos", "topology", "--host", file]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    assert!(said.out.contains("CPUs online: 0-511") && said.out.contains("800us"), "{}", said.out);
    assert!(said.out.contains("on 511"), "{}", said.out);
    assert!(said.out.lines().count() < 60, "{}", said.out);
    let doctor = run(&["doctor", "--no-report", "--host", file]);
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    let compare = run(&["compare", file, file]);
    assert!(compare.out.contains("No difference"), "{}", compare.out);
}

/// How each command with `--host` is asked about a recorded host.
const WITH_A_HOST: &[(&str, &[&str])] = &[
    ("doctor", &["doctor", "--read-only", "--no-report"]),
    ("inspect", &["inspect"]),
    ("explain", &["explain", "C2"]),
    ("capture", &["capture", "-o", "again.host"]),
    ("watch", &["watch", "--once"]),
    ("agent", &["agent", "--once"]),
    ("tune knobs", &["tune", "knobs"]),
    ("tune plan", &["tune", "plan", "latency"]),
    ("bios verify", &["bios", "verify", "--from", "."]),
    ("experiment", &["experiment", "idle"]),
];
/// What a command answers that has nothing to read there: usage, or not possible here.
const NOT_OF_A_HOST: &[&str] = &["bios verify", "experiment"];

/// Each of them ends by itself, soon, with an answer or a refusal in words.
#[test]
fn five_hundred_and_twelve_cpus_pass_through_every_command() {
    let reference = fs::read_to_string(fixtures().join("../docs/ref/cli.md")).unwrap();
    let mut taking = Vec::new();
    let mut heading = "";
    for line in reference.lines() {
        if let Some(name) = line.strip_prefix("## wakewatt ") {
            heading = name;
        } else if line.trim() == "--host <FILE>" {
            taking.push(heading);
        }
    }
    let mut known: Vec<&str> = WITH_A_HOST.iter().map(|(command, _)| *command).collect();
    known.sort_unstable();
    taking.sort_unstable();
    assert_eq!(taking, known, "a command with --host is not tried here");
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("big.host"), big_host()).unwrap();
    for (name, args) in WITH_A_HOST {
        let start = std::time::Instant::now();
        let mut all = args.to_vec();
        all.extend(["--host", "big.host"]);
        let said = said(wakewatt(&all).current_dir(dir.path()));
        let is_answered = said.code == Some(0) || (NOT_OF_A_HOST.contains(name) && !said.err.is_empty());
        assert!(is_answered && !said.err.contains("panicked"), "{name}: {said:?}");
        // In seconds, also of an unoptimised program beside other work; per CPU squared it would take minutes.
        assert!(start.elapsed().as_secs() < 60, "{name}: {:?}", start.elapsed());
    }
    let compare = said(wakewatt(&["compare", "big.host", "again.host"]).current_dir(dir.path()));
    assert!(compare.code == Some(0) && compare.out.contains("No difference"), "{compare:?}");
}

/// A limit of open files (ulimit -n) leaves gaps with their reason, or an error in words; never a panic, and never a file that
/// is there called absent.
#[test]
fn few_open_files_are_said() {
    let commands: &[&[&str]] = &[
        &["inspect"],
        &["doctor", "--read-only", "--no-report"],
        &["explain", "C1"],
        &["tune", "plan", "latency"],
        &["capture", "-o", "x.host"],
        &["watch", "--once"],
        &["agent", "--once"],
    ];
    let dir = tempfile::tempdir().unwrap();
    let path = "/sys/devices/system/cpu/online";
    assert!(Path::new(path).exists());
    for n in [3, 4, 5, 6, 8, 12, 24] {
        // Those that look for a second are tried with fewer limits.
        for args in commands.iter().filter(|args| matches!(n, 4 | 8) || !matches!(args[0], "watch" | "agent")) {
            let mut shell = std::process::Command::new("sh");
            shell.args(["-c", &format!("ulimit -n {n} && exec \"$0\" \"$@\""), PROGRAM]).args(*args);
            let said = said(shell.current_dir(dir.path()));
            // 127: the program itself was not loaded.
            let known = [0, 1, 2, 3, 4, 5, 6, 7, 8, 127];
            assert!(said.code.is_some_and(|code| known.contains(&code)), "{args:?} with {n} files: {said:?}");
            let all = said.out.clone() + &said.err;
            assert!(!all.contains("panicked"), "{args:?} with {n} files: {said:?}");
            assert!(!all.contains(&format!("{path}: no such file")), "{args:?} with {n} files: {said:?}");
            assert!(said.code == Some(0) || !said.err.is_empty(), "{args:?} with {n} files says nothing: {said:?}");
        }
    }
}
