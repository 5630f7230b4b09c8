//! A process of this program that outlives the one that starts it: a limit's holder, the watch for a confirmation.
//!
//! Where systemd runs it is a transient service (`systemd-run`), because a logout may kill everything else of a
//! session; elsewhere a child that makes a session of its own and says `on` when it is ready.

use crate::environment;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

/// Starts it; returns when it is ready (without systemd) or handed over (with).
pub fn start(argv: &[String], unit: &str, description: &str) -> Result<(), String> {
    let Some((name, arguments)) = argv.split_first() else { return Ok(()) };
    if Path::new("/run/systemd/system").is_dir() {
        let done = environment::system("systemd-run")
            .map_err(|e| e.to_string())?
            .args(["--quiet", "--collect"])
            .args([format!("--unit={unit}"), format!("--description={description}")])
            .arg("--")
            .args(argv)
            .stdin(Stdio::null())
            .status();
        return match done {
            Ok(status) if status.success() => Ok(()),
            _ => Err(format!("systemd-run could not start {} (journalctl -u {unit})", argv.join(" "))),
        };
    }
    let mut child = environment::users(name)
        .map_err(|e| e.to_string())?
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .current_dir("/")
        .spawn()
        .map_err(|e| format!("{name}: cannot be started: {e}"))?;
    let mut word = [0u8; 3];
    let answer = child.stdout.as_mut().map_or(Ok(()), |out| out.read_exact(&mut word));
    if answer.is_ok() && &word == b"on\n" {
        return Ok(());
    }
    let _ = child.kill();
    let mut why = String::new();
    let _ = child.stderr.take().map(|mut e| e.read_to_string(&mut why));
    let _ = child.wait();
    Err(format!("{} did not start: {}", argv.join(" "), why.trim()))
}
