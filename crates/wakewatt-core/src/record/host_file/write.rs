//! A tree as the lines of a `.host` file: equal values of many CPUs become one line, numbers sort as numbers.

use super::names::escape;
use super::{END, MAX_NUMBER, VERSION};
use crate::arrange::Arrange as _;
use crate::cpuset::CpuSet;
use crate::record::blocks::blocks;
use crate::source::{ErrorKind, Read, ReadError, Tree};
use crate::visible::is_hidden;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

/// Writes a tree.
pub fn write(tree: &Tree, comments: &[String]) -> String {
    let mut out = format!("wakewatt-host {VERSION}\n");
    if tree.is_partial {
        out.push_str("partial\n");
    }
    if tree.is_imported {
        out.push_str("imported\n");
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
        values.arrange_by_key(|(_, cpus)| cpus.first());
        for (value, cpus) in values {
            let _ = writeln!(out, "msr 0x{address:x} cpu{{{cpus}}} {value}");
        }
    }
    out.push_str(END);
    out.push('\n');
    out
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
