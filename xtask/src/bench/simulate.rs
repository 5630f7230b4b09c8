//! `simulate` beside SimPy and beside a bare loop: requests per second on one core, what a request costs as CPUs grow, and threads.
//!
//! The same M/M/1 and M/M/16 everywhere (`bench/simulate/mmc.toml`, `mmc.py`, `mm1_loop.c`); answers are held against theory and against each other
//! within their intervals, because a fast wrong answer is none. Each figure is the median of alternating rounds. SimPy is taken from PyPI into a folder of its own.

use super::{Measured, Row, compiled, median};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

const ROUNDS: usize = 5;
/// Seconds of simulated M/M/1 at 1400 requests per second: 7 million requests.
const DURATION_S: f64 = 5000.0;

/// What one run said.
struct Ran {
    requests: f64,
    mean_us: f64,
    seconds: f64,
}

impl Ran {
    fn per_s(&self) -> f64 {
        self.requests / self.seconds
    }
}

pub(crate) fn measure(binary: &Path) -> Result<Measured> {
    let mut all = Measured { rows: Vec::new(), csv: "what,round,requests,mean_us,seconds\n".into() };
    let folder = tempfile::tempdir()?;
    let bare = compiled(folder.path(), "mm1_loop", include_str!("mm1_loop.c"), &["-O2", "-Wl,--no-as-needed", "-lm"]);
    let simpy = simpy();
    if let Err(why) = &simpy {
        eprintln!("simulate: skipped beside SimPy: {why}");
    }
    let mut loops = Vec::new();
    let own = twins(binary, &simpy, &MM1, &mut all, |round, all| {
        let requests = (MM1.per_s() * DURATION_S).to_string();
        if let Ok(program) = &bare {
            let ran = theirs(Command::new(program).args([&MM1.per_s().to_string(), "500", &requests]))?;
            loops.push(kept(all, "M/M/1 bare loop", round, ran));
        }
        Ok(())
    })?;
    all.rows.push(Row {
        what: "M/M/1, beside a bare loop in C",
        ours: format!("{} /s, mean {:.0} us", millions(rate(&own)), mean(&own)),
        peer: told(&bare, &loops, |l| {
            format!("{} /s, mean {:.0} us: {:.2} times as much", millions(rate(l)), mean(l), rate(l) / rate(&own))
        }),
        goal: "a figure to show",
        is_met: None,
    });
    twins(binary, &simpy, &MM16, &mut all, |_, _| Ok(()))?;
    cpus(binary, &mut all)?;
    threads(binary, bare.as_deref().ok(), &mut all)?;
    Ok(all)
}

/// A model that SimPy has too.
struct Twin {
    n_cpus: u32,
    what: &'static str,
    speed: &'static str,
    answers: &'static str,
    /// Mean time of a request, as theory has it.
    exact_us: f64,
}

impl Twin {
    /// Services of 500 us at 70 % load.
    fn per_s(&self) -> f64 {
        1400.0 * f64::from(self.n_cpus)
    }

    /// So long, on one thread.
    fn asked(&self, duration_s: f64, replications: usize) -> Asked {
        Asked { file: "mmc", n_cpus: self.n_cpus, per_s: self.per_s(), duration_s, threads: 1, replications }
    }
}

/// 500 us / (1 - 0.7).
const MM1: Twin = Twin {
    n_cpus: 1,
    what: "M/M/1",
    speed: "M/M/1, beside SimPy",
    answers: "M/M/1, mean time of a request",
    exact_us: 500.0 / 0.3,
};
/// Erlang C of 16 servers at 11.2 Erlang is 0.12968; waiting 500 us of it / (16 - 11.2).
const MM16: Twin = Twin {
    n_cpus: 16,
    what: "M/M/16",
    speed: "M/M/16, beside SimPy",
    answers: "M/M/16, mean time of a request",
    exact_us: 500.0 + 0.129676 * 500.0 / 4.8,
};

/// Runs both in turn and compares their answers, then their speeds. `between` runs in every round.
fn twins(
    binary: &Path,
    simpy: &Result<PathBuf, String>,
    twin: &Twin,
    all: &mut Measured,
    mut between: impl FnMut(usize, &mut Measured) -> Result<()>,
) -> Result<Vec<Ran>> {
    let script = crate::repository().join("bench/simulate/mmc.py").display().to_string();
    let (n, per_s) = (twin.n_cpus.to_string(), twin.per_s().to_string());
    let duration_s = DURATION_S / f64::from(twin.n_cpus);
    let (mut own, mut others) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        own.push(kept(all, twin.what, round, ours(binary, twin.asked(duration_s, 1))?));
        between(round, all)?;
        if let Ok(python) = simpy {
            let args = [&script, &n, &per_s, "500", "200000", &round.to_string()];
            let ran = theirs(Command::new(python).args(args))?;
            others.push(kept(all, &format!("{} SimPy", twin.what), round, ran));
        }
    }
    let (value, half) = answer(binary, twin, duration_s / 8.0)?;
    ensure!(
        (value - twin.exact_us).abs() <= 2.0 * half,
        "{}: {value} ±{half} us, exact {} us",
        twin.what,
        twin.exact_us
    );
    let theirs = interval(&others.iter().map(|r| r.mean_us).collect::<Vec<_>>());
    let is_alike = theirs.map(|(v, h)| (v - value).abs() <= (h * h + half * half).sqrt());
    all.rows.push(Row {
        what: twin.answers,
        ours: format!("{value:.1} ±{half:.1} us; exact {:.1}", twin.exact_us),
        peer: match (simpy, theirs) {
            (Err(why), _) => why.clone(),
            (_, None) => "-".into(),
            (_, Some((v, h))) => format!("{v:.1} ±{h:.1} us"),
        },
        goal: "apart by no more than both intervals",
        is_met: is_alike,
    });
    let factor = rate(&own) / rate(&others).max(1e-9);
    all.rows.push(Row {
        what: twin.speed,
        ours: format!("{} /s", millions(rate(&own))),
        peer: told(simpy, &others, |t| format!("{:.0} /s: {factor:.0} times slower", rate(t))),
        goal: "at least 100 times",
        is_met: (!others.is_empty()).then_some(factor >= 100.0),
    });
    Ok(own)
}

/// Ours with its interval, from replications.
fn answer(binary: &Path, twin: &Twin, duration_s: f64) -> Result<(f64, f64)> {
    let outcome = outcome(binary, twin.asked(duration_s, 8))?;
    let mean = &outcome["mean_ns"];
    let number = |v: &Value| v.as_f64().context("no interval in simulate's document");
    Ok((number(&mean["value"])? / 1e3, number(&mean["half"])? / 1e3))
}

/// Mean of the rounds and half its 95 % interval (Student's t); none of a single one.
fn interval(means: &[f64]) -> Option<(f64, f64)> {
    // Two-sided 95 % by degrees of freedom, from 1 on.
    const T: [f64; 9] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];
    let t = T.get(means.len().checked_sub(2)?)?;
    let n = means.len() as f64;
    let mean = means.iter().sum::<f64>() / n;
    let variance = means.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some((mean, t * (variance / n).sqrt()))
}

fn rate(runs: &[Ran]) -> f64 {
    median(&runs.iter().map(Ran::per_s).collect::<Vec<_>>())
}

fn mean(runs: &[Ran]) -> f64 {
    runs.iter().map(|r| r.mean_us).sum::<f64>() / runs.len().max(1) as f64
}

/// 16 CPUs, and from 1 to 1024 at the same load of each.
fn cpus(binary: &Path, all: &mut Measured) -> Result<()> {
    for (file, what, goal) in [
        ("mmc", "M/M/16, requests per second and core", "3 million"),
        ("whole", "16 CPUs with menu, schedutil, ticks, package sleep", "a figure to show"),
    ] {
        let mut costs = Vec::new();
        for n in [1u32, 16, 128, 1024] {
            let per_s = 1400.0 * f64::from(n);
            let asked = Asked { file, n_cpus: n, per_s, duration_s: 3e6 / per_s, threads: 1, replications: 1 };
            let mut runs = Vec::new();
            for round in 0..ROUNDS {
                let ran = ours(binary, asked)?;
                runs.push(kept(all, &format!("{file}, {n} CPUs"), round, ran).per_s());
            }
            costs.push((n, median(&runs)));
        }
        let at = |n: u32| costs.iter().find(|c| c.0 == n).map_or(0.0, |c| c.1);
        all.rows.push(Row {
            what,
            ours: format!("{} /s", millions(at(16))),
            peer: "-".into(),
            goal,
            is_met: (file == "mmc").then_some(at(16) >= 3e6),
        });
        let all_rates: Vec<f64> = costs.iter().map(|c| c.1).collect();
        let spread =
            all_rates.iter().fold(0.0f64, |a, b| a.max(*b)) / all_rates.iter().fold(f64::MAX, |a, b| a.min(*b));
        let shown = costs.iter().fold(String::new(), |mut out, (n, rate)| {
            let _ = write!(out, "{}{n}: {:.0} ns", if out.is_empty() { "" } else { ", " }, 1e9 / rate);
            out
        });
        all.rows.push(Row {
            what: if file == "mmc" { "cost of a request, 1 to 1024 CPUs, M/M/c" } else { "the same with everything" },
            ours: format!("{shown}: within {spread:.2} times"),
            peer: "-".into(),
            goal: "within 2 times",
            is_met: Some(spread <= 2.0),
        });
    }
    Ok(())
}

/// Replications on one thread and on as many as there are CPUs; and what so many bare loops at once gain here, because two CPUs may be one core.
fn threads(binary: &Path, bare: Option<&Path>, all: &mut Measured) -> Result<()> {
    let n = std::thread::available_parallelism()?.get();
    let (mut one, mut many, mut loops) = (Vec::new(), Vec::new(), Vec::new());
    let asked = MM16.asked(60.0, 4 * n);
    for round in 0..ROUNDS {
        one.push(kept(all, "1 thread", round, ours(binary, asked)?).seconds);
        many.push(kept(all, "all threads", round, ours(binary, Asked { threads: n, ..asked })?).seconds);
        if let Some(program) = bare {
            loops.push(bare_gain(program, n)?);
        }
    }
    let gain = median(&one) / median(&many);
    for (round, gain) in loops.iter().enumerate() {
        let _ = writeln!(all.csv, "\"{n} bare loops at once, times one\",{round},,,{gain:.3}");
    }
    all.rows.push(Row {
        what: "replications on all CPUs",
        ours: format!("{gain:.2} times as fast on {n}"),
        peer: if loops.is_empty() {
            "-".into()
        } else {
            format!("as many bare loops at once: {:.2} times", median(&loops))
        },
        goal: "linear: at least 0.85 per CPU",
        is_met: Some(gain >= 0.85 * n as f64),
    });
    Ok(())
}

/// Work done by so many bare loops at once, in that of one alone.
fn bare_gain(program: &Path, n: usize) -> Result<f64> {
    let one = || theirs(Command::new(program).args(["1400", "500", "7000000"]));
    let alone = one()?.seconds;
    let together: Result<Vec<f64>> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..n).map(|_| scope.spawn(|| one().map(|ran| ran.seconds))).collect();
        all.into_iter().map(|loop_| loop_.join().map_err(|_| anyhow::anyhow!("a loop was not awaited"))?).collect()
    });
    Ok(together?.iter().map(|seconds| alone / seconds).sum())
}

/// What is simulated, and how.
#[derive(Clone, Copy)]
struct Asked {
    /// `bench/simulate/FILE.toml`.
    file: &'static str,
    n_cpus: u32,
    per_s: f64,
    duration_s: f64,
    threads: usize,
    replications: usize,
}

fn ours(binary: &Path, asked: Asked) -> Result<Ran> {
    let begun = Instant::now();
    let outcome = outcome(binary, asked)?;
    let seconds = begun.elapsed().as_secs_f64();
    let number = |v: &Value| v["value"].as_f64().context("no number in simulate's document");
    let requests = number(&outcome["done_per_s"])? * asked.duration_s * asked.replications as f64;
    Ok(Ran { requests, mean_us: number(&outcome["mean_ns"])? / 1e3, seconds })
}

/// What our simulation came to, as in its document.
fn outcome(binary: &Path, asked: Asked) -> Result<Value> {
    let Asked { file, n_cpus, per_s, duration_s, threads, replications } = asked;
    let path = crate::repository().join(format!("bench/simulate/{file}.toml"));
    let out = Command::new(binary)
        .arg("simulate")
        .arg(&path)
        .args(["--json", "--threads", &threads.to_string(), "--replications", &replications.to_string()])
        .args(["--set", &format!("machine.cores={n_cpus}"), "--set", &format!("workload.arrivals.per_s={per_s:?}")])
        .args(["--set", &format!("run.duration={:.0}us", duration_s * 1e6)])
        .output()?;
    ensure!(out.status.success(), "simulate: {}", String::from_utf8_lossy(&out.stderr));
    let mut json: Value = serde_json::from_slice(&out.stdout)?;
    Ok(json["points"][0]["outcome"].take())
}

/// A peer that prints requests, mean and seconds.
fn theirs(command: &mut Command) -> Result<Ran> {
    let out = command.output()?;
    ensure!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|w| w.parse().ok()).collect();
    let [requests, mean_us, seconds] = numbers[..] else { anyhow::bail!("three numbers expected: {text}") };
    Ok(Ran { requests, mean_us, seconds })
}

/// SimPy in a folder of its own, or why not.
fn simpy() -> Result<PathBuf, String> {
    let folder = crate::repository().join("target/bench-simpy");
    let python = folder.join("bin/python3");
    let run =
        |program: &Path, args: &[&str]| Command::new(program).args(args).output().is_ok_and(|o| o.status.success());
    if !run(&python, &["-c", "import simpy"]) {
        let made = run(Path::new("python3"), &["-m", "venv", &folder.display().to_string()]);
        if !made || !run(&python, &["-m", "pip", "install", "--quiet", "simpy==4.1.1"]) {
            return Err("SimPy is not here: python3 with venv, pip and PyPI are needed".into());
        }
    }
    Ok(python)
}

fn kept(all: &mut Measured, what: &str, round: usize, ran: Ran) -> Ran {
    let _ = writeln!(all.csv, "\"{what}\",{round},{:.0},{:.3},{:.6}", ran.requests, ran.mean_us, ran.seconds);
    ran
}

fn told(peer: &Result<PathBuf, String>, runs: &[Ran], say: impl Fn(&[Ran]) -> String) -> String {
    match peer {
        Ok(_) => say(runs),
        Err(why) => why.clone(),
    }
}

fn millions(per_s: f64) -> String {
    format!("{:.2} million", per_s / 1e6)
}
