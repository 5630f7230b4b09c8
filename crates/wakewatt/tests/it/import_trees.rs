//! Whole support archives: sosreport, supportconfig, must-gather, made here as their documentation says they look, with links, odd names
//! and other hosts beside. The same facts must come out of the folder and of every way to pack it, and never anything from outside.

use crate::tool::{Said, run};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use wakewatt_testing::{Lacks, skipped};

/// A machine as its kernel's files say: two CPUs with two idle states, limited at boot.
fn kernel(limit: &str) -> Vec<(String, String)> {
    let cpu = "sys/devices/system/cpu";
    let mut all = vec![
        ("proc/cmdline".to_string(), format!("BOOT_IMAGE=/vmlinuz {limit}")),
        ("proc/version".into(), "Linux version 5.14.0-427.el9.x86_64 (mock@x) (gcc) #1 SMP".into()),
        ("proc/sys/kernel/osrelease".into(), "5.14.0-427.el9.x86_64".into()),
        ("sys/module/intel_idle/parameters/max_cstate".into(), "9".into()),
        (format!("{cpu}/online"), "0-1".into()),
        (format!("{cpu}/present"), "0-1".into()),
        (format!("{cpu}/possible"), "0-1".into()),
        (format!("{cpu}/cpuidle/current_driver"), "intel_idle".into()),
        (format!("{cpu}/cpuidle/current_governor"), "menu".into()),
    ];
    for n in 0..2 {
        for (state, name, latency_us, residency_us) in [(0, "POLL", 0, 0), (1, "C1", 2, 2), (2, "C6", 133, 600)] {
            let folder = format!("{cpu}/cpu{n}/cpuidle/state{state}");
            let numbers =
                [("latency", latency_us), ("residency", residency_us), ("usage", 5), ("time", 900), ("disable", 0)];
            all.push((format!("{folder}/name"), name.into()));
            all.extend(numbers.map(|(file, value)| (format!("{folder}/{file}"), value.to_string())));
        }
    }
    all
}

fn write(root: &Path, files: impl IntoIterator<Item = (String, String)>) {
    for (name, text) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text + "\n").unwrap();
    }
}

const DMI: &str = "# dmidecode 3.3\nHandle 0x1100, DMI type 17, 84 bytes\nMemory Device\n\tSize: 16 GB\n\tLocator: A1\n\tType: DDR4\n\tSpeed: 2933 MT/s\n\tConfigured Memory Speed: 2100 MT/s\n";

/// As sos 4 lays it out: copies, outputs by the command's name with blanks as `_`, links at the top, reports about itself.
fn sosreport(root: &Path, limit: &str) {
    write(root, kernel(limit));
    let outputs = [
        ("sos_commands/hardware/dmidecode", DMI),
        ("sos_commands/host/uptime", " 10:12:01 up 41 days,  2:12,  1 user,  load average: 3.31, 2.11, 1.00"),
        (
            "sos_commands/kernel/uname_-a",
            "Linux db7 5.14.0-427.el9.x86_64 #1 SMP PREEMPT_DYNAMIC Mon Jan 1 x86_64 x86_64 x86_64 GNU/Linux",
        ),
        (
            "sos_commands/kernel/dmesg_-T",
            "[Mon Jan  1 10:00:00 2024] intel_idle: MWAIT substates: 0x2020\n[Mon Jan  1 10:00:01 2024] usb 1-1: new device",
        ),
        ("sos_commands/tuned/tuned-adm_active", "Current active profile: balanced"),
        (
            "sos_commands/logs/journalctl_--no-pager_--boot",
            "Jan 01 10:00:00 db7 sshd[1]: hello\nJan 01 10:00:00 db7 kernel: usb 1-1: gone",
        ),
        (
            "sos_commands/numa/numactl_--hardware",
            "available: 1 nodes (0)\nnode 0 cpus: 0 1\nnode 0 size: 64000 MB\nnode 0 free: 100 MB",
        ),
        ("sos_reports/sos.txt", "what sos itself wrote"),
        ("version.txt", "sosreport: 4.6.0"),
        ("etc/shadow", "root:secret"),
        ("proc/1234/environ", "PASSWORD=secret"),
        ("sos_commands/networking/ip_-d_address", "secret 10.1.2.3"),
    ];
    write(root, outputs.map(|(name, text)| (name.to_string(), text.to_string())));
    let sysctls: String = (0..60).map(|n| format!("kernel.of_no_use_{n} = {n}\n")).collect();
    write(root, [("sos_commands/kernel/sysctl_-a".to_string(), sysctls + "kernel.numa_balancing = 1")]);
    symlink("sos_commands/hardware/dmidecode", root.join("dmidecode")).unwrap();
    symlink("/etc/passwd", root.join("proc/loadavg")).unwrap();
    symlink("../../../../../../../../etc", root.join("sys/module/etc")).unwrap();
    symlink(".", root.join("sys/devices/system/cpu/cpu0/loop")).unwrap();
    write(root, [(format!("sys/module/{}/parameters/x", "m".repeat(120)), "1".to_string())]);
    write(root, [("sos_commands/kernel/odd\nname \u{1b}[31m_dmesg".to_string(), "[ 1.0] usb: x".to_string())]);
    let bytes: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"sys/module/\xff\xfe");
    fs::write(root.join(bytes), "x").unwrap();
    // Large, and hardly there.
    fs::File::create(root.join("proc/stat")).unwrap().set_len(2 << 20).unwrap();
}

/// Packs a folder of `dir`; false where there is no such program.
fn packed(dir: &Path, folder: &str, file: &Path, flags: &[&str]) -> bool {
    let done = Command::new("tar").arg("-C").arg(dir).args(flags).arg("-cf").arg(file).arg(folder).output();
    done.is_ok_and(|output| output.status.success())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn fine(said: Said) -> String {
    assert_eq!(said.code, Some(0), "{} {}", said.out, said.err);
    said.out
}

/// What is said of the host, without the name of where it came from.
fn facts(what: &Path, more: &[&str]) -> String {
    let topics = ["inspect", "idle", "boot", "dimms", "kernel", "memory", "topology", "--from"];
    let out = fine(run(&[&topics[..], &[text(what)], more].concat()));
    out.lines().filter(|line| !line.contains("imported from")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_sosreport_says_the_same_however_it_is_packed() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("sosreport-db7-2024-01-01-abc");
    sosreport(&root, "processor.max_cstate=1");
    let of_folder = facts(&root, &[]);
    assert!(
        of_folder.contains("133us") && of_folder.contains("2100") && of_folder.contains("processor.max_cstate=1"),
        "{of_folder}"
    );
    let mut n = 0;
    for (ending, flags) in [
        ("pax.tar.xz", ["--format=pax", "-J"]),
        ("gnu.tar.gz", ["--format=gnu", "-z"]),
        ("sparse.tar.gz", ["-S", "-z"]),
        ("plain.tar", ["--format=pax", "--no-xattrs"]),
    ] {
        let file = dir.path().join(format!("sosreport-db7-{ending}"));
        if !packed(dir.path(), "sosreport-db7-2024-01-01-abc", &file, &flags) {
            skipped(
                "import_trees::a_sosreport_says_the_same_however_it_is_packed",
                Lacks::Program("tar, gzip, xz"),
                ending,
            );
            continue;
        }
        n += 1;
        assert_eq!(facts(&file, &[]), of_folder, "{ending}");
        let said = fine(run(&["import", text(&file), "--json"]));
        assert!(!said.contains("secret") && !said.contains("root:x") && !said.contains('\u{1b}'), "{said}");
        let shown = fine(run(&["import", text(&file)]));
        assert!(!shown.contains('\u{1b}') && shown.contains("load average, 1 min"), "{shown}");
        // Cut in its middle: what stood before it is kept, and the rest is said to be missing.
        let bytes = fs::read(&file).unwrap();
        let half = dir.path().join(format!("half-{ending}"));
        fs::write(&half, &bytes[..bytes.len() / 2]).unwrap();
        let said = run(&["import", text(&half), "--json"]);
        assert!(said.code != Some(101) && (said.out + &said.err).contains("half-"), "{ending}");
    }
    println!("{n} ways to pack it");
}

#[test]
fn supportconfig_is_cut_at_its_rules() {
    let dir = tempfile::tempdir().unwrap();
    let rule = |what: &str, name: &str, text: &str| format!("#==[ {what} ]{}#\n# {name}\n{text}\n\n", "=".repeat(30));
    let hardware = rule("Command", "/usr/sbin/dmidecode", DMI)
        + &rule("Command", "/usr/bin/lscpu", "CPU(s): 2\nOn-line CPU(s) list: 0,1");
    let boot = rule("Configuration File", "/proc/cmdline", "BOOT_IMAGE=/vmlinuz processor.max_cstate=1")
        + &rule("Log File", "/var/log/boot.msg", "something else")
        + &rule("Command", "/bin/dmesg -T", "[Mon Jan  1 10:00:00 2024] intel_idle: MWAIT substates: 0x2020");
    let env = rule("Configuration File", "/etc/sysctl.conf", "kernel.numa_balancing = 0")
        + &rule("Command", "/sbin/sysctl -a", "kernel.numa_balancing = 1\nkernel.pid_max = 4194304");
    for host in ["db7", "db8"] {
        let files = [("hardware.txt", &hardware), ("boot.txt", &boot), ("env.txt", &env)];
        write(dir.path(), files.map(|(name, text)| (format!("scc_{host}_240101_1000/{name}"), text.clone())));
    }
    let one = dir.path().join("scc_db7_240101_1000");
    let said = facts(&one, &[]);
    assert!(said.contains("2100") && said.contains("processor.max_cstate=1"), "{said}");
    let balancing = fine(run(&["inspect", "--from", text(&one)]));
    assert!(
        balancing.lines().any(|line| line.contains("NUMA balancing") && line.trim_end().ends_with("on")),
        "{balancing}"
    );
    let both = run(&["import", text(dir.path())]);
    assert!(both.code == Some(2) && both.err.contains("2 hosts (scc_db7_240101_1000, scc_db8_"), "{}", both.err);
    assert_eq!(facts(dir.path(), &["--from-host", "db7"]), said);
    // Older ones come packed with bzip2.
    let old = dir.path().join("nts_db7.tbz");
    fs::write(&old, b"BZh91AY&SY and so on").unwrap();
    let said = run(&["import", text(&old)]);
    assert!(said.code == Some(4) && said.err.contains("bunzip2"), "{}", said.err);
}

#[test]
fn a_must_gather_whole_gives_each_of_its_nodes() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("must-gather.local.1/quay-io-release-sha256-1");
    let text_of = |name: &str, text: &str| (name.to_string(), text.to_string());
    write(
        &image,
        [
            text_of("cluster-scoped-resources/core/nodes/w-1.yaml", "kind: Node"),
            text_of("version", "openshift/must-gather"),
        ],
    );
    for (node, limit) in [("w-1", "intel_idle.max_cstate=1"), ("w-2", "idle=poll")] {
        let of_node = image.join("nodes").join(node);
        let said = [
            text_of("lscpu", "CPU(s): 2\nOn-line CPU(s) list: 0,1\nModel name: Some Processor"),
            text_of("proc_cmdline", &format!("BOOT_IMAGE=/vmlinuz {limit}")),
            text_of("dmesg", "[    1.0] intel_idle: MWAIT substates: 0x2020"),
        ];
        write(&of_node, said);
        // What its kernel said, packed apart; of one node a report of sos as well.
        write(&dir.path().join("sysinfo"), kernel(limit));
        assert!(packed(dir.path(), "sysinfo", &of_node.join("sysinfo.tgz"), &["-z"]) || !has_tar());
        if node == "w-2" {
            sosreport(&dir.path().join("sosreport-w-2"), limit);
            packed(dir.path(), "sosreport-w-2", &of_node.join("sosreport-w-2.tar.xz"), &["-J"]);
        }
    }
    if !has_tar() {
        skipped("import_trees::a_must_gather_whole_gives_each_of_its_nodes", Lacks::Program("tar"), "no archives");
        return;
    }
    let whole = dir.path().join("must-gather.tar.gz");
    assert!(packed(dir.path(), "must-gather.local.1", &whole, &["-z"]));
    for what in [dir.path().join("must-gather.local.1"), whole] {
        let said = run(&["import", text(&what)]);
        assert!(
            said.code == Some(2) && said.err.contains("2 hosts") && said.err.contains("nodes/w-1, "),
            "{}",
            said.err
        );
        let one = facts(&what, &["--from-host", "w-1"]);
        assert!(
            one.contains("intel_idle.max_cstate=1") && one.contains("133us") && !one.contains("idle=poll"),
            "{one}"
        );
        let other = facts(&what, &["--from-host", "nodes/w-2"]);
        assert!(other.contains("idle=poll") && other.contains("2100") && !other.contains("max_cstate=1"), "{other}");
        let none = run(&["import", text(&what), "--from-host", "w-9"]);
        assert!(none.code == Some(2) && none.err.contains("none of these hosts is called so"), "{}", none.err);
    }
}

fn has_tar() -> bool {
    Command::new("tar").arg("--version").output().is_ok_and(|output| output.status.success())
}

#[test]
fn a_kept_run_names_the_imported_lines_and_no_folders() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("of-eve");
    let lines = "$ cat /proc/cmdline\nBOOT_IMAGE=/vmlinuz processor.max_cstate=1\n$ dmesg\n[    1.3] intel_idle: MWAIT substates: 0x2020\n[    1.4] clocksource: Switched to clocksource hpet\n";
    write(&folder, [("terminal.txt".to_string(), lines.to_string())]);
    let (from, kept): (PathBuf, PathBuf) = (folder.join("terminal.txt"), dir.path().join("a.run"));
    let live = fine(run(&["doctor", "--from", text(&from), "--no-report", "--save", text(&kept), "--json"]));
    let shown = fine(run(&["report", text(&kept), "--json"]));
    let places = |document: &str| -> Vec<String> {
        let document: serde_json::Value = serde_json::from_str(document).unwrap();
        let all = document["rulings"].as_array().unwrap().iter().filter(|r| r["answer"] == "yes");
        let evidence =
            all.flat_map(|r| r["finding"]["evidence"].as_array().or(r["evidence"].as_array()).unwrap().clone());
        evidence.map(|basis| basis["path"].as_str().unwrap().to_string()).collect()
    };
    let (live, shown) = (places(&live), places(&shown));
    assert!(shown.iter().any(|place| place == "terminal.txt line 5"), "{shown:?}");
    assert_eq!(live.len(), shown.len());
    for (live, shown) in live.iter().zip(&shown).filter(|(live, _)| live.contains(" line ")) {
        assert!(shown.starts_with("terminal.txt line ") && live.contains(&format!("{shown}: ")), "{live} {shown}");
    }
    assert!(!fs::read_to_string(&kept).unwrap().contains("of-eve"));
}
