//! How many columns does a text take on a terminal, and where may a line of it end?
//!
//! A Chinese character is two columns wide, and Chinese has no blanks: a line may end before or after nearly every
//! character. Only what closes (，。）) may not open a line, and what opens (（《) may not end one (GB/T 15834, line-start
//! and line-end rules). Characters that some terminals show wide and others narrow (× “ ”) count as one column, as they are
//! in a terminal whose locale is UTF-8. Escape sequences of colours take none.

/// What may not stand first in a line.
const CLOSING: &str = "，。、；：！？）》」』】”’…,.;:!?)]}%";
/// What may not stand last in a line.
const OPENING: &str = "（《「『【“‘([{";

/// Is it two columns wide?
fn is_wide(c: char) -> bool {
    matches!(u32::from(c), 0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f
        | 0xff01..=0xff60 | 0xffe0..=0xffe6 | 0x20000..=0x3fffd)
}

/// Columns of a text in one line.
pub fn columns(text: &str) -> usize {
    let mut is_escape = false;
    let mut of = |c: char| {
        let is_sign = !is_escape && c != '\x1b';
        is_escape = if is_escape { c != 'm' } else { c == '\x1b' };
        if is_sign { 1 + usize::from(is_wide(c)) } else { 0 }
    };
    text.chars().map(&mut of).sum()
}

/// The parts of a text between which a line may end, each with whether a blank stands before it.
pub fn parts(text: &str) -> Vec<(bool, &str)> {
    let mut out = Vec::new();
    for word in text.split_whitespace() {
        let (mut from, mut before, mut is_escape) = (0, None, false);
        for (at, c) in word.char_indices() {
            if is_escape || c == '\x1b' {
                is_escape = c != 'm';
                continue;
            }
            let may_end = |before: char| {
                (is_wide(before) || is_wide(c)) && !CLOSING.contains(c) && !OPENING.contains(before)
            };
            if before.is_some_and(may_end) {
                out.push((from == 0, &word[from..at]));
                from = at;
            }
            before = Some(c);
        }
        out.push((from == 0, &word[from..]));
    }
    out
}

/// A text broken into lines of this width: `first` opens it, the lines after are indented by `indent`.
pub fn broken(first: &str, indent: usize, text: &str, width: usize) -> String {
    let (mut out, mut line, mut is_empty) = (String::new(), first.to_string(), true);
    for (has_blank, part) in parts(text) {
        if !is_empty && columns(&line) + usize::from(has_blank) + columns(part) > width {
            out += &line;
            out.push('\n');
            line = " ".repeat(indent);
            is_empty = true;
        }
        if has_blank && !is_empty {
            line.push(' ');
        }
        line += part;
        is_empty = false;
    }
    out + &line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_two_columns_and_an_escape_none() {
        assert_eq!(columns("C6 的退出延迟"), 13);
        assert_eq!(columns("\x1b[1m用法：\x1b[0m x"), 8);
        assert_eq!(columns("133 us ± 2 %"), 12);
    }

    #[test]
    fn no_line_opens_with_what_closes() {
        let text = "空闲状态（C6）的退出延迟，按驱动的标称值，是 133 us。";
        for width in 8..50 {
            let lines = broken("", 2, text, width);
            for line in lines.lines() {
                assert!(columns(line) <= width.max(10), "{width}: {line}");
                let (line, closed) = (line.trim_start(), "，。：；）");
                assert!(!line.starts_with(|c| closed.contains(c)) && !line.ends_with('（'), "{width}: {line}");
            }
            let joined: String = lines.split_whitespace().collect();
            assert_eq!(joined, text.replace(' ', ""));
        }
        assert_eq!(broken("a  ", 3, "none of it has to end", 12), "a  none of\n   it has to\n   end");
    }
}
