//! What is to be applied, as data: settings, files for the next boot, commands, and who looks on.

use crate::boot::Argument;
use crate::guard::GuardCommand;
use crate::request::Request;
use std::path::Path;

/// A file that acts at the next boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The file.
    pub path: String,
    /// What it is to hold; none: it goes.
    pub to: Option<String>,
}

/// How a transaction waits for its confirmation.
#[derive(Clone, Copy)]
pub struct Confirm<'a> {
    /// How long, counted from when everything is applied and watched.
    pub within_ns: u64,
    /// The boot clock.
    pub boottime_ns: &'a dyn Fn() -> u64,
    /// Starts the process that undoes this journal when nobody confirms it. Called before the first write.
    pub start: &'a dyn Fn(&Path) -> Result<(), String>,
}

/// What to do.
#[derive(Clone, Default)]
pub struct Order<'a> {
    /// What for, in words.
    pub purpose: String,
    /// The settings.
    pub requests: Vec<Request>,
    /// Files, after the settings.
    pub files: Vec<FileChange>,
    /// Commands (run, inverse), after the files.
    pub commands: Vec<(Vec<String>, Vec<String>)>,
    /// What those are for: kernel parameters, to be checked after the next boot.
    pub arguments: Vec<Argument>,
    /// Leave out what is refused instead of taking everything back.
    pub is_keeping_going: bool,
    /// Undone by itself unless confirmed in time.
    pub confirm: Option<Confirm<'a>>,
    /// Watches what was applied, while a crash would still undo it; an error takes everything back.
    pub watch: Option<&'a dyn Fn() -> Result<(), String>>,
    /// Undoes if this process dies in the middle.
    pub guard: Option<&'a GuardCommand>,
    /// The root of paths; empty for `/`.
    pub root: &'a str,
}
