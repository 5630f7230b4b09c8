//! A boot plan as data: files to write, commands to run, and the inverse of both.
//!
//! A plan is made without touching anything and carries no promise that it will be carried out. Whoever does: first
//! the edits in order, then the commands in order. To undo: first the edits in reverse order (bytes `before` come
//! back), then the `undo` of the commands in reverse order, because a regenerated file must see the old input. Before
//! writing, and again before undoing, the file must hold what the plan expects (compare-and-set); if somebody has
//! changed it since, make a new plan with no arguments instead: it takes out only what is ours.

use super::Argument;
use serde::{Deserialize, Serialize};
use wakewatt_words::say;

/// What to do so that the next boots have the wanted arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootPlan {
    /// Id of the loader that made it.
    pub loader: String,
    /// What was asked for; empty: take ours away.
    pub arguments: Vec<Argument>,
    /// Files, in order.
    pub edits: Vec<FileEdit>,
    /// Commands, in order, after the edits.
    pub commands: Vec<BootCommand>,
    /// How to boot the new line once before it becomes the default; none when nothing changes.
    pub try_once: Option<TryOnce>,
    /// What people must know: what was there already, traps, what rides along, that a reboot is needed.
    pub notes: Vec<String>,
}

impl BootPlan {
    /// Nothing to do: the machine already boots as wanted.
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty() && self.commands.is_empty()
    }
}

/// One file, whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEdit {
    /// Absolute.
    pub path: String,
    /// What it held when the plan was made; none: it did not exist.
    pub before: Option<Vec<u8>>,
    /// What it shall hold; none: it shall not exist.
    pub after: Option<Vec<u8>>,
    /// Permissions for a file that is made anew; one that exists keeps its own.
    pub mode: u32,
}

impl FileEdit {
    /// An edit of a text file; none when nothing would change.
    pub(crate) fn text(path: &str, before: Option<Vec<u8>>, after: Option<String>) -> Option<FileEdit> {
        let after = after.map(String::into_bytes);
        (before != after).then(|| FileEdit { path: path.into(), before, after, mode: 0o644 })
    }
}

/// One command, never through a shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootCommand {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// The inverse; empty: nothing to run.
    pub undo: Vec<String>,
    /// What for.
    pub why: String,
}

impl BootCommand {
    pub(crate) fn new(argv: &[&str], undo: &[&str], why: impl Into<String>) -> BootCommand {
        let owned = |words: &[&str]| words.iter().map(|w| (*w).to_string()).collect();
        BootCommand { argv: owned(argv), undo: owned(undo), why: why.into() }
    }
}

/// A boot that tries the new line and falls back by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TryOnce {
    /// These steps, instead of the plan's own, boot the new line once; the boot after that is the old one.
    Offered {
        /// Files, in order.
        edits: Vec<FileEdit>,
        /// Commands, in order, after the edits.
        commands: Vec<BootCommand>,
        /// What to do when the trial was good.
        to_keep: String,
    },
    /// Not here.
    Refused {
        /// Why, and what stands in for it.
        why: String,
    },
}

impl TryOnce {
    pub(crate) fn refused(why: impl Into<String>) -> Option<TryOnce> {
        Some(TryOnce::Refused { why: why.into() })
    }
    /// A trial entry is a copy of one that boots now. If that has words of ours which are not wanted any more, the copy
    /// would keep them and try something else than the plan. A word with another value does no harm: the last counts.
    pub(crate) fn lingering(old: &[Argument], new: &[Argument]) -> Option<TryOnce> {
        let left: Vec<&Argument> = old.iter().filter(|o| !new.iter().any(|n| n.has_name(o.key()))).collect();
        (!left.is_empty()).then(|| TryOnce::Refused {
            why: say!(
                "the entries have {words} from an earlier plan, and a copy would keep it; take that away first",
                words = super::argument::join(left)
            ),
        })
    }
    /// How a trial that went well is kept.
    pub(crate) fn to_keep() -> String {
        say!("when `check` holds after the trial boot: undo these steps and carry out the plan itself")
    }
}

/// No plan. Each says what, where and what to try.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BootError {
    /// Nobody here knows how this machine gets its kernel command line.
    #[error("{what}; {advice}")]
    NoLoader {
        /// What was found instead.
        what: String,
        /// What to do.
        advice: String,
    },
    /// A loader that wakewatt knows, in a state in which it does not write.
    #[error("{path}: {what}; {advice}")]
    Refused {
        /// The file that decided.
        path: String,
        /// What about it.
        what: String,
        /// What to do.
        advice: String,
    },
    /// The same parameter twice with different values.
    #[error("{first} and {second} contradict each other; give one of them")]
    Contradiction {
        first: String,
        /// The other.
        second: String,
    },
    /// Not in the table, and nobody has said that any will do.
    #[error(
        "{words}: not among the kernel parameters wakewatt knows; such a word can hand the machine to somebody else or \
         keep it from booting; if it is meant, say --any-boot-argument"
    )]
    UnknownParameters {
        /// As on the command line.
        words: String,
    },
    /// A file that the plan depends on could not be read.
    #[error("{path}: {reason}; a plan without it would be a guess (root is needed for some of these files)")]
    Unreadable {
        path: String,
        /// The operating system's word.
        reason: String,
    },
}

impl BootError {
    pub(crate) fn refused(path: impl Into<String>, what: impl Into<String>, advice: impl Into<String>) -> BootError {
        BootError::Refused { path: path.into(), what: what.into(), advice: advice.into() }
    }
}
