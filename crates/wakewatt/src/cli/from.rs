//! Which machine a command is about: this one, or another that is only told of.
//!
//! What is measured, turned or shown live is this machine's. So the options are nobody's to look at but through [`From::machine`]:
//! who asks decides about every kind of other machine, and the next kind cannot be forgotten.

use clap::Args;
use std::path::{Path, PathBuf};

/// Where facts are read from.
// Options that are about this machine only conflict with the whole group, by its id.
#[derive(Clone, Debug, Default, Args)]
#[group(id = "other_machine")]
pub struct From {
    /// Read a recorded host (.host file) instead of this machine
    #[arg(long, value_name = "FILE", conflicts_with = "sysroot")]
    host: Option<PathBuf>,
    /// Read an unpacked tree that holds sys/ and proc/
    #[arg(long, value_name = "DIR")]
    sysroot: Option<PathBuf>,
    /// Read what other tools printed on one host (see import), or a support archive or its folder; - for standard input; nothing is measured
    #[arg(long = "from", value_name = "FILE", num_args = 1.., conflicts_with_all = ["host", "sysroot"])]
    texts: Vec<PathBuf>,
    /// With --from: of an archive or a folder of several hosts, the one whose name holds this
    #[arg(long, value_name = "NAME", requires = "texts")]
    from_host: Option<String>,
}

/// A machine that a command is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine<'a> {
    /// The one this runs on.
    Here,
    /// A `.host` file.
    Recorded(&'a Path),
    /// A tree that holds sys/ and proc/.
    Tree(&'a Path),
    /// What other tools printed on it.
    Texts {
        /// Files, archives, folders.
        files: &'a [PathBuf],
        /// What its name holds, where they are of several.
        host: Option<&'a str>,
    },
}

impl From {
    /// The one that was named.
    pub fn machine(&self) -> Machine<'_> {
        let From { host, sysroot, texts, from_host } = self;
        match (host, sysroot, texts.is_empty()) {
            (.., false) => Machine::Texts { files: texts, host: from_host.as_deref() },
            (Some(file), ..) => Machine::Recorded(file),
            (_, Some(folder), _) => Machine::Tree(folder),
            (None, None, true) => Machine::Here,
        }
    }

    /// Is it this machine, whose settings can be turned and which can be measured?
    pub fn is_here(&self) -> bool {
        self.machine() == Machine::Here
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn asked(args: &[&str]) -> Result<Command, String> {
        let all = ["wakewatt"].iter().chain(args);
        Cli::try_parse_from(all).map(|cli| cli.command).map_err(|why| why.to_string())
    }

    const OTHERS: &[&[&str]] =
        &[&["--host", "x"], &["--sysroot", "x"], &["--from", "x"], &["--from", "x", "--from-host", "y"]];

    #[test]
    fn any_other_machine_is_not_here() {
        for other in OTHERS {
            let Ok(Command::Experiment(args)) = asked(&[&["experiment", "idle"], *other].concat()) else { panic!() };
            assert!(!args.from.is_here(), "{other:?}");
        }
        let Ok(Command::Experiment(args)) = asked(&["experiment", "idle"]) else { panic!() };
        assert!(args.from.is_here());
    }

    #[test]
    fn what_is_about_this_machine_refuses_any_other() {
        let doctor = [&["--preflight"][..], &["--wait-quiet", "60s"], &["--sessions", "2"]].map(|own| ("doctor", own));
        let watch = [&["--trace"][..], &["--play", "x"]].map(|own| ("watch", own));
        for (command, own) in doctor.into_iter().chain(watch) {
            assert!(asked(&[&[command], own].concat()).is_ok(), "{command} {own:?}");
            for other in OTHERS {
                let why = asked(&[&[command], own, other].concat()).unwrap_err();
                assert!(why.contains("cannot be used with") && why.contains(other[0]), "{command} {own:?}: {why}");
            }
        }
        for other in [["--host", "x"], ["--from", "x"]] {
            assert!(asked(&[&["watch", "--record", "y"][..], &other].concat()).is_err(), "one moment is no recording");
        }
    }
}
