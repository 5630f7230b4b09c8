//! `cargo xtask agent-page BINARY OUTDIR`: looks at the page of a running agent in a real browser (`browser`) and keeps the pictures.
//!
//! The agent is the real one, on this machine, reading only; its past is made up: six hours of a server that never was (`wakewatt_agent::history::week`), whose
//! idle governor changes in the middle, so that every chart has something to draw and a change to mark.

use crate::bench::agent::{agent, asked};
use crate::browser;
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wakewatt_agent::history::week::{INTERVAL_MS, Week};
use wakewatt_agent::history::{Limits, Ring};

const N_CPUS: u32 = 32;
const HOURS: u64 = 6;

/// Arguments of `agent-page`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The program
    binary: PathBuf,
    /// Where page, pictures and PDF go
    out: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    if !browser::is_installed() {
        bail!("chromium is not installed; on Debian: apt-get install chromium");
    }
    std::fs::create_dir_all(&args.out).with_context(|| format!("cannot create {}", args.out.display()))?;
    let history = tempfile::tempdir()?;
    fill(history.path())?;
    let words = ["--history".as_ref(), history.path().as_os_str(), "--interval".as_ref(), "1s".as_ref()];
    let server = agent(&args.binary, words)?;
    // Rates need a second reading.
    let until = Instant::now() + Duration::from_secs(60);
    while asked(&server, "/api/v1/now").is_err() {
        ensure!(Instant::now() < until, "no second reading within a minute");
        std::thread::sleep(Duration::from_millis(200));
    }
    let page = asked(&server, "/")?;
    let file = args.out.join("agent.html");
    std::fs::write(&file, page).with_context(|| format!("cannot write {}", file.display()))?;
    browser::check(&file, &args.out)?;
    println!("{}: draws, prints, fits, and calls nobody; pictures in {}", file.display(), args.out.display());
    Ok(true)
}

fn fill(folder: &Path) -> Result<()> {
    let now_ms = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
    let mut ring = Ring::open(folder, Limits { most_bytes: 64 << 20, free_share: 0.0 })?;
    let mut week = Week::of(N_CPUS);
    let n = HOURS * 3_600_000 / INTERVAL_MS;
    for i in 0..n {
        if i == n / 2 {
            week.governor = "teo";
        }
        ring.push(now_ms - (n - i) * INTERVAL_MS, &week.next_page())?;
    }
    ring.finish()?;
    Ok(())
}
