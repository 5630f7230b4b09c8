//! tar, as far as support archives need it: plain files one after the other, each as a stream.
//!
//! Links, devices and folders are passed over: nothing is unpacked, so nothing can lead anywhere. Written by Python, GNU tar, bsdtar or
//! busybox: long names come GNU's way (a record before the file) or pax', large sizes as octal, as binary or by pax, sparse files
//! with maps of their own behind the header. No length is believed: what is not there is a cut archive, and what came before it
//! has been seen.

use std::io::{self, Read};

/// Entries that are looked at.
const MAX_ENTRIES: usize = 2_000_000;
/// A name is no longer than this.
const MAX_NAME: usize = 4096;
/// Of a record that describes the next file, no more is read: labels of a file system may stand before its name.
const MAX_RECORD: u64 = 256 << 10;
const BLOCK: usize = 512;

/// Is it tar, by its first block?
pub fn is_tar(front: &[u8]) -> bool {
    front.get(257..262) == Some(b"ustar")
}

/// What a record before a file says of it.
#[derive(Default)]
struct Next {
    name: Option<String>,
    size: Option<u64>,
}

/// Shows every plain file, with its name and length; what the visitor leaves of it is passed over. Why it ended early is an error.
pub fn walk(tar: &mut dyn Read, visit: &mut dyn FnMut(&str, u64, &mut dyn Read) -> io::Result<()>) -> io::Result<()> {
    let damaged = |why: &str| io::Error::new(io::ErrorKind::InvalidData, format!("the archive is damaged: {why}"));
    let mut next = Next::default();
    for _ in 0..MAX_ENTRIES {
        let mut head = [0u8; BLOCK];
        match fill(tar, &mut head)? {
            BLOCK => {}
            // An archive ends with a block of zeros, so one without was cut between two files.
            _ => return Err(cut()),
        }
        if head.iter().all(|b| *b == 0) {
            return Ok(());
        }
        let at_sum = 148..156;
        let sum: u64 =
            head.iter().enumerate().map(|(at, b)| u64::from(if at_sum.contains(&at) { b' ' } else { *b })).sum();
        if number(&head[at_sum]) != Some(sum) {
            return Err(damaged("a header's checksum is wrong"));
        }
        let size = number(&head[124..136]).ok_or_else(|| damaged("a length is no number"))?;
        let kind = head[156];
        if matches!(kind, b'L' | b'x') {
            let mut record = Vec::new();
            tar.take(size.min(MAX_RECORD)).read_to_end(&mut record)?;
            pass(tar, size, record.len() as u64)?;
            match kind {
                b'L' => next.name = named(&record),
                _ => pax(&record, &mut next),
            }
            continue;
        }
        if kind == b'S' {
            // Its map goes on in blocks of its own, each of which says whether another one follows.
            let (mut goes_on, mut map) = (head[482] != 0, [0u8; BLOCK]);
            while goes_on {
                if fill(tar, &mut map)? < map.len() {
                    return Err(cut());
                }
                goes_on = map[504] != 0;
            }
        }
        // Links, folders and what describes a whole archive have no business here; a long target of a link is one of them.
        if !matches!(kind, b'0' | b'7' | 0) {
            if !matches!(kind, b'K' | b'g') {
                next = Next::default();
            }
            pass(tar, size, 0)?;
            continue;
        }
        let Next { name, size: own } = std::mem::take(&mut next);
        let (name, size) = (name.unwrap_or_else(|| short_name(&head)), own.unwrap_or(size));
        let mut body = tar.take(size);
        visit(&name, size, &mut body)?;
        let n_read = size - body.limit();
        pass(tar, size, n_read)?;
    }
    Err(io::Error::new(io::ErrorKind::FileTooLarge, "more entries than any report has"))
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the archive is cut off")
}

/// Over what is left of a file, and what fills its last block; the very last block may be missing.
fn pass(tar: &mut dyn Read, size: u64, n_read: u64) -> io::Result<()> {
    let left = size.saturating_sub(n_read);
    if io::copy(&mut tar.take(left), &mut io::sink())? < left {
        return Err(cut());
    }
    let block = BLOCK as u64;
    let filling = (block - size % block) % block;
    io::copy(&mut tar.take(filling), &mut io::sink()).map(drop)
}

fn fill(tar: &mut dyn Read, block: &mut [u8]) -> io::Result<usize> {
    let mut n = 0;
    while n < block.len() {
        match tar.read(&mut block[n..]) {
            Ok(0) => break,
            Ok(more) => n += more,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(n)
}

fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn short_name(head: &[u8; BLOCK]) -> String {
    let (name, prefix) = (text_of(&head[..100]), text_of(&head[345..500]));
    // GNU's own header has times where the prefix stands, and a blank behind `ustar`.
    if prefix.is_empty() || &head[257..263] != b"ustar\0" { name } else { format!("{prefix}/{name}") }
}

fn named(record: &[u8]) -> Option<String> {
    Some(text_of(record)).filter(|name| !name.is_empty() && name.len() < MAX_NAME)
}

/// Records of pax: `LENGTH key=value` and a line's end, which the value may hold as well.
fn pax(mut record: &[u8], next: &mut Next) {
    while let Some(blank) = record.iter().position(|b| *b == b' ') {
        let length: Option<usize> = std::str::from_utf8(&record[..blank]).ok().and_then(|n| n.parse().ok());
        let Some(line) = length.filter(|n| *n > blank + 1).and_then(|n| record.get(blank + 1..n - 1)) else { return };
        if let Some(path) = line.strip_prefix(b"path=") {
            next.name = named(path).or(next.name.take());
        } else if let Some(size) = line.strip_prefix(b"size=") {
            next.size = std::str::from_utf8(size).ok().and_then(|n| n.parse().ok());
        }
        record = record.get(blank + 2 + line.len()..).unwrap_or_default();
    }
}

/// Octal digits, or the binary form of what is too large for them.
fn number(field: &[u8]) -> Option<u64> {
    if field.first() == Some(&0x80) {
        let (front, back) = field[1..].split_at(field.len().saturating_sub(9));
        let bytes: [u8; 8] = back.try_into().ok()?;
        return front.iter().all(|b| *b == 0).then(|| u64::from_be_bytes(bytes));
    }
    let text = text_of(field);
    let text = text.trim();
    if text.is_empty() { Some(0) } else { u64::from_str_radix(text, 8).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, kind: u8, body: &[u8]) -> Vec<u8> {
        let mut head = [0u8; 512];
        head[..name.len()].copy_from_slice(name.as_bytes());
        head[124..135].copy_from_slice(format!("{:011o}", body.len()).as_bytes());
        head[156] = kind;
        head[257..262].copy_from_slice(b"ustar");
        summed(head, body)
    }

    fn summed(mut head: [u8; 512], body: &[u8]) -> Vec<u8> {
        head[148..156].fill(b' ');
        let sum: u64 = head.iter().map(|b| u64::from(*b)).sum();
        head[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        let mut out = head.to_vec();
        out.extend(body);
        out.resize(out.len().next_multiple_of(512), 0);
        out
    }

    fn seen(bytes: &[u8]) -> (Vec<(String, String)>, Result<(), String>) {
        let (mut found, mut bytes) = (Vec::new(), bytes);
        let ended = walk(&mut bytes, &mut |name, _, body| {
            let mut text = String::new();
            body.take(8).read_to_string(&mut text)?;
            found.push((name.to_string(), text));
            Ok(())
        });
        (found, ended.map_err(|e| e.to_string()))
    }

    fn pair(name: &str, text: &str) -> (String, String) {
        (name.into(), text.into())
    }

    #[test]
    fn files_are_seen_links_are_not_and_cuts_are_said() {
        let long = format!("{}/proc/cmdline", "x".repeat(120));
        let tar = [
            entry("a/proc/version", b'0', b"Linux version 6"),
            entry("a/sys/x", b'2', b""),
            entry("K", b'K', b"a long target"),
            entry("L", b'L', long.as_bytes()),
            entry("short", b'0', b"quiet"),
            entry("a/dir", b'5', b""),
            vec![0; 1024],
        ]
        .concat();
        assert_eq!(seen(&tar), (vec![pair("a/proc/version", "Linux ve"), pair(&long, "quiet")], Ok(())));
        assert!(is_tar(&tar));
        assert_eq!(seen(&tar[..520]).1, Err("the archive is cut off".into()), "the visitor had eight bytes of fifteen");
        assert_eq!(seen(&tar[..1100]).1, Err("the archive is cut off".into()));
        let without_end = tar.len() - 1024;
        assert_eq!(seen(&tar[..without_end]).1, Err("the archive is cut off".into()), "between two files");
        let mut broken = tar.clone();
        broken[3] ^= 1;
        assert!(seen(&broken).1.unwrap_err().contains("checksum"));
    }

    #[test]
    fn pax_binary_sizes_and_sparse_files() {
        let mtime = "30 mtime=1700000000.123456789\n";
        let path = "path=ä b/proc/cmd\nline";
        let mut record = mtime.as_bytes().to_vec();
        let length = path.len() + 4;
        record.extend(format!("{length} {path}\n").as_bytes());
        let mut large = [0u8; 512];
        large[..4].copy_from_slice(b"core");
        large[124] = 0x80;
        large[135] = 3;
        large[156] = b'0';
        large[257..262].copy_from_slice(b"ustar");
        let mut sparse = [0u8; 512];
        sparse[..1].copy_from_slice(b"s");
        sparse[124..135].copy_from_slice(b"00000000003");
        sparse[156] = b'S';
        sparse[257..262].copy_from_slice(b"ustar");
        sparse[482] = 1;
        let map = [0u8; 512];
        let sparse = [summed(sparse, b"").as_slice(), &map, &entry("", 0, b"abc")[512..]].concat();
        let tar = [
            entry("x", b'x', &record),
            entry("y", b'0', b"1"),
            summed(large, b"123"),
            sparse,
            entry("z", 0, b"2"),
            vec![0; 512],
        ];
        let want = vec![pair("ä b/proc/cmd\nline", "1"), pair("core", "123"), pair("z", "2")];
        assert_eq!(seen(&tar.concat()), (want, Ok(())));
        let endless = entry("x", b'0', b"1")
            .iter()
            .enumerate()
            .map(|(at, b)| if at == 124 { 0xff } else { *b })
            .collect::<Vec<_>>();
        assert!(seen(&endless).1.is_err());
    }
}
