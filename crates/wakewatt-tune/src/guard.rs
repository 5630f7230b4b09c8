//! The guard: a small process that puts settings back when the one that changed them dies, however it dies.
//!
//! It is this same program (`wakewatt guard JOURNAL`) in a session of its own, so that neither Ctrl-C nor a kill of
//! the process group reaches it, holding the read end of a pipe. End of file without the word "done" means that the
//! parent is gone: it undoes the journal ([`crate::watch`]). Should the guard itself be killed, the parent still undoes by
//! itself; should both die at once, the journal is left on disk, `doctor` names it, and `wakewatt recover` undoes it.
//!
//! Neither waits for the other without a limit. A guard may be stopped, wedged, or deaf (its end of the pipe closed), and
//! the parent holds the lock that such a guard would wait for; so one that does not say that it watches, or does not go
//! when it is dismissed, is killed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;
use wakewatt_host::deadline;

/// How to start one: the program, and the words before the journal's path.
#[derive(Clone, Debug)]
pub struct GuardCommand {
    /// The program, normally this one.
    pub program: PathBuf,
    /// Normally `["guard"]`.
    pub args: Vec<String>,
    /// How long it may take to say that it watches, and to go: far more than a busy machine needs.
    pub patience: Duration,
}

impl GuardCommand {
    /// This program.
    pub fn this_program() -> std::io::Result<Self> {
        let program = std::env::current_exe()?;
        Ok(GuardCommand { program, args: vec!["guard".into()], patience: Duration::from_secs(30) })
    }
}

/// A running guard, seen from the parent.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    pub(crate) patience: Duration,
}

impl Guard {
    /// Starts one for this journal and waits until it says that it watches.
    pub fn start(command: &GuardCommand, journal: &Path) -> std::io::Result<Guard> {
        let mut child = wakewatt_host::environment::users(&command.program)
            .map_err(std::io::Error::other)?
            .args(&command.args)
            .arg(journal)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let answer = child.stdout.as_mut().map_or(Ok(()), |out| deadline::expect(out, b"on\n", command.patience));
        if let Err(why) = answer {
            deadline::end(&mut child, Duration::ZERO);
            return Err(std::io::Error::new(why.kind(), format!("the guard process did not start: {why}")));
        }
        Ok(Guard { child, patience: command.patience })
    }

    /// All is put back, or is to stay: the guard may go. False where it had to be killed: what it did last is not known,
    /// so what was put back should be looked at once more.
    #[must_use]
    pub fn dismiss(mut self) -> bool {
        let told = self.child.stdin.as_mut().map(|stdin| stdin.write_all(b"done\n"));
        if let Some(Err(_)) = told {
            // It cannot hear us. The end of the pipe would tell it to undo; so it goes before that end does.
            let _ = self.child.kill();
        }
        drop(self.child.stdin.take());
        deadline::end(&mut self.child, self.patience).is_some_and(|status| status.code().is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn guard(script: &str, patience: Duration) -> std::io::Result<Guard> {
        let args = vec!["-c".into(), script.into(), "guard".into()];
        Guard::start(&GuardCommand { program: "sh".into(), args, patience }, Path::new("/none"))
    }

    /// Each of these hung the parent for ever.
    #[test]
    fn a_guard_that_is_stopped_deaf_or_mute_hangs_nobody() {
        let (soon, minute) = (Duration::from_millis(300), Duration::from_secs(60));
        let began = Instant::now();
        let mute = guard("exec sleep 600", soon).unwrap_err();
        assert_eq!(mute.kind(), std::io::ErrorKind::TimedOut);
        assert!(mute.to_string().contains("did not start: said nothing"), "{mute}");
        assert!(guard("exit 0", minute).unwrap_err().to_string().contains("ended without a word"));
        // Deaf: the write fails. Where the pipe had been read, it would have been told to undo.
        for script in [
            "exec <&-; echo on; exec sleep 600",
            "echo on; kill -STOP $$; exec sleep 600",
            "echo on; read word; exec sleep 600",
        ] {
            let mut guard = guard(script, minute).unwrap();
            guard.patience = soon;
            assert!(!guard.dismiss(), "{script}");
        }
        assert!(guard("echo on; read word; test \"$word\" = done", minute).unwrap().dismiss());
        assert!(began.elapsed() < minute * 5, "ended by deadlines, not by their own end");
    }
}
