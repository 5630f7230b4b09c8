//! One kernel parameter, `key` or `key=value`, that is safe to hand to every boot loader.
//!
//! The same word is written into a file that a shell sources (Debian), into a GRUB script (grub.cfg, Flatcar), into a
//! plain line (systemd-boot) and into the argument list of a tool that may itself be a shell script (grubby). Each has
//! its own quoting, and grub-mkconfig writes the word into grub.cfg without any. So nothing is quoted here: only
//! characters that mean themselves in all of these places are let in, and everything else is refused by name.
//!
//! Left out on purpose: parameters with blanks in them (`dyndbg="file a +p"`). wakewatt sets none.

use serde::{Deserialize, Serialize};
use std::fmt;
pub(crate) use wakewatt_core::facts::boot::is_same_name;

/// No parameter of the kernel's own list is longer, and the whole line has 2048 bytes on x86.
const MAX_LENGTH: usize = 256;

/// Parameters that decide whether the machine boots, or that belong to another tool: refused by name.
const NOT_OURS: &[(&str, &str)] = &[
    ("root", "decides whether the machine boots; not set here"),
    ("init", "decides whether the machine boots; not set here"),
    ("rdinit", "decides whether the machine boots; not set here"),
    ("initrd", "belongs to the boot loader; not set here"),
    ("BOOT_IMAGE", "belongs to the boot loader; not set here"),
    ("isolcpus", "partitions the machine, which is no power setting; set it with TuneD or by hand"),
    ("nohz_full", "partitions the machine, which is no power setting; set it with TuneD or by hand"),
    ("rcu_nocbs", "partitions the machine, which is no power setting; set it with TuneD or by hand"),
];

/// A kernel parameter that holds no character with a meaning to a shell, to GRUB or to the kernel's own splitting.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Argument {
    key: String,
    value: Option<String>,
}

/// A parameter that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel parameter {text:?}: {reason}")]
pub struct ArgumentError {
    text: String,
    reason: String,
}

impl Argument {
    /// Checks and takes apart `key` or `key=value`.
    pub fn parse(text: &str) -> Result<Argument, ArgumentError> {
        let fail = |reason: String| ArgumentError { text: text.into(), reason };
        if text.len() > MAX_LENGTH {
            return Err(fail(format!("longer than {MAX_LENGTH} characters; give one parameter, not a line")));
        }
        let (key, value) = match text.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (text, None),
        };
        if !key.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return Err(fail("a name starts with a letter or a digit; write key or key=value".into()));
        }
        if let Some(odd) = key.chars().find(|c| !is_key_character(*c)) {
            return Err(fail(format!("{odd:?} cannot be in a name; letters, digits, '.', '_' and '-' can")));
        }
        if let Some(odd) = value.unwrap_or_default().chars().find(|c| !is_value_character(*c)) {
            return Err(fail(format!(
                "{odd:?} cannot be in a value, because a shell or GRUB would read it as more than text; letters, \
                 digits and . _ - , : / + @ = can"
            )));
        }
        if let Some(why) = why_not_ours(key) {
            return Err(fail(why.into()));
        }
        Ok(Argument { key: key.into(), value: value.map(Into::into) })
    }

    /// Several, separated by blanks: a line as people paste it.
    pub fn parse_all(text: &str) -> Result<Vec<Argument>, ArgumentError> {
        text.split_whitespace().map(Argument::parse).collect()
    }

    /// The name, as written.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What follows the `=`; none for a bare word.
    pub fn value(&self) -> Option<&str> {
        self.value.as_deref()
    }

    /// The same parameter to the kernel, whatever its value? `-` and `_` are one character to it.
    pub fn has_name(&self, key: &str) -> bool {
        is_same_name(&self.key, key)
    }

    /// Is this word of a command line the same parameter with the same value?
    pub fn is_word(&self, word: &str) -> bool {
        let (key, value) = split_word(word);
        self.has_name(key) && self.value() == value
    }
}

/// Why a parameter is refused, if it is.
fn why_not_ours(key: &str) -> Option<&'static str> {
    NOT_OURS.iter().find(|(k, _)| is_same_name(k, key)).map(|(_, why)| *why)
}

fn is_key_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

fn is_value_character(c: char) -> bool {
    is_key_character(c) || matches!(c, ',' | ':' | '/' | '+' | '@' | '=')
}

/// A word of a command line as name and value.
pub(crate) fn split_word(word: &str) -> (&str, Option<&str>) {
    word.split_once('=').map_or((word, None), |(key, value)| (key, Some(value)))
}

/// Several as one line.
pub(crate) fn join<'a>(arguments: impl IntoIterator<Item = &'a Argument>) -> String {
    arguments.into_iter().map(Argument::to_string).collect::<Vec<_>>().join(" ")
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)?;
        self.value.as_ref().map_or(Ok(()), |value| write!(f, "={value}"))
    }
}

impl TryFrom<String> for Argument {
    type Error = ArgumentError;
    fn try_from(text: String) -> Result<Self, ArgumentError> {
        Argument::parse(&text)
    }
}

impl From<Argument> for String {
    fn from(argument: Argument) -> String {
        argument.to_string()
    }
}

impl std::str::FromStr for Argument {
    type Err = ArgumentError;
    fn from_str(text: &str) -> Result<Self, ArgumentError> {
        Argument::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_the_kernel_documents() {
        for text in [
            "intel_idle.max_cstate=1",
            "nosmt",
            "nosmt=force",
            "idle=poll",
            "intel_idle.table=C1:1:3,C6:50:100",
            "nvme_core.default_ps_max_latency_us=0",
            "pcie_aspm.policy=performance",
            "idle=",
        ] {
            assert_eq!(Argument::parse(text).unwrap().to_string(), text);
        }
        let argument = Argument::parse("intel-idle.max_cstate=1").unwrap();
        assert!(argument.is_word("intel_idle.max_cstate=1") && !argument.is_word("intel_idle.max_cstate=2"));
    }

    #[test]
    fn refuses_every_character_with_a_second_meaning() {
        for odd in "\"'`$\\ \t\n\r;&|<>(){}[]*?!#~^%\u{0}\u{7f}\u{85}\u{a0}ä".chars() {
            for text in [format!("a={odd}"), format!("a{odd}=1"), format!("{odd}"), format!("a=1{odd}b")] {
                assert!(Argument::parse(&text).is_err(), "{text:?} was taken");
            }
        }
        for text in ["", "=", "=1", "-", "--", "--help", "-x=1", ".a", "a b", "a=$(id)", "a=`id`", "a=1\nb"] {
            assert!(Argument::parse(text).is_err(), "{text:?} was taken");
        }
        assert!(Argument::parse(&format!("a={}", "1".repeat(300))).is_err());
        let said = Argument::parse("a=$HOME").unwrap_err().to_string();
        assert!(said.contains("'$'") && said.contains("a=$HOME"), "{said}");
    }

    #[test]
    fn refuses_what_is_not_ours() {
        for text in ["root=/dev/sda1", "init=/bin/sh", "isolcpus=1-3", "nohz-full=1-3", "BOOT_IMAGE=/x"] {
            assert!(Argument::parse(text).is_err(), "{text} was taken");
        }
    }

    #[test]
    fn reading_one_back_checks_it_again() {
        let good: Argument = serde_json::from_str("\"idle=poll\"").unwrap();
        assert_eq!(serde_json::to_string(&good).unwrap(), "\"idle=poll\"");
        assert!(serde_json::from_str::<Argument>("\"a=$(id)\"").is_err());
    }
}
