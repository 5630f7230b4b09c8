//! `measure memory` beside its peers, alternating: multichase's method, likwid-bench and STREAM's, with the same stores.
//!
//! `chase.c` and `stream.c` are compiled here, because multichase, lmbench and STREAM are in no Debian main archive. Three
//! working sets lie well inside levels; in the transition between them tools differ by a factor of two. Best is compared
//! with best (noise only adds time), and our median with likwid-bench, which prints an average. likwid-bench's `copy` has
//! normal stores, `copy_mem` non-temporal ones; comparing one with the other is off by half. Its arrays and those of
//! `stream.c` lie in base pages, so ours do here: huge ones are up to twice as fast, because the prefetchers stop at the
//! end of a page. To move more bytes than the peer is no miss. Our own CV is that of our figures over the rounds.

use super::versus::{self, CSV_HEAD, Versus, all_met};
use super::{Measured, Row, compiled, installed};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROUNDS: usize = 7;
const CPU: &str = "0";
/// Working set, and its name in the table.
const SIZES: [(&str, &str); 3] =
    [("16384", "load latency, 16 KiB"), ("524288", "load latency, 512 KiB"), ("268435456", "load latency, 256 MiB")];
/// Ours, likwid's, its arrays, and the name in the table.
const LIKWID: [(&str, &str, u32, &str); 3] = [
    ("load", "load", 1, "bandwidth, load"),
    ("copy", "copy", 2, "bandwidth, copy"),
    ("copy-nt", "copy_mem", 2, "bandwidth, copy past the cache"),
];
/// Ours, the place in the output of `stream.c`, and the name in the table.
const STREAM: [(&str, usize, &str); 2] =
    [("copy", 0, "bandwidth, copy, best pass"), ("triad", 1, "bandwidth, triad, best pass")];
/// One array, and how often it is passed through.
const ARRAY_MIB: u32 = 256;
const PASSES: &str = "12";
const LATENCY_GOAL: &str = "plateau within 5 %, own CV 1 %";
const BANDWIDTH_GOAL: &str = "at most 3 % below the peer";

pub(crate) fn measure(binary: &Path) -> Result<Measured> {
    let mut all = Measured { rows: Vec::new(), csv: CSV_HEAD.into() };
    let folder = tempfile::tempdir()?;
    let chase = compiled(folder.path(), "chase", include_str!("chase.c"), &["-O2"]);
    for (size, what) in SIZES {
        let words = ["--part", "latency", "--pages", "huge", "--size", size];
        let ours = || ours(binary, &words, find_ns);
        let Some(versus) = all.compare(what, "ns", LATENCY_GOAL, &chase, &ours, &|chase| theirs_ns(chase, size))?
        else {
            continue;
        };
        all.judge(all_met(&[versus.is_within(0.05), versus.is_steady(0.01)]));
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
    let words = |kernel| ["--part", "bandwidth", "--pages", "base", "--kernel", kernel, "--cpus", CPU];
    for (kernel, test, n_arrays, what) in LIKWID {
        let test = format!("{test}{suffix}");
        // likwid-bench divides all bytes by all time, so what stands beside it is our middle pass.
        let ours = || ours(binary, &words(kernel), |json| find_gb(json, "median_bytes_per_s"));
        let theirs = |likwid: &Path| theirs_gb(likwid, &test, n_arrays);
        if let Some(versus) = all.compare(what, "GB/s", BANDWIDTH_GOAL, &likwid, &ours, &theirs)? {
            all.judge(versus.is_not_below(0.03));
        }
    }
    // No loop may become a call of memcpy; both programs store normally.
    let flags = ["-O2", "-ftree-vectorize", "-march=native", "-fno-tree-loop-distribute-patterns"];
    let stream = compiled(folder.path(), "stream", include_str!("stream.c"), &flags);
    for (kernel, place, what) in STREAM {
        let ours = || ours(binary, &words(kernel), |json| find_gb(json, "best_bytes_per_s"));
        let theirs = |stream: &Path| theirs_stream(stream, place);
        if let Some(versus) = all.compare(what, "GB/s", BANDWIDTH_GOAL, &stream, &ours, &theirs)? {
            all.judge(versus.is_not_below(0.03));
        }
    }
    Ok(all)
}

impl Measured {
    /// Adds a row that is not judged yet, and gives the comparison, if there is a peer.
    fn compare(
        &mut self,
        what: &'static str,
        unit: &str,
        goal: &'static str,
        peer: &Result<PathBuf, String>,
        ours: &dyn Fn() -> Result<f64>,
        theirs: &dyn Fn(&Path) -> Result<f64>,
    ) -> Result<Option<Versus>> {
        let peer = match peer {
            Ok(peer) => peer,
            Err(why) => {
                let ours = format!("{:.2} {unit}", ours()?);
                self.rows.push(Row { what, ours, peer: why.clone(), goal, is_met: None });
                return Ok(None);
            }
        };
        let name = peer.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (ours, theirs) = (|| Ok(vec![ours()?]), || Ok(vec![theirs(peer)?]));
        let rounds = versus::rounds(ROUNDS, what, &name, &[unit], &ours, &theirs)?;
        let versus = rounds.figure(0)?;
        self.csv.push_str(rounds.csv());
        let ours = format!("{:.2} {unit}, CV over rounds {:.1} %", versus.ours, versus.cv_ratio * 100.0);
        let peer_cv = versus.peer_cv_ratio * 100.0;
        let peer = format!("{name} {:.2} {unit}, CV {peer_cv:.1} %; {}", versus.theirs, versus.ratio());
        self.rows.push(Row { what, ours, peer, goal, is_met: None });
        Ok(Some(versus))
    }

    fn judge(&mut self, is_met: Option<bool>) {
        if let Some(row) = self.rows.last_mut() {
            row.is_met = is_met;
        }
    }
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

fn find_gb(json: &Value, which: &str) -> Option<f64> {
    Some(json["memory"]["bandwidth"][0][which].as_f64()? / 1e9)
}

fn theirs_ns(chase: &Path, size: &str) -> Result<f64> {
    let output = Command::new(chase).args([CPU, size, "64", "0.1"]).output()?;
    String::from_utf8_lossy(&output.stdout).trim().parse().context("the reference chase printed no number")
}

fn theirs_gb(likwid: &Path, test: &str, n_arrays: u32) -> Result<f64> {
    // likwid divides the size among the kernel's arrays; ours is the size of one. One thread on the first CPU.
    let work = format!("S0:{}MB:1", ARRAY_MIB * n_arrays);
    let output = Command::new(likwid).args(["-t", test, "-w", &work]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let rate = text.lines().find_map(|l| l.strip_prefix("MByte/s:")?.trim().parse::<f64>().ok());
    Ok(rate.with_context(|| format!("likwid-bench -t {test} printed no MByte/s"))? / 1e3)
}

fn theirs_stream(stream: &Path, place: usize) -> Result<f64> {
    let bytes = (u64::from(ARRAY_MIB) << 20).to_string();
    let output = Command::new(stream).args([CPU, &bytes, PASSES]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let rate = text.split_whitespace().nth(place).and_then(|word| word.parse::<f64>().ok());
    Ok(rate.context("the reference stream printed no number")? / 1e9)
}
