//! A program of somebody else's that works for us in the background, and a folder for the socket between us.
//!
//! It must not outlive us: it gets a process group of its own, which is ended with [`Helper`], and the kernel tells it to end
//! (SIGTERM) when this process goes, however that comes. Its last words are kept for errors, a few kilobytes of
//! them, by a thread that reads on so that a full pipe never stops it. The folder has a name that nobody can guess, is made by
//! us (never found), and lets in nobody else: a socket in it is as private as our memory is to other users.

use crate::bound;
use rustix::fs::Mode;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

/// As much of its last words as is kept.
const WORDS: usize = 4096;

/// A running helper; ended when dropped.
#[derive(Debug)]
pub struct Helper {
    child: Child,
    words: Arc<Mutex<Vec<u8>>>,
}

impl Helper {
    /// Starts it. Its standard error is kept, its other files are nothing.
    pub fn start(mut command: Command) -> io::Result<Helper> {
        bound::tie(&mut command);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let words = Arc::new(Mutex::new(Vec::new()));
        let (kept, (to, started)) = (Arc::clone(&words), channel());
        // Started by the thread that reads on: it lives as long as the helper does, whichever thread asked for that.
        std::thread::spawn(move || {
            let said = match command.spawn() {
                Ok(mut child) => {
                    let said = child.stderr.take();
                    let _ = to.send(Ok(child));
                    said
                }
                Err(error) => {
                    let _ = to.send(Err(error));
                    None
                }
            };
            if let Some(said) = said {
                keep(said, &kept);
            }
        });
        let child = started.recv().map_err(io::Error::other)??;
        Ok(Helper { child, words })
    }

    /// Does it still run?
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// What it said last on its standard error.
    pub fn last_words(&self) -> String {
        let words = self.words.lock().map(|words| words.clone()).unwrap_or_default();
        String::from_utf8_lossy(&words).trim().to_string()
    }
}

/// Reads to the end; the last of it is kept.
fn keep(mut said: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut part = [0u8; 1024];
    while let Ok(n) = said.read(&mut part)
        && n > 0
        && let Ok(mut words) = kept.lock()
    {
        words.extend_from_slice(&part[..n]);
        let surplus = words.len().saturating_sub(WORDS);
        words.drain(..surplus);
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // The whole group: what is called kubectl may be a launcher of the real one.
        let _ = bound::signal_group(self.child.id(), libc::SIGKILL);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder of our own, removed with the socket in it when dropped.
#[derive(Debug)]
pub struct OwnFolder(PathBuf);

impl OwnFolder {
    /// Makes one where short-lived files of this user lie.
    pub fn make(purpose: &str) -> io::Result<OwnFolder> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|p| p.is_absolute() && p.is_dir());
        let parents = runtime.into_iter().chain([std::env::temp_dir()]);
        let mut last = io::Error::other("no folder for short-lived files");
        for parent in parents {
            let mut random = [0u8; 8];
            let got = io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut random);
            got?;
            let path = parent.join(format!("{purpose}-{:016x}", u64::from_ne_bytes(random)));
            // Fails where something is there already, a link included.
            match rustix::fs::mkdir(&path, Mode::RWXU) {
                Ok(()) => return Ok(OwnFolder(path)),
                Err(errno) => {
                    last = io::Error::new(io::Error::from(errno).kind(), format!("{}: {errno}", path.display()))
                }
            }
        }
        Err(last)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        for entry in std::fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let _ = std::fs::remove_file(entry.path());
        }
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::time::{Duration, Instant};

    #[test]
    fn a_helper_ends_with_us_and_its_children_with_it() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo trouble >&2; sleep 600 & exec sleep 600"]);
        let mut helper = Helper::start(command).unwrap();
        let began = Instant::now();
        while helper.last_words().is_empty() && began.elapsed() < Duration::from_secs(120) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(helper.last_words(), "trouble");
        assert!(helper.is_running());
        let group = helper.child.id();
        drop(helper);
        let is_gone = || bound::signal_group(group, 0).is_err();
        while !is_gone() && began.elapsed() < Duration::from_secs(120) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(is_gone(), "nobody of the group is left");
    }

    #[test]
    fn the_folder_is_ours_alone_and_goes() {
        let folder = OwnFolder::make("wakewatt-test").unwrap();
        let path = folder.path().to_path_buf();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::write(path.join("socket"), "").unwrap();
        drop(folder);
        assert!(!path.exists());
    }
}
