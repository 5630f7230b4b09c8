//! `measure memory` beside its peers, alternating: a chase by multichase's method, and likwid-bench with the same stores.
//!
//! The chase is `chase.c`, compiled here, because multichase and lmbench are in no Debian main archive. Best against best
//! in each round, since noise only adds time, and the median over rounds. Three working sets lie well inside levels; in
//! the transition between them tools differ by a factor of two. likwid-bench's `copy` has normal stores, `copy_mem`
//! non-temporal ones; comparing one with the other is off by half. likwid-bench takes base pages, so ours does here: huge
//! ones are up to twice as fast, because the prefetchers stop at the end of a page. Our own spread is that of our bests over the rounds.

use super::{Measured, Row, installed, median};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROUNDS: usize = 7;
const CPU: &str = "0";
/// Working set, and its name in the table.
const SIZES: [(&str, &str); 3] =
    [("16384", "load latency, 16 KiB"), ("524288", "load latency, 512 KiB"), ("268435456", "load latency, 256 MiB")];
/// Ours, likwid's, its arrays, and the name in the table.
const KERNELS: [(&str, &str, u32, &str); 3] = [
    ("load", "load", 1, "bandwidth, load"),
    ("copy", "copy", 2, "bandwidth, copy"),
    ("copy-nt", "copy_mem", 2, "bandwidth, copy past the cache"),
];

/// Measures.
pub(crate) fn measure(binary: &Path) -> Result<Measured> {
    let mut all = Measured { rows: Vec::new(), csv: String::from("what,round,wakewatt,peer\n") };
    let chase = reference();
    for (size, what) in SIZES {
        let peer = chase.as_ref().map(|program| move || theirs_ns(program, size)).map_err(String::clone);
        let ours = || ours(binary, &["--part", "latency", "--pages", "huge", "--size", size], find_ns);
        all.row(what, "ns", "plateau within 5 %", 0.05, ours, peer)?;
    }
    let likwid = installed("likwid-bench").ok_or("likwid-bench: not installed (Debian package likwid)".to_string());
    let simd = ours(binary, &["--part", "bandwidth", "--kernel", "load", "--array-size", "1M"], |json| {
        Some(json["memory"]["bandwidth"][0]["simd"].as_str()?.to_string())
    })?;
    let suffix = match simd.as_str() {
        "avx512" => "_avx512",
        "avx2" => "_avx",
        "sse2" => "_sse",
        _ => "",
    };
    for (kernel, test, n_arrays, what) in KERNELS {
        let test = format!("{test}{suffix}");
        let peer = likwid.as_ref().map(|program| || theirs_gb(program, &test, n_arrays)).map_err(String::clone);
        let ours =
            || ours(binary, &["--part", "bandwidth", "--pages", "base", "--kernel", kernel, "--cpus", CPU], find_gb);
        all.row(what, "GB/s", "within 3 %", 0.03, ours, peer)?;
    }
    Ok(all)
}

impl Measured {
    fn row(
        &mut self,
        what: &'static str,
        unit: &str,
        goal: &'static str,
        within: f64,
        ours: impl Fn() -> Result<f64>,
        peer: Result<impl Fn() -> Result<f64>, String>,
    ) -> Result<()> {
        let (mut our, mut their, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let first_ours = (round % 2 == 0).then(&ours).transpose()?;
            let theirs = peer.as_ref().ok().map(|peer| peer()).transpose()?;
            let one = first_ours.map_or_else(&ours, Ok)?;
            our.push(one);
            let _ = writeln!(self.csv, "{what},{round},{one:.3},{:.3}", theirs.unwrap_or(f64::NAN));
            their.extend(theirs);
            ratios.extend(theirs.map(|t| one / t));
        }
        let spread = {
            let mean = our.iter().sum::<f64>() / our.len() as f64;
            (our.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (our.len() - 1) as f64).sqrt() / mean
        };
        let ours = format!("{:.2} {unit}, spread over rounds {:.1} %", median(&our), spread * 100.0);
        let (peer, is_met) = match peer {
            Err(why) => (why, None),
            Ok(_) => {
                let ratio = median(&ratios);
                // Where our own rounds differ by more than is asked for, the machine was too restless to say.
                let is_met = ((ratio - 1.0).abs() <= within).then_some(true).or((spread < within).then_some(false));
                (format!("{:.2} {unit}; ratio {ratio:.3} over {ROUNDS} rounds", median(&their)), is_met)
            }
        };
        self.rows.push(Row { what, ours, peer, goal, is_met });
        Ok(())
    }
}

/// Compiles the reference chase, if there is a compiler.
fn reference() -> Result<PathBuf, String> {
    let compiler = installed("cc").or(installed("gcc")).or(installed("clang"));
    let compiler = compiler.ok_or("no C compiler for the reference chase".to_string())?;
    let program = crate::repository().join("target/bench-chase");
    let source = crate::repository().join("xtask/src/bench/chase.c");
    let status = Command::new(compiler).args(["-O2", "-o"]).arg(&program).arg(source).status();
    if status.is_ok_and(|s| s.success()) { Ok(program) } else { Err("the reference chase did not compile".into()) }
}

fn ours<T>(binary: &Path, words: &[&str], find: impl Fn(&Value) -> Option<T>) -> Result<T> {
    let output = Command::new(binary).args(["measure", "memory", "--json", "--cpu", CPU]).args(words).output()?;
    if !output.status.success() {
        bail!("`measure memory`: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    find(&serde_json::from_slice(&output.stdout)?).context("no figure in the output of `measure memory`")
}

fn find_ns(json: &Value) -> Option<f64> {
    json["memory"]["latency"][0]["points"][0]["best_ns"].as_f64()
}

fn find_gb(json: &Value) -> Option<f64> {
    Some(json["memory"]["bandwidth"][0]["best_bytes_per_s"].as_f64()? / 1e9)
}

fn theirs_ns(chase: &Path, size: &str) -> Result<f64> {
    let output = Command::new(chase).args([CPU, size, "64", "0.1"]).output()?;
    String::from_utf8_lossy(&output.stdout).trim().parse().context("the reference chase printed no number")
}

fn theirs_gb(likwid: &Path, test: &str, n_arrays: u32) -> Result<f64> {
    // likwid divides the size among the kernel's arrays; ours is the size of one. One thread on the first CPU.
    let work = format!("S0:{}MB:1", 256 * n_arrays);
    let output = Command::new(likwid).args(["-t", test, "-w", &work]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let rate = text.lines().find_map(|l| l.strip_prefix("MByte/s:")?.trim().parse::<f64>().ok());
    Ok(rate.with_context(|| format!("likwid-bench -t {test} printed no MByte/s"))? / 1e3)
}
