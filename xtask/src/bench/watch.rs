//! `watch`: CPU time at one reading per second, here and on a tree of 512 CPUs; and the other CPUs it wakes, which is
//! to be none.
//!
//! CPU time is what the kernel booked (/proc/PID/schedstat, else ticks of /proc/PID/stat) over 20 s after start-up: as a
//! stream and, where tmux is installed, as a screen of 200x60. In the tree every idle counter is rewritten once a second,
//! the worst case: a CPU that sleeps on needs one read per state.
//!
//! Wake-ups of other CPUs: this thread and `watch` sit on the first CPU; the idle counters of the others are read before
//! and after windows with `watch` running at 10 readings per second, and windows in which a shell loop on that CPU wakes
//! as often and reads nothing, in random order within each round. That loop is the fair comparison: any work on one CPU
//! stirs the others a little (RCU, the scheduler's balancing), and what *reading* adds is asked for; the difference from
//! windows with nothing at all stands beside it. Each is given per reading with its 95 % interval (Hodges-Lehmann,
//! bootstrap). A control arm with `watch` on another CPU shows that a wake-up per reading would
//! be seen. Background noise widens the interval, so windows are short and many; use a quiet machine. Where the control
//! does not show, the answer is "cannot tell".

use super::{Measured, Row, installed};
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Write as _;
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wakewatt_core::stats::paired::{Judge, hodges_lehmann};
use wakewatt_core::stats::random::Random;
use wakewatt_core::stats::signed_rank::Interval;
use wakewatt_host::affinity::{Pinned, allowed_cpus};

const COST_SECONDS: u64 = 20;
const ROUNDS: usize = 40;
const WINDOW: Duration = Duration::from_secs(1);
const INTERVAL_MS: u64 = 100;
const CPU: &str = "/sys/devices/system/cpu";

pub(crate) fn measure(binary: &Path) -> Result<Measured> {
    let mut csv = String::from("part,what,round,value\n");
    let scratch = tempfile::tempdir()?;
    let tree = scratch.path().join("tree");
    crate::gen_host::write(&tree, 512)?;
    let mut rows = Vec::new();
    let here: &[&str] = &[];
    let synthetic = ["--sysroot", tree.to_str().context("a path that is not text")?];
    for (name, from) in [("this machine", here), ("512-CPU tree, all counters moving", &synthetic)] {
        let writer = (!from.is_empty()).then(|| Rewriter::start(&tree)).transpose()?;
        let stream = stream_cost(binary, from)?;
        let screen = screen_cost(binary, from)?;
        drop(writer);
        let _ = writeln!(csv, "cost,{name} stream,,{stream}");
        let shown = match screen {
            Some(cost) => {
                let _ = writeln!(csv, "cost,{name} screen,,{cost}");
                format!("{:.3} % as a screen of 200x60", cost * 100.0)
            }
            None => "screen not measured: tmux is not installed".into(),
        };
        rows.push(Row {
            what: if from.is_empty() {
                "watch at 1 Hz, share of one CPU, here"
            } else {
                "the same, 512-CPU tree, all counters moving"
            },
            ours: format!("{:.3} % as JSON; {shown}", stream * 100.0),
            peer: "none".into(),
            goal: "no promise",
            is_met: None,
        });
    }
    rows.extend(remote_wakeups(binary, &mut csv)?);
    Ok(Measured { rows, csv })
}

/// A child that is ended and waited for.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn stream_cost(binary: &Path, from: &[&str]) -> Result<f64> {
    let mut command = Command::new(binary);
    command.args(["watch", "--json"]).args(from).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = Running(command.spawn()?);
    cost_of(child.0.id())
}

/// In a terminal that tmux makes; none where it is not installed.
fn screen_cost(binary: &Path, from: &[&str]) -> Result<Option<f64>> {
    if installed("tmux").is_none() {
        return Ok(None);
    }
    let scratch = tempfile::tempdir()?;
    let tmux = |args: &[&str]| {
        Command::new("tmux").arg("-S").arg(scratch.path().join("s")).args(args).env("LC_ALL", "C.UTF-8").output()
    };
    let command = format!("exec {} watch {}", binary.display(), from.join(" "));
    tmux(&["-f", "/dev/null", "new-session", "-d", "-s", "b", "-x", "200", "-y", "60", &command])?;
    let out = tmux(&["display-message", "-p", "-t", "b", "#{pane_pid}"])?;
    let pid = String::from_utf8_lossy(&out.stdout).trim().parse().context("tmux did not start the screen");
    let cost = pid.and_then(cost_of);
    tmux(&["kill-server"])?;
    cost.map(Some)
}

/// CPU time booked over [`COST_SECONDS`], as a share of one CPU.
fn cost_of(pid: u32) -> Result<f64> {
    // Start-up reads the machine's tables; it is not what a running watch costs.
    std::thread::sleep(Duration::from_secs(3));
    let (before, started) = (booked_ns(pid)?, Instant::now());
    std::thread::sleep(Duration::from_secs(COST_SECONDS));
    let spent_ns = booked_ns(pid)?.saturating_sub(before);
    Ok(spent_ns as f64 / 1e9 / started.elapsed().as_secs_f64())
}

fn booked_ns(pid: u32) -> Result<u64> {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}"));
    if let Some(ns) = read("schedstat").ok().and_then(|t| t.split_whitespace().next()?.parse().ok()) {
        return Ok(ns);
    }
    let stat = read("stat").context("watch ended early")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|t| t.parse::<u64>().ok()).unwrap_or(0);
    Ok((ticks(11) + ticks(12)) * 10_000_000)
}

/// Moves every idle counter of the tree once a second, in place.
struct Rewriter {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Rewriter {
    fn start(tree: &Path) -> Result<Rewriter> {
        wakewatt_host::kept::raise_limit(12_000);
        let root = tree.join(CPU.trim_start_matches('/'));
        let mut files: Vec<fs::File> = Vec::new();
        for cpu in 0..512 {
            for state in 0..5 {
                for file in ["usage", "time", "above", "below"] {
                    let path: PathBuf = root.join(format!("cpu{cpu}/cpuidle/state{state}/{file}"));
                    let file = fs::OpenOptions::new().write(true).open(&path);
                    files.push(file.with_context(|| format!("{}: ulimit -n must allow 12000", path.display()))?);
                }
            }
        }
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut n = 1_000_000_000_000u64;
            while !flag.load(Ordering::Relaxed) {
                n += 1000;
                for file in &mut files {
                    // As many digits each time: no moment at which the file is short.
                    let _ = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(format!("{n}\n").as_bytes()));
                }
                std::thread::sleep(Duration::from_secs(1));
            }
        });
        Ok(Rewriter { stop, thread: Some(thread) })
    }
}

impl Drop for Rewriter {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Times any idle state was left on these CPUs.
fn usage_of(cpus: &[u32]) -> u64 {
    let states = |cpu: u32| (0..16).map(move |state| format!("{CPU}/cpu{cpu}/cpuidle/state{state}/usage"));
    let number = |path: String| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    cpus.iter().flat_map(|cpu| states(*cpu)).filter_map(number).sum()
}

fn remote_wakeups(binary: &Path, csv: &mut String) -> Result<Vec<Row>> {
    let unknown = |why: &str| Row {
        what: "watch, other CPUs woken per reading, beyond a loop that reads nothing",
        ours: why.into(),
        peer: "turbostat goes to every CPU".into(),
        goal: "0",
        is_met: None,
    };
    let allowed = allowed_cpus()?;
    let cpus: Vec<u32> = allowed.iter().collect();
    let [first, others @ ..] = &cpus[..] else { return Ok(vec![unknown("no CPU")]) };
    if others.is_empty() || usage_of(others) == 0 {
        return Ok(vec![unknown("needs a second CPU with idle counters")]);
    }
    let interval = format!("{INTERVAL_MS}ms");
    let start = |cpu: u32| -> Result<Running> {
        // A child keeps the CPU that its parent was on.
        let _pinned = Pinned::to(cpu)?;
        let mut command = Command::new(binary);
        command.args(["watch", "--json", "--interval", &interval]);
        let running = Running(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        std::thread::sleep(Duration::from_millis(500));
        signal(&running, Signal::STOP)?;
        Ok(running)
    };
    let (quiet, control) = (start(*first)?, start(others[0])?);
    let idler = idler(*first)?;
    let _here = Pinned::to(*first)?;
    let n_readings = WINDOW.as_millis() as f64 / INTERVAL_MS as f64;
    let mut random = Random::new(20_26);
    let (mut differences, mut against_nothing, mut controls) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let mut arms = [0usize, 1, 2, 3];
        for i in (1..arms.len()).rev() {
            arms.swap(i, random.index(i + 1));
        }
        let mut left = [0u64; 4];
        for arm in arms {
            let running = [None, Some(&quiet), Some(&control), Some(&idler)][arm];
            if let Some(running) = running {
                signal(running, Signal::CONT)?;
            }
            std::thread::sleep(Duration::from_millis(200));
            let before = usage_of(others);
            std::thread::sleep(WINDOW);
            left[arm] = usage_of(others).saturating_sub(before);
            if let Some(running) = running {
                signal(running, Signal::STOP)?;
            }
            let _ = writeln!(csv, "wakeups,{},{round},{}", ["off", "on", "control", "idler"][arm], left[arm]);
        }
        differences.push((left[1] as f64 - left[3] as f64) / n_readings);
        against_nothing.push((left[1] as f64 - left[0] as f64) / n_readings);
        controls.push((left[2] as f64 - left[0] as f64) / n_readings);
    }
    let judge = Judge::default();
    let say = |d: &[f64]| {
        let Interval { low, high, .. } = judge.interval(d);
        let text = format!("{:+.2} [{low:+.2}, {high:+.2}], n = {}", hodges_lehmann(d), d.len());
        (text, low, high)
    };
    let (ours, low, high) = say(&differences);
    let (seen, control_low, _) = say(&controls);
    let (bare, _, _) = say(&against_nothing);
    // One wake-up per reading must be excluded, by an experiment that would have seen it.
    let is_met = if low > 0.0 && high >= 0.5 {
        Some(false)
    } else if high < 0.5 && control_low > 0.0 {
        Some(true)
    } else {
        None
    };
    Ok(vec![Row {
        ours,
        peer: format!("against nothing running: {bare}; control, watch on CPU {}: {seen}", others[0]),
        is_met,
        ..unknown("")
    }])
}

/// Wakes as often as `watch` and computes about as long, on one CPU, and reads nothing. Stopped at first.
fn idler(cpu: u32) -> Result<Running> {
    let _pinned = Pinned::to(cpu)?;
    let seconds = INTERVAL_MS as f64 / 1000.0;
    let script =
        format!("exec 3<> <(:); while :; do read -r -t {seconds} -u 3; for ((i=0; i<60; i++)); do :; done; done");
    let mut command = Command::new("bash");
    command.args(["-c", &script]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let running = Running(command.spawn().context("bash")?);
    std::thread::sleep(Duration::from_millis(200));
    signal(&running, Signal::STOP)?;
    Ok(running)
}

fn signal(running: &Running, signal: Signal) -> Result<()> {
    let pid = Pid::from_raw(i32::try_from(running.0.id())?).context("no such process")?;
    Ok(kill_process(pid, signal)?)
}
