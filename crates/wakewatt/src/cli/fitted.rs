//! Help and errors of the command line in another language, fitted to the terminal.
//!
//! clap breaks lines at blanks and counts characters, and the words of its own frame are fixed. So where the language is not
//! English it is told that there is no limit, and what it made is gone over here: its words are looked up ([`FRAME`], kept in
//! `languages/*/tables.po`), then lines are broken by [`crate::view::width`]. A second column stays a column as long as
//! there is room for one.

use crate::view::width::{pieces, places};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use wakewatt_words::{say, told};

/// The widest line, as in English.
const WIDEST: usize = 100;
/// A second column narrower than this goes below the first; that of examples may be narrower, their commands are long.
const NARROWEST: usize = 36;
const NARROWEST_BESIDE_COMMANDS: usize = 24;
/// Where it then begins, as with clap.
const BELOW: usize = 10;

/// What clap writes around our texts, the longer before what they begin with.
pub const FRAME: &[&str] = &[
    "Print help (see more with '--help')",
    "Print help (see a summary with '-h')",
    "Print help",
    "Print version",
    "Usage:",
    "Arguments:",
    "Options:",
    "Commands:",
    "Possible values:",
    "[possible values: ",
    "[default: ",
    "[aliases: ",
    "[subcommands: ",
    "error: ",
    "tip:",
    "a similar argument exists:",
    "some similar arguments exist:",
    "a similar subcommand exists:",
    "some similar subcommands exist:",
    "a similar value exists:",
    "some similar values exist:",
    "to pass '",
    "' as a value, use '",
    "For more information, try '",
];

/// What clap rendered, in the language in force and at most so wide.
pub fn fitted(error: &clap::Error, rendered: &str, width: usize) -> String {
    let text = match error.use_stderr() {
        true => complaint(error, rendered),
        false => rendered.lines().map(framed).collect::<Vec<_>>().join("\n") + "\n",
    };
    wrapped(&text, width.min(WIDEST))
}

/// A line with clap's words in the language in force.
fn framed(line: &str) -> String {
    let mut line = line.to_string();
    for words in FRAME {
        if line.contains(words) {
            line = line.replacen(words, told(words), 1);
        }
    }
    // A value of an option with its own help: `- name: help`.
    let help = line.trim_start().strip_prefix("- ").and_then(|rest| rest.split_once(": "));
    let help = help.map(|(_, help)| help.trim_start()).filter(|help| told(help) != *help);
    match help {
        Some(help) => line[..line.len() - help.len()].to_string() + told(help),
        None => line,
    }
}

/// What is wrong with a command line; what it is about stands in clap's context, what to do about it below.
fn complaint(error: &clap::Error, rendered: &str) -> String {
    let (first, rest) = rendered.split_once('\n').unwrap_or((rendered, ""));
    let first = match sentence(error) {
        Some(sentence) => told("error: ").to_string() + &sentence,
        None => framed(first),
    };
    std::iter::once(first).chain(rest.lines().map(framed)).collect::<Vec<_>>().join("\n") + "\n"
}

/// The first line of an error, where its kind is one that people meet.
fn sentence(error: &clap::Error) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let argument = || text(ContextKind::InvalidArg);
    Some(match error.kind() {
        ErrorKind::UnknownArgument => say!("unexpected argument '{argument}' found", argument = argument()?),
        ErrorKind::InvalidSubcommand => {
            say!("unrecognized subcommand '{name}'", name = text(ContextKind::InvalidSubcommand)?)
        }
        ErrorKind::MissingRequiredArgument => say!("the following required arguments were not provided:"),
        ErrorKind::MissingSubcommand => {
            let name = text(ContextKind::InvalidSubcommand)?;
            say!("'{name}' requires a subcommand but one was not provided")
        }
        ErrorKind::InvalidValue => {
            let (argument, value) = (argument()?, text(ContextKind::InvalidValue)?);
            match value.is_empty() {
                true => say!("a value is required for '{argument}' but none was supplied"),
                false => say!("invalid value '{value}' for '{argument}'"),
            }
        }
        ErrorKind::ValueValidation => {
            let (argument, value) = (argument()?, text(ContextKind::InvalidValue)?);
            let why = std::error::Error::source(error).map(|why| why.to_string()).unwrap_or_default();
            say!("invalid value '{value}' for '{argument}': {why}")
        }
        ErrorKind::ArgumentConflict => {
            let (argument, other) = (argument()?, text(ContextKind::PriorArg)?);
            match argument == other {
                true => say!("the argument '{argument}' cannot be used multiple times"),
                false => say!("the argument '{argument}' cannot be used with '{other}'"),
            }
        }
        ErrorKind::TooManyValues => {
            let (argument, value) = (argument()?, text(ContextKind::InvalidValue)?);
            say!("unexpected value '{value}' for '{argument}' found; no more were expected")
        }
        _ => return None,
    })
}

/// Columns of a line; the escape sequences of colours take none.
fn columns(line: &str) -> usize {
    let mut parts = line.split('\x1b');
    let plain = places(parts.next().unwrap_or_default());
    plain + parts.map(|part| places(part.split_once('m').map_or(part, |(_, behind)| behind))).sum::<usize>()
}

/// A text broken into lines of this width: `first` opens it, the lines after are indented.
fn broken(first: &str, indent: usize, text: &str, width: usize) -> String {
    let (mut out, mut line, mut is_empty) = (String::new(), first.to_string(), true);
    for word in text.split_whitespace() {
        for (at, piece) in pieces(word).into_iter().enumerate() {
            let has_blank = at == 0 && !is_empty;
            if !is_empty && columns(&line) + usize::from(has_blank) + columns(piece) > width {
                out += &line;
                out.push('\n');
                (line, is_empty) = (" ".repeat(indent), true);
            }
            if has_blank && !is_empty {
                line.push(' ');
            }
            line += piece;
            is_empty = false;
        }
    }
    out + &line
}

/// A line taken apart: where its second column begins, in bytes and in columns, if it has one.
fn second(line: &str) -> Option<(usize, usize)> {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let gap = indent + line[indent..].find("  ")?;
    let at = gap + line[gap..].len() - line[gap..].trim_start_matches(' ').len();
    (at < line.len()).then(|| (at, columns(&line[..at])))
}

/// Lines that are too wide, broken; a paragraph's second columns go below together.
fn wrapped(text: &str, width: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = String::with_capacity(text.len());
    for paragraph in lines.split_inclusive(|line| line.is_empty()) {
        let narrow: Vec<usize> = paragraph
            .iter()
            .filter(|line| columns(line) > width)
            .filter_map(|line| {
                let is_option = line.trim_start().starts_with('-');
                let narrowest = if is_option { NARROWEST } else { NARROWEST_BESIDE_COMMANDS };
                second(line).map(|(_, column)| column).filter(|column| column + narrowest > width)
            })
            .collect();
        for line in paragraph {
            let indent = line.len() - line.trim_start_matches(' ').len();
            out += &match second(line) {
                Some((at, column)) if narrow.contains(&column) => {
                    let (first, below) = (line[..at].trim_end(), " ".repeat(BELOW));
                    // A command may be too wide by itself.
                    let first = match columns(first) <= width {
                        true => first.to_string(),
                        false => broken(&line[..indent], indent, &first[indent..], width),
                    };
                    format!("{first}\n{}", broken(&below, BELOW, &line[at..], width))
                }
                _ if columns(line) <= width => line.to_string(),
                Some((at, column)) => broken(&line[..at], column, &line[at..], width),
                None => broken(&line[..indent], indent, line, width),
            };
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_words::{Language, within};

    /// Every command's help, short and long, in Chinese as clap makes it.
    fn every_help() -> Vec<String> {
        fn of(command: &mut clap::Command, out: &mut Vec<String>) {
            out.push(command.render_help().to_string());
            out.push(command.render_long_help().to_string());
            command.get_subcommands_mut().for_each(|under| of(under, out));
        }
        use clap::CommandFactory as _;
        let mut definition = crate::cli::spoken::translated(crate::cli::Cli::command());
        definition.build();
        let mut out = Vec::new();
        of(&mut definition, &mut out);
        out
    }

    #[test]
    fn every_help_fits_and_has_none_of_claps_english() {
        within(Language::Chinese, || {
            let all = every_help();
            assert!(all.len() > 60, "{}", all.len());
            for (help, width) in all.iter().flat_map(|help| [(help, 80), (help, 100)]) {
                let framed: Vec<String> = help.lines().map(framed).collect();
                let text = wrapped(&framed.join("\n"), width);
                for line in text.lines() {
                    let is_one_word = !line.trim_start().contains(' ') && line.is_ascii();
                    assert!(columns(line) <= width || is_one_word, "{width}: {line}");
                    assert!(!line.trim_start().starts_with(['，', '。', '；', '）']), "{width}: {line}");
                    for words in FRAME.iter().filter(|words| words.len() > 6) {
                        assert!(!line.contains(words), "{line}");
                    }
                }
            }
        });
    }

    #[test]
    fn a_second_column_stays_one_where_there_is_room() {
        let text = "  --quick        在 60 s 内结束，而不是 5 min\n  --max-latency  延迟预算：只用能在此时间内退出的空闲状态\n";
        assert_eq!(wrapped(text, 80), text);
        let narrow = wrapped(text, 54);
        assert!(narrow.ends_with("\n                 状态\n"), "{narrow}");
        assert!(wrapped(text, 40).contains("--quick\n          在 60 s"), "{}", wrapped(text, 40));
    }

    #[test]
    fn a_wrong_line_is_called_wrong_in_chinese() {
        use clap::CommandFactory as _;
        let said = |line: &str| {
            within(Language::Chinese, || {
                let definition = crate::cli::spoken::translated(crate::cli::Cli::command());
                let error = definition.try_get_matches_from(line.split(' ')).unwrap_err();
                fitted(&error, &error.render().to_string(), 80)
            })
        };
        assert!(
            said("wakewatt doctor --quik").starts_with("错误：没有参数 '--quik'\n"),
            "{}",
            said("wakewatt doctor --quik")
        );
        assert!(said("wakewatt doctor --quik").contains("'--quick'"));
        assert!(said("wakewatt dokter").starts_with("错误：没有子命令 'dokter'\n"));
        assert!(said("wakewatt --lang fr doctor").starts_with("错误：'--lang <LANGUAGE>' 的值 'fr' 无效："));
    }
}
