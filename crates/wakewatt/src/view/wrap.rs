//! One paragraph broken into lines: `first` opens it, `rest` indents the lines after. Longer words stand alone.
//!
//! Lines are as wide as a terminal shows them, and Chinese, which has no blanks, is broken where it may be (`width.rs`).

use super::width::{pieces, places};

/// Breaks it.
pub fn wrap(first: &str, rest: &str, text: &str, width: usize) -> String {
    // Line ends and tabs become blanks below.
    let clean = wakewatt_core::visible::text(text);
    let (mut lines, mut line, mut is_empty) = (Vec::new(), first.to_string(), true);
    let mut taken = places(first.trim_start_matches('\n'));
    for word in clean.split_whitespace() {
        for (at, piece) in pieces(word).into_iter().enumerate() {
            let (blank, own) = (usize::from(at == 0), places(piece));
            if !is_empty && taken + blank + own > width.max(20) {
                lines.push(std::mem::replace(&mut line, rest.to_string()));
                (is_empty, taken) = (true, places(rest));
            }
            if !is_empty && at == 0 {
                line.push(' ');
                taken += 1;
            }
            line.push_str(piece);
            taken += own;
            is_empty = false;
        }
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
        if !is_empty && places(&line) + places(&part) + 3 > width.max(20) {
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

    #[test]
    fn chinese_fits_its_lines_and_no_line_begins_with_what_closes() {
        let text = "空闲状态 C6 的退出延迟是 133 us（标称），比实测的 p99 高；“深”空闲状态在这里每次唤醒要多付 34 us，请求越少越明显。".repeat(3);
        for width in [20, 33, 40, 80] {
            let wrapped = wrap("  - ", "    ", &text, width);
            for line in wrapped.lines() {
                assert!(places(line) <= width, "{line}");
                assert!(!line.trim_start().starts_with(['，', '。', '；', '）', '”']), "{line}");
                assert!(!line.ends_with(['（', '“']), "{line}");
            }
            let joined: String = wrapped.split_whitespace().collect();
            assert_eq!(joined, format!("-{}", text.split_whitespace().collect::<String>()));
        }
        // A character never goes to the next line while it has room.
        assert_eq!(wrap("", "", &"延".repeat(15), 20), format!("{}\n{}", "延".repeat(10), "延".repeat(5)));
    }
}
