//! What of our environment other programs get to see.
//!
//! A password that was given to us in a variable is not theirs to read, and it would stand in their /proc/PID/environ. So
//! there are two ways to make a command. Programs we start for our own purpose (a power meter, nvidia-smi, a boot loader's
//! tools) get a short list of variables and no more: where programs lie, who and where the user is, language, time zone,
//! terminal. A meter that wants another one names it: `--meter-cmd 'PLUG=3 ./plug.sh'`. The user's own commands (`run`,
//! `load`, `trace`) and copies of ourselves get everything but our passwords.

use std::ffi::{OsStr, OsString};
use std::process::Command;

/// Variables that everybody gets; `LC_…` too.
const ALLOWED: &[&str] = &["HOME", "LANG", "LANGUAGE", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];
/// Where programs lie when nobody says it, or says only folders relative to wherever we are.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A program of somebody else's, started for our own purpose: the short list.
pub fn foreign(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    let is_allowed = |name: &OsStr| {
        ALLOWED.iter().any(|allowed| name == *allowed) || name.to_str().is_some_and(|name| name.starts_with("LC_"))
    };
    command.env_clear().envs(std::env::vars_os().filter(|(name, _)| is_allowed(name)));
    command.env("PATH", absolute(std::env::var_os("PATH")));
    command
}

/// The user's own command, or ourselves once more: all but our passwords.
pub fn users(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_secret(name)) {
        command.env_remove(name);
    }
    command
}

/// Ours, and a password.
fn is_secret(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("WAKEWATT_") && name.contains("PASSWORD")
}

/// Only folders that are the same from everywhere: an empty one is the working directory.
fn absolute(path: Option<OsString>) -> OsString {
    let path = path.unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    match std::env::join_paths(folders) {
        Ok(joined) if !joined.is_empty() => joined,
        _ => PATH.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_working_directory_is_no_place_for_programs() {
        let of = |path: &str| absolute(Some(path.into())).into_string().unwrap();
        assert_eq!(of("/bin:.:/usr/bin:"), "/bin:/usr/bin");
        assert_eq!((of(""), of(":bin"), absolute(None)), (PATH.into(), PATH.into(), PATH.into()));
    }

    #[test]
    fn a_password_of_ours_is_known_by_its_name() {
        let is = |name: &str| is_secret(OsStr::new(name));
        assert!(is("WAKEWATT_REDFISH_PASSWORD") && !is("WAKEWATT_LIVE") && !is("PGPASSWORD"));
    }

    #[test]
    fn a_foreign_program_sees_the_list_and_no_more() {
        // The test's own environment holds at least what cargo sets.
        let out = foreign("env").output().unwrap();
        let names: Vec<String> = String::from_utf8_lossy(&out.stdout)
            .lines()
            .filter_map(|line| line.split_once('=').map(|(name, _)| name.to_string()))
            .collect();
        assert!(names.iter().any(|name| name == "PATH"), "{names:?}");
        let is_fine = |name: &String| name == "PATH" || name.starts_with("LC_") || ALLOWED.contains(&name.as_str());
        assert!(names.iter().all(is_fine), "{names:?}");
    }
}
