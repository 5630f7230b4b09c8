//! `import` and `--from`: texts of other tools as a host, findings that name the imported line, archives, and what ends with which code.
//! Every text here was written for this test after the tools' own documentation.

use crate::schemas::{assert_valid, validator};
use crate::tool::{run, said, wakewatt};
use std::path::Path;
use wakewatt_testing::{Lacks, skipped};

const DMI: &str = "# dmidecode 3.3\nHandle 0x1100, DMI type 17, 84 bytes\nMemory Device\n\tSize: 16 GB\n\tForm Factor: DIMM\n\tLocator: A1\n\tType: DDR4\n\tSpeed: 2933 MT/s\n\
    \tSerial Number: 00112233\n\tConfigured Memory Speed: 2100 MT/s\n";
/// What the person of the first case looked at: the kernel's log, its parameter, governors.
const TERMINAL: &str = "root@worker7:~# dmesg | grep -i intel_idle\n[    1.311870] intel_idle: MWAIT substates: 0x2020\n[    1.311871] intel_idle: v0.5.1 model 0x55\n\
    root@worker7:~# cat /proc/cmdline\nBOOT_IMAGE=/vmlinuz processor.max_cstate=1\nroot@worker7:~# cpupower -c all idle-info\nCPUidle driver: intel_idle\nCPUidle governor: menu\nanalyzing CPU 0:\n\n\
    Number of idle states: 4\nAvailable idle states: POLL C1 C1E C6\nPOLL:\nFlags/Description: CPUIDLE CORE POLL IDLE\nLatency: 0\nUsage: 12\nDuration: 340\nC1:\nFlags/Description: MWAIT 0x00\n\
    Latency: 2\nUsage: 99\nDuration: 1234\nC1E:\nFlags/Description: MWAIT 0x01\nLatency: 10\nUsage: 9\nDuration: 134\nC6:\nFlags/Description: MWAIT 0x20\nLatency: 133\nUsage: 50000\nDuration: 77000000\n";

fn file(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_string()
}

/// A study's pair of recordings: 200 wake-ups of one task onto CPU 9 in state 2, whose median falls between two values.
fn study(dir: &Path) -> (String, String, f64) {
    let (mut caller, mut callee, mut all) = (String::new(), String::new(), Vec::new());
    for n in 0..200u64 {
        let at_ns = 1_000_000_000_000 + n * 10_000_000;
        let took_ns = 20_000 + (n * 7919) % 200 * 11;
        let time = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        callee +=
            &format!("         swapper     0 [009] {}: power:cpu_idle: state=2 cpu_id=9\n", time(at_ns - 4_000_000));
        caller += &format!(
            "       cond_wait 10177 [008] {}: sched:sched_waking: comm=cond_wait pid=10181 prio=120 target_cpu=009\n",
            time(at_ns)
        );
        caller += &format!(
            "       cond_wait 10177 [008] {}: sched:sched_waking: comm=kworker/8:1 pid=875 prio=120 target_cpu=008\n",
            time(at_ns + 5_000)
        );
        callee += &format!(
            "         swapper     0 [009] {}: power:cpu_idle: state=4294967295 cpu_id=9\n",
            time(at_ns + took_ns)
        );
        all.push(took_ns);
    }
    all.sort_unstable();
    (file(dir, "caller.txt", &caller), file(dir, "callee.txt", &callee), (all[99] + all[100]) as f64 / 2.0)
}

#[test]
fn a_terminal_becomes_a_host_and_findings_name_its_lines() {
    let dir = tempfile::tempdir().unwrap();
    let (terminal, dmi) = (file(dir.path(), "terminal.txt", TERMINAL), file(dir.path(), "dimms.txt", DMI));
    let said = run(&["import", &terminal, &dmi]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.out.contains("cpupower idle-info (lines ") && said.out.contains("kernel log (lines 2-3)"),
        "{}",
        said.out
    );
    let doctor = run(&["doctor", "--from", &terminal, &dmi, "--no-report", "--json"]);
    assert_eq!(doctor.code, Some(0), "{}", doctor.err);
    let document: serde_json::Value = serde_json::from_str(&doctor.out).unwrap();
    let findings = document["rulings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|r| r["answer"] == "yes")
        .map(|r| r.to_string())
        .collect::<Vec<_>>();
    let of =
        |rule: &str| findings.iter().find(|f| f.contains(rule)).unwrap_or_else(|| panic!("no {rule} in {findings:?}"));
    assert!(
        of("rule.dimm-below-rated").contains("dimms.txt line 10: Configured Memory Speed: 2100 MT/s"),
        "{}",
        of("rule.dimm-below-rated")
    );
    assert!(of("rule.processor-max-cstate-ignored").contains("terminal.txt line 5: BOOT_IMAGE"), "{findings:?}");
    assert!(of("rule.deep-idle-vs-latency").contains("terminal.txt line"), "{findings:?}");
    // What nobody said is not held against the machine.
    assert!(
        !findings.iter().any(|f| f.contains("rule.no-idle-driver") || f.contains("rule.container-masked")),
        "{findings:?}"
    );
}

#[test]
fn every_reading_command_takes_texts_and_the_kept_host_says_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let terminal = file(dir.path(), "terminal.txt", TERMINAL);
    let host = dir.path().join("db7.host").to_str().unwrap().to_string();
    let said = run(&["import", &terminal, "-o", &host]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let (from, kept) = (run(&["inspect", "idle", "--from", &terminal]), run(&["inspect", "idle", "--host", &host]));
    assert!(from.out.contains("133us") && from.out.contains("intel_idle"), "{}", from.out);
    let rows = |text: &str| text.lines().filter(|l| l.starts_with(' ')).map(str::to_string).collect::<Vec<_>>();
    assert_eq!(rows(&from.out), rows(&kept.out));
    assert!(run(&["explain", "C6", "--from", &terminal]).out.contains("133us"));
    assert!(run(&["explain", "C6", "--from", &host]).out.contains("133us"), "a .host file is one here too");
}

/// What turns, measures or records this machine takes no other; `-o` names a place that cannot be, so that nothing could begin here
/// if it did.
#[test]
fn another_machine_is_never_taken_for_this_one() {
    let dir = tempfile::tempdir().unwrap();
    let terminal = file(dir.path(), "terminal.txt", TERMINAL);
    let root = dir.path().to_str().unwrap();
    for other in [["--from", &terminal], ["--host", &terminal], ["--sysroot", root]] {
        let said = run(&[&["experiment", "idle", "-o", "/nonexist/x.html"], &other[..]].concat());
        assert_eq!(said.code, Some(2), "{other:?}: {}", said.err);
        assert!(said.err.contains("--from go with --dry-run"), "{}", said.err);
        for about in [&["doctor", "--preflight"][..], &["watch", "--once", "--trace"]] {
            let said = run(&[about, &other[..]].concat());
            assert!(said.code == Some(2) && said.err.contains("cannot be used with"), "{about:?}: {}", said.err);
        }
    }
    let lscpu =
        file(dir.path(), "lscpu.txt", "CPU(s): 2\nOn-line CPU(s) list: 0,1\nVendor ID: GenuineIntel\nModel name: X\n");
    let watched = run(&["watch", "--once", "--from", &terminal, &lscpu]);
    assert_eq!(watched.code, Some(0), "{}", watched.err);
    assert!(watched.out.contains("host imported from") && watched.out.contains("2 CPUs online"), "{}", watched.out);
    assert!(watched.out.contains("133us"), "{}", watched.out);
}

#[test]
fn standard_input_is_a_text_and_evidence_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let dmi = file(dir.path(), "dimms.txt", DMI);
    let piped = |args: &[&str]| said(wakewatt(args).stdin(std::fs::File::open(&dmi).unwrap()));
    let imported = piped(&["import", "-"]);
    assert_eq!(imported.code, Some(0), "{}", imported.err);
    assert!(imported.out.starts_with("standard input: 9 lines: "), "{}", imported.out);
    assert!(imported.out.contains("8 lines understood; facts, figures and events of them: 1"), "{}", imported.out);
    let judged = piped(&["doctor", "--no-report", "--json", "--from", "-"]);
    assert!(judged.out.contains("standard input line 10"), "{}", judged.out);
    assert_eq!(piped(&["import", "-", "-"]).code, Some(2), "it can be read once");
}

#[test]
fn medians_of_a_study_are_exact_and_replay_reads_the_recording() {
    let dir = tempfile::tempdir().unwrap();
    let (caller, callee, median_ns) = study(dir.path());
    let trace = dir.path().join("study.wtrace").to_str().unwrap().to_string();
    let said = run(&["import", &caller, &callee, "--wtrace", &trace, "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let document = assert_valid(&validator("import"), "import", &said.out);
    let rows = document["wakeups"].as_array().unwrap();
    let own = rows.iter().find(|r| r["task"] == "cond_wait" && r["cpu"] == 9).unwrap();
    assert_eq!(
        (own["n"].as_u64(), own["median_ns"].as_f64(), own["state"].as_str()),
        (Some(200), Some(median_ns), Some("state2"))
    );
    assert!(document["remarks"].to_string().contains("no sched_switch events"));
    let info = run(&["trace", "info", &trace]);
    assert!(info.code == Some(0) && info.out.contains("200"), "{} {}", info.out, info.err);
}

/// Recorded by the authors of arXiv 2108.00808; not part of this repository. With `WAKEWATT_STUDY` naming the folder of it, what they
/// printed must come out.
#[test]
fn the_medians_of_the_zen_2_study() {
    let Some(folder) = std::env::var_os("WAKEWATT_STUDY") else {
        skipped("import::the_medians_of_the_zen_2_study", Lacks::Here, "WAKEWATT_STUDY names no folder of the study");
        return;
    };
    for (who, cpu, want_ns) in [("local", 9, 21_440.0), ("remote_active", 40, 22_395.0)] {
        let mut files: Vec<String> =
            std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path().to_str().unwrap().to_string()).collect();
        files.retain(|name| name.contains(&format!(".{who}_call")));
        files.sort();
        let said = run(&["import", &files[0], &files[1], "--json"]);
        let document: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let own = document["wakeups"]
            .as_array()
            .unwrap()
            .iter()
            .find(|r| r["task"] == "cond_wait" && r["cpu"] == cpu)
            .unwrap();
        assert_eq!((own["n"].as_u64(), own["median_ns"].as_f64()), (Some(200), Some(want_ns)), "{who}");
    }
}

#[test]
fn nothing_understood_and_two_hosts_end_with_their_codes() {
    let dir = tempfile::tempdir().unwrap();
    let letter = file(dir.path(), "letter.txt", "Dear all,\nit is slow again.\n");
    let said = run(&["import", &letter]);
    assert_eq!(said.code, Some(4));
    assert!(
        said.out.contains("it is slow again") && said.err.contains("nothing was understood"),
        "{} {}",
        said.out,
        said.err
    );
    assert_eq!(run(&["doctor", "--from", &letter, "--no-report"]).code, Some(4));
    for host in ["a", "b"] {
        std::fs::create_dir_all(dir.path().join(format!("two/sosreport-{host}/proc"))).unwrap();
        std::fs::write(dir.path().join(format!("two/sosreport-{host}/proc/cmdline")), "quiet\n").unwrap();
    }
    let two = run(&["import", dir.path().join("two").to_str().unwrap()]);
    assert!(two.code == Some(2) && two.err.contains("2 hosts (sosreport-a, sosreport-b)"), "{} {}", two.out, two.err);
}

#[test]
fn a_sosreport_as_a_folder_and_as_an_archive() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("sosreport-db7");
    std::fs::create_dir_all(root.join("proc")).unwrap();
    std::fs::create_dir_all(root.join("sys/module/intel_idle/parameters")).unwrap();
    std::fs::create_dir_all(root.join("sos_commands/hardware")).unwrap();
    std::fs::create_dir_all(root.join("etc")).unwrap();
    std::fs::write(root.join("proc/cmdline"), "processor.max_cstate=1\n").unwrap();
    std::fs::write(root.join("sys/module/intel_idle/parameters/max_cstate"), "9\n").unwrap();
    std::fs::write(root.join("sos_commands/hardware/dmidecode"), DMI).unwrap();
    std::fs::write(root.join("etc/shadow"), "secret\n").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", root.join("proc/version")).unwrap();
    let check = |what: &str| {
        let said = run(&["import", what, "--json"]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert!(!said.out.contains("secret") && !said.out.contains("root:x"), "{}", said.out);
        let boot = run(&["inspect", "boot", "dimms", "--from", what]);
        assert!(boot.out.contains("processor.max_cstate=1") && boot.out.contains("2100"), "{}", boot.out);
    };
    check(root.to_str().unwrap());
    let archive = dir.path().join("sosreport-db7.tar.gz");
    let packed = std::process::Command::new("tar")
        .arg("-C")
        .arg(dir.path())
        .arg("-czf")
        .arg(&archive)
        .arg("sosreport-db7")
        .status();
    match packed {
        Ok(status) if status.success() => check(archive.to_str().unwrap()),
        _ => skipped(
            "import::a_sosreport_as_a_folder_and_as_an_archive",
            Lacks::Program("tar"),
            "archives cannot be made",
        ),
    }
}
