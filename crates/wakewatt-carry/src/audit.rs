//! Who did what, when, and what came of it: lines that hold together, so that one that was changed or taken out is seen.
//!
//! Each line begins with the SHA-256 of the line before it. Whoever can write the file can make a new chain, so with a key each
//! line also ends with an HMAC-SHA256 over the rest of it (RFC 2104); who checks needs the same key. Lines cut off at the end
//! are seen by neither: the check tells the last hash, to be kept elsewhere.

use ring::{digest, hmac};

/// What stands in front of the first line.
const FIRST: &str = "0000000000000000000000000000000000000000000000000000000000000000";
const SIGNED: &str = r#","hmac":""#;
/// `"}` behind 64 digits.
const SIGNATURE_BYTES: usize = SIGNED.len() + 64 + 2;
/// As many faults as are told.
const MOST_FAULTS: usize = 20;

/// A key that lines are signed with.
#[derive(Debug)]
pub struct Key(hmac::Key);

impl Key {
    /// Of a secret.
    pub fn new(secret: &[u8]) -> Key {
        Key(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }
}

/// SHA-256 in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

/// In hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pair = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(pair).collect()
}

/// A JSON object of one line, chained to the line before it and signed where there is a key.
pub fn seal(object: &str, before: Option<&[u8]>, key: Option<&Key>) -> String {
    let before = before.map_or_else(|| FIRST.into(), sha256);
    let inner = object.trim().strip_prefix('{').and_then(|o| o.strip_suffix('}')).unwrap_or_default();
    let comma = if inner.is_empty() { "" } else { "," };
    let line = format!(r#"{{"before":"{before}"{comma}{inner}}}"#);
    let Some(Key(key)) = key else { return line };
    let open = line.strip_suffix('}').unwrap_or(&line);
    format!("{open}{SIGNED}{}\"}}", hex(hmac::sign(key, open.as_bytes()).as_ref()))
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Lines.
    pub n_lines: usize,
    /// Lines with a signature.
    pub n_signed: usize,
    /// Of the last line: whoever kept it sees whether lines were cut off.
    pub last: String,
    /// What is wrong, line by line.
    pub faults: Vec<String>,
}

/// Checks a log. With a key every line must be signed by it.
pub fn check(log: &[u8], key: Option<&Key>) -> Checked {
    let mut checked = Checked { last: FIRST.into(), ..Checked::default() };
    let body = log.strip_suffix(b"\n").unwrap_or(log);
    for line in body.split(|b| *b == b'\n').filter(|_| !body.is_empty()) {
        checked.n_lines += 1;
        let text = String::from_utf8_lossy(line);
        let fault = fault(&text, &checked.last, key);
        let is_signed = text.contains(SIGNED);
        checked.n_signed += usize::from(is_signed);
        if let Some(why) = fault.filter(|_| checked.faults.len() < MOST_FAULTS) {
            checked.faults.push(format!("line {}: {why}", checked.n_lines));
        }
        checked.last = sha256(line);
    }
    checked
}

fn fault(line: &str, before: &str, key: Option<&Key>) -> Option<&'static str> {
    if serde_json::from_str::<serde_json::Value>(line).is_err() {
        return Some("is no JSON: cut short by a crash, or written by somebody else");
    }
    if !line.starts_with(&format!(r#"{{"before":"{before}""#)) {
        return Some("does not follow the line before it: a line was changed, put in or taken out");
    }
    let Key(key) = key?;
    let signed = line.len().checked_sub(SIGNATURE_BYTES).and_then(|at| Some((line.get(..at)?, line.get(at..)?)));
    let Some((open, signature)) = signed else { return Some("is not signed") };
    let digits = signature.strip_prefix(SIGNED).and_then(|s| s.strip_suffix("\"}")).and_then(unhex);
    match digits {
        None => Some("is not signed"),
        Some(bytes) if hmac::verify(key, open.as_bytes(), &bytes).is_ok() => None,
        Some(_) => Some("was signed with another key, or changed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(key: Option<&Key>) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for object in [r#"{"what":"apply","node":"a","with":{"x":1}}"#, "{}", r#"{"what":"undo, \"hmac\":\""}"#] {
            let line = seal(object, lines.last().map(String::as_bytes), key);
            assert!(serde_json::from_str::<serde_json::Value>(&line).is_ok(), "{line}");
            lines.push(line);
        }
        lines
    }

    fn found(lines: &[String], key: Option<&Key>) -> Vec<String> {
        check((lines.join("\n") + "\n").as_bytes(), key).faults
    }

    #[test]
    fn a_line_that_was_changed_put_in_or_taken_out_is_seen() {
        let key = Key::new(b"k");
        for key in [None, Some(&key)] {
            let lines = log(key);
            assert_eq!(found(&lines, key), [""; 0]);
            for at in 0..2 {
                let mut fewer = lines.clone();
                fewer.remove(at);
                assert!(!found(&fewer, key).is_empty(), "taken out: {at}");
                let mut changed = lines.clone();
                changed[at] = changed[at].replacen("\"before\"", "\"b\":1,\"before\"", 1);
                assert!(!found(&changed, key).is_empty(), "changed: {at}");
            }
        }
        // A new chain is seen by the key only.
        let forged = log(None);
        assert!(found(&forged, None).is_empty() && found(&forged, Some(&key)).iter().all(|f| f.contains("not signed")));
        assert!(found(&log(Some(&Key::new(b"other"))), Some(&key))[0].contains("another key"));
    }

    #[test]
    fn the_end_is_told_and_rubbish_is_no_panic() {
        let lines = log(None);
        let all = check(lines.join("\n").as_bytes(), None);
        assert_eq!((all.n_lines, all.last), (3, sha256(lines[2].as_bytes())));
        assert_eq!(check(b"", None).n_lines, 0);
        let cut = format!("{}\n{}", lines[0], &lines[1][..20]);
        assert!(check(cut.as_bytes(), None).faults[0].contains("cut short"));
        check(&[0xff; 300], Some(&Key::new(b"k")));
        check("{\"before\":\"ä".as_bytes(), Some(&Key::new(b"k")));
    }
}
