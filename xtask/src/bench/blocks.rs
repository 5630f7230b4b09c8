//! `cargo xtask bench blocks --save CLASS`: shipped experiments run here and now, with every block kept in the repository.
//!
//! A figure that is published without its blocks cannot be computed again by anybody. So k0-shop and k3-disk (or the plans
//! named with --plan) run with a fixed seed, and what `experiment --save` wrote goes to bench/runs/DATE-CLASS/blocks, packed by
//! gzip without name and time, so that the same run gives the same bytes. `bench recompute` reads that folder. Needs root, a quiet
//! machine and the time that `experiment PLAN --dry-run` says, which is printed first. Nothing is kept of a run that did not
//! end well.

use super::{Measured, Row};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use wakewatt_core::record::run_file::RunFile;
use wakewatt_core::samples::Samples;
use wakewatt_core::units::p_value;

/// The plans of docs/journal/2026-11-21-proved-live.md, whose blocks were not kept.
const PLANS: [&str; 2] = ["k0-shop", "k3-disk"];
/// As in the published runs.
const SEED: &str = "1";

/// Runs the plans and keeps their blocks in this folder.
pub(crate) fn measure(binary: &Path, plans: &[String], folder: &Path) -> Result<Measured> {
    ensure!(rustix::process::geteuid().is_root(), "bench blocks turns settings of idle states: run it as root");
    let named: Vec<&str> = if plans.is_empty() { PLANS.to_vec() } else { plans.iter().map(String::as_str).collect() };
    for plan in &named {
        println!("{plan}: {}", forecast(binary, plan)?);
    }
    let scratch = tempfile::tempdir()?;
    let mut out = Measured::default();
    for plan in named {
        let name = Path::new(plan).file_stem().map_or_else(|| plan.into(), |name| name.to_string_lossy());
        let file = scratch.path().join(format!("{name}.run"));
        let mut command = Command::new(binary);
        command.args(["experiment", plan, "--seed", SEED, "--save"]).arg(&file);
        command.arg("--run-dir").arg(scratch.path().join(&*name));
        let status = command.status().with_context(|| binary.display().to_string())?;
        ensure!(status.success(), "experiment {plan} ended with {status}; its blocks were not kept");
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let run = RunFile::read(&text).with_context(|| file.display().to_string())?;
        let ours = said(&run.samples).with_context(|| format!("experiment {plan} kept no blocks"))?;
        std::fs::create_dir_all(folder)?;
        keep(&file, &folder.join(format!("{name}.run.gz")))?;
        out.rows.push(Row { what: title(&name), ours, peer: "-".into(), goal: "blocks kept", is_met: Some(true) });
    }
    Ok(out)
}

/// How long, as the tool says it.
fn forecast(binary: &Path, plan: &str) -> Result<String> {
    let output = Command::new(binary).args(["experiment", plan, "--dry-run", "--json"]).output()?;
    if !output.status.success() {
        bail!("experiment {plan} --dry-run: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let dry: Value = serde_json::from_slice(&output.stdout)?;
    let minutes = |value: &Value| value.as_f64().map_or("?".into(), |ns| format!("{:.0} min", ns / 60e9));
    let looks = dry["looks_ns"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ends: Vec<String> = looks.iter().map(minutes).collect();
    Ok(format!("may end after {}, at the latest after {}", ends.join(", "), minutes(&dry["budget_ns"])))
}

/// What the primary metric came to, and how the run is graded.
fn said(samples: &Samples) -> Option<String> {
    let run = samples.experiment.as_ref().filter(|run| !run.blocks.is_empty())?;
    let primary = run.metrics.first()?;
    let of = |e: &wakewatt_core::samples::experiment::Effect| {
        format!(
            "{}, {} / {}: {:.2} [{:.2}, {:.2}], p {}, {} rounds",
            e.metric,
            e.baseline,
            e.arm,
            e.ratio,
            e.ratio_low,
            e.ratio_high,
            p_value(e.p_value),
            e.n_pairs
        )
    };
    let effects: Vec<String> = run.effects.iter().filter(|e| e.metric == primary.id).map(of).collect();
    let effects = if effects.is_empty() { "no ratio of the primary metric".into() } else { effects.join("; ") };
    Some(format!(
        "{effects} ({} blocks, {} counted)",
        run.blocks.len(),
        run.blocks.iter().filter(|b| b.rejected.is_none()).count()
    ))
}

/// Packed, the same bytes for the same text.
fn keep(file: &Path, packed: &Path) -> Result<()> {
    let to = File::create(packed).with_context(|| packed.display().to_string())?;
    let status =
        Command::new("gzip").args(["-9", "-n", "-c"]).stdin(File::open(file)?).stdout(Stdio::from(to)).status();
    let status = status.context("gzip")?;
    ensure!(status.success(), "gzip of {} ended with {status}", file.display());
    println!("kept {}", packed.display());
    Ok(())
}

/// Rows have names that live as long as the program.
fn title(plan: &str) -> &'static str {
    Box::leak(format!("experiment {plan}").into_boxed_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_what_recompute_reads() {
        let folder = tempfile::tempdir().unwrap();
        let (file, packed) = (folder.path().join("a.run"), folder.path().join("a.run.gz"));
        std::fs::write(&file, "some text").unwrap();
        keep(&file, &packed).unwrap();
        let first = std::fs::read(&packed).unwrap();
        keep(&file, &packed).unwrap();
        assert_eq!(first, std::fs::read(&packed).unwrap());
        assert_eq!(super::super::recompute::unpacked(&packed).unwrap(), "some text");
        assert_eq!(said(&Samples::default()), None);
    }
}
