//! Does the first command decide? `doctor --quick` again and again, alone and beside a neighbour, and experiments on nothing.
//!
//! `verdict` has two rows: the machine as it is, and beside a loop that uses half of one CPU. `verdict-aa` runs A/A
//! experiments whose second variant is switched like the first and changes nothing (bench/plans/aa.toml). The CSV has a
//! line per run; A/A runs also leave their series of medians, measurement by measurement.

use super::{Measured, Row, median};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Runs of each row, unless --pairs says otherwise.
pub(crate) const RUNS: usize = 20;
const PLAN: &str = "bench/plans/aa.toml";
/// Where the medians of the A/A runs are left.
const SERIES: &str = "target/verdict-noise.txt";
/// The neighbour runs and rests for so long in turn.
const HALF: Duration = Duration::from_millis(5);

/// What one run of doctor came to.
struct Run {
    wall_s: f64,
    verdict: String,
    /// Estimate and interval of the ratio; none where nothing was compared.
    ratio: Option<[f64; 3]>,
    steal_ratio: f64,
    others_ratio: f64,
}

impl Run {
    fn is_decided(&self) -> bool {
        matches!(self.verdict.as_str(), "higher" | "lower" | "no_difference")
    }
}

pub(crate) fn measure(binary: &Path, n_runs: usize) -> Result<Measured> {
    let mut out =
        Measured { csv: "row,run,wall_s,verdict,ratio,low,high,steal,others\n".into(), ..Measured::default() };
    let quiet = doctors(binary, "alone", n_runs, &mut out.csv)?;
    out.rows.push(row(
        "doctor --quick decides",
        "≥ 19 of 20, ≤ 60 s, interval within a factor of 1.5",
        &quiet,
        0.95,
        1.5,
    ));
    let busy = beside_a_loop(|| doctors(binary, "beside a loop", n_runs, &mut out.csv))??;
    let goal = "≥ 16 of 20";
    out.rows.push(row("doctor --quick beside a loop at 50 % of a CPU", goal, &busy, 0.8, f64::INFINITY));
    Ok(out)
}

/// A/A experiments, half of them beside a loop: how many call an effect where there is none.
pub(crate) fn on_nothing(binary: &Path, n_runs: usize) -> Result<Measured> {
    let mut out =
        Measured { csv: "row,run,wall_s,verdict,ratio,low,high,steal,others\n".into(), ..Measured::default() };
    let mut series = String::new();
    let mut called = nothing(binary, "alone", n_runs, (&mut out.csv, &mut series))?;
    called += beside_a_loop(|| nothing(binary, "beside a loop", n_runs, (&mut out.csv, &mut series)))??;
    std::fs::write(crate::repository().join(SERIES), series)?;
    out.rows.push(Row {
        what: "A/A experiments that call an effect",
        ours: format!("{called} of {}", 2 * n_runs),
        peer: "–".into(),
        goal: "≤ 2 of 40",
        is_met: Some(called * 20 <= 2 * n_runs),
    });
    Ok(out)
}

fn json(binary: &Path, args: &[&str]) -> Result<Value> {
    let output = Command::new(binary).args(args).output().with_context(|| format!("{}", binary.display()))?;
    if output.stdout.is_empty() {
        bail!("{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn doctors(binary: &Path, row: &str, n: usize, csv: &mut String) -> Result<Vec<Run>> {
    let mut runs = Vec::new();
    for at in 0..n {
        let start = Instant::now();
        let document = json(binary, &["doctor", "--quick", "--no-report", "--json"])?;
        let run = read(&document, start.elapsed().as_secs_f64());
        let [ratio, low, high] = run.ratio.unwrap_or([f64::NAN; 3]);
        let Run { wall_s, verdict, steal_ratio, others_ratio, .. } = &run;
        writeln!(
            csv,
            "{row},{at},{wall_s:.1},{verdict},{ratio:.3},{low:.3},{high:.3},{steal_ratio:.4},{others_ratio:.4}"
        )?;
        println!(
            "  {row} {}: {verdict} {ratio:.2} [{low:.2}, {high:.2}], {wall_s:.0} s, steal {steal_ratio:.3}",
            at + 1
        );
        runs.push(run);
    }
    Ok(runs)
}

/// The primary effect of the first experiment in a document, and the load beside it.
fn read(document: &Value, wall_s: f64) -> Run {
    let run = experiment(document);
    let effect = &run["effects"][0];
    let ratio = ["ratio", "ratio_low", "ratio_high"].map(|key| effect[key].as_f64());
    let taken = |key: &str| {
        let all: Vec<f64> =
            run["blocks"].as_array().into_iter().flatten().filter_map(|b| b["taken"][key].as_f64()).collect();
        all.iter().sum::<f64>() / all.len().max(1) as f64
    };
    Run {
        wall_s,
        verdict: effect["verdict"].as_str().unwrap_or("none").into(),
        ratio: ratio.iter().all(Option::is_some).then(|| ratio.map(Option::unwrap_or_default)),
        steal_ratio: taken("steal_ratio"),
        others_ratio: taken("foreign_ratio"),
    }
}

/// Where a document keeps its experiment.
fn experiment(document: &Value) -> &Value {
    let places = ["/evidence/experiment", "/evidence/samples/experiment", "/experiment", "/run"];
    places.iter().find_map(|place| document.pointer(place).filter(|run| run.is_object())).unwrap_or(&Value::Null)
}

fn row(what: &'static str, goal: &'static str, runs: &[Run], share: f64, widest: f64) -> Row {
    let n_decided = runs.iter().filter(|run| run.is_decided()).count();
    let wall_s: Vec<f64> = runs.iter().map(|run| run.wall_s).collect();
    let ratios: Vec<[f64; 3]> = runs.iter().filter_map(|run| run.ratio).collect();
    let most = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::NAN, f64::max);
    let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::NAN, f64::min);
    let width = most(&mut ratios.iter().map(|[_, low, high]| high / low));
    let (slowest, middle) = (most(&mut wall_s.iter().copied()), median(&wall_s));
    let ours = format!(
        "{n_decided} of {} decided; {middle:.0} s, at most {slowest:.0} s; ratios {:.2} to {:.2}, widest interval x{width:.2}; \
         steal {:.1} to {:.1} %",
        runs.len(),
        least(&mut ratios.iter().map(|r| r[0])),
        most(&mut ratios.iter().map(|r| r[0])),
        100.0 * least(&mut runs.iter().map(|r| r.steal_ratio)),
        100.0 * most(&mut runs.iter().map(|r| r.steal_ratio)),
    );
    let is_met =
        n_decided as f64 >= share * runs.len() as f64 && slowest <= 60.0 && (width <= widest || widest.is_infinite());
    Row { what, ours, peer: "–".into(), goal, is_met: Some(is_met) }
}

/// Something that runs beside a process of ours which uses half of one CPU.
fn beside_a_loop<T>(run: impl FnOnce() -> T) -> Result<T> {
    let is_over = AtomicBool::new(false);
    Ok(std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let until = Instant::now() + HALF;
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
                std::thread::sleep(HALF);
            }
        });
        let result = run();
        is_over.store(true, Ordering::Relaxed);
        result
    }))
}

/// Experiments on nothing: how many call an effect. Their medians go into `series`, a line per run.
fn nothing(binary: &Path, row: &str, n: usize, (csv, series): (&mut String, &mut String)) -> Result<usize> {
    let mut n_called = 0;
    let kept = tempfile::tempdir()?;
    writeln!(series, "# {row}")?;
    for at in 0..n {
        let start = Instant::now();
        let folder = kept.path().join(at.to_string());
        let folder = folder.to_str().context("a temporary folder whose name is no text")?;
        let document = json(binary, &["experiment", PLAN, "--run-dir", folder, "--json"])?;
        let run = read(&document, start.elapsed().as_secs_f64());
        let blocks = experiment(&document)["blocks"].as_array().cloned().unwrap_or_default();
        let medians = blocks.iter().filter_map(|b| b["values"][0].as_f64());
        writeln!(series, "{}", medians.map(|ns| format!("{ns:.0}")).collect::<Vec<_>>().join(" "))?;
        n_called += usize::from(matches!(run.verdict.as_str(), "higher" | "lower"));
        let [ratio, low, high] = run.ratio.unwrap_or([f64::NAN; 3]);
        let Run { wall_s, verdict, steal_ratio, others_ratio, .. } = &run;
        writeln!(
            csv,
            "{row:?},{at},{wall_s:.1},{verdict},{ratio:.3},{low:.3},{high:.3},{steal_ratio:.4},{others_ratio:.4}"
        )?;
        println!("  {row} {}: {verdict} {ratio:.3} [{low:.3}, {high:.3}], {wall_s:.0} s", at + 1);
    }
    Ok(n_called)
}
