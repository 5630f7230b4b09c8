//! Other people's programs, run to their end: what boot loaders need (`update-grub`, `grubby`).

use crate::{deadline, environment, program};
use rustix::fs::MemfdFlags;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::process::Stdio;
use std::time::Duration;

/// Far longer than an initramfs or a menu takes on a slow disk. Who hangs on a dead one must not keep settings changed.
const PATIENCE: Duration = Duration::from_secs(600);
/// More of its last words than anybody reads.
const MAX_WORDS: u64 = 1 << 20;

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
        run_within(argv, PATIENCE)
    }
}

fn run_within(argv: &[String], patience: Duration) -> Result<(), String> {
    let Some((name, arguments)) = argv.split_first() else { return Ok(()) };
    let cannot = |e: &dyn std::fmt::Display| format!("{name}: cannot be run: {e}");
    // Not a pipe: a full one would stop the program, and one that its own children keep open would stop us.
    let mut said = memory_file().map_err(|e| cannot(&e))?;
    let mut child = environment::system(name)
        .map_err(|e| cannot(&e))?
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(said.try_clone().map_err(|e| cannot(&e))?)
        .spawn()
        .map_err(|e| cannot(&e))?;
    let Some(status) = deadline::end(&mut child, patience) else {
        return Err(format!("{}: has not ended within {} s and was killed", argv.join(" "), patience.as_secs()));
    };
    if status.success() {
        return Ok(());
    }
    let mut words = Vec::new();
    let _ = said.rewind().and_then(|()| said.take(MAX_WORDS).read_to_end(&mut words));
    let words = String::from_utf8_lossy(&words);
    let last: Vec<&str> = words.lines().rev().filter(|l| !l.trim().is_empty()).take(3).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    Err(format!("{}: {status}: {}", argv.join(" "), last.join(" / ")))
}

fn memory_file() -> io::Result<File> {
    Ok(File::from(rustix::fs::memfd_create("words", MemfdFlags::CLOEXEC)?))
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
        let hung = run_within(&argv(&["sh", "-c", "exec sleep 600"]), Duration::from_millis(200)).unwrap_err();
        assert!(hung.contains("has not ended within"), "{hung}");
        assert_eq!((Programs.find("sh"), Programs.find("/bin/sh")), (Ok(()), Ok(())));
        assert!(Programs.find("no-such-program").unwrap_err().contains("not found in "));
        assert!(Programs.find("/etc").is_err() && Programs.find("/etc/passwd").is_err());
        assert!(Programs.run(&argv(&["/no/such/program"])).unwrap_err().contains("cannot be run"));
    }
}
