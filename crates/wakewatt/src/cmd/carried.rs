//! The hidden `wakewatt carried -- ARGUMENTS…`: runs itself with these arguments on a node, and writes the answer into the log of a pod.
//!
//! A container is its first process: when that ends, everything in it does, the guard of `tune apply --confirm-within` too. So
//! this one runs the order as a child, writes what it came to, and stays until all that the order left running has ended, no
//! change on this node waits any more, or its time is up. Told to end before (the pod is taken away), it hands that on to an order that still runs, which puts
//! its settings back, and otherwise goes on waiting: the guard is about to do its work.

use crate::cli::CarriedArgs;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use crate::output;
use anyhow::Result;
use rustix::process::{Pid, Signal, WaitOptions};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant, SystemTime};
use wakewatt_carry::kubernetes::{INPUT, answer::Answer};
use wakewatt_host::environment;
use wakewatt_host::store::Disk;
use wakewatt_tune::journal::{Journal, Phase, STATE_DIR};

/// How often is looked for an end.
const LOOK: Duration = Duration::from_millis(20);
/// After it was told to end, before it is killed: to put settings back.
const GRACE: Duration = Duration::from_secs(20);
/// For the rest of a pipe that a child of the order may keep open.
const REST: Duration = Duration::from_secs(2);
const MOST_SAID: usize = 64 << 10;

pub fn run(args: &CarriedArgs) -> Result<Code> {
    let interrupt = Interrupt::listen()?;
    // What the order leaves running becomes our child, so that its end is seen. Without this it would be the node's init's.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let answer = match too_late(args) {
        Some(said) => Answer { code: i32::from(Code::Refused as u8), is_late: true, said, ..Answer::default() },
        None => ordered(args, &interrupt)?,
    };
    output::print(&answer.to_lines())?;
    let until = Instant::now() + Duration::from_nanos(args.lives_on);
    // A guard sleeps to the end of its time, also when all is confirmed or undone; nobody needs the pod until then.
    while has_children() && Instant::now() < until && is_something_open() {
        std::thread::sleep(LOOK * 25);
    }
    Ok(Code::Fine)
}

/// Whoever sent us waits no more, so nothing may begin.
fn too_late(args: &CarriedArgs) -> Option<String> {
    let now_s = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let before_s = args.start_before.filter(|before_s| now_s >= *before_s)?;
    Some(format!("came {} s too late to begin, by this node's clock; nothing was done", now_s - before_s))
}

fn ordered(args: &CarriedArgs, interrupt: &Interrupt) -> Result<Answer> {
    let cannot = |what: &str, e: &dyn std::fmt::Display| Failure::error(Code::BadFile, format!("{what}: {e}"));
    let own = std::env::current_exe().map_err(|e| cannot("cannot find this program", &e))?;
    let input = std::env::var_os(INPUT).unwrap_or_default();
    let mut command = environment::users(&own).map_err(|e| cannot("cannot start this program", &e))?;
    command.args(&args.arguments).env_remove(INPUT);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| cannot("cannot start this program", &e))?;
    give(&mut child, input);
    let out = child.stdout.take().map(|from| taken(from, args.at_most + 1));
    let said = child.stderr.take().map(|from| taken(from, MOST_SAID));
    let (status, is_late) = ended(&mut child, Duration::from_nanos(args.within), interrupt);
    let rest = |from: Option<Receiver<Vec<u8>>>| {
        let until = Instant::now() + REST;
        let parts = from.into_iter().flat_map(|from| {
            std::iter::from_fn(move || from.recv_timeout(until.saturating_duration_since(Instant::now())).ok())
        });
        parts.flatten().collect::<Vec<u8>>()
    };
    let (mut output, said) = (rest(out), rest(said));
    let is_cut = output.len() > args.at_most;
    output.truncate(args.at_most);
    let code = status.map_or(-1, |s| s.code().unwrap_or_else(|| 128 + s.signal().unwrap_or_default()));
    Ok(Answer { code, output, is_cut, said: String::from_utf8_lossy(&said).into_owned(), is_late })
}

/// Writes the input; from a thread, for who does not read must not hold us up.
fn give(child: &mut Child, input: OsString) {
    if let Some(mut stdin) = child.stdin.take() {
        std::thread::spawn(move || stdin.write_all(input.as_encoded_bytes()));
    }
}

/// Reads on to the end, so that nobody waits for a full pipe; keeps the first so many bytes.
fn taken(mut from: impl Read + Send + 'static, at_most: usize) -> Receiver<Vec<u8>> {
    let (to, parts) = channel();
    std::thread::spawn(move || {
        let (mut part, mut left) = ([0u8; 8192], at_most);
        while let Ok(n) = from.read(&mut part)
            && n > 0
        {
            let kept = n.min(left);
            left -= kept;
            if kept > 0 && to.send(part[..kept].to_vec()).is_err() {
                break;
            }
        }
    });
    parts
}

/// How it ended; told to when its time is up or ours is, killed when it does not listen.
fn ended(child: &mut Child, within: Duration, interrupt: &Interrupt) -> (Option<ExitStatus>, bool) {
    let (began, mut told): (Instant, Option<Instant>) = (Instant::now(), None);
    let mut is_late = false;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return (Some(status), is_late);
        }
        is_late |= told.is_none() && began.elapsed() >= within;
        match told {
            None if is_late || interrupt.is_set() => {
                if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                    let _ = rustix::process::kill_process(pid, Signal::TERM);
                }
                told = Some(Instant::now());
            }
            Some(at) if at.elapsed() >= GRACE => {
                let _ = child.kill();
                return (child.wait().ok(), is_late);
            }
            _ => std::thread::sleep(LOOK),
        }
    }
}

/// Does any change on this node wait for its confirmation or its end? What cannot be read may.
fn is_something_open() -> bool {
    let (journals, unreadable) = Journal::all(&Disk, Path::new(STATE_DIR));
    !unreadable.is_empty() || journals.iter().any(|j| j.phase != Phase::Applied && j.is_of_this_boot())
}

/// Is anything that the order left still running? What has ended is fetched.
fn has_children() -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}
