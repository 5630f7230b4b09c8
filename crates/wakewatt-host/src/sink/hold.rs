//! `hold:cpu_dma_latency`: a process of this program (`wakewatt hold LIMIT`) that holds the global latency limit.
//!
//! The kernel keeps the limit only while a file descriptor is open, so somebody has to live. The holder is found by its
//! command line and by the device being open in it, never by a remembered process number; there is at most one. Values:
//! `none`, or what `wakewatt hold` takes (`poll`, `50us`).

use super::{SinkError, refuse};
use crate::detached;
use std::path::{Path, PathBuf};
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
    let argv = [program.display().to_string(), "hold".into(), limit.into()];
    let unit = format!("wakewatt-hold-{}", std::process::id());
    detached::start(&argv, &unit, "holds a wake-up latency limit")?;
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
