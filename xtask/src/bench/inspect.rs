//! `inspect --json` on a 512-CPU tree against a bare open/read/close loop over exactly the files it reads.
//!
//! Which files those are is not guessed: the facts are read once through the recorder, which notes every file that
//! was opened with success. The loop runs in this process and does nothing but open, read and close; ours is the whole
//! program from start to exit, output included. Alternating, warm page cache, medians.

use super::{Measured, Row, median};
use crate::gen_host;
use anyhow::{Result, ensure};
use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use wakewatt_core::facts::Snapshot;
use wakewatt_host::{live::Live, recorder::Recorder};

const ROUNDS: usize = 15;
const CPUS: u32 = 512;

pub(crate) fn measure(binary: &Path) -> Result<Measured> {
    let scratch = tempfile::tempdir()?;
    let tree = scratch.path().join("host");
    let n_files = gen_host::write(&tree, CPUS)?;
    let paths = read_by_inspect(&tree)?;
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let started = Instant::now();
        let status =
            Command::new(binary).args(["inspect", "--json", "--sysroot"]).arg(&tree).stdout(Stdio::null()).status()?;
        let took = started.elapsed();
        ensure!(status.success(), "inspect failed on the synthetic host");
        let started = Instant::now();
        ensure!(bare_loop(&paths)? > 0, "nothing was read");
        if round > 0 {
            // The first round warms the cache.
            ours.push(took.as_secs_f64() * 1e3);
            bare.push(started.elapsed().as_secs_f64() * 1e3);
        }
    }
    let mut csv = String::from("round,inspect_ms,bare_loop_ms\n");
    for (round, (ours, bare)) in ours.iter().zip(&bare).enumerate() {
        let _ = writeln!(csv, "{round},{ours:.3},{bare:.3}");
    }
    let (ours, bare) = (median(&ours), median(&bare));
    let row = Row {
        what: "inspect --json, 512 CPUs",
        ours: format!("{ours:.0} ms"),
        peer: format!(
            "bare loop over the {} files it reads of {n_files}: {bare:.0} ms; ratio {:.2}",
            paths.len(),
            ours / bare
        ),
        goal: "ratio 1.5, 200 ms",
        is_met: Some(ours / bare <= 1.5 && ours < 200.0),
    };
    Ok(Measured { rows: vec![row], csv })
}

fn read_by_inspect(tree: &Path) -> Result<Vec<PathBuf>> {
    let source = Live::sysroot(tree)?;
    let recorder = Recorder::new(&source);
    let _ = Snapshot::read(&recorder, |_| true);
    let recorded = recorder.into_tree();
    let there = recorded.files.iter().filter(|(_, content)| content.is_ok());
    Ok(there.map(|(path, _)| tree.join(path.trim_start_matches('/'))).collect())
}

fn bare_loop(paths: &[PathBuf]) -> Result<usize> {
    let mut buffer = [0u8; 65536];
    let mut n_bytes = 0;
    for path in paths {
        let mut file = std::fs::File::open(path)?;
        loop {
            let n = file.read(&mut buffer)?;
            n_bytes += n;
            if n < buffer.len() {
                break;
            }
        }
    }
    Ok(n_bytes)
}
