//! Other people's programs, run to their end: what boot loaders need (`update-grub`, `grubby`).

use std::path::Path;
use std::process::{Command, Stdio};

/// Runs commands.
pub trait Runner {
    /// Is there such a program? To be asked before anything is promised that needs it.
    fn find(&self, program: &str) -> Result<(), String>;
    /// Runs one to its end; an error holds its exit code and last words.
    fn run(&self, argv: &[String]) -> Result<(), String>;
}

/// Runs them for real, found on PATH and in the folders of system programs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Programs;

impl Runner for Programs {
    fn find(&self, program: &str) -> Result<(), String> {
        let path = std::env::var("PATH").unwrap_or_default();
        let folders = path.split(':').chain(SYSTEM_FOLDERS).filter(|f| f.starts_with('/'));
        let is_there = if program.contains('/') {
            is_program(Path::new(program))
        } else {
            folders.clone().any(|folder| is_program(&Path::new(folder).join(program)))
        };
        if is_there {
            return Ok(());
        }
        Err(format!("{program}: no such program (looked in {})", folders.collect::<Vec<_>>().join(":")))
    }
    fn run(&self, argv: &[String]) -> Result<(), String> {
        let Some((program, arguments)) = argv.split_first() else { return Ok(()) };
        // sudo and systemd units often come without the sbin folders, where these programs lie.
        let path = format!("{}:/usr/local/sbin:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
        let output = Command::new(program)
            .args(arguments)
            .env("PATH", path)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("{program}: cannot be run: {e}"))?;
        if output.status.success() {
            return Ok(());
        }
        let words = String::from_utf8_lossy(&output.stderr);
        let last: Vec<&str> = words.lines().rev().filter(|l| !l.trim().is_empty()).take(3).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        Err(format!("{}: {}: {}", argv.join(" "), output.status, last.join(" / ")))
    }
}

/// Where system programs lie.
const SYSTEM_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

fn is_program(file: &Path) -> bool {
    let is_executable = || rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok();
    file.is_file() && is_executable()
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
        assert!(Programs.find("no-such-program").unwrap_err().contains("no such program (looked in "));
        assert!(Programs.find("/etc").is_err() && Programs.find("/etc/passwd").is_err());
        assert!(Programs.run(&argv(&["/no/such/program"])).unwrap_err().contains("cannot be run"));
    }
}
