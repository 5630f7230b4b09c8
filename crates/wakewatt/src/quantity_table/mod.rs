//! `--parquet` of what a run holds or a simulation came to: every quantity that `compare` would join, a row each.
//!
//! `report` writes it of a saved run and `simulate` of its own outcome, so that both go into one table of a fleet.

#[cfg(feature = "parquet")]
mod parquet;

#[cfg(not(feature = "parquet"))]
use crate::features::Feature;
use anyhow::Result;
use std::path::Path;
use wakewatt_core::evidence::Evidence;

/// Writes the file; `made_at` and `command` stand in its metadata.
#[cfg(feature = "parquet")]
pub(crate) fn write(file: &Path, evidence: &Evidence, made_at: &str, command: &str) -> Result<()> {
    use crate::exit::{Code, Failure};
    use crate::output;
    let bad = |why: String| Failure::error(Code::BadFile, format!("{}: {why}", file.display()));
    let bytes = parquet::bytes(evidence, made_at, command).map_err(|e| bad(e.to_string()))?;
    output::write_bytes(file, &bytes)?;
    output::remark(&format!("Parquet: {}", file.display()));
    Ok(())
}

/// This build has no writer.
#[cfg(not(feature = "parquet"))]
pub(crate) fn write(_: &Path, _: &Evidence, _: &str, command: &str) -> Result<()> {
    Err(Feature::Parquet.lacking(&format!("{command} --parquet")))
}
