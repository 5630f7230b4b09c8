//! `sysctl -a`, `uname`, `uptime`: what stands in every support archive and beside every paste.
//!
//! `sysctl` prints `kernel.numa_balancing = 1`, the file below /proc/sys with dots for slashes. A file of settings looks the same and says
//! only what was asked for, so without the command's name many lines of the kernel's own are needed. `uptime` has the load averages and not
//! the rest of /proc/loadavg, so they stay figures.

use crate::plain::number;
use crate::reading::{Format, Reading, likely};
use crate::section::Section;

/// `sysctl`.
pub(super) const SYSCTL: Format = Format { id: "sysctl", title: "sysctl", detect: detect_sysctl, read: read_sysctl };
/// `uname -a`, `uname -r`.
pub(super) const UNAME: Format = Format { id: "uname", title: "uname", detect: detect_uname, read: read_uname };
/// `uptime`, and the first line of `top` and `w`.
pub(super) const UPTIME: Format = Format { id: "uptime", title: "uptime", detect: detect_uptime, read: read_uptime };

/// Below /proc/sys; a folder's files whose names begin so.
const SYSCTLS: &[&str] = &[
    "kernel/timer_migration",
    "kernel/nmi_watchdog",
    "kernel/watchdog",
    "kernel/hung_task_timeout_secs",
    "kernel/sched_",
    "kernel/numa_balancing",
    "kernel/perf_event_paranoid",
    "kernel/osrelease",
    "vm/zone_reclaim_mode",
    "net/core/busy_",
    "net/core/netdev_budget",
];

/// `key = value`, the key of a kernel's.
fn setting(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once('=')?;
    let key = key.trim();
    let is_key = key.split('.').count() > 1
        && key.len() < 256
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'/' | b':' | b'@'));
    (is_key && ["kernel.", "vm.", "net.", "fs.", "dev."].iter().any(|front| key.starts_with(front)))
        .then(|| (key, value.trim()))
}

fn detect_sysctl(section: &Section<'_>) -> u32 {
    match section.program() {
        Some("sysctl") => likely(section, "sysctl", |line| setting(line).is_some()),
        Some(_) => 0,
        // Nobody sets as many by hand.
        None => match section.lines.iter().take(20_000).filter(|line| setting(&line.text).is_some()).take(50).count() {
            50 => 20,
            _ => 0,
        },
    }
}

fn read_sysctl(reading: &mut Reading<'_>) {
    for (at, line) in reading.open_lines() {
        let text = line.text.trim();
        if let Some((key, value)) = setting(text) {
            let file = key.replace('.', "/");
            match SYSCTLS.iter().any(|front| file.starts_with(front)) {
                true => reading.put(at, &format!("/proc/sys/{file}"), value),
                false => reading.unused(at),
            }
        } else if text.starts_with("sysctl: ") {
            // What it may not read, it names.
            reading.unused(at);
        }
    }
}

fn detect_uname(section: &Section<'_>) -> u32 {
    let is_whole = |line: &str| line.starts_with("Linux ") && line.contains(" #") && line.ends_with("Linux");
    let is_release = |line: &str| release(line).is_some();
    likely(section, "uname", |line| is_whole(line) || (section.is_by("uname") && is_release(line)))
}

/// `5.14.21-150400.24-default`.
fn release(word: &str) -> Option<&str> {
    let is_one = word.len() < 100 && word.starts_with(|c: char| c.is_ascii_digit()) && word.split('.').count() > 1;
    (is_one && !word.contains(char::is_whitespace)).then_some(word)
}

fn read_uname(reading: &mut Reading<'_>) {
    let is_by = reading.section.is_by("uname");
    for (at, line) in reading.open_lines() {
        let text = line.text.trim();
        let mut words = text.split_whitespace();
        let known = match (words.next(), words.nth(1)) {
            (Some("Linux"), Some(version)) if text.contains(" #") => release(version),
            (Some(word), None) if is_by => release(word),
            _ => None,
        };
        let Some(version) = known else { continue };
        reading.put(at, "/proc/sys/kernel/osrelease", version);
        // The build: from its number to the architecture, which has no blank.
        if let Some((_, build)) = text.split_once(" #") {
            let is_machine = |word: &&str| matches!(*word, "x86_64" | "aarch64" | "GNU/Linux" | "Linux" | "unknown");
            let words: Vec<&str> = build.split_whitespace().take_while(|word| !is_machine(word)).collect();
            reading.conclude(at, "/proc/sys/kernel/version", &format!("#{}", words.join(" ")));
        }
    }
}

/// The three averages, in whatever locale.
fn averages(line: &str) -> Option<[f64; 3]> {
    let (front, rest) = line.split_once("load average: ")?;
    if !front.contains(" up ") {
        return None;
    }
    let mut numbers = rest.split(", ").map(number);
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

fn detect_uptime(section: &Section<'_>) -> u32 {
    likely(section, "uptime", |line| averages(line).is_some())
}

fn read_uptime(reading: &mut Reading<'_>) {
    for (at, line) in reading.open_lines() {
        let Some(said) = averages(line.text.trim()) else { continue };
        for (over, value) in ["1 min", "5 min", "15 min"].iter().zip(said) {
            reading.figure(at, &format!("load average, {over}"), "the machine", "tasks", value);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::formats::testing::{formats, read, says};

    #[test]
    fn kernel_and_load_of_a_paste() {
        let found = read(
            "core@w3 ~ $ uname -r\n5.14.17\ncore@w3 ~ $ uptime\n 10:12:01 up 41 days,  2:12,  1 user,  load average: 61.31, 52.11, 49.00\ncore@w3 ~ $\n",
        );
        assert_eq!(formats(&found), ["uname", "uptime"]);
        assert_eq!(says(&found, "/proc/sys/kernel/osrelease").as_deref(), Some("5.14.17"));
        assert_eq!(found.document.derived.iter().map(|d| d.mean).collect::<Vec<_>>(), [61.31, 52.11, 49.0]);
        assert_eq!(found.document.files[0].n_not_understood, 0, "{:?}", found.document.files[0].not_understood);
        let all = read(
            "Linux db7 5.3.18-59.27-default #1 SMP Tue Oct 5 10:00:52 UTC 2021 (7df2404) x86_64 x86_64 x86_64 GNU/Linux\n 10:12 up 1 day, load average: 0,31, 0,11, 0,00\n",
        );
        assert_eq!(says(&all, "/proc/sys/kernel/osrelease").as_deref(), Some("5.3.18-59.27-default"));
        assert!(says(&all, "/proc/sys/kernel/version").unwrap().ends_with("UTC 2021 (7df2404)"));
        assert_eq!(all.document.derived[0].mean, 0.31);
        assert!(!format!("{:?}", all.facts.tree.files).contains("db7"));
    }

    #[test]
    fn sysctl_prints_what_holds_and_a_file_of_settings_does_not() {
        let text = "kernel.numa_balancing = 1\nkernel.pid_max = 4194304\nnet.core.busy_poll = 0\nsysctl: permission denied on key 'fs.x'\n";
        let found = read(&format!("$ sysctl -a\n{text}"));
        assert_eq!(says(&found, "/proc/sys/kernel/numa_balancing").as_deref(), Some("1"));
        assert_eq!(says(&found, "/proc/sys/kernel/pid_max"), None);
        assert_eq!(found.document.files[0].n_not_understood, 0);
        assert_eq!(read(text).document.n_facts, 0, "four lines without a prompt may be anybody's wishes");
        assert_eq!(read(&format!("$ cat /etc/sysctl.conf\n{text}")).document.n_facts, 0);
    }
}
