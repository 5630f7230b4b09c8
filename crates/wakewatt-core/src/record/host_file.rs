//! The `.host` file: one machine as one text file, stable, diff-able, small enough to attach to a ticket.
//!
//! It holds exactly what the parsers asked for, including what they asked for in vain, so that a later reader can tell
//! "the host has no such file" from "nobody looked". Equal values of many CPUs are one line. Version 1, line by line:
//!
//! ```text
//! wakewatt-host 1
//! partial                              only where it was made from a partial tree: a name not listed proves nothing
//! # a comment
//! /sys/devices/system/cpu/cpu{0-143}/cpuidle/state3/latency = 290
//! /sys/devices/system/cpu/cpu{0-3}/cpuidle/state3/usage each 17 0 4 12     one value per CPU, in order
//! /proc/loadavg <<                     several lines, each behind a tab; <<- if the last has no newline
//! /proc/cpuinfo blocks                 blocks between blank lines; ^12 stands for 12 lines of the block before
//! /sys/firmware/dmi/tables/DMI hex     bytes, behind tabs
//! /sys/class/powercap : absent no such file      (absent, denied, failed) and the reason
//! /sys/class/net/ list eth0 lo         a folder
//! /sys/class/net/eth0/device/driver -> ../../bus/virtio/drivers/virtio_net
//! msr 0x1b0 cpu{0-143} 6
//! # end                                what is cut at the end of a line would not show otherwise
//! ```
//! In paths and names, blank, `%`, `{`, `}` and control characters are written `%20` …

use super::blocks::{blocks, unblock};
use super::room::Room;
use crate::cpuset::CpuSet;
use crate::source::{ErrorKind, Read, ReadError, Tree};
use crate::visible::is_hidden;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

/// The version this code writes, and the only one it reads.
pub const VERSION: u32 = 1;
/// The last line of a whole file; a comment, so that readers that do not know it pass it over.
const END: &str = "# end";
/// Numbers in the names of files and folders; CPUs are fewer.
const MAX_NUMBER: u32 = 1 << 16;

/// Why a `.host` file could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostFileError {
    /// Not a `.host` file at all.
    #[error("not a .host file: the first line must be \"wakewatt-host {VERSION}\"")]
    NotAHostFile,
    /// Made by another version of the format.
    #[error(
        "format version {0}; this wakewatt reads version {VERSION}. Capture the host again, or use the wakewatt that wrote the file"
    )]
    Version(String),
    /// A line that does not parse.
    #[error("line {line}: {what}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
}

/// Writes a tree.
pub fn write(tree: &Tree, comments: &[String]) -> String {
    let mut out = format!("wakewatt-host {VERSION}\n");
    if tree.is_partial {
        out.push_str("partial\n");
    }
    for comment in comments {
        for line in comment.lines() {
            let _ = writeln!(out, "# {line}");
        }
    }
    let mut lines: BTreeMap<(String, u32), String> = BTreeMap::new();
    // Template path -> CPU -> what stands behind the path.
    let mut grouped: BTreeMap<String, BTreeMap<u32, String>> = BTreeMap::new();
    let folders = tree.folders.iter().map(|(path, names)| match names {
        Ok(names) => (format!("{path}/"), format!("list{}", group_names(names))),
        Err(error) => (format!("{path}/"), format!(": {}", show_error(error))),
    });
    let links = tree.links.iter().map(|(path, target)| match target {
        Ok(target) => (path.clone(), format!("-> {}", escape(target))),
        Err(error) => (path.clone(), format!("->: {}", show_error(error))),
    });
    let files = tree.files.iter().map(|(path, content)| (path.clone(), show_content(content)));
    for (path, body) in folders.chain(links).chain(files) {
        match template(&path) {
            Some((template, cpu)) if body.starts_with("->") => {
                lines.insert((natural(&template), cpu), format!("{} {body}", escape(&path)));
            }
            // A folder and a file of one name cannot be: the slash keeps them apart.
            Some((template, cpu)) => {
                grouped.entry(template).or_default().insert(cpu, body);
            }
            None => {
                lines.insert((natural(&path), 0), format!("{} {body}", escape(&path)));
            }
        }
    }
    for (template, by_cpu) in grouped {
        write_group(&mut lines, &template, &by_cpu);
    }
    lines.values().for_each(|line| {
        out.push_str(line);
        out.push('\n');
    });
    let mut registers: BTreeMap<u32, BTreeMap<String, CpuSet>> = BTreeMap::new();
    for ((address, cpu), value) in &tree.msrs {
        let value = match value {
            Ok(value) => format!("{value:x}"),
            Err(error) => format!(": {}", show_error(error)),
        };
        registers.entry(*address).or_default().entry(value).or_default().insert(*cpu);
    }
    for (address, values) in registers {
        let mut values: Vec<(String, CpuSet)> = values.into_iter().collect();
        values.sort_by_key(|(_, cpus)| cpus.first());
        for (value, cpus) in values {
            let _ = writeln!(out, "msr 0x{address:x} cpu{{{cpus}}} {value}");
        }
    }
    out.push_str(END);
    out.push('\n');
    out
}

/// Does the text end as one that was written whole? Files made before there was an end mark do not.
pub fn has_end(text: &str) -> bool {
    text.trim_end_matches('\n').lines().next_back() == Some(END)
}

fn write_group(lines: &mut BTreeMap<(String, u32), String>, template: &str, by_cpu: &BTreeMap<u32, String>) {
    let mut groups: Vec<(&str, CpuSet)> = Vec::new();
    let mut index: HashMap<&str, usize> = HashMap::new();
    for (cpu, body) in by_cpu {
        let at = *index.entry(body.as_str()).or_insert_with(|| {
            groups.push((body, CpuSet::new()));
            groups.len() - 1
        });
        groups[at].1.insert(*cpu);
    }
    let path = |cpus: &CpuSet| escape(template).replace("%7B%7D", &format!("{{{cpus}}}"));
    if groups.len() > 6 {
        let values: Option<Vec<&str>> = by_cpu.values().map(|body| one_word(body)).collect();
        if let Some(values) = values {
            let cpus: CpuSet = by_cpu.keys().copied().collect();
            lines.insert((natural(template), 0), format!("{} each {}", path(&cpus), values.join(" ")));
            return;
        }
    }
    for (body, cpus) in groups {
        lines.insert((natural(template), cpus.first().unwrap_or(0)), format!("{} {body}", path(&cpus)));
    }
}

fn one_word(body: &str) -> Option<&str> {
    let word = body.strip_prefix("= ")?;
    (!word.is_empty() && word.chars().all(|c| c.is_ascii_graphic())).then_some(word)
}

/// `/…/cpu7/x` -> (`/…/cpu{}/x`, 7), for the first `cpuN` or `policyN` component.
fn template(path: &str) -> Option<(String, u32)> {
    let mut offset = 0;
    for part in path.split('/') {
        for prefix in ["cpu", "policy"] {
            if let Some(digits) = part.strip_prefix(prefix) {
                // "cpu007" would not survive the round trip.
                if let Some(number) = digits.parse::<u32>().ok().filter(|n| n.to_string() == digits && *n < MAX_NUMBER)
                {
                    let start = offset + prefix.len();
                    return Some((format!("{}{{}}{}", &path[..start], &path[start + digits.len()..]), number));
                }
            }
        }
        offset += part.len() + 1;
    }
    None
}

/// Numbers padded, so that state2 sorts before state10.
fn natural(path: &str) -> String {
    let mut out = String::with_capacity(path.len() + 16);
    let mut digits = String::new();
    for c in path.chars() {
        if c.is_ascii_digit() {
            digits.push(c);
        } else {
            if !digits.is_empty() {
                let _ = write!(out, "{digits:0>10}");
                digits.clear();
            }
            out.push(c);
        }
    }
    if !digits.is_empty() {
        let _ = write!(out, "{digits:0>10}");
    }
    out
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, ' ' | '%' | '{' | '}') || is_hidden(c) {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                let _ = write!(out, "%{byte:02X}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

fn unescape(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_string());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let pair = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&pair).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

fn show_error(error: &ReadError) -> String {
    let word = match error.kind {
        ErrorKind::Absent => "absent",
        ErrorKind::Denied => "denied",
        ErrorKind::NotRecorded => "not-recorded",
        ErrorKind::Failed => "failed",
    };
    format!("{word} {}", error.detail.replace(['\n', '\r'], " ")).trim_end().to_string()
}

fn show_content(content: &Read<Vec<u8>>) -> String {
    let bytes = match content {
        Err(error) => return format!(": {}", show_error(error)),
        Ok(bytes) => bytes,
    };
    let text =
        std::str::from_utf8(bytes).ok().filter(|t| !t.contains(|c: char| is_hidden(c) && c != '\n' && c != '\t'));
    let Some(text) = text else {
        let mut out = "hex".to_string();
        for row in bytes.chunks(32) {
            out.push_str("\n\t");
            row.iter().for_each(|b| {
                let _ = write!(out, "{b:02x}");
            });
        }
        return out;
    };
    if let Some(lines) = blocks(text) {
        return format!("blocks\n\t{}", lines.join("\n\t"));
    }
    match text.strip_suffix('\n') {
        Some(line) if !line.contains('\n') => format!("= {line}"),
        Some(lines) => format!("<<\n\t{}", lines.replace('\n', "\n\t")),
        None if text.contains('\n') => format!("<<-\n\t{}", text.replace('\n', "\n\t")),
        None => format!("=- {text}"),
    }
}

fn group_names(names: &[String]) -> String {
    let mut out = String::new();
    let mut cpus: BTreeMap<&str, CpuSet> = BTreeMap::new();
    let mut plain: Vec<String> = Vec::new();
    for name in names {
        let split = name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len());
        let (stem, digits) = name.split_at(split);
        match digits.parse::<u32>().ok().filter(|n| n.to_string() == digits && *n < MAX_NUMBER) {
            Some(number) if !stem.is_empty() => cpus.entry(stem).or_default().insert(number),
            _ => plain.push(escape(name)),
        }
    }
    for (stem, set) in cpus {
        let _ = write!(out, " {}{{{set}}}", escape(stem));
    }
    for name in plain {
        let _ = write!(out, " {name}");
    }
    out
}

/// Reads a `.host` file.
pub fn read(text: &str, name: &str) -> Result<Tree, HostFileError> {
    let mut lines = text.lines().enumerate().peekable();
    let version =
        lines.next().and_then(|(_, l)| l.strip_prefix("wakewatt-host ")).ok_or(HostFileError::NotAHostFile)?;
    if version.trim() != VERSION.to_string() {
        return Err(HostFileError::Version(version.trim().chars().take(20).collect()));
    }
    let mut tree = Tree { name: name.into(), is_recording: true, ..Tree::default() };
    let mut room = Room::of(text.len());
    while let Some((at, line)) = lines.next() {
        if line == "partial" {
            tree.is_partial = true;
        }
        if line.is_empty() || line.starts_with('#') || line == "partial" {
            continue;
        }
        let fail = |what: &str| HostFileError::Line { line: at + 1, what: what.to_string() };
        let mut body: Vec<&str> = Vec::new();
        while let Some((_, next)) = lines.peek() {
            let Some(text) = next.strip_prefix('\t') else { break };
            body.push(text);
            lines.next();
        }
        let (head, rest) = line.split_once(' ').ok_or_else(|| fail("expected a path and a value"))?;
        read_entry(&mut tree, &mut room, head, rest, &body).map_err(|what| fail(&what))?;
    }
    Ok(tree)
}

const BAD_PATH: &str = "bad path or CPU list";
const BAD_ERROR: &str = "expected absent, denied or failed";
const TOO_MUCH: &str = "more entries than any machine has";

fn read_entry(tree: &mut Tree, room: &mut Room, head: &str, rest: &str, body: &[&str]) -> Result<(), String> {
    if head == "msr" {
        return read_msr(tree, room, rest);
    }
    if let Some(names) = rest.strip_prefix("list") {
        let names = expand_names(names, room)?;
        let folders = folders(head, room)?;
        let length = names.iter().map(String::len).sum::<usize>();
        // What a name costs in a list beside its letters.
        let each = length.saturating_add(names.len().saturating_mul(size_of::<String>()));
        let n_entries = names.len().saturating_mul(folders.len());
        room.take(n_entries, 0).and_then(|()| room.take(folders.len(), each)).ok_or(TOO_MUCH)?;
        tree.folders.extend(folders.into_iter().map(|folder| (folder, Ok(names.clone()))));
    } else if head.ends_with('/') && rest.starts_with(": ") {
        let error = read_error(&rest[2..]).ok_or(BAD_ERROR)?;
        let folders = folders(head, room)?;
        room.take(folders.len(), error.detail.len()).ok_or(TOO_MUCH)?;
        tree.folders.extend(folders.into_iter().map(|folder| (folder, Err(error.clone()))));
    } else if let Some(target) = rest.strip_prefix("-> ") {
        let (path, target) = unescape(head).zip(unescape(target)).ok_or("bad path")?;
        room.take(1, 0).ok_or(TOO_MUCH)?;
        tree.links.insert(path, Ok(target));
    } else if let Some(error) = rest.strip_prefix("->: ") {
        let error = read_error(error).ok_or(BAD_ERROR)?;
        room.take(1, 0).ok_or(TOO_MUCH)?;
        tree.links.insert(unescape(head).ok_or("bad path")?, Err(error));
    } else {
        let paths = expand_path(head, room)?;
        read_file(tree, room, paths, rest, body)?;
    }
    Ok(())
}

fn read_file(tree: &mut Tree, room: &mut Room, paths: Vec<String>, rest: &str, body: &[&str]) -> Result<(), String> {
    if let Some(values) = rest.strip_prefix("each ") {
        let values: Vec<&str> = values.split(' ').collect();
        if values.len() != paths.len() {
            return Err(format!("{} values for {} CPUs", values.len(), paths.len()));
        }
        for (path, value) in paths.into_iter().zip(values) {
            tree.files.insert(path, Ok(format!("{value}\n").into_bytes()));
        }
        return Ok(());
    }
    let content: Read<Vec<u8>> = if let Some(text) = rest.strip_prefix("= ").or((rest == "=").then_some("")) {
        Ok(format!("{text}\n").into_bytes())
    } else if let Some(text) = rest.strip_prefix("=- ").or((rest == "=-").then_some("")) {
        Ok(text.as_bytes().to_vec())
    } else if rest == "<<" {
        Ok((body.join("\n") + "\n").into_bytes())
    } else if rest == "<<-" {
        Ok(body.join("\n").into_bytes())
    } else if rest == "blocks" {
        Ok(unblock(body, room.bytes())?.into_bytes())
    } else if rest == "hex" {
        let digits = body.concat();
        let pairs = digits.as_bytes().chunks(2);
        let bytes: Option<Vec<u8>> = pairs.map(|p| u8::from_str_radix(std::str::from_utf8(p).ok()?, 16).ok()).collect();
        Ok(bytes.ok_or("bad hex")?)
    } else if let Some(error) = rest.strip_prefix(": ") {
        Err(read_error(error).ok_or(BAD_ERROR)?)
    } else {
        return Err("expected =, each, <<, hex, list, -> or :".into());
    };
    let length = content.as_ref().map_or_else(|error| error.detail.len(), Vec::len);
    room.take(paths.len(), length).ok_or(TOO_MUCH)?;
    for path in paths {
        tree.files.insert(path, content.clone());
    }
    Ok(())
}

fn read_error(text: &str) -> Option<ReadError> {
    let (word, detail) = text.split_once(' ').unwrap_or((text, ""));
    let kind = match word {
        "absent" => ErrorKind::Absent,
        "denied" => ErrorKind::Denied,
        "not-recorded" => ErrorKind::NotRecorded,
        "failed" => ErrorKind::Failed,
        _ => return None,
    };
    Some(ReadError::new(kind, detail))
}

fn folders(head: &str, room: &mut Room) -> Result<Vec<String>, String> {
    let paths = expand_path(head, room)?.into_iter();
    Ok(paths.map(|p| if p == "/" { p } else { p.trim_end_matches('/').to_string() }).collect())
}

/// The paths or names that one stands for. Room for them is taken before they are made.
fn expand_path(head: &str, room: &mut Room) -> Result<Vec<String>, String> {
    let Some((before, rest)) = head.split_once('{') else {
        room.take(1, head.len()).ok_or(TOO_MUCH)?;
        return Ok(vec![unescape(head).ok_or(BAD_PATH)?]);
    };
    let (list, after) = rest.split_once('}').ok_or(BAD_PATH)?;
    let (before, after) = unescape(before).zip(unescape(after)).ok_or(BAD_PATH)?;
    let numbers = CpuSet::parse_below(list, MAX_NUMBER).map_err(|_| BAD_PATH)?;
    room.take(numbers.len(), head.len()).ok_or(TOO_MUCH)?;
    Ok(numbers.iter().map(|number| format!("{before}{number}{after}")).collect())
}

fn expand_names(text: &str, room: &mut Room) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for word in text.split_whitespace() {
        let n_before = names.len();
        names.extend(expand_path(word, room)?);
        room.take_names(names.len() - n_before).ok_or(TOO_MUCH)?;
    }
    names.sort();
    Ok(names)
}

fn read_msr(tree: &mut Tree, room: &mut Room, rest: &str) -> Result<(), String> {
    let parse = || {
        let (address, rest) = rest.split_once(' ')?;
        let (cpus, value) = rest.split_once(' ')?;
        let address = u32::from_str_radix(address.strip_prefix("0x")?, 16).ok()?;
        let cpus = CpuSet::parse(cpus.strip_prefix("cpu{")?.strip_suffix('}')?).ok()?;
        let value = match value.strip_prefix(": ") {
            Some(error) => Err(read_error(error)?),
            None => Ok(u64::from_str_radix(value, 16).ok()?),
        };
        Some((address, cpus, value))
    };
    let (address, cpus, value) = parse().ok_or("expected: msr 0xADDRESS cpu{LIST} VALUE")?;
    let length = value.as_ref().map_or_else(|error| error.detail.len(), |_| 0);
    room.take(cpus.len(), length).ok_or(TOO_MUCH)?;
    cpus.iter().for_each(|cpu| {
        tree.msrs.insert((address, cpu), value.clone());
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;
    use expect_test::expect;
    use proptest::prelude::*;

    fn sample() -> Tree {
        let mut tree = Tree::from_text(
            "//- /proc/loadavg\na\nb\n//- /sys/class/x!denied\n//- msr 0x1b0 cpu0 6\n//- msr 0x1b0 cpu1 6\n",
        );
        for cpu in 0..9u32 {
            tree.files.insert(format!("/sys/cpu{cpu}/latency"), Ok(b"290\n".to_vec()));
            tree.files.insert(format!("/sys/cpu{cpu}/usage"), Ok(format!("{cpu}\n").into_bytes()));
        }
        tree.files.insert("/dmi".into(), Ok(vec![0, 1, 255]));
        tree.files.insert("/odd name{}".into(), Ok(b"no newline".to_vec()));
        tree.folders.insert("/sys".into(), Ok(vec!["cpu0".into(), "cpu1".into(), "cpuidle".into()]));
        tree.links.insert("/sys/driver".into(), Ok("../x y".into()));
        tree
    }

    #[test]
    fn many_cpus_are_one_line() {
        expect![[r#"
            wakewatt-host 1
            # made by a test
            /dmi hex
            	0001ff
            /odd%20name%7B%7D =- no newline
            /proc/loadavg <<
            	a
            	b
            /sys/ list cpu{0-1} cpuidle
            /sys/class/x : denied Permission denied
            /sys/cpu{0-8}/latency = 290
            /sys/cpu{0-8}/usage each 0 1 2 3 4 5 6 7 8
            /sys/driver -> ../x%20y
            msr 0x1b0 cpu{0-1} 6
            # end
        "#]]
        .assert_eq(&write(&sample(), &["made by a test".into()]));
    }

    #[test]
    fn round_trip() {
        let tree = sample();
        let back = read(&write(&tree, &[]), "test").unwrap();
        assert_eq!(
            (&back.files, &back.folders, &back.links, &back.msrs),
            (&tree.files, &tree.folders, &tree.links, &tree.msrs)
        );
        assert_eq!(back.read("/never/asked").unwrap_err().kind, ErrorKind::NotRecorded);
        assert_eq!(back.read("/sys/cpu7").unwrap_err().kind, ErrorKind::Absent, "the folder was listed without it");
    }

    #[test]
    fn a_cut_at_the_end_of_a_line_shows() {
        let whole = write(&sample(), &[]);
        assert!(has_end(&whole) && has_end(whole.trim_end()));
        let ends: Vec<usize> = whole.match_indices('\n').map(|(at, _)| at + 1).collect();
        for end in &ends[..ends.len() - 2] {
            assert!(!has_end(&whole[..*end]), "{}", &whole[..*end]);
        }
    }

    /// What the lines unfold to is counted before it is made; a real machine's groups are far inside.
    #[test]
    fn bombs_are_refused_by_their_line() {
        let states = "/sys/devices/system/cpu/cpu0/cpuidle/ list state{0-65535}\n";
        let cpu = "/sys/devices/system/cpu";
        for bomb in [
            states.to_string(),
            format!("{cpu}/cpu{{0-8191}}/ list a{{0-99}}\n"),
            format!("/a{{0-65535}}/b = {}\n", "x".repeat(2000)),
            format!("/a{{0-9999}}/{} : absent\n", "x".repeat(8000)),
            format!("/a{{0-9999}}/b/ : denied {}\n", "x".repeat(8000)),
            "/sys/class/net/ list veth{0-9999}\n/sys/class/block/ list sd{0-9999}\n".into(),
            format!("/a{{0-65535}}/b{} = 1\n/a{{0-65535}}/c = 1\n/a{{0-65535}}/d = 1\n", "x".repeat(9)),
        ] {
            let error = read(&format!("wakewatt-host 1\n{bomb}"), "x").unwrap_err();
            assert!(matches!(&error, HostFileError::Line { what, .. } if what == TOO_MUCH), "{bomb:.60}: {error}");
        }
        let block = format!("{}\n", "x\n".repeat(4000));
        let bomb = format!("/x blocks\n\t{}\n", (block + &"^4001\n".repeat(4000)).trim_end().replace('\n', "\n\t"));
        let error = read(&format!("wakewatt-host 1\n{bomb}"), "x").unwrap_err();
        assert!(error.to_string().contains("blocks larger"), "{error}");
        // 8192 CPUs, the most a kernel can have, with their states and counters.
        let usage: Vec<String> = (0..8192).map(|n| (n * 7919).to_string()).collect();
        let mut real = format!("{cpu}/ list cpu{{0-8191}}\n{cpu}/cpu{{0-8191}}/cpuidle/ list state{{0-4}}\n");
        for state in 0..5 {
            real += &format!("{cpu}/cpu{{0-8191}}/cpuidle/state{state}/usage each {}\n", usage.join(" "));
            real += &format!("{cpu}/cpu{{0-8191}}/cpuidle/state{state}/latency = 290\n");
        }
        assert_eq!(read(&format!("wakewatt-host 1\n{real}"), "x").unwrap().files.len(), 81_920);
    }

    #[test]
    fn blocks_that_differ_in_a_line_are_counted() {
        let flags = "fpu vme ".repeat(100);
        let text: String = (0..40).map(|cpu| format!("processor : {cpu}\nmodel : x\nflags : {flags}\n\n")).collect();
        let mut tree = Tree::default();
        tree.files.insert("/proc/cpuinfo".into(), Ok(text.clone().into_bytes()));
        let written = write(&tree, &[]);
        assert!(written.len() < 2500, "{}", written.len());
        assert!(written.contains("\tprocessor : 7\n\t^3\n"), "{written}");
        assert_eq!(read(&written, "x").unwrap().files["/proc/cpuinfo"], Ok(text.into_bytes()));
        for bad in ["^9", "^x", "^18446744073709551615", "a\n\t\n\t^5"] {
            assert!(read(&format!("wakewatt-host 1\n/x blocks\n\t{bad}\n"), "x").is_err(), "{bad}");
        }
    }

    #[test]
    fn other_versions_and_rubbish_say_so() {
        assert_eq!(read("", "x"), Err(HostFileError::NotAHostFile));
        assert_eq!(read("\u{0}\u{1}binary", "x"), Err(HostFileError::NotAHostFile));
        assert_eq!(read("wakewatt-host 2\n", "x"), Err(HostFileError::Version("2".into())));
        for bad in [
            "/x",
            "/x ? 1",
            "/cpu{0-99999999999}/x = 1",
            "/cpu{0-3}/x each 1 2",
            "/x hex\n\tzz",
            "msr 1 2 3",
            "/x : sometimes",
            "/%zz = 1",
        ] {
            let error = read(&format!("wakewatt-host 1\n{bad}\n"), "x").unwrap_err();
            assert!(matches!(error, HostFileError::Line { line: 2, .. }), "{bad}: {error}");
        }
        let bomb = "/a{0-65000}/b = 1\n".repeat(40);
        assert!(read(&format!("wakewatt-host 1\n{bomb}"), "x").unwrap_err().to_string().contains("more entries"));
    }

    proptest! {
        #[test]
        fn any_content_survives(bytes in proptest::collection::vec(any::<u8>(), 0..80), text in "[ -~\n\t]{0,60}", name in "[a-z %{}]{1,12}") {
            let mut tree = Tree::default();
            tree.files.insert(format!("/{name}/a"), Ok(bytes));
            tree.files.insert("/b".into(), Ok(text.into_bytes()));
            let back = read(&write(&tree, &[]), "x").unwrap();
            prop_assert_eq!(back.files, tree.files);
        }

        #[test]
        fn blocks_survive(lines in proptest::collection::vec("[a-c^]?|", 0..60), n_times in 1usize..200) {
            let text = format!("{}\n", lines.join("\n")).repeat(n_times * 20);
            let mut tree = Tree::default();
            tree.files.insert("/b".into(), Ok(text.into_bytes()));
            let back = read(&write(&tree, &[]), "x").unwrap();
            prop_assert_eq!(back.files, tree.files);
        }

        #[test]
        fn no_input_panics(text in "(wakewatt-host 1\n)?[ -~\n\t{}]{0,200}") {
            let _ = read(&text, "x");
        }
    }
}
