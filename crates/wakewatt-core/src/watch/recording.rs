//! What `watch --record` writes: raw counters, one line per moment, so that a kill leaves a readable file.
//!
//! ```text
//! wakewatt-watch 1
//! <crc32> {"layout": …}
//! <crc32> {"counters": …}
//! <crc32> {"end": "…"}
//! ```
//!
//! The checksum (CRC-32, eight hexadecimal digits) is of the JSON after the blank. Lines are only ever appended. A file
//! without an `end` line was cut off: by a kill, by a full disk. Everything before the first bad line counts.

use super::counters::Counters;
use super::layout::Layout;
use serde::{Deserialize, Serialize};

/// First line.
pub const MAGIC: &str = "wakewatt-watch 1";
/// The file inside the folder.
pub const FILE: &str = "counters.watch";

/// One line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// What there was to watch.
    Layout(Box<Layout>),
    /// A moment.
    Counters(Box<Counters>),
    /// The end, and why.
    End(String),
}

/// Why a line is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// Not this format, or another version.
    #[error("not a recording of wakewatt watch (first line \"{0}\"); this program reads \"{MAGIC}\"")]
    Magic(String),
    /// The checksum does not fit: the line was cut or changed.
    #[error("line {0}: the checksum does not fit; the recording was cut off there")]
    Checksum(usize),
    /// The content is not what it should be.
    #[error("line {line}: {reason}")]
    Content {
        /// Counted from 1.
        line: usize,
        /// What was wrong.
        reason: String,
    },
}

/// What a recording holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// What there was to watch.
    pub layout: Layout,
    /// The moments, in order.
    pub moments: Vec<Counters>,
    /// Why the recording ended; none when it was cut off.
    pub end: Option<String>,
    /// What is wrong with it.
    pub trouble: Option<LineError>,
}

/// A line with its checksum; `json` must hold no line break, which JSON never needs.
pub fn seal(json: &str) -> String {
    format!("{:08x} {json}\n", crc32(json.as_bytes()))
}

/// Reads a recording as far as it is whole. Only a file that is none at all is an error.
pub fn read(text: &str, decode: impl Fn(&str) -> Result<Line, String>) -> Result<Recording, LineError> {
    let mut lines = text.split_inclusive('\n').enumerate();
    let first = lines.next().map_or("", |(_, l)| l.trim_end());
    if first != MAGIC {
        return Err(LineError::Magic(first.chars().filter(|c| !crate::visible::is_hidden(*c)).take(40).collect()));
    }
    let mut found = Recording::default();
    let mut has_layout = false;
    for (at, line) in lines {
        let at = at + 1;
        let whole = line.strip_suffix('\n').and_then(|l| l.split_once(' '));
        let sound = whole.filter(|(sum, json)| u32::from_str_radix(sum, 16) == Ok(crc32(json.as_bytes())));
        let Some((_, json)) = sound else {
            found.trouble = Some(LineError::Checksum(at));
            break;
        };
        match decode(json) {
            Ok(Line::Layout(layout)) if !has_layout => (found.layout, has_layout) = (*layout, true),
            Ok(Line::Counters(counters)) if has_layout => found.moments.push(*counters),
            Ok(Line::End(why)) => found.end = Some(why),
            Ok(_) => {
                found.trouble = Some(LineError::Content { line: at, reason: "a line out of place".into() });
                break;
            }
            Err(reason) => {
                found.trouble = Some(LineError::Content { line: at, reason });
                break;
            }
        }
    }
    Ok(found)
}

/// CRC-32 (IEEE 802.3).
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(json: &str) -> Result<Line, String> {
        serde_json::from_str(json).map_err(|e| e.to_string())
    }

    fn recording() -> String {
        let mut text = format!("{MAGIC}\n");
        let mut add = |line: Line| text.push_str(&seal(&serde_json::to_string(&line).unwrap()));
        add(Line::Layout(Box::default()));
        add(Line::Counters(Box::default()));
        add(Line::Counters(Box::default()));
        add(Line::End("done".into()));
        text
    }

    #[test]
    fn crc_is_the_usual_one() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }

    #[test]
    fn a_cut_at_any_byte_keeps_what_is_whole() {
        let text = recording();
        let whole = read(&text, decode).unwrap();
        assert_eq!((whole.moments.len(), whole.end.as_deref(), whole.trouble), (2, Some("done"), None));
        for cut in MAGIC.len() + 1..text.len() {
            let found = read(&text[..cut], decode).unwrap();
            assert!(found.moments.len() <= 2 && found.end.is_none(), "cut at {cut}");
        }
    }

    #[test]
    fn strangers_and_damage_are_named() {
        assert!(matches!(read("wakewatt-host 1\n", decode), Err(LineError::Magic(_))));
        assert!(matches!(read("", decode), Err(LineError::Magic(_))));
        let broken = recording().replacen("took_ns\":0", "took_ns\":1", 1);
        assert_eq!(read(&broken, decode).unwrap().trouble, Some(LineError::Checksum(3)));
    }
}
