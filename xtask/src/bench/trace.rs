//! What tracing costs: `perf bench sched pipe` pinned to one CPU, with nothing, wakewatt, bpftrace and runqlat attached.
//!
//! The worst case on purpose: some 700,000 switches a second and no idle at all, so every event is pure overhead. Each
//! round runs all arms in random order, and "nothing" twice: its difference from itself is the noise any figure must
//! exceed. "empty" is our two programs returning at once: what the kernel takes for calling them, which no program can
//! avoid. bpftrace runs a script that does the same job as the probe (per-CPU idle state, waking, switch, histograms by
//! state and by who woke); runqlat is the libbpf one, which knows no idle states. Slowdown is a ratio within a round;
//! the median over rounds is shown with its interval.

use super::{Measured, Row, installed};
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wakewatt_core::stats::paired::Judge;
use wakewatt_core::stats::random::Random;

const ROUNDS: usize = 15;
const SEED: u64 = 20_261_121;
const LOOPS: &str = "250000";
const ATTACH: Duration = Duration::from_millis(1800);

/// Does what wake.bpf.c does, as far as bpftrace can.
const SCRIPT: &str = r"
tracepoint:power:cpu_idle {
  if (args->state == 4294967295) { @exit[cpu] = nsecs; }
  else { @state[cpu] = args->state + 1; @enter[cpu] = nsecs; @exit[cpu] = 0; }
}
tracepoint:sched:sched_waking { @at[args->pid] = nsecs; @by[args->pid] = cpu; }
tracepoint:sched:sched_switch {
  $at = @at[args->next_pid];
  if ($at) {
    $late = nsecs - $at;
    $class = 3;
    $state = 0;
    if (args->prev_pid == 0 && $at >= @enter[cpu]) {
      $state = @state[cpu];
      if (@exit[cpu] && $at > @exit[cpu]) { $class = 2; }
      else { if (@by[args->next_pid] == cpu) { $class = 1; } else { $class = 0; } }
    }
    @latency[cpu, $state, $class] = hist($late);
    delete(@at[args->next_pid]);
    delete(@by[args->next_pid]);
  }
}";

/// Its place among the arms.
pub(super) const OURS: usize = 2;
const ARMS: [&str; 6] = ["nothing", "nothing again", "wakewatt", "bpftrace", "runqlat", "empty"];

pub(crate) fn measure(binary: &Path) -> Result<Measured> {
    let mut rows = Vec::new();
    let mut csv = String::from("round,order,nothing_s,nothing_again_s,wakewatt_s,bpftrace_s,runqlat_s,empty_s\n");
    let Some(perf) = installed("perf") else {
        return Ok(cannot("perf: not installed (Debian package linux-perf)"));
    };
    let ours = Some(binary.to_path_buf());
    let peers = [None, None, ours.clone(), installed("bpftrace"), installed("runqlat"), ours];
    let cpu = last_cpu()?;
    if let Err(why) = pipe(&perf, &cpu) {
        return Ok(cannot(&format!("{why:#}")));
    }
    let mut times: Vec<[Option<f64>; ARMS.len()]> = Vec::new();
    let mut random = Random::new(SEED);
    for round in 0..ROUNDS {
        let mut order: Vec<usize> = (0..ARMS.len()).filter(|arm| *arm < 2 || peers[*arm].is_some()).collect();
        random.shuffle(&mut order);
        let mut took = [None; ARMS.len()];
        for &arm in &order {
            let tool = peers[arm].as_deref().map(|program| attach(arm, program)).transpose()?;
            let time = pipe(&perf, &cpu);
            tool.map_or(Ok(()), detach)?;
            took[arm] = Some(time?);
        }
        let cells: Vec<String> = took.iter().map(|t| t.map_or(String::new(), |t| format!("{t:.4}"))).collect();
        let _ = writeln!(csv, "{round},\"{order:?}\",{}", cells.join(","));
        times.push(took);
    }
    let slowdown = |arm: usize| {
        let pairs: Vec<(f64, f64)> = times.iter().filter_map(|t| Some((t[arm]?, t[0]?))).collect();
        Judge::default().effect("time", ARMS[arm], ARMS[0], &pairs)
    };
    let percent = |ratio: f64| format!("{:+.1} %", (ratio - 1.0) * 100.0);
    let said = |arm: usize| {
        slowdown(arm).map_or("not installed".into(), |e| {
            format!("{} [{}, {}]", percent(e.ratio), percent(e.ratio_low), percent(e.ratio_high))
        })
    };
    let ours = slowdown(2).context("wakewatt did not run")?;
    let theirs = slowdown(3);
    rows.push(Row {
        what: "trace: slowdown of perf bench sched pipe on one CPU",
        ours: said(2),
        peer: format!(
            "bpftrace doing the same {}; runqlat {}; our programs empty {}; nothing again {}",
            said(3),
            said(4),
            said(5),
            said(1)
        ),
        goal: "under 5 %",
        is_met: Some(ours.ratio < 1.05),
    });
    let third = theirs.map(|t| (ours.ratio - 1.0) / (t.ratio - 1.0));
    rows.push(Row {
        what: "trace: that slowdown as a share of bpftrace's",
        ours: third.map_or("-".into(), |share| format!("{share:.2}")),
        peer: "bpftrace 1".into(),
        goal: "under 1/3",
        is_met: third.map(|share| share < 1.0 / 3.0),
    });
    let recorded = recorder(binary)?;
    let _ = writeln!(csv, "\n{}", recorded.csv.trim_end());
    rows.extend(recorded.rows);
    Ok(Measured { rows, csv })
}

fn cannot(why: &str) -> Measured {
    let row = Row {
        what: "trace: slowdown of perf bench sched pipe on one CPU",
        ours: "-".into(),
        peer: why.into(),
        goal: "under 5 %",
        is_met: None,
    };
    Measured { rows: vec![row], csv: String::new() }
}

/// One run of the benchmark: seconds.
pub(super) fn pipe(perf: &Path, cpu: &str) -> Result<f64> {
    let out = Command::new("taskset")
        .args(["-c", cpu])
        .arg(perf)
        .args(["bench", "-f", "simple", "sched", "pipe", "-l", LOOPS])
        .output()
        .context("taskset (util-linux)")?;
    let text = String::from_utf8_lossy(&out.stdout);
    text.trim().parse().with_context(|| format!("perf bench sched pipe said {text:?}"))
}

pub(super) fn attach(arm: usize, program: &Path) -> Result<Child> {
    let mut command = Command::new(program);
    match ARMS[arm] {
        "wakewatt" => {
            command.args(["trace", "--for", "60s", "--json"]);
        }
        "empty" => {
            command.args(["trace", "--for", "60s", "--json", "--empty"]);
        }
        // bpftrace looks tracepoints up in tracefs, which need not be mounted: in a namespace of its own it is.
        "bpftrace" => {
            command = Command::new("unshare");
            let script = r#"mount -t tracefs tracefs /sys/kernel/tracing && exec "$0" -e "$1""#;
            command.args(["-m", "sh", "-c", script]).arg(program).arg(SCRIPT);
        }
        _ => {}
    }
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    std::thread::sleep(ATTACH);
    if let Some(status) = child.try_wait()? {
        bail!("{} ended at once with {status}; tracing needs root", ARMS[arm]);
    }
    Ok(child)
}

pub(super) fn detach(mut child: Child) -> Result<()> {
    let pid = child.id().to_string();
    Command::new("kill").args(["-INT", &pid]).status()?;
    child.wait()?;
    // The kernel frees maps and programs a moment later.
    std::thread::sleep(Duration::from_millis(150));
    Ok(())
}

pub(super) fn last_cpu() -> Result<String> {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online")?;
    let last = online.trim().rsplit(['-', ',']).next().unwrap_or("0");
    Ok(last.to_string())
}

/// Bytes of one recorded event, under a load of short sleeps on every CPU.
fn recorder(binary: &Path) -> Result<Measured> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("bench.wtrace");
    let load = "for i in 1 2; do (while :; do sleep 0.001; done) & done; sleep 6; kill $(jobs -p)";
    let mut load = Command::new("bash").args(["-c", load]).stderr(Stdio::null()).spawn()?;
    std::thread::sleep(Duration::from_millis(300));
    let out = Command::new(binary).args(["trace", "--for", "5s", "--json", "--record"]).arg(&file).output()?;
    load.wait()?;
    let traced: serde_json::Value = serde_json::from_slice(&out.stdout).context("trace --record")?;
    let info = Command::new(binary).args(["trace", "info", "--json"]).arg(&file).output()?;
    let info: serde_json::Value = serde_json::from_slice(&info.stdout).context("trace info")?;
    let number = |v: &serde_json::Value| v.as_f64().unwrap_or(f64::NAN);
    let (each, n) = (number(&info["bytes_per_event"]), number(&info["summary"]["n_pairs"]));
    let lost = number(&traced["missed"]["n_lost"]);
    let cpu_ms = number(&traced["own"]["cpu_ns"]) / 1e6;
    let row = Row {
        what: "trace --record: bytes of one event",
        ours: format!("{each:.1} ({n:.0} idle intervals in 5 s, {lost:.0} lost, {cpu_ms:.0} ms of CPU time)"),
        peer: "perf.data 121 (docs/goals.md)".into(),
        goal: "a few bytes",
        is_met: Some(each < 8.0 && lost == 0.0),
    };
    let csv = format!("bytes_per_event,n_intervals,n_lost,own_cpu_ms\n{each:.3},{n:.0},{lost:.0},{cpu_ms:.2}\n");
    Ok(Measured { rows: vec![row], csv })
}
