//! How many places does a text take in a terminal, and where may it be broken?
//!
//! A Chinese character takes two places, a combining one none, so nothing here counts characters; ratatui knows the widths.
//! Chinese is broken between any two characters, but no line begins with what closes (`，`, `。`, `）`) or ends with what opens.

use ratatui::text::Span;

/// Stands at no line's begin.
const CLOSES: &str = "，。、；：？！）】》」』”’％…·～,.;:?!)]}%";
/// Stands at no line's end.
const OPENS: &str = "（【《「『“‘([{";

/// What a text takes.
pub fn places(text: &str) -> usize {
    Span::raw(text).width()
}

/// With blanks behind it up to so many places.
pub fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(places(text))))
}

/// With blanks before it.
pub fn right(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(places(text))))
}

/// The longest beginning that takes no more than so many places.
pub fn begin(text: &str, width: usize) -> &str {
    let mut taken = 0;
    for (at, c) in text.char_indices() {
        taken += of_char(c);
        if taken > width {
            return &text[..at];
        }
    }
    text
}

/// The parts of a word between which a line may be broken: one, unless it has wide characters.
pub fn pieces(word: &str) -> Vec<&str> {
    let (mut all, mut start) = (Vec::new(), 0);
    let mut before: Option<char> = None;
    for (at, c) in word.char_indices().filter(|_| !word.is_ascii()) {
        let may_break = |before: char| {
            (is_wide(before) || is_wide(c)) && of_char(c) > 0 && !CLOSES.contains(c) && !OPENS.contains(before)
        };
        if before.is_some_and(may_break) {
            all.push(&word[start..at]);
            start = at;
        }
        before = Some(c);
    }
    all.push(&word[start..]);
    all
}

/// Does a character take two places?
pub fn is_wide(c: char) -> bool {
    of_char(c) > 1
}

fn of_char(c: char) -> usize {
    if c.is_ascii() { 1 } else { places(c.encode_utf8(&mut [0; 4])) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chinese_is_broken_between_characters_and_punctuation_stays() {
        assert_eq!(pieces("退出延迟，（133us）。"), ["退", "出", "延", "迟，", "（133us）。"]);
        assert_eq!(pieces("CPU的“深”状态"), ["CPU", "的", "“深”", "状", "态"]);
        assert_eq!(pieces("performance"), ["performance"]);
        assert_eq!(pieces("e\u{301}tat"), ["e\u{301}tat"]);
        assert_eq!(pieces(""), [""]);
    }

    #[test]
    fn places_are_those_of_the_terminal() {
        assert_eq!((places("延迟 C6"), padded("延迟", 6).as_str()), (7, "延迟  "));
        assert_eq!((begin("延迟C6", 5), begin("延迟", 3), begin("abc", 9)), ("延迟C", "延", "abc"));
    }
}
