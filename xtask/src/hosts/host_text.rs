//! The `.host` format read once more, from its description alone, for checking the real reader.
//!
//! It knows values, errors and `each`; folder lists and registers are not compared and are skipped.

use super::content::Content;
use std::collections::BTreeMap;

/// Parses the text; a line it does not understand is skipped, as it can then only be missed, not misread.
pub(crate) fn parse(text: &str) -> BTreeMap<String, Content> {
    let mut files = BTreeMap::new();
    let mut lines = text.lines().skip(1).peekable();
    while let Some(line) = lines.next() {
        let mut body = Vec::new();
        while let Some(more) = lines.peek().and_then(|l| l.strip_prefix('\t')) {
            body.push(more.to_string());
            lines.next();
        }
        let Some((head, rest)) = line.split_once(' ') else { continue };
        if head.starts_with('#') || head == "msr" || head.ends_with('/') {
            continue;
        }
        let paths = expand(head);
        if let Some(values) = rest.strip_prefix("each ") {
            for (path, value) in paths.into_iter().zip(values.split(' ')) {
                files.insert(path, Content::Bytes(format!("{value}\n").into_bytes()));
            }
            continue;
        }
        let content = match rest {
            "hex" => Content::Bytes(from_hex(&body.concat())),
            "<<" => Content::Bytes((body.join("\n") + "\n").into_bytes()),
            "blocks" => Content::Bytes(from_blocks(&body).into_bytes()),
            "<<-" => Content::Bytes(body.join("\n").into_bytes()),
            _ if rest.starts_with("= ") || rest == "=" => {
                Content::Bytes(format!("{}\n", rest[1..].strip_prefix(' ').unwrap_or("")).into_bytes())
            }
            _ if rest.starts_with("=-") => Content::Bytes(rest[2..].strip_prefix(' ').unwrap_or("").into()),
            _ if rest.starts_with("-> ") => Content::Link(unescape(&rest[3..])),
            _ if rest.starts_with(": absent") || rest.starts_with(": not-recorded") => Content::Absent,
            _ if rest.starts_with(": ") || rest.starts_with("->: ") => Content::Error,
            _ => continue,
        };
        for path in paths {
            files.insert(path, content.clone());
        }
    }
    files
}

fn expand(head: &str) -> Vec<String> {
    let Some((before, list, after)) =
        head.split_once('{').and_then(|(b, rest)| rest.split_once('}').map(|(l, a)| (b, l, a)))
    else {
        return vec![unescape(head)];
    };
    let numbers = super::expect::cpu_list(list).unwrap_or_default();
    numbers.into_iter().map(|n| format!("{}{n}{}", unescape(before), unescape(after))).collect()
}

/// `^7` stands for seven lines of the block before, from the same place on; a blank line ends a block.
fn from_blocks(body: &[String]) -> String {
    let mut blocks: Vec<Vec<&str>> = vec![Vec::new()];
    let mut out = String::new();
    for line in body {
        let n_copies = line.strip_prefix('^').and_then(|n| n.parse::<usize>().ok());
        for _ in 0..n_copies.unwrap_or(1) {
            let at = blocks.last().map_or(0, Vec::len);
            let before = blocks.len().checked_sub(2).and_then(|b| blocks[b].get(at).copied());
            let text = if n_copies.is_some() { before.unwrap_or("") } else { line };
            out.push_str(text);
            out.push('\n');
            blocks.last_mut().into_iter().for_each(|b| b.push(text));
            if text.is_empty() {
                blocks.push(Vec::new());
            }
        }
    }
    out
}

fn from_hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter_map(|b| char::from(b).to_digit(16)?.try_into().ok()).collect();
    digits.chunks_exact(2).map(|pair| pair[0] * 16 + pair[1]).collect()
}

fn unescape(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        match (first, more.get(..2)) {
            (b'%', Some(pair)) => {
                bytes.extend(from_hex(&String::from_utf8_lossy(pair)));
                rest = &more[2..];
            }
            _ => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_line() {
        let files = parse(
            "wakewatt-host 1\n# c\n/a{0-1}/x = 7\n/e{0,2}/y each 5 6\n/m <<\n\tone\n\ttwo\n/b hex\n\t00ff\n/no : absent x\n/d : denied x\n/l%20k -> ../t\n/f/ list a b\nmsr 0x1 cpu{0} 2\n",
        );
        let bytes = |path: &str| match files.get(path) {
            Some(Content::Bytes(b)) => b.clone(),
            other => format!("{other:?}").into_bytes(),
        };
        assert_eq!((bytes("/a1/x"), bytes("/e2/y"), bytes("/m")), (b"7\n".into(), b"6\n".into(), b"one\ntwo\n".into()));
        assert_eq!(bytes("/b"), [0, 255]);
        assert_eq!(files["/no"], Content::Absent);
        assert_eq!(files["/d"], Content::Error);
        assert_eq!(files["/l k"], Content::Link("../t".into()));
        assert_eq!(files.len(), 9);
    }
}
