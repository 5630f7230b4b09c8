//! The guard: a small process that puts settings back when the one that changed them dies, however it dies.
//!
//! It is this same program (`wakewatt guard JOURNAL`) in a session of its own, so that neither Ctrl-C nor a kill of
//! the process group reaches it, holding the read end of a pipe. End of file without the word "done" means that the
//! parent is gone: it undoes the journal. Should the guard itself be killed, the parent still undoes by itself; should
//! both die at once, the journal is left on disk, `doctor` names it, and `wakewatt recover` undoes it.

use crate::journal::{Journal, Phase, boot_id};
use crate::live::ThisMachine;
use crate::lock::Lock;
use crate::recovery::{self, Due};
use crate::undo::UndoReport;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use wakewatt_host::clock::{boottime_ns, sleep_until_boottime};
use wakewatt_host::store::Disk;

/// How to start one: the program, and the words before the journal's path.
#[derive(Clone, Debug)]
pub struct GuardCommand {
    /// The program, normally this one.
    pub program: PathBuf,
    /// Normally `["guard"]`.
    pub args: Vec<String>,
}

impl GuardCommand {
    /// This program.
    pub fn this_program() -> std::io::Result<Self> {
        Ok(GuardCommand { program: std::env::current_exe()?, args: vec!["guard".into()] })
    }
}

/// A running guard, seen from the parent.
#[derive(Debug)]
pub struct Guard {
    child: Child,
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
        let mut word = [0u8; 3];
        let answer = child.stdout.as_mut().map_or(Ok(()), |out| out.read_exact(&mut word));
        if answer.is_err() || &word != b"on\n" {
            let _ = child.kill();
            let _ = child.wait();
            return Err(std::io::Error::other("the guard process did not start"));
        }
        Ok(Guard { child })
    }

    /// All is put back: the guard may go.
    pub fn dismiss(mut self) {
        if let Some(mut stdin) = self.child.stdin.take() {
            let _ = stdin.write_all(b"done\n");
        }
        let _ = self.child.wait();
    }
}

/// The guard's own life, called by the hidden command. Returns the report if it had to act.
pub fn watch(journal_file: &Path) -> std::io::Result<Option<UndoReport>> {
    Journal::load(&Disk, journal_file).map_err(std::io::Error::other)?;
    // A session of its own: neither Ctrl-C nor a terminal that hangs up takes the guard along.
    let _ = rustix::process::setsid();
    std::io::stdout().write_all(b"on\n")?;
    std::io::stdout().flush()?;
    let mut word = String::new();
    let _ = std::io::stdin().read_to_string(&mut word);
    if word.trim() == "done" {
        return Ok(None);
    }
    // Whoever has the lock may be undoing this very journal; and nobody may begin while we put things back.
    let _lock = Lock::wait(folder(journal_file)).map_err(std::io::Error::other)?;
    // Read again: it has grown while we watched. Complete by now, or gone, means there is nothing to take back.
    let Ok(mut journal) = Journal::load(&Disk, journal_file) else { return Ok(None) };
    if journal.phase != Phase::Open {
        return Ok(None);
    }
    let machine = ThisMachine::at(&journal.root).map_err(std::io::Error::other)?;
    recovery::close(machine.hands(), &mut journal, &boot_id(), false).map(Some).map_err(std::io::Error::other)
}

/// The state folder a journal lies in.
fn folder(journal_file: &Path) -> &Path {
    journal_file.parent().unwrap_or(Path::new("/"))
}

/// How often a watch for a confirmation looks while the transaction is still being applied.
const LOOK: std::time::Duration = std::time::Duration::from_secs(1);

/// The other watch: undoes a transaction that nobody confirms. Started before the first write; sleeps while there is time.
/// Returns the report if it acts.
pub fn await_confirmation(journal_file: &Path) -> std::io::Result<Option<UndoReport>> {
    let first = Journal::load(&Disk, journal_file).map_err(std::io::Error::other)?;
    let _ = rustix::process::setsid();
    std::io::stdout().write_all(b"on\n")?;
    std::io::stdout().flush()?;
    loop {
        // Gone, or another transaction under the same name: ours has ended.
        let Ok(journal) = Journal::load(&Disk, journal_file) else { return Ok(None) };
        if (journal.pid, journal.pid_start_ticks) != (first.pid, first.pid_start_ticks) {
            return Ok(None);
        }
        match journal.phase {
            Phase::Applied => return Ok(None),
            Phase::Open if journal.is_owner_alive() => std::thread::sleep(LOOK),
            Phase::Unconfirmed { until_boottime_ns } if until_boottime_ns > boottime_ns() => {
                sleep_until_boottime(until_boottime_ns);
            }
            Phase::Open | Phase::Unconfirmed { .. } => break,
        }
    }
    let _lock = Lock::wait(folder(journal_file)).map_err(std::io::Error::other)?;
    let Ok(mut journal) = Journal::load(&Disk, journal_file) else { return Ok(None) };
    let is_same = (journal.pid, journal.pid_start_ticks) == (first.pid, first.pid_start_ticks);
    let alive = journal.is_owner_alive();
    if !is_same || !matches!(recovery::due(&journal, &boot_id(), boottime_ns(), alive), Due::Now(_)) {
        return Ok(None);
    }
    let machine = ThisMachine::at(&journal.root).map_err(std::io::Error::other)?;
    recovery::close(machine.hands(), &mut journal, &boot_id(), false).map(Some).map_err(std::io::Error::other)
}
