//! One paragraph broken into lines: `first` opens it, `rest` indents the lines after. Longer words stand alone.

/// Breaks it.
pub fn wrap(first: &str, rest: &str, text: &str, width: usize) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let (mut lines, mut line, mut is_empty) = (Vec::new(), first.to_string(), true);
    let length = |s: &str| s.trim_start_matches('\n').chars().count();
    for word in clean.split_whitespace() {
        if !is_empty && length(&line) + 1 + word.chars().count() > width.max(20) {
            lines.push(std::mem::replace(&mut line, rest.to_string()));
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines.push(line);
    lines.join("\n")
}
