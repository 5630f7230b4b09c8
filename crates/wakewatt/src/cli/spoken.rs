//! The command line in the language of the person at it.
//!
//! clap keeps one definition, in English; where another language is wanted, what it would show is looked up text by text
//! (`languages/*/help.po`) before the line is parsed. Names of commands, options and values stay as they are: they are typed.
//! The language is needed before there is a parsed line, so `--lang` is looked for here first; then the locale decides, if
//! its characters are UTF-8 and the terminal is no bare console, which has no characters but its own few hundred.

use clap::builder::StyledStr;
use std::ffi::OsString;
use wakewatt_words::{Language, told};

/// What a locale's environment names, most important first (POSIX, Base Definitions 8.2): the language, the characters.
const LOCALE: [&str; 3] = ["LC_ALL", "LC_MESSAGES", "LANG"];
const CHARACTERS: [&str; 3] = ["LC_ALL", "LC_CTYPE", "LANG"];

/// What the arguments and the environment ask for.
pub fn wanted(args: &[OsString], variable: impl Fn(&str) -> Option<String>) -> Language {
    let mut words = args.iter().skip(1).map_while(|arg| (arg != "--").then(|| arg.to_string_lossy()));
    while let Some(word) = words.next() {
        let named = match word.strip_prefix("--lang") {
            Some("") => words.next().map(|next| next.into_owned()),
            Some(rest) => rest.strip_prefix('=').map(str::to_string),
            None => None,
        };
        if let Some(named) = named {
            return Language::named(&named).unwrap_or_default();
        }
    }
    let first = |names: [&str; 3]| names.iter().find_map(|name| variable(name).filter(|value| !value.is_empty()));
    let (Some(locale), Some(characters)) = (first(LOCALE), first(CHARACTERS)) else { return Language::English };
    let is_utf8 = characters.to_ascii_lowercase().replace('-', "").contains("utf8");
    let is_console = variable("TERM").is_some_and(|term| term == "linux" || term == "dumb");
    if is_utf8 && !is_console { Language::named(&locale).unwrap_or_default() } else { Language::English }
}

/// Every text that clap may show of a command and those under it, with where it stands.
pub fn texts(command: &clap::Command, found: &mut dyn FnMut(&str, &str)) {
    let place = format!("help of {}", command.get_bin_name().unwrap_or(command.get_name()));
    let own = [
        command.get_about(),
        command.get_long_about(),
        command.get_before_help(),
        command.get_before_long_help(),
        command.get_after_help(),
        command.get_after_long_help(),
    ];
    own.into_iter().flatten().for_each(|text| found(&place, &text.to_string()));
    for argument in command.get_arguments() {
        let own = [argument.get_help(), argument.get_long_help()];
        own.into_iter().flatten().for_each(|text| found(&place, &text.to_string()));
        let values = if argument.is_hide_possible_values_set() { Vec::new() } else { argument.get_possible_values() };
        values.iter().filter_map(|value| value.get_help()).for_each(|text| found(&place, &text.to_string()));
        if let Some(heading) = argument.get_help_heading() {
            found(&place, heading);
        }
    }
    command.get_subcommands().for_each(|under| texts(under, found));
}

/// The definition with every text in the language in force.
pub fn translated(mut command: clap::Command) -> clap::Command {
    let of = |text: Option<&StyledStr>| text.map(|text| told(&text.to_string()).to_string());
    if let Some(text) = of(command.get_about()) {
        command = command.about(text);
    }
    if let Some(text) = of(command.get_long_about()) {
        command = command.long_about(text);
    }
    if let Some(text) = of(command.get_before_help()) {
        command = command.before_help(text);
    }
    if let Some(text) = of(command.get_before_long_help()) {
        command = command.before_long_help(text);
    }
    if let Some(text) = of(command.get_after_help()) {
        command = command.after_help(text);
    }
    if let Some(text) = of(command.get_after_long_help()) {
        command = command.after_long_help(text);
    }
    command = command.mut_args(|mut argument| {
        if let Some(text) = of(argument.get_help()) {
            argument = argument.help(text);
        }
        if let Some(text) = of(argument.get_long_help()) {
            argument = argument.long_help(text);
        }
        argument
    });
    // Lines are broken by `fitted`, which knows how wide a character is.
    command.term_width(0).mut_subcommands(translated)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str, environment: &[(&str, &str)]) -> Language {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        wanted(&args, |name| environment.iter().find(|(n, _)| *n == name).map(|(_, value)| value.to_string()))
    }

    #[test]
    fn the_line_decides_before_the_locale() {
        let chinese = [("LANG", "zh_CN.UTF-8")];
        assert_eq!(asked("wakewatt doctor", &[]), Language::English);
        assert_eq!(asked("wakewatt doctor", &chinese), Language::Chinese);
        assert_eq!(asked("wakewatt doctor --lang en", &chinese), Language::English);
        assert_eq!(asked("wakewatt --lang=zh doctor", &[]), Language::Chinese);
        // What stands behind -- is another program's.
        assert_eq!(asked("wakewatt trace -- tool --lang zh", &[]), Language::English);
    }

    #[test]
    fn a_locale_that_cannot_show_it_is_english() {
        assert_eq!(asked("wakewatt", &[("LANG", "zh_CN.GB18030")]), Language::English);
        assert_eq!(asked("wakewatt", &[("LANG", "zh_CN.UTF-8"), ("TERM", "linux")]), Language::English);
        assert_eq!(asked("wakewatt", &[("LANG", "zh_CN.UTF-8"), ("LC_ALL", "C.UTF-8")]), Language::English);
        assert_eq!(asked("wakewatt", &[("LC_ALL", ""), ("LANG", "zh_CN.utf8")]), Language::Chinese);
        let mixed = [("LC_CTYPE", "zh_CN.GB18030"), ("LANG", "zh_CN.UTF-8")];
        assert_eq!(asked("wakewatt", &mixed), Language::English);
        let mixed = [("LC_MESSAGES", "zh_CN"), ("LANG", "en_US.UTF-8")];
        assert_eq!(asked("wakewatt", &mixed), Language::Chinese);
    }

    #[test]
    fn the_definition_stays_whole() {
        use clap::CommandFactory as _;
        let made = wakewatt_words::within(Language::Chinese, || translated(super::super::Cli::command()));
        made.clone().debug_assert();
        let names =
            |command: &clap::Command| command.get_subcommands().map(|c| c.get_name().to_string()).collect::<Vec<_>>();
        assert_eq!(names(&made), names(&super::super::Cli::command()));
    }
}
