//! docs/truth.md: published figures beside what the models make of them; `--check` fails when the page is stale.
//!
//! All of it is computed in `wakewatt_models::truth`; this only writes the page.

use anyhow::{Context, Result};

/// Arguments of `truth`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail when the page is stale
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    let path = crate::repository().join("docs/truth.md");
    let page = wakewatt_models::truth::page();
    let is_fresh = std::fs::read_to_string(&path).is_ok_and(|now| now == page);
    if args.check {
        if !is_fresh {
            println!("{} is stale; run: cargo xtask truth", path.display());
        }
        return Ok(is_fresh);
    }
    std::fs::write(&path, &page).with_context(|| path.display().to_string())?;
    print!("{page}");
    Ok(true)
}
