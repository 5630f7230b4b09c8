//! The kernel's own files, as `cat`, `grep . FILES`, `head FILES` and `sysctl` print them, and as archives keep them.
//!
//! `cat PATH` behind a prompt and a file under `proc/` or `sys/` of an archive are that file whole. `grep .` prints
//! `path:value` line by line, `head` and `tail` put `==> path <==` before each. Only paths below /proc and /sys are taken.
//! `cat` of several files prints one after the other and names none: where there are as many lines as files it is one line each
//! (attributes of sysfs are one line), in the order that the shell gave them.

use super::MAY_BE_CUT;
use super::flags::marked_file;
use crate::facts::CPU;
use crate::reading::{Format, Reading};
use crate::section::{SEVERAL, Section};
use wakewatt_core::cpuset::CpuSet;

/// The format.
pub(super) const FORMAT: Format = Format { id: "kernel-files", title: "files of the kernel", detect, read };

fn detect(section: &Section<'_>) -> u32 {
    if section.path.is_some() || section.files().is_some() {
        return 1000;
    }
    let n = section
        .lines
        .iter()
        .take(20_000)
        .filter(|l| headed(&l.text).is_some() || named(&l.text).is_some())
        .take(4)
        .count();
    u32::try_from(n).unwrap_or(4) * 20
}

/// `==> /sys/… <==`.
fn headed(line: &str) -> Option<&str> {
    line.trim().strip_prefix("==> ")?.strip_suffix(" <==").filter(|path| is_path(path))
}

/// `/sys/…:value`, `/sys/… = value`.
fn named(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    if !line.starts_with("/sys/") && !line.starts_with("/proc/") {
        return None;
    }
    // The name of a device may hold colons; a value follows the last part of the path.
    let name = line.rfind('/').filter(|at| !line[..*at].contains([' ', '\t'])).unwrap_or(0);
    let (at, length) = match (line[name..].find(" = "), line[name..].find(':')) {
        (Some(equals), None) => (name + equals, 3),
        (_, Some(colon)) => (name + colon, 1),
        _ => return None,
    };
    let (path, value) = (&line[..at], line[at + length..].trim());
    is_path(path).then_some((path, value))
}

fn is_path(path: &str) -> bool {
    (path.starts_with("/sys/") || path.starts_with("/proc/"))
        && path.len() < 512
        && !path.contains("/../")
        && path.bytes().all(|b| b.is_ascii_graphic() && b != b'*')
}

fn read(reading: &mut Reading<'_>) {
    let lines = reading.open_lines();
    let whole = |from: usize, to: usize| {
        let texts: Vec<&str> = lines[from..to].iter().map(|(_, line)| &*line.text).collect();
        let end = texts.iter().rposition(|t| !t.trim().is_empty()).map_or(0, |at| at + 1);
        let mut text = texts[..end].join("\n");
        text.push('\n');
        text.into_bytes()
    };
    let section = reading.section;
    if let (Some(path), Some((first, line))) = (&section.path, lines.first()) {
        if is_refusal(&line.text) {
            reading.refuse(*first, "the file could not be read where the text was made");
            return;
        }
        let is_pasted = section.command.is_some();
        if let Some((at, _)) = lines.iter().find(|(at, _)| is_pasted && is_wide(path) && section.is_at_edge(*at)) {
            reading.refuse(*at, MAY_BE_CUT);
            return;
        }
        let mut bytes = whole(0, lines.len());
        if is_pasted && path == "/proc/cpuinfo" {
            bytes = marked_file(&String::from_utf8_lossy(&bytes)).into_bytes();
        }
        match linked(path).filter(|_| is_pasted) {
            Some(file) => put_policy(reading, *first, file, String::from_utf8_lossy(&bytes).trim()),
            None => reading.put_bytes(*first, path, bytes),
        }
        lines.iter().for_each(|(at, _)| reading.take(*at));
        return;
    }
    if let Some(files) = section.files() {
        return several(reading, &files);
    }
    let mut at = 0;
    while at < lines.len() {
        let (index, line) = lines[at];
        if let Some(path) = headed(&line.text) {
            let end = (at + 1..lines.len()).find(|i| headed(&lines[*i].1.text).is_some()).unwrap_or(lines.len());
            reading.take(index);
            if end > at + 1 {
                reading.put_bytes(lines[at + 1].0, path, whole(at + 1, end));
                lines[at + 1..end].iter().for_each(|(at, _)| reading.take(*at));
            }
            at = end;
            continue;
        }
        if let Some((path, value)) = named(&line.text) {
            if is_refusal(&line.text) {
                reading.refuse(index, "the file could not be read where the text was made");
            } else {
                put_one(reading, index, path, value);
            }
        }
        at += 1;
    }
}

/// One line of a file, wherever the kernel really keeps it.
fn put_one(reading: &mut Reading<'_>, at: usize, path: &str, value: &str) {
    match linked(path) {
        Some(file) => put_policy(reading, at, file, value),
        None => reading.put(at, path, value),
    }
}

/// `cpuN/cpufreq` is a link to the policy of CPU N.
fn linked(path: &str) -> Option<(u32, &str)> {
    let (cpu, file) = path.strip_prefix("/sys/devices/system/cpu/cpu")?.split_once("/cpufreq/")?;
    Some((crate::facts::cpu_number(cpu)?, file))
}

/// Which CPUs share a policy the path does not say; each is shown as one of its own.
fn put_policy(reading: &mut Reading<'_>, at: usize, (cpu, file): (u32, &str), value: &str) {
    reading.conclude(at, &format!("{CPU}/cpufreq/policy{cpu}/affected_cpus"), &cpu.to_string());
    reading.put(at, &format!("{CPU}/cpufreq/policy{cpu}/{file}"), value);
}

/// What `cat` printed of several files, where lines and files can be brought together.
fn several(reading: &mut Reading<'_>, files: &[&str]) {
    let lines: Vec<(usize, String)> = reading
        .open_lines()
        .into_iter()
        .filter(|(_, line)| !line.text.trim().is_empty())
        .map(|(at, line)| (at, line.text.trim().to_string()))
        .collect();
    let online = reading.taken.facts.value(&format!("{CPU}/online")).and_then(|text| CpuSet::parse(&text).ok());
    let is_same = lines.iter().all(|(_, text)| *text == lines[0].1);
    let mut paths: Vec<String> = Vec::new();
    for file in files {
        match file.contains(['*', '?', '[', '{']) {
            false => paths.push((*file).into()),
            true => match expanded(file, online.as_ref(), (files.len() == 1 && is_same).then_some(lines.len())) {
                Some(all) => paths.extend(all),
                None => return,
            },
        }
    }
    // A file of several lines, or one that is not there, would give every value behind it to another file.
    let is_sysfs = paths.iter().all(|path| path.starts_with("/sys/"));
    if paths.len() != lines.len() || !is_sysfs {
        lines.iter().for_each(|(at, _)| reading.refuse(*at, SEVERAL));
        return;
    }
    for (path, (at, text)) in paths.iter().zip(&lines) {
        match is_refusal(text) {
            true => reading.refuse(*at, "the file could not be read where the text was made"),
            false => put_one(reading, *at, path, text),
        }
    }
}

/// `…/cpu*/…`, in the order of a shell, which sorts by letters; of every CPU online, or of so many lines that say the same.
fn expanded(file: &str, online: Option<&CpuSet>, n_same: Option<usize>) -> Option<Vec<String>> {
    let (front, rest) = file.split_once("/cpu/cpu")?;
    let back = ["*", "[0-9]*"].iter().find_map(|star| rest.strip_prefix(star)?.strip_prefix('/'))?;
    if front != "/sys/devices/system" || back.contains(['*', '?', '[', '{']) {
        return None;
    }
    let first = |n: usize| (0..u32::try_from(n).unwrap_or(0)).map(|cpu| cpu.to_string());
    let mut cpus: Vec<String> = match (online, n_same) {
        (Some(online), _) => online.iter().map(|cpu| cpu.to_string()).collect(),
        // Which CPUs they are hardly matters where all say the same.
        (None, Some(n)) => first(n.min(1024)).collect(),
        (None, None) => return None,
    };
    cpus.sort();
    Some(cpus.iter().map(|cpu| format!("{front}/cpu/cpu{cpu}/{back}")).collect())
}

/// A file whose line is wider than a screen, and means something else without its end.
fn is_wide(path: &str) -> bool {
    matches!(path, "/proc/cmdline") || path.ends_with("cpulist") || path.ends_with("_list") || path.ends_with("_cpus")
}

/// What a shell's tools say instead of a file.
fn is_refusal(line: &str) -> bool {
    ["No such file", "Permission denied", "Is a directory", "Input/output error", "Operation not permitted"]
        .iter()
        .any(|words| line.contains(words))
}

#[cfg(test)]
mod tests {
    use crate::formats::testing::{read, says};

    #[test]
    fn several_files_of_one_cat() {
        let command = "$ cat /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor\n";
        let governor = |found: &crate::Imported, cpu: u32| {
            says(found, &format!("/sys/devices/system/cpu/cpufreq/policy{cpu}/scaling_governor"))
        };
        let same = read(&(command.to_string() + &"powersave\n".repeat(4)));
        assert_eq!((governor(&same, 3).as_deref(), governor(&same, 4)), (Some("powersave"), None));
        // The shell sorts by letters: cpu0 cpu1 cpu10 cpu11 cpu2 …; how many there are another output says, be it behind.
        let mixed: String = (0..12).map(|n| if n == 2 { "performance\n" } else { "powersave\n" }).collect();
        let found = read(&format!("{command}{mixed}$ cat /sys/devices/system/cpu/online\n0-11\n"));
        assert_eq!(
            (governor(&found, 10).as_deref(), governor(&found, 2).as_deref()),
            (Some("performance"), Some("powersave"))
        );
        assert_eq!(found.document.files[0].n_not_understood, 0, "{:?}", found.document.files[0].not_understood);
        let alone = read(&format!("{command}{mixed}"));
        let why = &alone.document.files[0].not_understood[0].why;
        assert!(alone.document.n_facts == 0 && why.contains("not told which line is of which"), "{why}");
        let looped =
            read("$ for i in /sys/devices/system/cpu/cpu*/cpufreq; do cat $i/scaling_governor; done\npowersave\n");
        assert!(looped.document.files[0].not_understood[0].why.contains("grep . FILES"));
        let two = read("$ cat /sys/devices/system/cpu/smt/active /sys/devices/system/cpu/smt/control\n1\non\n");
        assert_eq!(says(&two, "/sys/devices/system/cpu/smt/control").as_deref(), Some("on"));
        let unequal = read("$ cat /sys/devices/system/cpu/smt/active /sys/devices/system/cpu/smt/control\non\n");
        assert_eq!(unequal.document.n_facts, 0);
    }

    #[test]
    fn a_line_cut_at_the_edge_is_no_whole_list() {
        let whole = "$ cat /proc/version\nLinux version 5.14.0-427.42.1.el9_4.x86_64\n$ cat /proc/cmdline\nBOOT_IMAGE=/vmlinuz-5.14.0 root=/dev/x ro\n\
            $ dmesg\n[    0.000000] Linux version 5.14.0-427.42.1.el9_4.x86_64\n";
        let cut: String = whole.lines().map(|line| format!("{line:.28}\n")).collect();
        assert!(says(&read(whole), "/proc/cmdline").is_some());
        let found = read(&cut);
        assert_eq!(says(&found, "/proc/cmdline"), None, "what is missing in it may be there");
        let lists =
            "Vendor ID: GenuineIntel\nOn-line CPU(s) list: 0-103\nNUMA node0 CPU(s): 0-25\nNUMA node1 CPU(s): 26-51,7";
        let found = read(lists);
        assert_eq!(says(&found, "/sys/devices/system/node/node0/cpulist").as_deref(), Some("0-25"));
        assert_eq!(says(&found, "/sys/devices/system/node/node1/cpulist"), None);
        assert!(found.document.files[0].not_understood[0].why.contains("may be cut"));
        let whole = read(&format!("{lists}8-103\n"));
        assert_eq!(says(&whole, "/sys/devices/system/node/node1/cpulist").as_deref(), Some("26-51,78-103"));
        let last = read("$ cat /sys/devices/system/cpu/smt/active\n1");
        assert_eq!(says(&last, "/sys/devices/system/cpu/smt/active").as_deref(), Some("1"));
        assert!(last.document.remarks.iter().any(|remark| remark.contains("no line end behind line 2")));
    }

    #[test]
    fn cat_grep_and_head() {
        let text = "$ cat /sys/module/intel_idle/parameters/max_cstate\n1\n$ grep . /sys/devices/system/cpu/smt/*\n/sys/devices/system/cpu/smt/active:1\n\
                    /sys/devices/system/cpu/smt/control:on\n$ head /proc/cmdline /proc/version\n==> /proc/cmdline <==\nquiet idle=poll\n\n==> /proc/version <==\nLinux version 6.1.0\n\
                    $ cat /proc/nothing\ncat: /proc/nothing: No such file or directory\n";
        let found = read(text);
        assert_eq!(says(&found, "/sys/module/intel_idle/parameters/max_cstate").as_deref(), Some("1"));
        assert_eq!(says(&found, "/sys/devices/system/cpu/smt/control").as_deref(), Some("on"));
        assert_eq!(says(&found, "/proc/cmdline").as_deref(), Some("quiet idle=poll"));
        assert_eq!(says(&found, "/proc/nothing"), None);
        assert_eq!(found.document.files[0].n_not_understood, 1);
    }
}
