//! Help that fits the terminal it is read in. Examples and closing words are written once, in lines of any length; where those
//! are longer than the terminal is wide, an example's remark goes below its command, a long command is continued as a shell
//! continues it, and words are filled with the indent of their line. clap would break them at column 0.

use clap::Command;

/// Under a command.
const BELOW: usize = 6;

/// The command and all below it, for so many columns.
pub(super) fn laid_out(mut command: Command, width: usize) -> Command {
    for sub in command.get_subcommands_mut() {
        *sub = laid_out(std::mem::take(sub), width);
    }
    let (before, after) = (command.get_before_help(), command.get_after_help());
    let (before, after) =
        (before.map(|text| examples(&text.to_string(), width)), after.map(|t| filled(&t.to_string(), width)));
    if let Some(text) = before {
        command = command.before_help(text);
    }
    match after {
        Some(text) => command.after_help(text),
        None => command,
    }
}

/// A command and what is said of it, which stands behind two blanks or more.
fn halves(line: &str) -> (&str, &str) {
    let line = line.trim();
    line.split_once("  ").map_or((line, ""), |(command, remark)| (command, remark.trim()))
}

fn examples(text: &str, width: usize) -> String {
    if text.lines().all(|line| line.chars().count() <= width) {
        return text.to_string();
    }
    let length = |text: &str| text.chars().count();
    let fits = |line: &str| {
        let (command, remark) = halves(line);
        !remark.is_empty() && 2 + length(command) + 2 + length(remark) <= width
    };
    // The column of remarks that stand beside their command, as far as all of these fit.
    let beside = text.lines().filter(|line| line.starts_with("  ") && fits(line));
    let column = beside.map(|line| 2 + length(halves(line).0) + 2).max().unwrap_or(0);
    let mut out: Vec<String> = Vec::new();
    for line in text.lines() {
        let (command, remark) = halves(line);
        if !line.starts_with("  ") {
            out.push(line.to_string());
        } else if !remark.is_empty() && fits(line) && column + length(remark) <= width {
            out.push(format!("{:column$}{remark}", format!("  {command}")));
        } else {
            out.extend(broken(command, 2, width.saturating_sub(2), " \\"));
            out.extend(broken(remark, BELOW, width, ""));
        }
    }
    out.join("\n")
}

/// Words in lines of this width, the first after so many blanks, the others below a command; `end` closes each but the last.
fn broken(text: &str, indent: usize, width: usize, end: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words(text) {
        match lines.last_mut().filter(|line| line.chars().count() + 1 + word.chars().count() <= width) {
            Some(line) => *line = format!("{line} {word}"),
            None => lines.push(format!("{:1$}{word}", "", if lines.is_empty() { indent } else { BELOW })),
        }
    }
    let last = lines.len().saturating_sub(1);
    lines.iter_mut().take(last).for_each(|line| line.push_str(end));
    lines
}

/// What a shell takes for words: blanks within quotes divide nothing.
fn words(text: &str) -> Vec<&str> {
    let (mut quote, mut all, mut start) = (None, Vec::new(), 0);
    for (at, c) in text.char_indices() {
        match (c, quote) {
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (' ', None) => {
                all.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    all.push(&text[start..]);
    all.retain(|word| !word.is_empty());
    all
}

/// Paragraphs; a line of a table, whose words begin behind two blanks or more, hangs from the column where they begin.
fn filled(text: &str, width: usize) -> String {
    /// So long is a line that its author broke.
    const BROKEN: usize = 60;
    // What stands before the words of a paragraph, the words, and how long its last line was.
    let mut parts: Vec<(&str, String, usize)> = Vec::new();
    for line in text.lines() {
        let body = line.trim_start();
        let indent = line.len() - body.len();
        match parts.last_mut() {
            Some((front, words, length)) if *length > BROKEN && indent == front.len() && !body.is_empty() => {
                *words += &format!(" {body}");
                *length = line.len();
            }
            _ => {
                let at = body.find("  ").map_or(indent, |at| line.len() - body[at..].trim_start().len());
                parts.push((&line[..at], line[at..].to_string(), line.len()));
            }
        }
    }
    let mut out: Vec<String> = Vec::new();
    for (front, words, _) in parts {
        let mut line = front.to_string();
        for word in words.split_whitespace() {
            if line.len() > front.len() && line.chars().count() + 1 + word.chars().count() > width {
                out.push(std::mem::replace(&mut line, " ".repeat(front.len())));
            }
            if line.len() > front.len() {
                line.push(' ');
            }
            line += word;
        }
        out.push(line);
    }
    out.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays_as_it_was_written() {
        let text = "Example:\n  wakewatt a        one\n  wakewatt b c      two";
        assert_eq!(examples(text, 80), text);
        assert_eq!(filled("Exit codes:\n  0    fine\n  1    not", 80), "Exit codes:\n  0    fine\n  1    not");
    }

    #[test]
    fn remarks_go_below_and_commands_go_on() {
        let text = "Example:\n  wakewatt a        one\n  wakewatt b --work 'sum by (x)' --long https://example   what that is good for";
        let narrow = examples(text, 40);
        assert_eq!(
            narrow,
            "Example:\n  wakewatt a  one\n  wakewatt b --work 'sum by (x)' \\\n      --long https://example\n      what that is good for"
        );
        assert!(narrow.lines().all(|line| line.chars().count() <= 40));
    }

    #[test]
    fn words_hang_from_their_column() {
        let text = "Exit codes:\n  1    --fail-on was given and there is such a finding, or something is much\n       worse than allowed\n  2    wrong";
        assert_eq!(
            filled(text, 50),
            "Exit codes:\n  1    --fail-on was given and there is such a\n       finding, or something is much worse than\n       allowed\n  2    wrong"
        );
    }
}
