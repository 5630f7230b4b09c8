//! The lines of a `.host` file as a tree. Room for what a line stands for is taken before it is made, so that a hundred bytes
//! cannot fill the memory.

use super::names::unescape;
use super::{HostFileError, MAX_NUMBER, VERSION};
use crate::cpuset::CpuSet;
use crate::record::blocks::unblock;
use crate::record::room::Room;
use crate::source::{ErrorKind, Read, ReadError, Tree};

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
        if line == "imported" {
            tree.is_imported = true;
        }
        if line.is_empty() || line.starts_with('#') || line == "partial" || line == "imported" {
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
pub(super) const TOO_MUCH: &str = "more entries than any machine has";

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
