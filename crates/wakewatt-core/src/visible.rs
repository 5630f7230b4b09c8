//! Text from elsewhere, made visible: nothing in it moves the cursor, turns the line round or hides.
//!
//! Names of processes, cgroups, devices and files are bytes that any user may choose, and firmware and run files say what
//! they like. Shown as they are, ESC and the C1 controls command the terminal, the bidirectional controls (Unicode UAX 9)
//! show another text than the one that is there ("Trojan source", CVE-2021-42574), and characters without width let two
//! names look alike. Each is written as its number instead: `\x1b`, `\u{202e}`. A backslash stays a backslash, so the
//! result is to be read, not to be parsed. Left out: letters that look like others, which are somebody's alphabet.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Does it control, hide or reorder rather than show?
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}'
            // Zero width, marks of direction.
            | '\u{200b}'..='\u{200f}'
            // Separators of lines and paragraphs, embeddings, overrides.
            | '\u{2028}'..='\u{202e}'
            // Joiners, invisible operators, isolates, deprecated format characters.
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            // Tags.
            | '\u{e0000}'..='\u{e0fff}')
}

/// One line: line ends and tabs are made visible, too.
pub fn line(text: &str) -> Cow<'_, str> {
    with(text, is_hidden, show)
}

/// Lines: their ends and tabs stay.
pub fn text(text: &str) -> Cow<'_, str> {
    with(text, |c| is_hidden(c) && !matches!(c, '\n' | '\t'), show)
}

/// A JSON document that keeps its data: what `serde_json` leaves as it is becomes `\u....`, which every reader turns back.
/// Such characters stand in strings only.
pub fn json(text: &str) -> Cow<'_, str> {
    with(
        text,
        |c| is_hidden(c) && !matches!(c, '\n' | '\t' | '\r'),
        |c, out| {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        },
    )
}

/// Writes it as its number, or as the letter that people know.
pub fn show(c: char, out: &mut String) {
    let _ = match c {
        '\n' => write!(out, "\\n"),
        '\r' => write!(out, "\\r"),
        '\t' => write!(out, "\\t"),
        c if u32::from(c) < 0x100 => write!(out, "\\x{:02x}", u32::from(c)),
        c => write!(out, "\\u{{{:x}}}", u32::from(c)),
    };
}

fn with(text: &str, is_changed: impl Fn(char) -> bool, show: impl Fn(char, &mut String)) -> Cow<'_, str> {
    let Some(first) = text.find(&is_changed) else { return Cow::Borrowed(text) };
    let (head, rest) = text.split_at(first);
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(head);
    for c in rest.chars() {
        if is_changed(c) {
            show(c, &mut out);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_or_hides_is_shown_as_its_number_and_letters_stay() {
        assert_eq!(
            line("a\x1b[31m\u{9b}K\u{202e}b\u{7f}\r\n\t\u{e0041}"),
            r"a\x1b[31m\x9bK\u{202e}b\x7f\r\n\t\u{e0041}"
        );
        assert_eq!(text("a\n\tb\r\u{2066}"), "a\n\tb\\r\\u{2066}");
        let plain = "Zażółć gęślą jaźń, 電力, µs · … → 🔋";
        assert!(matches!(line(plain), Cow::Borrowed(p) if p == plain));
    }

    #[test]
    fn json_keeps_its_data() {
        let value = "\x1b \u{9b} \u{7f} \u{202e} \u{e0041} \u{2028} é";
        let document = serde_json::to_string(value).unwrap();
        let safe = json(&document);
        assert!(!safe.contains(is_hidden), "{safe}");
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), value);
    }
}
