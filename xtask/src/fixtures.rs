//! Turns recorded trees into `.host` fixtures by running the real `capture` on each.
//!
//! Every capture is made twice and must come out the same: a fixture that differs from run to run is no fixture.

use crate::binary;
use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `fixtures`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Recorded trees: folders that hold sys/, or .tar.xz of them
    dir: PathBuf,
    /// Where the .host files go
    #[arg(long, default_value = "fixtures/hosts")]
    to: PathBuf,
    /// The binary; built when not given
    #[arg(long)]
    bin: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    let binary = match &args.bin {
        Some(binary) => binary.clone(),
        None => binary::build(binary::Profile::Dev)?,
    };
    std::fs::create_dir_all(&args.to)?;
    let scratch = tempfile::tempdir()?;
    for host in crate::hosts::find::hosts(&args.dir, scratch.path())?.iter().filter(|h| h.path.is_dir()) {
        let capture = || -> Result<Vec<u8>> {
            let words =
                ["capture".as_ref(), "--output".as_ref(), "-".as_ref(), "--sysroot".as_ref(), host.path.as_os_str()];
            let words: [&OsStr; 5] = words;
            let outcome = binary::run(&binary, &words, Duration::from_secs(60))?;
            if outcome.code != Some(0) {
                bail!("{}: capture failed: {}", host.name, outcome.crash.unwrap_or(outcome.stderr));
            }
            Ok(outcome.stdout)
        };
        let (first, second) = (capture()?, capture()?);
        if first != second {
            bail!("{}: two captures of one tree differ; capture must be deterministic", host.name);
        }
        let path = args.to.join(format!("{}.host", host.name));
        std::fs::write(&path, &first).with_context(|| format!("{}: not writable", path.display()))?;
        println!("{}: {} KiB", path.display(), first.len() / 1024);
    }
    Ok(true)
}
