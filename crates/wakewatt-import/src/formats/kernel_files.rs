//! The kernel's own files, as `cat`, `grep . FILES`, `head FILES` and `sysctl` print them, and as archives keep them.
//!
//! `cat PATH` behind a prompt and a file under `proc/` or `sys/` of an archive are that file whole. `grep .` prints
//! `path:value` line by line, `head` and `tail` put `==> path <==` before each. Only paths below /proc and /sys are taken.

use crate::reading::{Format, Reading};
use crate::section::Section;

/// The format.
pub(super) const FORMAT: Format = Format { id: "kernel-files", title: "files of the kernel", detect, read };

fn detect(section: &Section<'_>) -> u32 {
    if section.path.is_some() {
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
        reading.put_bytes(*first, path, whole(0, lines.len()));
        lines.iter().for_each(|(at, _)| reading.take(*at));
        return;
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
                reading.put(index, path, value);
            }
        }
        at += 1;
    }
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
