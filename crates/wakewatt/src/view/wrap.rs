//! One paragraph broken into lines: `first` opens it, `rest` indents the lines after. Longer words stand alone; where
//! Chinese may be broken says `wide`.

use super::wide::{columns, parts};

/// Breaks it.
pub fn wrap(first: &str, rest: &str, text: &str, width: usize) -> String {
    // Line ends and tabs become blanks below.
    let clean = wakewatt_core::visible::text(text);
    let (mut lines, mut line, mut is_empty) = (Vec::new(), first.to_string(), true);
    let length = |s: &str| columns(s.trim_start_matches('\n'));
    for (has_blank, word) in parts(&clean) {
        if !is_empty && length(&line) + usize::from(has_blank) + columns(word) > width.max(20) {
            lines.push(std::mem::replace(&mut line, rest.to_string()));
            is_empty = true;
        }
        if has_blank && !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines.push(line);
    lines.join("\n")
}

/// Breaks a shell's line so that it can still be pasted: between words only, with a backslash where it goes on.
/// A quoted word stays whole, and an option keeps its value, whatever their length.
pub fn wrap_command(first: &str, rest: &str, line: &str, width: usize) -> String {
    let (mut words, mut is_quoted) = (vec![String::new()], false);
    for c in line.chars() {
        is_quoted ^= c == '\'';
        match words.last_mut() {
            Some(word) if c != ' ' || is_quoted => word.push(c),
            _ => words.push(String::new()),
        }
    }
    let mut parts: Vec<String> = Vec::new();
    for word in words {
        match parts.last_mut() {
            Some(last) if last.starts_with("--") && !last.contains(' ') && !word.starts_with("--") => {
                *last = format!("{last} {word}");
            }
            _ => parts.push(word),
        }
    }
    let (mut lines, mut line, mut is_empty) = (Vec::new(), first.to_string(), true);
    for part in parts {
        // Room for the blank before it and for the blank and backslash behind.
        if !is_empty && line.chars().count() + part.chars().count() + 3 > width.max(20) {
            lines.push(std::mem::replace(&mut line, rest.to_string()) + " \\");
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line += &part;
        is_empty = false;
    }
    lines.push(line);
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_goes_on_behind_a_backslash() {
        let line = "wakewatt tune plan --set 'idle.state.haltpoll idle=off' --max-latency 4us";
        assert_eq!(
            wrap_command("look: ", "    ", line, 50),
            "look: wakewatt tune plan \\\n    --set 'idle.state.haltpoll idle=off' \\\n    --max-latency 4us"
        );
        assert_eq!(wrap_command("", "", line, 100), line);
    }
}
