//! The server as a child process, from the side of whoever starts it.
//!
//! Its specification is written to its standard input and its first line of output says where it listens, or why not. The
//! input stays open: when this process ends, however it ends, the child sees the end of its input, leaves nothing behind, and
//! ends too. The signal the kernel sends it then as well ([`bound`]) would end it at once, with a half-made database on the
//! disk or PostgreSQL's tables left; so it is passed over, and a child that cannot end in order is ended by itself.

use super::server::{ServerDescription, ServerSpec, serve};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::oneshot;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_host::affinity;
use wakewatt_host::bound;
use wakewatt_host::clock::monotonic_ns;
use wakewatt_host::environment::users;

/// The hidden command that is a server.
pub const COMMAND: &str = "shop-server";
/// How long it may take to close: PostgreSQL drops its tables.
const CLOSES_NS: u64 = 5_000_000_000;
/// How long it may take without anybody who waits: a shop that is being built is finished first.
const CLOSES_ALONE: Duration = Duration::from_secs(60);

/// The child's first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Open(ServerDescription),
    Failed(String),
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// What it said of itself.
    pub about: ServerDescription,
}

impl Server {
    /// Starts `program shop-server` on these CPUs and waits until the shop is open. Setting the flag gives up.
    pub fn start(program: &Path, cpus: &CpuSet, spec: &ServerSpec, stop: &AtomicBool) -> Result<Server, String> {
        let mut command = users(program).map_err(|e| e.to_string())?;
        // The password comes with the specification; what a process has in its environment its owner's others can read.
        command.arg(COMMAND).env_remove("PGPASSWORD").stdin(Stdio::piped()).stdout(Stdio::piped());
        bound::bind(&mut command, cpus, None).map_err(|e| format!("CPUs {cpus}: {e}"))?;
        let child = command.spawn().map_err(|e| format!("{}: cannot be started: {e}", program.display()))?;
        // From here on dropping it ends it.
        let mut server = Server { child, about: ServerDescription::default() };
        let text = serde_json::to_string(spec).map_err(|e| e.to_string())? + "\n";
        let (input, output) = (server.child.stdin.as_mut(), server.child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else { return Err("a pipe is missing".into()) };
        // A child that could not even start says so by closing its output.
        let _ = input.write_all(text.as_bytes());
        match first_line(output, stop)? {
            Said::Open(about) => server.about = about,
            Said::Failed(why) => return Err(why),
        }
        Ok(server)
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Back to these CPUs: where one of them was offline, its threads have lost it, or found others.
    pub fn confine(&self, cpus: &CpuSet) -> Result<(), String> {
        affinity::confine_process(self.pid(), cpus).map_err(|e| e.to_string())
    }

    /// Says how it ended, if it did.
    pub fn has_ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(format!("the shop's server ended by itself ({status})"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let begin_ns = monotonic_ns();
        while monotonic_ns() - begin_ns < CLOSES_NS {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn first_line(output: ChildStdout, stop: &AtomicBool) -> Result<Said, String> {
    let tick = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    loop {
        if stop.load(Relaxed) {
            return Err("interrupted while the shop was being built".into());
        }
        if poll(&mut [PollFd::new(&output, PollFlags::IN)], Some(&tick)).is_ok_and(|n| n > 0) {
            break;
        }
    }
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).map_err(|e| format!("the shop's server: {e}"))?;
    serde_json::from_str(&line).map_err(|_| "the shop's server ended before it was open".into())
}

/// The child's side: reads its specification, serves, and ends with its input.
pub fn child() -> Result<(), String> {
    let mut line = String::new();
    let mut input = BufReader::new(std::io::stdin());
    input.read_line(&mut line).map_err(|e| format!("standard input: {e}"))?;
    let wrong = "this command is started by `wakewatt load shop`; its specification comes on standard input";
    let spec: ServerSpec = serde_json::from_str(&line).map_err(|_| wrong)?;
    let (end, ended) = oneshot::channel();
    let wait = move || {
        // Whatever else comes is thrown away; what counts is the end.
        while input.read(&mut [0u8; 256]).is_ok_and(|n| n > 0) {}
        drop(end);
        std::thread::sleep(CLOSES_ALONE);
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    };
    std::thread::Builder::new().name("shop-parent".into()).spawn(wait).map_err(|e| e.to_string())?;
    let served = serve(&spec, |about| say(&Said::Open(about.clone())), ended);
    if let Err(why) = &served {
        say(&Said::Failed(why.clone()));
    }
    Ok(())
}

fn say(said: &Said) {
    let text = serde_json::to_string(said).unwrap_or_default() + "\n";
    let mut out = std::io::stdout().lock();
    // Nobody listens: then the input has ended too.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
