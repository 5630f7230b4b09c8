//! What a test says when it cannot run here. Only tests depend on this crate.
//!
//! A test that returns early looks like one that passed. So it says a line on standard error, past the capture of the test
//! harness, in one form: `SKIPPED test [what is lacking]: words`. `cargo xtask skips LOG` gathers these lines at the end
//! of `make test`, and fails where what is said to be lacking is there: then the machine could have run the test.

pub mod bmc;
pub mod cluster;

use std::fmt;
use std::io::Write;

/// What a test lacks. What stands in the brackets can be looked at again by another process; the rest cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacks<'a> {
    /// A program, by its name in PATH.
    Program(&'a str),
    /// The privilege of root.
    Root,
    /// The word of a person that the machine may be disturbed: `WAKEWATT_LIVE=1`, as `make live` sets it.
    Live,
    /// Something of the machine or its kernel: an idle driver, a second CPU, a control group.
    Here,
    /// Quiet: it was tried, and other work was in the way.
    Quiet,
}

impl fmt::Display for Lacks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lacks::Program(name) => write!(f, "program {name}"),
            Lacks::Root => f.write_str("root"),
            Lacks::Live => f.write_str("live"),
            Lacks::Here => f.write_str("here"),
            Lacks::Quiet => f.write_str("quiet"),
        }
    }
}

impl<'a> Lacks<'a> {
    /// From the words in the brackets; none for words that this version does not write.
    pub fn parse(words: &'a str) -> Option<Lacks<'a>> {
        match words {
            "root" => Some(Lacks::Root),
            "live" => Some(Lacks::Live),
            "here" => Some(Lacks::Here),
            "quiet" => Some(Lacks::Quiet),
            _ => words.strip_prefix("program ").map(Lacks::Program),
        }
    }
}

/// Says that a test did not run.
pub fn skipped(test: &str, lacks: Lacks<'_>, why: &str) {
    // One line, whatever the reason holds. A closed standard error is no reason to fail.
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    let _ = writeln!(std::io::stderr().lock(), "SKIPPED {test} [{lacks}]: {why}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_reads_back() {
        for lacks in [Lacks::Program("tmux"), Lacks::Root, Lacks::Live, Lacks::Here, Lacks::Quiet] {
            assert_eq!(Lacks::parse(&lacks.to_string()), Some(lacks));
        }
        assert_eq!(Lacks::parse("moon"), None);
    }
}
