//! Wanted arguments against the words that a boot would have without wakewatt: what is missing, and what to say.
//!
//! A word that is there with the same value is left alone, so that undoing never takes away what somebody else set. A
//! word with another value is overruled by appending: for every parameter in the table the kernel lets the last win.

use super::argument::{Argument, is_same_name, split_word};
use super::plan::BootError;
use wakewatt_words::say;

/// The outcome.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    /// To append, in the order asked for.
    pub(crate) missing: Vec<Argument>,
    /// Words of the line that one of `missing` overrules.
    pub(crate) overruled: Vec<String>,
    /// For people.
    pub(crate) notes: Vec<String>,
}

/// Compares. `line` must be without what wakewatt itself added earlier; `place` says where it stands, for the notes.
pub(crate) fn sort_out(wanted: &[Argument], line: &[String], place: &str) -> Result<Sorted, BootError> {
    let mut sorted = Sorted::default();
    for (at, argument) in wanted.iter().enumerate() {
        if let Some(twin) = wanted[..at].iter().find(|a| a.has_name(argument.key())) {
            if twin.value() != argument.value() {
                return Err(BootError::Contradiction { first: twin.to_string(), second: argument.to_string() });
            }
            continue;
        }
        let there: Vec<&String> = line.iter().filter(|word| argument.has_name(split_word(word).0)).collect();
        match there.last() {
            Some(word) if argument.is_word(word) => {
                sorted.notes.push(say!("{argument} is already in {place}: left as it is, and undo will leave it"));
            }
            Some(word) => {
                sorted.notes.push(say!("{word} is already in {place}; {argument} overrules it"));
                sorted.overruled.extend(there.iter().map(|w| (*w).clone()));
                sorted.missing.push(argument.clone());
            }
            None => sorted.missing.push(argument.clone()),
        }
    }
    Ok(sorted)
}

/// The words of a command line, quotes kept as written: `a="b c" d` is two words.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut is_quoted) = (String::new(), false);
    for c in text.chars().chain([' ']) {
        if c == '"' {
            is_quoted = !is_quoted;
        }
        if c.is_whitespace() && !is_quoted {
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
        } else {
            word.push(c);
        }
    }
    if !word.trim().is_empty() {
        words.push(word.trim_end().to_string());
    }
    words
}

/// `line` without one occurrence, the last, of each of our words: somebody may have the same word for himself.
pub(crate) fn without(line: &[String], ours: &[Argument]) -> Vec<String> {
    let mut left = line.to_vec();
    for argument in ours {
        if let Some(at) = left.iter().rposition(|word| word == &argument.to_string()) {
            left.remove(at);
        }
    }
    left
}

/// The value that counts: of the last word of that name.
pub(crate) fn last_of<'a>(line: &'a [String], key: &str) -> Option<&'a String> {
    line.iter().rfind(|word| is_same_name(split_word(word).0, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(wanted: &str, line: &str) -> Sorted {
        sort_out(&Argument::parse_all(wanted).unwrap(), &words(line), "the line").unwrap()
    }

    #[test]
    fn same_is_left_other_is_overruled() {
        let same = sorted("idle=poll", "quiet idle=poll");
        assert!(same.missing.is_empty() && same.notes[0].contains("already in the line"));
        let other = sorted("idle=poll", "idle=halt quiet");
        assert_eq!((other.missing.len(), other.overruled.as_slice()), (1, &["idle=halt".to_string()][..]));
        let last_wins = sorted("intel_idle.max_cstate=1", "intel-idle.max_cstate=1 intel_idle.max_cstate=9");
        assert_eq!(last_wins.missing.len(), 1, "the last of two counts");
        assert_eq!(sorted("nosmt nosmt", "").missing.len(), 1);
    }

    #[test]
    fn contradictions_are_refused() {
        let two = Argument::parse_all("a.b=1 a.b=2").unwrap();
        assert!(matches!(sort_out(&two, &[], "x"), Err(BootError::Contradiction { .. })));
    }

    #[test]
    fn words_keep_quotes_together() {
        assert_eq!(words(" a=\"b c\"  d\n"), ["a=\"b c\"", "d"]);
        assert_eq!(words("\"open end"), ["\"open end"]);
        let line = words("idle=poll quiet idle=poll");
        let ours = Argument::parse_all("idle=poll").unwrap();
        assert_eq!(without(&line, &ours), ["idle=poll", "quiet"]);
    }
}
