//! Other people's programs, run to their end: what boot loaders need (`update-grub`, `grubby`).

use crate::{environment, program};
use std::process::Stdio;

/// Runs commands.
pub trait Runner {
    /// Is there such a program? To be asked before anything is promised that needs it.
    fn find(&self, program: &str) -> Result<(), String>;
    /// Runs one to its end; an error holds its exit code and last words.
    fn run(&self, argv: &[String]) -> Result<(), String>;
}

/// Runs them for real, found by [`program`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Programs;

impl Runner for Programs {
    fn find(&self, program: &str) -> Result<(), String> {
        program::find_system(program).map(drop).map_err(|e| e.to_string())
    }

    fn run(&self, argv: &[String]) -> Result<(), String> {
        let Some((name, arguments)) = argv.split_first() else { return Ok(()) };
        let output = environment::system(name)
            .map_err(|e| format!("{name}: cannot be run: {e}"))?
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("{name}: cannot be run: {e}"))?;
        if output.status.success() {
            return Ok(());
        }
        let words = String::from_utf8_lossy(&output.stderr);
        let last: Vec<&str> = words.lines().rev().filter(|l| !l.trim().is_empty()).take(3).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        Err(format!("{}: {}: {}", argv.join(" "), output.status, last.join(" / ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_comes_with_its_code_and_last_words() {
        let argv = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(Programs.run(&argv(&["true"])), Ok(()));
        let error = Programs.run(&argv(&["sh", "-c", "echo first >&2; echo last >&2; exit 3"])).unwrap_err();
        assert!(error.contains("exit status: 3") && error.ends_with("first / last"), "{error}");
        assert_eq!((Programs.find("sh"), Programs.find("/bin/sh")), (Ok(()), Ok(())));
        assert!(Programs.find("no-such-program").unwrap_err().contains("not found in "));
        assert!(Programs.find("/etc").is_err() && Programs.find("/etc/passwd").is_err());
        assert!(Programs.run(&argv(&["/no/such/program"])).unwrap_err().contains("cannot be run"));
    }
}
