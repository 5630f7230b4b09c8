//! What of our environment other programs get to see.
//!
//! A password that was given to us in a variable is not theirs to read, and it would stand in their /proc/PID/environ. So
//! there are two ways to make a command. Programs we start for our own purpose (a power meter, nvidia-smi, a boot loader's
//! tools) get a short list of variables and no more: where programs lie, who and where the user is, language, time zone,
//! terminal. A meter that wants another one names it: `--meter-cmd 'PLUG=3 ./plug.sh'`. The user's own commands (`run`,
//! `load`, `trace`) and copies of ourselves get everything but our passwords.

use crate::program::{self, ProgramError};
use std::ffi::OsStr;
use std::process::Command;

/// Variables that everybody gets; `LC_…` too.
const ALLOWED: &[&str] = &["HOME", "LANG", "LANGUAGE", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

/// A program of somebody else's, started for our own purpose: the short list.
pub fn foreign(program: impl AsRef<OsStr>) -> Result<Command, ProgramError> {
    Ok(with_the_list(program::command(program)?, &program::path()))
}

/// The same where boot loaders' tools lie too.
pub fn system(program: impl AsRef<OsStr>) -> Result<Command, ProgramError> {
    Ok(with_the_list(program::system_command(program)?, &program::system_path()))
}

fn with_the_list(mut command: Command, path: &OsStr) -> Command {
    let is_allowed = |name: &OsStr| {
        ALLOWED.iter().any(|allowed| name == *allowed) || name.to_str().is_some_and(|name| name.starts_with("LC_"))
    };
    command.env_clear().envs(std::env::vars_os().filter(|(name, _)| is_allowed(name))).env("PATH", path);
    command
}

/// The user's own command, or ourselves once more: all but our passwords.
pub fn users(program: impl AsRef<OsStr>) -> Result<Command, ProgramError> {
    let mut command = program::command(program)?;
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_secret(name)) {
        command.env_remove(name);
    }
    Ok(command)
}

/// Ours, and a password.
fn is_secret(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("WAKEWATT_") && name.contains("PASSWORD")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_of_ours_is_known_by_its_name() {
        let is = |name: &str| is_secret(OsStr::new(name));
        assert!(is("WAKEWATT_REDFISH_PASSWORD") && !is("WAKEWATT_LIVE") && !is("PGPASSWORD"));
    }

    #[test]
    fn a_foreign_program_sees_the_list_and_no_more() {
        // The test's own environment holds at least what cargo sets.
        let out = foreign("env").unwrap().output().unwrap();
        let names: Vec<String> = String::from_utf8_lossy(&out.stdout)
            .lines()
            .filter_map(|line| line.split_once('=').map(|(name, _)| name.to_string()))
            .collect();
        assert!(names.iter().any(|name| name == "PATH"), "{names:?}");
        let is_fine = |name: &String| name == "PATH" || name.starts_with("LC_") || ALLOWED.contains(&name.as_str());
        assert!(names.iter().all(is_fine), "{names:?}");
    }
}
