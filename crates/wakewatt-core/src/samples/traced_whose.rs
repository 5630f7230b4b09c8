//! Whose wake-ups a trace counted, by kind: a name that a person gave can be found and masked, the rest is the format's.

use super::worded::{between, worded};
use std::fmt;
use wakewatt_words::{say, word};

/// A process that was traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedProcess {
    /// Its id, as the kernel counts.
    pub pid: u32,
    /// What it called itself when the trace began.
    pub name: String,
}

/// Whose wake-ups were traced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TracedWhose {
    /// Those of the whole machine.
    #[default]
    Machine,
    /// Those of processes.
    Processes(Vec<TracedProcess>),
    /// Those of a cgroup and all below it, by its path.
    Cgroup(String),
    /// Those of a command and its children, by its program.
    Command(String),
    /// What a document says that is none of these.
    Other(String),
}

const MACHINE: &str = "whole machine";
const PROCESS: &str = "process ";
const CGROUP: &str = "cgroup ";
const COMMAND: &str = "command ";

impl TracedWhose {
    /// From a document.
    pub fn read(text: &str) -> TracedWhose {
        match (text.strip_prefix(CGROUP), text.strip_prefix(COMMAND)) {
            _ if text == MACHINE => TracedWhose::Machine,
            (Some(path), _) => TracedWhose::Cgroup(path.into()),
            (_, Some(program)) => TracedWhose::Command(program.into()),
            _ => processes(text).map_or_else(|| TracedWhose::Other(text.into()), TracedWhose::Processes),
        }
    }
}

/// `process 7 (a), process 8 (b)`. A name may hold anything, also what stands between two of them: then it is read as two,
/// whose names are as much of it.
fn processes(text: &str) -> Option<Vec<TracedProcess>> {
    let all = between(text, PROCESS, ")")?.split("), process ");
    let one = |text: &str| {
        let (pid, name) = text.split_once(" (")?;
        Some(TracedProcess { pid: pid.parse().ok()?, name: name.into() })
    };
    all.map(one).collect()
}

impl fmt::Display for TracedWhose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TracedWhose::Machine => f.write_str(word!("whole machine")),
            TracedWhose::Processes(all) => {
                let words: Vec<String> = all.iter().map(|p| say!("process {} ({})", p.pid, p.name)).collect();
                f.write_str(&words.join(", "))
            }
            TracedWhose::Cgroup(path) => f.write_str(&say!("cgroup {path}")),
            TracedWhose::Command(program) => f.write_str(&say!("command {program}")),
            TracedWhose::Other(text) => f.write_str(text),
        }
    }
}

worded!(TracedWhose);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_back_and_anything_else_is_kept() {
        let process = |pid, name: &str| TracedProcess { pid, name: name.into() };
        let two = TracedWhose::Processes(vec![process(7, "db (main)"), process(8, "")]);
        assert_eq!(two.to_string(), "process 7 (db (main)), process 8 ()");
        let others = [TracedWhose::Machine, TracedWhose::Cgroup("/a b".into()), TracedWhose::Command("sh".into())];
        for whose in others.into_iter().chain([two]) {
            assert_eq!(TracedWhose::read(&whose.to_string()), whose);
        }
        for odd in ["", "process x (y)", "process 7", "the moon"] {
            assert_eq!(TracedWhose::read(odd), TracedWhose::Other(odd.into()));
        }
    }
}
