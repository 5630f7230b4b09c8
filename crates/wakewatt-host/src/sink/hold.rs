//! `hold:cpu_dma_latency`: a process of this program (`wakewatt hold LIMIT`) that holds the global latency limit.
//!
//! The kernel keeps the limit only while a file descriptor is open, so somebody has to live. The holder is found by its
//! command line and by the device being open in it, never by a remembered process number; there is at most one. Where
//! systemd runs, the holder is a transient service (`systemd-run`), which a logout does not kill; elsewhere a process
//! in a session of its own. Values: `none`, or what `wakewatt hold` takes (`poll`, `50us`).

use super::{SinkError, refuse};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const DEVICE: &str = "/dev/cpu_dma_latency";
const PATIENCE: Duration = Duration::from_secs(5);

/// The holders that live: process and limit.
fn holders() -> Vec<(u32, String)> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let holder = |pid: u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let words: Vec<&str> = std::str::from_utf8(&line).ok()?.split('\0').collect();
        let [_, "hold", limit, ..] = words[..] else { return None };
        let fds = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
        let has_it = fds.flatten().any(|fd| std::fs::read_link(fd.path()).is_ok_and(|to| to == Path::new(DEVICE)));
        has_it.then(|| (pid, limit.to_string()))
    };
    entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).filter_map(holder).collect()
}

pub(super) fn read() -> String {
    holders().pop().map_or_else(|| "none".into(), |(_, limit)| limit)
}

pub(super) fn write(path: &str, program: Option<&Path>, limit: &str) -> Result<(), SinkError> {
    let old = holders();
    if limit != "none" {
        start(program, limit).map_err(|why| refuse(path, why))?;
    }
    for (pid, _) in &old {
        stop(*pid).map_err(|why| refuse(path, why))?;
    }
    Ok(())
}

fn start(program: Option<&Path>, limit: &str) -> Result<(), String> {
    let own = std::env::current_exe();
    let program: PathBuf = match (program, own) {
        (Some(program), _) => program.into(),
        (None, Ok(own)) => own,
        (None, Err(e)) => return Err(format!("this program cannot find itself to start a holder: {e}")),
    };
    let before = holders().len();
    if Path::new("/run/systemd/system").is_dir() {
        let unit = format!("--unit=wakewatt-hold-{}", std::process::id());
        let done = Command::new("systemd-run")
            .args(["--quiet", "--collect", &unit, "--description=holds a wake-up latency limit", "--"])
            .arg(&program)
            .args(["hold", limit])
            .stdin(Stdio::null())
            .status();
        if !done.is_ok_and(|status| status.success()) {
            return Err("systemd-run could not start the holder (journalctl -u 'wakewatt-hold*')".into());
        }
    } else {
        let mut child = Command::new(&program)
            .args(["hold", limit])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .current_dir("/")
            .spawn()
            .map_err(|e| format!("{}: cannot be started as holder: {e}", program.display()))?;
        let mut word = [0u8; 3];
        let answer = child.stdout.as_mut().map_or(Ok(()), |out| out.read_exact(&mut word));
        if answer.is_err() || &word != b"on\n" {
            let _ = child.kill();
            let mut why = String::new();
            let _ = child.stderr.take().map(|mut e| e.read_to_string(&mut why));
            let _ = child.wait();
            return Err(format!("the holder did not start: {}", why.trim()));
        }
    }
    let began = Instant::now();
    while holders().len() <= before {
        if began.elapsed() > PATIENCE {
            return Err(format!("the holder was started but does not hold {DEVICE}"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn stop(pid: u32) -> Result<(), String> {
    let target = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    let Some(target) = target else { return Ok(()) };
    if let Err(e) = rustix::process::kill_process(target, rustix::process::Signal::TERM) {
        if e != rustix::io::Errno::SRCH {
            return Err(format!("process {pid} holds the limit and cannot be stopped: {e}"));
        }
    }
    let began = Instant::now();
    while holders().iter().any(|(p, _)| *p == pid) {
        if began.elapsed() > PATIENCE {
            return Err(format!("process {pid} holds the limit and does not end"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
