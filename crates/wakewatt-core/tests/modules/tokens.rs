//! Rust as words and signs: enough to find modules, imports and paths. Comments, texts and what only tests have are left out.

/// The tokens of a file: identifiers, `::`, and single signs.
pub(crate) fn of(text: &str) -> Vec<String> {
    without_tests(&raw(text))
}

fn raw(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut out, mut i) = (Vec::new(), 0);
    while i < chars.len() {
        let from = i;
        match at(i) {
            '/' if at(i + 1) == '/' => i += chars[i..].iter().take_while(|c| **c != '\n').count(),
            '/' if at(i + 1) == '*' => i = past_comment(&chars, i),
            'r' | 'b' if is_raw_text(&chars, i) => i = past_raw_text(&chars, i),
            '"' => i = past_text(&chars, i, '"'),
            // A character has its end two or more places on; a lifetime has none.
            '\'' if at(i + 1) == '\\' || at(i + 2) == '\'' => i = past_text(&chars, i, '\''),
            ':' if at(i + 1) == ':' => {
                out.push("::".into());
                i += 2;
            }
            c if is_word(c) => {
                i += chars[i..].iter().take_while(|c| is_word(**c)).count();
                out.push(chars[from..i].iter().collect());
            }
            c => {
                if !c.is_whitespace() {
                    out.push(c.to_string());
                }
                i += 1;
            }
        }
    }
    out
}

fn past_comment(chars: &[char], from: usize) -> usize {
    let (mut depth, mut i) = (0, from);
    while i + 1 < chars.len() {
        match (chars[i], chars[i + 1]) {
            ('/', '*') => (depth, i) = (depth + 1, i + 2),
            ('*', '/') => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            return i;
        }
    }
    chars.len()
}

/// `r"`, `r#"`, `br"`; not a word that begins so.
fn is_raw_text(chars: &[char], from: usize) -> bool {
    let is_inside = from > 0 && (chars[from - 1].is_alphanumeric() || chars[from - 1] == '_');
    let rest: String = chars[from..].iter().take(12).collect();
    let rest = rest.strip_prefix('b').unwrap_or(&rest);
    !is_inside && rest.strip_prefix('r').is_some_and(|r| r.trim_start_matches('#').starts_with('"'))
}

fn past_raw_text(chars: &[char], from: usize) -> usize {
    let start = from + chars[from..].iter().take_while(|c| **c != '"').count();
    let n_hashes = chars[from..start].iter().filter(|c| **c == '#').count();
    let end: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', n_hashes)).collect();
    let length = chars[start + 1..].windows(end.len()).position(|w| w == end);
    length.map_or(chars.len(), |n| start + 1 + n + end.len())
}

fn past_text(chars: &[char], from: usize, end: char) -> usize {
    let mut i = from + 1;
    while i < chars.len() && chars[i] != end {
        i += if chars[i] == '\\' { 2 } else { 1 };
    }
    i + 1
}

/// Drops each item under `#[cfg(test)]`: up to its `;`, or with its braces.
fn without_tests(tokens: &[String]) -> Vec<String> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let (mut out, mut i) = (Vec::new(), 0);
    while i < tokens.len() {
        if tokens[i..].iter().take(MARK.len()).eq(MARK.iter()) {
            i = past_item(tokens, i + MARK.len());
        } else {
            out.push(tokens[i].clone());
            i += 1;
        }
    }
    out
}

fn past_item(tokens: &[String], from: usize) -> usize {
    let mut depth = 0;
    for (i, token) in tokens.iter().enumerate().skip(from) {
        match token.as_str() {
            "{" | "(" | "[" => depth += 1,
            ")" | "]" => depth -= 1,
            "}" => {
                depth -= 1;
                if depth == 0 {
                    return i + 1;
                }
            }
            ";" if depth == 0 => return i + 1,
            _ => {}
        }
    }
    tokens.len()
}
