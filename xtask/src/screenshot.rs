//! `cargo xtask screenshot FILE.html OUTDIR`: looks at a finished report in a real browser (`browser`) and keeps the pictures.

use crate::browser;
use anyhow::{Result, bail};
use std::path::PathBuf;

/// Arguments of `screenshot`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The report
    html: PathBuf,
    /// Where pictures and PDF go
    out: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    if !browser::is_installed() {
        bail!("chromium is not installed; on Debian: apt-get install chromium");
    }
    browser::check(&args.html, &args.out)?;
    println!("{}: draws, prints, fits, and calls nobody; pictures in {}", args.html.display(), args.out.display());
    Ok(true)
}
