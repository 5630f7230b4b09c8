//! Canaries: a word that nobody else uses is put wherever the parsers look, and must not come out of a capture or a run file.
//!
//! What is read is found out by reading: a source adds the word to every file, listing and link that it is asked for,
//! and answers for the names it made up as it would for the machine's own. Only places where kernel, driver or firmware
//! write every word are left alone; they are listed here once more, on purpose.

use std::cell::Cell;
use wakewatt::report::sample;
use wakewatt_core::record::mask::{KEPT_ARGUMENTS, Names};
use wakewatt_core::record::run_file::RunFile;
use wakewatt_core::samples::not_done::NotDone;
use wakewatt_core::samples::traced_whose::TracedWhose;
use wakewatt_core::source::{Read, Source, Tree};
use wakewatt_host::recorded;
use wakewatt_lab::capture::captured;

const WORD: &str = "zqcanary";

/// Kept on purpose (record/mask/mod.rs): the kernel, the kind of machine, counters.
const LEFT_ALONE: &[&str] = &[
    "/sys/devices/",
    "/sys/class/hwmon",
    "/sys/class/thermal",
    "/sys/class/powercap",
    "/sys/class/nvme",
    "/sys/class/dmi/id",
    "/sys/bus/",
    "/sys/module/",
    "/sys/kernel/",
    "/sys/firmware",
    "/proc/stat",
    "/proc/cpuinfo",
    "/proc/uptime",
    "/proc/loadavg",
    "/proc/pressure/",
    "/proc/irq",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/version",
    "/dev/cpu",
    "ethtool:",
];

/// A machine whose owner named everything after a bird.
struct Salted {
    tree: Tree,
    n: Cell<usize>,
}

impl Salted {
    fn is_left_alone(path: &str) -> bool {
        let is_controls = path.starts_with("/sys/fs/cgroup/")
            && path.rsplit('/').next().is_some_and(|f| f.starts_with("cpu.") || f == "cgroup.controllers");
        LEFT_ALONE.iter().any(|root| path.starts_with(root)) || path == "/proc/sys/kernel" || is_controls
    }

    fn word(&self) -> String {
        self.n.set(self.n.get() + 1);
        format!("{WORD}{}", self.n.get())
    }

    /// The machine's own path behind a made-up one.
    fn own(path: &str) -> String {
        let mut own: Vec<&str> = Vec::new();
        for part in path.split('/') {
            let folder = own.join("/");
            own.push(match folder.as_str() {
                _ if !part.contains(WORD) => part,
                "/sys/class/net" => "eth0",
                "/sys/block" => "vda",
                _ => part,
            });
        }
        own.join("/").replace(&format!("ethtool:{WORD}"), "ethtool:eth0/")
    }
}

impl Source for Salted {
    fn read(&self, path: &str) -> Read<Vec<u8>> {
        let own = Self::own(path);
        if own.starts_with("/proc/4242/") {
            return Ok(format!("{}\n", self.word()).into_bytes());
        }
        if own.contains(WORD) && own.ends_with("cpu.max") {
            return Ok(b"50000 100000\n".to_vec());
        }
        let answer = self.tree.read(&own);
        if Self::is_left_alone(&own) {
            return answer;
        }
        let word = self.word();
        let mut text = String::from_utf8(answer.unwrap_or_default()).unwrap_or_default();
        match own.as_str() {
            "/proc/interrupts" => text.push_str(&format!(" 99:  0  7 PCI-MSI 7-edge {word}-TxRx-1\n")),
            "/proc/cmdline" => {
                text = format!("{} {word} {word}=1 root={word} idle={word} BOOT_IMAGE={word}\n", text.trim_end())
            }
            "/proc/version" => text = format!("Linux version 6.1.0 ({word}@{word}) (gcc 15) #1 SMP\n"),
            own if own.ends_with("/cgroup") => {
                text.push_str(&format!("7:name={word}:/docker/{word}\n0::/{word}.slice/x{word}\n"))
            }
            _ => text.push_str(&format!("{word} http://{word}/ {word}@{word} 10.9.8.7\n")),
        }
        Ok(text.into_bytes())
    }

    fn list(&self, path: &str) -> Read<Vec<String>> {
        let own = Self::own(path);
        let depth = own.matches(WORD).count();
        let answer = self.tree.list(&own);
        if path == "/proc" {
            return Ok(vec!["4242".into()]);
        }
        if own == "/proc/4242/fd" {
            return Ok(vec!["3".into(), "4".into()]);
        }
        if Self::is_left_alone(&own) || (own.contains("/cpu.") || own.contains("/cgroup.")) {
            return answer;
        }
        // Groups within groups, but not for ever.
        if own.starts_with("/sys/fs/cgroup") && depth > 1 {
            return Ok(vec!["cpu.max".into()]);
        }
        let mut names = answer.unwrap_or_default();
        names.extend([self.word(), format!("upper_{}", self.word()), format!("{}.scope", self.word())]);
        Ok(names)
    }

    fn link(&self, path: &str) -> Read<String> {
        match path {
            "/proc/4242/fd/3" => Ok("/dev/cpu_dma_latency".into()),
            _ => Ok(format!("../../{}/drivers/{}", self.word(), self.word())),
        }
    }

    fn msr(&self, cpu: u32, address: u32) -> Read<u64> {
        self.tree.msr(cpu, address)
    }

    fn origin(&self) -> String {
        self.word()
    }
}

#[test]
fn no_canary_survives_a_capture() {
    let salted = || Salted { tree: recorded::open(&crate::tool::host("vm-haltpoll-2cpu")).unwrap(), n: Cell::new(0) };
    let source = salted();
    let all = captured(&source, true).text;
    assert!(source.n.get() > 100 && all.matches(WORD).count() > 200, "{} canaries, few for a test", source.n.get());
    let made = captured(&salted(), false);
    for (at, line) in made.text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        assert!(!line.contains(WORD) && !line.contains("10.9.8.7"), "line {}: {line}", at + 1);
    }
    let said = made.names.said().unwrap();
    for kind in ["boot argument", "interface", "disk", "cgroup", "process", "device"] {
        assert!(said.contains(kind), "{kind} in {said}");
    }
}

/// Sentences of every made-up run, salted with everything that has the form of a secret.
fn salt(value: &mut serde_json::Value, n: &mut usize) {
    match value {
        serde_json::Value::String(text) if text.contains(' ') => {
            *n += 1;
            text.push_str(&format!(
                " /home/{WORD}/x, http://{WORD}url/y?{WORD}#{WORD} {WORD}@{WORD}.example {WORD}.example:80 (/dev/mapper/{WORD}) \
                 /sys/fs/cgroup/{WORD}/cpu.max /sys/class/net/{WORD}/mtu 10.9.8.7 enx0a0b0c0d0e0f --file=/srv/{WORD}"
            ));
        }
        serde_json::Value::Array(all) => all.iter_mut().for_each(|v| salt(v, n)),
        serde_json::Value::Object(all) => all.iter_mut().filter(|(k, _)| *k != "host").for_each(|(_, v)| salt(v, n)),
        _ => {}
    }
}

#[test]
fn no_canary_survives_a_run_file() {
    let mut n_meters = 0;
    for (name, report) in sample::all() {
        let run = RunFile::of(
            &report.evidence,
            "wakewatt-host 1\n".into(),
            Names::default(),
            "doctor",
            "2026-11-21T09:00:00Z".into(),
        )
        .unwrap();
        let mut value = serde_json::to_value(&run).unwrap();
        let mut n = 0;
        salt(&mut value, &mut n);
        value["schema"] = wakewatt_core::record::run_file::SCHEMA.into();
        let mut salted = RunFile::read(&value.to_string()).unwrap();
        for sample in &mut salted.samples.network {
            sample.peer = format!("{WORD}.example:7117");
        }
        for sample in &mut salted.samples.disk {
            sample.target.path = format!("/{WORD}/with blank {WORD}");
            sample.target.device = Some(WORD.into());
        }
        for load in &mut salted.samples.load {
            load.kind = wakewatt_core::samples::load::Kind::Command;
            load.title = format!("/opt/{WORD}/{WORD} --password {WORD}");
        }
        let of_load = salted.samples.load.iter_mut().flat_map(|l| &mut l.levels).filter_map(|l| l.energy.as_mut());
        let energy = salted.samples.energy.iter_mut().chain(of_load);
        for meter in energy.flat_map(|e| &mut e.meters) {
            n_meters += 1;
            meter.meter = "command".into();
            let line = format!("{WORD}_TOKEN={WORD}; echo 5 # {WORD}");
            meter.channels.iter_mut().for_each(|c| c.channel.name = line.clone());
            let totals = meter.total.iter_mut();
            totals.for_each(|t| (t.of, t.without) = (vec![line.clone()], vec![line.clone()]));
        }
        // A host is known only from its URL, which may come later, or from the resolver's words.
        for text in ["no address for {}bmc1: none", "{}bmc2.corp did not answer", "meter https://{}bmc2.corp/x"] {
            salted.chosen_because.push(text.replace("{}", WORD));
        }
        if let Some(trace) = &mut salted.samples.trace {
            trace.scope = TracedWhose::read(&format!("process 7 ({WORD}), process 8 ({WORD})"));
            trace.processes.iter_mut().for_each(|p| p.name = WORD.into());
        }
        // A path with blanks is known only from the member that holds it.
        if !salted.samples.disk.is_empty() {
            salted
                .not_done
                .push(NotDone::read(&format!("tcp to {WORD}.example:7117: refused; /{WORD}/with blank {WORD}: gone")));
        }
        let masked = salted.masked(&mut Names::default()).unwrap();
        let text = serde_json::to_string_pretty(&masked).unwrap();
        for line in text.lines() {
            assert!(!line.contains(WORD) && !line.contains("10.9.8.7") && !line.contains("0a0b0c"), "{name}: {line}");
        }
        assert!(n > 0 || name == "empty", "{name} has no sentence");
        // What is masked stays as it is.
        assert_eq!(masked.clone().masked(&mut Names::default()).unwrap(), masked, "{name}");
    }
    assert!(n_meters > 0, "no sample has a meter");
}

#[test]
fn every_boot_parameter_that_can_be_set_is_kept_in_captures() {
    for parameter in wakewatt_tune::boot::parameters::PARAMETERS {
        assert!(KEPT_ARGUMENTS.contains(&parameter.key), "{} would be masked; add it to KEPT", parameter.key);
    }
}

/// Every file that a command writes of a machine: pages, runs, captures, tables, charts, recordings.
#[test]
fn no_canary_survives_in_any_file() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let tree = recorded::open(&crate::tool::host("vm-haltpoll-2cpu")).unwrap();
    let salted = captured(&Salted { tree, n: Cell::new(0) }, true).text;
    let host = tempfile::Builder::new().suffix(".host").tempfile().unwrap();
    std::fs::write(host.path(), salted).unwrap();
    let host = host.path().to_str().unwrap();
    let (page, run_file, again) = (at("page.html"), at("r.run"), at("again.html"));
    let (metric, printed) = (format!("{WORD} ([0-9]+)"), format!("echo {WORD} 5"));
    for args in [
        &["doctor", "--host", host, "-o", &page][..],
        &["doctor", "--host", host, "--no-report", "--save", &run_file],
        &["report", &run_file, "-o", &again, "--csv", &at("csv"), "--svg", &at("svg")],
        &["capture", "--host", host, "-o", &at("again.host")],
        &["load", "--metric", &metric, "--repeat", "1", "--save", &at("load.run"), "--", "sh", "-c", &printed],
    ] {
        let said = crate::tool::run(args);
        assert_eq!(said.code, Some(0), "{args:?}: {said:?}");
    }
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(text.contains("serial numbers, addresses and names are masked"), "the page says so");
    // Who asks for names gets them, marked.
    let named = tempfile::Builder::new().suffix(".html").tempfile().unwrap();
    let named = named.path().to_str().unwrap();
    let said = crate::tool::run(&["doctor", "--host", host, "-o", named, "--unmasked"]);
    let text = std::fs::read_to_string(named).unwrap();
    assert!(said.code == Some(0) && text.contains("UNMASKED") && text.contains(WORD), "{said:?}");
    // The host's own name, where one can be given.
    let watch = format!("hostname {WORD}host && exec \"$0\" watch --once --record {}", at("rec"));
    let named =
        std::process::Command::new("unshare").args(["--uts", "sh", "-c", &watch, crate::tool::PROGRAM]).output();
    if !named.is_ok_and(|output| output.status.success()) {
        wakewatt_testing::skipped("masking::host_name", wakewatt_testing::Lacks::Root, "no name to be given");
    }
    let mut folders = vec![dir.path().to_path_buf()];
    let mut n_files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            n_files += 1;
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            let found = text.find(WORD).map(|at| text[at.saturating_sub(60)..].chars().take(120).collect::<String>());
            assert_eq!(found, None, "{}", path.display());
        }
    }
    assert!(n_files > 4, "{n_files} files");
}
