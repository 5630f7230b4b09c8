//! In which language is a sentence made?
//!
//! Core and the tool make sentences with [`say!`] and [`word!`]; the compiler has each in every language, from the catalogues
//! under `languages/` (PO files, as gettext has them; `wakewatt-words-macros` says how). Which one is made is decided where
//! people are spoken to and nowhere else: [`within`] is in force on this thread for as long as its closure runs, and
//! everything outside it is English. So documents, run files and what is kept stay English without anyone having to think
//! of it, and no decision can hang on a translated word.

mod hash;

// The macros name this crate.
extern crate self as wakewatt_words;

use hash::hash;
use std::cell::Cell;
use std::sync::OnceLock;

pub use wakewatt_words_macros::{say, word};

/// A language that there is a catalogue for, and English.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// What the sources are written in.
    #[default]
    English,
    /// Chinese in simplified characters.
    Chinese,
}

impl Language {
    /// Of a name as `--lang` and locales have it: `zh`, `zh_CN.UTF-8`, `en`, `C`; none for one we do not speak.
    pub fn named(name: &str) -> Option<Language> {
        let language = name.split(['_', '-', '.', '@']).next().unwrap_or_default();
        match language.to_ascii_lowercase().as_str() {
            "zh" => Some(Language::Chinese),
            "en" | "c" | "posix" => Some(Language::English),
            _ => None,
        }
    }

    /// The tag of HTML's `lang` attribute (BCP 47).
    pub fn tag(self) -> &'static str {
        match self {
            Language::English => "en",
            Language::Chinese => "zh-Hans",
        }
    }
}

/// Translations by the hash of their English, in order.
const CHINESE: &[(u64, &str)] = include!(concat!(env!("OUT_DIR"), "/looked_up.rs"));

thread_local! {
    static NOW: Cell<Language> = const { Cell::new(Language::English) };
}
static WANTED: OnceLock<Language> = OnceLock::new();

/// The language in force on this thread.
pub fn language() -> Language {
    NOW.get()
}

/// Runs this with sentences in that language, on this thread.
pub fn within<T>(language: Language, make: impl FnOnce() -> T) -> T {
    struct Back(Language);
    impl Drop for Back {
        fn drop(&mut self) {
            NOW.set(self.0);
        }
    }
    let _back = Back(NOW.replace(language));
    make()
}

/// The language of the person who started this process; the first call counts.
pub fn want(language: Language) {
    let _ = WANTED.set(language);
}

/// What was wanted; English where nobody said.
pub fn wanted() -> Language {
    WANTED.get().copied().unwrap_or_default()
}

/// Runs this with sentences for the person who started this process.
pub fn spoken<T>(make: impl FnOnce() -> T) -> T {
    within(wanted(), make)
}

/// Words that stand in a constant or in the command line's definition, in the language in force.
pub fn told(english: &str) -> &str {
    match language() {
        Language::English => english,
        Language::Chinese => {
            let found = CHINESE.binary_search_by_key(&hash(english), |(hash, _)| *hash);
            found.ok().and_then(|at| CHINESE.get(at)).map_or(english, |(_, chinese)| chinese)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_in_force_within_and_not_behind() {
        assert_eq!(language(), Language::English);
        let inside = within(Language::Chinese, || (language(), within(Language::English, language), language()));
        assert_eq!(inside, (Language::Chinese, Language::English, Language::Chinese));
        assert_eq!(language(), Language::English);
        let _ = std::panic::catch_unwind(|| within(Language::Chinese, || panic!("on purpose")));
        assert_eq!(language(), Language::English);
    }

    #[test]
    fn locales_name_languages() {
        for (name, language) in [
            ("zh", Some(Language::Chinese)),
            ("zh_CN.UTF-8", Some(Language::Chinese)),
            ("zh-Hans", Some(Language::Chinese)),
            ("C.UTF-8", Some(Language::English)),
            ("en_GB", Some(Language::English)),
            ("de_DE.UTF-8", None),
            ("", None),
        ] {
            assert_eq!(Language::named(name), language, "{name}");
        }
    }

    #[test]
    fn a_message_without_translation_is_its_english() {
        let n = 3;
        let said = within(Language::Chinese, || say!("never in a catalogue: {n}, {}", "x"));
        assert_eq!(said, "never in a catalogue: 3, x");
        assert_eq!(within(Language::Chinese, || told("nor this")), "nor this");
        assert_eq!(within(Language::Chinese, || word!("nor that")), "nor that");
    }

    /// The message is that of the report's heading.
    #[test]
    fn a_message_with_one_is_in_both_languages() {
        let (n, cpu) = (2, "EPYC");
        let say = || say!("{cpu}, {n} CPU{}", if n == 1 { "" } else { "s" });
        assert_eq!(say(), "EPYC, 2 CPUs");
        assert_eq!(within(Language::Chinese, say), "EPYC，2 个 CPU");
    }
}
