//! A process of this program that outlives the one that starts it: a limit's holder, the watch for a confirmation.
//!
//! Where systemd runs it is a transient service (`systemd-run`), because a logout may kill everything else of a
//! session; elsewhere a child that makes a session of its own and says `on` when it is ready. Neither is waited for
//! without a limit: a service manager may hang, and a child may be stopped.

use crate::{deadline, environment};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// How long a start may take: far more than a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(60);
const LAST_WORDS: Duration = Duration::from_secs(1);

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
            .spawn()
            .map(|mut child| deadline::end(&mut child, PATIENCE));
        return match done {
            Ok(Some(status)) if status.success() => Ok(()),
            Ok(None) => {
                // The manager may have taken the order all the same, and carry it out later.
                stop(unit);
                Err(format!("systemd-run did not answer within {} s (systemctl status {unit})", PATIENCE.as_secs()))
            }
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
    let answer = child.stdout.as_mut().map_or(Ok(()), |out| deadline::expect(out, b"on\n", PATIENCE));
    let Err(answer) = answer else { return Ok(()) };
    let _ = child.kill();
    let words = child.stderr.take().map(|mut err| deadline::last_words(&mut err, LAST_WORDS)).unwrap_or_default();
    deadline::end(&mut child, PATIENCE);
    let why = if words.is_empty() { answer.to_string() } else { words };
    Err(format!("{} did not start: {why}", argv.join(" ")))
}

/// Ends a service that may be on its way; who does not answer is not waited for.
fn stop(unit: &str) {
    let Ok(mut command) = environment::system("systemctl") else { return };
    let _ = command
        .args(["--quiet", "--no-ask-password", "stop", "--", unit])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(|mut child| deadline::end(&mut child, PATIENCE));
}
