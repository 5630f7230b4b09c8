//! Commands of a plan, shown before they run: a plan may be somebody else's, and what it runs, runs as the caller. What a
//! person has typed as part of the command line (`load -- CMD`, `--meter-cmd`) is not said again.

use crate::output;
use std::ffi::OsStr;
use wakewatt_words::{say, spoken};

/// Says on standard error what is about to be run, and what for.
pub(crate) fn announce(what_for: &str, argv: &[impl AsRef<OsStr>]) {
    let (what, command) = (escaped(what_for), shown(argv));
    output::remark(&spoken(|| say!("Runs, for {what}: {command}")));
}

/// Words as a shell would take them, with nothing in them that a terminal obeys.
fn shown(argv: &[impl AsRef<OsStr>]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@,=:%".contains(c);
    let word = |word: &dyn AsRef<OsStr>| {
        let word = word.as_ref().to_string_lossy().into_owned();
        match !word.is_empty() && word.chars().all(is_plain) {
            true => word,
            false => format!("'{}'", escaped(&word).replace('\'', "'\\''")),
        }
    };
    argv.iter().map(|w| word(w)).collect::<Vec<_>>().join(" ")
}

fn escaped(text: &str) -> String {
    // Quotes are no danger to a terminal, and easier to read as they are.
    text.chars().flat_map(|c| if matches!(c, '"' | '\'') { vec![c] } else { c.escape_debug().collect() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_reaches_the_terminal_raw() {
        assert_eq!(shown(&["sh", "-c", "echo \"a b\" > /tmp/x"]), "sh -c 'echo \"a b\" > /tmp/x'");
        assert_eq!(shown(&["echo", "it's"]), "echo 'it'\\''s'");
        assert_eq!(shown(&["a\u{1b}[2J", "", "\u{202e}b\n"]), "'a\\u{1b}[2J' '' '\\u{202e}b\\n'");
    }
}
